//! The same pass driven by lol_html, to hold `scan` against.
//!
//! lol_html reports start tags, comments, doctypes and scripts with their places. What
//! lies between two of them can only be text and end tags, and there the standard's
//! rule is short: `</` and a letter begin an end tag, all else is text. Compiled for
//! tests and with the feature `fuzzing`; never part of the program.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use lol_html::html_content::{Comment, Doctype, Element, TextChunk, TextType};
use lol_html::{
    DocumentContentHandlers, ElementContentHandlers, HtmlRewriter, MemorySettings, Selector,
    Settings,
};

use super::attributes::{ATTRIBUTES_MAX, Attribute, Attributes};
use super::elements::{Tag, classify};
use super::pass::Pass;
use super::scan::Sink;
use super::{Input, decoded, facts_of};
use crate::facts::Facts;

/// What lol_html may hold for open elements, attributes and an unfinished tag.
const PARSER_BYTES_MAX: usize = 8 << 20;

const HTML_NAMESPACE: &str = "http://www.w3.org/1999/xhtml";

/// The facts by lol_html, fed `chunk` bytes at a time. `None` where it cannot say:
/// when it ran out of memory, or for one of its known mistakes.
pub(crate) fn extract_by_lol_html(input: &Input<'_>, chunk: usize) -> Option<Facts> {
    let (encoding, document) = decoded(input);
    if is_mistaken_about(&document) {
        return None;
    }
    let pass = Pass::new(document.len(), input);
    let front = RefCell::new(Front {
        document: &document,
        cursor: 0,
        raw: None,
        title_is_raw: false,
        pass,
    });
    let whole = run(handlers(&front), &document, chunk);
    let mut front = front.into_inner();
    front.until(document.len()..document.len());
    whole.then(|| facts_of(front.pass, input, encoding))
}

/// Whether it cannot be known here: `<title x=>` begins no raw text for lol_html, which
/// is its mistake, and the empty `<title>` of a drawing looks like the page's.
fn is_mistaken_about(document: &str) -> bool {
    let lower = document.to_ascii_lowercase();
    let empty_value = lower
        .split('=')
        .skip(1)
        .any(|rest| rest.trim_start_matches(|ch: char| ch.is_ascii_whitespace()).starts_with('>'));
    empty_value || (lower.contains("></title") && lower.contains("<svg"))
}

pub(super) fn selector(text: &str) -> Selector {
    text.parse().expect("this selector is a constant and tested")
}

pub(super) fn settings<'h>() -> Settings<'h, 'static> {
    let memory = MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX);
    Settings::new().with_strict(false).with_memory_settings(memory)
}

/// Feeds the document to the parser; false when it gave up before the end.
pub(super) fn run(settings: Settings<'_, '_>, document: &str, chunk: usize) -> bool {
    let mut parser = HtmlRewriter::new(settings, |_: &[u8]| {});
    for piece in document.as_bytes().chunks(chunk) {
        if parser.write(piece).is_err() {
            return false;
        }
    }
    parser.end().is_ok()
}

/// What stands between lol_html and the pass.
struct Front<'d> {
    document: &'d str,
    /// Everything before this byte has been dealt with.
    cursor: usize,
    /// The element just opened, if its content is raw text.
    raw: Option<(Tag, &'d [u8])>,
    /// Whether the text in a `<title>` is raw; in that of a drawing it is not.
    title_is_raw: bool,
    pass: Pass<'d>,
}

fn handlers<'h>(front: &'h RefCell<Front<'_>>) -> Settings<'h, 'static> {
    let every = ElementContentHandlers::default().element(|element: &mut Element<'_, '_>| {
        front.borrow_mut().start_tag(element);
        Ok(())
    });
    let script = ElementContentHandlers::default().text(|chunk: &mut TextChunk<'_>| {
        // A `script` of another namespace has ordinary text.
        if chunk.text_type() == TextType::ScriptData {
            front.borrow_mut().until(chunk.source_location().bytes());
        }
        Ok(())
    });
    let title = ElementContentHandlers::default().text(|chunk: &mut TextChunk<'_>| {
        front.borrow_mut().title_is_raw |= chunk.text_type() == TextType::RCData;
        Ok(())
    });
    let document = DocumentContentHandlers::default()
        .comments(|comment: &mut Comment<'_>| {
            front.borrow_mut().until(comment.source_location().bytes());
            Ok(())
        })
        .doctype(|doctype: &mut Doctype<'_>| {
            front.borrow_mut().until(doctype.source_location().bytes());
            Ok(())
        });
    settings()
        .append_element_content_handler((Cow::Owned(selector("*")), every))
        .append_element_content_handler((Cow::Owned(selector("script")), script))
        .append_element_content_handler((Cow::Owned(selector("title")), title))
        .append_document_content_handler(document)
}

impl<'d> Front<'d> {
    fn start_tag(&mut self, element: &Element<'_, '_>) {
        self.until(element.source_location().bytes());
        let (tag, name) = tag_of(element, self.document);
        if tag == Tag::Svg && element.is_self_closing() {
            return;
        }
        let mut list = Vec::new();
        collect(element, self.document, &mut list);
        let is_html = element.namespace_uri() == HTML_NAMESPACE;
        self.pass.start(tag, is_html, Attributes(&list));
        if is_html && tag.is_raw() && tag != Tag::Script {
            self.raw = Some((tag, name));
            self.title_is_raw = false;
        }
    }

    /// Takes what lies before a token, and leaves the token behind.
    fn until(&mut self, token: Range<usize>) {
        if token.start > self.cursor {
            self.between(self.cursor..token.start);
        }
        self.cursor = self.cursor.max(token.end);
    }

    fn between(&mut self, gap: Range<usize>) {
        let Some(mut rest) = self.document.get(gap) else { return };
        let title_is_raw = self.title_is_raw;
        let raw = self.raw.take().filter(|(tag, name)| {
            *tag != Tag::Title || title_is_raw || end_of_raw(rest.as_bytes(), name) == 0
        });
        if let Some((tag, name)) = raw {
            let end = match tag {
                Tag::Plaintext => rest.len(),
                _ => end_of_raw(rest.as_bytes(), name),
            };
            self.pass.raw_text(tag, &rest[..end]);
            rest = &rest[end..];
        }
        while !rest.is_empty() {
            let (at, has_reference) = next_markup(rest.as_bytes());
            self.pass.text(&rest[..at], has_reference);
            rest = self.end_tag(&rest[at..]);
        }
    }

    /// Takes the end tag that `rest` begins with; gives what follows it.
    fn end_tag(&mut self, rest: &'d str) -> &'d str {
        if let Some(section) = rest.strip_prefix("<![CDATA[") {
            // Only in a drawing or formula; lol_html counts it as text.
            let end = section.find("]]>").unwrap_or(section.len());
            self.pass.shown(&section[..end]);
            return section.get(end + 3..).unwrap_or("");
        }
        let Some(tag) = rest.as_bytes().strip_prefix(b"</") else {
            // A whole start tag or comment would have been reported: this one is cut off
            // by the end of the document, and so names nothing.
            return "";
        };
        let name = name_at(tag);
        let Some(end) = end_of_tag(rest.as_bytes()) else { return "" };
        self.pass.end(classify(name));
        &rest[end..]
    }
}

/// The tag of an element of `document`, and its name there.
fn tag_of<'d>(element: &Element<'_, '_>, document: &'d str) -> (Tag, &'d [u8]) {
    let start = element.source_location().bytes().start;
    let name = name_at(document.as_bytes().get(start + 1..).unwrap_or_default());
    (classify(name), name)
}

/// Appends the attributes of an element of `document` to `list`.
fn collect<'d>(element: &Element<'_, '_>, document: &'d str, list: &mut Vec<Attribute<'d>>) {
    let slice = |at: Range<usize>| document.get(at).unwrap_or("");
    for attribute in element.attributes().iter().take(ATTRIBUTES_MAX) {
        let Some(name) = attribute.name_source_location() else { continue };
        let value = attribute.value_source_location();
        list.push((slice(name.bytes()), value.map_or("", |value| slice(value.bytes()))));
    }
}

/// The name in the start or end tag that begins with `tag`'s first byte after `<` or `</`.
fn name_at(tag: &[u8]) -> &[u8] {
    let ends = |byte: &u8| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'/' | b'>');
    &tag[..tag.iter().position(ends).unwrap_or(tag.len())]
}

/// Where the next `<` stands that begins markup, or the end; and whether a `&` comes before.
fn next_markup(bytes: &[u8]) -> (usize, bool) {
    let mut has_reference = false;
    let mut from = 0;
    while let Some(offset) = memchr::memchr2(b'<', b'&', &bytes[from..]) {
        let at = from + offset;
        let markup = match (bytes[at], bytes.get(at + 1)) {
            (b'&', _) => {
                has_reference = true;
                false
            }
            (_, Some(b'/')) => bytes.get(at + 2).is_some(),
            (_, Some(b'!' | b'?')) => true,
            (_, Some(letter)) => letter.is_ascii_alphabetic(),
            (_, None) => false,
        };
        if markup {
            return (at, has_reference);
        }
        from = at + 1;
    }
    (bytes.len(), has_reference)
}

/// Where the raw text of an element called `name` ends: at its end tag, or the end.
fn end_of_raw(bytes: &[u8], name: &[u8]) -> usize {
    let mut from = 0;
    while let Some(offset) = memchr::memchr(b'<', &bytes[from..]) {
        let at = from + offset;
        if let Some(after) = bytes[at..].strip_prefix(b"</") {
            let closed = after.len() > name.len() && name_at(after).eq_ignore_ascii_case(name);
            if closed {
                return at;
            }
        }
        from = at + 1;
    }
    bytes.len()
}

/// Where the end tag ends that `bytes` begin with, behind its `>`. It may have
/// attributes, though they mean nothing, and a `>` in a quoted value does not end it.
fn end_of_tag(bytes: &[u8]) -> Option<usize> {
    let space = |byte: u8| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ');
    let past = |from: usize, passed: &dyn Fn(u8) -> bool| {
        let stop = bytes.get(from..)?.iter().position(|&byte| !passed(byte))?;
        Some(from + stop)
    };
    let mut at = 2 + name_at(bytes.get(2..)?).len();
    loop {
        at = past(at, &|byte| space(byte) || byte == b'/')?;
        if bytes[at] == b'>' {
            return Some(at + 1);
        }
        // The first character of an attribute's name may be anything else, even `=`.
        at = past(at + 1, &|byte| !space(byte) && !matches!(byte, b'/' | b'>' | b'='))?;
        at = past(at, &space)?;
        if bytes[at] != b'=' {
            continue;
        }
        at = past(at + 1, &space)?;
        match bytes[at] {
            quote @ (b'"' | b'\'') => at += 2 + memchr::memchr(quote, bytes.get(at + 1..)?)?,
            b'>' => {}
            _ => at = past(at, &|byte| !space(byte) && byte != b'>')?,
        }
    }
}
