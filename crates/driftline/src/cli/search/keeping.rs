//! `driftline search rebuild` and `verify`: the whole index made anew, or compared with what
//! is committed.
//!
//! Invariant: nobody else writes the index meanwhile, since this process has the lease of
//! every part, and the directory if there is one.

use crate::cli::place::{Held, Place};
use crate::cli::{say, shown};
use anyhow::bail;
use clap::{Args as ClapArgs, Subcommand};
use outputs::rights::Claimant;
use outputs::search::keeping;
use std::process::ExitCode;
use std::sync::Arc;
use store::clock;
use store::datadir::NODE_NAME;
use store::ids::{IdMaker, Part};
use store::tables::cursors::SEARCH;
use store::tables::leases::{self, Asking, Lease};
use store::tables::nodes::{self, NewNode};
use store::tables::settings;

/// How long the leases last; whoever is not done by then has lost them.
const LEASE_MS: i64 = 60 * 60 * 1_000;
/// How far clocks may differ.
const SKEW_MS: i64 = 5_000;
/// Differences that are shown one by one.
const SHOWN_MAX: u64 = 1_000;

/// What is done with the whole index.
#[derive(Subcommand)]
pub enum Keeping {
    Rebuild(Rebuild),
    Verify(Verify),
}

/// Make the search index anew from the documents that are committed
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline search rebuild")]
pub struct Rebuild {
    #[command(flatten)]
    place: Place,
}

/// Compare the search index with the documents that are committed
///
/// Exit code: 0 they agree, 1 there are differences, each of which is named, 2 it could not
/// be done.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline search verify")]
pub struct Verify {
    #[command(flatten)]
    place: Place,
}

/// Does it.
pub fn run(keeping: Keeping) -> anyhow::Result<ExitCode> {
    match keeping {
        Keeping::Rebuild(args) => rebuild(&args),
        Keeping::Verify(args) => verify(&args),
    }
}

/// The index of a place, alone.
struct Alone {
    claimant: Claimant,
    leases: Vec<Lease>,
    // Declared last and so dropped last.
    held: Held,
}

impl Alone {
    fn open(place: &Place) -> anyhow::Result<Alone> {
        let held = place.patiently(Place::hold)?;
        let db = held.db.clone();
        // In a directory this is the one node there is, which takes its own leases back.
        let node_name = match held.layout() {
            Some(_) => NODE_NAME.to_owned(),
            None => format!("search-{}", std::process::id()),
        };
        let node = NewNode {
            name: node_name.clone(),
            roles: SEARCH.to_owned(),
            address: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
        let ids = Arc::new(IdMaker::new(node)?);
        let claimant = Claimant { db, ids, node_name, lease_ms: LEASE_MS, skew_ms: SKEW_MS };
        let mut alone = Alone { claimant, leases: Vec::new(), held };
        alone.take_all()?;
        Ok(alone)
    }

    fn take_all(&mut self) -> anyhow::Result<()> {
        let db = &self.claimant.db;
        for part in (0..i64::from(db.read(settings::parts)?)).map(Part) {
            let asking = Asking {
                node: self.claimant.ids.node(),
                node_name: self.claimant.node_name.clone(),
                now_ms: clock::now_ms(),
                lease_ms: LEASE_MS,
                skew_ms: SKEW_MS,
            };
            match db.write(move |tx| leases::take(tx, part, SEARCH, &asking))? {
                Some(lease) => self.leases.push(lease),
                None => bail!(
                    "another process keeps the search index of part {part} up to date; stop it \
                     first (`driftline status` names it), and wait until its leases have ended"
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

fn rebuild(args: &Rebuild) -> anyhow::Result<ExitCode> {
    let alone = Alone::open(&args.place)?;
    let began_ms = clock::now_ms();
    let means = alone.held.search_means(&alone.claimant)?;
    let documents = keeping::rebuild(&means, &alone.leases)?;
    let took_ms = clock::now_ms() - began_ms;
    match args.place.json() {
        true => say(&serde_json::json!({"documents": documents, "took_ms": took_ms}).to_string()),
        false => {
            say(&format!("made anew: {documents} documents, in {:.1} s", took_ms as f64 / 1e3))
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let alone = Alone::open(&args.place)?;
    let (mut named, mut count) = (Vec::new(), 0);
    let verified = alone.held.search().verify(&mut |what| {
        count += 1;
        match args.place.json() {
            true if count <= SHOWN_MAX => named.push(what.to_owned()),
            false if count <= SHOWN_MAX => say(&shown(what)),
            _ => {}
        }
    })?;
    if args.place.json() {
        let mut answer = serde_json::to_value(&verified)?;
        answer["named"] = named.into();
        say(&answer.to_string());
    } else {
        let verdict = match verified.differences {
            0 => "the index is what is committed".to_owned(),
            count => format!(
                "{count} differences; make it anew with: driftline search rebuild{}",
                args.place.flags()
            ),
        };
        say(&format!("{} documents: {verdict}", verified.indexed));
    }
    Ok(if verified.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
