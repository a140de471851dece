//! The flags of `driftline report`, and the request that they make.
//!
//! Invariant: times are moments in the request, so that whoever answers needs no clock of ours.

use crate::catalog::typed;
use crate::place::Place;
use crate::text::moments;
use crate::verbs::jobs::report::columns::Report;
use crate::verbs::jobs::report::{ReportRequest, RowOrder};
use crate::verbs::paging::LIST_LIMIT_MAX;
use anyhow::{Context, ensure};
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;
use store::tables::document_status::{State, Status};

/// Report activities and the state of documents
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline report history --since 1h --result '^[45]'
Example: driftline report queue --class '^https?://([^/]+)'")]
pub struct Args {
    #[command(subcommand)]
    action: ReportCommand,
}

#[derive(Subcommand)]
enum ReportCommand {
    /// List activities, newest first
    #[command(after_help = "Example: driftline report history --activity fetch --since 1h")]
    History {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        whose: Whose,
        #[command(flatten)]
        what: What,
        #[command(flatten)]
        paging: PagingArgs,
    },
    /// Show the highest number of activities in a time window, for each class of identifiers
    #[command(after_help = "Example: driftline report activity --class '^https?://([^/]+)'")]
    Activity(Maximum),
    /// Show the highest number of bytes in a time window, for each class of identifiers
    #[command(after_help = "Example: driftline report bandwidth --window 1min --since 1d")]
    Bandwidth(Maximum),
    /// Count activities by class of identifiers and by result
    #[command(after_help = "Example: driftline report results --activity fetch --since 7d")]
    Results {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        whose: Whose,
        #[command(flatten)]
        what: What,
        #[command(flatten)]
        class: ResultClassArgs,
        /// Group results by what the first group of this regular expression matches
        #[arg(long, value_name = "REGEX")]
        result_class: Option<String>,
        #[command(flatten)]
        paging: PagingArgs,
    },
    /// List documents with their state and status
    #[command(after_help = "Example: driftline report documents --status waiting-for-processing")]
    Documents {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        whose: Whose,
        #[command(flatten)]
        standing: StatusFilterArgs,
        #[command(flatten)]
        paging: PagingArgs,
    },
    /// Count documents by class of identifiers and by status
    #[command(after_help = "Example: driftline report queue --class '^https?://([^/]+)'")]
    Queue {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        whose: Whose,
        #[command(flatten)]
        standing: StatusFilterArgs,
        #[command(flatten)]
        class: ResultClassArgs,
        #[command(flatten)]
        paging: PagingArgs,
    },
}

#[derive(ClapArgs)]
struct Maximum {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    class: ResultClassArgs,
    /// Length of the window
    #[arg(long, value_name = "SPAN", default_value = "5min")]
    window: String,
    #[command(flatten)]
    paging: PagingArgs,
}

#[derive(ClapArgs)]
struct Whose {
    /// Repository connection; can be omitted if there is only one
    #[arg(long, value_name = "NAME")]
    connection: Option<String>,
    /// Only this job; can be repeated
    #[arg(long, value_name = "NAME")]
    job: Vec<String>,
    /// Only identifiers that match this regular expression; (?i) at its beginning ignores case
    #[arg(long = "match", value_name = "REGEX")]
    matching: Option<String>,
}

#[derive(ClapArgs)]
struct What {
    /// From this time on: a duration before now such as 2h, or a time such as 2026-01-31T12:00
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time; same format as --since
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only activities of this type, such as fetch; can be repeated
    #[arg(long, value_name = "KIND")]
    activity: Vec<String>,
    /// Only results that match this regular expression
    #[arg(long, value_name = "REGEX")]
    result: Option<String>,
}

#[derive(ClapArgs)]
struct ResultClassArgs {
    /// Group identifiers by what the first group of this regular expression matches
    #[arg(long, value_name = "REGEX")]
    class: Option<String>,
}

#[derive(ClapArgs)]
struct StatusFilterArgs {
    /// Only documents of this state: never-processed, previously-processed, out-of-scope
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<String>,
    /// Only documents of this status: inactive, processing, expiring, deleting,
    /// ready-for-processing, ready-for-expiration, waiting-for-processing,
    /// waiting-for-expiration, waiting-forever, hopcount-exceeded
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Vec<String>,
    /// The state as it will be after this duration
    #[arg(long, value_name = "SPAN")]
    after_span: Option<String>,
}

#[derive(ClapArgs)]
struct PagingArgs {
    /// Column to sort by
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Sort order [default: descending for numbers and times, ascending for text]
    #[arg(long, value_enum, value_name = "ORDER")]
    order: Option<RowOrder>,
    /// Number of rows to list [default: 20, or all with --csv]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST_LIMIT_MAX)))]
    limit: Option<u32>,
    /// Cursor of the next or previous page, from an earlier answer
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Read every row, however long that takes
    #[arg(long)]
    whole: bool,
    /// Write CSV to this file, or to standard output for -
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// A request, and what becomes of its answer.
pub struct AskedReport {
    pub place: Place,
    pub request: ReportRequest,
    /// The file that comma-separated values are written to.
    pub csv: Option<PathBuf>,
}

impl Args {
    /// What was asked, at a moment.
    pub fn asked(self, now_ms: i64) -> anyhow::Result<AskedReport> {
        let maximum = |report, it: Maximum| -> anyhow::Result<AskedReport> {
            let window_ms = span("--window", &it.window)?;
            ensure!(window_ms > 0, "--window must be longer than zero");
            let request = ReportRequest {
                report,
                window_ms,
                class: it.class.class,
                ..ReportRequest::default()
            };
            report_args(it.place, it.paging, it.what.into(request, now_ms)?.of(it.whose))
        };
        match self.action {
            ReportCommand::History { place, whose, what, paging } => {
                report_args(place, paging, what.into(ReportRequest::default(), now_ms)?.of(whose))
            }
            ReportCommand::Activity(it) => maximum(Report::Activity, it),
            ReportCommand::Bandwidth(it) => maximum(Report::Bandwidth, it),
            ReportCommand::Results { place, whose, what, class, result_class, paging } => {
                let (report, class) = (Report::Results, class.class);
                let request =
                    ReportRequest { report, class, result_class, ..ReportRequest::default() };
                report_args(place, paging, what.into(request, now_ms)?.of(whose))
            }
            ReportCommand::Documents { place, whose, standing, paging } => {
                let request =
                    ReportRequest { report: Report::Documents, ..ReportRequest::default() };
                report_args(place, paging, standing.into(request)?.of(whose))
            }
            ReportCommand::Queue { place, whose, standing, class, paging } => {
                let request = ReportRequest {
                    report: Report::Queue,
                    class: class.class,
                    ..ReportRequest::default()
                };
                report_args(place, paging, standing.into(request)?.of(whose))
            }
        }
    }
}

fn report_args(
    place: Place,
    paging: PagingArgs,
    request: ReportRequest,
) -> anyhow::Result<AskedReport> {
    let PagingArgs { sort, order, limit, cursor, whole, csv } = paging;
    Ok(AskedReport {
        place,
        request: ReportRequest { sort, order, limit, cursor, whole, ..request },
        csv,
    })
}

impl ReportRequest {
    fn of(self, whose: Whose) -> ReportRequest {
        let Whose { connection, job, matching } = whose;
        ReportRequest { connection, job, matching, ..self }
    }
}

impl What {
    fn into(self, request: ReportRequest, now_ms: i64) -> anyhow::Result<ReportRequest> {
        let moment = |flag: &str, text: Option<String>| -> anyhow::Result<Option<i64>> {
            text.map(|text| moments::moment(&text, now_ms).context(format!("{flag} {text:?}")))
                .transpose()
        };
        let since_ms = moment("--since", self.since)?;
        let until_ms = moment("--until", self.until)?;
        Ok(ReportRequest {
            since_ms,
            until_ms,
            activity: self.activity,
            result: self.result,
            ..request
        })
    }
}

impl StatusFilterArgs {
    fn into(self, request: ReportRequest) -> anyhow::Result<ReportRequest> {
        let after_span_ms = self.after_span.map_or(Ok(0), |text| span("--after-span", &text))?;
        Ok(ReportRequest { state: self.state, status: self.status, after_span_ms, ..request })
    }
}

fn span(flag: &str, text: &str) -> anyhow::Result<i64> {
    let ms = typed::milliseconds(text);
    ms.with_context(|| format!("{flag} is a duration such as 5min, not {text:?}"))
}

/// A state by its name, with - where a shell would want quotes for a space.
fn state(text: &str) -> Result<String, String> {
    let name = text.replace('-', " ");
    let names = || State::ALL.iter().map(|it| it.name().replace(' ', "-")).collect::<Vec<_>>();
    State::named(&name).map(|_| name).ok_or_else(|| format!("states are {}", names().join(", ")))
}

fn status(text: &str) -> Result<String, String> {
    let name = text.replace('-', " ");
    let names = || Status::ALL.iter().map(|it| it.name().replace(' ', "-")).collect::<Vec<_>>();
    Status::named(&name).map(|_| name).ok_or_else(|| format!("statuses are {}", names().join(", ")))
}
