//! Every cause is made in a database, as a crawl makes it, and asked about.
//!
//! A cause that no case here leads to fails the test: there is an answer for every
//! reason, and each was seen (F8).

mod spelling;

use super::cause::Cause;
use super::{Why, WhyRequest};
use crate::verbs::context::VerbContext;
use crate::verbs::{Verb, wire};
use crawl::budget;
use crawl::definitions::WebSpec;
use crawl::scope::{Reach, Rules};
use page::domain::SuffixList;
use page::ids::{DocHash, bin_of, part_of};
use page::url::host_of;
use serde_json::Value as Json;
use std::cell::Cell;
use std::collections::BTreeSet;
use store::ids::{BinId, ChunkId, ConnectionId, DocumentId, JobId, NodeId, Part, QueueId, Run};
use store::tables::bins::{self, Visit};
use store::tables::chunks;
use store::tables::connections::{self, Connection, Kind};
use store::tables::documents::{self, Document};
use store::tables::job_states;
use store::tables::jobs::{self, Job};
use store::tables::leases::{self, Asking, Lease};
use store::tables::nodes::{self, NewNode};
use store::tables::queue::{self, Action, Adding, Candidate, Place, Reason, Settled, Settlement};
use store::tables::robots::{self, Stored};
use store::tables::settings;
use store::tables::throttles::{self, Throttle};
use store::tables::traps::{self, TrapRow};
use store::testing::{both_databases, candidate};
use store::{Db, Result, clock};

const PARTS: u32 = 4;
const HOUR_MS: i64 = 3_600_000;
/// The job that is running, in its second run; see [`World::make`].
const SITE: JobId = JobId(1);
/// A job whose run has ended.
const IDLE: JobId = JobId(2);
const RUN: Run = Run(2);
const CONNECTION: ConnectionId = ConnectionId(1);

fn part(url: &str) -> Part {
    let domain = SuffixList::bundled().grouping_domain(host_of(url));
    Part(part_of(Some(domain), url, PARTS).into())
}

/// A database with a crawl under way.
struct World<'a> {
    db: &'a Db,
    node: NodeId,
    ids: Cell<i64>,
    now_ms: i64,
}

impl<'a> World<'a> {
    fn make(db: &'a Db) -> Result<World<'a>> {
        let now_ms = clock::now_ms();
        let new = NewNode {
            name: "crawler-1".into(),
            roles: "crawl".into(),
            address: None,
            version: "test".into(),
        };
        let node = db.write(move |tx| nodes::register(tx, &new, now_ms))?;
        let world = World { db, node, ids: Cell::new(1), now_ms };
        let site = WebSpec {
            scope: Rules {
                reach: Reach::Domain,
                exclude: vec!["/private/".into()],
                hops_max: Some(3),
                ..Rules::default()
            },
            pages_max: Some(5),
            host_pages: 200,
            ..spec("http://site.example/")
        };
        let picky = WebSpec {
            scope: Rules { include: vec!["/docs/".into()], ..Rules::default() },
            ..spec("http://picky.example/")
        };
        world.job(SITE, "site", &site, 2)?;
        world.job(IDLE, "idle", &spec("http://idle.example/"), 1)?;
        world.job(JobId(3), "picky", &picky, 1)?;
        world.job(JobId(4), "new", &spec("http://new.example/"), 0)?;
        db.write(|tx| job_states::end_run(tx, IDLE, Run(1), 9))?;
        Ok(world)
    }

    fn job(&self, id: JobId, name: &str, spec: &WebSpec, runs: i64) -> Result<()> {
        let job = Job { docspec: spec.to_json(), ..Job::new(id, name, CONNECTION) };
        let node = self.node;
        self.db.write(move |tx| {
            jobs::save(tx, &job, 1)?;
            for run in 1..=runs {
                job_states::start_run(tx, id, node, 1)?;
                if run < runs {
                    job_states::end_run(tx, id, Run(run), 1)?;
                }
            }
            Ok(())
        })
    }

    fn id(&self) -> i64 {
        self.ids.set(self.ids.get() + 1);
        self.ids.get()
    }

    /// The crawler's lease on the part of a URL.
    fn lease(&self, url: &str) -> Result<Lease> {
        let asking = Asking {
            node: self.node,
            node_name: "crawler-1".into(),
            now_ms: self.now_ms,
            lease_ms: HOUR_MS,
            skew_ms: 0,
        };
        let part = part(url);
        let taken = self.db.write(move |tx| leases::take(tx, part, "crawl", &asking))?;
        Ok(taken.unwrap_or(Lease {
            part,
            role: "crawl".into(),
            node: self.node,
            token: 1,
            deadline_ms: self.now_ms + HOUR_MS,
        }))
    }

    /// Names a URL. Returns its row.
    fn add(&self, job: JobId, url: &str, cut: Option<&'static str>, hops: i64) -> Result<QueueId> {
        self.add_list(job, url, (cut, hops), 0.0)
    }

    /// Names a URL as a sitemap, at a depth. Returns its row.
    fn add_list(
        &self,
        job: JobId,
        url: &str,
        (cut, hops): (Option<&'static str>, i64),
        priority: f64,
    ) -> Result<QueueId> {
        let candidate = Candidate {
            priority,
            hops,
            parent: Some((part("http://site.example/"), DocHash::of("http://site.example/stored"))),
            cut,
            ..candidate(self.id(), url, host_of(url))
        };
        let (place, id) = (Place { part: part(url), job }, candidate.id);
        self.db.write(move |tx| {
            let adding = Adding { place, run: RUN, now_ms: 5, room: None };
            queue::add(tx, adding, std::slice::from_ref(&candidate)).map(|_| ())
        })?;
        Ok(id)
    }

    /// Claims a URL into a chunk. `stale` is a chunk of a holder that lost its lease.
    fn claim(&self, url: &str, stale: bool) -> Result<(QueueId, ChunkId)> {
        let (id, chunk) = (self.add(SITE, url, None, 1)?, ChunkId(self.id()));
        let mut lease = self.lease(url)?;
        if stale {
            lease.token -= 1;
        }
        let place = Place { part: part(url), job: SITE };
        self.db.write(move |tx| {
            chunks::open(tx, &lease, chunk, SITE, RUN, 5)?;
            let peeked = queue::load(tx, place, &[id])?;
            queue::claim(tx, place, chunk, peeked).map(|_| ())
        })?;
        Ok((id, chunk))
    }

    /// Lets a run settle a URL.
    fn settle(&self, url: &str, run: Run, to: Settlement) -> Result<()> {
        let (id, chunk) = self.claim(url, false)?;
        let settled = Settled { id, generation: 1, to };
        let place = Place { part: part(url), job: SITE };
        self.db
            .write(move |tx| queue::settle(tx, place, chunk, run, std::slice::from_ref(&settled)))
    }

    /// Settles a URL as done in this run, with what is known of it.
    fn done(&self, url: &str, change: impl FnOnce(&mut Document)) -> Result<()> {
        self.document(url, change)?;
        self.settle(url, RUN, Settlement::Done)
    }

    fn document(&self, url: &str, change: impl FnOnce(&mut Document)) -> Result<()> {
        let id = DocumentId(self.id());
        let mut document = Document::new(id, DocHash::of(url), url.into(), self.now_ms - HOUR_MS);
        document.outcome = "ok".into();
        document.http_status = Some(200);
        change(&mut document);
        let part = part(url);
        self.db
            .write(move |tx| documents::save(tx, part, CONNECTION, std::slice::from_ref(&document)))
    }

    fn robots(&self, origin: &str, body: Option<&[u8]>) -> Result<()> {
        let stored = Stored {
            origin: origin.into(),
            status: Some(if body.is_some() { 200 } else { 503 }),
            body: body.map(<[u8]>::to_vec),
            closed: body.is_none(),
            asked_ms: 5,
            good_ms: None,
            failing_ms: None,
            expires_ms: self.now_ms + HOUR_MS,
        };
        let part = part(origin);
        self.db.write(move |tx| robots::save(tx, part, &stored))
    }

    fn visit(&self, url: &str, next_ms: i64, blocked_ms: Option<i64>) -> Result<()> {
        let visit = Visit {
            bin: BinId(bin_of(host_of(url))),
            next_ms,
            delay_ms: None,
            failures: 7,
            blocked_ms,
            blocked_by: blocked_ms.map(|_| "dns".into()),
            fetches: 1,
            errors: 1,
            bytes: 0,
            busy_ms: 0,
        };
        let part = part(url);
        self.db.write(move |tx| bins::visited(tx, part, std::slice::from_ref(&visit)))
    }

    /// Closes the pattern of a URL.
    fn closed(&self, url: &str) -> Result<()> {
        let name = budget::counted_as(url, SuffixList::bundled()).swap_remove(0);
        self.closed_by(url, name, "stale")
    }

    /// Closes what has a name.
    fn closed_by(
        &self,
        url: &str,
        (bin, pattern): (BinId, String),
        rule: &'static str,
    ) -> Result<()> {
        let trap = TrapRow {
            job: SITE,
            bin,
            pattern,
            documents: 640,
            stale: 600,
            deep: 0,
            suspects: 0,
            recent_stale: 1_000_000,
            recent_alike: 1_000_000,
            rule: Some(rule.into()),
            outside: 3,
            bytes: 2_000_000_000,
        };
        let part = part(url);
        self.db.write(move |tx| traps::save(tx, part, std::slice::from_ref(&trap), 1))
    }

    /// Everything about a URL that has one answer.
    fn ask(&self, url: &str, job: Option<&str>) -> Json {
        let context = VerbContext::of_rows(self.db.clone());
        let context = VerbContext { doing: Some("crawl".into()), ..context };
        let request = WhyRequest { url: url.into(), job: job.map(str::to_owned) };
        let mut answer = wire::encode(&Why::answer(&context, request).unwrap()).unwrap();
        let found = answer["answers"].as_array_mut().unwrap();
        assert_eq!(found.len(), 1, "{url}: {found:?}");
        found.remove(0)
    }
}

fn spec(seed: &str) -> WebSpec {
    WebSpec { seeds: vec![seed.into()], ..WebSpec::default() }
}

fn url(path: &str) -> String {
    format!("http://site.example/{path}")
}

fn cut(code: &str, detail: Option<&str>) -> Settlement {
    Settlement::Cut(Reason::new(code, detail))
}

fn failed(code: &str) -> Settlement {
    Settlement::Failed(Reason::new(code, None))
}

fn retry(code: &str, check_ms: i64) -> Settlement {
    let reason = Reason::new(code, None);
    Settlement::Retry { check_ms, failcount: Some(2), failtime: None, reason }
}

/// What there is of a job's own: scope, limits, robots.
fn seed_cut(world: &World<'_>) -> Result<()> {
    world.add(SITE, &url("hops"), Some("hops"), 4)?;
    world.add(SITE, &url("limit"), Some("limit"), 1)?;
    world.add(SITE, &url("lifted"), Some("scope"), 1)?;
    world.add(SITE, &url("private/known"), Some("scope"), 1)?;
    world.settle(&url("trap"), RUN, cut("trap", Some("more than 500 pages of /trap/*")))?;
    world.settle(
        &url("cal/2031"),
        RUN,
        cut("budget", Some("it looks like a crawler trap: 500 pages like it")),
    )?;
    world.add(SITE, &url("cal/2032"), Some("budget"), 1)?;
    world.add(SITE, &url("maze/x1"), Some("budget"), 1)?;
    world.closed(&url("cal/1"))?;
    seed_budgets(world)?;
    world.settle(&url("forbidden"), RUN, cut("robots", None))?;
    world.robots("http://site.example", Some(b"User-agent: *\nDisallow: /forbidden\n"))?;
    let closed = "http://closed.site.example";
    world.settle(&format!("{closed}/"), RUN, cut("robots", None))?;
    world.robots(closed, None)?;
    world.settle(&url("redirects"), RUN, cut("redirects", None))?;
    world.settle(&url("noindex"), RUN, cut("noindex", None))?;
    world.settle(&url("nofollow"), RUN, cut("nofollow", None))?;
    world.settle(&url("cut"), RUN, cut("whim", Some("it is Tuesday")))
}

/// Sitemaps and hosts that are closed.
fn seed_budgets(world: &World<'_>) -> Result<()> {
    let cut = (Some("budget"), 1);
    for (path, depth) in [("index/2", 2.0), ("index/5", 5.0)] {
        world.add_list(SITE, &url(path), cut, depth)?;
    }
    let index = url("stored");
    for (depth, rule) in [(2, "list-bytes"), (5, "list-depth")] {
        let name = budget::counted_lists(&index, depth).swap_remove(0);
        world.closed_by(&index, name, rule)?;
    }
    world.add(SITE, MANY, Some("budget"), 1)?;
    let host = host_of(MANY);
    world.closed_by(MANY, (BinId(bin_of(host)), format!("{host}/*")), "unlinked")
}

/// A page of a host that has more pages than links to it allow.
const MANY: &str = "http://many.site.example/page";

/// Documents on their way.
fn seed_under_way(world: &World<'_>) -> Result<()> {
    let later = world.now_ms + HOUR_MS;
    world.settle(&url("retry"), RUN, retry("http-503", later))?;
    world.settle(&url("confirming"), RUN, retry("gone", later))?;
    world.settle(&url("robots-wait"), RUN, retry("robots-unreachable", later))?;
    world.settle(
        &url("scheduled"),
        RUN,
        Settlement::Again { check_ms: later, action: Action::Fetch },
    )?;
    world.add(SITE, &url("ready"), None, 1)?;
    world.add(IDLE, "http://idle.example/x", None, 1)?;
    for (host, next_ms, blocked_ms) in
        [("slow", later, None), ("blocked", world.now_ms, Some(later))]
    {
        let url = format!("http://{host}.site.example/");
        world.add(SITE, &url, None, 1)?;
        world.visit(&url, next_ms, blocked_ms)?;
    }
    world.add(SITE, "http://stopped.site.example/", None, 1)?;
    world.settle("http://stopped.site.example/left", RUN, failed("host-left-alone"))?;
    world.db.write(|tx| {
        let web = Connection::new(CONNECTION, "web", "web");
        connections::save(tx, Kind::Repository, &web, 1)?;
        let stops = Throttle {
            matches: "^stopped".into(),
            description: None,
            per_ms: Some(0.0),
            connections_max: None,
            bytes_per_s_max: None,
        };
        throttles::replace(tx, CONNECTION, &[stops])
    })?;
    let (owner, part) = (world.add(SITE, &url("event"), None, 1)?, part(&url("event")));
    world.db.write(move |tx| {
        tx.execute("INSERT INTO events (name, node, begun_ms) VALUES ('login', 1, 0)", &[])?;
        tx.execute(
            "INSERT INTO prereqevents (part, owner, eventname) VALUES ($1, $2, 'login')",
            &[part.into(), owner.into()],
        )
    })?;
    world.claim(&url("active"), false)?;
    world.claim(&url("stale"), true)?;
    Ok(())
}

/// Documents that were looked at.
fn seed_settled(world: &World<'_>) -> Result<()> {
    let here = part(&url(""));
    let key = |path: &str| Some((here, DocHash::of(&url(path))));
    for (path, code) in [
        ("failed", "http-500"),
        ("refused", "address"),
        ("insecure", "tls-expired"),
        ("gone", "gone"),
    ] {
        world.settle(&url(path), RUN, failed(code))?;
    }
    world.done(&url("stored"), |it| it.chunk = Some(ChunkId(1)))?;
    world.done(&url("unread"), |it| {
        it.chunk = Some(ChunkId(1));
        it.outcome = "unread-locked".into();
    })?;
    world.done(&url("unchanged"), |it| {
        it.chunk = Some(ChunkId(1));
        it.outcome = "not modified".into();
    })?;
    world.document(&url("recheck"), |_| {})?;
    world.settle(&url("recheck"), Run(1), Settlement::Done)?;
    world.done(&url("copy"), |it| it.duplicate_of = key("stored"))?;
    for (path, to) in [("moved", "moved-again"), ("moved-again", "stored")] {
        world.done(&url(path), |it| {
            it.outcome = "redirect".into();
            it.redirect = key(to);
        })?;
    }
    world.done(&url("led-away"), |it| {
        it.outcome = "redirect".into();
        it.redirect = Some((Part(0), DocHash::of("http://elsewhere.example/")));
    })?;
    for (path, to) in [("circle", "circle"), ("a-to-b", "b-to-a"), ("b-to-a", "a-to-b")] {
        world.done(&url(path), |it| {
            it.outcome = "redirect".into();
            it.redirect = key(to);
        })?;
    }
    world.done(&url("removed"), |it| {
        it.removed_ms = Some(5);
        it.reason = Some("gone".into());
    })?;
    world.document(&url("forgotten"), |it| {
        it.removed_ms = Some(5);
        it.reason = Some("unreachable".into());
    })?;
    world.settle(&url("given-up"), Run(1), failed("dns"))?;
    world.settle(&url("done"), RUN, Settlement::Done)
}

/// A URL (a path is of the site), the job it is asked in, the cause, and words of the answer.
type Case = (&'static str, Option<&'static str>, Cause, &'static str);

const CASES: &[Case] = &[
    ("ftp://site.example/", None, Cause::NotWeb, "scheme is neither"),
    ("http://new.example/", Some("new"), Cause::NotStarted, "has not been run"),
    ("http://elsewhere.example/", Some("site"), Cause::OutOfScope, "stays within site.example"),
    ("http://picky.example/x", Some("picky"), Cause::NotIncluded, "no --include"),
    ("private/unseen", Some("site"), Cause::Excluded, "--exclude \"/private/\""),
    ("private/known", None, Cause::Excluded, "--exclude \"/private/\""),
    ("hops", None, Cause::Hops, "more than 3 links"),
    ("a/a/a/a", Some("site"), Cause::Trap, "repeats itself"),
    ("trap", None, Cause::Trap, "500 pages of /trap/*"),
    ("cal/2031", None, Cause::Trap, "because it looks like a crawler trap: 500 pages like it."),
    ("cal/2032", None, Cause::Trap, "640 pages like site.example/cal/# were fetched"),
    ("maze/x1", None, Cause::Trap, "too many pages like it"),
    ("index/2", None, Cause::Trap, "<sitemaps read> were fetched, and with 2.0 GB"),
    ("index/5", None, Cause::Trap, "more than 3 deep: 640 lists"),
    (MANY, None, Cause::Trap, "link to it 3 times: it may have host_pages"),
    ("unseen", Some("site"), Cause::Unseen, "no page, sitemap or seed"),
    ("limit", None, Cause::Limit, "limited to 5 documents"),
    ("lifted", None, Cause::Lifted, "the current settings allow it"),
    (
        "forbidden",
        None,
        Cause::Robots,
        "Line 2 of its robots.txt forbids it: \"Disallow: /forbidden\"",
    ),
    ("http://closed.site.example/", None, Cause::RobotsUnreachable, "status 503"),
    ("robots-wait", None, Cause::RobotsUnreachable, "nothing on the host"),
    ("redirects", None, Cause::Redirects, "too many redirects"),
    ("noindex", None, Cause::Noindex, "noindex"),
    ("nofollow", None, Cause::Nofollow, "nofollow"),
    ("cut", None, Cause::Cut, "it is Tuesday"),
    ("retry", None, Cause::Retry, "status 503. It is retried in 59 min (2 tries left)"),
    ("confirming", None, Cause::Confirming, "Until then it is kept"),
    ("scheduled", None, Cause::Scheduled, "checked again in 59 min"),
    ("ready", None, Cause::Ready, "is queued"),
    ("http://slow.site.example/", None, Cause::HostDelay, "slow.site.example is in 59 min"),
    ("http://blocked.site.example/", None, Cause::HostBlocked, "could not be resolved"),
    ("http://stopped.site.example/", None, Cause::Throttled, "\"^stopped\" of connection web"),
    ("http://stopped.site.example/left", None, Cause::Throttled, "allows no documents"),
    ("http://idle.example/x", None, Cause::NoCrawl, "no process is crawling"),
    ("event", None, Cause::Event, "\"login\""),
    ("active", None, Cause::Active, "fetched by crawler-1"),
    ("stale", None, Cause::Stale, "lost its lease"),
    ("failed", None, Cause::Failed, "status 500"),
    ("refused", None, Cause::Refused, "not on the public internet"),
    ("insecure", None, Cause::Insecure, "has expired"),
    ("gone", None, Cause::Gone, "does not exist"),
    ("stored", None, Cause::Stored, "last fetched 1 h ago, in run 2"),
    (
        "unread",
        None,
        Cause::Unread,
        "its text could not be extracted: it is protected by a password",
    ),
    ("unchanged", None, Cause::Unchanged, "found it unchanged"),
    ("recheck", None, Cause::Recheck, "in run 1; run 2 is in progress"),
    ("copy", None, Cause::Duplicate, "copy of http://site.example/stored"),
    ("moved", None, Cause::Redirect, "through 2 redirects to http://site.example/stored"),
    ("led-away", None, Cause::Redirect, "outside the job's scope"),
    ("circle", None, Cause::RedirectLoop, "loop: http://site.example/circle -> http"),
    ("a-to-b", None, Cause::RedirectLoop, "/a-to-b -> http://site.example/b-to-a -> http"),
    ("removed", None, Cause::Removed, "no longer exists"),
    ("forgotten", Some("site"), Cause::Removed, "no page links to it"),
    ("done", None, Cause::Done, "nothing is stored for it"),
];

#[test]
fn every_cause_is_answered_by_its_code_and_its_words() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let mut seen = BTreeSet::new();
        let empty = World { db, node: NodeId(1), ids: Cell::new(0), now_ms: clock::now_ms() };
        assert_eq!(empty.ask("http://a.example/", None)["code"], Cause::NoJobs.code());
        seen.insert(Cause::NoJobs);
        let world = World::make(db)?;
        seed_cut(&world)?;
        seed_under_way(&world)?;
        seed_settled(&world)?;
        for (path, job, cause, words) in CASES {
            let url = if path.contains("://") { (*path).to_owned() } else { url(path) };
            let found = world.ask(&url, *job);
            assert_eq!(found["code"], cause.code(), "{url}: {found}");
            let sentence = found["sentence"].as_str().unwrap();
            assert!(sentence.contains(words), "{url}: {words:?} is not in {sentence:?}");
            seen.insert(*cause);
        }
        assert_eq!(world.ask(&url("a-to-b"), None)["command"], Json::Null, "nothing to ask next");
        let raised = "driftline crawl --job site --host-pages 1280";
        assert_eq!(world.ask(MANY, None)["command"], raised);
        let more = WebSpec { host_pages: 400, ..spec("http://site.example/") };
        world.job(SITE, "site", &more, 0)?;
        assert_eq!(
            world.ask(MANY, None)["code"],
            Cause::Lifted.code(),
            "400, and 100 for each link"
        );
        let next = world.ask(&url("given-up"), None)["next"].clone();
        assert_eq!(next, "Run 2 is in progress and will check it again.");
        let untold: Vec<_> = Cause::ALL.iter().filter(|cause| !seen.contains(cause)).collect();
        assert!(untold.is_empty(), "no case leads to {untold:?}");
        Ok(())
    });
}

#[test]
fn what_is_out_of_reach_is_offered_only_what_lets_it_in() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let world = World::make(db)?;
        for (asked, command) in [
            ("http://other.idle.example/", "driftline crawl --job idle --scope domain"),
            (
                "http://elsewhere.example/x",
                "driftline crawl --job idle http://idle.example/ http://elsewhere.example/x",
            ),
        ] {
            assert_eq!(world.ask(asked, Some("idle"))["command"], command, "{asked}");
        }
        Ok(())
    });
}
