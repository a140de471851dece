//! `driftline export`: all definitions as a document, or stored bodies as an archive that
//! other tools read.
//!
//! Invariant: an archive has its name only when it is whole and synced; it is built
//! beside it as `FILE.partial`, and never replaces a file that is there.

pub mod all;

use crate::cli::say;
use crate::place::Place;
use crate::text::{shown, size_of};
use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::beneath;
use store::chunkfile::ChunkKey;
use store::chunkfile::export::{ExportSummary, export_stored};
use store::chunkfile::warc::{self, Record, RecordId};
use store::clock;

/// Bodies may be of pages that not everybody may read.
const PRIVATE: u32 = 0o600;
/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// Export all definitions as one document, or stored bodies as an archive
///
/// `driftline import` reads the document.
#[derive(ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Example: driftline export -o definitions.toml
Example: driftline export warc crawl.warc.gz"
)]
pub struct Args {
    #[command(subcommand)]
    format: Option<ExportFormat>,
    #[command(flatten)]
    all: all::AllArgs,
}

#[derive(Subcommand)]
enum ExportFormat {
    Warc(WarcArgs),
}

/// Export all stored bodies as one .warc.gz file, even while the directory is in use
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline export warc crawl.warc.gz --data ./driftline-data")]
struct WarcArgs {
    #[command(flatten)]
    place: Place,
    /// File to create; its name must end with .warc.gz
    #[arg(value_name = "FILE.warc.gz", value_parser = warc_gz)]
    file: PathBuf,
}

fn warc_gz(text: &str) -> Result<PathBuf, String> {
    if text.ends_with(".warc.gz") && text != ".warc.gz" && !text.ends_with("/.warc.gz") {
        return Ok(PathBuf::from(text));
    }
    Err("give a file name that ends with .warc.gz".to_owned())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.format {
        Some(ExportFormat::Warc(warc)) => archive(&warc),
        None => all::run(args.all),
    }
}

fn archive(args: &WarcArgs) -> anyhow::Result<ExitCode> {
    let (db, objects) = (args.place.rows()?, args.place.objects()?);
    let file = args.file.display().to_string();
    let info = info_of(db.place(), &args.file, clock::now_ms());
    let partial = Partial::start(&args.file)?;
    let exported = partial.fill(|out| Ok(export_stored(&db, &objects, &info, out)?))?;
    let bytes = partial.finish(&args.file)?;
    let ExportSummary { chunks, records } = exported;
    if args.place.json() {
        let answer = serde_json::json!(
            {"file": file, "chunks": chunks, "records": records, "bytes": bytes}
        );
        say(&answer.to_string());
    } else {
        say(&format!(
            "{} holds {records} records of {chunks} chunks, {}",
            shown(&file),
            size_of(bytes)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The record that opens the archive. Its id is of this export alone: the database,
/// the file, the moment and the process make it.
fn info_of(place: &str, file: &Path, now_ms: i64) -> Record {
    let process = std::process::id();
    let name = format!("{}\n{}\n{now_ms}\n{process}", place, file.display());
    let seed = page::ids::hash128(name.as_bytes());
    let id = RecordId::of(seed, ChunkKey { part: 0, id: 0 }, 0);
    let software = concat!("driftline/", env!("CARGO_PKG_VERSION"));
    warc::warcinfo(&id, now_ms, &[("software", software), ("format", "WARC File Format 1.1")])
}

/// A file under way. It goes when it is dropped before it is finished.
struct Partial {
    path: PathBuf,
    file: File,
    whole: bool,
}

impl Partial {
    fn start(target: &Path) -> anyhow::Result<Partial> {
        refuse_existing(target)?;
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        let place = shown(&path.display().to_string());
        let file = beneath::open_or_make(&path, PRIVATE)
            .with_context(|| format!("cannot write {place}"))?;
        // What a killed export left is ours to replace; what a living one writes is not.
        if file.try_lock().is_err() {
            anyhow::bail!("{place} is being written by another export; wait for it to end");
        }
        // The other export may have finished between our two looks; then the file we
        // opened has its name by now, and must not be touched.
        refuse_existing(target)?;
        let partial = Partial { path, file, whole: false };
        let emptied = partial.file.set_len(0);
        // One that was left behind may have been open to others.
        let closed =
            emptied.and_then(|()| partial.file.set_permissions(Permissions::from_mode(PRIVATE)));
        closed.with_context(|| format!("cannot write {place}"))?;
        Ok(partial)
    }

    fn fill<T>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut out = BufWriter::with_capacity(BUFFER, &self.file);
        let done = write(&mut out)?;
        out.flush().with_context(|| format!("cannot write {}", self.shown()))?;
        Ok(done)
    }

    /// Gives the file its name; returns its size.
    fn finish(mut self, target: &Path) -> anyhow::Result<u64> {
        let failed = || format!("cannot finish {}", shown(&target.display().to_string()));
        self.file.sync_all().with_context(failed)?;
        let bytes = self.file.metadata().with_context(failed)?.len();
        refuse_existing(target)?;
        std::fs::rename(&self.path, target).with_context(failed)?;
        self.whole = true;
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory).and_then(|directory| directory.sync_all()).with_context(failed)?;
        Ok(bytes)
    }

    fn shown(&self) -> String {
        shown(&self.path.display().to_string())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.whole {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn refuse_existing(target: &Path) -> anyhow::Result<()> {
    let exists = target.symlink_metadata().is_ok();
    let place = shown(&target.display().to_string());
    anyhow::ensure!(!exists, "{place} exists already; choose another name, or remove it first");
    Ok(())
}
