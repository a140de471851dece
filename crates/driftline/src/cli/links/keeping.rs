//! `driftline links rebuild`, `verify` and `dump`: the whole index made anew, compared with
//! its pages, or printed.
//!
//! Invariants: nobody else changes the index meanwhile, since this process holds the
//! directory, or every part's lease in a database; files that are needed on the way lie
//! beside the data and are gone afterwards.

use crate::cli::place::{Held, Place};
use crate::cli::{say, shown};
use anyhow::bail;
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};
use outputs::links::dump::{Dump, Layout};
use outputs::links::{LinkIndex, rebuild, verify};
use std::io::Write;
use std::process::ExitCode;
use store::ids::Part;
use store::tables::cursors::LINKS as ROLE;
use store::tables::leases::{self, Asking, Lease};
use store::tables::nodes::{self, NewNode};
use store::{Db, clock};
use tempfile::TempDir;

/// How long the leases last at first; whoever is not done by then has lost them.
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
    Dump(Dumping),
}

/// Make the link index anew from the pages it knows
///
/// Pages, their links, and when they were seen stay; everything that is computed from them
/// is written anew, sorted, in one go. Readers see the old index until it is done.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline links rebuild")]
pub struct Rebuild {
    #[command(flatten)]
    place: Place,
}

/// Compare the link index with what its pages say
///
/// Exit code: 0 they agree, 1 there are differences, each of which is named, 2 it could not
/// be done.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline links verify")]
pub struct Verify {
    #[command(flatten)]
    place: Place,
}

/// Print the link index as the original's query table
///
/// Lines `row|family|qualifier|value`, sorted.
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline links dump > table.txt
Example: driftline links dump --layout seed000 --with-seq")]
pub struct Dumping {
    #[command(flatten)]
    place: Place,
    /// How rows are laid out: as the original wrote them, or as one of its two documents says
    #[arg(long, value_name = "LAYOUT", default_value = "webindex",
          value_parser = PossibleValuesParser::new(Layout::ALL.map(Layout::name)))]
    layout: String,
    /// A fifth column: the number of the change that wrote the cell
    #[arg(long)]
    with_seq: bool,
}

/// Does it.
pub fn run(keeping: Keeping) -> anyhow::Result<ExitCode> {
    match keeping {
        Keeping::Rebuild(args) => rebuild(&args),
        Keeping::Verify(args) => verify(&args),
        Keeping::Dump(args) => dump(&args),
    }
}

/// The index of a place, alone.
struct Alone {
    index: LinkIndex,
    scratch: TempDir,
    leases: Vec<Lease>,
    // Declared last and so dropped last: the index is closed before the directory is free.
    held: Held,
}

impl Alone {
    fn open(place: &Place) -> anyhow::Result<Alone> {
        let held = place.patiently(Place::hold)?;
        let index = held.links()?;
        let (scratch, leases) = match held.layout() {
            Some(layout) => (tempfile::tempdir_in(layout.root())?, Vec::new()),
            None => (tempfile::tempdir()?, take_all(&held.db, index.parts())?),
        };
        for part in (0..index.parts()).map(|part| Part(part.into())) {
            // What another process began is finished first.
            index.recover(part, leases.iter().find(|lease| lease.part == part))?;
        }
        Ok(Alone { index, scratch, leases, held })
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        for lease in std::mem::take(&mut self.leases) {
            // If this cannot be written, it runs out.
            let _ = self.held.db.write(move |tx| leases::release(tx, &lease, true));
        }
    }
}

/// Every part's lease, or a word on who has one.
fn take_all(db: &Db, parts: u32) -> anyhow::Result<Vec<Lease>> {
    let now_ms = clock::now_ms();
    let node_name = format!("links-{}", std::process::id());
    let node = NewNode {
        name: node_name.clone(),
        roles: ROLE.to_owned(),
        address: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let node = db.write(move |tx| nodes::register(tx, &node, now_ms))?;
    let asking = Asking { node, node_name, now_ms, lease_ms: LEASE_MS, skew_ms: SKEW_MS };
    let mut taken = Vec::new();
    for part in (0..i64::from(parts)).map(Part) {
        let asking = asking.clone();
        match db.write(move |tx| leases::take(tx, part, ROLE, &asking))? {
            Some(lease) => taken.push(lease),
            None => {
                for lease in taken {
                    db.write(move |tx| leases::release(tx, &lease, true))?;
                }
                bail!(
                    "another process keeps the link index of part {part} up to date; stop it \
                     first (`driftline status` names it), and wait until its leases have ended"
                );
            }
        }
    }
    Ok(taken)
}

fn rebuild(args: &Rebuild) -> anyhow::Result<ExitCode> {
    let alone = Alone::open(&args.place)?;
    let began_ms = clock::now_ms();
    let made = rebuild::rebuild(&alone.index, alone.scratch.path())?;
    let took_ms = clock::now_ms() - began_ms;
    if args.place.json() {
        let mut answer = serde_json::to_value(made)?;
        answer["took_ms"] = took_ms.into();
        say(&answer.to_string());
    } else {
        say(&format!(
            "made anew from {} pages with {} links: {} URIs in {} domains, in {:.1} s",
            made.pages,
            made.links,
            made.uris,
            made.domains,
            took_ms as f64 / 1e3
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let alone = Alone::open(&args.place)?;
    let mut named = Vec::new();
    let mut count = 0;
    let verified = verify::verify(&alone.index, alone.scratch.path(), &mut |what| {
        count += 1;
        match args.place.json() {
            true if count <= SHOWN_MAX => named.push(what.to_owned()),
            false if count <= SHOWN_MAX => say(&shown(what)),
            _ => {}
        }
    })?;
    if args.place.json() {
        let mut answer = serde_json::to_value(verified)?;
        answer["named"] = named.into();
        say(&answer.to_string());
    } else {
        let computed = verified.computed;
        let verdict = match verified.differences {
            0 => "the index is what its pages say".to_owned(),
            count => format!(
                "{count} differences; make it anew with: driftline links rebuild{}",
                args.place.flags()
            ),
        };
        say(&format!(
            "{} pages, {} links, {} URIs, {} domains: {verdict}",
            computed.pages, computed.links, computed.uris, computed.domains
        ));
    }
    Ok(if verified.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn dump(args: &Dumping) -> anyhow::Result<ExitCode> {
    let layout = Layout::parse(&args.layout).unwrap_or_default();
    let alone = Alone::open(&args.place)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut gone = false;
    let dump = Dump { layout, with_seq: args.with_seq };
    let dumped = dump.write(&alone.index, alone.scratch.path(), &mut |line| {
        writeln!(out, "{line}").map_err(|error| {
            gone = error.kind() == std::io::ErrorKind::BrokenPipe;
            store::Error::io("standard output", error)
        })
    });
    match dumped {
        // A reader that has seen enough is no failure.
        Err(_) if gone => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error.into()),
        Ok(()) => match out.flush() {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                bail!("cannot write to standard output: {error}")
            }
            _ => Ok(ExitCode::SUCCESS),
        },
    }
}
