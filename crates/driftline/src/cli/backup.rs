//! `driftline backup`: copies a data directory, in use or not.

use super::answers::Answers;
use super::place::Place;
use super::words::size_of;
use super::{existing, say, shown};
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::path::PathBuf;
use std::process::ExitCode;

/// What the process that has the link index open is asked.
pub const EXPORT: &str = "links-export";

/// Into which file the link index is to be written.
#[derive(Serialize, Deserialize)]
pub struct Export {
    path: PathBuf,
}

/// Writes the link index into a file, by whoever has it open.
pub fn answer(answers: &Answers, export: Export) -> anyhow::Result<Json> {
    Ok(answers.links.export(&export.path)?.into())
}

/// Copy a data directory to a new place, also while it is in use
///
/// The copy has a manifest with the hash of every file; `driftline restore` checks
/// all of them.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline backup /mnt/backups/monday")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// A directory that is not there yet
    target: PathBuf,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(root) = args.place.directory() else {
        anyhow::bail!(
            "a database is backed up by its own tools: pg_dump (or the server's archiving) for the \
             rows, and versioning of the bucket, or a copy of the directory, for the objects"
        );
    };
    let layout = existing(root)?;
    let copied = store::backup::backup(&layout, &args.target, &mut |path| {
        if !layout.has_links() {
            return Ok(false);
        }
        let path = std::path::absolute(path).map_err(|error| store::Error::io(path, error))?;
        let answer = args.place.link_session().ask(EXPORT, Export { path });
        let answer = answer.map_err(|error| store::Error::Refused(format!("{error:#}")))?;
        Ok(answer == Json::Bool(true))
    })?;
    let target = args.target.display().to_string();
    if args.place.json() {
        let (files, bytes) = (copied.files, copied.bytes);
        say(&serde_json::json!({"backup": target, "files": files, "bytes": bytes}).to_string());
    } else {
        say(&format!(
            "{} holds {} files, {}; restore it with: driftline restore {0}",
            shown(&target),
            copied.files,
            size_of(copied.bytes)
        ));
    }
    Ok(ExitCode::SUCCESS)
}
