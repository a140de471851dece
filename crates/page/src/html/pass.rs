//! The state of the pass: which text belongs to what.
//!
//! Fed by `scan` with start tags, end tags and text in the order of the document.
//! Invariant: no state grows with nesting, and all of it is bounded by the limits of
//! the facts.

use super::Input;
use super::attributes::{self, Attributes};
use super::elements::{self, PageMeta, Tag};
use super::links::{FoundLinks, LinkId};
use super::scan::Sink;
use crate::facts::{Facts, HEADINGS_MAX, Heading, SHORT_TEXT_BYTES_MAX, TEXT_BYTES_MAX};
use crate::text::{CollapsedText, collapse};
use crate::url::Resolver;

/// One pass over one document.
pub(super) struct Pass<'d> {
    found: FoundLinks<'d>,
    text: CollapsedText,
    title: Option<String>,
    description: String,
    language: Option<String>,
    headings: Vec<Heading>,
    headings_cut: bool,
    heading: Option<(u8, CollapsedText)>,
    anchor: Option<OpenAnchor<'d>>,
    in_body: bool,
    svg_depth: u32,
    template_depth: u32,
}

/// An `<a>` whose end has not come.
struct OpenAnchor<'d> {
    place: LinkId,
    words: CollapsedText,
    title: &'d str,
    alt: &'d str,
}

impl<'d> Pass<'d> {
    pub(super) fn new(document_bytes: usize, input: &Input<'_>) -> Pass<'d> {
        Pass {
            found: FoundLinks::new(input),
            // About a third of a page is text.
            text: CollapsedText::with_room(TEXT_BYTES_MAX, document_bytes / 3),
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

    fn meta(&mut self, attributes: Attributes<'_, 'd>) {
        match elements::meta(attributes, &mut self.found) {
            PageMeta::Description(words) if self.description.is_empty() => self.description = words,
            PageMeta::Language(tag) if self.language.is_none() => self.language = Some(tag),
            _ => {}
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
            words: CollapsedText::new(SHORT_TEXT_BYTES_MAX),
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

    /// The facts, at the end of the document, and what resolves its references.
    pub(super) fn finish(mut self, input: &Input<'_>) -> (Facts, Option<Resolver>) {
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
        let resolver = self.found.finish(input, &mut facts);
        (facts, resolver)
    }
}

impl<'d> Sink<'d> for Pass<'d> {
    fn start(&mut self, tag: Tag, is_html: bool, attributes: Attributes<'_, 'd>) {
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
                self.heading = Some((level, CollapsedText::new(SHORT_TEXT_BYTES_MAX)));
            }
            Tag::Block => {
                // HTML blocks end a drawing that was left open, in the standard too.
                if is_html {
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
            Tag::Template | Tag::Title | Tag::Hidden => {}
            Tag::Script | Tag::Math | Tag::Inline => {}
        }
    }

    fn end(&mut self, tag: Tag) {
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
}
