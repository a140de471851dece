//! The second half of the demo: queue, chunk, commit, check, back up, restore, on a
//! real data directory.

use super::{AGENT, heading};
use crate::cli::{say, shown};
use page::domain::SuffixList;
use page::facts::Facts;
use page::ids::{DocHash, bin_of, part_of};
use page::robots::Robots;
use std::collections::BTreeMap;
use store::chunkfile::bodies::BodiesWriter;
use store::chunkfile::document::{Body, Change, DocumentRecord};
use store::chunkfile::facts as facts_file;
use store::chunkfile::warc::{self, Capture, RecordId};
use store::datadir::{DataDir, Layout};
use store::ids::{BinId, ChunkId, IdMaker, JobId, ObjectId, Part, QueueId, Run};
use store::objects::{ChunkKey, Location, ObjectPath, Objects};
use store::tables::leases::{Asking, Lease};
use store::tables::objects::Kind;
use store::tables::queue::{Candidate, Place, Settled, Settlement};
use store::tables::{chunks, leases, nodes, overview, queue};
use store::{Db, clock, collect};

const JOB: JobId = JobId(1);
const RUN: Run = Run(1);
const PARTS: u32 = 4;
const LEASE_MS: i64 = 30_000;

/// Commits the page as a chunk, then checks, copies and restores what was stored.
pub fn show(url: &str, body: &[u8], facts: &Facts, robots: &Robots) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let data = DataDir::open(&place.path().join("data"), PARTS, clock::now_ms())?;
    let store = Objects::open(&Location::Directory(data.layout().objects()))?;
    let db = data.db();

    heading("Work is committed chunk by chunk");
    let node = nodes::NewNode {
        name: "demo".into(),
        roles: "crawl".into(),
        address: None,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let now_ms = clock::now_ms();
    let ids = IdMaker::new(db.write(move |tx| nodes::register(tx, &node, now_ms))?)?;
    let seed = candidate(&ids, url, 0, None);
    let part = seed.0;
    let lease = take_lease(db, &ids, part)?;
    let (chunk, claimed) = claim(db, &lease, &ids, seed)?;
    say(&format!("  claimed {claimed} document into chunk {}", chunk.0));
    let links = links(&ids, facts, robots);
    let seq = commit(db, &store, (&lease, &ids), chunk, (url, body, facts), links)?;
    say(&format!(
        "  committed as number {seq} of part {part}; its links are queued in their own parts"
    ));
    for job in db.read(overview::read)?.jobs {
        let counts: Vec<String> =
            job.counters.iter().map(|(state, count)| format!("{count} {state}")).collect();
        say(&format!("  documents: {}", counts.join(", ")));
    }

    heading("What is stored is checked, copied and restored");
    check("as stored", db, &store)?;
    let saved = place.path().join("saved");
    let copied = store::backup::backup(data.layout(), &saved)?;
    say(&format!("  backed up {} files, {} bytes, while in use", copied.files, copied.bytes));
    let restored = place.path().join("restored");
    store::backup::restore(&saved, &restored)?;
    let again = DataDir::open(&restored, PARTS, clock::now_ms())?;
    check("as restored", again.db(), &objects_of(again.layout())?)
}

fn objects_of(layout: &Layout) -> anyhow::Result<Objects> {
    Ok(Objects::open(&Location::Directory(layout.objects()))?)
}

fn check(when: &str, db: &Db, store: &Objects) -> anyhow::Result<()> {
    let report = store::verify::verify(db, store, true)?;
    anyhow::ensure!(report.findings.is_empty(), "{when}: {:?}", report.findings);
    say(&format!(
        "  {when}: {} chunks, {} objects, {} bytes, all as written",
        report.chunks, report.objects, report.bytes
    ));
    Ok(())
}

fn take_lease(db: &Db, ids: &IdMaker, part: Part) -> anyhow::Result<Lease> {
    let asking = Asking {
        node: ids.node(),
        node_name: "demo".into(),
        now_ms: clock::now_ms(),
        lease_ms: LEASE_MS,
        skew_ms: 0,
    };
    let lease = db.write(move |tx| leases::take(tx, part, "crawl", &asking))?;
    lease.ok_or_else(|| anyhow::anyhow!("the lease of a new data directory is not free"))
}

fn claim(
    db: &Db,
    lease: &Lease,
    ids: &IdMaker,
    (part, seed): (Part, Candidate),
) -> anyhow::Result<((i64, QueueId), usize)> {
    let (lease, chunk, now_ms) = (lease.clone(), ChunkId(ids.next()), clock::now_ms());
    let (place, id) = (Place { part, job: JOB }, seed.id);
    let claimed = db.write(move |tx| {
        leases::fence(tx, &lease)?;
        queue::add(tx, place, RUN, std::slice::from_ref(&seed), now_ms)?;
        chunks::open(tx, &lease, (chunk, JOB, RUN), now_ms)?;
        queue::claim(tx, place, chunk, &[id], RUN)
    })?;
    Ok(((chunk.0, id), claimed.len()))
}

/// The links of the page as candidates, by part. What robots.txt forbids is known
/// but cut.
fn links(ids: &IdMaker, facts: &Facts, robots: &Robots) -> BTreeMap<Part, Vec<Candidate>> {
    let mut by_part: BTreeMap<Part, Vec<Candidate>> = BTreeMap::new();
    for link in &facts.links {
        let own = page::url::host_of(&link.url).ends_with("tides.example");
        let forbidden = own && !robots.verdict(AGENT, &link.url).allowed;
        let (part, candidate) = candidate(ids, &link.url, 1, forbidden.then_some("robots"));
        by_part.entry(part).or_default().push(candidate);
        say(&format!(
            "  found {}{}",
            shown(&link.url),
            if forbidden { " (robots: cut)" } else { "" }
        ));
    }
    by_part
}

fn candidate(ids: &IdMaker, url: &str, hops: i64, cut: Option<&'static str>) -> (Part, Candidate) {
    let host = page::url::host_of(url);
    let domain = SuffixList::bundled().grouping_domain(host);
    let part = Part(part_of(Some(domain), url, PARTS).into());
    let candidate = Candidate {
        id: QueueId(ids.next()),
        dochash: DocHash::of(url),
        docid: url.to_owned(),
        bin: BinId(bin_of(host)),
        bin_name: host.to_owned(),
        priority: 0.0,
        hops,
        redirects: 0,
        seed: hops == 0,
        parent: None,
        cut,
    };
    (part, candidate)
}

fn commit(
    db: &Db,
    store: &Objects,
    (lease, ids): (&Lease, &IdMaker),
    (chunk, document): (i64, QueueId),
    (url, body, facts): (&str, &[u8], &Facts),
    links: BTreeMap<Part, Vec<Candidate>>,
) -> anyhow::Result<i64> {
    let (chunk, part, now_ms) = (ChunkId(chunk), lease.part, clock::now_ms());
    let key = ChunkKey::new(part, chunk)?;
    let capture = Capture {
        target_uri: url,
        date_ms: now_ms,
        ip: None,
        status: 200,
        headers: &[("Content-Type", b"text/html")],
        body,
        truncated: false,
    };
    let info = warc::warcinfo(&RecordId::of([0; 16], key, 0), now_ms, &[("software", "driftline")]);
    let mut bodies = BodiesWriter::new(key, &info)?;
    let stored = bodies.push(&warc::response(&RecordId::of([0; 16], key, 1), &capture))?;
    let mut record = DocumentRecord::new(url, JOB.0, Change::Add);
    record.facts = Some(facts.clone());
    record.body = Body::Here { offset: stored.offset, len: stored.len };
    let object = (part, ObjectId(ids.next()));
    let written = collect::write(
        db,
        store,
        (object, Kind::Bodies, &ObjectPath::bodies(key)),
        bodies.finish(),
        now_ms,
    )?;
    // Links of other parts first, idempotently; the own part's commit last.
    for (other, candidates) in links {
        let place = Place { part: other, job: JOB };
        db.write(move |tx| queue::add(tx, place, RUN, &candidates, now_ms))?;
    }
    let summary = chunks::Summary {
        documents: 1,
        adds: 1,
        bytes: body.len() as i64,
        facts: Some(facts_file::encode(key, &[record])?),
        bodies_object: Some(object.1),
        ..chunks::Summary::default()
    };
    let (lease, place) = (lease.clone(), Place { part, job: JOB });
    let seq = db.write(move |tx| {
        let seq = leases::number_commit(tx, &lease)?;
        let done = Settled { id: document, generation: 1, to: Settlement::Done };
        queue::settle(tx, place, (chunk, RUN), &[done])?;
        written.publish(tx, now_ms)?;
        chunks::commit(tx, &lease, (chunk, seq), &summary, now_ms)?;
        Ok(seq)
    })?;
    Ok(seq)
}
