//! `driftline links rebuild`, `verify` and `dump`: the whole index made anew, compared with
//! its pages, or printed.
//!
//! Invariants: nobody else changes the index meanwhile, since this process holds the
//! directory, or every part's lease in a database; files that are needed on the way lie
//! beside the data and are gone afterwards.

use super::retention;
use crate::cli::differences::Differences;
use crate::cli::say;
use crate::place::alone::Alone;
use crate::place::{OpenPlace, Place};
use anyhow::bail;
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};
use outputs::links::dump::{Dump, Layout};
use outputs::links::verify::facts::FactsVerified;
use outputs::links::{LinkIndex, rebuild, verify};
use std::io::Write;
use std::process::ExitCode;
use store::clock;
use store::ids::Part;
use store::tables::cursors::LINKS;
use store::tables::leases::Lease;
use tempfile::TempDir;

/// What is done with the whole index.
#[derive(Subcommand)]
pub enum MaintenanceCommand {
    Rebuild(Rebuild),
    Verify(Verify),
    Dump(DumpArgs),
    Retention(retention::Args),
}

/// Rebuild the link index from the pages in it
///
/// Pages, their links and the times when they were seen are kept; everything computed from them is
/// written again, sorted, in one pass. Readers use the old index until the new one is complete.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline links rebuild")]
pub struct Rebuild {
    #[command(flatten)]
    place: Place,
}

/// Check that the link index matches its pages
///
/// Exit code: 0 no differences, 1 differences, which are listed, 2 error.
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline links verify
Example: driftline links verify --full")]
pub struct Verify {
    #[command(flatten)]
    place: Place,
    /// Also check the pages against the stored facts of their documents
    #[arg(long)]
    full: bool,
}

/// Print the link index in the layout of Webindex's query table
///
/// Lines `row|family|qualifier|value`, sorted.
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline links dump > table.txt
Example: driftline links dump --layout seed000 --with-seq")]
pub struct DumpArgs {
    #[command(flatten)]
    place: Place,
    /// Layout of the rows: as Webindex wrote them, or as one of its two specifications describes it
    #[arg(long, value_name = "LAYOUT", default_value = "webindex",
          value_parser = PossibleValuesParser::new(Layout::ALL.map(Layout::name)))]
    layout: String,
    /// Add a fifth column: the number of the change that wrote the cell
    #[arg(long)]
    with_seq: bool,
}

pub fn run(keeping: MaintenanceCommand) -> anyhow::Result<ExitCode> {
    match keeping {
        MaintenanceCommand::Rebuild(args) => rebuild(&args),
        MaintenanceCommand::Verify(args) => verify(&args),
        MaintenanceCommand::Dump(args) => dump(&args),
        MaintenanceCommand::Retention(args) => retention::run(&args),
    }
}

/// The index of a place, with nobody else at work on it.
struct ExclusiveIndex {
    index: LinkIndex,
    scratch: TempDir,
    /// A directory has one process at a time, which is enough.
    alone: Option<Alone>,
    // Declared last and so dropped last: the index is closed before the directory is free.
    held: OpenPlace,
}

impl ExclusiveIndex {
    fn open(place: &Place) -> anyhow::Result<ExclusiveIndex> {
        let held = place.patiently(Place::hold)?;
        let index = held.link_index()?;
        let (scratch, alone) = match held.layout() {
            Some(layout) => (tempfile::tempdir_in(layout.root())?, None),
            None => (tempfile::tempdir()?, Some(Alone::take(&held, LINKS)?)),
        };
        let leases = alone.as_ref().map_or_else(Vec::new, Alone::leases);
        for part in (0..index.parts()).map(|part| Part(part.into())) {
            // What another process began is finished first.
            index.recover(part, leases.iter().find(|lease| lease.part == part))?;
        }
        Ok(ExclusiveIndex { index, scratch, alone, held })
    }

    /// The leases of all parts; none where nobody else can be.
    fn leases(&self) -> Vec<Lease> {
        self.alone.as_ref().map_or_else(Vec::new, Alone::leases)
    }
}

fn rebuild(args: &Rebuild) -> anyhow::Result<ExitCode> {
    let kept = ExclusiveIndex::open(&args.place)?;
    let began_ms = clock::now_ms();
    let made = rebuild::rebuild(&kept.index, kept.scratch.path(), &kept.leases())?;
    let took_ms = clock::now_ms() - began_ms;
    if args.place.json() {
        let mut answer = serde_json::to_value(made)?;
        answer["took_ms"] = took_ms.into();
        say(&answer.to_string());
    } else {
        say(&format!(
            "rebuilt from {} pages with {} links: {} URIs in {} domains, in {:.1} s",
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
    let kept = ExclusiveIndex::open(&args.place)?;
    let mut differences = Differences::new(args.place.json());
    let mut report = |what: &str| differences.push(what);
    let verified = verify::verify(&kept.index, kept.scratch.path(), &mut report)?;
    let facts = match args.full {
        true => {
            let (db, objects) = (&kept.held.db, &kept.held.objects);
            let scratch = kept.scratch.path();
            Some(verify::facts::verify(&kept.index, db, objects, scratch, &mut report)?)
        }
        false => None,
    };
    let of_facts = facts.map_or(0, |it| it.differences);
    if args.place.json() {
        let mut answer = serde_json::to_value(verified)?;
        answer["named"] = differences.into_named().into();
        if let Some(facts) = facts {
            answer["facts"] = serde_json::to_value(facts)?;
        }
        say(&answer.to_string());
    } else {
        let computed = verified.computed;
        let verdict = match verified.differences {
            0 => "the index matches its pages".to_owned(),
            count => format!(
                "{count} differences; rebuild it with: driftline links rebuild{}",
                args.place.flags()
            ),
        };
        say(&format!(
            "{} pages, {} links, {} URIs, {} domains: {verdict}",
            computed.pages, computed.links, computed.uris, computed.domains
        ));
        facts.iter().for_each(|facts| say(&facts_verdict(facts)));
    }
    let is_right = verified.differences + of_facts == 0;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn facts_verdict(facts: &FactsVerified) -> String {
    let verdict = match facts.differences {
        0 => "they match".to_owned(),
        // A rebuild begins with the pages, and these are wrong.
        count => format!(
            "{count} differences; to have the next crawl read everything again, stop the \
             processes that use the index and remove it (see docs/guide/links.md)"
        ),
    };
    format!("{} pages compared with their facts: {verdict}", facts.compared)
}

fn dump(args: &DumpArgs) -> anyhow::Result<ExitCode> {
    let layout = Layout::parse(&args.layout).unwrap_or_default();
    let kept = ExclusiveIndex::open(&args.place)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut gone = false;
    let dump = Dump { layout, with_seq: args.with_seq };
    let dumped = dump.write(&kept.index, kept.scratch.path(), &mut |line| {
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
