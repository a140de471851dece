//! Generations of a mirror: listed, compared, shown, copied, and shown again.

use super::MirrorDirectory;
use crate::cli::{print_whole, say};
use crate::refusal::refusal;
use crate::text::{moments, shown};
use clap::Args as ClapArgs;
use outputs::mirror::Mirror;
use outputs::mirror::generations::{self, Comparison, Generation};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// List the generations of a mirror
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror list ./copy")]
pub struct ListArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
}

/// List the files that differ between two generations of a mirror
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror compare ./copy 1 2")]
pub struct CompareArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
    /// Number of the earlier generation
    #[arg(value_name = "BEFORE")]
    before: u64,
    /// Number of the later generation
    #[arg(value_name = "AFTER")]
    after: u64,
}

/// Print a file of a generation of a mirror
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror show ./copy 1 index.html")]
pub struct ShowArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
    /// Number of the generation
    #[arg(value_name = "GENERATION")]
    generation: u64,
    /// Path of the file below the webroot
    #[arg(value_name = "PATH")]
    path: String,
}

/// Show an older generation of a mirror again
///
/// The next run publishes a new generation, made of the newest x-file.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror rollback ./copy 1")]
pub struct RollbackArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
    /// Number of the generation to show
    #[arg(value_name = "GENERATION")]
    generation: u64,
}

/// Copy a generation of a mirror into a directory of plain files
///
/// For web servers that do not follow symbolic links, and for other machines. A later checkout into
/// the same directory copies only what changed.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline mirror checkout ./copy /srv/www")]
pub struct CheckoutArgs {
    #[command(flatten)]
    mirror: MirrorDirectory,
    /// Directory that gets the files
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// Number of the generation [default: the one that is shown]
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
}

#[derive(Serialize)]
struct GenerationLine {
    number: u64,
    assembled_ms: i64,
    changed_paths: u64,
    is_shown: bool,
}

impl From<&Generation> for GenerationLine {
    fn from(it: &Generation) -> GenerationLine {
        GenerationLine {
            number: it.number,
            assembled_ms: it.assembled_ms,
            changed_paths: it.changed_paths,
            is_shown: it.is_shown,
        }
    }
}

pub fn list(args: ListArgs) -> anyhow::Result<ExitCode> {
    let found = generations::list(&args.mirror.open()?)?;
    let lines: Vec<GenerationLine> = found.iter().map(GenerationLine::from).collect();
    args.mirror.answer(&lines, || {
        if lines.is_empty() {
            say("the mirror has no generation yet");
        }
        for it in &lines {
            let shown = if it.is_shown { ", shown" } else { "" };
            say(&format!(
                "{:>6}  {}  {} files changed{shown}",
                it.number,
                moments::calendar(it.assembled_ms),
                it.changed_paths
            ));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct ComparisonResult {
    added: u64,
    changed: u64,
    removed: u64,
    paths: Vec<PathLine>,
}

#[derive(Serialize)]
struct PathLine {
    path: String,
    /// SHA-256 of the file before and after.
    before: Option<String>,
    after: Option<String>,
}

impl From<Comparison> for ComparisonResult {
    fn from(found: Comparison) -> ComparisonResult {
        let paths = found.paths.into_iter().map(|it| PathLine {
            path: it.path,
            before: it.before.map(|digest| digest.to_string()),
            after: it.after.map(|digest| digest.to_string()),
        });
        ComparisonResult {
            added: found.added,
            changed: found.changed,
            removed: found.removed,
            paths: paths.collect(),
        }
    }
}

pub fn compare(args: CompareArgs) -> anyhow::Result<ExitCode> {
    let found = generations::compare(&args.mirror.open()?, args.before, args.after)?;
    let result = ComparisonResult::from(found);
    args.mirror.answer(&result, || print_comparison(&result))?;
    Ok(ExitCode::SUCCESS)
}

fn print_comparison(found: &ComparisonResult) {
    for it in &found.paths {
        let what = match (&it.before, &it.after) {
            (None, _) => "added  ",
            (_, None) => "removed",
            _ => "changed",
        };
        say(&format!("{what}  {}", shown(&it.path)));
    }
    let all = found.added + found.changed + found.removed;
    let more = all.saturating_sub(found.paths.len() as u64);
    if more > 0 {
        say(&format!("... and {more} more"));
    }
    say(&format!("{} added, {} changed, {} removed", found.added, found.changed, found.removed));
}

#[derive(Serialize)]
struct ShownFile {
    path: String,
    bytes: usize,
    /// The file, as far as it is UTF-8.
    text: String,
}

pub fn show(args: ShowArgs) -> anyhow::Result<ExitCode> {
    let bytes = generations::show(&args.mirror.open()?, args.generation, &args.path)?;
    if args.mirror.json {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let file = ShownFile { path: args.path, bytes: bytes.len(), text };
        say(&serde_json::to_string(&file)?);
    } else {
        print_whole(&bytes)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct RolledBack {
    generation: u64,
}

pub fn rollback(args: RollbackArgs) -> anyhow::Result<ExitCode> {
    let generation = args.generation;
    generations::rollback(&args.mirror.open()?, generation)?;
    args.mirror.answer(&RolledBack { generation }, || {
        say(&format!("generation {generation} is shown"));
    })?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct CheckoutResult {
    generation: u64,
    written: u64,
    removed: u64,
}

pub fn checkout(args: CheckoutArgs) -> anyhow::Result<ExitCode> {
    let mirror = args.mirror.open()?;
    let generation = match args.generation {
        Some(number) => number,
        None => generation_shown(&mirror)?,
    };
    let done = generations::checkout(&mirror, generation, &args.to)?;
    let result = CheckoutResult { generation, written: done.written, removed: done.removed };
    args.mirror.answer(&result, || {
        say(&format!(
            "generation {generation} is in {}: {} files written, {} removed",
            args.to.display(),
            result.written,
            result.removed
        ));
    })?;
    Ok(ExitCode::SUCCESS)
}

fn generation_shown(mirror: &Mirror) -> anyhow::Result<u64> {
    let found = generations::list(mirror)?;
    let number = found.iter().find(|it| it.is_shown).map(|it| it.number);
    Ok(number.ok_or_else(|| refusal("the mirror shows no generation yet"))?)
}
