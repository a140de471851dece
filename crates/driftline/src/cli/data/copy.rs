//! `driftline copy`: moves from one data directory to PostgreSQL and an object
//! store, or back.

use crate::cli::say;
use crate::definitions::{self, NAME_A_KEY};
use crate::place::link_index::PlaceLinkIndex;
use crate::place::{Data, S3, Secrets};
use crate::text::{shown, size_of};
use anyhow::{Context, bail, ensure};
use clap::Args as ClapArgs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::copy::{CopySummary, Home};
use store::datadir::DataDir;
use store::objects::{Location, Objects};
use store::tables::settings;
use store::{Db, clock};

/// Copy a data directory to PostgreSQL and an object store, or back
///
/// The target must be new: an empty database and an empty directory or bucket prefix, or a data
/// directory that does not exist yet. No process may use the source meanwhile. Until the copy is
/// complete, every command refuses the target; an interrupted copy starts over when it is run
/// again. The source is not changed.
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline copy --data ./driftline-data --to postgres://driftline@db/driftline \\
             --to-objects s3://crawl/objects
Example: driftline copy --from postgres://driftline@db/driftline \\
             --from-objects file:///srv/objects --to-data ./driftline-data")]
#[command(group = clap::ArgGroup::new("direction").args(["to", "from"]).required(true))]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// Copy the data directory to this PostgreSQL database
    #[arg(long, value_name = "URL", requires = "to_objects")]
    to: Option<String>,
    /// Where to put the objects: file:///directory or s3://bucket/prefix
    #[arg(long, value_name = "PLACE", requires = "to")]
    to_objects: Option<String>,
    /// Copy from this PostgreSQL database
    #[arg(long, value_name = "URL", requires_all = ["from_objects", "to_data"], conflicts_with = "data")]
    from: Option<String>,
    /// Where the objects are: file:///directory or s3://bucket/prefix
    #[arg(long, value_name = "PLACE", requires = "from")]
    from_objects: Option<String>,
    /// Data directory to create from it
    #[arg(long, value_name = "DIR", requires = "from")]
    to_data: Option<PathBuf>,
    #[command(flatten)]
    s3: S3,
    #[command(flatten)]
    secrets: Secrets,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (copied, target) =
        match (&args.to, &args.to_objects, &args.from, &args.from_objects, &args.to_data) {
            (Some(url), Some(place), None, None, None) => copy_out(&args, url, place)?,
            (None, None, Some(url), Some(place), Some(dir)) => copy_back(&args, url, place, dir)?,
            _ => bail!(
                "give one direction: --to and --to-objects, or --from, --from-objects and --to-data"
            ),
        };
    if args.data.json {
        let mut answer = serde_json::to_value(&copied)?;
        answer["copy"] = target.into();
        say(&answer.to_string());
    } else {
        let CopySummary { tables, rows, objects, bytes } = copied;
        say(&format!(
            "{} is ready: {rows} rows of {tables} tables and {objects} objects, {}, all verified",
            shown(&target),
            size_of(bytes)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// To PostgreSQL. Returns what was copied, and a name for the target.
fn copy_out(args: &Args, url: &str, place: &str) -> anyhow::Result<(CopySummary, String)> {
    args.data.existing()?;
    let location = args.s3.location(place)?;
    let now_ms = clock::now_ms();
    let held = DataDir::open(args.data.root(), settings::PARTS_DEFAULT, now_ms)?;
    let target = shared(args, url, place, &location, "--to")?;
    refuse_open_secrets(held.db(), &target.db)?;
    let links = PlaceLinkIndex::new(held.db(), Some(held.layout()));
    let copied = store::copy::copy(&embedded(&held)?, &target, now_ms, &mut || {
        links.copy_to(&PlaceLinkIndex::new(&target.db, None))
    })?;
    Ok((copied, target.db.place().to_owned()))
}

/// From PostgreSQL. Returns what was copied, and a name for the target.
fn copy_back(
    args: &Args,
    url: &str,
    place: &str,
    dir: &Path,
) -> anyhow::Result<(CopySummary, String)> {
    let location = args.s3.location(place)?;
    let source = shared(args, url, place, &location, "--from")?;
    let now_ms = clock::now_ms();
    store::copy::check_source(&source, now_ms)?;
    // Says if the key of its secrets is missing.
    source.db.read(definitions::collect)?;
    let held = DataDir::open_for_copy(dir)?;
    let links = PlaceLinkIndex::new(&source.db, None);
    let copied = store::copy::copy(&source, &embedded(&held)?, now_ms, &mut || {
        links.copy_to(&PlaceLinkIndex::new(held.db(), Some(held.layout())))
    })?;
    Ok((copied, dir.display().to_string()))
}

fn embedded(held: &DataDir) -> anyhow::Result<Home> {
    let objects = held.layout().objects();
    let objects_at = objects.display().to_string();
    let objects = Objects::open(&Location::Directory(objects))?;
    Ok(Home { db: held.db().clone(), objects, objects_at })
}

/// What is sealed in the source is not written in the open.
fn refuse_open_secrets(source: &Db, target: &Db) -> anyhow::Result<()> {
    // This also says if a key of the source is missing.
    let stored = source.read(definitions::collect)?;
    ensure!(
        target.keys().can_seal() || !stored.has_secrets(),
        "connections have secrets, and there is no key to encrypt them in the database; \
         {NAME_A_KEY}"
    );
    Ok(())
}

fn shared(
    args: &Args,
    url: &str,
    place: &str,
    location: &Location,
    flag: &str,
) -> anyhow::Result<Home> {
    let db = Db::open_postgres(url).with_context(|| {
        format!("cannot open the database given with {flag}; it must be running and must exist")
    })?;
    let db = args.secrets.of(db)?;
    Ok(Home { db, objects: Objects::open(location)?, objects_at: place.to_owned() })
}
