//! The hosts that jobs have met, the largest, the most troubled or the slowest first; or one of
//! them in detail.
//!
//! A host's figures are of all jobs: politeness knows no jobs. `rank` finds the first
//! ones without keeping all in memory.

pub mod rank;
pub mod throttles;

use super::documents::walk::host_name;
use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::paging::LIST_LIMIT_MAX;
use crate::verbs::status::endless::{self, Endless};
use clap::{Args as ClapArgs, ValueEnum};
use crawl::definitions::WebSpec;
use page::ids::{bin_of, part_of};
use page::robots::Robots;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::ids::{BinId, Part};
use store::tables::addresses;
use store::tables::bins::{self, Bin};
use store::tables::robots::{self, StoredRobots};
use store::tables::settings;
use throttles::HostThrottle;

/// Hosts that jobs have met, or one in detail.
pub struct Hosts;

#[derive(ClapArgs, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsRequest {
    /// Host to show in detail
    #[arg(value_name = "HOST", conflicts_with_all = ["by", "cursor"])]
    pub host: Option<String>,
    /// Only hosts of this job
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Sort order
    #[arg(long, value_enum, default_value_t)]
    #[serde(default)]
    pub by: HostOrder,
    /// Number of hosts to list
    #[arg(long, value_name = "N", default_value_t = usual_limit(),
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST_LIMIT_MAX)))]
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = LIST_LIMIT_MAX))]
    pub limit: u32,
    /// Cursor of the next page, from an earlier answer
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// What hosts are ordered by, the most first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum HostOrder {
    /// Known documents
    #[default]
    Documents,
    /// Failed requests
    Errors,
    /// Mean response time
    Slowest,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct HostsResponse {
    pub hosts: Vec<HostLine>,
    /// How many hosts were compared.
    pub walked: u64,
    /// There are more hosts than are compared.
    pub more: bool,
    /// To go on with; `null` when all were listed.
    pub cursor: Option<String>,
}

/// A host, as it is shown.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct HostLine {
    pub host: String,
    pub documents: i64,
    pub fetches: i64,
    pub errors: i64,
    pub bytes: i64,
    /// Mean response time.
    pub mean_ms: Option<i64>,
    /// The delay that the host asks for.
    pub delay_ms: Option<i64>,
    /// When it may be asked again.
    pub next_ms: i64,
    /// Failures in a row.
    pub failures: i64,
    /// The breaker is open until then.
    pub blocked_ms: Option<i64>,
    pub blocked_by: Option<String>,
    pub robots: Vec<RobotsFile>,
    /// Where it was found; only where one host is asked for.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Patterns of it that look endless; only where one host is asked for.
    #[serde(default)]
    pub endless: Vec<Endless>,
    /// What connections allow it; only where one host is asked for.
    #[serde(default)]
    pub throttles: Vec<HostThrottle>,
}

/// The robots.txt of one origin.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RobotsFile {
    pub origin: String,
    /// What it means today: `read`, `none`, `kept`, `unreachable`.
    pub standing: String,
    pub status: Option<i64>,
    pub asked_ms: i64,
    pub expires_ms: i64,
    pub bytes: Option<usize>,
    pub lines: Option<usize>,
    pub crawl_delay_ms: Option<u64>,
    pub sitemaps: usize,
    /// Whether the crawler may fetch the host's first page.
    pub allows_root: bool,
}

/// Hosts of a list where no limit is given.
pub fn usual_limit() -> u32 {
    50
}

impl Verb for Hosts {
    const NAME: &'static str = "hosts";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = HostsRequest;
    type Response = HostsResponse;

    fn answer(context: &VerbContext, mut request: HostsRequest) -> anyhow::Result<HostsResponse> {
        request.limit = request.limit.clamp(1, LIST_LIMIT_MAX);
        let job = match &request.job {
            Some(name) => Some(context.job(Some(name.clone()))?),
            None => None,
        };
        let agent = job.as_ref().and_then(|job| WebSpec::from_json(&job.docspec).ok());
        let agent = agent.unwrap_or_default().product().to_owned();
        let found = match &request.host {
            Some(name) => rank::RankedHosts::one(find(context, &host_name(name))?),
            None => rank::rank(&context.db, job.map(|job| job.id), &request)?,
        };
        let mut hosts = Vec::new();
        for (part, bin) in found.bins {
            let name = bin.name.clone();
            let stored = context.db.read(move |tx| robots::of_host(tx, part, &name))?;
            let files = stored.iter().map(|stored| file(stored, &agent)).collect();
            let line = host(bin, files);
            hosts.push(match request.host {
                Some(_) => detailed(context, part, line)?,
                None => line,
            });
        }
        let (walked, more, cursor) = (found.walked, found.more, found.cursor);
        Ok(HostsResponse { hosts, walked, more, cursor })
    }
}

/// A host with what is shown where one host is asked for.
fn detailed(context: &VerbContext, part: Part, line: HostLine) -> anyhow::Result<HostLine> {
    let name = line.host.clone();
    let (endless, throttles, mut addresses) = context.db.read(move |tx| {
        let suffixes = settings::suffix_list(tx)?;
        let endless = endless::of_host(tx, part, &name, &suffixes)?;
        let throttles = throttles::of_host(tx, &name)?;
        Ok((endless, throttles, addresses::of_host(tx, part, &name)?))
    })?;
    addresses.sort_by_key(|(_, found_ms)| -found_ms);
    let addresses = addresses.into_iter().map(|(address, _)| address).collect();
    Ok(HostLine { addresses, endless, throttles, ..line })
}

fn find(context: &VerbContext, name: &str) -> anyhow::Result<Option<(Part, Bin)>> {
    let name = name.to_owned();
    let found = context.db.read(move |tx| {
        let suffixes = settings::suffix_list(tx)?;
        let part = part_of(Some(suffixes.grouping_domain(&name)), &name, settings::parts(tx)?);
        let part = Part(part.into());
        let bin = bins::load(tx, part, &[BinId(bin_of(&name))])?.pop();
        Ok(bin.map(|bin| (part, bin)))
    })?;
    Ok(found)
}

fn host(bin: Bin, robots: Vec<RobotsFile>) -> HostLine {
    HostLine {
        mean_ms: rank::mean_ms(&bin),
        host: bin.name,
        documents: bin.documents,
        fetches: bin.fetches,
        errors: bin.errors,
        bytes: bin.bytes,
        delay_ms: bin.delay_ms,
        next_ms: bin.next_ms,
        failures: bin.failures,
        blocked_ms: bin.blocked_ms,
        blocked_by: bin.blocked_by,
        robots,
        addresses: Vec::new(),
        endless: Vec::new(),
        throttles: Vec::new(),
    }
}

fn file(stored: &StoredRobots, agent: &str) -> RobotsFile {
    let robots = match &stored.body {
        Some(body) => Robots::parse(body),
        None if stored.closed => Robots::disallow_all(),
        None => Robots::allow_all(),
    };
    let standing = match (&stored.body, stored.closed) {
        (Some(_), _) if stored.failing_ms.is_some() => "kept",
        (Some(_), _) => "read",
        (None, true) => "unreachable",
        (None, false) => "none",
    };
    RobotsFile {
        origin: stored.origin.clone(),
        standing: standing.to_owned(),
        status: stored.status,
        asked_ms: stored.asked_ms,
        expires_ms: stored.expires_ms,
        bytes: stored.body.as_ref().map(Vec::len),
        lines: stored.body.as_ref().map(|body| body.split_inclusive(|byte| *byte == b'\n').count()),
        crawl_delay_ms: robots.crawl_delay_ms(agent),
        sitemaps: robots.sitemaps().count(),
        allows_root: robots.verdict(agent, "/").allowed,
    }
}
