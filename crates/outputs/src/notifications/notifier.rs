//! Tells notification connections what became of jobs, on a thread of its own.
//!
//! Whoever has news leaves a note on the [`Board`], which takes no time. A notice that
//! cannot be told is tried again a few times and then given up; the history of the job's
//! repository connection has what came of it. Invariants: no more than [`NOTES_MAX`] notes
//! and [`PENDING_MAX`] notices are held; ending takes no longer than [`STOP_MS_MAX`] beyond
//! the request that is under way.

use super::{Notice, Notification, open};
use crate::output::Unavailable;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{ConnectionId, IdMaker, JobId, Part};
use store::panics::caught;
use store::tables::history::{self, Activity};
use store::tables::job_states::JobState;
use store::tables::notifications::{self, Occasion};
use store::tables::outlets::{self, OutputOpening};
use store::tables::removals::LEAVING;
use store::tables::{counters, jobs};
use store::{Db, Error, Result, clock};

/// Notes that wait to be looked at.
const NOTES_MAX: usize = 256;
/// Notices that wait to be told again; the oldest are given up for new ones.
const PENDING_MAX: usize = 1_000;
/// How long after the end of the work notices are still told.
const STOP_MS_MAX: i64 = 10_000;
/// How long the thread waits for news at most.
const WAIT_MS_MAX: i64 = 60_000;
/// How soon rows that were away are looked at again.
const AGAIN_MS: i64 = 1_000;
/// The states of documents that a notice counts.
const STATES: [&str; 4] = ["done", "failed", "ready", "waiting"];
/// The waits between the tries of a notice: one more try than waits.
pub const WAITS_MS: [i64; 3] = [2_000, 15_000, 120_000];

/// What telling is done with.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct NotifierContext {
    pub db: Db,
    /// Makes ids for this node, which is registered.
    pub ids: Arc<IdMaker>,
    /// The waits between tries.
    pub waits_ms: Vec<i64>,
}

/// What the thread hears.
enum Message {
    News(Note),
    /// The work is over.
    Stop,
}

/// Something has happened to a job.
struct Note {
    job: JobId,
    occasion: Occasion,
    run: i64,
    started_ms: Option<i64>,
    error: Option<String>,
    at_ms: i64,
}

/// Where news are left.
#[derive(Clone)]
pub struct Board {
    notes: SyncSender<Message>,
}

impl Board {
    /// Leaves a note. Where there are too many it is lost: no job waits.
    pub fn leave(&self, job: JobId, occasion: Occasion, state: &JobState) {
        let note = Note {
            job,
            occasion,
            run: state.run.0,
            started_ms: state.start_ms,
            error: state.error.clone(),
            at_ms: clock::now_ms(),
        };
        let _ = self.notes.try_send(Message::News(note));
    }
}

/// Telling that has not begun. News may be left before.
pub struct PreparedNotifier {
    board: Board,
    incoming: Receiver<Message>,
}

/// A board, and what is made of it.
pub fn ready() -> PreparedNotifier {
    let (notes, incoming) = sync_channel(NOTES_MAX);
    PreparedNotifier { board: Board { notes }, incoming }
}

impl PreparedNotifier {
    /// The board on which others leave notes for this notifier.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Starts the thread that sends notices.
    pub fn start(self, context: NotifierContext) -> Result<Notifier> {
        let incoming = self.incoming;
        let thread = std::thread::Builder::new()
            .name("notifications".to_owned())
            .spawn(move || NotifierLoop::new(context).serve(&incoming))
            .map_err(|error| Error::io("notifications", error))?;
        Ok(Notifier { board: self.board, thread })
    }
}

/// Telling that is under way.
pub struct Notifier {
    board: Board,
    thread: JoinHandle<()>,
}

impl Notifier {
    /// Ends: what is left is tried once more.
    pub fn stop(self) {
        let _ = self.board.notes.send(Message::Stop);
        let _ = self.thread.join();
    }
}

/// A notice for one connection.
struct PendingNotice {
    opening: OutputOpening,
    /// The repository connection of the job, whose history tells of it.
    repository: ConnectionId,
    job: JobId,
    notice: Notice,
    tries: usize,
    due_ms: i64,
}

struct NotifierLoop {
    context: NotifierContext,
    /// News that could not be looked into, because the rows were away.
    unread: Vec<Note>,
    pending: Vec<PendingNotice>,
}

impl NotifierLoop {
    fn new(context: NotifierContext) -> NotifierLoop {
        NotifierLoop { context, unread: Vec::new(), pending: Vec::new() }
    }

    fn serve(mut self, incoming: &Receiver<Message>) {
        loop {
            let next_ms = self.pending.iter().map(|it| it.due_ms).min();
            let wait_ms = next_ms.map_or(WAIT_MS_MAX, |it| it - clock::now_ms());
            let most_ms = if self.unread.is_empty() { WAIT_MS_MAX } else { AGAIN_MS };
            let wait_ms = u64::try_from(wait_ms.clamp(0, most_ms)).unwrap_or(0);
            match incoming.recv_timeout(Duration::from_millis(wait_ms)) {
                Ok(Message::News(note)) => self.unread.push(note),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.look_into();
            self.send(|it| it.due_ms <= clock::now_ms());
        }
        let deadline_ms = clock::now_ms() + STOP_MS_MAX;
        self.look_into();
        self.context.waits_ms.clear();
        self.send(|_| clock::now_ms() < deadline_ms);
    }

    /// Finds out who is to be told of news.
    fn look_into(&mut self) {
        for note in std::mem::take(&mut self.unread) {
            match self.notices_of(&note) {
                Ok(pending) => self.pending.extend(pending),
                Err(error) if error.passes() && self.unread.len() < NOTES_MAX => {
                    self.unread.push(note);
                }
                // Nobody could be told of a job that cannot be read.
                Err(_) => {}
            }
        }
        let surplus = self.pending.len().saturating_sub(PENDING_MAX);
        self.pending.drain(..surplus);
    }

    fn notices_of(&self, note: &Note) -> Result<Vec<PendingNotice>> {
        let job = note.job;
        let found = self.context.db.read(move |tx| {
            let Some(job) = jobs::load(tx, job)? else { return Ok(None) };
            let mut openings = Vec::new();
            for it in notifications::load(tx, job.id)? {
                openings.extend(outlets::opening(tx, it.connection)?);
            }
            let documents = counters::of_job(tx, job.id)?;
            Ok(Some((job, openings, documents)))
        })?;
        let Some((job, openings, documents)) = found else { return Ok(Vec::new()) };
        let is_told = |it: &(String, i64)| {
            STATES.contains(&it.0.as_str()) || (it.0.starts_with(LEAVING) && it.1 > 0)
        };
        let documents = documents.into_iter().filter(is_told).collect();
        let notice = Notice {
            occasion: note.occasion,
            job: job.name.clone(),
            description: job.description.clone(),
            run: note.run,
            started_ms: note.started_ms,
            at_ms: note.at_ms,
            error: note.error.clone(),
            documents,
        };
        // One whose connector is not registered is not told.
        let present = openings.into_iter().filter(|it| it.present);
        let pending = |opening| PendingNotice {
            opening,
            repository: job.connection,
            job: job.id,
            notice: notice.clone(),
            tries: 0,
            due_ms: note.at_ms,
        };
        Ok(present.map(pending).collect())
    }

    /// Tells what is due, and puts back what could not be told.
    fn send(&mut self, is_due: impl Fn(&PendingNotice) -> bool) {
        let (due, rest): (Vec<PendingNotice>, Vec<PendingNotice>) =
            std::mem::take(&mut self.pending).into_iter().partition(is_due);
        self.pending = rest;
        for mut it in due {
            let start_ms = clock::now_ms();
            let outcome = caught(|| tell_one(&it))
                .unwrap_or_else(|error| Err(Unavailable::because(error.to_string())));
            let wait_ms = self.context.waits_ms.get(it.tries).copied();
            match (outcome, wait_ms) {
                (Ok(false), _) => {}
                (Ok(true), _) => self.record(&it, None, start_ms),
                (Err(unavailable), Some(wait_ms)) => {
                    it.tries += 1;
                    let asked_ms = unavailable.retry_ms.unwrap_or(0).min(WAIT_MS_MAX);
                    it.due_ms = clock::now_ms() + wait_ms.max(asked_ms);
                    self.pending.push(it);
                }
                (Err(unavailable), None) => self.record(&it, Some(unavailable.why), start_ms),
            }
        }
    }

    /// Writes what came of a notice. If that cannot be written, it is not.
    fn record(&self, it: &PendingNotice, error: Option<String>, start_ms: i64) {
        let result = if error.is_none() { "OK" } else { "FAILED" };
        let activity = Activity {
            id: self.context.ids.next(),
            connection: it.repository,
            job: Some(it.job),
            kind: format!("notification ({})", it.opening.name),
            entity: format!("{}: {}", it.notice.job, it.notice.occasion.name()),
            bytes: None,
            result: Some(result.to_owned()),
            description: error,
            start_ms,
            end_ms: clock::now_ms(),
        };
        let _ = self
            .context
            .db
            .write(move |tx| history::append(tx, Part(0), std::slice::from_ref(&activity)));
    }
}

/// Tells one connection; false if it does not want to know.
fn tell_one(it: &PendingNotice) -> std::result::Result<bool, Unavailable> {
    let opened = open(&it.opening.classname, &it.opening.config).map_err(Unavailable::because);
    let mut opened: Box<dyn Notification> = opened?;
    if !opened.wants(it.notice.occasion) {
        return Ok(false);
    }
    opened.send(&it.notice).map(|()| true)
}

#[cfg(test)]
mod tests;
