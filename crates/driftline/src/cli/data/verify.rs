//! `driftline verify`: checks that what is stored is what was written.

use crate::cli::say;
use crate::place::Place;
use crate::text::{shown, size_of};
use clap::Args as ClapArgs;
use std::process::ExitCode;

/// Check rows, counters and objects against their checksums; exit 1 if anything is wrong
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline verify --quick")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Check only the sizes of objects, without reading them
    #[arg(long)]
    quick: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (db, objects) = (args.place.rows()?, args.place.objects()?);
    let report = store::verify::verify(&db, &objects, !args.quick)?;
    if args.place.json() {
        say(&serde_json::to_string(&report)?);
    } else {
        for finding in &report.findings {
            say(&format!("{}: {}", shown(&finding.what), shown(&finding.problem)));
            say(&format!("    {}", finding.remedy));
        }
        let verdict = match report.findings.len() {
            0 => "no errors".to_owned(),
            store::verify::FINDINGS_MAX => format!("{} or more findings", report.findings.len()),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        say(&format!(
            "{} parts, {} rows, {} chunks, {} objects, {} read: {verdict}",
            report.parts,
            report.rows,
            report.chunks,
            report.objects,
            size_of(report.bytes)
        ));
    }
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
