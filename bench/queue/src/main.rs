//! What the queue costs: CPU per committed document, from an empty queue to a large
//! one, at full durability.
//!
//! `queue-bench [DOCUMENTS] [NEW_LINKS] [POSTGRES_URL]` queues and commits chunks of
//! 100 documents; each document names NEW_LINKS unknown ones and as many known ones.
//! It prints CPU-ms per document for each tenth, and the ratio of the last to the
//! first. The database's own process is not counted for PostgreSQL.

use anyhow::Result;
use cpu_time::ProcessTime;
use page::ids::{DocHash, bin_of};
use store::Db;
use store::ids::{BinId, ChunkId, IdMaker, JobId, NodeId, Part, QueueId, Run};
use store::tables::leases::{Asking, Lease};
use store::tables::queue::{Candidate, Place, Settled, Settlement};
use store::tables::{chunks, leases, queue};

const CHUNK: u32 = 100;
const HOSTS: u64 = 50;
const PLACE: Place = Place { part: Part(0), job: JobId(1) };
const ADDING: queue::Adding = queue::Adding { place: PLACE, run: RUN, now_ms: 0, room: None, by_hops: false };
const RUN: Run = Run(1);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let documents: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let new_links: u64 = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let directory = std::env::temp_dir().join(format!("queue-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let db = match arguments.next() {
        Some(url) => Db::open_postgres(&url)?,
        None => Db::open_sqlite(&directory.join("bench.sqlite"))?,
    };
    store::migrate::migrate(&db, 0)?;
    let outcome = crawl(&db, documents, new_links);
    drop(db);
    std::fs::remove_dir_all(&directory)?;
    outcome
}

fn crawl(db: &Db, documents: u64, new_links: u64) -> Result<()> {
    let asking =
        Asking { node: NodeId(1), node_name: "bench".into(), now_ms: 0, lease_ms: 1, skew_ms: 0 };
    let lease = db.write(move |tx| leases::take(tx, PLACE.part, "crawl", &asking))?;
    let lease = lease.expect("the lease is free");
    let ids = IdMaker::new(NodeId(1))?;
    let mut named = 0;
    let seeds: Vec<Candidate> = (0..u64::from(CHUNK)).map(|_| fresh(&ids, &mut named)).collect();
    db.write(move |tx| Ok(queue::add(tx, ADDING, &seeds)?))?;

    let tenth = documents / 10;
    let (mut done, mut times) = (0, Vec::new());
    let mut start = ProcessTime::now();
    let mut host = 0;
    while done < documents {
        let claimed = claim(db, &lease, ChunkId(ids.next()), &mut host)?;
        let (chunk, entries) = claimed;
        let mut links = Vec::with_capacity(entries.len() * new_links as usize * 2);
        for _ in 0..entries.len() as u64 * new_links {
            links.push(fresh(&ids, &mut named));
            links.push(known(&ids, named));
        }
        let settled: Vec<Settled> = entries
            .into_iter()
            .map(|id| Settled { id, generation: 1, to: Settlement::Done })
            .collect();
        done += settled.len() as u64;
        commit(db, &lease, chunk, settled, links)?;
        if done / tenth > times.len() as u64 {
            let ms = start.elapsed().as_secs_f64() * 1_000.0 / tenth as f64;
            println!("{done:>9} documents, {named:>9} known: {ms:.4} CPU-ms a document");
            times.push(ms);
            start = ProcessTime::now();
        }
    }
    let ratio = times[times.len() - 1] / times[0];
    println!("last tenth / first tenth: {ratio:.2}");
    Ok(())
}

fn claim(
    db: &Db,
    lease: &Lease,
    chunk: ChunkId,
    host: &mut u64,
) -> Result<(ChunkId, Vec<QueueId>)> {
    // Two documents of each host, as a crawl that is fair to its hosts would take.
    let first = *host;
    *host += HOSTS;
    let found = db.read(move |tx| {
        let mut found = Vec::new();
        for host in first..first + HOSTS {
            let bin = BinId(bin_of(&host_name(host)));
            found.extend(queue::peek_ready(tx, PLACE, bin, 2)?);
        }
        Ok(found)
    })?;
    let lease = lease.clone();
    let claimed = db.write(move |tx| {
        leases::fence(tx, &lease)?;
        chunks::open(tx, &lease, (chunk, PLACE.job, RUN), 0)?;
        queue::claim(tx, PLACE, chunk, found.clone())
    })?;
    Ok((chunk, claimed.into_iter().map(|entry| entry.id).collect()))
}

fn commit(
    db: &Db,
    lease: &Lease,
    chunk: ChunkId,
    settled: Vec<Settled>,
    links: Vec<Candidate>,
) -> Result<()> {
    let lease = lease.clone();
    let summary =
        chunks::Summary { documents: settled.len() as i64, ..chunks::Summary::default() };
    db.write(move |tx| {
        let seq = leases::number_commit(tx, &lease)?;
        queue::add(tx, ADDING, &links)?;
        queue::settle(tx, PLACE, (chunk, RUN), &settled)?;
        chunks::commit(tx, &lease, (chunk, seq), &summary, 0)
    })?;
    Ok(())
}

fn host_name(number: u64) -> String {
    format!("host{}.example", number % HOSTS)
}

fn candidate(ids: &IdMaker, number: u64) -> Candidate {
    let host = host_name(number);
    let docid = format!("https://{host}/section-{}/a-typical-page-name-{number}.html", number % 97);
    Candidate {
        id: QueueId(ids.next()),
        dochash: DocHash::of(&docid),
        docid,
        bin: BinId(bin_of(&host)),
        bin_name: host,
        priority: 0.0,
        hops: 1,
        redirects: 0,
        seed: false,
        parent: None,
        cut: None,
    }
}

fn fresh(ids: &IdMaker, named: &mut u64) -> Candidate {
    *named += 1;
    candidate(ids, *named)
}

/// Some document that was named before: which, is as good as random.
fn known(ids: &IdMaker, named: u64) -> Candidate {
    candidate(ids, named.wrapping_mul(0x9e37_79b9_7f4a_7c15) % named + 1)
}
