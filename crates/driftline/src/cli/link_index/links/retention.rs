//! `driftline links retention`: which lost links the link index keeps.

use crate::cli::{report_change, say};
use crate::place::Place;
use crate::verbs::links::retention::{RetentionRequest, SetRetention, sentence};
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::tables::settings::{self, LOST_LINKS_DAYS, LOST_LINKS_PER_TARGET};

/// Show or set how long the link index keeps lost links
///
/// Once a day, a sweep during the crawl deletes lost links that are older than this, and all but
/// the most recent lost links of each target. Existing links are never deleted.
#[derive(ClapArgs)]
#[command(after_help = format!("\
Without options it shows the settings; the defaults are {LOST_LINKS_DAYS} days and {LOST_LINKS_PER_TARGET} links per target.
Example: driftline links retention
Example: driftline links retention --days 365 --per-target 10000
Example: driftline links retention --days 0"))]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Days to keep a lost link; 0 keeps it forever
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Lost links to keep per target; 0 keeps all
    #[arg(long, value_name = "N")]
    per_target: Option<u32>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (days, per_target) = (args.days, args.per_target);
    if days.is_some() || per_target.is_some() {
        let changed = args.place.change::<SetRetention>(RetentionRequest { days, per_target })?;
        return report_change(&args.place, &changed, "nothing changed: it is already as requested");
    }
    let kept = args.place.rows()?.read(settings::lost_links)?;
    match args.place.json() {
        true => say(&serde_json::to_string(&kept)?),
        false => say(&sentence(kept)),
    }
    Ok(ExitCode::SUCCESS)
}
