//! The reports and the columns of each, by the names that scripts see.

use serde::{Deserialize, Serialize};

/// Which report.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// Activities, one by one.
    #[default]
    History,
    /// The most activities in a window of time.
    Activity,
    /// The most bytes in a window of time.
    Bandwidth,
    /// How many activities came to which result.
    Results,
    /// Documents, one by one.
    Documents,
    /// How many documents stand where.
    Queue,
}

/// How a column is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Count,
    /// A moment, in milliseconds.
    Time,
    /// A span of time, in milliseconds.
    Span,
    /// A number of bytes.
    Bytes,
    /// A number with a fraction, which follows from another column.
    Rate,
}

/// A column: its name, what it is called on a terminal, and how it is read.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub title: &'static str,
    /// How it is read.
    pub kind: ColumnKind,
}

const fn column(name: &'static str, title: &'static str, kind: ColumnKind) -> Column {
    Column { name, title, kind }
}

const HISTORY: &[Column] = &[
    column("start_ms", "start", ColumnKind::Time),
    column("activity", "activity", ColumnKind::Text),
    column("result", "result", ColumnKind::Text),
    column("bytes", "bytes", ColumnKind::Bytes),
    column("time_ms", "time", ColumnKind::Span),
    column("job", "job", ColumnKind::Text),
    column("identifier", "identifier", ColumnKind::Text),
    column("description", "description", ColumnKind::Text),
];
const ACTIVITY: &[Column] = &[
    column("class", "class", ColumnKind::Text),
    column("start_ms", "start", ColumnKind::Time),
    column("end_ms", "end", ColumnKind::Time),
    column("activities", "activities", ColumnKind::Count),
    column("per_minute", "per minute", ColumnKind::Rate),
];
const BANDWIDTH: &[Column] = &[
    column("class", "class", ColumnKind::Text),
    column("start_ms", "start", ColumnKind::Time),
    column("end_ms", "end", ColumnKind::Time),
    column("bytes", "bytes", ColumnKind::Bytes),
    column("bytes_per_s", "bytes/s", ColumnKind::Rate),
];
const RESULTS: &[Column] = &[
    column("class", "class", ColumnKind::Text),
    column("result", "result", ColumnKind::Text),
    column("activities", "activities", ColumnKind::Count),
];
const DOCUMENTS: &[Column] = &[
    column("job", "job", ColumnKind::Text),
    column("state", "state", ColumnKind::Text),
    column("status", "status", ColumnKind::Text),
    column("scheduled_ms", "scheduled", ColumnKind::Time),
    column("action", "action", ColumnKind::Text),
    column("retries", "retries", ColumnKind::Count),
    column("retry_until_ms", "retry until", ColumnKind::Time),
    column("reason", "reason", ColumnKind::Text),
    column("identifier", "identifier", ColumnKind::Text),
];
const QUEUE: &[Column] = &[
    column("class", "class", ColumnKind::Text),
    column("inactive", "inactive", ColumnKind::Count),
    column("processing", "processing", ColumnKind::Count),
    column("expiring", "expiring", ColumnKind::Count),
    column("deleting", "deleting", ColumnKind::Count),
    column("ready_for_processing", "ready", ColumnKind::Count),
    column("ready_for_expiration", "ready to expire", ColumnKind::Count),
    column("waiting_for_processing", "waiting", ColumnKind::Count),
    column("waiting_for_expiration", "waiting to expire", ColumnKind::Count),
    column("waiting_forever", "forever", ColumnKind::Count),
    column("hopcount_exceeded", "too far", ColumnKind::Count),
    column("documents", "documents", ColumnKind::Count),
];

impl Report {
    /// Its columns, in order.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Report::History => HISTORY,
            Report::Activity => ACTIVITY,
            Report::Bandwidth => BANDWIDTH,
            Report::Results => RESULTS,
            Report::Documents => DOCUMENTS,
            Report::Queue => QUEUE,
        }
    }

    /// The column that it is ordered by when nothing else is said; `None` is the order in
    /// which documents arrived.
    pub fn usual_order(self) -> Option<&'static str> {
        match self {
            Report::History => Some("start_ms"),
            Report::Activity | Report::Results => Some("activities"),
            Report::Bandwidth => Some("bytes"),
            Report::Documents => None,
            Report::Queue => Some("documents"),
        }
    }

    /// A column that it can be ordered by.
    pub fn column(self, name: &str) -> Option<&'static Column> {
        self.columns().iter().find(|it| it.name == name && it.kind != ColumnKind::Rate)
    }

    /// Whether it is about what was done in a time.
    pub fn has_time(self) -> bool {
        !matches!(self, Report::Documents | Report::Queue)
    }
}
