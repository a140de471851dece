//! `driftline links`: who links to a page with which words, what it links to, and which
//! links it lost, when and why.
//!
//! `flags` has the flags, `show` prints, `listing` has what this command shares with `top`
//! and `domains`, `maintenance` is about the index as a whole.

mod flags;
pub mod listing;
pub mod maintenance;
mod retention;
pub mod show;
#[cfg(test)]
mod tests;

use crate::cli::{csv, say, say_json};
use crate::place::Place;
use crate::stderr;
use crate::text::moments::calendar;
use crate::text::{quoted, shown};
use crate::verbs::Verb;
use crate::verbs::links::{LinkLine, LinkList, Links, LinksRequest};
pub use flags::Args;
use flags::LinksQueryArgs;
use listing::Sheet;
use std::process::ExitCode;
use store::clock;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.keeping {
        Some(keeping) => maintenance::run(keeping),
        None => look(args.looking),
    }
}

/// Shows the links of a page. One of which nothing is known is a "no".
fn look(looking: LinksQueryArgs) -> anyhow::Result<ExitCode> {
    let now_ms = clock::now_ms();
    let request = looking.request(now_ms)?;
    if looking.flags.csv {
        return export(&looking, request);
    }
    let response = looking.place.ask::<Links>(request)?;
    match looking.place.json() {
        true => say_json(&response)?,
        false => show::lines(&looking, &response, now_ms).iter().for_each(|line| say(line)),
    }
    Ok(if response.page.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn export(looking: &LinksQueryArgs, request: LinksRequest) -> anyhow::Result<ExitCode> {
    let sheet = match request.list {
        Some(LinkList::Lost) => Sheet { columns: &LOST_COLUMNS, cells: lost_cells },
        _ => Sheet { columns: &LOST_COLUMNS[..6], cells },
    };
    let mut session = looking.place.session(Links::OPENS);
    let is_known = looking.flags.export(&sheet, |page| {
        let request = LinksRequest { page: page.clone(), ..request.clone() };
        let response = session.ask::<Links>(request)?;
        Ok([response.inward, response.out, response.lost].into_iter().flatten().next())
    })?;
    if is_known {
        return Ok(ExitCode::SUCCESS);
    }
    stderr::line(&unknown(&looking.place, &request.url));
    Ok(ExitCode::FAILURE)
}

const LOST_COLUMNS: [&str; 8] =
    ["url", "anchor", "kind", "nofollow", "first_seen", "last_seen", "lost", "reason"];

fn cells(it: &LinkLine) -> Vec<String> {
    vec![
        csv::cell(&it.url),
        csv::cell(&it.anchor),
        it.kind.clone(),
        if it.nofollow { "yes" } else { "no" }.to_owned(),
        calendar(it.first_seen_ms),
        calendar(it.last_seen_ms),
    ]
}

fn lost_cells(it: &LinkLine) -> Vec<String> {
    let lost = it.lost_ms.map_or(String::new(), calendar);
    let reason = csv::cell(it.reason.as_deref().unwrap_or_default());
    [cells(it), vec![lost, reason]].concat()
}

/// What is said of a page that nobody has heard of.
pub fn unknown(place: &Place, asked: &str) -> String {
    format!(
        "nothing is known about {}: it was not crawled, and no crawled page links to it; to see \
         why it was not crawled: driftline why {}{}",
        shown(asked),
        quoted(asked),
        place.flags()
    )
}
