//! Between the tokeniser and what is read from it: html5gum, told to a [`Sink`] as tags and text.
//!
//! html5gum follows the HTML standard's tokeniser and says where it is in the document;
//! we note the places where text, names and values begin and end and read them there, so
//! nothing is copied. What takes a tree to know, which content is raw text and where
//! CDATA sections may stand, `namespaces` answers. Relies on the places html5gum reports
//! being bytes of `document`. Invariant: holds the attributes of one tag, at most
//! [`ATTRIBUTES_MAX`], whatever the document is like; nothing recurses.

use std::ops::Range;

use html5gum::{Emitter, Error, State, Tokenizer};

use super::attributes::{ATTRIBUTES_MAX, Attribute, Attributes};
use super::elements::{Tag, classify};
use super::namespaces::Namespaces;
use super::reader::Bytes;

/// What is told of a document, in its order.
pub(crate) trait Sink<'d> {
    /// What [`Sink::start_tag`] is told of.
    const TAGS: Tags = Tags::None;

    /// Takes a start tag, before [`Sink::start`] takes it, if it does.
    fn start_tag(&mut self, _tag: &StartTag<'_, 'd>) {}

    /// Takes a start tag, `is_html` unless it is one of a drawing or formula.
    fn start(&mut self, tag: Tag, is_html: bool, attributes: Attributes<'_, 'd>);

    /// Takes an end tag.
    fn end(&mut self, tag: Tag);

    /// Takes text as it stands in the document; without `has_reference` it is decoded.
    fn text(&mut self, _piece: &str, _has_reference: bool) {}

    /// Takes text that is shown, decoded.
    fn shown(&mut self, _piece: &str) {}

    /// Takes the content of an element whose content is raw text.
    fn raw_text(&mut self, _tag: Tag, _content: &str) {}
}

/// What of a document is told to [`Sink::start_tag`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tags {
    /// Nothing.
    None,
    /// Tags and attributes that can name what a page needs to be shown, and all in drawings.
    Requisites,
    /// All tags with all attributes.
    Every,
}

/// A start tag as it stands in the document.
pub(crate) struct StartTag<'l, 'd> {
    /// Its name, in any case of letters.
    pub(crate) name: &'d str,
    /// Whether it belongs to HTML, not to a drawing or formula.
    pub(crate) is_html: bool,
    pub(crate) attributes: Attributes<'l, 'd>,
    /// Where it stands, brackets included.
    pub(crate) range: Range<usize>,
}

/// Tells `sink` of everything in `document`; false when it gave up before the end.
pub(crate) fn scan<'d>(document: &'d str, sink: &mut impl Sink<'d>) -> bool {
    let reporter = Reporter {
        document,
        sink,
        at: 0,
        text: 0,
        has_piece: false,
        in_pieces: false,
        inside: Inside::Text,
        opened: 0,
        is_end_tag: false,
        self_closing: false,
        name_end: 0,
        tag: None,
        wanted: false,
        in_wanted: false,
        spans: Vec::new(),
        attributes: Vec::new(),
        raw: None,
        namespaces: Namespaces::new(),
    };
    Tokenizer::new_with_emitter(Bytes::new(document), reporter).next().is_none()
}

/// Said instead of a token when the reading is to stop; nothing else is one.
struct TooDeep;

/// What the tokeniser is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Text,
    /// Behind a `<` that may begin a tag, comment or doctype, or be text after all.
    Markup,
    Cdata,
}

/// Where an attribute's name and value stand in the document.
#[derive(Clone, Copy)]
struct Span {
    name: (usize, usize),
    value: (usize, usize),
}

// tidy: wide the state of one scan, which the callbacks of the tokeniser share
struct Reporter<'d, 's, S> {
    document: &'d str,
    sink: &'s mut S,
    /// How far the tokeniser has read.
    at: usize,
    /// Where the text begins that `sink` has not been told of.
    text: usize,
    /// Whether the tokeniser gave any of that text, and whether in several pieces.
    has_piece: bool,
    in_pieces: bool,
    inside: Inside,
    /// Where the last `<` stands.
    opened: usize,
    is_end_tag: bool,
    self_closing: bool,
    name_end: usize,
    /// What the tag is, once that was asked.
    tag: Option<Tag>,
    /// Whether the tag's attributes count, and whether the one being read does.
    wanted: bool,
    in_wanted: bool,
    spans: Vec<Span>,
    /// The same as texts; kept for its room.
    attributes: Vec<Attribute<'d>>,
    /// The element being read whose content is raw text, and its name.
    raw: Option<(Tag, &'d [u8])>,
    namespaces: Namespaces,
}

impl<'d, S: Sink<'d>> Reporter<'d, '_, S> {
    fn slice(&self, from: usize, to: usize) -> &'d str {
        self.document.get(from..to).unwrap_or("")
    }

    /// The name of the tag being read.
    fn name(&self) -> &'d [u8] {
        let start = self.opened + if self.is_end_tag { 2 } else { 1 };
        self.document.as_bytes().get(start..self.name_end).unwrap_or_default()
    }

    /// Whether an attribute begins here that can name an image on any tag.
    #[inline]
    fn may_need_here(&self, start: usize) -> bool {
        let rest = self.document.as_bytes().get(start..).unwrap_or_default();
        let begins =
            |name: &[u8]| rest.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name));
        match rest.first() {
            Some(b's' | b'S') => begins(b"style"),
            Some(b'b' | b'B') => begins(b"background"),
            _ => false,
        }
    }

    /// Tells of the text up to `end`.
    fn flush(&mut self, end: usize) {
        let piece = self.slice(self.text, end);
        match self.raw.take() {
            Some((tag, _)) => self.sink.raw_text(tag, piece),
            // A reference is always a piece of its own.
            None => self.sink.text(piece, self.in_pieces || piece.starts_with('&')),
        }
        self.has_piece = false;
        self.in_pieces = false;
    }

    /// Tells of the start tag that has been read; gives how its content is to be read.
    fn start_tag(&mut self) -> Option<State> {
        let name = self.name();
        let tag = self.tag.unwrap_or_else(|| classify(name));
        self.attributes.clear();
        let slice = |(from, to)| self.document.get(from..to).unwrap_or("");
        self.attributes.extend(self.spans.iter().map(|at| (slice(at.name), slice(at.value))));
        let attributes = Attributes(&self.attributes);
        let was_html = self.namespaces.are_html();
        let is_raw = self.namespaces.start_tag(tag, name, attributes, self.self_closing);
        let is_told = match S::TAGS {
            Tags::None => false,
            Tags::Requisites => {
                let is_html = was_html && self.namespaces.are_html();
                is_raw || !is_html || !attributes.0.is_empty()
            }
            Tags::Every => true,
        };
        if is_told {
            self.sink.start_tag(&StartTag {
                name: self.slice(self.opened + 1, self.name_end),
                is_html: self.namespaces.are_html(),
                attributes,
                range: self.opened..self.at,
            });
        }
        if tag != Tag::Inline && !(tag == Tag::Svg && self.self_closing) {
            self.sink.start(tag, self.namespaces.are_html(), attributes);
        }
        self.raw = is_raw.then_some((tag, name));
        is_raw.then_some(match tag {
            Tag::Title | Tag::Field => State::RcData,
            Tag::Script => State::ScriptData,
            Tag::Plaintext => State::PlainText,
            _ => State::RawText,
        })
    }
}

impl<'d, S: Sink<'d>> Emitter for Reporter<'d, '_, S> {
    type Token = TooDeep;

    #[inline]
    fn move_position(&mut self, offset: isize) {
        self.at = self.at.wrapping_add_signed(offset);
    }

    #[inline]
    fn pop_token(&mut self) -> Option<TooDeep> {
        self.namespaces.are_too_deep().then_some(TooDeep)
    }

    /// Ordinary text begins or goes on here.
    #[inline]
    fn init_string(&mut self) {
        match self.inside {
            Inside::Text => return,
            // A comment, a doctype or `</>`: nothing to tell of.
            Inside::Markup => self.flush(self.opened),
            Inside::Cdata => {
                let end = self.at.saturating_sub("]]>".len());
                self.sink.shown(self.slice(self.text, end));
            }
        }
        self.inside = Inside::Text;
        self.text = self.at;
    }

    #[inline]
    fn emit_string(&mut self, _: &[u8]) {
        self.in_pieces = self.has_piece;
        self.has_piece = true;
        if self.inside == Inside::Markup {
            self.inside = Inside::Text;
        }
    }

    #[inline]
    fn start_open_tag(&mut self) {
        self.opened = self.at.saturating_sub(1);
        self.inside = Inside::Markup;
    }

    #[inline]
    fn init_start_tag(&mut self) {
        self.is_end_tag = false;
        self.self_closing = false;
        self.tag = None;
        self.wanted = false;
        self.in_wanted = false;
        self.spans.clear();
    }

    #[inline]
    fn init_end_tag(&mut self) {
        self.is_end_tag = true;
        self.tag = None;
        self.wanted = false;
        self.in_wanted = false;
    }

    #[inline]
    fn push_tag_name(&mut self, _: &[u8]) {
        self.name_end = self.at;
    }

    #[inline]
    fn init_attribute(&mut self) {
        if self.is_end_tag {
            return;
        }
        if self.tag.is_none() {
            let tag = classify(self.name());
            self.tag = Some(tag);
            self.wanted = S::TAGS == Tags::Every
                || tag.has_attributes()
                || self.namespaces.look_at_attributes()
                || (S::TAGS == Tags::Requisites && tag.may_need(self.name()));
        }
        // The first byte of the name has been read.
        let start = self.at.saturating_sub(1);
        self.in_wanted = self.wanted || (S::TAGS == Tags::Requisites && self.may_need_here(start));
        if !self.in_wanted {
            return;
        }
        if self.spans.len() == ATTRIBUTES_MAX {
            self.wanted = false;
            self.in_wanted = false;
            return;
        }
        self.spans.push(Span { name: (start, self.at), value: (0, 0) });
    }

    #[inline]
    fn push_attribute_name(&mut self, _: &[u8]) {
        if self.in_wanted
            && let Some(span) = self.spans.last_mut()
        {
            span.name.1 = self.at;
        }
    }

    #[inline]
    fn init_attribute_value(&mut self) {
        if self.in_wanted
            && let Some(span) = self.spans.last_mut()
        {
            span.value = (self.at, self.at);
        }
    }

    #[inline]
    fn push_attribute_value(&mut self, _: &[u8]) {
        if self.in_wanted
            && let Some(span) = self.spans.last_mut()
        {
            span.value.1 = self.at;
        }
    }

    #[inline]
    fn set_self_closing(&mut self) {
        self.self_closing = true;
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.flush(self.opened);
        self.text = self.at;
        self.inside = Inside::Text;
        if self.is_end_tag {
            let name = self.name();
            self.namespaces.end_tag(name);
            self.sink.end(classify(name));
            return None;
        }
        self.start_tag()
    }

    /// Whether the end tag being read is that of the raw text it stands in.
    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.raw.is_some_and(|(_, name)| self.name().eq_ignore_ascii_case(name))
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        let allowed = self.namespaces.allow_cdata();
        if allowed {
            self.flush(self.opened);
            self.text = self.at;
            self.inside = Inside::Cdata;
        }
        allowed
    }

    fn emit_eof(&mut self) {
        match self.inside {
            Inside::Text => self.flush(self.document.len()),
            // Markup that the end cuts off is nothing.
            Inside::Markup => self.flush(self.opened),
            Inside::Cdata => self.sink.shown(self.slice(self.text, self.document.len())),
        }
    }

    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    // What comments, doctypes and errors say is not used.
    fn emit_error(&mut self, _: Error) {}
    fn set_last_start_tag(&mut self, _: Option<&[u8]>) {}
    fn init_comment(&mut self) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn emit_current_comment(&mut self) {}
    fn init_doctype(&mut self) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn set_force_quirks(&mut self) {}
    fn emit_current_doctype(&mut self) {}
}
