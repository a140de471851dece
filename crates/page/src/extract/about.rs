//! What a document of XML parts says of itself: title, authors, dates, language.
//!
//! Office has it in `docProps/core.xml`, OpenDocument in `meta.xml`, a book in its package
//! file. They use the same few names, and mean different things by `date` and `creator`.
//! Invariant: each value is within the limit of a short text.

use super::Extract;
use super::xml::{XmlEvent, attribute, walk};
use crate::facts::SHORT_TEXT_BYTES_MAX;
use crate::feed::datetime;
use crate::text::CollapsedText;
use std::io::BufRead;
use std::ops::ControlFlow;

/// Values of a file that are looked at.
const VALUES_MAX: usize = 1_000;

/// Whose names are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageFormat {
    Office,
    OpenDocument,
    Book,
}

/// Takes what a file says into what is known.
pub(super) fn read(file: impl BufRead, family: PackageFormat, found: &mut Extract) {
    let mut open: Option<(String, CollapsedText)> = None;
    let mut last_creator = None;
    let mut values = 0;
    walk(file, |piece| {
        match piece {
            XmlEvent::Start(start) => {
                let local = start.local_name();
                let name = match (local.as_ref(), family) {
                    // A book says in an attribute what it says.
                    ("meta", PackageFormat::Book) => {
                        attribute(start, "property").unwrap_or_default()
                    }
                    (name, _) => name.to_owned(),
                };
                open = Some((name, CollapsedText::new(SHORT_TEXT_BYTES_MAX)));
            }
            XmlEvent::Text(text) => {
                if let Some((_, value)) = &mut open {
                    value.push(text);
                }
            }
            XmlEvent::End(_) => {
                let Some((name, value)) = open.take().filter(|(_, value)| !value.is_empty()) else {
                    return ControlFlow::Continue(());
                };
                values += 1;
                match name.as_str() {
                    "creator" if family == PackageFormat::OpenDocument => {
                        last_creator = Some(value.into_string());
                    }
                    name => take(found, name, family, value.into_string()),
                }
            }
        }
        match values < VALUES_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    // Whoever changed it last counts where nobody says who began it.
    if found.authors.is_empty() {
        found.authors.extend(last_creator);
    }
}

fn take(found: &mut Extract, name: &str, family: PackageFormat, value: String) {
    let is_book = family == PackageFormat::Book;
    match name {
        "title" if found.title.is_empty() => found.title = value,
        "description" if found.description.is_empty() => found.description = value,
        // Some call their keywords so, but a description counts more.
        "subject" if found.description.is_empty() && !is_book => found.description = value,
        "creator" | "initial-creator" => found.authors.push(value),
        "language" if found.language.is_none() => found.language = Some(value),
        "created" | "creation-date" => found.created_ms = datetime::parse(&value),
        "modified" | "dcterms:modified" => found.modified_ms = datetime::parse(&value),
        "date" if is_book => found.created_ms = found.created_ms.or(datetime::parse(&value)),
        "date" => found.modified_ms = datetime::parse(&value),
        _ => {}
    }
}
