//! Reports: what was done (history, maxima of activity and bandwidth, results) and where
//! documents stand (one by one, or counted).
//!
//! A report is a [`columns::Report`] with its columns; `source` finds whose rows are meant, and
//! each report makes rows of them. Invariants: memory is bounded, however many rows there are;
//! an answer is exact for the time that it says it covers; unless it is asked to, it looks at no
//! more than [`ROWS_MAX`] rows.

pub mod classes;
pub mod columns;
pub mod documents;
pub mod history;
pub mod queue;
pub mod results;
pub mod selection;
pub mod source;
pub mod windows;

use crate::refusal::require;
use crate::verbs::Verb;
use crate::verbs::access::{Area, Caller, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::paging::{LIST_LIMIT_MAX, TIME_MS_MAX};
use crate::verbs::status::outages;
use clap::ValueEnum;
use columns::Report;
use schemars::JsonSchema;
use selection::Row;
use serde::{Deserialize, Serialize};
use store::clock;
use store::tables::outages::Outage;

/// Rows that a report looks at unless it is told to look at all: what both databases
/// answer within a fifth of a second.
pub const ROWS_MAX: u64 = 25_000;
/// Rows of one answer where no limit is given.
pub const ROWS: u32 = 20;
/// The window of the maxima where none is given.
pub const WINDOW_MS: i64 = 300_000;
/// The longest window: a year.
const WINDOW_MS_MAX: i64 = 31_536_000_000;

/// What was done, and where documents stand.
pub struct Reports;

/// Which way a list is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RowOrder {
    /// The smallest first
    Asc,
    /// The largest first
    Desc,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// tidy: wide every field is a parameter of a report, and no report takes all
pub struct ReportRequest {
    pub report: Report,
    /// Only this connection; can be omitted if there is only one
    pub connection: Option<String>,
    /// Only this job; can be repeated
    pub job: Vec<String>,
    /// Only identifiers that match this regular expression
    #[serde(rename = "match")]
    pub matching: Option<String>,
    /// From this time on
    #[schemars(range(min = 0, max = TIME_MS_MAX))]
    pub since_ms: Option<i64>,
    /// Before this time
    #[schemars(range(min = 0, max = TIME_MS_MAX))]
    pub until_ms: Option<i64>,
    /// Only activities of this type; can be repeated
    pub activity: Vec<String>,
    /// Only results that match this regular expression
    pub result: Option<String>,
    /// Group identifiers by what the first group of this regular expression matches
    pub class: Option<String>,
    /// Group results by what the first group of this regular expression matches
    pub result_class: Option<String>,
    /// Length of the time window
    #[schemars(range(min = 1, max = WINDOW_MS_MAX))]
    pub window_ms: i64,
    /// Only documents of this state, with - for a space; can be repeated
    pub state: Vec<String>,
    /// Only documents of this status, with - for a space; can be repeated
    pub status: Vec<String>,
    /// The state as it will be after this duration
    #[schemars(range(min = 0, max = TIME_MS_MAX))]
    pub after_span_ms: i64,
    /// Column to sort by
    pub sort: Option<String>,
    /// Sort order
    pub order: Option<RowOrder>,
    /// Number of rows to list
    #[schemars(range(min = 1, max = LIST_LIMIT_MAX))]
    pub limit: Option<u32>,
    /// Cursor of the next or previous page, from an earlier answer
    pub cursor: Option<String>,
    /// Read every row, however long that takes
    pub whole: bool,
}

impl Default for ReportRequest {
    fn default() -> ReportRequest {
        ReportRequest {
            report: Report::default(),
            connection: None,
            job: Vec::new(),
            matching: None,
            since_ms: None,
            until_ms: None,
            activity: Vec::new(),
            result: None,
            class: None,
            result_class: None,
            window_ms: WINDOW_MS,
            state: Vec::new(),
            status: Vec::new(),
            after_span_ms: 0,
            sort: None,
            order: None,
            limit: None,
            cursor: None,
            whole: false,
        }
    }
}

impl ReportRequest {
    /// Rows of the answer at most.
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(ROWS).clamp(1, LIST_LIMIT_MAX) as usize
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportResponse {
    pub report: Report,
    pub connection: String,
    /// The time that is covered: from then on, or from the beginning.
    pub since_ms: Option<i64>,
    /// Before then, or up to now.
    pub until_ms: Option<i64>,
    pub rows: Vec<Row>,
    /// How many rows were looked at, where rows were looked at.
    pub walked: u64,
    /// To go on with; `null` at the end.
    pub next: Option<String>,
    /// To go back with; `null` at the beginning.
    pub previous: Option<String>,
    /// What cannot be reached now and holds jobs of the connection up.
    #[serde(default)]
    pub outages: Vec<Outage>,
}

impl Verb for Reports {
    const NAME: &'static str = "report";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = ReportRequest;
    type Response = ReportResponse;

    fn answer(context: &VerbContext, mut request: ReportRequest) -> anyhow::Result<ReportResponse> {
        for name in request.state.iter_mut().chain(&mut request.status) {
            *name = name.replace('-', " ");
        }
        let source = source::ReportQuery::open(&context.db, &request, clock::now_ms())?;
        let mut response = match request.report {
            Report::History => history::answer(&source)?,
            Report::Activity | Report::Bandwidth => windows::answer(&source)?,
            Report::Results => results::answer(&source)?,
            Report::Documents => documents::answer(&source)?,
            Report::Queue => queue::answer(&source)?,
        };
        let (doing, now_ms) = (context.doing.clone(), source.now_ms);
        let away = context.db.read(move |tx| outages::current(tx, doing.as_deref(), now_ms))?;
        let concerns = |it: &Outage| source.jobs.values().any(|job| it.jobs.contains(&job.name));
        response.outages = away.into_iter().filter(concerns).collect();
        Ok(response)
    }

    fn check_caller(request: &ReportRequest, _: &Caller) -> anyhow::Result<()> {
        let why = "a report over all rows may take long, and is only available where the data is";
        require!(!request.whole, "{why}");
        Ok(())
    }
}
