//! `driftline export` without a format: all definitions, as one TOML or JSON document, without
//! what goes without saying.
//!
//! Invariant: secrets are left out unless they are asked for, and a file with secrets can
//! be read by its owner only.

use crate::cli::{print_whole, say};
use crate::definitions;
use crate::place::Place;
use crate::text::shown;
use crate::verbs::administration::definitions::{ExportDefinitions, ExportRequest};
use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::tables::connections::ConnectionKind;

#[derive(ClapArgs)]
pub struct AllArgs {
    #[command(flatten)]
    place: Place,
    /// Format of the document
    #[arg(long, value_enum, default_value_t = DefinitionsFormat::Toml)]
    format: DefinitionsFormat,
    /// File to create; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Include secrets instead of ***
    #[arg(long)]
    secrets: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DefinitionsFormat {
    /// For people
    Toml,
    /// For programs
    Json,
}

/// Runs the verb. `--json` is the same as `--format json`: the answer is the document.
pub fn run(args: AllArgs) -> anyhow::Result<ExitCode> {
    let found = args.place.ask::<ExportDefinitions>(ExportRequest { secrets: args.secrets })?;
    let document = definitions::without_usual(&found)?;
    let is_json = args.format == DefinitionsFormat::Json || args.place.json();
    let text = match is_json {
        true if args.place.json() => format!("{document}\n"),
        true => format!("{}\n", serde_json::to_string_pretty(&document)?),
        false => toml::to_string_pretty(&document)
            .context("the definitions cannot be written as TOML")?,
    };
    match &args.output {
        None => print_whole(text.as_bytes())?,
        Some(path) => {
            write(path, &text, args.secrets)?;
            let connections: usize =
                ConnectionKind::ALL.iter().map(|kind| found.connections.of(*kind).len()).sum();
            let jobs = found.jobs.len();
            let file = path.display().to_string();
            say(&match args.place.json() {
                true => serde_json::json!({"file": file, "connections": connections, "jobs": jobs})
                    .to_string(),
                false => {
                    format!("{} holds {connections} connections and {jobs} jobs", shown(&file))
                }
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str, secrets: bool) -> anyhow::Result<()> {
    let place = shown(&path.display().to_string());
    let mode = if secrets { 0o600 } else { 0o644 };
    let file = OpenOptions::new().create_new(true).write(true).mode(mode).open(path);
    let mut file = file.with_context(|| {
        format!("cannot write {place}; give the name of a file that does not exist yet")
    })?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written.with_context(|| format!("cannot write {place}"))
}
