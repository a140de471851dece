//! What a start tag refers to: every attribute of HTML and SVG that holds a URL, a list of
//! URLs, a style or a document.
//!
//! [`super::requisites`] reads these to know what a page needs, [`super::rewrite`] to make
//! them lead into the mirror; because both ask here, whatever is needed is also rewritten.
//! Invariant: nothing here depends on what came before.

mod srcset;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::css;
use crate::html::elements::refresh_target;
use crate::html::scan::StartTag;
use crate::url::HREF_BYTES_MAX;

pub(super) use self::srcset::candidates;

/// What a reference is there for. Facts store its number: a new kind comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ReferenceKind {
    /// A link that a reader follows: `a`, `area`, and links of the head to other pages.
    Link,
    /// A document that the browser goes to by itself: `<meta http-equiv=refresh>`.
    Refresh,
    Form,
    /// A document shown inside of this one: `iframe`, `frame`.
    Frame,
    /// What says which document this is or where it comes from (`canonical`, `preconnect`); it
    /// is never read to show the page.
    Identity,
    Stylesheet,
    Script,
    Image,
    /// Sound or film.
    Media,
    /// Subtitles and the like.
    Track,
    Font,
    Icon,
    /// `object`, `embed`.
    Object,
    /// A web app's manifest.
    Manifest,
}

impl ReferenceKind {
    /// Whether a page cannot be shown whole without it.
    pub fn is_requisite(self) -> bool {
        use ReferenceKind as Kind;
        !matches!(self, Kind::Link | Kind::Refresh | Kind::Form | Kind::Identity)
    }
}

impl From<css::Kind> for ReferenceKind {
    fn from(kind: css::Kind) -> ReferenceKind {
        match kind {
            css::Kind::Import => ReferenceKind::Stylesheet,
            css::Kind::Font => ReferenceKind::Font,
            css::Kind::Image => ReferenceKind::Image,
        }
    }
}

/// What the value of an attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Url(ReferenceKind),
    /// Images for several widths, as in `srcset`.
    Candidates,
    /// Declarations of CSS.
    Style,
    /// Seconds and a URL.
    Refresh,
    /// A document, as in `srcdoc`.
    Document,
    /// What relative URLs start from.
    Base,
}

/// Longest name of an element or attribute that is looked at.
const NAME_BYTES_MAX: usize = 16;

/// What the attribute called `attribute` of this tag holds, if anything of interest.
pub(super) fn value_of(tag: &StartTag<'_, '_>, attribute: &str) -> Option<Value> {
    use ReferenceKind as Kind;
    // Nearly all attributes are `class`, `id` and the like.
    let first = attribute.as_bytes().first()?.to_ascii_lowercase();
    let may_be = match attribute.len() {
        3 | 5 => first == b's',
        4 => matches!(first, b'h' | b'd' | b'c'),
        6 => matches!(first, b's' | b'p' | b'l' | b'd' | b'a'),
        7 => first == b'c',
        8 => matches!(first, b'l' | b'd'),
        10 => matches!(first, b'x' | b'b' | b'f'),
        11 => matches!(first, b'i' | b'd'),
        13 => first == b'd',
        _ => false,
    };
    if !may_be {
        return None;
    }
    let (mut tag_room, mut attribute_room) = ([0; NAME_BYTES_MAX], [0; NAME_BYTES_MAX]);
    let attribute = lower_case(attribute, &mut attribute_room)?;
    let name = lower_case(tag.name, &mut tag_room).unwrap_or(b"");
    let url = |kind| Some(Value::Url(kind));
    match (attribute, name) {
        (b"style", _) => Some(Value::Style),
        (b"href", b"a" | b"area") | (b"xlink:href", b"a") => url(Kind::Link),
        (b"href", b"link") => url(link_kind(tag)),
        (b"href", b"base") => Some(Value::Base),
        (b"href" | b"xlink:href", b"script") => url(Kind::Script),
        (b"href" | b"xlink:href", _) if !tag.is_html && name != b"base" => url(Kind::Image),
        (b"src", b"img" | b"input" | b"image") => url(Kind::Image),
        (b"src", b"script") => url(Kind::Script),
        (b"src", b"iframe" | b"frame") => url(Kind::Frame),
        (b"src", b"video" | b"audio" | b"source" | b"bgsound") => url(Kind::Media),
        (b"src", b"track") => url(Kind::Track),
        (b"src", b"embed") | (b"data", b"object") => url(Kind::Object),
        (b"srcset", b"img" | b"source") | (b"imagesrcset", b"link") => Some(Value::Candidates),
        (b"poster", b"video") | (b"lowsrc", b"img") => url(Kind::Image),
        (b"dynsrc", b"img") => url(Kind::Media),
        (b"background", b"body" | b"table" | b"tr" | b"td" | b"th") => url(Kind::Image),
        (b"srcdoc", b"iframe") => Some(Value::Document),
        (b"action", b"form") | (b"formaction", b"button" | b"input") => url(Kind::Form),
        (b"longdesc", b"img" | b"iframe" | b"frame") => url(Kind::Link),
        (b"cite", b"blockquote" | b"q" | b"ins" | b"del") => url(Kind::Link),
        // Where scripts keep the images that they show when a reader comes near.
        (b"data-src" | b"data-original" | b"data-lazy-src", b"img") => url(Kind::Image),
        (b"data-src", b"iframe") => url(Kind::Frame),
        (b"data-src", b"video" | b"audio" | b"source") => url(Kind::Media),
        (b"data-poster", b"video") => url(Kind::Image),
        (b"data-srcset", b"img" | b"source") => Some(Value::Candidates),
        (b"content", b"meta") if is_refresh(tag) => Some(Value::Refresh),
        _ => None,
    }
}

/// A name in lower case; `None` when it is longer than any that matters.
fn lower_case<'r>(name: &str, room: &'r mut [u8; NAME_BYTES_MAX]) -> Option<&'r [u8]> {
    let room = room.get_mut(..name.len())?;
    room.copy_from_slice(name.as_bytes());
    room.make_ascii_lowercase();
    Some(room)
}

/// A `rel`, `as` or `http-equiv` longer than this means nothing to us.
const KEYWORD_BYTES_MAX: usize = 1_024;

/// What a `<link>` leads to.
fn link_kind(tag: &StartTag<'_, '_>) -> ReferenceKind {
    use ReferenceKind as Kind;
    let rel = tag.attributes.value("rel", KEYWORD_BYTES_MAX).unwrap_or_default();
    let has = |word: &str| rel.split_ascii_whitespace().any(|it| it.eq_ignore_ascii_case(word));
    if has("stylesheet") {
        Kind::Stylesheet
    } else if has("icon")
        || has("apple-touch-icon")
        || has("mask-icon")
        || has("fluid-icon")
        || has("apple-touch-icon-precomposed")
    {
        Kind::Icon
    } else if has("preload") {
        let used_as = tag.attributes.value("as", KEYWORD_BYTES_MAX).unwrap_or_default();
        match used_as.trim_ascii().to_ascii_lowercase().as_str() {
            "style" => Kind::Stylesheet,
            "script" | "worker" => Kind::Script,
            "image" => Kind::Image,
            "font" => Kind::Font,
            "audio" | "video" => Kind::Media,
            "track" => Kind::Track,
            _ => Kind::Object,
        }
    } else if has("modulepreload") {
        Kind::Script
    } else if has("manifest") {
        Kind::Manifest
    } else if ["canonical", "shortlink", "preconnect", "dns-prefetch", "pingback", "webmention"]
        .iter()
        .any(|word| has(word))
    {
        Kind::Identity
    } else {
        Kind::Link
    }
}

/// Whether a `<meta>` has this `http-equiv`.
pub(super) fn is_equivalent_to(tag: &StartTag<'_, '_>, header: &str) -> bool {
    let equivalent = tag.attributes.value("http-equiv", KEYWORD_BYTES_MAX);
    equivalent.is_some_and(|it| it.trim_ascii().eq_ignore_ascii_case(header))
}

fn is_refresh(tag: &StartTag<'_, '_>) -> bool {
    is_equivalent_to(tag, "refresh")
}

/// The seconds and the URL in the content of `<meta http-equiv=refresh>`.
pub(super) fn refresh_parts(content: &str) -> Option<(&str, Cow<'_, str>)> {
    if content.len() > HREF_BYTES_MAX {
        return None;
    }
    let rest = content.trim_start();
    let seconds = rest.trim_start_matches(|ch: char| ch.is_ascii_digit() || ch == '.');
    let seconds = &rest[..rest.len() - seconds.len()];
    Some((seconds, refresh_target(Cow::Borrowed(content))?))
}
