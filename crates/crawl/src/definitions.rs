//! What a web job is told: its seeds, its scope, its manners. Stored as JSON in the
//! job's `docspec`.
//!
//! A field that a stored job does not have takes its default, so that an older
//! job means the same to a newer program; a field that nobody knows is refused.
//! Invariant: whatever is here has passed [`WebSpec::check`] before it is saved.

use crate::connectors::web::LINK;
use crate::fetch::AddressPace;
use crate::lifecycle::Model;
use crate::scope::{BadRule, Scope, ScopeRules};
use page::domain::SuffixList;
use page::outlinks::{self, LinkPolicy};
use page::url::Policy;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::catalog::Searchable;
use store::tables::hopfilters::HopFilters;

/// The connector's name in `connections.classname`.
pub const CONNECTOR: &str = "web";
/// What the web can tell of changes: nothing, but where to begin.
pub const MODEL: Model = Model::All;
/// Seeds of one job.
pub const SEEDS_MAX: usize = 10_000;
/// The longest delay between requests that a job may ask for: a day.
pub const DELAY_MS_MAX: i64 = 24 * 60 * 60 * 1_000;
/// Requests under way at once in one process.
pub const CONCURRENCY_MAX: usize = crate::worker::UNCOMMITTED_MAX;
/// Requests a second to one address, where nothing else is said: what a machine with many small
/// sites bears, and more than one site is ever asked.
pub const ADDRESS_RATE: i64 = 20;
/// Requests to one address at once, where nothing else is said.
pub const ADDRESS_REQUESTS: i64 = 16;

/// The name of a crawler that has not been given another.
const USUAL_AGENT: &str = concat!("driftline/", env!("CARGO_PKG_VERSION"));

fn is_usual_agent(agent: &str) -> bool {
    agent == USUAL_AGENT
}

/// What robots.txt is obeyed for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RobotsFor {
    /// All that is asked for, the pages of a login too.
    All,
    /// Documents; a login that a connection describes goes where it is told.
    #[default]
    Data,
    /// It is obeyed for nothing.
    None,
}

/// Whether what pages need to be shown is fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum RequisitesFor {
    /// If an output of the job takes it.
    #[default]
    Auto,
    Yes,
    No,
}

impl RequisitesFor {
    /// Whether it is fetched, given whether an output takes it.
    pub fn is_wanted(self, is_taken: bool) -> bool {
        match self {
            RequisitesFor::Auto => is_taken,
            RequisitesFor::Yes => true,
            RequisitesFor::No => false,
        }
    }

    fn is_usual(&self) -> bool {
        *self == RequisitesFor::Auto
    }
}

/// Requisites that a job takes in, where nothing else is said: a few for each of its pages.
pub const REQUISITES_MAX: i64 = 100_000;

fn is_usual_requisites_max(most: &i64) -> bool {
    *most == REQUISITES_MAX
}

/// A web job's document specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
// tidy: wide the settings of a web job, as they stand in its row
pub struct WebSpec {
    /// Canonical URLs where the crawl begins.
    pub seeds: Vec<String>,
    /// What belongs to it.
    pub scope: ScopeRules,
    /// Documents the job takes in; `None` is no limit.
    pub pages_max: Option<i64>,
    /// Pages of a host that no seed names, before pages of other hosts link to it; 0 is no limit.
    pub host_pages: i64,
    /// From the end of one request to a host to the start of the next; 0 lets them
    /// overlap.
    pub delay_ms: i64,
    /// A `Crawl-delay` of robots.txt counts up to this.
    pub crawl_delay_max_ms: i64,
    /// Requests under way at once, over all hosts.
    pub concurrency: usize,
    /// Requests a second to all hosts of one IP address; 0 is no limit.
    pub address_rate: i64,
    /// Requests under way at once to all hosts of one IP address; 0 is no limit.
    pub address_requests: i64,
    /// What robots.txt is obeyed for.
    pub robots: RobotsFor,
    /// Whether pages are obeyed that say `nofollow` or `noindex` of themselves.
    pub meta_robots: bool,
    /// Whether addresses that are not on the public internet may be reached.
    pub allow_private: bool,
    /// Whether the bytes of documents are kept.
    pub bodies: bool,
    /// Which of its links the link index counts; `None` when it feeds none.
    #[serde(with = "outlinks::setting")]
    pub links: Option<LinkPolicy>,
    /// Whether its documents can be searched.
    #[serde(skip_serializing_if = "Searchable::is_usual")]
    pub search: Searchable,
    /// Whether what pages need to be shown is fetched, wherever it is.
    #[serde(skip_serializing_if = "RequisitesFor::is_usual")]
    pub requisites: RequisitesFor,
    /// Such requisites the job takes in, beside its pages.
    #[serde(skip_serializing_if = "is_usual_requisites_max")]
    pub requisites_max: i64,
    /// The crawler's name, such as `driftline/0.1`; robots.txt is read for what
    /// stands before the slash. Our own is not stored: it goes with the program.
    #[serde(skip_serializing_if = "is_usual_agent")]
    pub agent: String,
    /// Where a site's owner finds out who crawls: a URL or a mail address.
    pub contact: String,
    /// How often a document is asked for again after trouble.
    pub retries: i64,
    /// The wait before the first such retry; it doubles with each.
    pub retry_ms: i64,
    /// When nothing can be done for longer than this, the run ends and what is left
    /// waits for the next one.
    pub patience_ms: i64,
    /// How links are made canonical.
    pub policy: Policy,
}

impl Default for WebSpec {
    fn default() -> WebSpec {
        WebSpec {
            seeds: Vec::new(),
            scope: ScopeRules::default(),
            pages_max: None,
            host_pages: 10_000,
            delay_ms: 1_000,
            crawl_delay_max_ms: 30_000,
            concurrency: 32,
            address_rate: ADDRESS_RATE,
            address_requests: ADDRESS_REQUESTS,
            robots: RobotsFor::Data,
            meta_robots: true,
            allow_private: false,
            bodies: true,
            links: Some(LinkPolicy::All),
            search: Searchable::default(),
            requisites: RequisitesFor::Auto,
            requisites_max: REQUISITES_MAX,
            agent: USUAL_AGENT.to_owned(),
            contact: "https://crates.io/crates/driftline".to_owned(),
            retries: 3,
            retry_ms: 10_000,
            patience_ms: 5 * 60 * 1_000,
            policy: Policy::default(),
        }
    }
}

/// Why a specification cannot be used. The text says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadSpec {
    /// There is nothing to begin with.
    #[error("a job needs at least one seed URL")]
    NoSeeds,
    /// A number is out of its range.
    #[error("{name} is {value}, but must be from {least} to {most}")]
    Range { name: &'static str, value: i64, least: i64, most: i64 },
    /// A seed is not a canonical URL.
    #[error("seed {0:?} is not a valid URL: {1}")]
    Seed(String, page::url::UrlRefusal),
    /// The agent's name or contact cannot be sent.
    #[error("{0} must be set, in printable ASCII characters, so that site owners know who crawls")]
    Agent(&'static str),
    /// An expression cannot be used.
    #[error(transparent)]
    Rule(#[from] BadRule),
    /// Its connection does not allow it.
    #[error("{0}")]
    Forbidden(String),
    /// It is not JSON of this form.
    #[error("the job's specification cannot be read: {0}")]
    Json(String),
}

impl WebSpec {
    /// Reads a job's `docspec`.
    pub fn from_json(text: &str) -> Result<WebSpec, BadSpec> {
        serde_json::from_str(text).map_err(|error| BadSpec::Json(error.to_string()))
    }

    /// The specification as a job's `docspec`.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a specification has no map with odd keys")
    }

    /// Refuses what cannot be used; seeds become canonical and lose their doubles.
    pub fn check(mut self) -> Result<WebSpec, BadSpec> {
        let mut seeds: Vec<String> = Vec::new();
        for seed in &self.seeds {
            let url = page::url::canonical(seed, &self.policy)
                .map_err(|reason| BadSpec::Seed(seed.clone(), reason))?;
            if !seeds.contains(&url) {
                seeds.push(url);
            }
        }
        self.seeds = seeds;
        if self.seeds.is_empty() {
            return Err(BadSpec::NoSeeds);
        }
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let most = i64::MAX;
        for (name, value, least, most) in [
            ("the number of seeds", count(self.seeds.len()), 1, count(SEEDS_MAX)),
            ("--max-pages", self.pages_max.unwrap_or(1), 1, most),
            ("--host-pages", self.host_pages, 0, most),
            ("--max-requisites", self.requisites_max, 0, most),
            ("--max-hops", self.scope.hops_max.unwrap_or(0), 0, most),
            ("--delay", self.delay_ms, 0, DELAY_MS_MAX),
            ("--max-crawl-delay", self.crawl_delay_max_ms, 0, DELAY_MS_MAX),
            ("--concurrency", count(self.concurrency), 1, count(CONCURRENCY_MAX)),
            ("--address-rate", self.address_rate, 0, 1_000),
            ("--address-requests", self.address_requests, 0, count(CONCURRENCY_MAX)),
            ("--retries", self.retries, 0, 100),
            ("--retry-wait", self.retry_ms, 1, DELAY_MS_MAX),
            ("--patience", self.patience_ms, 0, 365 * DELAY_MS_MAX),
        ] {
            if !(least..=most).contains(&value) {
                return Err(BadSpec::Range { name, value, least, most });
            }
        }
        let plain = |text: &str| {
            !text.trim().is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        for (name, text) in [("--user-agent", &self.agent), ("--contact", &self.contact)] {
            if !plain(text) {
                return Err(BadSpec::Agent(name));
            }
        }
        self.scope.check()?;
        Ok(self)
    }

    /// How much one address is asked for, whatever hosts are there. A host that may be asked
    /// faster than that, by its delay, is; without a delay there is no limit.
    pub fn address_pace(&self) -> Option<AddressPace> {
        let interval_ms = match self.address_rate {
            0 => 0,
            rate => (1_000 / rate).max(1).min(self.delay_ms),
        };
        let requests_max = usize::try_from(self.address_requests).unwrap_or(usize::MAX);
        let pace = AddressPace { interval_ms, requests_max };
        (self.delay_ms > 0 && (interval_ms, requests_max) != (0, 0)).then_some(pace)
    }

    /// Adds the limit of links to a job's hop filters.
    pub fn limit_hops(&self, filters: &mut HopFilters) {
        if let Some(most) = self.scope.hops_max {
            let filter = filters.entry(LINK.to_owned()).or_insert(most);
            *filter = most.min(*filter);
        }
    }

    /// The scope, compiled for the seeds.
    pub fn compile(&self, suffixes: Arc<SuffixList>) -> Result<Scope, BadRule> {
        Scope::new(&self.scope, self.seeds.iter().map(String::as_str), suffixes)
    }

    /// The name by which robots.txt and pages address the crawler.
    pub fn product(&self) -> &str {
        self.agent.split(['/', ' ']).next().unwrap_or(&self.agent)
    }

    /// What decides which links are let in. Links that were judged by other settings
    /// must be judged again.
    pub fn admission(&self) -> String {
        let limits = (self.pages_max, self.host_pages);
        let settings = (&self.seeds, &self.scope, limits, &self.policy, self.meta_robots);
        serde_json::to_string(&settings).expect("settings have no map with odd keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seeds: &[&str]) -> WebSpec {
        WebSpec {
            seeds: seeds.iter().map(|seed| (*seed).to_owned()).collect(),
            ..WebSpec::default()
        }
    }

    #[test]
    fn a_specification_survives_storage_and_an_older_one_takes_defaults() {
        let spec = of(&["http://a.example/x", "HTTP://A.example:80/x"]).check().unwrap();
        assert_eq!(spec.seeds, ["http://a.example/x"], "one spelling, once");
        assert_eq!(WebSpec::from_json(&spec.to_json()), Ok(spec));
        let older = WebSpec::from_json(r#"{"seeds": ["http://a.example/"]}"#).unwrap();
        assert_eq!(older, of(&["http://a.example/"]));
        assert!(WebSpec::from_json(r#"{"sedes": []}"#).is_err(), "an unknown field is refused");
    }

    #[test]
    fn links_are_counted_unless_a_job_says_otherwise() {
        let links = |json: &str| WebSpec::from_json(json).map(|spec| spec.links);
        assert_eq!(links("{}"), Ok(Some(LinkPolicy::All)), "as of a job that is older");
        assert_eq!(links(r#"{"links": "external"}"#), Ok(Some(LinkPolicy::External)));
        for off in [r#"{"links": null}"#, r#"{"links": "off"}"#] {
            assert_eq!(links(off), Ok(None));
        }
        assert!(links(r#"{"links": "some"}"#).unwrap_err().to_string().contains("webindex"));
        for links in [None, Some(LinkPolicy::Webindex)] {
            let spec = WebSpec { links, ..of(&[]) };
            assert_eq!(WebSpec::from_json(&spec.to_json()), Ok(spec));
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_name() {
        let refused = |spec: WebSpec| spec.check().unwrap_err().to_string();
        assert!(refused(of(&[])).contains("seed"));
        assert!(refused(of(&["ftp://a.example/"])).contains("ftp://a.example/"));
        let one = || of(&["http://a.example/"]);
        assert!(refused(WebSpec { delay_ms: -1, ..one() }).contains("--delay"));
        assert!(refused(WebSpec { concurrency: 0, ..one() }).contains("--concurrency"));
        assert!(refused(WebSpec { contact: "\n".into(), ..one() }).contains("--contact"));
        let scope = ScopeRules { exclude: vec!["(".into()], ..ScopeRules::default() };
        assert!(refused(WebSpec { scope, ..one() }).contains("--exclude"));
    }

    #[test]
    fn robots_txt_is_read_for_the_product() {
        assert_eq!(WebSpec { agent: "FooBot/2.1 (x)".into(), ..of(&[]) }.product(), "FooBot");
    }
}
