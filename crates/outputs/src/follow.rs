//! Follows the crawl: reads committed chunks in order and hands them to a consumer, which
//! is an index that keeps up with them.
//!
//! One thread for each consumer, woken by every commit of this process and by a poll for
//! those of others. It works on parts whose lease it gets; how far it is stands with the
//! consumer's effect, and is told to the `cursors` table, where the crawl sees how far
//! behind it is.
//!
//! Invariants: a chunk's changes are applied once, in the order of commits; trouble with
//! the index or the store is waited out and said, and loses nothing; a consumer that panics
//! is taken up again from what it has, and does not end the thread.

use crate::delays::Delays;
use crate::rights::{Claimant, Rights};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{CommitNumber, Part};
use store::panics::caught;
use store::tables::leases::Lease;
use store::tables::{cursors, leases, settings};
use store::{Error, Result, clock};

/// Whose commits are followed.
const FOLLOWED: &str = "crawl";
/// How often the `cursors` table is told, unless nothing is left to do.
const TELL_MS: i64 = 100;
/// The first wait after trouble; it doubles up to [`REST_MS_MAX`].
const REST_MS: i64 = 500;
/// The longest wait after trouble: the crawl waits meanwhile.
const REST_MS_MAX: i64 = 5_000;

/// Documents of a batch that are named when they are left out.
const LEFT_OUT_TOLD_MAX: usize = 5;
/// How long a follower tends what is left to do before it ends.
const LAST_MS_MAX: i64 = 10_000;

/// An index that takes the committed chunks of each part in their order.
pub trait Consumer: Send + 'static {
    /// What the leases and the cursor are called.
    fn role(&self) -> &'static str;

    /// Whether one change covers all parts, under the leases of all of them; otherwise each
    /// part is served by itself.
    fn spans_parts(&self) -> bool;

    /// After a batch, commits are gathered for so long: a crawl in full swing costs one
    /// batch for many chunks.
    fn gather_ms(&self) -> i64;

    /// Takes up a part that somebody else may have served: finishes what was left, and
    /// returns the number of the last commit that is in.
    fn take_up(&mut self, lease: &Lease) -> Result<CommitNumber>;

    /// Applies chunks behind where each part is, as many as a batch has room for, and says
    /// how far each part is then.
    fn apply(&mut self, work: &[PartWork]) -> Result<AppliedBatch>;

    /// Whether a part that it has taken up has something to be tended, which needs its lease.
    fn is_to_be_tended(&self, _part: Part) -> Result<bool> {
        Ok(false)
    }

    /// Does what can be done when no chunk is left, a step of it, under the leases that are
    /// held; whether there is more. The last time is before the follower ends.
    fn tend(&mut self, _leases: &[Lease], _is_last: bool) -> Result<bool> {
        Ok(false)
    }
}

/// A part with something to do.
#[derive(Debug, Clone)]
pub struct PartWork {
    /// The right to it.
    pub lease: Lease,
    /// The last commit that is in.
    pub at: CommitNumber,
    /// The last commit there is.
    pub head: CommitNumber,
}

/// What a batch came to.
#[derive(Debug, Default)]
pub struct AppliedBatch {
    /// The last commit that is in, of each part.
    pub reached: Vec<(Part, CommitNumber)>,
    /// When the chunks were committed that are in now.
    pub committed_ms: Vec<i64>,
    /// Documents on which the consumer itself fails, and why: it goes on without them.
    pub left_out: Vec<LeftOut>,
}

/// A document that an index leaves out because of a bug of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LeftOut {
    pub docid: String,
    /// The error in a sentence.
    pub why: String,
}

/// On whose behalf a consumer is served, and how.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct FollowContext {
    pub claimant: Claimant,
    /// How often it looks for what others committed.
    pub poll_ms: i64,
}

/// Who wants to know what the follower waits for, if for anything.
pub type Listener = Arc<dyn Fn(Option<String>) + Send + Sync>;

/// Tells a follower that something was committed.
#[derive(Clone)]
pub struct Wakeup {
    sender: SyncSender<()>,
}

impl Wakeup {
    /// Wakes the follower because a chunk was committed.
    pub fn wake(&self) {
        // One that waits already is enough.
        let _ = self.sender.try_send(());
    }
}

/// A follower that has not begun.
pub struct PreparedFollower {
    wakeup: Wakeup,
    wakeups: Receiver<()>,
}

/// A follower that has not begun, with what wakes it.
pub fn ready() -> PreparedFollower {
    let (sender, wakeups) = sync_channel(1);
    PreparedFollower { wakeup: Wakeup { sender }, wakeups }
}

impl PreparedFollower {
    /// What wakes it when something was committed.
    pub fn wakeup(&self) -> Wakeup {
        self.wakeup.clone()
    }

    /// Starts the thread that follows for `consumer`.
    pub fn start(
        self,
        context: FollowContext,
        consumer: Box<dyn Consumer>,
        listener: Listener,
    ) -> Result<Follower> {
        let parts = context.claimant.db.read(settings::parts)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, wakeups, role) = (stop.clone(), self.wakeups, consumer.role());
        let following = FollowerLoop {
            rights: Rights::new(context.claimant.clone(), role),
            consumer,
            context,
            parts,
            at: BTreeMap::new(),
            reported: BTreeMap::new(),
            told_ms: 0,
            served: None,
            delays: Delays::default(),
            listener,
        };
        let thread = std::thread::Builder::new()
            .name(role.into())
            .spawn(move || following.serve(&wakeups, &stopped))
            .map_err(|error| Error::io(role, error))?;
        Ok(Follower { wakeup: self.wakeup, stop, thread })
    }
}

/// A follower at work.
pub struct Follower {
    wakeup: Wakeup,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Delays>,
}

impl Follower {
    /// Applies what is committed, if that can be done, and ends. Returns how long it took
    /// from the commits of chunks until they were in.
    pub fn stop(self) -> Delays {
        self.stop.store(true, Ordering::SeqCst);
        self.wakeup.wake();
        self.thread.join().unwrap_or_default()
    }
}

struct FollowerLoop {
    context: FollowContext,
    consumer: Box<dyn Consumer>,
    parts: u32,
    rights: Rights,
    /// The last commit that is in, of parts whose lease is held.
    at: BTreeMap<Part, CommitNumber>,
    /// What the `cursors` table was told, and when.
    reported: BTreeMap<Part, CommitNumber>,
    told_ms: i64,
    /// The part that was served last, where parts are served in turn.
    served: Option<Part>,
    /// From the commits of chunks until they are in.
    delays: Delays,
    listener: Listener,
}

impl FollowerLoop {
    fn serve(mut self, wakeups: &Receiver<()>, stop: &AtomicBool) -> Delays {
        let poll_ms = self.context.poll_ms.min(self.context.claimant.lease_ms / 4).max(1);
        let gather_ms = self.consumer.gather_ms();
        let (mut failures, mut rests_until_ms) = (0u32, 0);
        loop {
            let stopping = stop.load(Ordering::SeqCst);
            let began_ms = clock::now_ms();
            if began_ms >= rests_until_ms || stopping {
                match caught(|| self.look(stopping)).flatten() {
                    Ok(()) => {
                        if failures > 0 {
                            (self.listener)(None);
                        }
                        failures = 0;
                    }
                    Err(error) => {
                        let rest_ms = (REST_MS << failures.min(10)).min(REST_MS_MAX);
                        (failures, rests_until_ms) = (failures + 1, clock::now_ms() + rest_ms);
                        let title = cursors::title(self.consumer.role());
                        (self.listener)(Some(format!("{title}: {error}; retrying")));
                    }
                }
            }
            if failures > 0 && self.consumer.spans_parts() {
                // Nobody else can do it, and the crawl is to wait for it.
                self.rights.hold();
            }
            self.rights.keep();
            if stopping {
                self.rights.end();
                return self.delays;
            }
            let gathers_ms = (began_ms + gather_ms - clock::now_ms()).clamp(0, gather_ms);
            if gathers_ms > 0 && woken_within(wakeups, gathers_ms, stop) {
                continue;
            }
            let wait = Duration::from_millis(u64::try_from(poll_ms).unwrap_or(1));
            if let Err(RecvTimeoutError::Disconnected) = wakeups.recv_timeout(wait) {
                self.rights.end();
                return self.delays;
            }
        }
    }

    /// Applies all that is committed in parts that can be had. What is committed meanwhile,
    /// in a part that is done, is gathered for the next look: a crawl in full swing would
    /// otherwise be followed chunk by chunk.
    fn look(&mut self, is_last: bool) -> Result<()> {
        let until_ms = clock::now_ms() + LAST_MS_MAX;
        let mut done = BTreeSet::new();
        loop {
            let work = self.work(&done)?;
            if work.is_empty() {
                self.report(true)?;
                if is_last {
                    self.claim_untended()?;
                }
                let leases = self.rights.leases();
                let tended = caught(|| self.consumer.tend(&leases, is_last)).flatten()?;
                if tended && (!is_last || clock::now_ms() < until_ms) {
                    self.rights.hold();
                    self.rights.keep();
                    // What was committed meanwhile comes before the next step.
                    done.clear();
                    continue;
                }
                return Ok(());
            }
            let outcome = caught(|| self.consumer.apply(&work)).flatten();
            for it in &work {
                let is_lost = matches!(outcome, Err(Error::LeaseLost { .. }));
                self.rights.done(&it.lease, is_lost);
                if outcome.is_err() {
                    // Whoever has it now goes on, or we do from what is in.
                    self.at.remove(&it.lease.part);
                }
            }
            match outcome {
                Err(Error::LeaseLost { .. }) => {}
                outcome => {
                    let applied = outcome?;
                    let now_ms = clock::now_ms();
                    for (part, at) in &applied.reached {
                        let head = work.iter().find(|it| it.lease.part == *part).map(|it| it.head);
                        if head.is_none_or(|head| *at >= head) {
                            done.insert(*part);
                        }
                    }
                    self.at.extend(applied.reached);
                    applied.committed_ms.iter().for_each(|ms| self.delays.count(now_ms - ms));
                    self.tell_of_left_out(&applied.left_out);
                }
            }
            self.rights.keep();
            self.report(false)?;
        }
    }

    /// Says which documents an index has to do without.
    fn tell_of_left_out(&self, left_out: &[LeftOut]) {
        let title = cursors::title(self.consumer.role());
        for it in left_out.iter().take(LEFT_OUT_TOLD_MAX) {
            (self.listener)(Some(format!("{title} leaves out {}: {}", it.docid, it.why)));
        }
        if !left_out.is_empty() {
            (self.listener)(None);
        }
    }

    /// Parts with commits that are not in, but for those that are done.
    fn work(&mut self, done: &BTreeSet<Part>) -> Result<Vec<PartWork>> {
        let parts = self.parts;
        let db = &self.context.claimant.db;
        let heads = db.read(move |tx| leases::last_commits(tx, FOLLOWED, parts))?;
        let heads: Vec<(Part, CommitNumber)> =
            heads.into_iter().filter(|(_, head)| *head > CommitNumber::NONE).collect();
        let is_behind = |part: &Part, head: CommitNumber| {
            !done.contains(part) && self.at.get(part).is_none_or(|at| *at < head)
        };
        let behind: Vec<(Part, CommitNumber)> =
            heads.iter().copied().filter(|(part, head)| is_behind(part, *head)).collect();
        let mut work = Vec::new();
        if !behind.is_empty() && self.consumer.spans_parts() && !self.has_all(&heads)? {
            return Ok(work);
        }
        let (before, behind): (Vec<_>, Vec<_>) =
            behind.into_iter().partition(|(part, _)| self.served.is_some_and(|it| *part <= it));
        for (part, head) in behind.into_iter().chain(before) {
            let Some(lease) = self.rights.claim(part)? else {
                self.at.remove(&part);
                continue;
            };
            // What is known of a part counts only while nobody else had it.
            let is_new = self.rights.is_new(part);
            let at = match self.at.get(&part).filter(|_| !is_new) {
                Some(at) => *at,
                None => caught(|| self.consumer.take_up(&lease)).flatten()?,
            };
            self.at.insert(part, at);
            if at >= head {
                self.rights.done(&lease, false);
                continue;
            }
            work.push(PartWork { lease, at, head });
            if !self.consumer.spans_parts() {
                // One part at a time is as good, and the batch is larger. The others have
                // their turn before this one has another.
                self.served = Some(part);
                break;
            }
        }
        Ok(work)
    }

    /// Takes the leases of parts that were given back, because no chunk came, and that have
    /// something to be tended since.
    fn claim_untended(&mut self) -> Result<()> {
        for part in self.at.keys().copied().collect::<Vec<Part>>() {
            if self.rights.holds(part) || !self.consumer.is_to_be_tended(part)? {
                continue;
            }
            let Some(lease) = self.rights.claim(part)? else {
                self.at.remove(&part);
                continue;
            };
            self.rights.is_new(part);
            let at = caught(|| self.consumer.take_up(&lease)).flatten();
            self.rights.done(&lease, false);
            self.at.insert(part, at?);
        }
        Ok(())
    }

    /// Whether the leases of all parts with commits are held: what spans parts is shown for all
    /// of them at once, by one process.
    fn has_all(&mut self, heads: &[(Part, CommitNumber)]) -> Result<bool> {
        for (part, _) in heads {
            match self.rights.claim(*part)? {
                Some(lease) => self.rights.done(&lease, false),
                None => {
                    self.at.remove(part);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Tells the `cursors` table how far the consumer is.
    fn report(&mut self, is_idle: bool) -> Result<()> {
        let now_ms = clock::now_ms();
        if !is_idle && now_ms - self.told_ms < TELL_MS {
            return Ok(());
        }
        let news: Vec<(Part, CommitNumber)> = self
            .at
            .iter()
            .filter(|(part, at)| self.reported.get(part) != Some(at))
            .map(|(part, at)| (*part, *at))
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        let (rows, role) = (news.clone(), self.consumer.role());
        self.context.claimant.db.write(move |tx| {
            for (part, at) in &rows {
                cursors::set(tx, *part, role, *at, now_ms)?;
            }
            Ok(())
        })?;
        self.reported.extend(news);
        self.told_ms = now_ms;
        Ok(())
    }
}

/// Waits for a time, whatever wakes it. Whether it was woken meanwhile, or has to stop.
fn woken_within(wakeups: &Receiver<()>, wait_ms: i64, stop: &AtomicBool) -> bool {
    let until_ms = clock::now_ms() + wait_ms;
    let mut was_woken = false;
    loop {
        let left_ms = until_ms - clock::now_ms();
        if left_ms <= 0 || stop.load(Ordering::SeqCst) {
            return was_woken || stop.load(Ordering::SeqCst);
        }
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
        match wakeups.recv_timeout(left) {
            Ok(()) => was_woken = true,
            Err(RecvTimeoutError::Timeout) => return was_woken,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}

#[cfg(test)]
mod tests;
