//! `driftline backup`: copies a data directory, in use or not.

use crate::cli::say;
use crate::place::{Place, existing};
use crate::text::{shown, size_of};
use crate::verbs::links::export::{ExportLinks, ExportLinksRequest};
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Back up a data directory, even while it is in use
///
/// The backup has a manifest with the hash of every file; `driftline restore` checks them all.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline backup /mnt/backups/monday")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// Directory for the backup; it must not exist yet
    target: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(root) = args.place.directory() else {
        anyhow::bail!(
            "a database is backed up with its own tools: pg_dump (or WAL archiving) for the rows, \
             and versioning of the bucket, or a copy of the directory, for the objects"
        );
    };
    let layout = existing(root)?;
    let copied = store::backup::backup(&layout, &args.target, &mut |path| {
        if !layout.has_links() {
            return Ok(false);
        }
        let path = std::path::absolute(path).map_err(|error| store::Error::io(path, error))?;
        let written = args.place.ask::<ExportLinks>(ExportLinksRequest { path });
        written.map_err(|error| store::Error::Refused(format!("{error:#}")))
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
