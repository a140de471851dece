//! Leases that one command holds while it works on an index, renewed by a thread of their own.
//!
//! Whatever the command does meanwhile (a batch, a sort, a transaction that takes an hour), its
//! leases are renewed in time. Invariants: a lease is renewed from the moment it is handed over
//! until the keeper is dropped, which gives all of them back; a lease that was lost is not taken
//! again: whoever writes under it is told, because every write checks its lease.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{NodeId, Part};
use store::tables::leases::{self, Lease, LeaseRequest};
use store::tables::nodes::{self, NewNode};
use store::{Db, Result, clock};

/// How long leases last, and how often they are renewed.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    /// How long a lease lasts.
    pub lease_ms: i64,
    /// How far clocks may differ.
    pub skew_ms: i64,
    /// How often leases are renewed.
    pub renew_every: Duration,
}

impl Default for LeaseTerms {
    /// As for a crawl; renewed twice before they run out.
    fn default() -> LeaseTerms {
        LeaseTerms { lease_ms: 30_000, skew_ms: 2_000, renew_every: Duration::from_secs(10) }
    }
}

/// The leases of one command in one role, until this is dropped.
pub struct LeaseKeeper {
    db: Db,
    node: NodeId,
    node_name: String,
    role: &'static str,
    terms: LeaseTerms,
    leases: Arc<Mutex<Vec<Lease>>>,
    renewing: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl LeaseKeeper {
    /// Registers this process as a node, and begins to renew what it will hold.
    pub fn start(
        db: &Db,
        node_name: &str,
        role: &'static str,
        terms: LeaseTerms,
    ) -> Result<LeaseKeeper> {
        let new = NewNode {
            name: node_name.to_owned(),
            roles: role.to_owned(),
            address: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let node = db.write(move |tx| nodes::register(tx, &new, clock::now_ms()))?;
        let mut keeper = LeaseKeeper {
            db: db.clone(),
            node,
            node_name: node_name.to_owned(),
            role,
            terms,
            leases: Arc::default(),
            renewing: None,
        };
        keeper.start_renewing()?;
        Ok(keeper)
    }

    /// The node that holds the leases.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Takes the lease of a part, unless another process has it.
    pub fn take(&self, part: Part) -> Result<bool> {
        let asking = LeaseRequest {
            node: self.node,
            node_name: self.node_name.clone(),
            now_ms: clock::now_ms(),
            lease_ms: self.terms.lease_ms,
            skew_ms: self.terms.skew_ms,
        };
        let role = self.role;
        let taken = self.db.write(move |tx| leases::take(tx, part, role, &asking))?;
        let is_taken = taken.is_some();
        lock(&self.leases).extend(taken);
        Ok(is_taken)
    }

    /// The leases that were taken. Their tokens count, not their deadlines, which are renewed.
    pub fn leases(&self) -> Vec<Lease> {
        lock(&self.leases).clone()
    }

    fn start_renewing(&mut self) -> Result<()> {
        let (end, ended) = sync_channel(0);
        let (db, leases, node, terms) =
            (self.db.clone(), self.leases.clone(), self.node, self.terms);
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(terms.renew_every) {
                let held = lock(&leases).clone();
                for lease in held {
                    // Whoever writes under it is told if it is lost.
                    let deadline_ms = clock::now_ms() + terms.lease_ms;
                    let _ = db.write(move |tx| leases::renew(tx, &lease, deadline_ms));
                }
                let _ = db.write(move |tx| nodes::heartbeat(tx, node, clock::now_ms()));
            }
        };
        let thread = std::thread::Builder::new()
            .name("leases".into())
            .spawn(work)
            .map_err(|error| store::Error::io(self.role, error))?;
        self.renewing = Some((end, thread));
        Ok(())
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.renewing.take() {
            drop(end);
            let _ = thread.join();
        }
        // If this cannot be written, they run out.
        for lease in self.leases() {
            let _ = self.db.write(move |tx| leases::release(tx, &lease, true));
        }
        let node = self.node;
        let _ = self.db.write(move |tx| nodes::stop(tx, node, clock::now_ms()));
    }
}

fn lock(leases: &Mutex<Vec<Lease>>) -> MutexGuard<'_, Vec<Lease>> {
    leases.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::tables::cursors::LINKS;
    use store::testing::both_databases;

    #[test]
    fn a_rebuild_that_takes_longer_than_its_leases_still_has_them() {
        both_databases(|db| {
            let renew_every = Duration::from_millis(1);
            let terms = LeaseTerms { lease_ms: 60_000, skew_ms: 0, renew_every };
            let keeper = LeaseKeeper::start(db, "rebuild", LINKS, terms)?;
            assert!(keeper.take(Part(0))? && keeper.take(Part(1))?);
            for lease in keeper.leases() {
                let after_ms = lease.deadline_ms;
                // A process that asks when the first deadline is over finds it renewed.
                let asking = LeaseRequest {
                    node: NodeId(keeper.node().0 + 1),
                    node_name: "another".into(),
                    now_ms: after_ms,
                    lease_ms: 1,
                    skew_ms: 0,
                };
                let began = std::time::Instant::now();
                loop {
                    let asking = asking.clone();
                    let refused =
                        db.read(move |tx| leases::not_to_be_had(tx, LINKS, &asking, 10))?;
                    if refused.contains(&lease.part) {
                        break;
                    }
                    assert!(began.elapsed() < Duration::from_secs(30), "it was never renewed");
                    std::thread::yield_now();
                }
            }
            drop(keeper);
            assert!(db.read(|tx| leases::is_vacant(tx, Part(0), LINKS))?, "it is given back");
            Ok(())
        });
    }
}
