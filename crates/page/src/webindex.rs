//! Pages as Webindex read and stored them.
//!
//! It read WAT records and kept a page as one line of JSON. Its rules are its own: a link
//! counts if it is an `<a href>` that leads to another domain, as written and never resolved;
//! status, `rel` and entities are not looked at. Relies on [`crate::uri`] for its rules about
//! URLs and on [`crate::outlinks`] for those about links.
//!
//! Invariant: a page has the row of its URL; its links are sorted by row, each row once and
//! none of the page's own domain; every text is within [`SHORT_TEXT_BYTES_MAX`] and contains no
//! NUL. `from_json(to_json(page)) == page` for every page read here whose JSON is within
//! [`JSON_BYTES_MAX`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::domain::SuffixList;
use crate::facts::{LINKS_MAX, Link, LinkKind, Rel, SHORT_TEXT_BYTES_MAX};
use crate::feed::datetime;
use crate::outlinks::{OutLink, WrittenLink, original_links, original_row};
use crate::uri::Uri;
use crate::url::{self, Policy};
use crate::wat;

/// Bytes of a page's JSON. It names a link twice, as URL and as row, where WAT does so once.
pub const JSON_BYTES_MAX: usize = 2 * wat::BYTES_MAX;

/// A crawled page as the interface of `webindex` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WebindexPage {
    /// Its URL as [`Uri::to_url`] prints it.
    pub url: String,
    pub uri: String,
    /// When it was crawled, as the archive says it; see [`date_ms`].
    pub crawl_date: Option<String>,
    /// The `Server` header of its answer.
    pub server: Option<String>,
    /// Its title as written, entities and white space included.
    pub title: Option<String>,
    /// Its links by row, each row once, all of kind `A`.
    pub links: Vec<OutLink>,
}

/// A page as its line gives it, before any rule about links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenPage {
    /// The canonical URL.
    pub url: String,
    /// When it was crawled, as the line says it; see [`date_ms`].
    pub crawl_date: Option<String>,
    /// The `Server` header of its answer.
    pub server: Option<String>,
    /// Its title as written.
    pub title: Option<String>,
    /// Its links, at most [`LINKS_MAX`].
    pub links: Vec<Link>,
}

/// Reads one line of page JSON. `None` when it is none, is too long, or its URL has no row.
///
/// Rows are made from the URLs and not read, so that they follow the list that is given.
pub fn from_json(line: &[u8], list: &SuffixList) -> Option<WebindexPage> {
    let line = Some(line).filter(|line| line.len() <= JSON_BYTES_MAX)?;
    let stored: PageJson = serde_json::from_slice(line).ok()?;
    let links = stored.outbound_links.iter();
    let mut page = page(&stored.url, links.map(|it| (&*it.url, &*it.anchor_text)), list)?;
    page.crawl_date = short_text(stored.crawl_date.as_deref());
    page.server = short_text(stored.server.as_deref());
    page.title = short_text(stored.title.as_deref());
    Some(page)
}

/// Reads one line of page JSON for whoever judges links by other rules: URLs are made
/// canonical, and every link that is a URL is there, in the order of the line. `None` when it
/// is none, is too long, or its URL is none of the web.
pub fn given(line: &[u8]) -> Option<GivenPage> {
    let line = Some(line).filter(|line| line.len() <= JSON_BYTES_MAX)?;
    let stored: PageJson = serde_json::from_slice(line).ok()?;
    let canonical = |text: &str| url::canonical(text, &Policy::default()).ok();
    let link = |it: &LinkJson| {
        let (url, anchor) = (canonical(&it.url)?, short(&it.anchor_text).into_owned());
        Some(Link { url, anchor, kind: LinkKind::A, rel: Rel::default() })
    };
    Some(GivenPage {
        url: canonical(&stored.url)?,
        crawl_date: short_text(stored.crawl_date.as_deref()),
        server: short_text(stored.server.as_deref()),
        title: short_text(stored.title.as_deref()),
        links: stored.outbound_links.iter().filter_map(link).take(LINKS_MAX).collect(),
    })
}

/// Reads the block of a WAT record of type `application/json`; target and date stand in the
/// record's header. `None` when the block is not JSON, is too long, or the target has no row.
///
/// Archives have records of requests too. They make a page without links, as does a page that
/// has none: the caller decides what to make of that.
pub fn from_wat(
    block: &[u8],
    target_uri: &str,
    date: Option<&str>,
    list: &SuffixList,
) -> Option<WebindexPage> {
    let block = Some(block).filter(|block| block.len() <= wat::BYTES_MAX)?;
    // Webindex passed over what is missing or of another type wherever it stands, and took
    // bytes that are not UTF-8. `wat::read` refuses such records, so its types do not serve.
    let root: Map<String, Json> = serde_json::from_str(&String::from_utf8_lossy(block)).ok()?;
    let response = root.get("Envelope").and_then(|it| it.pointer(RESPONSE)).unwrap_or(&Json::Null);
    let text_at = |pointer: &str| short_text(response.pointer(pointer).and_then(Json::as_str));
    let links = response.pointer("/HTML-Metadata/Links").and_then(Json::as_array);
    let mut page = page(target_uri, links.into_iter().flatten().filter_map(link_of_wat), list)?;
    page.crawl_date = short_text(date);
    page.server = text_at("/Headers/Server");
    page.title = text_at("/HTML-Metadata/Head/Title");
    Some(page)
}

/// The JSON of a page, as the query table's `page:cur` has it.
pub fn to_json(page: &WebindexPage) -> String {
    let json = PageJson {
        url: Cow::Borrowed(&page.url),
        uri: Cow::Borrowed(&page.uri),
        num_outbound: page.links.len(),
        crawl_date: page.crawl_date.as_deref().map(Cow::Borrowed),
        server: page.server.as_deref().map(Cow::Borrowed),
        title: page.title.as_deref().map(Cow::Borrowed),
        outbound_links: page.links.iter().map(LinkJson::of).collect(),
    };
    serde_json::to_string(&json).expect("texts and a number can be written as JSON")
}

/// When a page was crawled, from the date that WARC or the page's JSON gives.
pub fn date_ms(text: &str) -> Option<i64> {
    datetime::parse(text)
}

/// The part of a WAT record's envelope that tells of the answer.
const RESPONSE: &str = "/Payload-Metadata/HTTP-Response-Metadata";

/// URL and anchor of an entry of a WAT record, if it is one that counts.
fn link_of_wat(entry: &Json) -> Option<(&str, &str)> {
    let text = |key: &str| entry.get(key).and_then(Json::as_str);
    let is_anchor = text("path") == Some("A@/href");
    let url = text("url").filter(|_| is_anchor)?;
    Some((url, text("text").or_else(|| text("title")).unwrap_or_default()))
}

/// The page at a URL with these links, each a URL and its anchor.
fn page<'a>(
    url: &str,
    links: impl Iterator<Item = (&'a str, &'a str)>,
    list: &SuffixList,
) -> Option<WebindexPage> {
    let own = Uri::webindex(url, list).ok()?;
    let uri = original_row(&own)?;
    let written =
        links.map(|(url, anchor)| WrittenLink { url, anchor: short(anchor), rel: Rel::default() });
    let links = original_links(&uri, written, list);
    Some(WebindexPage {
        url: own.to_url(),
        uri,
        crawl_date: None,
        server: None,
        title: None,
        links,
    })
}

fn short_text(text: Option<&str>) -> Option<String> {
    text.map(|text| short(text).into_owned())
}

/// As written, but bounded, and without NUL, which no table can hold.
fn short(text: &str) -> Cow<'_, str> {
    let text = &text[..text.floor_char_boundary(SHORT_TEXT_BYTES_MAX)];
    if text.contains('\0') { Cow::Owned(text.replace('\0', "")) } else { Cow::Borrowed(text) }
}

/// Its fields stand in the order in which Webindex wrote them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageJson<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(skip_deserializing)]
    uri: Cow<'a, str>,
    #[serde(skip_deserializing)]
    num_outbound: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crawl_date: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    outbound_links: Vec<LinkJson<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinkJson<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(skip_deserializing)]
    uri: Cow<'a, str>,
    #[serde(borrow, default)]
    anchor_text: Cow<'a, str>,
}

impl LinkJson<'_> {
    fn of(link: &OutLink) -> LinkJson<'_> {
        // A page that was read here has rows only.
        let url = Uri::from_uri(&link.uri).map(|uri| uri.to_url()).unwrap_or_default();
        let (uri, anchor_text) = (Cow::Borrowed(&*link.uri), Cow::Borrowed(&*link.anchor));
        LinkJson { url: Cow::Owned(url), uri, anchor_text }
    }
}

#[cfg(test)]
mod tests;
