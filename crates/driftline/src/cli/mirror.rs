//! `driftline mirror`: a browsable copy of a site, and what can be done with one that is there.
//!
//! A crawl with a mirror is a crawl whose job has an output more; everything else here works on the
//! directory of a mirror alone, without a data directory.

mod generations;
mod modules;
mod rules;

use crate::cli::crawls::crawl::{self, CrawlArgs};
use crate::cli::say;
use crate::refusal::refusal;
use crate::verbs::crawl::mirror::MirrorTarget;
use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use outputs::mirror::{Mirror, Names};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Keep a browsable copy of a site, or work with one that exists
///
/// The first run copies the site; later runs update the copy at the cost of what changed. Each run
/// writes a numbered x-file that says what was added, updated and removed, and then switches
/// DIR/webroot to the new generation in one step: readers see the old copy or the new one, never a
/// mixture. Pages, style sheets, scripts, images and fonts are kept, and references between them are
/// rewritten so that the copy works offline.
#[derive(ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  driftline mirror https://example.com/ --to ./copy
  driftline mirror https://example.com/docs/ --to ./copy --scope prefix --names path
  driftline mirror list ./copy
  driftline mirror compare ./copy 1 2
  driftline mirror rollback ./copy 1

Exit code: 0 done, 1 the run was stopped or the mirror is damaged, 2 error."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<MirrorCommand>,
    /// Directory of the mirror; its webroot is what a web server or a browser opens
    #[arg(long, value_name = "DIR", required = true)]
    to: Option<PathBuf>,
    /// Names of the pages' files [default: hash]
    #[arg(long, value_enum, value_name = "NAMES")]
    names: Option<NamesFlag>,
    #[command(flatten)]
    crawl: CrawlArgs,
}

/// What the files of pages are called.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum NamesFlag {
    /// By the hash of their URLs
    Hash,
    /// By paths made of their URLs
    Path,
}

/// A mirror that is there.
#[derive(ClapArgs)]
pub struct MirrorDirectory {
    /// Directory of the mirror
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl MirrorDirectory {
    fn open(&self) -> anyhow::Result<Mirror> {
        open(&self.directory)
    }

    /// Prints an answer: JSON for scripts, or what `print` says for people.
    fn answer(&self, answer: &impl Serialize, print: impl FnOnce()) -> anyhow::Result<()> {
        match self.json {
            true => say(&serde_json::to_string(answer)?),
            false => print(),
        }
        Ok(())
    }
}

/// What works on the directory of a mirror.
#[derive(Subcommand)]
enum MirrorCommand {
    List(generations::ListArgs),
    Compare(generations::CompareArgs),
    Show(generations::ShowArgs),
    Rollback(generations::RollbackArgs),
    Checkout(generations::CheckoutArgs),
    Spider(modules::SpiderArgs),
    Parse(modules::ParseArgs),
    React(modules::ReactArgs),
    Assemble(modules::AssembleArgs),
    Verify(modules::VerifyArgs),
    CheckRules(rules::CheckRulesArgs),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        None => crawl_into(args.to, args.names, args.crawl),
        Some(MirrorCommand::List(args)) => generations::list(args),
        Some(MirrorCommand::Compare(args)) => generations::compare(args),
        Some(MirrorCommand::Show(args)) => generations::show(args),
        Some(MirrorCommand::Rollback(args)) => generations::rollback(args),
        Some(MirrorCommand::Checkout(args)) => generations::checkout(args),
        Some(MirrorCommand::Spider(args)) => modules::spider(args),
        Some(MirrorCommand::Parse(args)) => modules::parse(args),
        Some(MirrorCommand::React(args)) => modules::react(args),
        Some(MirrorCommand::Assemble(args)) => modules::assemble(args),
        Some(MirrorCommand::Verify(args)) => modules::verify(args),
        Some(MirrorCommand::CheckRules(args)) => rules::check(args),
    }
}

/// Crawls a site whose job keeps a mirror, and says what is shown then.
fn crawl_into(
    to: Option<PathBuf>,
    names: Option<NamesFlag>,
    crawl: CrawlArgs,
) -> anyhow::Result<ExitCode> {
    let to = to.ok_or_else(|| refusal("say where the mirror is to be: --to DIR"))?;
    let directory = std::path::absolute(&to).with_context(|| format!("--to {}", to.display()))?;
    let text = directory.to_str().ok_or_else(|| {
        refusal(format!("--to {}: the path of a mirror must be UTF-8", to.display()))
    })?;
    let names = names.map(|names| match names {
        NamesFlag::Hash => Names::Hash,
        NamesFlag::Path => Names::Path,
    });
    let is_json = crawl.is_json();
    let code = crawl::crawl(crawl, Some(MirrorTarget { directory: text.to_owned(), names }))?;
    if !is_json {
        announce(&directory)?;
    }
    Ok(code)
}

/// Says what a mirror shows.
fn announce(directory: &Path) -> anyhow::Result<()> {
    let shown = match directory.join("webroot").exists() {
        true => outputs::mirror::generations::list(&open(directory)?)?.into_iter(),
        false => Vec::new().into_iter(),
    };
    match shown.rev().find(|it| it.is_shown) {
        Some(it) => say(&format!(
            "mirror: generation {}, {} files changed; open {}",
            it.number,
            it.changed_paths,
            directory.join("webroot").join("index.html").display()
        )),
        None => say(&format!("mirror: nothing is published in {} yet", directory.display())),
    }
    Ok(())
}

fn open(directory: &Path) -> anyhow::Result<Mirror> {
    Ok(Mirror::reopen(directory)?)
}
