//! The leases of this process: taken, renewed, shared out, given back.
//!
//! A thread of its own, so that a long commit never costs a lease. Relies on
//! `tables::leases` for what a lease is. Invariants: a part is worked on only between
//! `Held` and `Lost` or the giving back; whoever takes a part after a holder that did
//! not give it back is told so, and waits a full delay for each host.

use super::now::Now;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{NodeId, Part};
use store::tables::leases::{self, Asking, Lease};
use store::tables::{chunks, nodes};
use store::{Db, Error, Result, Tx};

/// What the leases are about.
pub const ROLE: &str = "crawl";
/// Chunks of a dead holder that are given up at once.
const STALE_CHUNKS_MAX: u32 = 10_000;
/// Nodes that share the parts.
const NODES_MAX: u32 = 10_000;
/// Parts that can wait to be given back.
const LEAVING_MAX: usize = 4_096;

/// How leases are held.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Who holds them.
    pub node: NodeId,
    /// Under which name.
    pub node_name: String,
    /// How long a lease lasts.
    pub lease_ms: i64,
    /// How often it is renewed.
    pub heartbeat_ms: i64,
    /// How far clocks may differ.
    pub skew_ms: i64,
    /// Parts there are.
    pub parts: u32,
}

/// What happened to a part.
#[derive(Debug)]
pub enum Holding {
    /// It is ours. `clean` says that its last holder gave it back in good order.
    Held {
        /// The right.
        lease: Lease,
        /// Whether nothing happened that is not in the tables.
        clean: bool,
    },
    /// It is somebody else's.
    Lost(Part),
    /// Others should have it: finish, and give it back.
    Leave(Part),
    /// Another start goes by this node's name: stop.
    Replaced,
}

/// The thread, and how to talk to it.
pub struct Holdings {
    leaving: Option<SyncSender<Part>>,
    thread: Option<JoinHandle<()>>,
}

impl Holdings {
    /// Starts to take leases and to report.
    pub fn start(
        db: Db,
        terms: Terms,
        now: Now,
        report: impl Fn(Holding) -> bool + Send + 'static,
    ) -> Result<Holdings> {
        let (leaving, left) = sync_channel(LEAVING_MAX);
        let mut keeper = Keeper { db, terms, now, held: BTreeMap::new(), leaving: Vec::new() };
        let thread = std::thread::Builder::new()
            .name("leases".into())
            .spawn(move || keeper.serve(&left, report))
            .map_err(|error| Error::io("leases", error))?;
        Ok(Holdings { leaving: Some(leaving), thread: Some(thread) })
    }

    /// Gives a part back: nothing of it is under way any more.
    pub fn leave(&self, part: Part) {
        if let Some(leaving) = &self.leaving {
            // The queue has room for every part there can be.
            let _ = leaving.try_send(part);
        }
    }

    /// Gives everything back and ends.
    pub fn stop(mut self) {
        self.leaving = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Keeper {
    db: Db,
    terms: Terms,
    now: Now,
    held: BTreeMap<Part, Lease>,
    leaving: Vec<Part>,
}

/// What a sweep did.
#[derive(Default)]
struct Swept {
    lost: Vec<Part>,
    taken: Vec<(Lease, bool)>,
    share: usize,
    replaced: bool,
}

impl Keeper {
    fn serve(&mut self, left: &Receiver<Part>, report: impl Fn(Holding) -> bool) {
        let pause = Duration::from_millis(u64::try_from(self.terms.heartbeat_ms).unwrap_or(1_000));
        loop {
            if !self.sweep_and_report(&report) {
                return;
            }
            match left.recv_timeout(pause) {
                Ok(part) => self.give_back(&[part]),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let all: Vec<Part> = self.held.keys().copied().collect();
                    self.give_back(&all);
                    return;
                }
            }
        }
    }

    /// False when nobody listens any more.
    fn sweep_and_report(&mut self, report: &impl Fn(Holding) -> bool) -> bool {
        // A database that cannot be reached is met again at the next sweep; leases
        // that run out meanwhile are lost, and then the sweep says so.
        let Ok(swept) = self.sweep() else { return true };
        if swept.replaced {
            return report(Holding::Replaced);
        }
        let mut listening = true;
        for part in swept.lost {
            self.held.remove(&part);
            self.leaving.retain(|leaving| *leaving != part);
            listening &= report(Holding::Lost(part));
        }
        for (lease, clean) in swept.taken {
            self.held.insert(lease.part, lease.clone());
            listening &= report(Holding::Held { lease, clean });
        }
        let staying = self.held.len() - self.leaving.len();
        let surplus: Vec<Part> = self
            .held
            .keys()
            .copied()
            .filter(|part| !self.leaving.contains(part))
            .take(staying.saturating_sub(swept.share))
            .collect();
        for part in surplus {
            self.leaving.push(part);
            listening &= report(Holding::Leave(part));
        }
        listening
    }

    fn sweep(&mut self) -> Result<Swept> {
        let (terms, now_ms) = (self.terms.clone(), self.now.ms());
        let held: Vec<Lease> = self.held.values().cloned().collect();
        self.db.write(move |tx| sweep(tx, &terms, &held, now_ms))
    }

    fn give_back(&mut self, parts: &[Part]) {
        let leases: Vec<Lease> = parts.iter().filter_map(|part| self.held.remove(part)).collect();
        self.leaving.retain(|part| !parts.contains(part));
        // If this fails they run out by themselves.
        let _ =
            self.db.write(move |tx| leases.iter().try_for_each(|lease| leases::release(tx, lease)));
    }
}

fn sweep(tx: &mut Tx<'_>, terms: &Terms, held: &[Lease], now_ms: i64) -> Result<Swept> {
    let mut swept = Swept::default();
    let alive = nodes::heartbeat(tx, terms.node, now_ms)? || nodes::rejoin(tx, terms.node, now_ms)?;
    if !alive {
        swept.replaced = true;
        return Ok(swept);
    }
    for lease in held {
        match leases::renew(tx, lease, now_ms + terms.lease_ms) {
            Ok(()) => {}
            Err(Error::LeaseLost { .. }) => swept.lost.push(lease.part),
            Err(error) => return Err(error),
        }
    }
    let heard_since_ms = now_ms - terms.lease_ms - terms.skew_ms;
    nodes::mark_absent(tx, heard_since_ms)?;
    let live = nodes::live(tx, ROLE, heard_since_ms, NODES_MAX)?.len().max(1);
    let parts = usize::try_from(terms.parts).unwrap_or(usize::MAX);
    swept.share = parts.div_ceil(live);
    let mut room = swept.share.saturating_sub(held.len() - swept.lost.len());
    let asking = Asking {
        node: terms.node,
        node_name: terms.node_name.clone(),
        now_ms,
        lease_ms: terms.lease_ms,
        skew_ms: terms.skew_ms,
    };
    // Each node begins elsewhere, so that two that start together seldom collide.
    let first = u32::try_from(terms.node.0.rem_euclid(i64::from(terms.parts))).unwrap_or(0);
    for step in 0..terms.parts {
        let part = Part(i64::from((first + step) % terms.parts));
        let ours = held.iter().any(|lease| lease.part == part) && !swept.lost.contains(&part);
        if room == 0 || ours {
            continue;
        }
        let clean = leases::is_vacant(tx, part, ROLE)?;
        if let Some(lease) = leases::take(tx, part, ROLE, &asking)? {
            chunks::abandon_stale(tx, &lease, now_ms, STALE_CHUNKS_MAX)?;
            swept.taken.push((lease, clean));
            room -= 1;
        }
    }
    Ok(swept)
}
