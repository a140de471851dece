//! What crawls, and what answers while it does.

pub mod crawl;
pub mod deliveries;
pub mod extract;
pub mod robots;
pub mod run_as;
pub mod serve;
pub mod work;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of this room.
// One is made, from the command line.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand)]
pub enum CrawlsCommand {
    Crawl(crawl::Args),
    Work(work::Args),
    Serve(serve::Args),
    Robots(robots::Args),
    Extract(extract::Args),
}

/// Runs one of them.
pub fn run(command: CrawlsCommand) -> anyhow::Result<ExitCode> {
    match command {
        CrawlsCommand::Crawl(args) => crawl::run(args),
        CrawlsCommand::Work(args) => work::run(args),
        CrawlsCommand::Serve(args) => serve::run(args),
        CrawlsCommand::Robots(args) => robots::run(args),
        CrawlsCommand::Extract(args) => extract::run(args),
    }
}
