//! EPUB: which files are a book's text, in which order.
//!
//! `META-INF/container.xml` names the package file, which lists the book's files and the
//! order in which they are read. Invariant: names lead to files of the archive or to none.

use super::archive::Archive;
use super::xml::{XmlEvent, attribute, walk};
use std::collections::HashMap;
use std::ops::ControlFlow;

const CONTAINER: &str = "META-INF/container.xml";

/// The package file of a book, if the archive is one.
pub(super) fn package(archive: &mut Archive<'_>) -> Option<String> {
    let mut found = None;
    walk(archive.part(CONTAINER)?, |piece| match piece {
        XmlEvent::Start(start) if start.local_name().as_ref() == "rootfile" => {
            found = attribute(start, "full-path");
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.filter(|name| archive.has(name))
}

/// The files of a book in the order in which they are read.
pub(super) fn order(archive: &mut Archive<'_>, package: &str) -> Vec<String> {
    let Some(file) = archive.part(package) else { return Vec::new() };
    let (mut files, mut order) = (HashMap::new(), Vec::new());
    walk(file, |piece| {
        if let XmlEvent::Start(start) = piece {
            match start.local_name().as_ref() {
                "item" => files.extend(attribute(start, "id").zip(attribute(start, "href"))),
                "itemref" => order.extend(attribute(start, "idref")),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    });
    let folder = package.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names: Vec<String> =
        order.iter().filter_map(|id| Some(joined(folder, files.get(id)?))).collect();
    names.retain(|name| archive.has(name));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The name of a file that another in a folder refers to.
fn joined(folder: &str, href: &str) -> String {
    let href = href.split('#').next().unwrap_or_default();
    let mut steps: Vec<String> =
        folder.split('/').filter(|it| !it.is_empty()).map(str::to_owned).collect();
    for step in href.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(unescaped(step)),
        }
    }
    steps.join("/")
}

/// `%20` and the like as what they mean.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| first == b'%');
        let code = code.and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn names_are_relative_to_their_folder() {
        assert_eq!(joined("OEBPS", "text/a%20b.xhtml#x"), "OEBPS/text/a b.xhtml");
        assert_eq!(joined("OEBPS/package", "../c.xhtml"), "OEBPS/c.xhtml");
        assert_eq!(joined("", "../../%zz.xhtml"), "%zz.xhtml");
    }
}
