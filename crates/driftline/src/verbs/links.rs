//! The links of a page: who links to it with which words, what it links to, and which links it
//! lost, when and why.
//!
//! Invariant: an answer shows lists page by page; a cursor belongs to the list that gave it.

pub mod domains;
pub mod export;
pub mod find;
pub mod kinds;
pub mod page;
pub mod retention;
#[cfg(test)]
pub mod scene;
pub mod top;

use super::access::{Area, Needs};
use super::context::VerbContext;
use super::paging::{LinkListPage, TIME_MS_MAX};
use super::registry::{RegisteredVerb, change, verb, verb_at};
use super::{Opens, Verb};
use ::page::facts::Rel;
use find::{Candidates, FoundPage};
use kinds::{LinkKindName, kind_name};
use outputs::links::pages::PageLink;
use outputs::links::paging::Listing;
use outputs::links::queries::{self, Filter, ShownInlink};
use outputs::links::rankings::url_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::sorted::View;

/// The verbs of this room.
pub const VERBS: &[RegisteredVerb] = &[
    verb::<Links>(),
    verb::<page::Page>(),
    verb_at::<top::Top>("/api/v1/top", "The most linked pages, of all or of a domain"),
    verb_at::<domains::Domains>("/api/v1/domains", "Domains by the number of their pages"),
    verb::<export::ExportLinks>(),
    change::<retention::SetRetention>(),
];

/// Who links to a page, what it links to, and which links it lost.
pub struct Links;

impl Verb for Links {
    const NAME: &'static str = "links";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Links));
    const OPENS: Opens = Opens::LinkIndex;
    type Request = LinksRequest;
    type Response = LinksResponse;

    fn answer(context: &VerbContext, request: LinksRequest) -> anyhow::Result<LinksResponse> {
        let (index, candidates) = find::candidates(context, &request.url)?;
        Ok(index.read(move |view| answer_from(view, &candidates, &request))?)
    }
}

/// A list of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkList {
    In,
    Out,
    Lost,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinksRequest {
    /// The page's URL
    pub url: String,
    /// Which list: in-links, out-links or lost in-links; without it, the beginning of each
    pub list: Option<LinkList>,
    /// Only links that are new or were lost since this time
    #[schemars(range(min = 0, max = TIME_MS_MAX))]
    pub since_ms: Option<i64>,
    /// Only links with rel=nofollow, or only those without
    pub nofollow: Option<bool>,
    /// Only links of this kind
    pub kind: Option<LinkKindName>,
    #[serde(flatten)]
    pub page: LinkListPage,
}

impl LinksRequest {
    /// Whether a list is part of the answer. What was lost is, where it is about a time.
    pub fn wants(&self, list: LinkList) -> bool {
        match self.list {
            Some(named) => named == list,
            None => list != LinkList::Lost || self.since_ms.is_some(),
        }
    }

    /// Which links are listed.
    pub fn filter(&self) -> Filter {
        let kind = self.kind.map(LinkKindName::kind);
        Filter { since_ms: self.since_ms, nofollow: self.nofollow, kind }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LinksResponse {
    pub asked: String,
    /// The page; `null` if nothing is known of it.
    pub page: Option<PageHead>,
    /// What is listed is new or lost since then.
    pub since_ms: Option<i64>,
    /// Who links to it; `null` where that was not asked.
    #[serde(rename = "in")]
    pub inward: Option<Listing<LinkLine>>,
    /// What it links to.
    pub out: Option<Listing<LinkLine>>,
    /// Who linked to it, the last one lost first.
    pub lost: Option<Listing<LinkLine>>,
}

/// What is said first of a page.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageHead {
    pub url: String,
    /// The URL in its row form, reversed domain first.
    pub uri: String,
    /// How many pages link to it.
    pub incount: u64,
    /// How many URLs it links to.
    pub outcount: u64,
    /// Whether it was crawled and is there.
    pub crawled: bool,
    /// When a crawl last saw it; `null` if it is not there.
    pub last_seen_ms: Option<i64>,
    /// Why it is gone, and since when.
    pub gone: Option<String>,
    pub gone_ms: Option<i64>,
}

/// A link, as it is listed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkLine {
    /// The page at its other end.
    pub url: String,
    pub uri: String,
    pub anchor: String,
    pub kind: String,
    pub nofollow: bool,
    /// All values of `rel` that are kept: `nofollow`, `ugc`, `sponsored`.
    pub rel: Vec<String>,
    pub first_seen_ms: i64,
    pub last_seen_ms: i64,
    /// When it was lost, and why; `null` while it is there.
    pub lost_ms: Option<i64>,
    pub reason: Option<String>,
}

impl From<ShownInlink> for LinkLine {
    fn from(it: ShownInlink) -> LinkLine {
        let values =
            [(Rel::NOFOLLOW, "nofollow"), (Rel::UGC, "ugc"), (Rel::SPONSORED, "sponsored")];
        let rel = values.iter().filter(|(rel, _)| Rel(it.rel).has(*rel));
        LinkLine {
            rel: rel.map(|(_, name)| (*name).to_owned()).collect(),
            url: it.url,
            uri: it.uri,
            anchor: it.anchor,
            kind: kind_name(it.kind).to_owned(),
            nofollow: it.nofollow,
            first_seen_ms: it.first_seen_ms,
            last_seen_ms: it.last_seen_ms,
            lost_ms: it.lost_ms,
            reason: it.reason,
        }
    }
}

impl PageHead {
    pub fn of(found: &FoundPage) -> PageHead {
        let page = found.page.as_ref();
        let there = page.filter(|(page, _)| page.is_there());
        let gone = page.filter(|(page, _)| !page.is_there());
        PageHead {
            url: url_of(&found.known.node.uri),
            uri: found.known.node.uri.clone(),
            incount: found.known.node.incount,
            outcount: page.map_or(0, |(page, _)| page.links.len() as u64),
            crawled: there.is_some(),
            last_seen_ms: there.map(|(_, seen_ms)| *seen_ms),
            gone: gone.map(|(page, _)| page.gone.clone()),
            gone_ms: gone.map(|(page, _)| page.date_ms),
        }
    }
}

fn answer_from(
    view: &dyn View,
    candidates: &Candidates,
    request: &LinksRequest,
) -> store::Result<LinksResponse> {
    let (asked, since_ms) = (request.url.clone(), request.since_ms);
    let mut response =
        LinksResponse { asked, page: None, since_ms, inward: None, out: None, lost: None };
    let Some(found) = find::find(view, candidates)? else { return Ok(response) };
    response.page = Some(PageHead::of(&found));
    let (known, filter, paging) = (&found.known, &request.filter(), request.page.paging()?);
    if request.wants(LinkList::In) {
        response.inward = Some(lines(queries::inlinks(view, known, filter, &paging)?));
    }
    if request.wants(LinkList::Lost) {
        response.lost = Some(lines(queries::lost(view, known, filter, &paging)?));
    }
    if request.wants(LinkList::Out) {
        let (mut page, seen_ms) = found.page.unwrap_or_default();
        page.links.retain(|link| takes(filter, link));
        response.out = Some(lines(queries::outlinks(&page, seen_ms, &paging)));
    }
    Ok(response)
}

fn lines(listing: Listing<ShownInlink>) -> Listing<LinkLine> {
    let Listing { items, next, previous } = listing;
    Listing { items: items.into_iter().map(LinkLine::from).collect(), next, previous }
}

/// Whether a filter takes an out-link.
fn takes(filter: &Filter, link: &PageLink) -> bool {
    let first_ms = i64::try_from(link.first_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
    filter.since_ms.is_none_or(|since_ms| first_ms >= since_ms)
        && filter.nofollow.is_none_or(|it| it == link.rel.has(Rel::NOFOLLOW))
        && filter.kind.is_none_or(|kind| kind == link.kind)
}
