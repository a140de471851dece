//! `driftline demo`: a small web is crawled, changes, and is crawled again; what came of
//! every page is told, with the reason.
//!
//! Offline and by itself: the web is served on loopback, and the crawl is the real one, in
//! a temporary data directory that is gone afterwards. Each step is a file; this one
//! lists them. Invariant: whatever is told was read from what the crawl committed or from
//! what the web's server saw, so the demo cannot say more than is true.

mod change;
mod fates;
mod first;
mod next;
mod round;
mod second;
mod site;
mod stage;
mod why;

use clap::Args as ClapArgs;
use stage::DemoStage;
use std::path::PathBuf;
use std::process::ExitCode;

/// The story, in order. A step tells its part, and leaves on the stage what later ones
/// need.
const STEPS: [fn(&mut DemoStage) -> anyhow::Result<()>; 6] =
    [site::step, first::step, change::step, second::step, why::step, next::step];

/// Crawl a small built-in web, change it, and crawl it again
///
/// It takes a few seconds and uses no network.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  driftline demo
  driftline demo --keep ./demo-data && driftline status --data ./demo-data

Exit code: 0 it ran to the end, 1 it was stopped, 2 error.")]
pub struct Args {
    /// Keep the data directory at this path, to explore it afterwards
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Answer in JSON, with the result of both crawls for every URL
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut stage = DemoStage::open(args.keep, args.json)?;
    for step in STEPS {
        step(&mut stage)?;
        if stage.is_stopped() {
            break;
        }
    }
    stage.close()
}
