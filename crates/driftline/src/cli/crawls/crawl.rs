//! `driftline crawl`: one command from nothing to a crawled site.
//!
//! It makes what is not there (directory, schema, job), begins or goes on with a run,
//! works until the run is over, and tells what came of it. When another process works on the
//! directory, that one does it ([`handover`]). Invariants: flags that are
//! not given leave the job as it is; whatever ends the process, the next `crawl` goes
//! on where the last commit was.

mod handover;
pub(super) mod live;
pub mod show;
pub mod signals;
mod whole_run;
pub mod work;

use crate::cli::say;
use crate::place::holder::{Holder, is_in_use};
use crate::place::{OpenPlace, Place};
use crate::text::shown;
use crate::verbs::crawl::audit::AuditedChange;
use crate::verbs::crawl::flags::{self, CrawlFlags};
use crate::verbs::crawl::mirror::MirrorTarget;
use crate::verbs::crawl::request::CrawlRequest;
use ::crawl::begin::{self, Begun};
use ::crawl::definitions::WebSpec;
use ::crawl::worker::{CrawlEnd, WorkerSettings};
use anyhow::bail;
use clap::Args as ClapArgs;
use handover::HandedOverCrawl;
use std::process::ExitCode;
use store::Db;
use store::datadir::NODE_NAME;
use store::tables::settings;
use work::CrawlWork;

/// Crawl a site, or continue a crawl
///
/// The first crawl fetches everything the seeds lead to. Later crawls check every known document
/// again, with conditional requests where the server supports them, and find new ones. An
/// interrupted crawl continues where it stopped. Flags are stored with the job: --job NAME without
/// URLs repeats the crawl with the same settings, and a flag given then changes them. While
/// `driftline work` or `serve` holds the directory, that process runs the crawl and this one shows
/// its progress; Ctrl-C pauses the job, and the same command continues it.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  driftline crawl https://example.com/
  driftline crawl https://example.com/docs/ --scope prefix --delay 0.5 --max-pages 1000
  driftline crawl --job example.com --exclude '/calendar/'
  driftline crawl https://example.com/ --database postgres://driftline@db/driftline \\
      --objects s3://crawl/objects

Exit code: 0 the run finished, 1 it was stopped before that or could fetch nothing, 2 error.")]
pub struct Args {
    #[command(flatten)]
    crawl: CrawlArgs,
}

/// What is crawled, and where.
#[derive(ClapArgs)]
pub struct CrawlArgs {
    /// Where the crawl begins; can be omitted for an existing job
    #[arg(value_name = "URL")]
    seeds: Vec<String>,
    /// Name of the job [default: the host of the first URL]
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    #[command(flatten)]
    flags: CrawlFlags,
    #[command(flatten)]
    place: Place,
    /// Follow suspected crawler traps again, and restart their counts
    #[arg(long)]
    reopen: bool,
    /// Number of parts of a new database; more parts can be spread over more machines
    #[arg(long, value_name = "N", default_value_t = settings::PARTS_DEFAULT)]
    parts: u32,
    /// Name of this process among those that share the database; keep it the same across restarts
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Seconds without a heartbeat after which a process loses its parts of the database
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = flags::seconds)]
    lease: f64,
    /// Pause while less than this percentage of the data directory's disk is free, or less than
    /// about 900 MB, which a commit, a merge and a checkpoint may write; 0 continues until the disk
    /// is full
    #[arg(long, value_name = "PERCENT", default_value_t = 5)]
    min_free: u64,
}

impl CrawlArgs {
    /// Whether answers are JSON.
    pub fn is_json(&self) -> bool {
        self.place.json()
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    crawl(args.crawl, None)
}

/// Crawls; `mirror` is where the job keeps a browsable copy from now on.
pub fn crawl(args: CrawlArgs, mirror: Option<MirrorTarget>) -> anyhow::Result<ExitCode> {
    let first = args.seeds.first().map(|seed| flags::seed_url(seed)).transpose()?;
    let request = CrawlRequest {
        name: job_name(&args, first.as_deref())?,
        seeds: args.seeds.clone(),
        flags: args.flags.clone(),
        reopen: args.reopen,
        mirror,
    };
    // What is wrong with the flags is said before anything is made.
    request.new_spec()?;
    let lease_ms = flags::milliseconds("--lease", args.lease)?.max(100);
    let held = match hold_or_hand_over(&args, &request)? {
        CrawlPlace::Held(held) => held,
        CrawlPlace::HandedOver(exit_code) => return Ok(exit_code),
    };
    let known = request.known(&held.db)?;
    let spec = request.spec(known.as_ref())?;
    if let Some(job) = known.as_ref().filter(|_| args.reopen) {
        begin::reopen(&held.db, job.id)?;
    }
    let _listening = held.listen("crawl")?;
    let node_name = node_name(args.node.as_deref(), &held);
    let (name, mirror) = (request.name, request.mirror);
    let is_edited = known.as_ref().is_none_or(|job| job.docspec != spec.to_json());
    let audited = is_edited.then(|| AuditedChange::begin(&held.db, &name)).transpose()?;
    let crawl = Crawl { args: &args, held: &held, name, spec, mirror, node_name, lease_ms };
    crawl.run(audited.as_ref())
}

enum CrawlPlace {
    /// This process, which has the place.
    Held(Box<OpenPlace>),
    /// Another one did, and so it ended.
    HandedOver(ExitCode),
}

/// Takes the place; a crawl of a directory that another process works on is handed to it.
fn hold_or_hand_over(args: &CrawlArgs, request: &CrawlRequest) -> anyhow::Result<CrawlPlace> {
    loop {
        // A job that must be there already makes nothing.
        let held = args.place.patiently(|place| match args.seeds.is_empty() {
            true => place.hold(),
            false => place.hold_or_make(args.parts),
        });
        let error = match held {
            Ok(held) => return Ok(CrawlPlace::Held(Box::new(held))),
            Err(error) if !is_in_use(&error) => return Err(error),
            Err(error) => error,
        };
        match args.place.holder()? {
            Some(holder) if holder.works() => {
                if let Some(exit_code) = hand_over(args, request, holder)? {
                    return Ok(CrawlPlace::HandedOver(exit_code));
                }
            }
            Some(holder) => bail!(
                "{error:#}; that process runs `{}`, which accepts no other crawl: wait until it \
                 ends, or stop it and start `driftline work`, which accepts any crawl",
                shown(&holder.doing)
            ),
            None => return Err(error),
        }
    }
}

/// Has another process crawl. `None` when it has ended before.
fn hand_over(
    args: &CrawlArgs,
    request: &CrawlRequest,
    holder: Holder,
) -> anyhow::Result<Option<ExitCode>> {
    let handed = HandedOverCrawl { place: &args.place, holder, request };
    let announce = |begun: &Begun| announce(args, &request.name, begun);
    let Some(outcome) = handed.run(announce)? else { return Ok(None) };
    print_summary(args, &outcome.summary)?;
    exit_code(&outcome.db, &request.name, &outcome.summary, outcome.ended).map(Some)
}

fn job_name(args: &CrawlArgs, first: Option<&str>) -> anyhow::Result<String> {
    match (&args.job, first) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(url)) => Ok(page::url::host_of(url).to_owned()),
        (None, None) => bail!(
            "give the URL where the crawl begins, or --job NAME to continue a job; `driftline \
             status` lists the jobs"
        ),
    }
}

/// A data directory has one node; processes that share a database are told apart by
/// machine and number, unless they are given names.
pub fn node_name(given: Option<&str>, held: &OpenPlace) -> String {
    if held.layout().is_some() {
        return NODE_NAME.to_owned();
    }
    let machine = || {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        format!("{}-{}", name.trim(), std::process::id())
    };
    given.map_or_else(machine, str::to_owned)
}

struct Crawl<'a> {
    args: &'a CrawlArgs,
    held: &'a OpenPlace,
    name: String,
    spec: WebSpec,
    mirror: Option<MirrorTarget>,
    node_name: String,
    lease_ms: i64,
}

impl Crawl<'_> {
    fn run(&self, audited: Option<&AuditedChange<'_>>) -> anyhow::Result<ExitCode> {
        let work = CrawlWork {
            held: self.held,
            own: self.args.place.addresses()?,
            name: &self.name,
            spec: &self.spec,
            mirror: self.mirror.as_ref(),
            settings: self.settings(),
            quiet: self.args.place.json(),
        };
        let mut is_begun = false;
        let worked = work.run(|begun| {
            is_begun = true;
            announce(self.args, &self.name, begun);
            audited.map_or(Ok(()), AuditedChange::done)
        });
        if let (Some(audited), Err(error), false) = (audited, &worked, is_begun) {
            audited.refused(error);
        }
        let worked = worked?;
        let summary = show::CrawlSummary::read(&self.held.db, &self.name, &worked)?;
        print_summary(self.args, &summary)?;
        if matches!(worked.ended, CrawlEnd::Finished { .. }) {
            crate::cli::data::gc::after_work(self.held);
        }
        if worked.ended == CrawlEnd::Replaced {
            bail!(
                "another process has started with the name {}, so this one has stopped; give each \
                 process its own --node NAME",
                shown(&self.node_name)
            );
        }
        exit_code(&self.held.db, &self.name, &summary, worked.ended)
    }

    fn settings(&self) -> WorkerSettings {
        let settings = WorkerSettings::new(&self.node_name, self.spec.concurrency);
        let mut settings = settings.with_lease(self.lease_ms);
        settings.fetch.agent = self.spec.agent.clone();
        settings.fetch.contact = self.spec.contact.clone();
        settings.fetch.lookup = self.args.flags.lookup();
        settings.disk_free_percent = self.args.min_free;
        settings.disk = self.held.layout().map(|layout| layout.root().to_owned());
        settings.late = Some(crate::cli::crawls::deliveries::late(self.held));
        settings
    }
}

fn print_summary(args: &CrawlArgs, summary: &show::CrawlSummary) -> anyhow::Result<()> {
    if args.place.json() {
        say(&serde_json::to_string(summary)?);
    } else {
        summary.print();
    }
    Ok(())
}

/// What a script is told of how a crawl ended.
fn exit_code(
    db: &Db,
    name: &str,
    summary: &show::CrawlSummary,
    ended: CrawlEnd,
) -> anyhow::Result<ExitCode> {
    Ok(match ended {
        CrawlEnd::Finished { .. } if summary.is_in_vain() => ExitCode::FAILURE,
        CrawlEnd::Finished { .. } => ExitCode::SUCCESS,
        CrawlEnd::Stopped | CrawlEnd::Replaced => ExitCode::FAILURE,
        // Somebody has aborted the run, or it could not go on.
        CrawlEnd::Aborted => match handover::error_of(db, name)? {
            Some(error) => bail!("job {} was aborted: {error}", shown(name)),
            None => ExitCode::FAILURE,
        },
    })
}

fn announce(args: &CrawlArgs, name: &str, begun: &Begun) {
    if args.place.json() {
        return;
    }
    let (name, run) = (shown(name), begun.run);
    let what = match (begun.is_new, run.0) {
        (true, 1) => format!("job {name}, run 1: the first crawl"),
        (true, _) => format!("job {name}, run {run}: checking known documents again"),
        (false, _) if begun.was_paused => {
            format!("job {name}, run {run}: resuming after a pause")
        }
        (false, _) => format!("job {name}, run {run}: continuing after an interruption"),
    };
    say(&what);
    if begun.let_in > 0 {
        say(&format!("the new settings allow {} more documents", begun.let_in));
    }
}
