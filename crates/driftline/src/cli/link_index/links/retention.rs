//! `driftline links retention`: which lost links the link index keeps.

use crate::cli::{report_change, say};
use crate::place::Place;
use crate::verbs::links::retention::{RetentionRequest, SetRetention, sentence};
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::tables::settings::{self, LOST_LINKS_DAYS, LOST_LINKS_PER_TARGET};

/// Show or set which lost links the link index keeps
///
/// Lost links older than so many days, and of each target all but the latest ones, are
/// forgotten by a sweep once a day, beside the crawl. Links that are there are not concerned.
#[derive(ClapArgs)]
#[command(after_help = format!("\
Without options it shows what is set; the defaults are {LOST_LINKS_DAYS} days and {LOST_LINKS_PER_TARGET} links of a target.
Example: driftline links retention
Example: driftline links retention --days 365 --per-target 10000
Example: driftline links retention --days 0"))]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Days for which a lost link is kept; 0 is for ever
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Lost links that are kept of one target; 0 is all of them
    #[arg(long, value_name = "N")]
    per_target: Option<u32>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (days, per_target) = (args.days, args.per_target);
    if days.is_some() || per_target.is_some() {
        let changed = args.place.change::<SetRetention>(RetentionRequest { days, per_target })?;
        return report_change(&args.place, &changed, "nothing has changed: it is set so already");
    }
    let kept = args.place.rows()?.read(settings::lost_links)?;
    match args.place.json() {
        true => say(&serde_json::to_string(&kept)?),
        false => say(&sentence(kept)),
    }
    Ok(ExitCode::SUCCESS)
}
