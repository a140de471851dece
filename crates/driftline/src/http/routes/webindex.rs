//! The routes of Webindex, an older backlink index, in its own forms: `/api/top`, `/api/pages`,
//! `/api/page`, `/api/links`.
//!
//! Pages of 25; `next` is ours and opaque. A page number alone, as the "previous" links of
//! Webindex send it, is walked to from the beginning, up to [`PAGES_MAX`]; beyond, `next` is the way.
//! Invariants: what is behind the end is empty, and what is not known is not found; nothing
//! here fails for what a caller writes.

use super::reads::{links_of, page_of, unknown_page};
use super::{Call, Gate, Method, Route};
use crate::http::problem::Problem;
use crate::verbs::access::{Area, Needs};
use crate::verbs::links::page::PageRequest;
use crate::verbs::links::top::{Top, TopRequest};
use crate::verbs::links::{LinkList, LinksRequest};
use crate::verbs::paging::LinkListPage;
use outputs::links::paging::Listing;
use outputs::links::rankings::By;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Entries of a page.
const PAGE: u32 = 25;
/// Pages that a number leads to.
const PAGES_MAX: u32 = 40;
/// The largest number of a page that is understood.
const PAGE_NUM_MAX: u32 = 1_000_000;

pub(super) fn routes() -> Vec<Route> {
    let gate = Gate::Needs(Needs::viewer(Area::Links));
    let get = Method::Get;
    vec![
        Route::of(
            get,
            "/api/top",
            gate,
            "The most linked pages of all, as Webindex answers it",
            top,
        ),
        Route::of(
            get,
            "/api/pages",
            gate,
            "The pages of a domain by their in-links, as Webindex answers it",
            pages,
        )
        .or_missing(),
        Route::of(get, "/api/page", gate, "One page, as Webindex answers it", page).or_missing(),
        Route::of(get, "/api/links", gate, "The links of a page, as Webindex answers it", links)
            .or_missing(),
    ]
}

/// Which page of a list.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListPage {
    /// Where to go on, as an earlier answer says
    next: Option<String>,
    /// The number of the page
    #[serde(default)]
    #[schemars(range(min = 0, max = PAGE_NUM_MAX))]
    page_num: u32,
}

#[derive(Deserialize, JsonSchema)]
struct DomainParams {
    /// The domain
    domain: String,
    #[serde(flatten)]
    page: ListPage,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LinksParams {
    /// The page's URL
    url: String,
    /// In-links or out-links
    link_type: LinkType,
    #[serde(flatten)]
    page: ListPage,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LinkType {
    In,
    Out,
}

/// The most linked pages.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TopResults {
    /// Where to go on; null at the end.
    next: Option<String>,
    page_num: u32,
    results: Vec<WebindexTop>,
}

/// A page, and how many link to it.
#[derive(Serialize, JsonSchema)]
struct WebindexTop {
    key: String,
    value: u64,
}

/// Pages of a domain.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DomainPages {
    domain: String,
    /// Where to go on; null at the end.
    next: Option<String>,
    page_num: u32,
    /// Pages that are known of it.
    total: u64,
    pages: Vec<ScoredPage>,
}

/// A page with its score.
#[derive(Serialize, JsonSchema)]
struct ScoredPage {
    url: String,
    score: u64,
}

/// Links of a page.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PageLinks {
    url: String,
    link_type: LinkType,
    /// Where to go on; null at the end.
    next: Option<String>,
    page_num: u32,
    total: u64,
    links: Vec<WebindexLink>,
}

/// A link in the answers of `webindex`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebindexLink {
    url: String,
    uri: String,
    anchor_text: String,
}

/// A page in the answers of `webindex`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebindexPage {
    url: String,
    uri: String,
    domain: String,
    num_inbound: u64,
    num_outbound: u64,
    title: Option<String>,
    server: Option<String>,
    /// When it was last crawled, in milliseconds since 1970.
    crawl_date: Option<i64>,
}

/// The page of a list that is asked for, with the answer it is of; `ask` asks for one, and `list`
/// finds the list in the answer.
fn paged<A, T>(
    page: &ListPage,
    ask: impl Fn(LinkListPage) -> Result<A, Problem>,
    list: impl Fn(&mut A) -> Listing<T>,
) -> Result<(Listing<T>, A), Problem> {
    let at = |limit, cursor| LinkListPage { limit, cursor };
    if page.next.is_some() || page.page_num == 0 {
        let mut answer = ask(at(PAGE, page.next.clone()))?;
        return Ok((list(&mut answer), answer));
    }
    if page.page_num > PAGES_MAX {
        let why = format!("pageNum reaches at most {PAGES_MAX} pages; continue with next");
        return Err(Problem::bad(why));
    }
    let mut before = ask(at(page.page_num * PAGE, None))?;
    match list(&mut before).next {
        // Behind the end.
        None => Ok((Listing { items: Vec::new(), next: None, previous: None }, before)),
        cursor => {
            let mut answer = ask(at(PAGE, cursor))?;
            Ok((list(&mut answer), answer))
        }
    }
}

/// Takes a list out of an answer.
fn take_items<T>(listing: &mut Listing<T>) -> Listing<T> {
    let (items, next) = (std::mem::take(&mut listing.items), listing.next.take());
    Listing { items, next, previous: listing.previous.take() }
}

fn top(call: &Call<'_>, params: ListPage) -> Result<TopResults, Problem> {
    let ask = |page| call.ask::<Top>(TopRequest { by: By::Incount, domain: None, page });
    let (list, _) = paged(&params, ask, |answer| take_items(&mut answer.listing))?;
    let results = list.items.into_iter().map(|it| WebindexTop { key: it.url, value: it.incount });
    Ok(TopResults { next: list.next, page_num: params.page_num, results: results.collect() })
}

fn pages(call: &Call<'_>, params: DomainParams) -> Result<DomainPages, Problem> {
    let ask = |page| {
        let domain = Some(params.domain.clone());
        call.ask::<Top>(TopRequest { by: By::Score, domain, page })
    };
    let (list, answer) = paged(&params.page, ask, |answer| take_items(&mut answer.listing))?;
    let Some(total) = answer.pages else {
        return Err(Problem::missing("nothing is known about this domain"));
    };
    let pages = list.items.into_iter().map(|it| ScoredPage { url: it.url, score: it.score });
    Ok(DomainPages {
        domain: answer.domain.unwrap_or_default(),
        next: list.next,
        page_num: params.page.page_num,
        total,
        pages: pages.collect(),
    })
}

fn page(call: &Call<'_>, params: PageRequest) -> Result<WebindexPage, Problem> {
    let page = page_of(call, params)?.page.ok_or_else(unknown_page)?;
    Ok(WebindexPage {
        url: page.head.url,
        uri: page.head.uri,
        domain: page.domain,
        num_inbound: page.head.incount,
        num_outbound: page.head.outcount,
        title: page.title,
        server: page.server,
        crawl_date: page.head.last_seen_ms,
    })
}

fn links(call: &Call<'_>, params: LinksParams) -> Result<PageLinks, Problem> {
    let list = match params.link_type {
        LinkType::In => LinkList::In,
        LinkType::Out => LinkList::Out,
    };
    let ask = |page| {
        let (url, list) = (params.url.clone(), Some(list));
        let request = LinksRequest { url, list, since_ms: None, nofollow: None, kind: None, page };
        links_of(call, request)
    };
    let (list, answer) = paged(&params.page, ask, |answer| {
        let list = match params.link_type {
            LinkType::In => &mut answer.inward,
            LinkType::Out => &mut answer.out,
        };
        list.take().unwrap_or(Listing { items: Vec::new(), next: None, previous: None })
    })?;
    let head = answer.page.ok_or_else(unknown_page)?;
    let links = list.items.into_iter();
    let links = links.map(|it| WebindexLink { url: it.url, uri: it.uri, anchor_text: it.anchor });
    Ok(PageLinks {
        url: head.url,
        link_type: params.link_type,
        next: list.next,
        page_num: params.page.page_num,
        total: match params.link_type {
            LinkType::In => head.incount,
            LinkType::Out => head.outcount,
        },
        links: links.collect(),
    })
}
