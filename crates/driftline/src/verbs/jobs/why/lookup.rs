//! What is looked up to answer for one URL, all of it in one snapshot.
//!
//! Everything is found by a key; nothing is searched for. Invariant: what follows
//! from it is decided elsewhere, without the database.

use crawl::budget::{self, ClosedPattern};
use crawl::definitions::WebSpec;
use crawl::hops::HopRules;
use crawl::scope::Scope;
use crawl::throttle::Throttles;
use page::domain::SuffixList;
use page::ids::{DocHash, part_of};
use page::url::{Policy, UrlRefusal, canonical, host_of, origin_of};
use std::sync::Arc;
use store::ids::{ConnectionId, Part, Run};
use store::tables::bins::{self, Bin};
use store::tables::chunks::{self, Holder};
use store::tables::documents::{self, Document};
use store::tables::job_states;
use store::tables::jobs::{self, Job};
use store::tables::overview::{self, RunState};
use store::tables::queue::list::{self, ListedDocument};
use store::tables::queue::{Place, REQUISITES, ReasonCode};
use store::tables::robots::{self, StoredRobots};
use store::tables::{connections, counters, hopfilters, settings, throttles, traps};
use store::{Error, Result, Tx};

/// Jobs that are looked at when none is named.
const JOBS_MAX: u32 = 100;
/// Jobs that are told of when none of them knows the URL.
const STRANGERS_MAX: usize = 10;
/// Redirects that are shown in a row.
const CHAIN_MAX: usize = 10;

/// What a text may mean, or why it is not a web address.
pub type ReadUrl<T> = std::result::Result<T, UrlRefusal>;

/// What is known of a URL in one job.
pub struct LookedUp {
    /// The time of the look.
    pub now_ms: i64,
    /// The canonical URL that was looked for.
    pub url: ReadUrl<String>,
    /// The job, if there is one.
    pub job: Option<JobLook>,
    /// Its row in the queue.
    pub row: Option<ListedDocument>,
    /// What is known of its content.
    pub document: Option<Document>,
    pub bin: Option<Bin>,
    /// The connection that lets nothing of its host start, and by which expression.
    pub stopped: Option<(String, String)>,
    /// The robots.txt of its origin.
    pub robots: Option<StoredRobots>,
    /// Who is fetching it, if it is active.
    pub holder: Option<Holder>,
    /// Events it waits for, if it is ready.
    pub events: Vec<String>,
    /// Where it leads, from the next URL on, as far as that is known.
    pub redirects: Vec<String>,
    /// What it is a copy of.
    pub original: Option<String>,
    /// The page that named it first.
    pub parent: Option<String>,
    /// What has closed, if it is cut for that.
    pub closed: Option<ClosedPattern>,
    /// Why it is too far from every seed, if it is.
    pub too_far: Option<String>,
}

/// What is known of a job.
pub struct JobLook {
    pub name: String,
    /// Its current or last run.
    pub run: Run,
    pub standing: RunState,
    /// What it was told, if that can be read.
    pub spec: Option<WebSpec>,
    /// Its scope, if its rules can be used.
    pub scope: Option<Scope>,
    /// Pages it has taken in, and requisites of them.
    pub taken: i64,
    pub requisites: i64,
    /// What registered domains are.
    pub suffixes: Arc<SuffixList>,
}

/// Looks a URL up in a job, or in all that know it.
pub fn look(tx: &mut Tx<'_>, asked: &str, job: Option<&str>, now_ms: i64) -> Result<Vec<LookedUp>> {
    let view =
        View { parts: settings::parts(tx)?, suffixes: settings::suffix_list(tx)?, now_ms, asked };
    let jobs = match job {
        Some(name) => vec![jobs::find(tx, name)?.ok_or_else(|| unknown_job(name))?],
        None => jobs::list(tx, "", JOBS_MAX)?,
    };
    let spelling = spellings(asked, &Policy::default());
    if jobs.is_empty() || spelling.is_err() {
        return Ok(vec![
            view.nothing(spelling.map(|urls| urls.into_iter().next().unwrap_or_default())),
        ]);
    }
    let mut all = Vec::new();
    for job in &jobs {
        all.push(view.in_job(tx, job)?);
    }
    // Jobs of one connection share their documents; the queue tells whose it is.
    let has_it = |looked: &LookedUp| looked.row.is_some();
    if all.iter().any(has_it) {
        all.retain(has_it);
    }
    all.truncate(STRANGERS_MAX);
    Ok(all)
}

fn unknown_job(name: &str) -> Error {
    Error::Refused(format!("there is no job named {name:?}; `driftline status` lists them"))
}

/// The URLs that may be meant. A name without a scheme may be either.
pub fn spellings(asked: &str, policy: &Policy) -> ReadUrl<Vec<String>> {
    match canonical(asked, policy) {
        Ok(url) => Ok(vec![url]),
        Err(_) if looks_like_a_host(asked) => ["https://", "http://"]
            .iter()
            .map(|scheme| canonical(&format!("{scheme}{asked}"), policy))
            .collect(),
        Err(refused) => Err(refused),
    }
}

/// `example.com/x` and `localhost:8080`, but not `mailto:me` or `hello`.
fn looks_like_a_host(asked: &str) -> bool {
    let host = asked.trim().split(['/', '?', '#']).next().unwrap_or_default();
    let port = host.split_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    !asked.contains("://") && (port || (host.contains('.') && !host.contains(':')))
}

/// What is the same for every job.
struct View<'a> {
    parts: u32,
    suffixes: Arc<SuffixList>,
    now_ms: i64,
    asked: &'a str,
}

impl View<'_> {
    fn part_of(&self, url: &str) -> Part {
        let domain = self.suffixes.grouping_domain(host_of(url));
        Part(part_of(Some(domain), url, self.parts).into())
    }

    fn nothing(&self, url: ReadUrl<String>) -> LookedUp {
        LookedUp {
            now_ms: self.now_ms,
            url,
            job: None,
            row: None,
            document: None,
            bin: None,
            stopped: None,
            robots: None,
            holder: None,
            events: Vec::new(),
            redirects: Vec::new(),
            original: None,
            parent: None,
            closed: None,
            too_far: None,
        }
    }

    fn in_job(&self, tx: &mut Tx<'_>, job: &Job) -> Result<LookedUp> {
        let spec = WebSpec::from_json(&job.docspec).ok();
        let policy = spec.as_ref().map_or_else(Policy::default, |spec| spec.policy);
        let urls = match spellings(self.asked, &policy) {
            Ok(urls) => urls,
            Err(refused) => return Ok(self.nothing(Err(refused))),
        };
        let mut found = None;
        for url in &urls {
            let (part, hash) = (self.part_of(url), DocHash::of(url));
            let rows = list::in_jobs(tx, part, hash)?;
            let row = rows.into_iter().find(|row| row.job == job.id);
            let document = documents::load(tx, part, job.connection, &[hash])?.pop();
            let known = row.is_some() || document.is_some();
            if known || found.is_none() {
                found = Some((url.clone(), part, row, document));
            }
            if known {
                break;
            }
        }
        let Some((url, part, row, document)) = found else {
            return Ok(self.nothing(Err(UrlRefusal::Syntax)));
        };
        let mut looked = self.nothing(Ok(url.clone()));
        let place = Place { part, job: job.id };
        looked.robots = robots::find(tx, part, origin_of(&url))?;
        if let Some(rules) = hop_rules(tx, job, spec.as_ref())? {
            looked.too_far =
                rules.too_far_among(tx, place, &[DocHash::of(&url)])?.pop().map(|it| it.1);
        }
        looked.job = Some(self.job(tx, job, spec)?);
        if let Some(row) = &row {
            self.look_at_row(tx, &mut looked, place, row)?;
            if let Some(bin) = &looked.bin {
                looked.stopped = stopped(tx, job.connection, &bin.name)?;
            }
            if row.reason_code() == Some(ReasonCode::Budget) {
                let lists = self.closed_lists(tx, place, row, looked.parent.as_deref())?;
                looked.closed = match lists {
                    Some(closed) => Some(closed),
                    None => self.closed(tx, place, &url)?,
                };
            }
        }
        if let Some(document) = &document {
            looked.redirects = chain(tx, job.connection, document)?;
            if let Some(original) = document.duplicate_of {
                let (part, hash) = original;
                looked.original = name_of(tx, job.connection, part, hash)?;
            }
        }
        (looked.row, looked.document) = (row, document);
        Ok(looked)
    }

    /// What a row of the queue leads to: its host, its events, its holder, its parent.
    fn look_at_row(
        &self,
        tx: &mut Tx<'_>,
        looked: &mut LookedUp,
        place: Place,
        row: &ListedDocument,
    ) -> Result<()> {
        let part = place.part;
        looked.bin = bins::load(tx, part, &[row.bin])?.pop();
        looked.events = list::waits_for(tx, part, row.id)?;
        if let Some(chunk) = row.chunk {
            looked.holder = chunks::holder(tx, part, chunk, self.now_ms)?;
        }
        if let Some((part, dochash)) = row.parent {
            looked.parent = list::docid_of(tx, part, dochash)?;
        }
        Ok(())
    }

    /// What has closed of the sitemaps of its host, or of the host of the index that names it, if it
    /// is known as a sitemap.
    fn closed_lists(
        &self,
        tx: &mut Tx<'_>,
        place: Place,
        row: &ListedDocument,
        parent: Option<&str>,
    ) -> Result<Option<ClosedPattern>> {
        if row.list_depth() == 0 {
            return Ok(None);
        }
        let Place { part, job } = place;
        let index = row.parent.map(|it| it.0).zip(parent);
        for (part, url) in [Some((part, row.docid.as_str())), index].into_iter().flatten() {
            for (bin, name) in budget::counted_lists(url, row.list_depth()) {
                let row = traps::find_closed(tx, part, job, bin, &name)?;
                if let Some(closed) = row.as_ref().and_then(ClosedPattern::of) {
                    return Ok(Some(closed));
                }
            }
        }
        Ok(None)
    }

    /// What has closed of all that a URL is counted as.
    fn closed(&self, tx: &mut Tx<'_>, place: Place, url: &str) -> Result<Option<ClosedPattern>> {
        for (bin, name) in budget::counted_as(url, &self.suffixes) {
            let row = traps::find_closed(tx, place.part, place.job, bin, &name)?;
            if let Some(closed) = row.as_ref().and_then(ClosedPattern::of) {
                return Ok(Some(closed));
            }
        }
        Ok(None)
    }

    fn job(&self, tx: &mut Tx<'_>, job: &Job, spec: Option<WebSpec>) -> Result<JobLook> {
        let scope = spec.as_ref().and_then(|spec| spec.compile(self.suffixes.clone()).ok());
        let taken = counters::pages_let_in(tx, job.id)?;
        let requisites = counters::total(tx, job.id, REQUISITES)?;
        Ok(JobLook {
            name: job.name.clone(),
            run: job_states::state(tx, job.id)?.run,
            standing: overview::run_state_of(tx, job.id, self.now_ms)?,
            spec,
            scope,
            taken,
            requisites,
            suffixes: self.suffixes.clone(),
        })
    }
}

/// How far a job goes, if that is limited.
fn hop_rules(tx: &mut Tx<'_>, job: &Job, spec: Option<&WebSpec>) -> Result<Option<HopRules>> {
    let mut filters = hopfilters::load(tx, job.id)?;
    if let Some(spec) = spec {
        spec.limit_hops(&mut filters);
    }
    Ok(HopRules::new(&filters, job.hopcount))
}

/// The connection that lets nothing of a host start, and by which expression.
fn stopped(tx: &mut Tx<'_>, id: ConnectionId, host: &str) -> Result<Option<(String, String)>> {
    let throttles = Throttles::new(&throttles::load(tx, id)?);
    let stopped_by = throttles.ok().and_then(|it| it.limits(host).stopped_by);
    let Some(expression) = stopped_by else { return Ok(None) };
    let found = connections::load(tx, id)?;
    Ok(found.map(|(_, connection)| (connection.name, expression)))
}

/// Where a document leads, redirect after redirect.
fn chain(tx: &mut Tx<'_>, connection: ConnectionId, from: &Document) -> Result<Vec<String>> {
    let mut urls = Vec::new();
    let mut next = from.redirect;
    while let Some((part, hash)) = next {
        if urls.len() == CHAIN_MAX {
            break;
        }
        let Some(url) = name_of(tx, connection, part, hash)? else { break };
        // A chain in a circle ends with what it has been to before.
        let is_circle = url == from.docid || urls.contains(&url);
        urls.push(url);
        if is_circle {
            break;
        }
        let document = documents::load(tx, part, connection, &[hash])?.pop();
        next = document.and_then(|it| it.redirect);
    }
    Ok(urls)
}

/// The URL of a document by its key, if anybody knows it: what a redirect leads to
/// outside the scope, nobody does.
fn name_of(
    tx: &mut Tx<'_>,
    connection: ConnectionId,
    part: Part,
    hash: DocHash,
) -> Result<Option<String>> {
    match documents::load(tx, part, connection, &[hash])?.pop() {
        Some(document) => Ok(Some(document.docid)),
        None => list::docid_of(tx, part, hash),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_scheme_is_meant_as_a_web_address() {
        let of = |asked: &str| spellings(asked, &Policy::default());
        assert_eq!(of("HTTP://a.example").unwrap(), ["http://a.example/"]);
        assert_eq!(of("a.example/x").unwrap(), ["https://a.example/x", "http://a.example/x"]);
        assert_eq!(of("localhost:8080/").unwrap()[1], "http://localhost:8080/");
        for other in ["", "hello", "mailto:me@a.example", "ftp://a.example/", "javascript:x.y"] {
            assert!(of(other).is_err(), "{other}");
        }
    }
}
