//! The right to change an index of a place as a whole: the leases of all its parts.
//!
//! Invariant: whoever has them is the only one who changes the index, however long that takes;
//! they are given back when this is dropped, and run out if the process dies.

use super::OpenPlace;
use super::lease_keeper::{LeaseKeeper, LeaseTerms};
use anyhow::bail;
use outputs::rights::Claimant;
use std::sync::Arc;
use store::datadir::NODE_NAME;
use store::ids::{IdMaker, Part};
use store::tables::leases::Lease;
use store::tables::{cursors, settings};

/// The leases of all parts in one role.
pub struct Alone {
    /// On whose behalf they are held.
    pub claimant: Claimant,
    keeper: LeaseKeeper,
}

impl Alone {
    /// Takes every part's lease, or says who keeps the index.
    pub fn take(held: &OpenPlace, role: &'static str) -> anyhow::Result<Alone> {
        let db = held.db.clone();
        // In a directory this is the one node there is, which takes its own leases back.
        let node_name = match held.layout() {
            Some(_) => NODE_NAME.to_owned(),
            None => format!("{role}-{}", std::process::id()),
        };
        let terms = LeaseTerms::default();
        let keeper = LeaseKeeper::start(&db, &node_name, role, terms)?;
        for part in (0..i64::from(db.read(settings::parts)?)).map(Part) {
            if !keeper.take(part)? {
                bail!(
                    "another process is updating {} of part {part}; stop it first (`driftline \
                     status` shows it), and wait until its leases have ended",
                    cursors::title(role)
                )
            }
        }
        let ids = Arc::new(IdMaker::new(keeper.node())?);
        let LeaseTerms { lease_ms, skew_ms, .. } = terms;
        let claimant = Claimant { db, ids, node_name, lease_ms, skew_ms };
        Ok(Alone { claimant, keeper })
    }

    /// The leases. They are renewed for as long as this lives.
    pub fn leases(&self) -> Vec<Lease> {
        self.keeper.leases()
    }
}
