//! The leases of a load in a database that others may work on, too.
//!
//! The link index of a part is changed by one process at a time: by the one that crawls and
//! follows, or by a load. A load takes all parts, since its pages are of any. Invariant:
//! leases are taken by part in order, so that two loads never wait for each other.

use crate::place::OpenPlace;
use crate::place::lease_keeper::{LeaseKeeper, LeaseTerms};
use std::time::Duration;
use store::Result;
use store::ids::Part;
use store::tables::cursors::LINKS as ROLE;
use store::tables::leases::Lease;
use store::tables::settings;

/// The wait between two tries for a lease that another process has.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// Leases that are held and renewed, until this is dropped.
pub struct HeldLeases {
    /// `None` where nobody else can be.
    keeper: Option<LeaseKeeper>,
}

/// Takes the leases of all parts, and waits for those that others have. `None` when it was
/// stopped meanwhile; `wait` is told once that it waits.
pub fn take(
    held: &OpenPlace,
    node_name: &str,
    stop: &dyn Fn() -> bool,
    wait: &dyn Fn(),
) -> Result<Option<HeldLeases>> {
    if held.layout().is_some() {
        return Ok(Some(HeldLeases { keeper: None }));
    }
    let keeper = LeaseKeeper::start(&held.db, node_name, ROLE, LeaseTerms::default())?;
    let mut waits = false;
    for part in (0..i64::from(held.db.read(settings::parts)?)).map(Part) {
        while !keeper.take(part)? {
            if stop() {
                return Ok(None);
            }
            if !std::mem::replace(&mut waits, true) {
                wait();
            }
            std::thread::park_timeout(TRY_AGAIN);
        }
    }
    Ok(Some(HeldLeases { keeper: Some(keeper) }))
}

impl HeldLeases {
    /// The leases. Their tokens count, not their deadlines.
    pub fn leases(&self) -> Vec<Lease> {
        self.keeper.as_ref().map_or_else(Vec::new, LeaseKeeper::leases)
    }
}
