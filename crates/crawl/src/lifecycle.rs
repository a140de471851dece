//! The life cycle of a job: what may happen to it, and where it stands then.
//!
//! Pure. A job's state is a few orthogonal fields ([`JobState`]); the states of table 11.24
//! are combinations of them. Whatever happens is an [`JobEvent`]; [`JobState`] and event give
//! the next state or the reason why the event is refused. Invariants: what is not
//! refused leads to a state that has a name; work that returns late (a start-up, a
//! seeding, a notification) is taken in wherever the job has got to meanwhile, so that
//! no state waits for something that has already happened.

mod removals;
mod startup;

use startup::{seeding, startup};
use store::ids::NodeId;
use store::tables::job_states::{AbortedFrom, JobState, Phase, Restart, RunKind};

/// What may happen to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JobEvent {
    /// Somebody starts the job.
    Start {
        /// Only what changed is asked for, where the connector can tell.
        minimal: bool,
    },
    /// Its schedule starts it.
    ScheduledStart {
        minimal: bool,
        /// When the window ends; `None` lets it run to its end.
        window_end_ms: Option<i64>,
    },
    /// Somebody pauses the job.
    Pause,
    /// Somebody lets it go on.
    Resume,
    /// Somebody aborts the job.
    Abort,
    /// Somebody aborts it and starts it again.
    Restart { minimal: bool },
    /// Somebody deletes it, with its documents.
    Delete,
    /// Something cannot go on: the job is aborted with this text.
    Fail(String),
    /// Its window is over.
    WindowCloses,
    /// Another window has begun.
    WindowOpens { window_end_ms: Option<i64> },
    /// A process begins its start-up.
    StartupBegins {
        node: NodeId,
        /// What the run means for older documents.
        kind: RunKind,
    },
    /// Its documents are prepared and its seeds are queued.
    StartupDone {
        /// How far seeding has come.
        seeding_version: Option<String>,
        /// When it is seeded again.
        reseed_ms: Option<i64>,
    },
    /// The start-up cannot be finished now, or its process has died.
    StartupReturns,
    /// A process asks for its seeds again.
    SeedingBegins { node: NodeId },
    /// The seeds are all queued.
    SeedingDone {
        /// How far seeding has come.
        seeding_version: Option<String>,
        /// When it is seeded again.
        reseed_ms: Option<i64>,
    },
    /// The seeding cannot be finished now, or its process has died.
    SeedingReturns,
    /// None of its documents is being worked on.
    Quiet,
    /// Its documents may be worked on again.
    Resumed,
    /// All of its documents are done.
    QueueDone,
    /// Nothing is left to clean up, and the outputs have everything.
    CleanedUp,
    /// Cleaning up has brought documents back.
    MoreFound,
    /// Removals that are marked stay within the job's limit: they are swept.
    RemovalsReleased,
    /// Removals that are marked go beyond the job's limit: they wait for a person.
    RemovalsHeld,
    /// Somebody approves removals that are held.
    ApproveRemovals,
    /// Somebody has rejected removals that were held, and none is marked any more.
    RemovalsRejected,
    /// A process tells of its end.
    NotifyBegins { node: NodeId },
    /// Everybody has heard of it.
    NotifyDone {
        /// Why somebody could not be told, for good.
        error: Option<String>,
    },
    /// It cannot be told now, or the process that told it has died.
    NotifyReturns,
    /// A process begins to delete it.
    DeleteBegins { node: NodeId },
    /// Its documents may be deleted.
    DeletePrepared,
    /// The process that prepared its deletion has died.
    DeleteReturns,
    /// No documents are left.
    Deleted,
    /// Its connectors were registered or deregistered.
    Connectors {
        /// Whether those of the repository and the transformations are there.
        repository: bool,
        /// Whether those of the outputs are there.
        outputs: bool,
    },
}

/// What a repository connector can tell of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Seeding names all seeds, always.
    All,
    /// Seeding names what is new.
    Add,
    /// Seeding names what is new or changed.
    AddChange,
    /// Seeding names what is new, changed or gone.
    AddChangeDelete,
    /// Seeding names some; what is not named may be there.
    Partial,
    /// As `Add`, and more is found from what is named.
    ChainedAdd,
    /// As `AddChange`, and more is found from what is named.
    ChainedAddChange,
    /// As `AddChangeDelete`, and more is found from what is named.
    ChainedAddChangeDelete,
}

/// What decides about a run beside the connector's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Whether the job is a continuous one.
    pub continuous: bool,
    /// Whether seeding has to begin from nothing.
    pub from_beginning: bool,
    /// Whether a minimal run was asked for.
    pub minimal: bool,
}

/// What a run means for the documents that older runs settled.
pub fn run_kind(model: Model, options: RunOptions) -> RunKind {
    let RunOptions { continuous, from_beginning, minimal } = options;
    match model {
        Model::AddChangeDelete | Model::ChainedAddChangeDelete if from_beginning => {
            RunKind::Incremental
        }
        Model::AddChangeDelete => RunKind::ChangesOnly,
        Model::ChainedAddChangeDelete => RunKind::Partial,
        Model::ChainedAdd | Model::ChainedAddChange if minimal && !from_beginning => {
            RunKind::Partial
        }
        Model::Add | Model::AddChange | Model::Partial if minimal && !from_beginning => {
            RunKind::ChangesOnly
        }
        Model::Partial => RunKind::Incremental,
        _ if !continuous && (model == Model::All || from_beginning) => RunKind::Full,
        _ => RunKind::Incremental,
    }
}

/// Why an event is refused, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EventRefusal(pub String);

/// Where a job stands after an event.
pub fn after(state: &JobState, event: &JobEvent, now_ms: i64) -> Result<JobState, EventRefusal> {
    let mut next = state.clone();
    match event {
        JobEvent::Start { minimal } => start(&mut next, *minimal, None)?,
        JobEvent::ScheduledStart { minimal, window_end_ms } => {
            start(&mut next, *minimal, *window_end_ms)?;
        }
        JobEvent::Pause => pause(&mut next)?,
        JobEvent::Resume => resume(&mut next)?,
        JobEvent::Abort => abort(&mut next, Restart::None)?,
        JobEvent::Restart { minimal } => restart(&mut next, *minimal)?,
        JobEvent::Delete => delete(&mut next)?,
        JobEvent::Fail(text) => fail(&mut next, text)?,
        JobEvent::WindowCloses => window_closes(&mut next)?,
        JobEvent::WindowOpens { window_end_ms } => window_opens(&mut next, *window_end_ms)?,
        JobEvent::Connectors { repository, outputs } => {
            (next.repository_present, next.outputs_present) = (*repository, *outputs);
        }
        JobEvent::StartupBegins { .. }
        | JobEvent::StartupDone { .. }
        | JobEvent::StartupReturns => {
            startup(&mut next, event, now_ms)?;
        }
        JobEvent::SeedingBegins { .. }
        | JobEvent::SeedingDone { .. }
        | JobEvent::SeedingReturns => {
            seeding(&mut next, event, now_ms)?;
        }
        JobEvent::Quiet | JobEvent::Resumed | JobEvent::QueueDone => {
            running(&mut next, event, now_ms)?
        }
        JobEvent::RemovalsReleased
        | JobEvent::RemovalsHeld
        | JobEvent::ApproveRemovals
        | JobEvent::RemovalsRejected => removals::decide(&mut next, event, now_ms)?,
        _ => ending(&mut next, event, now_ms)?,
    }
    Ok(next)
}

/// Refuses an event with what it would need.
fn refuse<T>(state: &JobState, needs: &str) -> Result<T, EventRefusal> {
    Err(EventRefusal(format!("the job is {}; {needs}", state.name())))
}

fn start(
    next: &mut JobState,
    minimal: bool,
    window_end_ms: Option<i64>,
) -> Result<(), EventRefusal> {
    // What was approved, and is being swept, is swept at the end of the new run.
    let only_sweeps = next.phase == Phase::ShuttingDown && next.removals.only;
    if next.phase != Phase::Inactive && !only_sweeps {
        return refuse(next, "only one that is INACTIVE can be started (or restart it)");
    }
    next.phase = Phase::ReadyForStartup;
    next.removals.only = false;
    next.minimal = minimal;
    next.window_end_ms = window_end_ms;
    (next.end_ms, next.error) = (None, None);
    Ok(())
}

fn delete(next: &mut JobState) -> Result<(), EventRefusal> {
    if next.phase != Phase::Inactive {
        return refuse(next, "only one that is INACTIVE can be deleted: abort it first");
    }
    next.phase = Phase::ReadyForDelete;
    // Whoever makes a job of the same documents later begins from nothing.
    next.seeding_version = None;
    Ok(())
}

fn pause(next: &mut JobState) -> Result<(), EventRefusal> {
    if next.phase != Phase::Active || next.paused || next.resuming {
        return refuse(next, "only one that is running or waiting for its window can be paused");
    }
    next.paused = true;
    // One that waits for its window has stopped already, or is about to.
    next.stopping |= !next.waiting;
    Ok(())
}

fn resume(next: &mut JobState) -> Result<(), EventRefusal> {
    if next.phase != Phase::Active || !next.paused {
        return refuse(next, "only one that is paused can be resumed");
    }
    if next.stopping {
        return refuse(next, "it can be resumed when it has stopped, in a moment");
    }
    next.paused = false;
    next.resuming = !next.waiting;
    Ok(())
}

fn abort(next: &mut JobState, restart: Restart) -> Result<(), EventRefusal> {
    match next.phase {
        Phase::ReadyForStartup => {}
        Phase::StartingUp => next.aborted_from = Some(AbortedFrom::StartingUp),
        Phase::Active if next.resuming => {
            return refuse(next, "it is about to resume; it can be aborted in a moment");
        }
        Phase::Active => {}
        Phase::ShuttingDown if restart == Restart::None => {
            next.aborted_from = Some(AbortedFrom::ShuttingDown);
        }
        Phase::Aborting if next.restart != Restart::None && restart == Restart::None => {}
        _ => return refuse(next, "there is nothing to abort"),
    }
    next.phase = Phase::Aborting;
    next.restart = restart;
    (next.paused, next.waiting, next.stopping) = (false, false, false);
    Ok(())
}

fn restart(next: &mut JobState, minimal: bool) -> Result<(), EventRefusal> {
    match next.phase {
        Phase::Inactive => return refuse(next, "it is not running: start it"),
        Phase::ShuttingDown => {
            return refuse(next, "it is cleaning up; abort it and start it again");
        }
        _ => {}
    }
    abort(next, if minimal { Restart::Minimal } else { Restart::Full })
}

fn fail(next: &mut JobState, text: &str) -> Result<(), EventRefusal> {
    // The first error is the one that people need.
    if next.phase != Phase::Aborting || next.error.is_none() {
        next.error = Some(text.to_owned());
    }
    if next.phase == Phase::Aborting {
        next.restart = Restart::None;
        return Ok(());
    }
    next.resuming = false;
    abort(next, Restart::None)
}

fn window_closes(next: &mut JobState) -> Result<(), EventRefusal> {
    let pausing = next.paused && next.stopping;
    if next.phase != Phase::Active || next.waiting || next.resuming || pausing {
        return refuse(next, "a window closes for one that runs or is paused");
    }
    next.waiting = true;
    next.stopping = !next.paused;
    Ok(())
}

fn window_opens(next: &mut JobState, window_end_ms: Option<i64>) -> Result<(), EventRefusal> {
    if next.phase != Phase::Active || !next.waiting || next.stopping {
        return refuse(next, "a window opens for one that waits for it");
    }
    next.waiting = false;
    next.resuming = !next.paused;
    next.window_end_ms = window_end_ms;
    Ok(())
}

fn running(next: &mut JobState, event: &JobEvent, now_ms: i64) -> Result<(), EventRefusal> {
    match (event, next.phase) {
        (JobEvent::Quiet, Phase::Active) if next.stopping => next.stopping = false,
        (JobEvent::Quiet, Phase::Aborting) => return aborted(next, now_ms),
        (JobEvent::Resumed, Phase::Active) if next.resuming => next.resuming = false,
        (JobEvent::QueueDone, Phase::Active) => {
            if next.paused || next.stopping || next.resuming || next.seeding {
                return refuse(next, "it is not the time to end it");
            }
            next.phase = Phase::ShuttingDown;
            next.waiting = false;
        }
        _ => return refuse(next, "that does not concern it now"),
    }
    Ok(())
}

/// An aborted job has come to rest.
fn aborted(next: &mut JobState, now_ms: i64) -> Result<(), EventRefusal> {
    if next.aborted_from == Some(AbortedFrom::StartingUp) || next.seeding {
        return refuse(next, "its seeding has not returned");
    }
    next.aborted_from = None;
    next.removals.only = false;
    next.last_ms = Some(now_ms);
    match next.restart {
        Restart::None => {
            next.phase = Phase::ReadyForNotify;
            next.end_ms = None;
        }
        restart => {
            next.phase = Phase::ReadyForStartup;
            next.minimal = restart == Restart::Minimal;
            next.restart = Restart::None;
            // A restart is a start by hand: it has no window, and all tries are left.
            next.window_end_ms = None;
            (next.fail_ms, next.failcount) = (None, None);
        }
    }
    Ok(())
}

fn ending(next: &mut JobState, event: &JobEvent, now_ms: i64) -> Result<(), EventRefusal> {
    match (event, next.phase) {
        (JobEvent::CleanedUp, Phase::ShuttingDown) => {
            next.phase = Phase::ReadyForNotify;
            next.removals.only = false;
            (next.end_ms, next.last_ms) = (Some(now_ms), Some(now_ms));
        }
        (JobEvent::MoreFound, Phase::ShuttingDown) => next.phase = Phase::Active,
        (JobEvent::NotifyBegins { node }, Phase::ReadyForNotify) => {
            next.phase = Phase::Notifying;
            next.node = Some(*node);
        }
        (JobEvent::NotifyDone { error }, Phase::Notifying) => {
            next.phase = Phase::Inactive;
            next.window_end_ms = None;
            (next.fail_ms, next.failcount) = (None, None);
            if next.error.is_none() {
                next.error.clone_from(error);
            }
        }
        (JobEvent::NotifyReturns, Phase::Notifying) => next.phase = Phase::ReadyForNotify,
        (JobEvent::DeleteBegins { node }, Phase::ReadyForDelete) if next.outputs_present => {
            next.phase = Phase::DeleteStartingUp;
            next.node = Some(*node);
        }
        (JobEvent::DeletePrepared, Phase::DeleteStartingUp) => next.phase = Phase::Deleting,
        (JobEvent::DeleteReturns, Phase::DeleteStartingUp) => next.phase = Phase::ReadyForDelete,
        (JobEvent::Deleted, Phase::Deleting) if next.outputs_present => {
            next.phase = Phase::ReadyForDeleteNotify;
        }
        (JobEvent::NotifyBegins { node }, Phase::ReadyForDeleteNotify) => {
            next.phase = Phase::NotifyingOfDeletion;
            next.node = Some(*node);
        }
        (JobEvent::NotifyReturns, Phase::NotifyingOfDeletion) => {
            next.phase = Phase::ReadyForDeleteNotify;
        }
        _ => return refuse(next, "that does not concern it now"),
    }
    Ok(())
}

#[cfg(test)]
mod liveness_tests;
#[cfg(test)]
mod tests;
