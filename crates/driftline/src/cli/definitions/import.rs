//! `driftline import`: definitions from a file that `driftline export` wrote, or a person.
//!
//! Invariant: the whole file is checked before anything is written, and it is written in
//! one transaction.

use crate::cli::report_change;
use crate::definitions::Definitions;
use crate::place::Place;
use crate::text::shown;
use crate::verbs::administration::definitions::{ImportDefinitions, ImportRequest};
use anyhow::{Context, ensure};
use clap::Args as ClapArgs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of a file: what also goes through the socket of a process that holds the data.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Import definitions from a file and print the changes
///
/// Connections and jobs in the file are created or changed to match it; others stay as they are. A
/// secret written as "***" keeps its stored value.
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline import definitions.toml --dry-run
Example: driftline export --format json | driftline import - --data ./other-data")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// TOML or JSON file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let definitions = read(&args.file)?;
    let request = ImportRequest { definitions, dry_run: args.dry_run };
    let changed = args.place.change::<ImportDefinitions>(request)?;
    report_change(&args.place, &changed, "nothing changes: all definitions match the file already")
}

fn read(path: &Path) -> anyhow::Result<Definitions> {
    let name = shown(&path.display().to_string());
    let mut text = String::new();
    let reader: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(path).with_context(|| format!("cannot read {name}"))?),
    };
    reader
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {name} as text"))?;
    ensure!(
        text.len() as u64 <= FILE_BYTES_MAX,
        "{name} has more than {FILE_BYTES_MAX} bytes; import it in pieces"
    );
    parse(&text)
        .with_context(|| format!("{name} cannot be used; `driftline export` shows the format"))
}

/// JSON begins with a brace; everything else is TOML.
fn parse(text: &str) -> anyhow::Result<Definitions> {
    match text.trim_start().starts_with('{') {
        true => Ok(serde_json::from_str(text)?),
        false => toml::from_str(text)
            .map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_told_apart_and_errors_name_their_place() {
        assert_eq!(parse("").unwrap(), Definitions::default());
        assert_eq!(parse(" {}").unwrap(), Definitions::default());
        let toml = parse("[jobs.a]\nconnexion = 1").unwrap_err().to_string();
        assert!(toml.contains("line 2") && toml.contains("connexion"), "{toml}");
        let json = parse("{\"jobs\": {\"a\": {\"connexion\": 1}}}").unwrap_err().to_string();
        assert!(json.contains("line 1") && json.contains("connexion"), "{json}");
    }
}
