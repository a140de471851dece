//! Notifications: people and programs are told what became of a job; one file and one
//! line for each way.
//!
//! Help, checks, forms and documents come from this list, as from that of the outputs.
//! [`notifier`] tells, on a thread of its own. Invariant: no job waits for a notification.

pub mod email;
pub mod notifier;
pub mod webhook;

use crate::output::Unavailable;
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::notifications::Occasion;

/// An open notification connection.
pub trait Notification: Send {
    /// Whether it can be reached and used: a connection is checked with this.
    fn check(&mut self) -> Result<(), Unavailable>;

    /// Whether it is told on an occasion.
    fn wants(&self, occasion: Occasion) -> bool;

    /// Sends the notice; an error means that it is tried again later.
    fn send(&mut self, notice: &Notice) -> Result<(), Unavailable>;
}

/// What a notification is sent about: the occasion, and the run that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Notice {
    pub occasion: Occasion,
    pub job: String,
    /// What people say of it.
    pub description: String,
    pub run: i64,
    /// When the run began.
    pub started_ms: Option<i64>,
    pub at_ms: i64,
    /// Why the run was aborted.
    pub error: Option<String>,
    /// Documents of the job by state.
    pub documents: Vec<(String, i64)>,
}

/// What the counters of documents that are to be removed begin with.
const LEAVING: &str = store::tables::removals::LEAVING;

impl Notice {
    /// In a sentence, for people.
    pub fn sentence(&self) -> String {
        let Notice { job, run, .. } = self;
        match (self.occasion, &self.error) {
            (Occasion::End, None) => format!("job {job}: run {run} is over"),
            (Occasion::End, Some(error)) => format!("job {job}: run {run} is over: {error}"),
            (Occasion::ErrorAbort, error) => {
                let why = error.as_deref().unwrap_or("something failed");
                format!("job {job}: run {run} was aborted: {why}")
            }
            (Occasion::ManualAbort, _) => format!("job {job}: run {run} was aborted by hand"),
            (Occasion::ManualPause, _) => format!("job {job}: run {run} was paused by hand"),
            (Occasion::SchedulePause, _) => {
                format!("job {job}: run {run} waits for its next window")
            }
            (Occasion::Restart, _) => format!("job {job}: run {run} was aborted for a restart"),
            (Occasion::RemovalsHeld, _) => {
                let leaving = self.documents.iter().filter(|it| it.0.starts_with(LEAVING));
                let many: i64 = leaving.map(|it| it.1).sum();
                format!(
                    "job {job}: run {run} would remove {many} documents, more than it may without \
                     approval; they are kept until someone decides: driftline job removals show \
                     {job}"
                )
            }
        }
    }

    /// As programs read it.
    pub fn to_json(&self) -> Json {
        let documents: serde_json::Map<String, Json> =
            self.documents.iter().map(|(state, count)| (state.clone(), (*count).into())).collect();
        json!({
            "event": self.occasion.name(),
            "job": self.job,
            "description": self.description,
            "run": self.run,
            "started": self.started_ms.and_then(time),
            "time": time(self.at_ms),
            "error": self.error,
            "documents": documents,
        })
    }
}

/// A time as people and programs read it.
pub fn time(ms: i64) -> Option<String> {
    Timestamp::from_millisecond(ms).ok().map(|it| it.to_string())
}

/// Opens a connection with its configuration. The error is a sentence.
pub type Open = fn(&str) -> Result<Box<dyn Notification>, String>;

/// Every notification connector, and what opens its connections.
pub const ALL: &[(Connector, Open)] =
    &[(email::CONNECTOR, email::open), (webhook::CONNECTOR, webhook::open)];

/// Opens a notification connection. The error is a sentence.
pub fn open(class: &str, config: &str) -> Result<Box<dyn Notification>, String> {
    match ALL.iter().find(|it| it.0.name == class) {
        Some((_, open)) => open(config),
        None => Err(format!("this program has no notification connector {class}")),
    }
}

/// On which occasions a connection is told.
const EVENTS: ConfigField = ConfigField {
    name: "events",
    about: "an event to report: end, error abort, manual abort, manual pause, schedule pause, \
         restart or removals-held; without any, all events",
    example: "error abort",
    default: Some(""),
    kind: SettingKind::List,
};

/// Refuses what is no occasion.
fn check_events(events: &[String]) -> Result<(), String> {
    let names = Occasion::ALL.map(Occasion::name);
    match events.iter().find(|it| !names.contains(&it.as_str())) {
        None => Ok(()),
        Some(event) => Err(format!("events: one of {}, not {event:?}", names.join(", "))),
    }
}

/// Whether an occasion is among those that were named; without any, all are.
fn is_among(events: &[String], occasion: Occasion) -> bool {
    events.is_empty() || events.iter().any(|it| it == occasion.name())
}

#[cfg(test)]
mod tests;
