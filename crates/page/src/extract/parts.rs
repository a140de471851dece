//! Office (docx, xlsx, pptx), OpenDocument and EPUB: archives of XML parts.
//!
//! What an archive is is told by the files in it, not by what it was sent as. Text is taken
//! from where people read it: not from deleted passages, formulas, scripts or positions of
//! drawings. Invariants: as in [`super::archive`] and [`super::xml`], nothing is read without
//! bound; parts that cannot be read leave the others readable.

use super::about::{self, PackageFormat};
use super::archive::Archive;
use super::xml::{XmlEvent, attribute, walk};
use super::{Extract, ExtractedLinks, Unreadable, book, sheets};
use crate::facts::TEXT_BYTES_MAX;
use crate::text::CollapsedText;
use std::io::BufRead;
use std::ops::ControlFlow;

/// What has been said so far.
pub(super) struct ExtractedText {
    text: CollapsedText,
    links: ExtractedLinks,
    /// Something could not be read, or there is more.
    pub cut: bool,
}

impl ExtractedText {
    pub fn say(&mut self, text: &str) {
        self.text.push(text);
    }

    pub fn space(&mut self) {
        self.text.space();
    }

    pub fn line(&mut self) {
        self.text.line();
    }

    pub fn is_full(&self) -> bool {
        self.text.is_cut()
    }
}

/// The elements whose text is read.
type Inside = &'static [&'static str];
const OFFICE: Inside = &["t"];
const OPEN_DOCUMENT: Inside = &["p", "h"];
const BOOK: Inside = &["body"];

pub(super) fn read(bytes: &[u8]) -> Result<Extract, Unreadable> {
    let mut archive = Archive::open(bytes)?;
    let mut extracted = ExtractedText {
        text: CollapsedText::new(TEXT_BYTES_MAX),
        links: ExtractedLinks::default(),
        cut: false,
    };
    let mut found = Extract::default();
    let has_text = match book::package(&mut archive) {
        Some(package) => {
            describe(&mut archive, &package, PackageFormat::Book, &mut found);
            let order = book::order(&mut archive, &package);
            texts(&mut archive, &order, BOOK, &mut extracted)
        }
        None if archive.has("content.xml") => {
            describe(&mut archive, "meta.xml", PackageFormat::OpenDocument, &mut found);
            texts(&mut archive, &["content.xml".to_owned()], OPEN_DOCUMENT, &mut extracted)
        }
        None => {
            describe(&mut archive, "docProps/core.xml", PackageFormat::Office, &mut found);
            references(&mut archive, &mut extracted);
            let order = office_order(&archive.names);
            texts(&mut archive, &order, OFFICE, &mut extracted)
                | sheets::read(&mut archive, &mut extracted)
        }
    };
    if !has_text {
        return Err(Unreadable::Kind);
    }
    let ExtractedText { text, links, cut } = extracted;
    if text.is_empty() && cut {
        return Err(match archive.is_locked || is_encrypted(&mut archive) {
            true => Unreadable::Locked,
            false => Unreadable::Broken("none of its text can be unpacked".to_owned()),
        });
    }
    found.truncated = cut || text.is_cut();
    found.text = text.into_string();
    (found.links, found.more_links) = (links.kept, links.more);
    Ok(found)
}

fn describe(archive: &mut Archive<'_>, name: &str, family: PackageFormat, found: &mut Extract) {
    if let Some(file) = archive.part(name) {
        about::read(file, family, found);
    }
}

/// The parts of a text document and of slides, in the order in which they are read.
fn office_order(names: &[String]) -> Vec<String> {
    const PLACES: [&str; 6] = [
        "word/document",
        "word/footnotes",
        "word/endnotes",
        "word/comments.",
        "ppt/slides/slide",
        "ppt/notesSlides/notesSlide",
    ];
    let of = |place: &'static str| {
        names.iter().filter(move |it| it.starts_with(place) && it.ends_with(".xml"))
    };
    PLACES.into_iter().flat_map(of).cloned().collect()
}

/// Takes the text of parts in. False if there are none.
fn texts(
    archive: &mut Archive<'_>,
    names: &[String],
    inside: Inside,
    extracted: &mut ExtractedText,
) -> bool {
    for name in names {
        let whole = archive.part(name).is_some_and(|file| text(file, inside, extracted));
        extracted.line();
        extracted.cut |= !whole || archive.is_spent();
        if extracted.is_full() {
            break;
        }
    }
    !names.is_empty()
}

/// Takes the text of a part in. False if it is damaged.
fn text(file: impl BufRead, inside: Inside, extracted: &mut ExtractedText) -> bool {
    let (mut open, mut skipped) = (0_usize, 0_usize);
    walk(file, |piece| {
        match piece {
            XmlEvent::Start(start) => {
                let local = start.local_name();
                let name = local.as_ref();
                open += usize::from(inside.contains(&name));
                skipped += usize::from(is_skipped(name));
                if name == "a" && skipped == 0 {
                    attribute(start, "href").iter().for_each(|href| extracted.links.add(href));
                }
            }
            XmlEvent::End(name) => {
                open = open.saturating_sub(usize::from(inside.contains(&name)));
                skipped = skipped.saturating_sub(usize::from(is_skipped(name)));
                match name {
                    _ if is_line(name) => extracted.line(),
                    _ if is_space(name) => extracted.space(),
                    _ => {}
                }
            }
            XmlEvent::Text(text) if open > 0 && skipped == 0 => extracted.say(text),
            XmlEvent::Text(_) => {}
        }
        if extracted.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// What is between these is not for people, or is there a second time.
fn is_skipped(name: &str) -> bool {
    matches!(
        name,
        "script" | "style" | "binary-data" | "tracked-changes" | "Fallback" | "moveFrom" | "del"
    )
}

/// Paragraphs, headings, rows, lines.
fn is_line(name: &str) -> bool {
    matches!(
        name,
        "p" | "h"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "br"
            | "cr"
            | "tr"
            | "li"
            | "div"
            | "dt"
            | "dd"
            | "blockquote"
            | "pre"
            | "section"
            | "line-break"
            | "table-row"
    )
}

/// What stands between words.
fn is_space(name: &str) -> bool {
    matches!(name, "tab" | "s" | "td" | "th" | "tc" | "table-cell")
}

/// Takes the links in that Office keeps beside its parts.
fn references(archive: &mut Archive<'_>, extracted: &mut ExtractedText) {
    let is_of_text = |name: &&String| {
        let places = ["word/_rels/", "ppt/slides/_rels/", "xl/worksheets/_rels/"];
        name.ends_with(".rels") && places.iter().any(|place| name.starts_with(place))
    };
    let names: Vec<String> = archive.names.iter().filter(is_of_text).cloned().collect();
    for name in &names {
        let Some(file) = archive.part(name) else { continue };
        walk(file, |piece| {
            if let XmlEvent::Start(start) = piece
                && attribute(start, "TargetMode").as_deref() == Some("External")
                && attribute(start, "Type").is_some_and(|it| it.ends_with("/hyperlink"))
            {
                attribute(start, "Target").iter().for_each(|target| extracted.links.add(target));
            }
            ControlFlow::Continue(())
        });
    }
}

/// Whether an OpenDocument file or a book says that its parts are encrypted.
fn is_encrypted(archive: &mut Archive<'_>) -> bool {
    let mut found = false;
    for name in ["META-INF/manifest.xml", "META-INF/encryption.xml"] {
        let Some(file) = archive.part(name) else { continue };
        walk(file, |piece| match piece {
            XmlEvent::Start(start)
                if matches!(start.local_name().as_ref(), "encryption-data" | "EncryptedData") =>
            {
                found = true;
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
    }
    found
}
