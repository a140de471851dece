//! The leases of a load in a database that others may work on, too.
//!
//! The link index of a part is changed by one process at a time: by the one that crawls and
//! follows, or by a load. A load takes all parts, since its pages are of any. Invariants:
//! leases are taken by part in order, so that two loads never wait for each other; they are
//! renewed until they are given back, whatever a batch takes.

use super::super::place::Held;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::ids::{NodeId, Part};
use store::tables::cursors::LINKS as ROLE;
use store::tables::leases::{self, Asking, Lease};
use store::tables::nodes::{self, NewNode};
use store::tables::settings;
use store::{Db, Result, clock};

/// How long a lease lasts, and how far clocks may differ: as for a crawl.
const LEASE_MS: i64 = 30_000;
const SKEW_MS: i64 = 2_000;
/// How often leases are renewed: twice before they run out.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// The wait between two tries for a lease that another process has.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Leases that are held, until this is dropped.
pub struct Holding {
    db: Db,
    /// `None` where nobody else can be.
    node: Option<NodeId>,
    leases: Arc<Mutex<Vec<Lease>>>,
    keeper: Option<(SyncSender<()>, JoinHandle<()>)>,
}

/// Takes the leases of all parts, and waits for those that others have. `None` when it was
/// stopped meanwhile; `wait` is told once that it waits.
pub fn take(
    held: &Held,
    node_name: &str,
    stop: &dyn Fn() -> bool,
    wait: &dyn Fn(),
) -> Result<Option<Holding>> {
    let db = held.db.clone();
    let mut holding = Holding { db: db.clone(), node: None, leases: Arc::default(), keeper: None };
    if held.layout().is_some() {
        return Ok(Some(holding));
    }
    let new = NewNode {
        name: node_name.to_owned(),
        roles: ROLE.to_owned(),
        address: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let node = db.write(move |tx| nodes::register(tx, &new, clock::now_ms()))?;
    holding.node = Some(node);
    holding.keep(node)?;
    let mut waits = false;
    for part in 0..db.read(settings::parts)? {
        loop {
            let asking = Asking {
                node,
                node_name: node_name.to_owned(),
                now_ms: clock::now_ms(),
                lease_ms: LEASE_MS,
                skew_ms: SKEW_MS,
            };
            let part = Part(part.into());
            if let Some(lease) = db.write(move |tx| leases::take(tx, part, ROLE, &asking))? {
                holding.held().push(lease);
                break;
            }
            if stop() {
                return Ok(None);
            }
            if !std::mem::replace(&mut waits, true) {
                wait();
            }
            std::thread::park_timeout(TRY_AGAIN);
        }
    }
    Ok(Some(holding))
}

impl Holding {
    /// The leases. Their tokens count, not their deadlines.
    pub fn leases(&self) -> Vec<Lease> {
        self.held().clone()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to renew whatever is held.
    fn keep(&mut self, node: NodeId) -> Result<()> {
        let (end, ended) = sync_channel(0);
        let (db, leases) = (self.db.clone(), self.leases.clone());
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEW_EVERY) {
                let held = leases.lock().unwrap_or_else(PoisonError::into_inner).clone();
                for lease in held {
                    // Whoever writes under it is told if it is lost.
                    let deadline_ms = clock::now_ms() + LEASE_MS;
                    let _ = db.write(move |tx| leases::renew(tx, &lease, deadline_ms));
                }
                let _ = db.write(move |tx| nodes::heartbeat(tx, node, clock::now_ms()));
            }
        };
        let thread = std::thread::Builder::new()
            .name("leases".into())
            .spawn(work)
            .map_err(|error| store::Error::io(ROLE, error))?;
        self.keeper = Some((end, thread));
        Ok(())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.keeper.take() {
            drop(end);
            let _ = thread.join();
        }
        let Some(node) = self.node else { return };
        // If this cannot be written, they run out.
        for lease in self.leases() {
            let _ = self.db.write(move |tx| leases::release(tx, &lease, true));
        }
        let _ = self.db.write(move |tx| nodes::stop(tx, node, clock::now_ms()));
    }
}
