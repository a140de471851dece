//! `driftline search rebuild` and `verify`: the whole index made anew, or compared with what
//! is committed.
//!
//! Invariant: nobody else writes the index meanwhile, since this process has the lease of
//! every part, and the directory if there is one.

use crate::cli::differences::Differences;
use crate::cli::say;
use crate::place::Place;
use crate::place::alone::Alone;
use clap::{Args as ClapArgs, Subcommand};
use outputs::search::rebuild;
use outputs::search::verify::ShardVerifyResult;
use std::process::ExitCode;
use store::clock;
use store::tables::cursors::SEARCH;

/// What is done with the whole index.
#[derive(Subcommand)]
pub enum SearchMaintenanceCommand {
    Rebuild(Rebuild),
    Verify(Verify),
}

/// Rebuild the search index from the committed documents
///
/// The old index answers until the new one replaces it.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline search rebuild")]
pub struct Rebuild {
    #[command(flatten)]
    place: Place,
}

/// Check that the search index matches the committed documents
///
/// It verifies the checksums of all index files, then looks up every document. Documents committed
/// since the last update of the index are counted, but are not differences.
///
/// Exit code: 0 no differences, 1 differences, which are listed, 2 error.
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline search verify
Example: driftline search verify --full")]
pub struct Verify {
    #[command(flatten)]
    place: Place,
    /// Also check title, text and fields of every document against its stored facts
    #[arg(long)]
    full: bool,
}

pub fn run(keeping: SearchMaintenanceCommand) -> anyhow::Result<ExitCode> {
    match keeping {
        SearchMaintenanceCommand::Rebuild(args) => rebuild(&args),
        SearchMaintenanceCommand::Verify(args) => verify(&args),
    }
}

fn rebuild(args: &Rebuild) -> anyhow::Result<ExitCode> {
    let held = args.place.patiently(Place::hold)?;
    let alone = Alone::take(&held, SEARCH)?;
    // What is there answers meanwhile.
    let _listening = held.listen("search rebuild")?;
    let began_ms = clock::now_ms();
    let means = held.search_means(&alone.claimant)?;
    let documents = rebuild::rebuild(&means, &alone.leases())?;
    let took_ms = clock::now_ms() - began_ms;
    match args.place.json() {
        true => say(&serde_json::json!({"documents": documents, "took_ms": took_ms}).to_string()),
        false => say(&format!("rebuilt: {documents} documents, in {:.1} s", took_ms as f64 / 1e3)),
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let held = args.place.patiently(Place::hold)?;
    let _alone = Alone::take(&held, SEARCH)?;
    let mut differences = Differences::new(args.place.json());
    let verified = held.search_index().verify(args.full, &mut |what| differences.push(what))?;
    if args.place.json() {
        let mut answer = serde_json::to_value(&verified)?;
        answer["named"] = differences.into_named().into();
        say(&answer.to_string());
    } else {
        say(&format!("{} documents: {}", verified.indexed, verdict(&verified, &args.place)));
        if verified.behind_chunks > 0 {
            say(&behind(&verified));
        }
    }
    Ok(if verified.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verdict(verified: &ShardVerifyResult, place: &Place) -> String {
    match verified.differences {
        0 if verified.compared > 0 => "the index matches them and their facts".to_owned(),
        0 => "the index matches them".to_owned(),
        count => format!(
            "{count} differences; rebuild it with: driftline search rebuild{}",
            place.flags()
        ),
    }
}

/// What the index has still to follow.
fn behind(verified: &ShardVerifyResult) -> String {
    format!(
        "the index is {} commits with {} documents behind, which is normal: the next crawl, or \
         `driftline work`, brings it up to date",
        verified.behind_chunks, verified.waiting
    )
}
