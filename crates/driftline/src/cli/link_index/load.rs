//! `driftline load`: archives and pages that others have crawled, straight into the link
//! index.
//!
//! WARC and WAT archives, and page JSON as Webindex kept it. Invariants: a
//! file that is not there, or is of no such kind, is told before anything is made; an older
//! capture never replaces a newer one, whatever the order of files; however a load ends,
//! the next one goes on behind the last batch, since how far a file is comes with its effect.

mod file;
mod leases;
mod mark;
mod records;
mod show;
mod source;
#[cfg(test)]
mod tests;

use crate::cli::crawls::crawl::{node_name, signals};
use crate::cli::say;
use crate::place::{OpenPlace, Place};
use crate::stderr;
use anyhow::Context;
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use file::{BatchLimits, LoadContext, LoadOutcome, LoadedFile};
use outputs::links::prune;
use page::outlinks::LinkPolicy;
use serde_json::json;
use show::LoadLine;
use source::SourceFile;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::clock;
use store::tables::settings::{self, LoadedArchives};

/// Load archives into the link index: WARC, WAT, or page JSON
///
/// The format is detected from the content: WARC or Common Crawl WAT records, plain or compressed,
/// or one JSON page per line. A captured page is added with its links; a 404, a 410 or a redirect
/// marks the page as gone; failures change nothing. The newest capture counts, in whatever order
/// files are loaded. An interrupted load continues when the same command is run again.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  driftline load CC-MAIN-20260101000000-00000.warc.wat.gz --link-policy external
  driftline load --data ./driftline-data crawl-1.warc.gz crawl-2.warc.gz
  driftline load 5-pages.txt --link-policy webindex

Exit code: 0 all files are loaded, 1 a file is incomplete or the load was stopped, 2 error.")]
pub struct Args {
    /// Archives, or files with page JSON
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Which links count: all, those to other domains, or those that Webindex counted
    #[arg(long, value_name = "POLICY", default_value = "all",
          value_parser = PossibleValuesParser::new(["all", "external", "webindex"]).map(policy_of))]
    link_policy: LinkPolicy,
    /// Load files from the start, even if they are loaded already
    #[arg(long)]
    again: bool,
    /// Number of parts of a new database; more parts can be spread over more machines
    #[arg(long, value_name = "N", default_value_t = settings::PARTS_DEFAULT)]
    parts: u32,
}

fn policy_of(name: String) -> LinkPolicy {
    LinkPolicy::parse(&name).unwrap_or_default()
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let sources = look(&args.files)?;
    let held = args.place.patiently(|place| place.hold_or_make(args.parts))?;
    let _listening = held.listen("load")?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let _stopping = signals::heed("load", move || stopped.store(true, Ordering::SeqCst))?;
    let loaded = load_all(&args, &held, &sources, &stop)?;
    if args.place.json() {
        let files: Vec<_> = loaded.iter().map(|(source, it)| show::json(source, it)).collect();
        let is_stopped = stop.load(Ordering::SeqCst);
        say(&json!({"files": files, "stopped": is_stopped}).to_string());
    }
    let is_whole =
        |it: &LoadedFile| matches!(it.ended, LoadOutcome::Finished | LoadOutcome::Already);
    let are_whole = loaded.len() == sources.len() && loaded.iter().all(|(_, it)| is_whole(it));
    Ok(if are_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Looks at all files, each once.
fn look(files: &[PathBuf]) -> anyhow::Result<Vec<SourceFile>> {
    let mut sources: Vec<SourceFile> = Vec::with_capacity(files.len());
    for file in files {
        let source = SourceFile::look(file)?;
        if sources.iter().all(|known| known.path != source.path) {
            sources.push(source);
        }
    }
    Ok(sources)
}

/// Loads one file after the other, until somebody says stop.
fn load_all<'a>(
    args: &Args,
    held: &OpenPlace,
    sources: &'a [SourceFile],
    stop: &AtomicBool,
) -> anyhow::Result<Vec<(&'a SourceFile, LoadedFile)>> {
    let is_stopped = || stop.load(Ordering::SeqCst);
    let waits = || {
        stderr::line("driftline: a crawl or a load is using the link index; waiting for it to end");
    };
    let Some(holding) = leases::take(held, &node_name(None, held), &is_stopped, &waits)? else {
        return Ok(Vec::new());
    };
    let (index, list) = (held.link_index()?, held.db.read(settings::suffix_list)?);
    let leases = holding.leases();
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        if is_stopped() {
            break;
        }
        let line = LoadLine::new(args.place.json());
        let means = LoadContext {
            index: &index,
            leases: &leases,
            list: &list,
            policy: args.link_policy,
            again: args.again,
            limits: BatchLimits::default(),
            stop: &|_| is_stopped(),
            watch: &|read| line.draw(source, read),
        };
        let loaded = file::load(&means, source).with_context(|| {
            format!("{} is not completely loaded; run the same command to continue", source.name)
        })?;
        line.clear();
        note(held, &loaded)?;
        if !args.place.json() {
            print_loaded(source, &loaded);
        }
        all.push((source, loaded));
    }
    // As a crawl does: an index that is only filled from archives keeps to the limits, too.
    let setting = held.db.read(settings::lost_links)?;
    while !is_stopped() && prune::step_any(&index, &leases, setting, clock::now_ms())? {}
    Ok(all)
}

/// Keeps what a file has brought, for `driftline status`.
fn note(held: &OpenPlace, loaded: &LoadedFile) -> anyhow::Result<()> {
    if loaded.read.records == 0 {
        return Ok(());
    }
    let more = LoadedArchives {
        files: u64::from(loaded.ended == LoadOutcome::Finished),
        pages: loaded.read.pages,
        links: loaded.read.links,
        last_ms: clock::now_ms(),
    };
    Ok(held.db.write(move |tx| settings::add_loaded_archives(tx, &more))?)
}

fn print_loaded(source: &SourceFile, loaded: &LoadedFile) {
    if let LoadOutcome::Failed(error) = &loaded.ended {
        stderr::line(&format!("driftline: {}: {error}", source.name));
    }
    show::lines(source, loaded).iter().for_each(|line| say(line));
}
