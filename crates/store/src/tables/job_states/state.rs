//! The fields that say where a job stands, and the names of table 11.24 for them.
//!
//! Invariant: the name that is derived here is the one that the view `jobs` derives, for
//! every combination of fields that the life cycle can reach.

use crate::ids::{NodeId, Run};
use crate::names::names;
use crate::value::{Row, column};
use crate::{Result, Value};

/// What a job is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Phase {
    Inactive,
    ReadyForStartup,
    StartingUp,
    Active,
    ShuttingDown,
    Aborting,
    ReadyForNotify,
    Notifying,
    ReadyForDelete,
    DeleteStartingUp,
    Deleting,
    ReadyForDeleteNotify,
    NotifyingOfDeletion,
}

/// What follows an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Restart {
    None,
    Full,
    Minimal,
}

/// What was under way when an abort came, and has not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AbortedFrom {
    StartingUp,
    ShuttingDown,
}

/// What a run means for the documents that older runs settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// Those that are found again are looked at; the others are cleaned up at the end.
    Full,
    /// All are looked at again.
    Incremental,
    /// Those that are found again are looked at; the others stay.
    Partial,
    /// Only what seeding names is looked at.
    ChangesOnly,
}

names!(Phase of "a row of job_states" {
    Inactive = "inactive",
    ReadyForStartup = "ready for startup",
    StartingUp = "starting up",
    Active = "active",
    ShuttingDown = "shutting down",
    Aborting = "aborting",
    ReadyForNotify = "ready for notify",
    Notifying = "notifying",
    ReadyForDelete = "ready for delete",
    DeleteStartingUp = "delete starting up",
    Deleting = "deleting",
    ReadyForDeleteNotify = "ready for delete notify",
    NotifyingOfDeletion = "notifying of deletion",
});
names!(Restart of "a row of job_states" { None = "none", Full = "full", Minimal = "minimal" });
names!(AbortedFrom of "a row of job_states" { StartingUp = "starting up", ShuttingDown = "shutting down" });
names!(RunKind of "a row of job_states" {
    Full = "full",
    Incremental = "incremental",
    Partial = "partial",
    ChangesOnly = "changes only",
});

/// Where a job stands. What each field means for the others is the life cycle's affair.
#[derive(Debug, Clone, PartialEq, Eq)]
// tidy: wide a row of `job_states`
pub struct JobState {
    /// What it is about.
    pub phase: Phase,
    /// Whether its start-up is for a minimal run.
    pub minimal: bool,
    /// Somebody has paused it.
    pub paused: bool,
    /// Its window is closed.
    pub waiting: bool,
    /// It is paused or waits, and documents are still being worked on.
    pub stopping: bool,
    /// It was paused or waited, and is about to go on.
    pub resuming: bool,
    /// Its seeds are being asked for while it runs.
    pub seeding: bool,
    /// What an abort waits for.
    pub aborted_from: Option<AbortedFrom>,
    /// What follows the abort.
    pub restart: Restart,
    /// Whether its repository connector is registered, and those of its transformations.
    pub repository_present: bool,
    /// Whether its output connectors are registered.
    pub outputs_present: bool,
    /// The current or last run; 0 before the first.
    pub run: Run,
    /// What that run means for older documents.
    pub run_kind: RunKind,
    /// Who attends to it, or does what is transient.
    pub node: Option<NodeId>,
    /// When the run began.
    pub start_ms: Option<i64>,
    /// When it ended well.
    pub end_ms: Option<i64>,
    /// Why it was aborted.
    pub error: Option<String>,
    /// When its window ends.
    pub window_end_ms: Option<i64>,
    /// How far seeding has come, in the connector's words; `None` is "nowhere".
    pub seeding_version: Option<String>,
    /// When it was seeded last; 0 for never.
    pub last_check_ms: i64,
    /// From when on its schedule is looked at.
    pub last_ms: Option<i64>,
    /// When it is seeded again.
    pub reseed_ms: Option<i64>,
    /// When repeated trouble of the job itself is a failure.
    pub fail_ms: Option<i64>,
    /// How often such trouble may come again.
    pub failcount: Option<i64>,
    /// What is decided about removals that are marked.
    pub removals: RemovalRounds,
}

/// What is decided about the removals of a job that are marked, by the round in which they
/// were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemovalRounds {
    /// The round that new marks get; it grows with every decision.
    pub current: i64,
    /// Marks up to this round are swept.
    pub released: i64,
    /// Marks up to this round are swept because a person has approved it.
    pub approved: i64,
    /// Marks up to this round wait for a person.
    pub held: i64,
    /// Since when they do.
    pub held_ms: Option<i64>,
    /// The run is over, and only what a person has approved is swept.
    pub only: bool,
}

impl Default for RemovalRounds {
    fn default() -> RemovalRounds {
        RemovalRounds { current: 1, released: 0, approved: 0, held: 0, held_ms: None, only: false }
    }
}

pub(super) const STATE: &str = "phase, minimal, paused, waiting, stopping, resuming, seeding, aborting_from, \
                     restart, repository_present, outputs_present, run, run_kind, node, starttime, \
                     endtime, errortext, windowend, seedingversion, lastchecktime, lasttime, \
                     reseedtime, failtime, failcount, removal_round, released_round, \
                     approved_round, held_round, held_ms, removals_only";

impl Default for JobState {
    /// A job that has never run.
    fn default() -> JobState {
        JobState {
            phase: Phase::Inactive,
            minimal: false,
            paused: false,
            waiting: false,
            stopping: false,
            resuming: false,
            seeding: false,
            aborted_from: None,
            restart: Restart::None,
            repository_present: true,
            outputs_present: true,
            run: Run(0),
            run_kind: RunKind::Full,
            node: None,
            start_ms: None,
            end_ms: None,
            error: None,
            window_end_ms: None,
            seeding_version: None,
            last_check_ms: 0,
            last_ms: None,
            reseed_ms: None,
            fail_ms: None,
            failcount: None,
            removals: RemovalRounds::default(),
        }
    }
}

impl JobState {
    /// Whether its run is under way.
    pub fn is_active(&self) -> bool {
        self.phase == Phase::Active
    }

    /// The name that table 11.24 has for it; the view `jobs` says the same.
    pub fn name(&self) -> String {
        let minimal = if self.minimal { "MINIMAL" } else { "" };
        let no_output = if self.outputs_present { "" } else { "_NOOUTPUT" };
        match self.phase {
            Phase::Inactive => "INACTIVE".into(),
            Phase::ReadyForStartup => format!("READYFORSTARTUP{minimal}"),
            Phase::StartingUp => format!("STARTINGUP{minimal}"),
            Phase::Active => self.active_name(),
            Phase::ShuttingDown => "SHUTTINGDOWN".into(),
            Phase::Aborting => self.aborting_name(),
            Phase::ReadyForNotify => "READYFORNOTIFY".into(),
            Phase::Notifying => "NOTIFYINGOFCOMPLETION".into(),
            Phase::ReadyForDelete => format!("READYFORDELETE{no_output}"),
            Phase::DeleteStartingUp => "DELETESTARTINGUP".into(),
            Phase::Deleting => format!("DELETING{no_output}"),
            Phase::ReadyForDeleteNotify => "READYFORDELETENOTIFY".into(),
            Phase::NotifyingOfDeletion => "NOTIFYINGOFDELETION".into(),
        }
    }

    fn active_name(&self) -> String {
        let base = match (self.paused, self.waiting, self.stopping) {
            _ if self.resuming => "RESUMING",
            (true, true, true) => "PAUSINGWAITING",
            (true, true, false) => "PAUSEDWAIT",
            (true, false, true) => "PAUSING",
            (true, false, false) => "PAUSED",
            (false, true, true) => "ACTIVEWAITING",
            (false, true, false) => "ACTIVEWAIT",
            (false, false, _) => "ACTIVE",
        };
        let seeding = if self.seeding { "SEEDING" } else { "" };
        let missing = match (self.repository_present, self.outputs_present) {
            _ if base != "ACTIVE" => "",
            (false, false) => "_NEITHER",
            (false, true) => "_UNINSTALLED",
            (true, false) => "_NOOUTPUT",
            (true, true) => "",
        };
        format!("{base}{seeding}{missing}")
    }

    fn aborting_name(&self) -> String {
        let base = match (self.aborted_from, self.restart) {
            (Some(AbortedFrom::ShuttingDown), Restart::None) => "ABORTINGSHUTTINGDOWN",
            (Some(AbortedFrom::StartingUp), _) => "ABORTINGSTARTINGUP",
            _ => "ABORTING",
        };
        let restart = if self.restart == Restart::None { "" } else { "FORRESTART" };
        let seeding = if self.seeding && self.aborted_from.is_none() { "SEEDING" } else { "" };
        let minimal = if self.restart == Restart::Minimal { "MINIMAL" } else { "" };
        format!("{base}{restart}{seeding}{minimal}")
    }

    pub(super) fn from_row(row: &Row<'_>, at: usize) -> Result<JobState> {
        Ok(JobState {
            phase: row.get(at + column!(STATE, "phase"))?,
            minimal: row.get(at + column!(STATE, "minimal"))?,
            paused: row.get(at + column!(STATE, "paused"))?,
            waiting: row.get(at + column!(STATE, "waiting"))?,
            stopping: row.get(at + column!(STATE, "stopping"))?,
            resuming: row.get(at + column!(STATE, "resuming"))?,
            seeding: row.get(at + column!(STATE, "seeding"))?,
            aborted_from: row.get(at + column!(STATE, "aborting_from"))?,
            restart: row.get(at + column!(STATE, "restart"))?,
            repository_present: row.get(at + column!(STATE, "repository_present"))?,
            outputs_present: row.get(at + column!(STATE, "outputs_present"))?,
            run: row.get(at + column!(STATE, "run"))?,
            run_kind: row.get(at + column!(STATE, "run_kind"))?,
            node: row.get(at + column!(STATE, "node"))?,
            start_ms: row.get(at + column!(STATE, "starttime"))?,
            end_ms: row.get(at + column!(STATE, "endtime"))?,
            error: row.get(at + column!(STATE, "errortext"))?,
            window_end_ms: row.get(at + column!(STATE, "windowend"))?,
            seeding_version: row.get(at + column!(STATE, "seedingversion"))?,
            last_check_ms: row.get(at + column!(STATE, "lastchecktime"))?,
            last_ms: row.get(at + column!(STATE, "lasttime"))?,
            reseed_ms: row.get(at + column!(STATE, "reseedtime"))?,
            fail_ms: row.get(at + column!(STATE, "failtime"))?,
            failcount: row.get(at + column!(STATE, "failcount"))?,
            removals: RemovalRounds {
                current: row.get(at + column!(STATE, "removal_round"))?,
                released: row.get(at + column!(STATE, "released_round"))?,
                approved: row.get(at + column!(STATE, "approved_round"))?,
                held: row.get(at + column!(STATE, "held_round"))?,
                held_ms: row.get(at + column!(STATE, "held_ms"))?,
                only: row.get(at + column!(STATE, "removals_only"))?,
            },
        })
    }

    pub(super) fn to_row(&self) -> [Value<'_>; 30] {
        [
            self.phase.name().into(),
            self.minimal.into(),
            self.paused.into(),
            self.waiting.into(),
            self.stopping.into(),
            self.resuming.into(),
            self.seeding.into(),
            self.aborted_from.map(AbortedFrom::name).into(),
            self.restart.name().into(),
            self.repository_present.into(),
            self.outputs_present.into(),
            self.run.into(),
            self.run_kind.name().into(),
            self.node.into(),
            self.start_ms.into(),
            self.end_ms.into(),
            (&self.error).into(),
            self.window_end_ms.into(),
            (&self.seeding_version).into(),
            self.last_check_ms.into(),
            self.last_ms.into(),
            self.reseed_ms.into(),
            self.fail_ms.into(),
            self.failcount.into(),
            self.removals.current.into(),
            self.removals.released.into(),
            self.removals.approved.into(),
            self.removals.held.into(),
            self.removals.held_ms.into(),
            self.removals.only.into(),
        ]
    }
}
