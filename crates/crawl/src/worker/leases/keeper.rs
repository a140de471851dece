//! The leases of this process: taken, renewed, shared out, given back.
//!
//! A thread of its own, so that a long commit never costs a lease. Relies on
//! `tables::leases` for what a lease is. Invariants: a part is worked on only between
//! `Held` and `Lost` or the giving back; whoever takes a part after a holder that did
//! not give it back is told so, and waits a full delay for each host.

use crate::worker::leases::check::{LeaseCheck, LeaseKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{NodeId, Part};
use store::panics::caught;
use store::tables::leases::{self, Lease, LeaseRequest};
use store::tables::{chunks, nodes};
use store::{Db, Error, Result, Tx, clock};

/// What the leases are about.
pub const ROLE: &str = "crawl";
/// Chunks of a dead holder that are given up at once.
const STALE_CHUNKS_MAX: u32 = 10_000;
/// Nodes that share the parts.
const NODES_MAX: u32 = 10_000;
/// Orders that can wait: every part can be given back.
const ORDERS_MAX: usize = 4_097;
/// Leases and nodes from the future that are looked at.
const AHEAD_MAX: u32 = 10_000;

/// How leases are held.
#[derive(Debug, Clone)]
pub struct LeaseTerms {
    pub node: NodeId,
    pub node_name: String,
    /// How long a lease lasts.
    pub lease_ms: i64,
    /// How often it is renewed.
    pub heartbeat_ms: i64,
    /// How far clocks may differ.
    pub skew_ms: i64,
    /// How many parts there are.
    pub parts: u32,
}

impl LeaseTerms {
    /// Who has not been heard of since then is silent.
    fn heard_since_ms(&self, now_ms: i64) -> i64 {
        now_ms - self.lease_ms - self.skew_ms
    }
}

/// What happened to the lease of a part.
#[derive(Debug)]
pub enum LeaseEvent {
    /// It is ours. `clean` says that its last holder gave it back in good order.
    Held {
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

/// What the thread is told.
enum KeeperOrder {
    /// Give a part back; whether every request is in the tables.
    GiveBack { part: Part, in_order: bool },
    /// Give everything back, these leases in good order, and end.
    Stop { in_order: BTreeSet<LeaseKey> },
}

/// The thread, and how to talk to it.
pub struct LeaseKeeper {
    orders: SyncSender<KeeperOrder>,
    thread: JoinHandle<()>,
}

impl LeaseKeeper {
    /// Starts to take leases and to report.
    pub fn start(
        db: Db,
        terms: LeaseTerms,
        lease_check: LeaseCheck,
        report: impl Fn(LeaseEvent) -> bool + Send + 'static,
    ) -> Result<LeaseKeeper> {
        let (orders, incoming) = sync_channel(ORDERS_MAX);
        let (held, leaving, ahead) = (BTreeMap::new(), Vec::new(), Ahead::default());
        let mut keeper = Keeper { db, terms, lease_check, held, leaving, ahead };
        let thread = std::thread::Builder::new()
            .name("leases".into())
            .spawn(move || keeper.serve(&incoming, report))
            .map_err(|error| Error::io("leases", error))?;
        Ok(LeaseKeeper { orders, thread })
    }

    /// Gives a part back: nothing of it is under way any more. `in_order` says that every
    /// request is in the tables.
    pub fn give_back(&self, part: Part, in_order: bool) {
        // The queue has room for every part there can be.
        let _ = self.orders.try_send(KeeperOrder::GiveBack { part, in_order });
    }

    /// Gives everything back, and ends. Of these leases, by part and token, every request is
    /// in the tables; whoever takes another one waits a full delay for each host.
    pub fn stop(self, in_order: BTreeSet<LeaseKey>) {
        let _ = self.orders.send(KeeperOrder::Stop { in_order });
        let _ = self.thread.join();
    }
}

struct Keeper {
    db: Db,
    terms: LeaseTerms,
    lease_check: LeaseCheck,
    held: BTreeMap<Part, Lease>,
    leaving: Vec<Part>,
    ahead: Ahead,
}

/// Leases whose deadline lies further ahead than anybody sets it, and since when, by our own
/// steady clock, each has been seen like this.
#[derive(Debug, Default)]
struct Ahead {
    seen: BTreeMap<(Part, String), (Lease, i64)>,
}

impl Ahead {
    /// Of what is found now, those that have not moved for a time.
    fn unmoved(&mut self, found: Vec<Lease>, steady_ms: i64, silent_ms: i64) -> Vec<Lease> {
        let mut seen = BTreeMap::new();
        let mut over = Vec::new();
        for lease in found {
            let key = (lease.part, lease.role.clone());
            let since_ms = match self.seen.get(&key) {
                Some((before, since_ms)) if *before == lease => *since_ms,
                _ => steady_ms,
            };
            if steady_ms - since_ms >= silent_ms {
                over.push(lease.clone());
            }
            seen.insert(key, (lease, since_ms));
        }
        self.seen = seen;
        over
    }
}

/// What a round of renewing and taking leases came to.
#[derive(Default)]
struct Round {
    lost: Vec<Part>,
    taken: Vec<(Lease, bool)>,
    share: usize,
    replaced: bool,
}

impl Keeper {
    fn serve(&mut self, orders: &Receiver<KeeperOrder>, report: impl Fn(LeaseEvent) -> bool) {
        let pause_ms = self.terms.heartbeat_ms.max(1);
        let mut round_ms = clock::steady_ms();
        loop {
            let now_ms = clock::steady_ms();
            if now_ms >= round_ms {
                if !self.renew_and_report(&report) {
                    return;
                }
                round_ms = clock::steady_ms() + pause_ms;
            }
            let wait_ms = u64::try_from(round_ms - clock::steady_ms()).unwrap_or(0);
            match orders.recv_timeout(Duration::from_millis(wait_ms)) {
                Ok(KeeperOrder::GiveBack { part, in_order }) => {
                    self.give_back(vec![(part, in_order)]);
                    if !in_order {
                        // It is free for everybody, so also for this process.
                        round_ms = clock::steady_ms();
                    }
                }
                Ok(KeeperOrder::Stop { in_order }) => {
                    let is_in_order = |lease: &Lease| in_order.contains(&lease.into());
                    let all = self.held.values().map(|it| (it.part, is_in_order(it))).collect();
                    self.give_back(all);
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// False when nobody listens any more.
    fn renew_and_report(&mut self, report: &impl Fn(LeaseEvent) -> bool) -> bool {
        // A database that cannot be reached is met again in the next round; leases
        // that run out meanwhile are lost, and then the round says so.
        let Ok(round) = caught(|| self.renew_all()).flatten() else { return true };
        if round.replaced {
            return report(LeaseEvent::Replaced);
        }
        let mut listening = true;
        for part in round.lost {
            self.held.remove(&part);
            self.leaving.retain(|leaving| *leaving != part);
            listening &= report(LeaseEvent::Lost(part));
        }
        for (lease, clean) in round.taken {
            self.held.insert(lease.part, lease.clone());
            listening &= report(LeaseEvent::Held { lease, clean });
        }
        let staying = self.held.len() - self.leaving.len();
        let surplus: Vec<Part> = self
            .held
            .keys()
            .copied()
            .filter(|part| !self.leaving.contains(part))
            .take(staying.saturating_sub(round.share))
            .collect();
        for part in surplus {
            self.leaving.push(part);
            listening &= report(LeaseEvent::Leave(part));
        }
        listening
    }

    fn renew_all(&mut self) -> Result<Round> {
        let (terms, now_ms) = (self.terms.clone(), clock::now_ms());
        let held: Vec<Lease> = self.held.values().cloned().collect();
        let silent_ms = terms.heard_since_ms(now_ms);
        let round = self.db.write(move |tx| renew_all(tx, &terms, &held, now_ms))?;
        // By itself, because it locks the rows of others, who lock theirs.
        let _ = self.db.write(move |tx| nodes::mark_absent(tx, silent_ms));
        let _ = self.end_what_is_ahead(now_ms);
        let kept = self.held.values().filter(|lease| !round.lost.contains(&lease.part));
        let taken = round.taken.iter().map(|(lease, _)| lease);
        self.lease_check.set(kept.chain(taken), now_ms + self.terms.lease_ms);
        Ok(round)
    }

    /// Ends leases of others whose deadline lies further ahead than it can, once it has not
    /// moved for as long as a lease lasts: their holder's clock was wrong, and it is gone.
    fn end_what_is_ahead(&mut self, now_ms: i64) -> Result<()> {
        let latest_ms = now_ms + self.terms.lease_ms + self.terms.skew_ms;
        let found = self.db.read(move |tx| leases::ahead(tx, latest_ms, AHEAD_MAX))?;
        let silent_ms = self.terms.lease_ms + self.terms.skew_ms;
        let over = self.ahead.unmoved(found, clock::steady_ms(), silent_ms);
        if over.is_empty() {
            return Ok(());
        }
        self.db.write(move |tx| over.iter().try_for_each(|lease| leases::end(tx, lease)))
    }

    /// Gives parts back, each with whether all that was done there is in the tables.
    fn give_back(&mut self, parts: Vec<(Part, bool)>) {
        let held = &mut self.held;
        let leases: Vec<(Lease, bool)> = parts
            .iter()
            .filter_map(|(part, in_order)| Some((held.remove(part)?, *in_order)))
            .collect();
        self.leaving.retain(|leaving| !parts.iter().any(|(part, _)| part == leaving));
        // If this fails they run out by themselves.
        let _ = self.db.write(move |tx| {
            leases.iter().try_for_each(|(lease, in_order)| leases::release(tx, lease, *in_order))
        });
    }
}

/// Says that this node lives, renews what it holds, and takes its share of what is free.
///
/// Leases are locked in the order of their parts, by everybody, and only those that are
/// ours or to be had: so rounds wait neither for each other's leases nor in a circle.
fn renew_all(tx: &mut Tx<'_>, terms: &LeaseTerms, held: &[Lease], now_ms: i64) -> Result<Round> {
    let mut round = Round::default();
    let alive = nodes::heartbeat(tx, terms.node, now_ms)? || nodes::rejoin(tx, terms.node, now_ms)?;
    if !alive {
        round.replaced = true;
        return Ok(round);
    }
    let live = nodes::live(tx, ROLE, terms.heard_since_ms(now_ms), NODES_MAX)?.len().max(1);
    round.share = usize::try_from(terms.parts).unwrap_or(usize::MAX).div_ceil(live);
    let asking = LeaseRequest {
        node: terms.node,
        node_name: terms.node_name.clone(),
        now_ms,
        lease_ms: terms.lease_ms,
        skew_ms: terms.skew_ms,
    };
    let room = round.share.saturating_sub(held.len());
    let wanted = wanted(tx, terms, &asking, held, room)?;
    for part in (0..i64::from(terms.parts)).map(Part) {
        if let Some(lease) = held.iter().find(|lease| lease.part == part) {
            match leases::renew(tx, lease, now_ms + terms.lease_ms) {
                Ok(()) => {}
                Err(Error::LeaseLost { .. }) => round.lost.push(part),
                Err(error) => return Err(error),
            }
        } else if wanted.contains(&part) {
            let clean = leases::is_vacant(tx, part, ROLE)?;
            if let Some(lease) = leases::take(tx, part, ROLE, &asking)? {
                chunks::abandon_stale(tx, &lease, now_ms, STALE_CHUNKS_MAX)?;
                round.taken.push((lease, clean));
            }
        }
    }
    Ok(round)
}

/// Parts that can be had, as many as there is room for. Each node begins elsewhere, so
/// that two that start together seldom want the same.
fn wanted(
    tx: &mut Tx<'_>,
    terms: &LeaseTerms,
    asking: &LeaseRequest,
    held: &[Lease],
    room: usize,
) -> Result<BTreeSet<Part>> {
    if room == 0 {
        return Ok(BTreeSet::new());
    }
    let taken = leases::not_to_be_had(tx, ROLE, asking, terms.parts)?;
    let first = u32::try_from(terms.node.0.rem_euclid(i64::from(terms.parts))).unwrap_or(0);
    let parts = (0..terms.parts).map(|step| Part(i64::from((first + step) % terms.parts)));
    let is_free =
        |part: &Part| !taken.contains(part) && !held.iter().any(|lease| lease.part == *part);
    Ok(parts.filter(is_free).take(room).collect())
}

#[cfg(test)]
mod tests;
