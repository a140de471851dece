//! Follows the crawl: reads committed chunks in order and applies them to the index.
//!
//! One thread, woken by every commit of this process and by a poll for those of others.
//! It works on parts whose lease it gets; how far it is stands in the index, with the
//! effect, and is told to the `cursors` table, where the crawl sees how far behind it is.
//!
//! Invariants: a chunk's changes are applied once, in the order of commits; what is held in
//! memory is one batch ([`PAGES_MAX`], [`LINKS_MAX`]); trouble with the index or the store
//! is waited out and said, and loses nothing.

mod reading;

use super::changes::{Batch, Mark};
use super::index::LinkIndex;
use crate::delays::Delays;
use crate::rights::{Claimant, Rights};
use reading::Chunks;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::Part;
use store::objects::Objects;
use store::tables::leases::Lease;
use store::tables::{cursors, leases, settings};
use store::{Db, Error, Result, clock};

/// What the leases and the cursor are called.
pub const ROLE: &str = "links";
/// Whose commits are followed.
const FOLLOWED: &str = "crawl";
/// Pages of a batch: more of them share their targets, and are in memory.
pub const PAGES_MAX: usize = 10_000;
/// Links of a batch.
pub const LINKS_MAX: usize = 250_000;
/// Chunks that are looked up at a time.
const CHUNKS_STEP: u32 = 32;
/// After a batch, commits are gathered for so long: a crawl in full swing costs one batch
/// for many chunks, and a link is still visible within a second.
const GATHER_MS: i64 = 150;
/// How often the `cursors` table is told, unless nothing is left to do.
const TELL_MS: i64 = 500;
/// The first wait after trouble; it doubles up to [`REST_MS_MAX`].
const REST_MS: i64 = 500;
/// The longest wait after trouble.
const REST_MS_MAX: i64 = 30_000;

/// What the follower works with.
#[derive(Clone)]
pub struct Means {
    /// The rows.
    pub db: Db,
    /// The objects.
    pub objects: Objects,
    /// The index.
    pub index: LinkIndex,
    /// Who follows.
    pub claimant: Claimant,
    /// How often it looks for what others committed.
    pub poll_ms: i64,
}

/// Who wants to know what the follower waits for, if for anything.
pub type Listener = Arc<dyn Fn(Option<String>) + Send + Sync>;

/// Tells the follower that something was committed.
#[derive(Clone)]
pub struct Bell {
    ring: SyncSender<()>,
}

impl Bell {
    /// Something was committed.
    pub fn ring(&self) {
        // One that waits already is enough.
        let _ = self.ring.try_send(());
    }
}

/// A follower that has not begun.
pub struct Ready {
    bell: Bell,
    rung: Receiver<()>,
}

/// A follower, and the bell that wakes it.
pub fn ready() -> Ready {
    let (ring, rung) = sync_channel(1);
    Ready { bell: Bell { ring }, rung }
}

impl Ready {
    /// The bell.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Begins.
    pub fn start(self, means: Means, listener: Listener) -> Result<Follower> {
        let parts = means.db.read(settings::parts)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, rung) = (stop.clone(), self.rung);
        let following = Following {
            rights: Rights::new(means.claimant.clone(), ROLE),
            chunks: Chunks::new(means.db.clone(), means.objects.clone())?,
            means,
            parts,
            at: BTreeMap::new(),
            told: BTreeMap::new(),
            told_ms: 0,
            served: None,
            delays: Delays::default(),
            listener,
        };
        let thread = std::thread::Builder::new()
            .name(ROLE.into())
            .spawn(move || following.serve(&rung, &stopped))
            .map_err(|error| Error::io(ROLE, error))?;
        Ok(Follower { bell: self.bell, stop, thread })
    }
}

/// A follower at work.
pub struct Follower {
    bell: Bell,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Delays>,
}

impl Follower {
    /// Applies what is committed, if that can be done, and ends. Returns how long it took
    /// from the commits of chunks until their links were visible.
    pub fn stop(self) -> Delays {
        self.stop.store(true, Ordering::SeqCst);
        self.bell.ring();
        self.thread.join().unwrap_or_default()
    }
}

struct Following {
    means: Means,
    parts: u32,
    rights: Rights,
    chunks: Chunks,
    /// How far the index is, of parts whose lease is held.
    at: BTreeMap<Part, i64>,
    /// What the `cursors` table was told, and when.
    told: BTreeMap<Part, i64>,
    told_ms: i64,
    /// The part that was served last, where parts are served in turn.
    served: Option<Part>,
    /// From the commits of chunks until their links are visible.
    delays: Delays,
    listener: Listener,
}

/// A part with something to do.
struct Work {
    lease: Lease,
    /// The last commit there is.
    head: i64,
}

impl Following {
    fn serve(mut self, rung: &Receiver<()>, stop: &AtomicBool) -> Delays {
        let poll_ms = self.means.poll_ms.min(self.means.claimant.lease_ms / 4).max(1);
        let (mut failures, mut rests_until_ms) = (0u32, 0);
        loop {
            let stopping = stop.load(Ordering::SeqCst);
            let began_ms = clock::now_ms();
            if began_ms >= rests_until_ms || stopping {
                match self.look() {
                    Ok(()) => {
                        if failures > 0 {
                            (self.listener)(None);
                        }
                        failures = 0;
                    }
                    Err(error) => {
                        let rest_ms = (REST_MS << failures.min(10)).min(REST_MS_MAX);
                        (failures, rests_until_ms) = (failures + 1, clock::now_ms() + rest_ms);
                        let why = format!("the link index: {error}; it is tried again");
                        (self.listener)(Some(why));
                    }
                }
            }
            if failures > 0 && self.means.index.map().spans_parts() {
                // Nobody else can do it, and the crawl is to wait for it.
                self.rights.hold();
            }
            self.rights.keep();
            if stopping {
                self.rights.end();
                return self.delays;
            }
            let gathers_ms = (began_ms + GATHER_MS - clock::now_ms()).clamp(0, GATHER_MS);
            if gathers_ms > 0 && rung_within(rung, gathers_ms, stop) {
                continue;
            }
            let wait = Duration::from_millis(u64::try_from(poll_ms).unwrap_or(1));
            if let Err(RecvTimeoutError::Disconnected) = rung.recv_timeout(wait) {
                self.rights.end();
                return self.delays;
            }
        }
    }

    /// Applies all that is committed in parts that can be had.
    fn look(&mut self) -> Result<()> {
        loop {
            let work = self.work()?;
            if work.is_empty() {
                return self.tell(true);
            }
            let outcome = self.apply(&work);
            for it in &work {
                let is_lost = matches!(outcome, Err(Error::LeaseLost { .. }));
                self.rights.done(&it.lease, is_lost);
                if is_lost {
                    // Whoever has it now goes on; what it did is in the index.
                    self.at.remove(&it.lease.part);
                }
            }
            match outcome {
                Err(Error::LeaseLost { .. }) => {}
                outcome => outcome?,
            }
            self.rights.keep();
            self.tell(false)?;
        }
    }

    /// Parts with commits that are not in the index.
    fn work(&mut self) -> Result<Vec<Work>> {
        let parts = self.parts;
        let heads = self.means.db.read(move |tx| leases::last_commits(tx, FOLLOWED, parts))?;
        let mut work = Vec::new();
        let (before, behind): (Vec<_>, Vec<_>) =
            heads.into_iter().partition(|(part, _)| self.served.is_some_and(|it| *part <= it));
        for (part, head) in behind.into_iter().chain(before) {
            if self.at.get(&part).is_some_and(|at| *at >= head) || head == 0 {
                continue;
            }
            let Some(lease) = self.rights.claim(part)? else {
                self.at.remove(&part);
                continue;
            };
            // What is known of a part counts only while nobody else had it.
            if !self.at.contains_key(&part) || self.rights.is_new(part) {
                self.means.index.recover(part, Some(&lease))?;
                let cursor = self.means.index.cursor(part)?;
                self.at.insert(part, cursor);
            }
            if self.at.get(&part).is_some_and(|at| *at >= head) {
                self.rights.done(&lease, false);
                continue;
            }
            work.push(Work { lease, head });
            if !self.means.index.map().spans_parts() {
                // One part at a time is as good, and the batch is larger. The others have
                // their turn before this one has another.
                self.served = Some(part);
                break;
            }
        }
        Ok(work)
    }

    /// One batch, of as many parts and chunks as it has room for.
    fn apply(&mut self, work: &[Work]) -> Result<()> {
        let mut batch = Batch::default();
        let mut links = 0;
        let (mut reached, mut committed_ms) = (Vec::new(), Vec::new());
        for it in work {
            let part = it.lease.part;
            let mut at = self.at.get(&part).copied().unwrap_or(0);
            while at < it.head && batch.changes.len() < PAGES_MAX && links < LINKS_MAX {
                let chunks = self.chunks.after(part, at, CHUNKS_STEP)?;
                if chunks.is_empty() {
                    // Numbers without a chunk: commits that settled nothing.
                    at = it.head;
                }
                for chunk in chunks {
                    if batch.changes.len() >= PAGES_MAX || links >= LINKS_MAX {
                        break;
                    }
                    at = chunk.seq;
                    committed_ms.push(chunk.committed_ms);
                    links += self.chunks.read(part, chunk, &mut batch.changes)?;
                }
            }
            batch.marks.push(Mark::Cursor { part, seq: at });
            reached.push((part, at));
        }
        let leases: Vec<Lease> = work.iter().map(|it| it.lease.clone()).collect();
        self.means.index.apply(batch, &leases)?;
        self.at.extend(reached);
        let now_ms = clock::now_ms();
        committed_ms.into_iter().for_each(|ms| self.delays.count(now_ms - ms));
        Ok(())
    }

    /// Tells the `cursors` table how far the index is.
    fn tell(&mut self, is_idle: bool) -> Result<()> {
        let now_ms = clock::now_ms();
        if !is_idle && now_ms - self.told_ms < TELL_MS {
            return Ok(());
        }
        let news: Vec<(Part, i64)> = self
            .at
            .iter()
            .filter(|(part, at)| self.told.get(part) != Some(at))
            .map(|(part, at)| (*part, *at))
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        let rows = news.clone();
        self.means.db.write(move |tx| {
            for (part, at) in &rows {
                cursors::set(tx, (*part, ROLE), *at, now_ms)?;
            }
            Ok(())
        })?;
        self.told.extend(news);
        self.told_ms = now_ms;
        Ok(())
    }
}

/// Waits for a time, whatever is rung. Whether it was rung meanwhile, or has to stop.
fn rung_within(rung: &Receiver<()>, wait_ms: i64, stop: &AtomicBool) -> bool {
    let until_ms = clock::now_ms() + wait_ms;
    let mut was_rung = false;
    loop {
        let left_ms = until_ms - clock::now_ms();
        if left_ms <= 0 || stop.load(Ordering::SeqCst) {
            return was_rung || stop.load(Ordering::SeqCst);
        }
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
        match rung.recv_timeout(left) {
            Ok(()) => was_rung = true,
            Err(RecvTimeoutError::Timeout) => return was_rung,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}
