//! PDF: the text of its pages, what it says of itself, and the links on its pages.
//!
//! Relies on pdf-extract and lopdf, whose panics are caught by page: what was read before is
//! better than nothing. Invariant: text is collected within its limit, and reading ends
//! when that is reached.

use super::{Extract, ExtractedLinks, Unreadable, caught, say};
use crate::facts::TEXT_BYTES_MAX;
use crate::feed::datetime;
use crate::text::CollapsedText;
use pdf_extract::content::{Content, Operation};
use pdf_extract::encryption::DecryptionError;
use pdf_extract::{
    ConvertToFmt, Dictionary, Document, Error, Object, PlainTextOutput, decode_text_string,
    output_doc,
};
use std::fmt::Write;

/// Pages that are looked at for links.
const PAGES_MAX: usize = 10_000;
/// Annotations of a page that are looked at for links.
const ANNOTATIONS_MAX: usize = 10_000;
/// References that lead to each other before there is an object.
const REFERENCES_MAX: usize = 8;

pub(super) fn read(bytes: &[u8]) -> Result<Extract, Unreadable> {
    let mut document = Document::load_mem(bytes).map_err(unreadable)?;
    if document.is_encrypted() {
        // Many are locked against changes only: the password for reading is empty.
        document.decrypt("").map_err(unreadable)?;
    }
    // What cannot be rewritten is read as it is.
    let _ = caught(|| spell_out(&mut document));
    let mut sink = TextSink { text: CollapsedText::new(TEXT_BYTES_MAX) };
    let read = caught(|| output_doc(&document, &mut PlainTextOutput::new(&mut sink)));
    let trouble = match read {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Unreadable::broken(error)),
        Err(panicked) => Some(panicked),
    };
    let is_whole = trouble.is_none();
    if let Some(trouble) = trouble.filter(|_| sink.text.is_empty()) {
        return Err(trouble);
    }
    let mut found = Extract {
        truncated: sink.text.is_cut() || !is_whole,
        text: sink.text.into_string(),
        ..Extract::default()
    };
    // It has said its text; what it does not say of itself is no trouble.
    let _ = caught(|| about(&document, &mut found));
    let _ = caught(|| links(&document, &mut found));
    Ok(found)
}

fn unreadable(error: Error) -> Unreadable {
    match error {
        Error::InvalidPassword | Error::Decryption(DecryptionError::IncorrectPassword) => {
            Unreadable::Locked
        }
        error => Unreadable::broken(error),
    }
}

/// Writes the two operators that show a text on the next line as the plain ones that they
/// stand for: the library passes over them, and over their text.
fn spell_out(document: &mut Document) {
    let pages: Vec<_> = document.page_iter().take(PAGES_MAX).collect();
    for page in pages {
        let Ok(bytes) = document.get_page_content(page) else { continue };
        if memchr::memchr2(b'\'', b'"', &bytes).is_none() {
            continue;
        }
        let Ok(content) = Content::decode(&bytes) else { continue };
        let is_short = |it: &Operation| matches!(it.operator.as_str(), "'" | "\"");
        if !content.operations.iter().any(is_short) {
            continue;
        }
        let operations: Vec<Operation> =
            content.operations.into_iter().flat_map(spelled_out).collect();
        if let Ok(bytes) = (Content { operations }).encode() {
            // It is as it was if this fails.
            let _ = document.change_page_content(page, bytes);
        }
    }
}

fn spelled_out(mut operation: Operation) -> Vec<Operation> {
    let text = |operands| Operation::new("Tj", operands);
    let line = Operation::new("T*", Vec::new());
    match (operation.operator.as_str(), operation.operands.len()) {
        ("'", _) => vec![line, text(operation.operands)],
        ("\"", 3) => {
            let shown = operation.operands.split_off(2);
            let letters = Operation::new("Tc", operation.operands.split_off(1));
            vec![Operation::new("Tw", operation.operands), letters, line, text(shown)]
        }
        _ => vec![operation],
    }
}

/// Where the library writes text to; it stops when there is no more room.
struct TextSink {
    text: CollapsedText,
}

impl Write for TextSink {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        say(&mut self.text, text);
        if self.text.is_cut() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

impl<'a> ConvertToFmt for &'a mut TextSink {
    type Writer = &'a mut TextSink;

    fn convert(self) -> &'a mut TextSink {
        self
    }
}

fn about(document: &Document, found: &mut Extract) {
    let text = |from: &Dictionary, key: &[u8]| {
        let value = resolved(document, from.get(key).ok()?)?;
        decode_text_string(value).ok()
    };
    let language = document.catalog().ok().and_then(|catalog| text(catalog, b"Lang"));
    found.language = language.map(|it| it.trim_start_matches('\u{feff}').to_owned());
    let info = document.trailer.get(b"Info").ok().and_then(|it| resolved(document, it));
    let Some(info) = info.and_then(|it| it.as_dict().ok()) else { return };
    let short = |key: &[u8]| text(info, key).unwrap_or_default();
    found.title = short(b"Title");
    found.description = short(b"Subject");
    found.authors = vec![short(b"Author")];
    found.created_ms = date_ms(&short(b"CreationDate"));
    found.modified_ms = date_ms(&short(b"ModDate"));
}

/// What an object is, behind references to it.
fn resolved<'a>(document: &'a Document, mut object: &'a Object) -> Option<&'a Object> {
    for _ in 0..REFERENCES_MAX {
        match object {
            Object::Reference(id) => object = document.get_object(*id).ok()?,
            found => return Some(found),
        }
    }
    None
}

fn links(document: &Document, found: &mut Extract) {
    let mut links = ExtractedLinks::default();
    for page in document.page_iter().take(PAGES_MAX) {
        let annotations = document.get_dictionary(page).ok();
        let annotations = annotations.and_then(|page| page.get(b"Annots").ok());
        let annotations = annotations.and_then(|it| resolved(document, it)?.as_array().ok());
        for annotation in annotations.into_iter().flatten().take(ANNOTATIONS_MAX) {
            if let Some(uri) = uri(document, annotation) {
                links.add(&uri);
            }
        }
        if links.more {
            break;
        }
    }
    (found.links, found.more_links) = (links.kept, links.more);
}

/// Where an annotation leads on the web.
fn uri(document: &Document, annotation: &Object) -> Option<String> {
    let annotation = resolved(document, annotation)?.as_dict().ok()?;
    let action = resolved(document, annotation.get(b"A").ok()?)?.as_dict().ok()?;
    let bytes = resolved(document, action.get(b"URI").ok()?)?.as_str().ok()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// `D:20240501102030+02'00'`, of which everything behind the year may be left out.
fn date_ms(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches("D:");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, zone) = text.split_at(digits);
    let mut iso = number.get(..4)?.to_owned();
    for (from, before) in [(4, "-"), (6, "-"), (8, "T"), (10, ":"), (12, ":")] {
        let Some(two) = number.get(from..from + 2) else { break };
        iso.push_str(before);
        iso.push_str(two);
    }
    // An hour alone is no time of day in the other form.
    if iso.len() == "2024-05-01T10".len() {
        iso.push_str(":00");
    }
    if iso.contains('T') {
        let zone = zone.replace('\'', ":");
        let zone = zone.trim_end_matches(':');
        iso.push_str(if zone.is_empty() { "Z" } else { zone });
    }
    datetime::parse(&iso)
}

#[cfg(test)]
mod tests {
    use super::date_ms;

    #[test]
    fn dates_are_read_as_far_as_they_go() {
        let of = crate::feed::datetime::parse;
        for (written, meant) in [
            ("D:20240501102030+02'00'", "2024-05-01T10:20:30+02:00"),
            ("D:20240501102030Z", "2024-05-01T10:20:30Z"),
            ("20240501102030", "2024-05-01T10:20:30Z"),
            ("D:2024050110", "2024-05-01T10:00Z"),
            ("D:20240501", "2024-05-01"),
            ("D:2024", "2024"),
        ] {
            assert!(of(meant).is_some());
            assert_eq!(date_ms(written), of(meant), "{written}");
        }
        for none in ["", "D:", "yesterday", "D:20241301", "D:99"] {
            assert_eq!(date_ms(none), None, "{none}");
        }
    }
}
