//! One streaming pass over an HTML document, giving its [`Facts`].
//!
//! Relies on `scan` to tokenise (lol_html for the links alone), on htmlize for character
//! references, on `url` to resolve links. Invariant: whatever the bytes, the pass ends
//! in linear time, keeps no tree, never recurses, and holds little besides the body and
//! the bounded facts; `links_only` holds at most [`PARSER_BYTES_MAX`] of parser state.

mod attributes;
mod directives;
mod elements;
mod links;
mod namespaces;
#[cfg(any(test, feature = "fuzzing"))]
mod oracle;
mod pass;
mod scan;

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;

use lol_html::html_content::Element;
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};

pub use self::directives::from_header as header_directives;
use self::links::Found;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::oracle::extract_by_lol_html;
use self::pass::Pass;
use crate::facts::{Directives, Facts, Link};
use crate::url::Policy;
use crate::{charset, fingerprint, sniff};

/// What lol_html may hold for open elements, attributes and an unfinished tag.
///
/// This is the depth limit of [`links_only`] too: an open element costs some 150 bytes,
/// so it ends at tens of thousands of unclosed ones. A lower number of levels would cut
/// honest pages, for every unclosed `<p>` or `<li>` counts as a level.
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
    let (encoding, document) = decoded(input);
    let mut pass = Pass::new(document.len(), input);
    let whole = scan::scan(&document, &mut pass);
    let mut facts = facts_of(pass, input, encoding);
    facts.truncated.parse = !whole;
    facts
}

fn facts_of(pass: Pass<'_>, input: &Input<'_>, encoding: &'static encoding_rs::Encoding) -> Facts {
    let mut facts = pass.finish(input);
    facts.media_type =
        sniff::media_of(input.content_type, input.nosniff, input.body).essence.into_owned();
    facts.charset = encoding.name().to_owned();
    facts.content_hash = fingerprint::content_hash(input.body);
    facts.text_hash = fingerprint::text_hash(&facts.text);
    facts.simhash = fingerprint::simhash(&facts.text);
    facts
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

fn selector(text: &str) -> Selector {
    text.parse().expect("this selector is a constant and tested")
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
