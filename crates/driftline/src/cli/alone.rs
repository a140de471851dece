//! The right to change an index of a place as a whole: the leases of all its parts.
//!
//! Invariant: whoever has them is the only one who changes the index; they are given back
//! when this is dropped, and run out if the process dies.

use super::place::Held;
use anyhow::bail;
use outputs::rights::Claimant;
use std::sync::Arc;
use store::clock;
use store::datadir::NODE_NAME;
use store::ids::{IdMaker, Part};
use store::tables::leases::{self, Asking, Lease};
use store::tables::nodes::{self, NewNode};
use store::tables::{cursors, settings};

/// How long the leases last; whoever is not done by then has lost them.
const LEASE_MS: i64 = 60 * 60 * 1_000;
/// How far clocks may differ.
const SKEW_MS: i64 = 5_000;

/// The leases of all parts in one role.
pub struct Alone {
    /// On whose behalf they are held.
    pub claimant: Claimant,
    /// The leases.
    pub leases: Vec<Lease>,
}

impl Alone {
    /// Takes every part's lease, or says who keeps the index.
    pub fn take(held: &Held, role: &'static str) -> anyhow::Result<Alone> {
        let db = held.db.clone();
        // In a directory this is the one node there is, which takes its own leases back.
        let node_name = match held.layout() {
            Some(_) => NODE_NAME.to_owned(),
            None => format!("{role}-{}", std::process::id()),
        };
        let node = NewNode {
            name: node_name.clone(),
            roles: role.to_owned(),
            address: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
        let ids = Arc::new(IdMaker::new(node)?);
        let claimant = Claimant { db, ids, node_name, lease_ms: LEASE_MS, skew_ms: SKEW_MS };
        let mut alone = Alone { claimant, leases: Vec::new() };
        alone.take_all(role)?;
        Ok(alone)
    }

    fn take_all(&mut self, role: &'static str) -> anyhow::Result<()> {
        let db = &self.claimant.db;
        for part in (0..i64::from(db.read(settings::parts)?)).map(Part) {
            let asking = Asking {
                node: self.claimant.ids.node(),
                node_name: self.claimant.node_name.clone(),
                now_ms: clock::now_ms(),
                lease_ms: LEASE_MS,
                skew_ms: SKEW_MS,
            };
            match db.write(move |tx| leases::take(tx, part, role, &asking))? {
                Some(lease) => self.leases.push(lease),
                None => bail!(
                    "another process keeps {} of part {part} up to date; stop it first \
                     (`driftline status` names it), and wait until its leases have ended",
                    cursors::title(role)
                ),
            }
        }
        Ok(())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        for lease in std::mem::take(&mut self.leases) {
            // If this cannot be written, it runs out.
            let _ = self.claimant.db.write(move |tx| leases::release(tx, &lease, true));
        }
    }
}
