//! `driftline gc`: gives back what nothing needs any more.
//!
//! It holds the data directory while it runs, and answers `driftline status`
//! through the socket meanwhile.

use super::{Data, say, shown, status};
use clap::Args as ClapArgs;
use std::process::ExitCode;
use std::sync::Arc;
use store::datadir::{DataDir, NODE_NAME};
use store::gc::{self, Collector, Keep, Report};
use store::ids::IdMaker;
use store::objects::{Location, Objects};
use store::socket::{self, Question};
use store::tables::nodes::{self, NewNode};
use store::tables::settings;
use store::{Db, clock};

/// Pack small facts, drop what nothing needs any more, and remove its objects
///
/// Facts and bodies go a day after their commit, when no document points to them and
/// every output has passed them. Their objects are condemned first and removed by the
/// first run that comes an hour later, so that nobody who is reading is disturbed.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline gc --data ./driftline-data")]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// Also delete objects that no row knows; without this they are only listed
    #[arg(long)]
    delete_orphans: bool,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let layout = args.data.existing()?;
    let data = DataDir::open(args.data.root(), settings::PARTS_DEFAULT, clock::now_ms())?;
    let answering = data.db().clone();
    let _listening =
        socket::listen(&layout, Arc::new(move |question| answer(&answering, &question)))?;
    let objects = Objects::open(&Location::Directory(layout.objects()))?;
    let keep = Keep { orphans: !args.delete_orphans, ..Keep::default() };
    let report = collect(data.db(), &objects, &keep)?;
    if args.data.json {
        say(&serde_json::to_string(&report)?);
    } else {
        print(&report, args.delete_orphans);
    }
    Ok(ExitCode::SUCCESS)
}

/// Collects as a node of its own, which ends with the collection.
fn collect(db: &Db, objects: &Objects, keep: &Keep) -> store::Result<Report> {
    let node = NewNode {
        name: NODE_NAME.to_owned(),
        roles: "gc".to_owned(),
        address: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let id = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
    let ids = IdMaker::new(id)?;
    let collector = Collector { ids: &ids, node_name: NODE_NAME, clock: clock::now_ms };
    let outcome = gc::all(db, objects, &collector, keep);
    db.write(move |tx| nodes::stop(tx, id, clock::now_ms()))?;
    outcome
}

fn answer(db: &Db, question: &Question) -> Result<serde_json::Value, String> {
    match question.verb.as_str() {
        "status" => status::answer(db, Some("gc")).map_err(|error| format!("{error:#}")),
        verb => Err(format!(
            "process {} is collecting garbage and cannot answer {verb:?}; try again when it is done",
            std::process::id()
        )),
    }
}

fn print(report: &Report, delete_orphans: bool) {
    say(&format!("packed the facts of {} chunks", report.packed));
    say(&format!(
        "dropped the facts of {} chunks and the bodies of {}; {} objects condemned",
        report.facts_dropped, report.bodies_dropped, report.condemned
    ));
    say(&format!("forgot {} chunks that were given up", report.abandoned_forgotten));
    say(&format!(
        "removed {} objects: {} bytes freed, and {} bytes of rows to be used again",
        report.collected, report.object_bytes_freed, report.row_bytes_freed
    ));
    if report.parts_busy > 0 {
        say(&format!("{} parts were left alone: they are in use", report.parts_busy));
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
        "{verb} {} objects that no row knows, {} bytes{hint}",
        orphans.found, orphans.bytes
    ));
    for path in &orphans.paths {
        say(&format!("    {}", shown(path)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_status_while_it_runs_and_says_what_it_does() {
        store::testing::on_sqlite(|db| {
            db.write(|tx| settings::freeze(tx, 4))?;
            let question = |verb: &str| Question { verb: verb.into(), args: Default::default() };
            let status = answer(db, &question("status")).unwrap();
            assert_eq!(status["holder"]["doing"], "gc");
            assert_eq!(status["overview"]["parts"], 4);
            let refused = answer(db, &question("search")).unwrap_err();
            assert!(refused.contains("try again"), "{refused}");
            Ok(())
        });
    }
}
