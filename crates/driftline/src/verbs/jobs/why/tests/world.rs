//! A database with a crawl under way, as a crawl makes it.

use super::super::{Why, WhyRequest};
use crate::verbs::context::VerbContext;
use crate::verbs::{Verb, wire};
use crawl::budget;
use crawl::definitions::WebSpec;
use crawl::scope::{Reach, ScopeRules};
use page::domain::SuffixList;
use page::ids::{DocHash, bin_of, part_of};
use page::url::host_of;
use serde_json::Value as Json;
use std::cell::Cell;
use store::ids::{BinId, ChunkId, ConnectionId, DocumentId, JobId, NodeId, Part, QueueId, Run};
use store::tables::bins::{self, Visit};
use store::tables::chunks;
use store::tables::documents::{self, Document};
use store::tables::job_states;
use store::tables::jobs::{self, Job};
use store::tables::leases::{self, Lease, LeaseRequest};
use store::tables::nodes::{self, NewNode};
use store::tables::queue::{
    self, AddContext, Candidate, Place, Reason, ReasonCode, SettledDocument, Settlement,
};
use store::tables::robots::{self, StoredRobots};
use store::tables::traps::{self, TrapRow};
use store::testing::candidate;
use store::{Db, Result, clock};

pub(super) const PARTS: u32 = 4;
pub(super) const HOUR_MS: i64 = 3_600_000;
/// The job that is running, in its second run; see [`World::make`].
pub(super) const SITE: JobId = JobId(1);
/// A job whose run has ended.
pub(super) const IDLE: JobId = JobId(2);
pub(super) const RUN: Run = Run(2);
pub(super) const CONNECTION: ConnectionId = ConnectionId(1);

pub(super) fn part(url: &str) -> Part {
    let domain = SuffixList::bundled().grouping_domain(host_of(url));
    Part(part_of(Some(domain), url, PARTS).into())
}

/// A database with a crawl under way.
pub(super) struct World<'a> {
    pub(super) db: &'a Db,
    pub(super) node: NodeId,
    pub(super) ids: Cell<i64>,
    pub(super) now_ms: i64,
}

impl<'a> World<'a> {
    pub(super) fn make(db: &'a Db) -> Result<World<'a>> {
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
            scope: ScopeRules {
                reach: Reach::Domain,
                exclude: vec!["/private/".into()],
                hops_max: Some(3),
                ..ScopeRules::default()
            },
            pages_max: Some(5),
            host_pages: 200,
            ..spec("http://site.example/")
        };
        let picky = WebSpec {
            scope: ScopeRules { include: vec!["/docs/".into()], ..ScopeRules::default() },
            ..spec("http://picky.example/")
        };
        world.job(SITE, "site", &site, 2)?;
        world.job(IDLE, "idle", &spec("http://idle.example/"), 1)?;
        world.job(JobId(3), "picky", &picky, 1)?;
        world.job(JobId(4), "new", &spec("http://new.example/"), 0)?;
        db.write(|tx| job_states::end_run(tx, IDLE, Run(1), 9))?;
        Ok(world)
    }

    pub(super) fn job(&self, id: JobId, name: &str, spec: &WebSpec, runs: i64) -> Result<()> {
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

    pub(super) fn id(&self) -> i64 {
        self.ids.set(self.ids.get() + 1);
        self.ids.get()
    }

    /// The crawler's lease on the part of a URL.
    pub(super) fn lease(&self, url: &str) -> Result<Lease> {
        let asking = LeaseRequest {
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
    pub(super) fn add(
        &self,
        job: JobId,
        url: &str,
        cut: Option<ReasonCode>,
        hops: i64,
    ) -> Result<QueueId> {
        self.add_list(job, url, (cut, hops), 0.0)
    }

    /// Names a URL as a sitemap, at a depth. Returns its row.
    pub(super) fn add_list(
        &self,
        job: JobId,
        url: &str,
        (cut, hops): (Option<ReasonCode>, i64),
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
            let adding = AddContext {
                place,
                run: RUN,
                now_ms: 5,
                room: None,
                requisites: Default::default(),
            };
            queue::add(tx, adding, std::slice::from_ref(&candidate)).map(|_| ())
        })?;
        Ok(id)
    }

    /// Claims a URL into a chunk. `stale` is a chunk of a holder that lost its lease.
    pub(super) fn claim(&self, url: &str, stale: bool) -> Result<(QueueId, ChunkId)> {
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
    pub(super) fn settle(&self, url: &str, run: Run, to: Settlement) -> Result<()> {
        let (id, chunk) = self.claim(url, false)?;
        let settled = SettledDocument { id, generation: 1, to };
        let place = Place { part: part(url), job: SITE };
        self.db
            .write(move |tx| queue::settle(tx, place, chunk, run, std::slice::from_ref(&settled)))
    }

    /// Settles a URL as done in this run, with what is known of it.
    pub(super) fn done(&self, url: &str, change: impl FnOnce(&mut Document)) -> Result<()> {
        self.document(url, change)?;
        self.settle(url, RUN, Settlement::Done)
    }

    pub(super) fn document(&self, url: &str, change: impl FnOnce(&mut Document)) -> Result<()> {
        let id = DocumentId(self.id());
        let mut document = Document::new(id, DocHash::of(url), url.into(), self.now_ms - HOUR_MS);
        document.outcome = "ok".into();
        document.http_status = Some(200);
        change(&mut document);
        let part = part(url);
        self.db
            .write(move |tx| documents::save(tx, part, CONNECTION, std::slice::from_ref(&document)))
    }

    pub(super) fn robots(&self, origin: &str, body: Option<&[u8]>) -> Result<()> {
        let stored = StoredRobots {
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

    pub(super) fn visit(&self, url: &str, next_ms: i64, blocked_ms: Option<i64>) -> Result<()> {
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
    pub(super) fn closed(&self, url: &str) -> Result<()> {
        let name = budget::counted_as(url, SuffixList::bundled()).swap_remove(0);
        self.closed_by(url, name, "stale")
    }

    /// Closes what has a name.
    pub(super) fn closed_by(
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
    pub(super) fn ask(&self, url: &str, job: Option<&str>) -> Json {
        let context = VerbContext::of_rows(self.db.clone());
        let context = VerbContext { doing: Some("crawl".into()), ..context };
        let request = WhyRequest { url: url.into(), job: job.map(str::to_owned) };
        let mut answer = wire::encode(&Why::answer(&context, request).unwrap()).unwrap();
        let found = answer["answers"].as_array_mut().unwrap();
        assert_eq!(found.len(), 1, "{url}: {found:?}");
        found.remove(0)
    }
}

pub(super) fn spec(seed: &str) -> WebSpec {
    WebSpec { seeds: vec![seed.into()], ..WebSpec::default() }
}

pub(super) fn url(path: &str) -> String {
    format!("http://site.example/{path}")
}

pub(super) fn cut(code: &str, detail: Option<&str>) -> Settlement {
    Settlement::Cut(Reason::new(code, detail))
}

pub(super) fn failed(code: &str) -> Settlement {
    Settlement::Failed(Reason::new(code, None))
}

pub(super) fn retry(code: &str, check_ms: i64) -> Settlement {
    let reason = Reason::new(code, None);
    Settlement::Retry { check_ms, failcount: Some(2), failtime: None, reason }
}
