//! The flags of `crawl`, and what they do to a job.
//!
//! Invariant: a flag that is not given changes nothing, so a job keeps what it was
//! told before.

use crate::catalog::typed;
use ::crawl::definitions::{RequisitesFor, RobotsFor, WebSpec};
use ::crawl::fetch::Lookup;
use ::crawl::scope::Reach;
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use page::outlinks::LinkPolicy;
use page::url::{Policy, canonical, host_of};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How far a crawl reaches from its seeds.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
pub enum ScopeFlag {
    /// The hosts of the seeds
    Host,
    /// The registered domains of the seeds, with all their hosts
    Domain,
    /// URLs that begin with a seed, up to its last slash
    Prefix,
    /// Any URL
    Any,
}

impl From<ScopeFlag> for Reach {
    fn from(flag: ScopeFlag) -> Reach {
        match flag {
            ScopeFlag::Host => Reach::Host,
            ScopeFlag::Domain => Reach::Domain,
            ScopeFlag::Prefix => Reach::Prefix,
            ScopeFlag::Any => Reach::Any,
        }
    }
}

/// Whether what pages need to be shown is fetched.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
pub enum RequisitesFlag {
    /// If an output of the job takes it
    Auto,
    /// Always
    Yes,
    /// Never
    No,
}

impl From<RequisitesFlag> for RequisitesFor {
    fn from(flag: RequisitesFlag) -> RequisitesFor {
        match flag {
            RequisitesFlag::Auto => RequisitesFor::Auto,
            RequisitesFlag::Yes => RequisitesFor::Yes,
            RequisitesFlag::No => RequisitesFor::No,
        }
    }
}

/// Which links the link index counts.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
pub enum LinksFlag {
    /// All links to pages
    All,
    /// Links to other domains
    External,
    /// The links that Webindex counted, by its rules for URLs
    Webindex,
    /// None: the job does not feed the link index
    Off,
}

impl From<LinksFlag> for Option<LinkPolicy> {
    fn from(flag: LinksFlag) -> Option<LinkPolicy> {
        match flag {
            LinksFlag::All => Some(LinkPolicy::All),
            LinksFlag::External => Some(LinkPolicy::External),
            LinksFlag::Webindex => Some(LinkPolicy::Webindex),
            LinksFlag::Off => None,
        }
    }
}

/// What edits a job.
#[derive(Args, Clone, Serialize, Deserialize)]
// tidy: wide every field is a flag of `crawl`
pub struct CrawlFlags {
    /// How far the crawl goes from its seeds [default: host]
    #[arg(long, value_enum, value_name = "REACH")]
    scope: Option<ScopeFlag>,
    /// Only crawl URLs that match one of these regular expressions; "" clears the list
    #[arg(long, value_name = "REGEX")]
    include: Vec<String>,
    /// Skip URLs that match one of these regular expressions; "" clears the list
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,
    /// Do not keep pages whose title or text matches one of these regular expressions; "" clears
    /// the list
    #[arg(long, value_name = "REGEX")]
    exclude_content: Vec<String>,
    /// Only keep documents of these media types, such as text/html or text/*; "" clears the list
    #[arg(long, value_name = "TYPE")]
    media_type: Vec<String>,
    /// Largest number of documents; 0 for no limit
    #[arg(long, value_name = "N")]
    max_pages: Option<i64>,
    /// Largest number of pages of a host that is not a seed's, plus 100 for each link to it from
    /// another host; 0 for no limit [default: 10000]
    #[arg(long, value_name = "N")]
    host_pages: Option<i64>,
    /// Whether to fetch what pages need to be shown, on any host: style sheets, images, fonts
    /// [default: auto, if an output of the job takes it]
    #[arg(long, value_enum, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "yes")]
    requisites: Option<RequisitesFlag>,
    /// Largest number of these requisites, besides pages [default: 100000]
    #[arg(long, value_name = "N")]
    max_requisites: Option<i64>,
    /// Largest number of links to follow from a seed; "none" for no limit
    #[arg(long, value_name = "N", value_parser = hops)]
    max_hops: Option<Hops>,
    /// Seconds between requests to a host; 0 allows parallel requests [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    delay: Option<f64>,
    /// Longest Crawl-delay of robots.txt to obey, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    max_crawl_delay: Option<f64>,
    /// Parallel requests, over all hosts [default: 32]
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,
    /// Requests per second to all hosts of one IP address; 0 for no limit [default: 20]
    #[arg(long, value_name = "N")]
    address_rate: Option<i64>,
    /// Parallel requests to all hosts of one IP address; 0 for no limit [default: 16]
    #[arg(long, value_name = "N")]
    address_requests: Option<i64>,
    /// Ignore robots.txt, nofollow and noindex; only for your own sites
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    ignore_robots: Option<bool>,
    /// Allow addresses that are not on the public internet
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    allow_private: Option<bool>,
    /// Keep only facts (title, text, links), not the bytes of documents
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    no_bodies: Option<bool>,
    /// Which links the link index counts [default: all]
    #[arg(long, value_enum, value_name = "POLICY")]
    link_policy: Option<LinksFlag>,
    /// Keep its documents out of the search index
    #[arg(long, value_name = "YES", num_args = 0..=1, default_missing_value = "true")]
    no_search: Option<bool>,
    /// Name of the crawler, such as FooBot/1.0; robots.txt rules for FooBot apply
    #[arg(long, value_name = "NAME")]
    user_agent: Option<String>,
    /// URL or mail address for site owners to contact
    #[arg(long, value_name = "CONTACT")]
    contact: Option<String>,
    /// Number of retries after a temporary error [default: 3]
    #[arg(long, value_name = "N")]
    retries: Option<i64>,
    /// Seconds before the first retry; the wait doubles with each retry [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    retry_wait: Option<f64>,
    /// End the run if nothing can be done for this many seconds [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    patience: Option<f64>,
    /// Use this address for a host instead of a DNS lookup: NAME=ADDRESS
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = resolve)]
    resolve: Vec<(String, std::net::IpAddr)>,
}

/// A limit that may be none.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Hops(Option<i64>);

fn hops(text: &str) -> Result<Hops, String> {
    match text {
        "none" => Ok(Hops(None)),
        number => number
            .parse()
            .map(|number| Hops(Some(number)))
            .map_err(|_| "give a number, or \"none\"".to_owned()),
    }
}

fn resolve(text: &str) -> Result<(String, std::net::IpAddr), String> {
    let parts = text.split_once('=').map(|(name, address)| (name, address.parse()));
    match parts {
        Some((name, Ok(address))) if !name.is_empty() => Ok((name.to_ascii_lowercase(), address)),
        _ => Err("give a host name, =, and its address, such as example.com=192.0.2.1".to_owned()),
    }
}

/// A number of seconds, or a span of time with its unit.
pub fn seconds(text: &str) -> Result<f64, String> {
    if let Ok(seconds) = text.trim().parse::<f64>() {
        return Ok(seconds);
    }
    #[allow(clippy::cast_precision_loss)] // Spans are far below what a float holds exactly.
    typed::milliseconds(text).map(|ms| ms as f64 / 1_000.0).ok_or_else(|| {
        "give a number of seconds, such as 0.5, or a duration such as 2min".to_owned()
    })
}

/// A seed as people write it: without a scheme, `https` is meant, if it looks like a host.
pub fn seed_url(text: &str) -> anyhow::Result<String> {
    let refused = || format!("{text:?} cannot be crawled; give a URL such as https://example.com/");
    let has_scheme = text.contains("://") || text.starts_with("mailto:");
    if !has_scheme {
        ensure!(
            !Path::new(text).is_file() && !text.starts_with(['/', '.', '~', '\\']),
            "{}; for files, use the files connector (driftline connector show files --kind \
             repository)",
            refused()
        );
        ensure!(looks_like_a_host(text), "{}, with its http:// or https://", refused());
    }
    let written = if has_scheme { text.to_owned() } else { format!("https://{text}") };
    let url = canonical(&written, &Policy::default()).with_context(refused)?;
    // A scheme that was written twice, or with a slash too few.
    ensure!(!matches!(host_of(&url), "http" | "https"), "{}", refused());
    Ok(url)
}

/// Whether a text without a scheme begins with a host: an address, `localhost`, or a name
/// with a dot or a port.
fn looks_like_a_host(text: &str) -> bool {
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    port.is_none_or(is_port)
        && (port.is_some() || name.contains('.') || name.starts_with('[') || name == "localhost")
}

pub fn milliseconds(flag: &str, seconds: f64) -> anyhow::Result<i64> {
    const DAYS_MAX: f64 = 366.0;
    if !(0.0..=DAYS_MAX * 86_400.0).contains(&seconds) {
        bail!("{flag} is {seconds} seconds, but must be from 0 to a year");
    }
    // In range, so nothing is lost but what is below a millisecond.
    #[allow(clippy::cast_possible_truncation)]
    Ok((seconds * 1_000.0).round() as i64)
}

impl CrawlFlags {
    /// The job's specification with what these flags change.
    pub fn apply(&self, before: WebSpec, seeds: &[String]) -> anyhow::Result<WebSpec> {
        let mut spec = before;
        if !seeds.is_empty() {
            spec.seeds = seeds.iter().map(|seed| seed_url(seed)).collect::<anyhow::Result<_>>()?;
        }
        if let Some(scope) = self.scope {
            spec.scope.reach = scope.into();
        }
        for (given, kept) in [
            (&self.include, &mut spec.scope.include),
            (&self.exclude, &mut spec.scope.exclude),
            (&self.exclude_content, &mut spec.scope.exclude_content),
            (&self.media_type, &mut spec.scope.media_types),
        ] {
            if !given.is_empty() {
                *kept = given.iter().filter(|pattern| !pattern.is_empty()).cloned().collect();
            }
        }
        if let Some(most) = self.max_pages {
            spec.pages_max = (most != 0).then_some(most);
        }
        spec.host_pages = self.host_pages.unwrap_or(spec.host_pages);
        spec.requisites = self.requisites.map_or(spec.requisites, Into::into);
        spec.requisites_max = self.max_requisites.unwrap_or(spec.requisites_max);
        if let Some(Hops(most)) = self.max_hops {
            spec.scope.hops_max = most;
        }
        for (flag, seconds, kept) in [
            ("--delay", self.delay, &mut spec.delay_ms),
            ("--max-crawl-delay", self.max_crawl_delay, &mut spec.crawl_delay_max_ms),
            ("--retry-wait", self.retry_wait, &mut spec.retry_ms),
            ("--patience", self.patience, &mut spec.patience_ms),
        ] {
            if let Some(seconds) = seconds {
                *kept = milliseconds(flag, seconds)?;
            }
        }
        spec.concurrency = self.concurrency.unwrap_or(spec.concurrency);
        spec.address_rate = self.address_rate.unwrap_or(spec.address_rate);
        spec.address_requests = self.address_requests.unwrap_or(spec.address_requests);
        if let Some(ignores) = self.ignore_robots {
            spec.robots = if ignores { RobotsFor::None } else { RobotsFor::default() };
            spec.meta_robots = !ignores;
        }
        spec.allow_private = self.allow_private.unwrap_or(spec.allow_private);
        spec.bodies = self.no_bodies.map_or(spec.bodies, |without| !without);
        spec.links = self.link_policy.map_or(spec.links, Into::into);
        spec.search.0 = self.no_search.map_or(spec.search.0, |without| !without);
        spec.retries = self.retries.unwrap_or(spec.retries);
        spec.agent = self.user_agent.clone().unwrap_or(spec.agent);
        spec.contact = self.contact.clone().unwrap_or(spec.contact);
        Ok(spec)
    }

    /// Refuses what only a process that fetches by itself can be told.
    pub fn can_be_handed_over(&self) -> anyhow::Result<()> {
        if !self.resolve.is_empty() {
            bail!(
                "--resolve works only in the process that fetches, and here another process does; \
                 stop that one first, or omit --resolve"
            );
        }
        Ok(())
    }

    /// Who knows the addresses of hosts.
    pub fn lookup(&self) -> Lookup {
        Lookup::with(self.resolve.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct CrawlCommand {
        #[command(flatten)]
        flags: CrawlFlags,
    }

    fn applied(before: WebSpec, args: &[&str]) -> WebSpec {
        let line = [&["crawl"], args].concat();
        CrawlCommand::try_parse_from(line).unwrap().flags.apply(before, &[]).unwrap()
    }

    #[test]
    fn what_is_not_given_stays_and_what_is_given_changes() {
        let first = applied(
            WebSpec::default(),
            &[
                "--max-pages",
                "5",
                "--exclude",
                "a",
                "--delay",
                "0.25",
                "--no-bodies",
                "--max-hops",
                "3",
                "--host-pages",
                "50",
            ],
        );
        assert_eq!(first.host_pages, 50);
        assert_eq!((first.pages_max, first.delay_ms, first.bodies), (Some(5), 250, false));
        assert_eq!(applied(first.clone(), &[]), first);
        let second = applied(
            first,
            &["--max-pages", "0", "--exclude", "", "--no-bodies=false", "--max-hops", "none"],
        );
        assert_eq!((second.pages_max, second.scope.hops_max, second.bodies), (None, None, true));
        assert!(second.scope.exclude.is_empty());
        assert_eq!(second.delay_ms, 250);
    }

    #[test]
    fn requisites_are_wanted_when_the_flag_is_there_and_kept() {
        let asked = applied(WebSpec::default(), &["--requisites", "--max-requisites", "7"]);
        assert_eq!((asked.requisites, asked.requisites_max), (RequisitesFor::Yes, 7));
        assert_eq!(applied(asked.clone(), &[]), asked);
        assert_eq!(applied(asked, &["--requisites=auto"]).requisites, RequisitesFor::Auto);
        assert_eq!(
            applied(WebSpec::default(), &["--requisites", "no"]).requisites,
            RequisitesFor::No
        );
    }

    #[test]
    fn the_link_policy_is_edited_and_kept() {
        let first = applied(WebSpec::default(), &["--link-policy", "external"]);
        assert_eq!(first.links, Some(LinkPolicy::External));
        let off = applied(applied(first, &[]), &["--link-policy", "off"]);
        assert_eq!(off.links, None);
        assert_eq!(applied(off.clone(), &["--delay", "2"]).links, None);
        assert_eq!(applied(off, &["--link-policy", "all"]).links, Some(LinkPolicy::All));
    }

    #[test]
    fn a_seed_may_be_written_without_a_scheme() {
        assert_eq!(seed_url("example.com").unwrap(), "https://example.com/");
        assert_eq!(seed_url("http://example.com").unwrap(), "http://example.com/");
        assert_eq!(seed_url("localhost:8080/x").unwrap(), "https://localhost:8080/x");
        assert_eq!(seed_url("192.0.2.1").unwrap(), "https://192.0.2.1/");
        assert_eq!(seed_url("http://wiki").unwrap(), "http://wiki/");
        for bad in ["", "ftp://example.com/", "mailto:a@b.example", "http://", "a b"] {
            assert!(seed_url(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_path_or_a_mistyped_url_is_no_seed() {
        for bad in [
            "/etc/passwd",
            "./site",
            "../a.example/",
            "~/site",
            "\\\\server\\share",
            "C:\\site",
            "Cargo.toml",
            "wiki",
            "etc/passwd",
            "http:/example.com",
            "http//example.com",
            "https:example.com",
            "http://https://example.com/",
            "http://http//example.com",
        ] {
            let refused = seed_url(bad);
            assert!(refused.is_err(), "{bad:?} would be {refused:?}");
            assert!(format!("{:#}", refused.unwrap_err()).contains("https://example.com/"));
        }
    }

    #[test]
    fn a_span_of_time_is_seconds_or_has_a_unit() {
        assert_eq!(
            (seconds("0.25"), seconds("2min"), seconds("250 ms")),
            (Ok(0.25), Ok(120.0), Ok(0.25))
        );
        assert!(seconds("soon").unwrap_err().contains("such as 0.5"));
    }

    #[test]
    fn seconds_that_make_no_sense_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert!(milliseconds("--delay", bad).is_err(), "{bad}");
        }
    }
}
