//! One streaming pass over an HTML document, giving its [`Facts`].
//!
//! Relies on html5gum to tokenise (it alone decides where tags, comments and raw text
//! begin and end), on htmlize for character references, on `url` to resolve links.
//! Invariant: whatever the bytes, the pass ends in linear time, keeps no tree, never
//! recurses, and holds little besides the body and the bounded facts.

pub(crate) mod attributes;
mod directives;
pub(crate) mod elements;
mod links;
mod namespaces;
#[cfg(any(test, feature = "fuzzing"))]
mod oracle;
mod pass;
mod reader;
pub(crate) mod scan;

use std::borrow::Cow;

use self::attributes::Attributes;
pub use self::directives::from_header as header_directives;
use self::elements::Tag;
use self::links::FoundLinks;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::oracle::extract_by_lol_html;
use self::pass::Pass;
use self::scan::Sink;
use crate::facts::{Directives, Facts, Link};
use crate::mirror::requisites;
use crate::url::{Policy, Resolver};
use crate::{charset, fingerprint, sniff};

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
    /// Whether the facts name what the page needs to be shown.
    pub requisites: bool,
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
            requisites: false,
            policy,
        }
    }
}

/// Everything the document says.
pub fn extract(input: &Input<'_>) -> Facts {
    if input.requisites {
        return extract_with_requisites(input);
    }
    let (encoding, document) = decoded(input);
    let mut pass = Pass::new(document.len(), input);
    let whole = scan::scan(&document, &mut pass);
    let mut facts = facts_of(pass, input, encoding);
    facts.truncated.parse = !whole;
    facts
}

/// Everything the document says, and what it needs to be shown, in one pass.
fn extract_with_requisites(input: &Input<'_>) -> Facts {
    let (encoding, document) = decoded(input);
    let mut both = FactsAndRequisites {
        pass: Pass::new(document.len(), input),
        requisites: requisites::Collector::new(),
    };
    let whole = scan::scan(&document, &mut both);
    let (mut facts, resolver) = facts_and_resolver(both.pass, input, encoding);
    facts.truncated.parse = !whole;
    let requisites = resolver.map(|mut resolver| both.requisites.finish(&mut resolver));
    let requisites = requisites.unwrap_or_default();
    facts.truncated.requisites = requisites.is_cut;
    facts.requisites = requisites.list;
    facts
}

/// Hands everything to both.
struct FactsAndRequisites<'d> {
    pass: Pass<'d>,
    requisites: requisites::Collector,
}

impl<'d> Sink<'d> for FactsAndRequisites<'d> {
    const TAGS: scan::Tags = scan::Tags::Requisites;

    fn start_tag(&mut self, tag: &scan::StartTag<'_, 'd>) {
        self.requisites.start_tag(tag);
    }

    fn start(&mut self, tag: Tag, is_html: bool, attributes: Attributes<'_, 'd>) {
        self.pass.start(tag, is_html, attributes);
    }

    fn end(&mut self, tag: Tag) {
        self.pass.end(tag);
        self.requisites.end(tag);
    }

    fn text(&mut self, piece: &str, has_reference: bool) {
        self.pass.text(piece, has_reference);
        self.requisites.text(piece, has_reference);
    }

    fn shown(&mut self, piece: &str) {
        self.pass.shown(piece);
        self.requisites.shown(piece);
    }

    fn raw_text(&mut self, tag: Tag, content: &str) {
        self.pass.raw_text(tag, content);
        self.requisites.raw_text(tag, content);
    }
}

fn facts_of(pass: Pass<'_>, input: &Input<'_>, encoding: &'static encoding_rs::Encoding) -> Facts {
    facts_and_resolver(pass, input, encoding).0
}

fn facts_and_resolver(
    pass: Pass<'_>,
    input: &Input<'_>,
    encoding: &'static encoding_rs::Encoding,
) -> (Facts, Option<Resolver>) {
    let (mut facts, resolver) = pass.finish(input);
    facts.media_type =
        sniff::media_of(input.content_type, input.nosniff, input.body).essence.into_owned();
    facts.charset = encoding.name().to_owned();
    facts.content_hash = fingerprint::content_hash(input.body);
    facts.text_hash = fingerprint::text_hash(&facts.text);
    facts.simhash = fingerprint::simhash(&facts.text);
    (facts, resolver)
}

/// The links alone, without the words they are known by: no text is read.
pub fn links_only(input: &Input<'_>) -> Vec<Link> {
    let (_, document) = decoded(input);
    let mut sink = LinksOnly { found: FoundLinks::new(input), in_body: false, template_depth: 0 };
    scan::scan(&document, &mut sink);
    let mut facts = Facts::default();
    sink.found.finish(input, &mut facts);
    facts.links
}

/// What [`links_only`] needs to know.
struct LinksOnly<'d> {
    found: FoundLinks<'d>,
    in_body: bool,
    template_depth: u32,
}

impl<'d> Sink<'d> for LinksOnly<'d> {
    fn start(&mut self, tag: Tag, _is_html: bool, attributes: Attributes<'_, 'd>) {
        let is_hidden = attributes.raw("shadowrootmode").is_none();
        match tag {
            Tag::Template if self.template_depth > 0 || is_hidden => self.template_depth += 1,
            _ if self.template_depth > 0 => {}
            Tag::Body => self.in_body = true,
            _ => elements::take_link(tag, attributes, self.in_body, &mut self.found),
        }
    }

    fn end(&mut self, tag: Tag) {
        if tag == Tag::Template {
            self.template_depth = self.template_depth.saturating_sub(1);
        }
    }
}

/// The document as UTF-8, so that every position the tokeniser reports is one in this text.
pub(crate) fn decoded<'a>(input: &Input<'a>) -> (&'static encoding_rs::Encoding, Cow<'a, str>) {
    let encoding = charset::decide(input.body, input.content_type).encoding;
    (encoding, charset::decode(input.body, encoding))
}

#[cfg(test)]
mod tests;
