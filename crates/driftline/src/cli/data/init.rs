//! `driftline init`: makes a data directory or fills an empty database, or brings an
//! old one up to date.

use crate::cli::say;
use crate::place::Place;
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::clock;
use store::datadir::Layout;
use store::tables::{overview, settings};

/// Create or upgrade a data directory or a PostgreSQL database
///
/// The number of parts cannot be changed later.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline init --data ./driftline-data --parts 64")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Number of parts; more parts can be spread over more machines later
    #[arg(long, value_name = "N", default_value_t = settings::PARTS_DEFAULT)]
    parts: u32,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let existed = match args.place.directory() {
        Some(root) => Layout::new(root).exists(),
        None => args.place.rows().is_ok(),
    };
    let held = args.place.hold_or_make(args.parts)?;
    if existed {
        // One that was made now has been told of.
        args.place.warn_if_open();
    }
    let found = held.db.read(|tx| overview::read(tx, clock::now_ms()))?;
    if args.place.json() {
        let made = !existed;
        let place = match args.place.directory() {
            Some(root) => root.display().to_string(),
            None => held.db.place().to_owned(),
        };
        say(&serde_json::json!({"data": place, "made": made, "overview": found}).to_string());
    } else {
        let verb = if existed { "is up to date" } else { "is ready" };
        let place = args.place.name();
        say(&format!("{place} {verb}: {} parts, schema {}", found.parts, found.schema));
        if existed && found.parts != args.parts && args.parts != settings::PARTS_DEFAULT {
            say(&format!("It keeps its {} parts: the number cannot be changed.", found.parts));
        }
    }
    Ok(ExitCode::SUCCESS)
}
