//! One streaming pass over an HTML document, giving its [`Facts`].
//!
//! Relies on lol_html to tokenise (it alone decides where tags, comments and raw
//! text begin and end), on htmlize for character references, on `url` to resolve
//! links. Invariant: whatever the bytes, the pass ends in linear time, keeps no
//! tree, never recurses, and holds at most [`PARSER_BYTES_MAX`] bytes of parser
//! state besides the body and the bounded facts.

mod attributes;
mod directives;
mod elements;
mod links;
mod pass;

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;

use lol_html::html_content::{Comment, Doctype, Element, TextChunk, TextType};
use lol_html::{
    DocumentContentHandlers, ElementContentHandlers, HtmlRewriter, MemorySettings, Selector,
    Settings,
};

pub use self::directives::from_header as header_directives;
use self::links::Found;
use self::pass::Pass;
use crate::facts::{Directives, Facts, Link};
use crate::url::Policy;
use crate::{charset, fingerprint, sniff};

/// What the parser may hold for open elements, attributes and an unfinished tag.
///
/// This is the depth limit too: an open element costs it some 150 bytes, so it ends
/// the pass at tens of thousands of unclosed elements. A lower number of levels
/// would cut honest pages, for a streaming parser counts every unclosed `<p>` or
/// `<li>` as a level.
const PARSER_BYTES_MAX: usize = 8 << 20;

/// What is read and what it is read for.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The body, content encodings removed.
    pub body: &'a [u8],
    /// The document's own URL, after redirects: relative links start here.
    pub url: &'a str,
    /// The answer's `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// Whether the answer had `X-Content-Type-Options: nosniff`.
    pub nosniff: bool,
    /// What the answer's `X-Robots-Tag` headers ask ([`header_directives`]).
    pub directives: Directives,
    /// The name by which `<meta name=…>` may address this crawler.
    pub agent: &'a str,
    /// Whether pictures count as links.
    pub images: bool,
    /// How links are made canonical.
    pub policy: &'a Policy,
}

impl<'a> Input<'a> {
    /// A body at its URL, without headers, read for links and text.
    pub fn new(body: &'a [u8], url: &'a str, policy: &'a Policy) -> Input<'a> {
        Input {
            body,
            url,
            content_type: None,
            nosniff: false,
            directives: Directives::default(),
            agent: "driftline",
            images: false,
            policy,
        }
    }
}

/// Everything the document says.
pub fn extract(input: &Input<'_>) -> Facts {
    extract_in_chunks(input, usize::MAX)
}

/// The links alone, without the words they are known by: no text is read.
///
/// Links inside `<template>` are not told apart here, as that takes a look at end tags.
pub fn links_only(input: &Input<'_>) -> Vec<Link> {
    let (_, document) = decoded(input);
    let found = RefCell::new(Found::new(input));
    let mut list = Vec::new();
    let handlers = ElementContentHandlers::default().element(|element: &mut Element<'_, '_>| {
        elements::take_links(element, &document, &mut list, &mut found.borrow_mut());
        Ok(())
    });
    let selector = if input.images { &*LINK_OR_IMAGE } else { &*LINK };
    let settings = settings().append_element_content_handler((Cow::Borrowed(selector), handlers));
    let whole = run(settings, &document, usize::MAX);
    let mut facts = Facts::default();
    facts.truncated.parse = !whole;
    found.into_inner().finish(input, &mut facts);
    facts.links
}

/// Elements that may name a link, or say something about all links.
static LINK: LazyLock<Selector> =
    LazyLock::new(|| selector("a, area, link, meta, base, iframe, frame"));
static LINK_OR_IMAGE: LazyLock<Selector> =
    LazyLock::new(|| selector("a, area, link, meta, base, iframe, frame, img"));
static EVERY_ELEMENT: LazyLock<Selector> = LazyLock::new(|| selector("*"));
static SCRIPT: LazyLock<Selector> = LazyLock::new(|| selector("script"));

fn selector(text: &str) -> Selector {
    text.parse().expect("this selector is a constant and tested")
}

/// [`extract`], feeding the parser `chunk` bytes at a time; the facts are the same for any.
pub(crate) fn extract_in_chunks(input: &Input<'_>, chunk: usize) -> Facts {
    let (encoding, document) = decoded(input);
    let pass = RefCell::new(Pass::new(&document, input));
    let whole = run(pass_settings(&pass), &document, chunk);
    let mut facts = pass.into_inner().finish(input);
    facts.truncated.parse = !whole;
    facts.media_type =
        sniff::media_of(input.content_type, input.nosniff, input.body).essence.into_owned();
    facts.charset = encoding.name().to_owned();
    facts.content_hash = fingerprint::content_hash(input.body);
    facts.text_hash = fingerprint::text_hash(&facts.text);
    facts.simhash = fingerprint::simhash(&facts.text);
    facts
}

/// The document as UTF-8, so that every position the parser reports is one in this text.
fn decoded<'a>(input: &Input<'a>) -> (&'static encoding_rs::Encoding, Cow<'a, str>) {
    let encoding = charset::decide(input.body, input.content_type).encoding;
    (encoding, charset::decode(input.body, encoding))
}

fn settings<'h>() -> Settings<'h, 'static> {
    let memory = MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX);
    Settings::new().with_strict(false).with_memory_settings(memory)
}

/// Reports every start tag, comment, doctype and script to `pass`.
///
/// Not text: a text handler costs half as much again as all the rest (the numbers
/// are in bench/parse), and what lies between these tokens is text and end tags,
/// which [`Pass`] tells apart.
fn pass_settings<'h>(pass: &'h RefCell<Pass<'_>>) -> Settings<'h, 'static> {
    let every = ElementContentHandlers::default().element(|element: &mut Element<'_, '_>| {
        pass.borrow_mut().start_tag(element);
        Ok(())
    });
    let script = ElementContentHandlers::default().text(|chunk: &mut TextChunk<'_>| {
        // A `script` of another namespace has ordinary text.
        if chunk.text_type() == TextType::ScriptData {
            pass.borrow_mut().nothing(chunk.source_location().bytes());
        }
        Ok(())
    });
    let document = DocumentContentHandlers::default()
        .comments(|comment: &mut Comment<'_>| {
            pass.borrow_mut().nothing(comment.source_location().bytes());
            Ok(())
        })
        .doctype(|doctype: &mut Doctype<'_>| {
            pass.borrow_mut().nothing(doctype.source_location().bytes());
            Ok(())
        });
    settings()
        .append_element_content_handler((Cow::Borrowed(&*EVERY_ELEMENT), every))
        .append_element_content_handler((Cow::Borrowed(&*SCRIPT), script))
        .append_document_content_handler(document)
}

/// Feeds the document to the parser; false when it gave up before the end.
fn run(settings: Settings<'_, '_>, document: &str, chunk: usize) -> bool {
    let mut parser = HtmlRewriter::new(settings, |_: &[u8]| {});
    for piece in document.as_bytes().chunks(chunk) {
        if parser.write(piece).is_err() {
            return false;
        }
    }
    parser.end().is_ok()
}

#[cfg(test)]
mod tests;
