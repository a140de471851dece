//! `driftline gc`: gives back what nothing needs any more.
//!
//! It holds a data directory while it runs, and answers other commands through the
//! socket meanwhile. In a database it leaves alone the parts that others work on.

use crate::cli::say;
use crate::place::{OpenPlace, Place};
use crate::text::{shown, size_of};
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::clock;
use store::datadir::NODE_NAME;
use store::gc::{self, Collector, GcReport, Keep, OnOrphans};
use store::ids::IdMaker;
use store::tables::nodes::{self, NewNode};

/// Pack small fact files, and remove objects that are no longer needed
///
/// A crawl collects garbage at its end, and `work` and `serve` do so every few hours, a limited
/// amount at a time; this command does all of it. Facts and bodies are dropped a day after their
/// commit, once no document refers to them and every output has processed them. Chunks of which
/// little is still needed are rewritten. Objects are first marked for removal, and removed by the
/// first collection at least a day later, so that readers are not disturbed.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline gc --data ./driftline-data")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Also delete objects that no row refers to; by default they are only listed
    #[arg(long)]
    delete_orphans: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let held = args.place.hold()?;
    let _listening = held.listen("gc")?;
    let orphans = if args.delete_orphans { OnOrphans::Delete } else { OnOrphans::Report };
    let keep = Keep { orphans, ..Keep::default() };
    let report = collect(&held, &keep)?;
    if args.place.json() {
        say(&serde_json::to_string(&report)?);
    } else {
        print(&report, args.delete_orphans);
    }
    Ok(ExitCode::SUCCESS)
}

/// Collects what nothing needs after work that is over. Nobody asked for it, so nobody is told;
/// what went wrong is met again by the next collection, or by `gc`.
pub fn after_work(held: &OpenPlace) {
    let _ = collect(held, &Keep::aside());
}

/// Collects as a node of its own, which ends with the collection.
fn collect(held: &OpenPlace, keep: &Keep) -> store::Result<GcReport> {
    let (db, name) = (&held.db, node_name(held));
    let node = NewNode {
        name: name.clone(),
        roles: "gc".to_owned(),
        address: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let id = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
    let ids = IdMaker::new(id)?;
    let collector = Collector { ids: &ids, node_name: &name, clock: clock::now_ms };
    let outcome = gc::all(db, &held.objects, &collector, keep, &|| false);
    db.write(move |tx| nodes::stop(tx, id, clock::now_ms()))?;
    outcome
}

/// Of a database, several may run at once, also beside crawls: none may take another
/// for an earlier start of itself.
fn node_name(held: &OpenPlace) -> String {
    match held.layout() {
        Some(_) => NODE_NAME.to_owned(),
        None => format!("gc-{}-{}", clock::now_ms(), std::process::id()),
    }
}

fn print(report: &GcReport, delete_orphans: bool) {
    say(&format!("packed the facts of {} chunks", report.packed));
    say(&format!(
        "dropped the facts of {} chunks and the bodies of {}; {} objects marked for removal",
        report.facts_dropped, report.bodies_dropped, report.condemned
    ));
    say(&format!(
        "rewrote {} chunks of which little was still needed: {} written",
        report.rewritten,
        size_of(report.rewritten_bytes)
    ));
    say(&format!(
        "deleted the rows of {} chunks that are no longer needed and of {} abandoned ones",
        report.chunks_forgotten, report.abandoned_forgotten
    ));
    say(&format!(
        "removed {} objects: {} freed, and {} of rows for reuse",
        report.collected,
        size_of(report.object_bytes_freed),
        size_of(report.row_bytes_freed)
    ));
    if report.parts_busy > 0 {
        say(&format!("{} parts were skipped: they are in use", report.parts_busy));
    }
    let orphans = &report.orphans;
    if orphans.found == 0 {
        return;
    }
    let (verb, hint) = match delete_orphans {
        true => ("deleted", ""),
        false => ("found", "; delete them with: driftline gc --delete-orphans"),
    };
    say(&format!(
        "{verb} {} objects that no row refers to, {}{hint}",
        orphans.found,
        size_of(orphans.bytes)
    ));
    for path in &orphans.paths {
        say(&format!("    {}", shown(path)));
    }
}
