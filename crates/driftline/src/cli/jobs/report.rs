//! `driftline report`: what was done (history, maxima of activity and bandwidth, results)
//! and where documents stand (one by one, or counted).
//!
//! `flags` has the flags; `table` prints, `csv` writes files.

mod csv;
mod flags;
mod table;
#[cfg(test)]
mod tests;

use crate::cli::{say, say_json};
use crate::verbs;
use crate::verbs::access::Asker;
use crate::verbs::context::VerbContext;
use crate::verbs::jobs::report::{ReportRequest, ReportResponse, Reports};
use anyhow::ensure;
pub use flags::Args;
use flags::AskedReport;
use std::process::ExitCode;
use store::clock;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let AskedReport { place, request, csv } = args.asked(clock::now_ms())?;
    let page = |request: &ReportRequest| -> anyhow::Result<ReportResponse> {
        match request.whole {
            // It may take long, so nobody else is asked to do it.
            true => {
                let context = VerbContext::of_rows(place.rows()?);
                verbs::answer::<Reports>(&context, Asker::CommandLine, request.clone())
            }
            false => place.ask::<Reports>(request.clone()),
        }
    };
    if let Some(path) = csv {
        ensure!(!place.json(), "give either --json or --csv, not both");
        let written = csv::write(&path, &request, page)?;
        if path.as_os_str() != "-" {
            say(&format!("{written} rows written"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let response = page(&request)?;
    match place.json() {
        true => say_json(&response)?,
        false => table::print(&request, &response),
    }
    Ok(ExitCode::SUCCESS)
}
