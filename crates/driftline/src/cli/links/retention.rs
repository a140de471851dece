//! `driftline links retention`: which lost links the link index keeps.
//!
//! Invariant: what is not named stays as it is; what is said is in force at the next sweep,
//! whichever process does it.

use crate::cli::changes::{Changed, Changes};
use crate::cli::place::Place;
use crate::cli::{say, told, words};
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use store::tables::settings::{self, LOST_LINKS_DAYS, LOST_LINKS_PER_TARGET, LostLinks};

/// The verb that goes through a socket.
pub const VERB: &str = "lost-links";

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

/// A change, as it goes through a socket.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Change {
    /// Sets what is named.
    Set {
        /// Days for which a lost link is kept.
        days: Option<u32>,
        /// Lost links that are kept of one target.
        per_target: Option<u32>,
    },
}

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (days, per_target) = (args.days, args.per_target);
    if days.is_some() || per_target.is_some() {
        let answer = args.place.change(VERB, Change::Set { days, per_target })?;
        return told(&args.place, answer, "nothing has changed: it is set so already");
    }
    let kept = args.place.rows()?.read(settings::lost_links)?;
    match args.place.json() {
        true => say(&serde_json::to_string(&kept)?),
        false => say(&sentence(kept)),
    }
    Ok(ExitCode::SUCCESS)
}

fn sentence(kept: LostLinks) -> String {
    let days = match kept.days {
        0 => "for ever".to_owned(),
        days => format!("for {}", words::counted(days.into(), "day", "days")),
    };
    let many = match kept.per_target {
        0 => "all of each target".to_owned(),
        many => format!("at most {many} of each target"),
    };
    format!("lost links are kept {days}, {many}")
}

/// Carries out a change, by whoever has the rows.
pub fn change(changes: &Changes, change: Change) -> anyhow::Result<Changed> {
    let Change::Set { days, per_target } = change;
    let (before, after) = changes.db.write(move |tx| {
        let before = settings::lost_links(tx)?;
        let after = LostLinks {
            days: days.unwrap_or(before.days),
            per_target: per_target.unwrap_or(before.per_target),
        };
        settings::set_lost_links(tx, after)?;
        Ok((before, after))
    })?;
    let is_new = before != after;
    Ok(Changed::done(is_new.then(|| sentence(after)).into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use store::socket::Question;
    use store::testing::both_databases;

    #[test]
    fn which_lost_links_are_kept_is_set_one_by_one_and_written_down() {
        both_databases(|db| {
            let changes = Changes::by_command_line(db.clone());
            let set = |args| {
                let question = Question { verb: VERB.into(), args: json!({ "set": args }) };
                changes.change(&question).unwrap()["changes"].clone()
            };
            assert_eq!(
                set(json!({"days": 7})),
                json!(["lost links are kept for 7 days, at most 1000 of each target"])
            );
            assert_eq!(
                set(json!({"per_target": 0})),
                json!(["lost links are kept for 7 days, all of each target"])
            );
            assert_eq!(set(json!({"days": 7, "per_target": 0})), json!([]));
            assert_eq!(db.read(settings::lost_links)?, LostLinks { days: 7, per_target: 0 });
            Ok(())
        });
    }
}
