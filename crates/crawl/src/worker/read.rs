//! From bytes to facts and links, on the thread that fetched them.
//!
//! Pure but for time. Relies on `page` for parsing and on the job's scope. Invariant:
//! a link that leaves here is canonical and inside the reach of the job; one that is
//! known but not to be fetched carries the code that says why.

pub mod link_filter;
pub mod stored_links;

use crate::connectors::feed as feed_connector;
use crate::extract::{self, ExtractNotes, ExtractResult};
use crate::fetch::Fetched;
use crate::job::WebJob;
use crate::targets::{Target, targets_of};
use page::facts::{Directives, Facts, LINKS_MAX, Link, LinkKind, Rel, TEXT_BYTES_MAX};
use page::html::{self, Input, header_directives};
use page::mirror::css;
use page::mirror::requisites::{self, Requisites};
use page::url::Resolver;
use page::{charset, feed, fingerprint, sitemap, sniff};
use std::collections::HashMap;
use store::tables::carrydown::Data;
use store::tables::queue::Entry;

/// The media type of style sheets.
const STYLE_SHEET: &str = "text/css";

/// What a document says.
pub struct ParsedDocument {
    pub facts: Facts,
    /// Where it leads, each target once.
    pub targets: Vec<Target>,
    /// It is an index of sitemaps: what it names are lists, too.
    pub is_index: bool,
    /// Its bytes, unpacked, if it is a sitemap or an index of them.
    pub list_bytes: Option<i64>,
    /// Bytes of the body.
    pub length: i64,
    /// It asks not to be kept, and the job obeys.
    pub noindex: bool,
    /// The job's expression that keeps it out because of what it says.
    pub excluded: Option<String>,
    /// What is known of it beside its facts.
    pub notes: ExtractNotes,
}

/// What kind of document was fetched.
pub fn media_of(fetched: &Fetched) -> sniff::Media {
    sniff::media_of(fetched.header("content-type"), is_nosniff(fetched), &fetched.body)
}

fn is_nosniff(fetched: &Fetched) -> bool {
    let header = fetched.header("x-content-type-options");
    header.is_some_and(|value| value.eq_ignore_ascii_case("nosniff"))
}

/// Reads a document that was fetched, and takes in what another process has read of it.
pub fn read(
    web: &WebJob,
    entry: &Entry,
    fetched: &Fetched,
    extracted: Option<ExtractResult>,
) -> ParsedDocument {
    let mut listed = ListLinks::default();
    let mut facts = facts_of(web, &entry.docid, fetched, &mut listed);
    let ListLinks { more, is_index, bytes } = listed;
    let notes = extract::take(extracted, &mut facts, &entry.docid, &web.spec.policy);
    let mut targets = targets_of(web, &entry.docid, entry.standing(), &facts, &more);
    if web.feeds && entry.hops == 0 {
        announce(web, &entry.docid, &fetched.body, &mut targets);
    }
    let length = i64::try_from(fetched.body.len()).unwrap_or(i64::MAX);
    // What pages need is kept whatever it says of itself: nobody finds it.
    let is_page = !entry.looked_at_as().is_requisite();
    let noindex = is_page && facts.directives.noindex && web.spec.meta_robots;
    let judge = || web.scope.judge_content(&facts.title, &facts.text).map(str::to_owned);
    let excluded = if is_page { judge() } else { None };
    let list_bytes = bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    ParsedDocument { facts, targets, is_index, list_bytes, length, noindex, excluded, notes }
}

/// Hands the articles of a feed what it says of them.
fn announce(web: &WebJob, url: &str, body: &[u8], targets: &mut [Target]) {
    let Ok(mut base) = Resolver::new(url, &web.spec.policy) else { return };
    let mut announced: HashMap<String, Data> = HashMap::new();
    for (href, data) in feed_connector::announced(url, body) {
        if let Ok(found) = base.resolve(&href) {
            announced.entry(found.to_owned()).or_default().extend(data);
        }
    }
    for target in targets {
        target.data = announced.remove(&target.url).unwrap_or_default();
    }
}

/// What a list says beside its facts.
#[derive(Default)]
struct ListLinks {
    /// Links of a long sitemap that facts have no room for.
    more: Vec<Link>,
    /// Whether it names other lists.
    is_index: bool,
    /// Its bytes, unpacked, if it is a sitemap or an index. Feeds are pages: blogs have one for
    /// each article.
    bytes: Option<usize>,
}

fn facts_of(web: &WebJob, url: &str, fetched: &Fetched, beyond: &mut ListLinks) -> Facts {
    let body = &fetched.body[..];
    let content_type = fetched.header("content-type");
    let nosniff = is_nosniff(fetched);
    let directives = fetched
        .headers
        .get_all("x-robots-tag")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .fold(Directives::default(), |all, value| {
            all.with(header_directives(value, web.spec.product()))
        });
    let media = sniff::media_of(content_type, nosniff, body);
    if media.kind == sniff::ContentKind::Html {
        let mut input = Input::new(body, url, &web.spec.policy);
        input.content_type = content_type;
        input.nosniff = nosniff;
        input.directives = directives;
        input.agent = web.spec.product();
        input.requisites = web.requisites;
        return html::extract(&input);
    }
    let mut facts = Facts {
        media_type: media.essence.clone().into_owned(),
        directives,
        content_hash: fingerprint::content_hash(body),
        ..Facts::default()
    };
    match media.kind {
        sniff::ContentKind::Xml | sniff::ContentKind::Feed => {
            read_lists(web, url, body, &mut facts, beyond)
        }
        sniff::ContentKind::Text => {
            let encoding = charset::decide(body, content_type).encoding;
            facts.charset = encoding.name().to_owned();
            let text = charset::decode(body, encoding);
            facts.text = text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
            facts.truncated.text = facts.text.len() < text.len();
            if web.requisites && media.essence == STYLE_SHEET {
                read_style_sheet(web, url, body, content_type, &mut facts);
            }
        }
        _ => {}
    }
    facts.text_hash = fingerprint::text_hash(&facts.text);
    facts.simhash = fingerprint::simhash(&facts.text);
    facts
}

/// What a style sheet needs.
fn read_style_sheet(
    web: &WebJob,
    url: &str,
    body: &[u8],
    content_type: Option<&str>,
    facts: &mut Facts,
) {
    let text = css::decode(body, content_type, None);
    let Requisites { list, is_cut } = requisites::of_style_sheet(&text, url, &web.spec.policy);
    (facts.requisites, facts.truncated.requisites) = (list, is_cut);
}

/// Links of a sitemap or a feed.
fn read_lists(web: &WebJob, url: &str, body: &[u8], facts: &mut Facts, beyond: &mut ListLinks) {
    let Ok(mut base) = Resolver::new(url, &web.spec.policy) else { return };
    let mut push = |href: &str, anchor: &str, kind| {
        let Ok(found) = base.resolve(href) else { return };
        let (url, anchor) = (found.to_owned(), anchor.to_owned());
        let link = Link { url, anchor, kind, rel: Rel::default() };
        if facts.links.len() < LINKS_MAX {
            facts.links.push(link);
        } else {
            facts.truncated.links = true;
            beyond.more.push(link);
        }
    };
    let listed = sitemap::read(body);
    let is_index = listed.kind == sitemap::SitemapKind::Index;
    for entry in &listed.entries {
        push(&entry.loc, "", LinkKind::Sitemap);
    }
    if listed.entries.is_empty()
        && let Some(feed) = feed::read(body)
    {
        for entry in &feed.entries {
            push(&entry.url, &entry.title, LinkKind::Feed);
        }
        facts.title = feed.title;
    }
    let is_list = is_index || listed.kind == sitemap::SitemapKind::UrlSet;
    beyond.bytes = is_list.then_some(listed.bytes.max(body.len()));
    beyond.is_index = is_index;
}
