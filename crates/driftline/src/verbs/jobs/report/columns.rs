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
pub enum Kind {
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
    pub kind: Kind,
}

const fn column(name: &'static str, title: &'static str, kind: Kind) -> Column {
    Column { name, title, kind }
}

const HISTORY: &[Column] = &[
    column("start_ms", "start", Kind::Time),
    column("activity", "activity", Kind::Text),
    column("result", "result", Kind::Text),
    column("bytes", "bytes", Kind::Bytes),
    column("time_ms", "time", Kind::Span),
    column("job", "job", Kind::Text),
    column("identifier", "identifier", Kind::Text),
    column("description", "description", Kind::Text),
];
const ACTIVITY: &[Column] = &[
    column("class", "class", Kind::Text),
    column("start_ms", "start", Kind::Time),
    column("end_ms", "end", Kind::Time),
    column("activities", "activities", Kind::Count),
    column("per_minute", "per minute", Kind::Rate),
];
const BANDWIDTH: &[Column] = &[
    column("class", "class", Kind::Text),
    column("start_ms", "start", Kind::Time),
    column("end_ms", "end", Kind::Time),
    column("bytes", "bytes", Kind::Bytes),
    column("bytes_per_s", "bytes/s", Kind::Rate),
];
const RESULTS: &[Column] = &[
    column("class", "class", Kind::Text),
    column("result", "result", Kind::Text),
    column("activities", "activities", Kind::Count),
];
const DOCUMENTS: &[Column] = &[
    column("job", "job", Kind::Text),
    column("state", "state", Kind::Text),
    column("status", "status", Kind::Text),
    column("scheduled_ms", "scheduled", Kind::Time),
    column("action", "action", Kind::Text),
    column("retries", "retries", Kind::Count),
    column("retry_until_ms", "retry until", Kind::Time),
    column("reason", "reason", Kind::Text),
    column("identifier", "identifier", Kind::Text),
];
const QUEUE: &[Column] = &[
    column("class", "class", Kind::Text),
    column("inactive", "inactive", Kind::Count),
    column("processing", "processing", Kind::Count),
    column("expiring", "expiring", Kind::Count),
    column("deleting", "deleting", Kind::Count),
    column("ready_for_processing", "ready", Kind::Count),
    column("ready_for_expiration", "ready to expire", Kind::Count),
    column("waiting_for_processing", "waiting", Kind::Count),
    column("waiting_for_expiration", "waiting to expire", Kind::Count),
    column("waiting_forever", "forever", Kind::Count),
    column("hopcount_exceeded", "too far", Kind::Count),
    column("documents", "documents", Kind::Count),
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
        self.columns().iter().find(|it| it.name == name && it.kind != Kind::Rate)
    }

    /// Whether it is about what was done in a time.
    pub fn has_time(self) -> bool {
        !matches!(self, Report::Documents | Report::Queue)
    }
}
