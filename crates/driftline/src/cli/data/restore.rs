//! `driftline restore`: makes a data directory from a backup.

use crate::cli::say;
use crate::place::Data;
use crate::text::{shown, size_of};
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Restore a backup into a new data directory, verifying every file
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline restore /mnt/backups/monday --data ./driftline-data")]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// Directory made by `driftline backup`
    source: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let copied = store::backup::restore(&args.source, args.data.root())?;
    let root = args.data.root().display().to_string();
    if args.data.json {
        let (files, bytes) = (copied.files, copied.bytes);
        say(&serde_json::json!({"data": root, "files": files, "bytes": bytes}).to_string());
    } else {
        let (files, bytes) = (copied.files, size_of(copied.bytes));
        say(&format!("{} is ready: {files} files, {bytes}, all verified", shown(&root)));
    }
    Ok(ExitCode::SUCCESS)
}
