//! The routes of the original backlink index, in its own forms: `/api/top`, `/api/pages`,
//! `/api/page`, `/api/links`.
//!
//! Pages of 25; `next` is ours and opaque. A page number alone, as the original's "previous"
//! sends it, is walked to from the beginning, up to [`PAGES_MAX`]; beyond, `next` is the way.
//! Invariants: what is behind the end is empty, and what is not known is not found; nothing
//! here fails for what a caller writes.

use super::reading::found;
use super::{Area, Call, Param, Route, URL, choice, needed, number, reads, text};
use crate::http::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};

/// Entries of a page.
const PAGE: i64 = 25;
/// Pages that a number leads to.
const PAGES_MAX: i64 = 40;

const NEXT: Param = text("next", "where to go on, as an earlier answer says");
const PAGE_NUM: Param = number("pageNum", (0, 1_000_000), "the number of the page");

pub(super) static ROUTES: &[Route] = &[
    reads(
        ("/api/top", Area::Links),
        "The most linked pages of all, as Webindex answers it",
        &[NEXT, PAGE_NUM],
        |it| it.subschema_for::<TopResults>(),
        top,
    ),
    Route {
        may_miss: true,
        ..reads(
            ("/api/pages", Area::Links),
            "The pages of a domain by their in-links, as Webindex answers it",
            &[needed("domain", "the domain"), NEXT, PAGE_NUM],
            |it| it.subschema_for::<Pages>(),
            pages,
        )
    },
    Route {
        may_miss: true,
        ..reads(
            ("/api/page", Area::Links),
            "One page, as Webindex answers it",
            &[URL],
            |it| it.subschema_for::<Page>(),
            page,
        )
    },
    Route {
        may_miss: true,
        ..reads(
            ("/api/links", Area::Links),
            "The links of a page, as Webindex answers it",
            &[
                URL,
                Param {
                    is_required: true,
                    ..choice("linkType", &["in", "out"], "in-links or out-links")
                },
                NEXT,
                PAGE_NUM,
            ],
            |it| it.subschema_for::<Links>(),
            links,
        )
    },
];

/// The most linked pages.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TopResults {
    /// Where to go on; null at the end.
    next: Option<String>,
    page_num: i64,
    results: Vec<Top>,
}

/// A page, and how many link to it.
#[derive(Serialize, JsonSchema)]
struct Top {
    key: String,
    value: u64,
}

/// Pages of a domain.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Pages {
    domain: String,
    /// Where to go on; null at the end.
    next: Option<String>,
    page_num: i64,
    /// Pages that are known of it.
    total: u64,
    pages: Vec<Scored>,
}

/// A page with what it is worth.
#[derive(Serialize, JsonSchema)]
struct Scored {
    url: String,
    score: u64,
}

/// Links of a page.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Links {
    url: String,
    link_type: String,
    /// Where to go on; null at the end.
    next: Option<String>,
    page_num: i64,
    total: u64,
    links: Vec<Link>,
}

/// A link.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Link {
    url: String,
    uri: String,
    anchor_text: String,
}

/// A page.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Page {
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

fn page_num(call: &Call<'_>) -> i64 {
    call.of("pageNum").as_i64().unwrap_or(0)
}

fn written<T: Serialize>(it: T) -> Result<Json, Problem> {
    serde_json::to_value(it).map_err(|error| Problem::internal(error.to_string()))
}

/// The page of a list that is asked for; `ask` asks for one of so many entries from a cursor
/// on, and `list` finds it in the answer.
fn paged(
    call: &Call<'_>,
    ask: impl Fn(Json) -> Result<Json, Problem>,
    list: impl Fn(&Json) -> Json,
) -> Result<(Json, Json), Problem> {
    let at = |limit: i64, cursor: Json| json!({"limit": limit, "cursor": cursor});
    let (next, number) = (call.of("next"), page_num(call));
    if !next.is_null() || number == 0 {
        let answer = ask(at(PAGE, next))?;
        return Ok((list(&answer), answer));
    }
    if number > PAGES_MAX {
        let why = format!("pageNum alone leads to {PAGES_MAX} pages; go on with next");
        return Err(Problem::bad(why));
    }
    let before = ask(at(number * PAGE, Json::Null))?;
    match list(&before)["next"].clone() {
        // Behind the end.
        Json::Null => Ok((json!({"items": [], "next": null}), before)),
        cursor => {
            let answer = ask(at(PAGE, cursor))?;
            Ok((list(&answer), answer))
        }
    }
}

fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list["items"].as_array().into_iter().flatten()
}

fn string(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn top(call: &Call<'_>) -> Result<Json, Problem> {
    let ask = |page| call.ask("top", json!({"by": "incount", "domain": null, "page": page}));
    let (list, _) = paged(call, ask, Json::clone)?;
    let results = items(&list)
        .map(|it| Top { key: string(&it["url"]), value: it["incount"].as_u64().unwrap_or(0) });
    let next = list["next"].as_str().map(str::to_owned);
    written(TopResults { next, page_num: page_num(call), results: results.collect() })
}

fn pages(call: &Call<'_>) -> Result<Json, Problem> {
    let domain = call.of("domain");
    let ask = |page| call.ask("top", json!({"by": "score", "domain": domain, "page": page}));
    let (list, answer) = paged(call, ask, Json::clone)?;
    let Some(total) = answer["pages"].as_u64() else {
        return Err(Problem::missing("nothing is known of this domain"));
    };
    let pages = items(&list)
        .map(|it| Scored { url: string(&it["url"]), score: it["score"].as_u64().unwrap_or(0) });
    written(Pages {
        domain: string(&answer["domain"]),
        next: list["next"].as_str().map(str::to_owned),
        page_num: page_num(call),
        total,
        pages: pages.collect(),
    })
}

fn page(call: &Call<'_>) -> Result<Json, Problem> {
    let answer = found(call.ask("page", json!({"url": call.of("url")}))?)?;
    let page = &answer["page"];
    written(Page {
        url: string(&page["url"]),
        uri: string(&page["uri"]),
        domain: string(&page["domain"]),
        num_inbound: page["incount"].as_u64().unwrap_or(0),
        num_outbound: page["outcount"].as_u64().unwrap_or(0),
        title: page["title"].as_str().map(str::to_owned),
        server: page["server"].as_str().map(str::to_owned),
        crawl_date: page["last_seen_ms"].as_i64(),
    })
}

fn links(call: &Call<'_>) -> Result<Json, Problem> {
    let link_type = call.text("linkType").unwrap_or("in");
    let filter = json!({"since_ms": null, "nofollow": null, "kind": null});
    let (url, list) = (call.of("url"), call.of("linkType"));
    let ask = |page| {
        found(call.ask("links", json!({"url": url, "list": list, "filter": filter, "page": page}))?)
    };
    let (list, answer) = paged(call, ask, |answer| answer[link_type].clone())?;
    let head = &answer["page"];
    let total = if link_type == "in" { &head["incount"] } else { &head["outcount"] };
    let links = items(&list).map(|it| Link {
        url: string(&it["url"]),
        uri: string(&it["uri"]),
        anchor_text: string(&it["anchor"]),
    });
    written(Links {
        url: string(&head["url"]),
        link_type: link_type.to_owned(),
        next: list["next"].as_str().map(str::to_owned),
        page_num: page_num(call),
        total: total.as_u64().unwrap_or(0),
        links: links.collect(),
    })
}
