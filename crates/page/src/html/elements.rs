//! What each start tag contributes: links, and what the head says of the page.
//!
//! Relies on `attributes` and `links`. Invariant: nothing here depends on what
//! came before, except that the first of several `<base>` or canonical links counts.

use std::borrow::Cow;

use super::attributes::{self, Attributes};
use super::directives;
use super::links::{FoundLinks, LinkId};
use crate::facts::{LinkKind, Rel, SHORT_TEXT_BYTES_MAX};
use crate::url::HREF_BYTES_MAX;

/// A `name`, `rel`, `type` or language longer than this means nothing to us.
const KEYWORD_BYTES_MAX: usize = 1_024;
/// The longest language tag taken; the longest registered ones have 35 characters.
const LANGUAGE_BYTES_MAX: usize = 35;

/// A start tag as the pass needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    A,
    Area,
    Base,
    Body,
    Frame,
    Iframe,
    Heading(u8),
    Html,
    Img,
    Link,
    Meta,
    Svg,
    Template,
    Title,
    /// Its content is raw text, ended by its own end tag alone, and not shown.
    Hidden,
    /// The same, but it takes up room between words.
    Field,
    /// Its content is raw text that is shown.
    Shown,
    /// All that follows is raw text that is shown.
    Plaintext,
    /// Ends a line before and after.
    Block,
    Script,
    Math,
    /// Everything else runs with the text.
    Inline,
}

/// Longest name that [`classify`] knows.
const NAME_BYTES_MAX: usize = 10;

/// What a tag of this name means, in any case of letters.
pub(super) fn classify(name: &[u8]) -> Tag {
    let tag = classify_lower(name);
    if tag != Tag::Inline || !name.iter().any(u8::is_ascii_uppercase) {
        return tag;
    }
    let mut lower = [0; NAME_BYTES_MAX];
    let Some(lower) = lower.get_mut(..name.len()) else { return Tag::Inline };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    classify_lower(lower)
}

fn classify_lower(name: &[u8]) -> Tag {
    match name {
        b"a" => Tag::A,
        b"span" | b"code" | b"em" | b"b" | b"i" | b"strong" => Tag::Inline,
        b"p" | b"div" | b"li" | b"ul" | b"td" | b"tr" | b"br" | b"pre" | b"dt" | b"dd" | b"th"
        | b"dl" | b"ol" | b"table" | b"section" | b"address" | b"article" | b"aside"
        | b"blockquote" | b"caption" | b"center" | b"details" | b"dialog" | b"dir"
        | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form" | b"frameset"
        | b"header" | b"hgroup" | b"hr" | b"legend" | b"listing" | b"main" | b"menu" | b"nav"
        | b"option" | b"optgroup" | b"search" | b"select" | b"summary" | b"tbody" | b"tfoot"
        | b"thead" => Tag::Block,
        [b'h', level @ b'1'..=b'6'] => Tag::Heading(level - b'0'),
        b"area" => Tag::Area,
        b"base" => Tag::Base,
        b"body" => Tag::Body,
        b"frame" => Tag::Frame,
        b"iframe" => Tag::Iframe,
        b"html" => Tag::Html,
        b"img" => Tag::Img,
        b"link" => Tag::Link,
        b"meta" => Tag::Meta,
        b"svg" => Tag::Svg,
        b"math" => Tag::Math,
        b"script" => Tag::Script,
        b"template" => Tag::Template,
        b"title" => Tag::Title,
        b"style" | b"noscript" | b"noembed" | b"noframes" => Tag::Hidden,
        b"textarea" => Tag::Field,
        b"xmp" => Tag::Shown,
        b"plaintext" => Tag::Plaintext,
        _ => Tag::Inline,
    }
}

impl Tag {
    /// Whether an element of this tag is known by its attributes.
    pub(super) fn has_attributes(self) -> bool {
        matches!(
            self,
            Tag::A
                | Tag::Area
                | Tag::Base
                | Tag::Frame
                | Tag::Html
                | Tag::Iframe
                | Tag::Img
                | Tag::Link
                | Tag::Meta
                | Tag::Template
        )
    }

    /// Whether an element of this tag and name can name what a page needs to be shown, beside
    /// those that are known by their attributes anyway.
    pub(super) fn may_need(self, name: &[u8]) -> bool {
        let is_one_of =
            |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        match (self, name.len()) {
            (Tag::Script | Tag::Body, _) => true,
            (Tag::Inline, 5) => is_one_of(&["video", "audio", "track", "embed", "input", "image"]),
            (Tag::Inline, 6) => is_one_of(&["source", "object"]),
            (Tag::Inline, 7) => is_one_of(&["bgsound"]),
            _ => false,
        }
    }

    /// Whether the content of an HTML element of this tag is raw text.
    pub(super) fn is_raw(self) -> bool {
        matches!(
            self,
            Tag::Title
                | Tag::Hidden
                | Tag::Field
                | Tag::Shown
                | Tag::Iframe
                | Tag::Plaintext
                | Tag::Script
        )
    }
}

/// Takes the link that an element names, when it is one of those that can.
pub(super) fn take_link<'d>(
    tag: Tag,
    attributes: Attributes<'_, 'd>,
    in_body: bool,
    found: &mut FoundLinks<'d>,
) {
    match tag {
        Tag::A => {
            anchor(attributes, found);
        }
        Tag::Area => area(attributes, found),
        Tag::Base => base(attributes, found),
        Tag::Frame | Tag::Iframe => frame(attributes, found),
        Tag::Img => image(attributes, found),
        Tag::Link => link(attributes, in_body, found),
        Tag::Meta => {
            meta(attributes, found);
        }
        _ => {}
    }
}

fn href<'d>(attributes: Attributes<'_, 'd>, name: &str) -> Option<Cow<'d, str>> {
    attributes.value(name, HREF_BYTES_MAX)
}

fn words(attributes: Attributes<'_, '_>, name: &str) -> String {
    attributes
        .raw(name)
        .map_or_else(String::new, |raw| attributes::words(raw, SHORT_TEXT_BYTES_MAX))
}

fn rel(attributes: Attributes<'_, '_>) -> Rel {
    let Some(value) = attributes.value("rel", KEYWORD_BYTES_MAX) else { return Rel::default() };
    value.split_ascii_whitespace().fold(Rel::default(), |all, word| {
        let bit = if word.eq_ignore_ascii_case("nofollow") {
            Rel::NOFOLLOW
        } else if word.eq_ignore_ascii_case("ugc") {
            Rel::UGC
        } else if word.eq_ignore_ascii_case("sponsored") {
            Rel::SPONSORED
        } else {
            Rel::default()
        };
        all.with(bit)
    })
}

/// Takes an `<a>`; its place, when it is a link.
pub(super) fn anchor<'d>(
    attributes: Attributes<'_, 'd>,
    found: &mut FoundLinks<'d>,
) -> Option<LinkId> {
    let href = href(attributes, "href")?;
    found.add(href, LinkKind::A, rel(attributes))
}

pub(super) fn area<'d>(attributes: Attributes<'_, 'd>, found: &mut FoundLinks<'d>) {
    let Some(href) = href(attributes, "href") else { return };
    if let Some(place) = found.add(href, LinkKind::Area, rel(attributes)) {
        name_by(attributes, ["alt", "title"], place, found);
    }
}

pub(super) fn frame<'d>(attributes: Attributes<'_, 'd>, found: &mut FoundLinks<'d>) {
    let Some(src) = href(attributes, "src") else { return };
    if let Some(place) = found.add(src, LinkKind::Frame, Rel::default()) {
        name_by(attributes, ["title", "name"], place, found);
    }
}

pub(super) fn image<'d>(attributes: Attributes<'_, 'd>, found: &mut FoundLinks<'d>) {
    if !found.images {
        return;
    }
    let Some(src) = href(attributes, "src") else { return };
    if let Some(place) = found.add(src, LinkKind::Image, Rel::default()) {
        name_by(attributes, ["alt", "title"], place, found);
    }
}

/// Gives a link the first of two attributes that says something.
fn name_by(
    attributes: Attributes<'_, '_>,
    names: [&str; 2],
    place: LinkId,
    found: &mut FoundLinks<'_>,
) {
    for name in names {
        if found.wants_words(place) {
            found.set_words(place, words(attributes, name));
        }
    }
}

pub(super) fn base<'d>(attributes: Attributes<'_, 'd>, found: &mut FoundLinks<'d>) {
    if found.base.is_none() {
        found.base = href(attributes, "href");
    }
}

/// Takes a `<link>`. In the body a canonical link does not count, because what
/// visitors write stands there.
pub(super) fn link<'d>(attributes: Attributes<'_, 'd>, in_body: bool, found: &mut FoundLinks<'d>) {
    let Some(rel) = attributes.value("rel", KEYWORD_BYTES_MAX) else { return };
    let has = |name: &str| rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(name));
    let kind = if has("stylesheet") {
        return;
    } else if has("canonical") {
        LinkKind::Canonical
    } else if has("feed") || (has("alternate") && is_feed(attributes)) {
        LinkKind::Feed
    } else if has("alternate") {
        LinkKind::Alternate
    } else if has("next") {
        LinkKind::Next
    } else if has("prev") || has("previous") {
        LinkKind::Prev
    } else if has("sitemap") {
        LinkKind::Sitemap
    } else {
        return;
    };
    if kind == LinkKind::Canonical && in_body {
        return;
    }
    let Some(href) = href(attributes, "href").filter(|href| !href.trim().is_empty()) else {
        return;
    };
    if kind == LinkKind::Canonical && found.canonical.is_none() {
        found.canonical = Some(href.clone());
    }
    if let Some(place) = found.add(href, kind, Rel::default()) {
        name_by(attributes, ["title", "hreflang"], place, found);
    }
}

fn is_feed(attributes: Attributes<'_, '_>) -> bool {
    let Some(kind) = attributes.value("type", KEYWORD_BYTES_MAX) else { return false };
    let essence = kind.split(';').next().unwrap_or("").trim();
    ["application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"]
        .iter()
        .any(|feed| essence.eq_ignore_ascii_case(feed))
}

/// What a `<meta>` says of the page rather than of its links.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageMeta {
    Nothing,
    Description(String),
    Language(String),
}

/// Takes a `<meta>`: robots and refresh go to `found`.
pub(super) fn meta<'d>(attributes: Attributes<'_, 'd>, found: &mut FoundLinks<'d>) -> PageMeta {
    if let Some(name) = attributes.value("name", KEYWORD_BYTES_MAX) {
        let name = name.trim();
        if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(&found.agent) {
            let content = attributes.value("content", KEYWORD_BYTES_MAX).unwrap_or_default();
            found.directives = found.directives.with(directives::from_meta(&content));
        } else if name.eq_ignore_ascii_case("description") {
            return PageMeta::Description(words(attributes, "content"));
        }
        return PageMeta::Nothing;
    }
    let Some(equivalent) = attributes.value("http-equiv", KEYWORD_BYTES_MAX) else {
        return PageMeta::Nothing;
    };
    if equivalent.trim().eq_ignore_ascii_case("refresh") {
        if let Some(target) = href(attributes, "content").and_then(refresh_target) {
            found.add(target, LinkKind::Refresh, Rel::default());
        }
    } else if equivalent.trim().eq_ignore_ascii_case("content-language") {
        let content = attributes.value("content", KEYWORD_BYTES_MAX).unwrap_or_default();
        return language_tag(&content).map_or(PageMeta::Nothing, PageMeta::Language);
    }
    PageMeta::Nothing
}

/// The language that `<html lang>` declares.
pub(super) fn language(attributes: Attributes<'_, '_>) -> Option<String> {
    let lang = attributes.value("lang", KEYWORD_BYTES_MAX);
    let lang = lang.filter(|value| !value.trim().is_empty());
    language_tag(&lang.or_else(|| attributes.value("xml:lang", KEYWORD_BYTES_MAX))?)
}

/// The first language tag of a list, if it looks like one.
fn language_tag(text: &str) -> Option<String> {
    let tag = text.split(',').next().unwrap_or("").trim();
    let looks_right = !tag.is_empty()
        && tag.len() <= LANGUAGE_BYTES_MAX
        && tag.starts_with(|first: char| first.is_ascii_alphabetic())
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    looks_right.then(|| tag.replace('_', "-"))
}

/// The URL in the content of `<meta http-equiv=refresh>`, by the standard's steps.
pub(crate) fn refresh_target(content: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let text = content.trim_start();
    let rest = text.trim_start_matches(|ch: char| ch.is_ascii_digit() || ch == '.');
    if rest.len() == text.len() {
        return None;
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start();
    let target = match rest.get(..3) {
        Some(start) if start.eq_ignore_ascii_case("url") => {
            let after = rest[3..].trim_start();
            after.strip_prefix('=').map_or(rest, str::trim_start)
        }
        _ => rest,
    };
    let target = match target.chars().next() {
        Some(quote @ ('"' | '\'')) => target[1..].split(quote).next().unwrap_or(""),
        _ => target,
    };
    (!target.is_empty()).then(|| Cow::Owned(target.to_owned()))
}
