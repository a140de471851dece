//! The state of the pass: which text belongs to what.
//!
//! lol_html reports start tags, comments, doctypes and scripts with their places.
//! What lies between two of them can only be text and end tags, and there the
//! standard's rule is short: `</` and a letter begin an end tag, all else is text.
//! Relies on those places being positions in `document`. Invariant: `cursor` only
//! grows, every byte is looked at once, and no state grows with nesting.

use std::ops::Range;

use lol_html::html_content::Element;

use super::Input;
use super::attributes::{self, Attribute, Attributes};
use super::elements::{self, Said, Tag, classify, name_at};
use super::links::{Found, Place};
use crate::facts::{Facts, HEADINGS_MAX, Heading, SHORT_TEXT_BYTES_MAX, TEXT_BYTES_MAX};
use crate::text::{Collapsed, collapse};

const HTML_NAMESPACE: &str = "http://www.w3.org/1999/xhtml";

/// Tokens that wait to be dealt with together.
///
/// The parser and this pass are each about as large as the processor's instruction
/// cache; taking turns at every tag costs a twentieth of the time (measured by
/// bench/parse), at every few hundred nothing.
const WAITING_MAX: usize = 512;

/// A token of the parser that waits.
struct Token<'d> {
    place: Range<usize>,
    tag: Tag,
    /// The name of an element whose content is raw text; else empty.
    raw_name: &'d [u8],
    /// The start tag of an HTML element, not of a drawing or formula.
    is_html: bool,
    /// Which of the waiting attributes are its own.
    attributes: Range<usize>,
}

/// One pass over one document.
pub(super) struct Pass<'d> {
    document: &'d str,
    waiting: Vec<Token<'d>>,
    waiting_attributes: Vec<Attribute<'d>>,
    /// Everything before this byte has been dealt with.
    cursor: usize,
    raw: Option<RawText<'d>>,
    found: Found<'d>,
    text: Collapsed,
    title: Option<String>,
    description: String,
    language: Option<String>,
    headings: Vec<Heading>,
    headings_cut: bool,
    heading: Option<(u8, Collapsed)>,
    anchor: Option<OpenAnchor<'d>>,
    in_body: bool,
    svg_depth: u32,
    template_depth: u32,
}

/// An element just opened whose content is raw text.
struct RawText<'d> {
    name: &'d [u8],
    tag: Tag,
}

/// An `<a>` whose end has not come.
struct OpenAnchor<'d> {
    place: Place,
    words: Collapsed,
    title: &'d str,
    alt: &'d str,
}

impl<'d> Pass<'d> {
    pub(super) fn new(document: &'d str, input: &Input<'_>) -> Pass<'d> {
        Pass {
            document,
            waiting: Vec::with_capacity(WAITING_MAX),
            waiting_attributes: Vec::new(),
            cursor: 0,
            raw: None,
            found: Found::new(input),
            // About a third of a page is text.
            text: Collapsed::with_room(TEXT_BYTES_MAX, document.len() / 3),
            title: None,
            description: String::new(),
            language: None,
            headings: Vec::new(),
            headings_cut: false,
            heading: None,
            anchor: None,
            in_body: false,
            svg_depth: 0,
            template_depth: 0,
        }
    }

    /// Takes a token that is no text and says nothing: a comment, a doctype, a script.
    pub(super) fn nothing(&mut self, place: Range<usize>) {
        let attributes = 0..0;
        self.wait(Token { place, tag: Tag::Inline, raw_name: b"", is_html: true, attributes });
    }

    /// Takes a start tag.
    pub(super) fn start_tag(&mut self, element: &Element<'_, '_>) {
        let place = element.source_location().bytes();
        let (tag, name) = elements::tag_of(element, self.document);
        if tag == Tag::Inline || (tag == Tag::Svg && element.is_self_closing()) {
            return self.nothing(place);
        }
        let first = self.waiting_attributes.len();
        if tag.has_attributes() {
            attributes::collect(element, self.document, &mut self.waiting_attributes);
        }
        let attributes = first..self.waiting_attributes.len();
        let is_html = element.namespace_uri() == HTML_NAMESPACE;
        let raw = matches!(
            tag,
            Tag::Title | Tag::Hidden | Tag::Field | Tag::Shown | Tag::Iframe | Tag::Plaintext
        );
        let raw_name = if raw && is_html { name } else { b"" };
        self.wait(Token { place, tag, raw_name, is_html, attributes });
    }

    fn wait(&mut self, token: Token<'d>) {
        self.waiting.push(token);
        if self.waiting.len() >= WAITING_MAX {
            self.deal();
        }
    }

    /// Deals with the tokens that wait.
    fn deal(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut list = std::mem::take(&mut self.waiting_attributes);
        for token in waiting.drain(..) {
            if token.place.start > self.cursor {
                self.between(self.cursor..token.place.start);
            }
            self.cursor = self.cursor.max(token.place.end);
            let attributes = Attributes(list.get(token.attributes.clone()).unwrap_or_default());
            self.start_of(&token, attributes);
            if !token.raw_name.is_empty() {
                self.raw = Some(RawText { name: token.raw_name, tag: token.tag });
            }
        }
        list.clear();
        self.waiting = waiting;
        self.waiting_attributes = list;
    }

    fn start_of(&mut self, token: &Token<'d>, attributes: Attributes<'_, 'd>) {
        let tag = token.tag;
        if tag == Tag::Inline {
            return;
        }
        if self.template_depth > 0 {
            // A template's content is no part of the document.
            self.template_depth += u32::from(tag == Tag::Template);
            return;
        }
        match tag {
            Tag::A => self.open_anchor(attributes),
            Tag::Img => {
                elements::image(attributes, &mut self.found);
                if let Some(anchor) = self.anchor.as_mut().filter(|anchor| anchor.alt.is_empty()) {
                    anchor.alt = attributes.raw("alt").unwrap_or("").trim_ascii();
                }
            }
            Tag::Area => elements::area(attributes, &mut self.found),
            Tag::Base => elements::base(attributes, &mut self.found),
            Tag::Frame | Tag::Iframe => {
                elements::frame(attributes, &mut self.found);
                self.separate();
            }
            Tag::Link => elements::link(attributes, self.in_body, &mut self.found),
            Tag::Meta => self.meta(attributes),
            Tag::Html => {
                if self.language.is_none() {
                    self.language = elements::language(attributes);
                }
            }
            Tag::Body => self.in_body = true,
            Tag::Heading(level) => {
                self.separate();
                self.close_heading();
                self.heading = Some((level, Collapsed::new(SHORT_TEXT_BYTES_MAX)));
            }
            Tag::Block => {
                // HTML blocks end a drawing that was left open, in the standard too.
                if token.is_html {
                    self.svg_depth = 0;
                }
                self.separate();
            }
            Tag::Field | Tag::Shown | Tag::Plaintext => self.separate(),
            Tag::Svg => self.svg_depth += 1,
            // A declarative shadow root is shown in its place; another template is not.
            Tag::Template if attributes.raw("shadowrootmode").is_none() => {
                self.template_depth = 1;
            }
            Tag::Template | Tag::Title | Tag::Hidden | Tag::Inline => {}
        }
    }

    fn meta(&mut self, attributes: Attributes<'_, 'd>) {
        match elements::meta(attributes, &mut self.found) {
            Said::Description(words) if self.description.is_empty() => self.description = words,
            Said::Language(tag) if self.language.is_none() => self.language = Some(tag),
            _ => {}
        }
    }

    /// Takes what lies between two reported tokens.
    fn between(&mut self, gap: Range<usize>) {
        let Some(mut rest) = self.document.get(gap) else { return };
        if let Some(raw) = self.raw.take() {
            let end = match raw.tag {
                Tag::Plaintext => rest.len(),
                _ => end_of_raw(rest.as_bytes(), raw.name),
            };
            self.raw_text(raw.tag, &rest[..end]);
            rest = &rest[end..];
        }
        while !rest.is_empty() {
            let (at, has_reference) = next_markup(rest.as_bytes());
            self.text(&rest[..at], has_reference);
            rest = self.end_tag(&rest[at..]);
        }
    }

    /// Takes the end tag that `rest` begins with; gives what follows it.
    fn end_tag(&mut self, rest: &'d str) -> &'d str {
        let bytes = rest.as_bytes();
        if let Some(section) = rest.strip_prefix("<![CDATA[") {
            // Only inside MathML; lol_html counts it as text.
            let end = section.find("]]>").unwrap_or(section.len());
            self.shown(&section[..end]);
            return section.get(end + 3..).unwrap_or("");
        }
        if !bytes.starts_with(b"</") {
            // A whole start tag or comment would have been reported: this one is cut off
            // by the end of the document, and so names nothing.
            return "";
        }
        let Some(end) = end_of_tag(bytes) else { return "" };
        let name = name_at(&bytes[2..end]);
        self.end_of(classify(name));
        &rest[end..]
    }

    fn end_of(&mut self, tag: Tag) {
        if tag == Tag::Template {
            self.template_depth = self.template_depth.saturating_sub(1);
            return;
        }
        if self.template_depth > 0 {
            return;
        }
        match tag {
            Tag::A => self.close_anchor(),
            Tag::Heading(_) => {
                self.close_heading();
                self.separate();
            }
            Tag::Svg => self.svg_depth = self.svg_depth.saturating_sub(1),
            Tag::Block | Tag::Field | Tag::Shown | Tag::Iframe => self.separate(),
            _ => {}
        }
    }

    fn raw_text(&mut self, tag: Tag, content: &str) {
        match tag {
            Tag::Title if self.svg_depth == 0 && self.template_depth == 0 => {
                self.title.get_or_insert_with(|| {
                    collapse(&htmlize::unescape(content), SHORT_TEXT_BYTES_MAX)
                });
            }
            Tag::Shown | Tag::Plaintext => self.shown(content),
            _ => {}
        }
    }

    fn text(&mut self, piece: &str, has_reference: bool) {
        if has_reference {
            self.shown(&htmlize::unescape(piece));
        } else if !piece.is_empty() {
            self.shown(piece);
        }
    }

    /// Takes text that is shown, decoded.
    fn shown(&mut self, piece: &str) {
        if self.svg_depth > 0 || self.template_depth > 0 {
            return;
        }
        self.text.push(piece);
        if let Some(anchor) = &mut self.anchor {
            anchor.words.push(piece);
        }
        if let Some((_, words)) = &mut self.heading {
            words.push(piece);
        }
    }

    /// Ends a line of text and a word of what is being named.
    fn separate(&mut self) {
        self.text.line();
        if let Some(anchor) = &mut self.anchor {
            anchor.words.space();
        }
        if let Some((_, words)) = &mut self.heading {
            words.space();
        }
    }

    fn open_anchor(&mut self, attributes: Attributes<'_, 'd>) {
        // Anchors do not nest: a new one ends the one before.
        self.close_anchor();
        let place = elements::anchor(attributes, &mut self.found);
        let Some(place) = place.filter(|&place| self.found.wants_words(place)) else { return };
        self.anchor = Some(OpenAnchor {
            place,
            words: Collapsed::new(SHORT_TEXT_BYTES_MAX),
            title: attributes.raw("title").unwrap_or(""),
            alt: "",
        });
    }

    fn close_anchor(&mut self) {
        let Some(anchor) = self.anchor.take() else { return };
        let mut words = anchor.words.into_string();
        for instead in [anchor.title, anchor.alt] {
            if words.is_empty() {
                words = attributes::words(instead, SHORT_TEXT_BYTES_MAX);
            }
        }
        self.found.set_words(anchor.place, words);
    }

    fn close_heading(&mut self) {
        let Some((level, words)) = self.heading.take() else { return };
        if words.is_empty() {
            return;
        }
        if self.headings.len() < HEADINGS_MAX {
            self.headings.push(Heading { level, text: words.into_string() });
        } else {
            self.headings_cut = true;
        }
    }

    /// Takes what is left after the last token, and gives the facts.
    pub(super) fn finish(mut self, input: &Input<'_>) -> Facts {
        self.nothing(self.document.len()..self.document.len());
        self.deal();
        self.close_anchor();
        self.close_heading();
        let mut facts = Facts {
            language: self.language,
            title: self.title.unwrap_or_default(),
            description: self.description,
            headings: self.headings,
            ..Facts::default()
        };
        facts.truncated.text = self.text.is_cut();
        facts.truncated.headings = self.headings_cut;
        facts.text = self.text.into_string();
        self.found.finish(input, &mut facts);
        facts
    }
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
