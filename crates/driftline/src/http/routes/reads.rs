//! Routes that tell what is, with a form of their own: of one job, of one page, of a report.

use super::{Call, Gate, Method, NoParams, Route, get_plain};
use crate::http::problem::Problem;
use crate::verbs::access::{Area, Needs};
use crate::verbs::jobs::JobRequest;
use crate::verbs::jobs::failed::{FailedDocuments, FailedRequest};
use crate::verbs::jobs::job_status::{Jobs, JobsRequest};
use crate::verbs::jobs::removals::{Removals, RemovalsRequest};
use crate::verbs::jobs::report::columns::Report;
use crate::verbs::jobs::report::{ReportRequest, Reports};
use crate::verbs::jobs::show::ShowJob;
use crate::verbs::links::page::{Page, PageRequest, PageResponse};
use crate::verbs::links::{Links, LinksRequest, LinksResponse};
use crate::verbs::status::Status;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        get_plain::<Status>(
            "/api/v1/status",
            "The state of the data, of the processes that use it, and of every job",
        ),
        of(Area::Jobs, "/api/v1/jobs", "How jobs stand", |call, _: NoParams| {
            call.ask::<Jobs>(JobsRequest { name: None })
        }),
        of(
            Area::Jobs,
            "/api/v1/jobs/{name}",
            "A job: its definition without secrets, its state, its last and its next runs",
            |call, job: JobRequest| {
                call.job_is_there(&job.name)?;
                call.ask::<ShowJob>(job)
            },
        )
        .or_missing(),
        of(
            Area::Jobs,
            "/api/v1/jobs/{name}/failed",
            "The documents that a job has given up on, and why",
            |call, request: FailedRequest| {
                call.job_is_there(&request.name)?;
                call.ask::<FailedDocuments>(request)
            },
        )
        .or_missing(),
        of(
            Area::Jobs,
            "/api/v1/jobs/{name}/removals",
            "The documents that a job is about to remove, and whether the removals are held",
            |call, request: RemovalsRequest| {
                call.job_is_there(&request.name)?;
                call.ask::<Removals>(request)
            },
        )
        .or_missing(),
        of(
            Area::Links,
            "/api/v1/links",
            "Who links to a page, what it links to, which links it lost",
            links_of,
        )
        .or_missing(),
        of(Area::Links, "/api/v1/page", "Everything that is known about a page", page_of)
            .or_missing(),
    ];
    routes.extend(REPORTS.iter().map(report));
    routes
}

/// A route that tells what a viewer of an area may see.
fn of<P, R>(
    area: Area,
    path: &'static str,
    about: &'static str,
    run: fn(&Call<'_>, P) -> Result<R, Problem>,
) -> Route
where
    P: schemars::JsonSchema + for<'de> Deserialize<'de> + 'static,
    R: schemars::JsonSchema + serde::Serialize + 'static,
{
    Route::of(Method::Get, path, Gate::Needs(Needs::viewer(area)), about, run)
}

/// The links of a page that is known.
pub(super) fn links_of(call: &Call<'_>, request: LinksRequest) -> Result<LinksResponse, Problem> {
    let response = call.ask::<Links>(request)?;
    if response.page.is_none() { Err(unknown_page()) } else { Ok(response) }
}

/// A page that is known.
pub(super) fn page_of(call: &Call<'_>, request: PageRequest) -> Result<PageResponse, Problem> {
    let response = call.ask::<Page>(request)?;
    if response.page.is_none() { Err(unknown_page()) } else { Ok(response) }
}

pub(super) fn unknown_page() -> Problem {
    Problem::missing("nothing is known about this page")
}

/// A report's route: which parameters of all reports it takes.
struct ReportRoute {
    report: Report,
    path: &'static str,
    about: &'static str,
    params: &'static [&'static str],
}

const REPORTS: &[ReportRoute] = &[
    ReportRoute {
        report: Report::History,
        path: "/api/v1/reports/history",
        about: "Activities, newest first",
        params: &[
            "connection",
            "match",
            "since_ms",
            "until_ms",
            "activity",
            "result",
            "sort",
            "order",
            "limit",
            "cursor",
        ],
    },
    ReportRoute {
        report: Report::Activity,
        path: "/api/v1/reports/activity",
        about: "The highest number of activities in a time window, for each class of identifiers",
        params: MAXIMUM,
    },
    ReportRoute {
        report: Report::Bandwidth,
        path: "/api/v1/reports/bandwidth",
        about: "The highest number of bytes in a time window, for each class of identifiers",
        params: MAXIMUM,
    },
    ReportRoute {
        report: Report::Results,
        path: "/api/v1/reports/results",
        about: "Activities by class of identifiers and by result",
        params: &[
            "connection",
            "match",
            "since_ms",
            "until_ms",
            "activity",
            "result",
            "class",
            "result_class",
            "sort",
            "order",
            "limit",
            "cursor",
        ],
    },
    ReportRoute {
        report: Report::Documents,
        path: "/api/v1/reports/documents",
        about: "Documents with their state and status",
        params: &[
            "connection",
            "job",
            "match",
            "state",
            "status",
            "sort",
            "order",
            "limit",
            "cursor",
        ],
    },
    ReportRoute {
        report: Report::Queue,
        path: "/api/v1/reports/queue",
        about: "Documents by class of identifiers and by status",
        params: &[
            "connection",
            "job",
            "match",
            "state",
            "status",
            "class",
            "sort",
            "order",
            "limit",
            "cursor",
        ],
    },
];

/// The parameters of the maxima.
const MAXIMUM: &[&str] = &[
    "connection",
    "match",
    "since_ms",
    "until_ms",
    "activity",
    "result",
    "class",
    "window_ms",
    "sort",
    "order",
    "limit",
    "cursor",
];

fn report(it: &'static ReportRoute) -> Route {
    let run = |call: &Call<'_>, request: ReportRequest| {
        call.ask::<Reports>(ReportRequest { report: it.report, ..request })
    };
    let gate = Gate::Needs(Needs::viewer(Area::Jobs));
    Route::of(Method::Get, it.path, gate, it.about, run).only(it.params)
}
