//! A small site that changes, and a mirror of it.

use crate::mirror::spider::{Delivered, DeliveredContent, Role, deliver, publish};
use crate::mirror::{Mirror, MirrorSettings, assembler, parser, reactor};
use crate::output::Outcome;
use bytes::Bytes;
use page::mirror::xfile;
use std::collections::BTreeMap;
use std::path::Path;

/// A document of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) body: String,
    pub(super) content_type: &'static str,
    pub(super) last_modified_ms: Option<i64>,
}

/// A state of the site, by URL.
pub(super) type Site = BTreeMap<String, Document>;

pub(super) fn url(path: &str) -> String {
    format!("https://a.example/{path}")
}

pub(super) fn page(body: &str) -> Document {
    Document { body: body.to_owned(), content_type: "text/html", last_modified_ms: None }
}

pub(super) fn style(body: &str) -> Document {
    Document { content_type: "text/css", ..page(body) }
}

pub(super) fn image(body: &str) -> Document {
    Document { content_type: "image/png", ..page(body) }
}

pub(super) fn site(documents: &[(&str, Document)]) -> Site {
    documents.iter().map(|(path, document)| (url(path), document.clone())).collect()
}

/// Settings under which a mirror follows from the state of its site alone.
pub(super) fn settings() -> MirrorSettings {
    MirrorSettings { grace_ms: 0, threads: 1, ..MirrorSettings::default() }
}

pub(super) fn delivered(url: &str, document: Option<&Document>) -> Delivered {
    let content = document.map(|document| DeliveredContent {
        bytes: Bytes::copy_from_slice(document.body.as_bytes()),
        content_type: Some(document.content_type.to_owned()),
        title: document
            .body
            .split_once("<title>")
            .map(|(_, rest)| rest.split('<').next().unwrap_or_default().to_owned()),
        last_modified_ms: document.last_modified_ms,
        etag: None,
        status: Some(200),
        role: match document.content_type {
            "text/html" => Role::Page,
            _ => Role::Requisite,
        },
    });
    Delivered { url: url.to_owned(), content }
}

/// What leads from one state to another.
pub(super) fn delta(before: &Site, after: &Site) -> Vec<Delivered> {
    let changed = after.iter().filter(|(url, document)| before.get(*url) != Some(document));
    let mut delta: Vec<Delivered> =
        changed.map(|(url, document)| delivered(url, Some(document))).collect();
    let gone = before.keys().filter(|url| !after.contains_key(*url));
    delta.extend(gone.map(|url| delivered(url, None)));
    delta
}

/// Delivers a change and has all modules follow it. Returns the number of its x-file.
pub(super) fn bring(
    mirror: &Mirror,
    delta: &[Delivered],
    now_ms: i64,
) -> store::Result<Option<u64>> {
    if !delta.is_empty() {
        let outcomes = deliver(mirror, delta)?;
        assert!(outcomes.iter().all(|it| *it == Outcome::Taken), "{outcomes:?}");
    }
    let number = publish(mirror, xfile::Outcome::Complete, now_ms)?;
    follow(mirror, now_ms)?;
    Ok(number)
}

/// Has the modules follow the x-files that there are.
pub(super) fn follow(mirror: &Mirror, now_ms: i64) -> store::Result<()> {
    parser::run(mirror)?;
    reactor::run(mirror, false)?;
    assembler::run(mirror, now_ms)?;
    Ok(())
}

/// All files that a reader can see, with their bytes.
pub(super) type Tree = BTreeMap<String, Vec<u8>>;

pub(super) fn webroot(dir: &Path) -> Tree {
    tree(&dir.join("webroot"))
}

/// All files below a directory, through links.
pub(super) fn tree(dir: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(dir.join(&folder)) else { continue };
        for entry in entries {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{folder}{name}");
            let place = dir.join(&path);
            if place.is_dir() {
                open.push(format!("{path}/"));
            } else {
                tree.insert(path, std::fs::read(place).unwrap());
            }
        }
    }
    tree
}

/// The webroot of a mirror that is built of one state alone.
pub(super) fn from_scratch(site: &Site, settings: &MirrorSettings) -> Tree {
    let place = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(place.path(), settings).unwrap();
    bring(&mirror, &delta(&Site::new(), site), 1).unwrap();
    webroot(place.path())
}

/// What differs between two trees, to be read by a person.
pub(super) fn difference(left: &Tree, right: &Tree) -> Vec<String> {
    let mut paths: Vec<&String> = left.keys().chain(right.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let text = |tree: &Tree, path: &String| {
        tree.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let differing = paths.into_iter().filter(|path| left.get(*path) != right.get(*path));
    differing.map(|it| format!("{it}: {:?} / {:?}", text(left, it), text(right, it))).collect()
}

/// Copies a directory with the links in it.
pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(from).unwrap(), to).unwrap();
        } else if kind.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}
