//! `driftline init`: makes a data directory, or brings an old one up to date.

use super::{Data, say, shown};
use clap::Args as ClapArgs;
use std::process::ExitCode;
use store::clock;
use store::datadir::DataDir;
use store::tables::{overview, settings};

/// Make a data directory, or upgrade one
///
/// The number of parts is fixed for the life of the directory.
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline init --data ./driftline-data --parts 64")]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// Units of distribution; more of them spread over more machines later
    #[arg(long, value_name = "N", default_value_t = settings::PARTS_DEFAULT)]
    parts: u32,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = args.data.root();
    let existed = args.data.layout().exists();
    let data = DataDir::open(root, args.parts, clock::now_ms())?;
    let found = data.db().read(overview::read)?;
    if args.data.json {
        let made = !existed;
        let place = root.display().to_string();
        say(&serde_json::json!({"data": place, "made": made, "overview": found}).to_string());
    } else {
        let verb = if existed { "is up to date" } else { "is ready" };
        let place = shown(&root.display().to_string());
        say(&format!("{place} {verb}: {} parts, schema {}", found.parts, found.schema));
        if existed && found.parts != args.parts && args.parts != settings::PARTS_DEFAULT {
            say(&format!(
                "It keeps its {} parts: they are fixed when a data directory is made.",
                found.parts
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}
