//! One crawl of the demo: the real worker on the sample web, then what came of every
//! URL.
//!
//! What differs from a crawl of the real web: names are looked up in the sample alone,
//! loopback may be reached, and waits are short. Invariant: a name that the sample does
//! not have is not resolved, so nothing leaves the machine.

use super::fates::{self, FoundUrl};
use super::stage::DemoStage;
use crate::cli::crawls::crawl::show::CrawlSummary;
use crate::cli::crawls::crawl::work::{CrawlWork, CrawlWorkDone};
use crate::demo_site;
use crate::loopback_web::Visit;
use ::crawl::definitions::WebSpec;
use ::crawl::fetch::Lookup;
use ::crawl::worker::{CrawlEnd, WorkerSettings};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::datadir::NODE_NAME;

pub const JOB: &str = "demo";
/// Between two requests to a host: short, since the hosts are our own.
const DELAY_MS: i64 = 20;
/// Before something is tried again: a failing host shall not hold the demo up.
const RETRY_MS: i64 = 100;
/// Longer than the second look at a missing page takes, shorter than a host in trouble
/// is left alone.
const PATIENCE_MS: i64 = 5_000;

/// A crawl that is over.
pub struct Round {
    /// How long it took.
    pub took: Duration,
    /// What `driftline crawl` would say.
    pub summary: CrawlSummary,
    /// What the crawler counted.
    pub worked: CrawlWorkDone,
    /// What the web's server saw.
    pub visits: Vec<Visit>,
    /// What became of each URL.
    pub found: BTreeMap<String, FoundUrl>,
}

/// Crawls once. When somebody stops it, the stage knows, and has no further crawl.
pub fn crawl(stage: &mut DemoStage) -> anyhow::Result<()> {
    let began = Instant::now();
    stage.site.web().take_visits();
    let spec = WebSpec {
        seeds: stage.site.seeds(),
        delay_ms: DELAY_MS,
        allow_private: true,
        retries: 1,
        retry_ms: RETRY_MS,
        patience_ms: PATIENCE_MS,
        ..WebSpec::default()
    };
    let spec = spec.check()?;
    let mut settings = WorkerSettings::new(NODE_NAME, spec.concurrency);
    settings.fetch.agent = spec.agent.clone();
    settings.fetch.contact = spec.contact.clone();
    settings.fetch.lookup = Lookup::Given(Arc::new(|name| {
        let is_known = demo_site::names().contains(&name);
        is_known.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)).into_iter().collect()
    }));
    let work = CrawlWork {
        held: &stage.held,
        own: Vec::new(),
        name: JOB,
        spec: &spec,
        mirror: None,
        settings,
        quiet: stage.is_quiet(),
    };
    let worked = work.run(|_| Ok(()))?;
    let took = began.elapsed();
    match worked.ended {
        CrawlEnd::Finished { .. } => {}
        CrawlEnd::Stopped | CrawlEnd::Aborted => return Ok(()),
        CrawlEnd::Replaced => anyhow::bail!("another process works on the demo's directory"),
    }
    let found = fates::read(stage, &worked.begun)?;
    let summary = CrawlSummary::read(&stage.held.db, JOB, &worked)?;
    let visits = stage.site.web().take_visits();
    stage.rounds.push(Round { took, summary, worked, visits, found });
    Ok(())
}

impl Round {
    /// Requests that carried a validator.
    pub fn conditional(&self) -> usize {
        self.visits.iter().filter(|visit| visit.is_conditional).count()
    }

    /// What programs are told.
    pub fn json(&self) -> anyhow::Result<Json> {
        let urls: BTreeMap<&str, Json> = self
            .found
            .iter()
            .map(|(url, found)| {
                (url.as_str(), json!({"fate": found.fate.name(), "why": found.why}))
            })
            .collect();
        Ok(json!({
            "took_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            "requests": self.visits.len(),
            "conditional": self.conditional(),
            "summary": serde_json::to_value(&self.summary)?,
            "urls": urls,
        }))
    }
}
