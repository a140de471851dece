//! Routes that tell what is: search, links, jobs and what they did.

use super::{
    Area, CURSOR, Call, LIMIT, NAME, Param, Route, TIMES, URL, choice, flag, needed, number, reads,
    text, texts,
};
use crate::cli::{domains, hosts, job, links, nodes, page, report, status, top, urls, why};
use crate::http::problem::Problem;
use outputs::search;
use serde_json::{Map, Value as Json, json};

pub(super) static ROUTES: &[Route] = &[
    reads(
        ("/api/v1/search", Area::Search),
        "Documents by their words",
        &[
            needed("q", "what to look for; docs/guide/search.md tells how it is written"),
            number("limit", (1, 100), "hits of a page"),
            CURSOR,
            choice("sort", &["relevance", "date", "links"], "what comes first"),
            flag("duplicates", "show near-duplicates each for itself"),
            flag("facets", "count how hits divide"),
            texts("access", "access tokens of a reader: only what they may see is found"),
            flag("restricted", "only what everybody may see, or what the access tokens show"),
        ],
        |it| it.subschema_for::<search::ask::Answer>(),
        search,
    ),
    reads(
        ("/api/v1/status", Area::Jobs),
        "What there is, who works on it, and how each job stands",
        &[],
        |it| it.subschema_for::<status::Answer>(),
        |call| call.ask("status", Json::Null),
    ),
    reads(
        ("/api/v1/nodes", Area::Jobs),
        "Processes that have worked on the data, the newest first",
        &[LIMIT],
        |it| it.subschema_for::<Vec<nodes::Line>>(),
        |call| call.ask("nodes", json!({"limit": call.or("limit", 100)})),
    ),
    reads(
        ("/api/v1/jobs", Area::Jobs),
        "How jobs stand",
        &[],
        |it| it.subschema_for::<Vec<job::standing::Line>>(),
        |call| call.ask("jobs", json!({"list": {"name": null}})),
    ),
    Route {
        may_miss: true,
        ..reads(
            ("/api/v1/jobs/{name}", Area::Jobs),
            "A job: its definition without secrets, how it stands, its last and its next runs",
            &[NAME],
            |it| it.subschema_for::<job::showing::Shown>(),
            |call| {
                call.job_is_there()?;
                call.ask("jobs", json!({"show": {"name": call.of("name")}}))
            },
        )
    },
    Route {
        may_miss: true,
        ..reads(
            ("/api/v1/jobs/{name}/failed", Area::Jobs),
            "What a job has given up, and why",
            &[NAME, text("reason", "only for this reason"), LIMIT, CURSOR],
            |it| it.subschema_for::<job::failed::Failed>(),
            |call| {
                call.job_is_there()?;
                call.ask(
                    "jobs",
                    json!({"failed": {
                        "name": call.of("name"),
                        "reason": call.of("reason"),
                        "limit": call.or("limit", 100),
                        "cursor": call.of("cursor"),
                    }}),
                )
            },
        )
    },
    Route {
        may_miss: true,
        ..reads(
            ("/api/v1/jobs/{name}/removals", Area::Jobs),
            "What a job is to lose, and whether that is held",
            &[NAME, LIMIT],
            |it| it.subschema_for::<job::removals::Removals>(),
            |call| {
                call.job_is_there()?;
                call.ask(
                    "jobs",
                    json!({"removals": {
                        "name": call.of("name"),
                        "limit": call.or("limit", 100),
                    }}),
                )
            },
        )
    },
    reads(
        ("/api/v1/documents", Area::Jobs),
        "Documents of a job by where they stand",
        &[
            text("job", "the job; may be left out when there is only one"),
            choice(
                "state",
                &["ready", "waiting", "active", "done", "cut", "failed"],
                "where it stands",
            ),
            text("reason", "why it stands there"),
            text("host", "its host"),
            number("status", (0, 999), "the status of the last answer"),
            text("contains", "text that its URL contains"),
            LIMIT,
            CURSOR,
        ],
        |it| it.subschema_for::<urls::Answer>(),
        |call| {
            let names = ["state", "reason", "host", "status", "contains"];
            let filter: Map<String, Json> =
                names.iter().map(|name| ((*name).to_owned(), call.of(name))).collect();
            call.ask(
                "urls",
                json!({
                    "job": call.of("job"),
                    "filter": filter,
                    "limit": call.or("limit", 100),
                    "cursor": call.of("cursor"),
                }),
            )
        },
    ),
    reads(
        ("/api/v1/why", Area::Jobs),
        "Why a URL is stored, or is not",
        &[URL, text("job", "what this job says; without it, every job that knows the URL")],
        |it| it.subschema_for::<why::Answer>(),
        |call| call.ask("why", json!({"url": call.of("url"), "job": call.of("job")})),
    ),
    reads(
        ("/api/v1/hosts", Area::Jobs),
        "Hosts that jobs have met, or one in detail",
        &[
            text("host", "one host in detail"),
            text("job", "only hosts that this job has met"),
            choice("by", &["documents", "errors", "slowest"], "which come first"),
            LIMIT,
            CURSOR,
        ],
        |it| it.subschema_for::<hosts::Answer>(),
        |call| {
            call.ask(
                "hosts",
                json!({
                    "host": call.of("host"),
                    "job": call.of("job"),
                    "by": call.or("by", "documents"),
                    "limit": call.or("limit", 50),
                    "cursor": call.of("cursor"),
                }),
            )
        },
    ),
    Route {
        may_miss: true,
        ..reads(
            ("/api/v1/links", Area::Links),
            "Who links to a page, what it links to, which links it lost",
            &[
                URL,
                choice(
                    "list",
                    &["in", "out", "lost"],
                    "one list; without it, the beginning of each",
                ),
                number("since_ms", TIMES, "only links that are new, or lost, since"),
                flag("nofollow", "only links that ask not to be followed, or only the others"),
                choice("kind", &links::KIND_NAMES, "only links of this kind"),
                LIMIT,
                CURSOR,
            ],
            |it| it.subschema_for::<links::Answer>(),
            |call| {
                let filter = json!({
                    "since_ms": call.of("since_ms"),
                    "nofollow": call.of("nofollow"),
                    "kind": links::kind_of(call.text("kind").unwrap_or_default()),
                });
                let (url, list) = (call.of("url"), call.of("list"));
                let asked =
                    json!({"url": url, "list": list, "filter": filter, "page": paged(call)});
                found(call.ask("links", asked)?)
            },
        )
    },
    Route {
        may_miss: true,
        ..reads(
            ("/api/v1/pages", Area::Links),
            "Everything that is known of one page",
            &[URL],
            |it| it.subschema_for::<page::Answer>(),
            |call| found(call.ask("page", json!({"url": call.of("url")}))?),
        )
    },
    reads(
        ("/api/v1/top", Area::Links),
        "The most linked pages, of all or of a domain",
        &[
            choice(
                "by",
                &["incount", "score"],
                "what counts: in-links, or one more if it was crawled",
            ),
            text("domain", "only pages of this domain"),
            LIMIT,
            CURSOR,
        ],
        |it| it.subschema_for::<top::Answer>(),
        |call| {
            let (by, domain) = (call.or("by", "incount"), call.of("domain"));
            call.ask("top", json!({"by": by, "domain": domain, "page": paged(call)}))
        },
    ),
    reads(
        ("/api/v1/domains", Area::Links),
        "Domains by the number of their pages",
        &[LIMIT, CURSOR],
        |it| it.subschema_for::<domains::Answer>(),
        |call| call.ask("domains", json!({"page": paged(call)})),
    ),
    told(
        "/api/v1/history",
        "What was done, activity by activity, the newest first",
        &[CONNECTION, MATCHING, SINCE, UNTIL, ACTIVITY, RESULT, SORT, ORDER, LIMIT, CURSOR],
        |call| report(call, "history"),
    ),
    told(
        "/api/v1/reports/activity",
        "The most activities in a window of time, for each class of identifiers",
        &[
            CONNECTION, MATCHING, SINCE, UNTIL, ACTIVITY, RESULT, CLASS, WINDOW, SORT, ORDER,
            LIMIT, CURSOR,
        ],
        |call| report(call, "activity"),
    ),
    told(
        "/api/v1/reports/bandwidth",
        "The most bytes in a window of time, for each class of identifiers",
        &[
            CONNECTION, MATCHING, SINCE, UNTIL, ACTIVITY, RESULT, CLASS, WINDOW, SORT, ORDER,
            LIMIT, CURSOR,
        ],
        |call| report(call, "bandwidth"),
    ),
    told(
        "/api/v1/reports/results",
        "Activities by class of identifiers and by result",
        &[
            CONNECTION,
            MATCHING,
            SINCE,
            UNTIL,
            ACTIVITY,
            RESULT,
            CLASS,
            RESULT_CLASS,
            SORT,
            ORDER,
            LIMIT,
            CURSOR,
        ],
        |call| report(call, "results"),
    ),
    told(
        "/api/v1/reports/documents",
        "Documents with their state and status",
        &[CONNECTION, JOBS, MATCHING, STATE, STATUS, SORT, ORDER, LIMIT, CURSOR],
        |call| report(call, "documents"),
    ),
    told(
        "/api/v1/reports/queue",
        "How many documents stand where, by class of identifiers",
        &[CONNECTION, JOBS, MATCHING, STATE, STATUS, CLASS, SORT, ORDER, LIMIT, CURSOR],
        |call| report(call, "queue"),
    ),
];

const CONNECTION: Param =
    text("connection", "only of this connection; may be left out when there is only one");
const JOBS: Param = texts("job", "only of this job");
const MATCHING: Param = text("matching", "only of identifiers that match this expression");
const SINCE: Param = number("since_ms", TIMES, "from this time on");
const UNTIL: Param = number("until_ms", TIMES, "before this time");
const ACTIVITY: Param = texts("activity", "only activities of this name");
const RESULT: Param = text("result", "only results that match this expression");
const CLASS: Param = text("class", "the class is what the first group of this expression matches");
const RESULT_CLASS: Param = text("result_class", "the same for results");
const WINDOW: Param = number("window_ms", (1, 31_536_000_000), "the window of time");
const STATE: Param = texts("state", "only in this state");
const STATUS: Param = texts("status", "only in this status");
const SORT: Param = text("sort", "the column that it is sorted by");
const ORDER: Param = choice("order", &["asc", "desc"], "which way it is sorted");

/// A report.
const fn told(
    path: &'static str,
    about: &'static str,
    params: &'static [Param],
    run: fn(&Call<'_>) -> Result<Json, Problem>,
) -> Route {
    reads((path, Area::Jobs), about, params, |it| it.subschema_for::<report::Answer>(), run)
}

/// The question of a report: what was given goes to the field of its name.
fn report(call: &Call<'_>, report: &str) -> Result<Json, Problem> {
    let mut ask = call.values.clone();
    if let Some(cursor) = ask.remove("cursor") {
        ask.insert("after".into(), cursor);
    }
    ask.insert("report".into(), report.into());
    for name in ["state", "status"] {
        let given = ask.get_mut(name).and_then(Json::as_array_mut);
        // With - where a URL would want an escape for a space.
        for it in given.into_iter().flatten() {
            *it = it.as_str().map_or(Json::Null, |it| it.replace('-', " ").into());
        }
    }
    ask.entry("window_ms").or_insert(report::WINDOW_MS.into());
    call.ask("report", Json::Object(ask))
}

fn search(call: &Call<'_>) -> Result<Json, Problem> {
    let is_restricted = call.of("restricted") == json!(true);
    let tokens = match call.of("access") {
        Json::Null if is_restricted => json!([]),
        tokens => tokens,
    };
    call.ask(
        "search",
        json!({
            "text": call.of("q"),
            "limit": call.or("limit", 10),
            "cursor": call.of("cursor"),
            "order": call.or("sort", "relevance"),
            "duplicates": call.or("duplicates", false),
            "facets": call.or("facets", true),
            "tokens": tokens,
        }),
    )
}

fn paged(call: &Call<'_>) -> Json {
    json!({"limit": call.or("limit", 25), "cursor": call.of("cursor")})
}

/// An answer about a page, unless nothing is known of it.
pub(super) fn found(answer: Json) -> Result<Json, Problem> {
    match answer["page"].is_null() {
        true => Err(Problem::missing("nothing is known of this page")),
        false => Ok(answer),
    }
}
