//! What the queue costs: CPU per committed document, from an empty queue to a large
//! one, at full durability.
//!
//! `queue-bench [DOCUMENTS] [NEW_LINKS] [KNOWN_LINKS] [POSTGRES_URL]` queues and commits
//! chunks of 100 documents. Each document names NEW_LINKS unknown ones: of four, two in
//! its own directory, one elsewhere on its host, one on another host; and KNOWN_LINKS that
//! were named before, which a crawl's filter keeps away from the queue for the most part.
//! It prints CPU-ms per document for each tenth, and the ratio of the last to the
//! first, as it is and by a yardstick that tells how fast the machine is meanwhile. The
//! database's own process is not counted for PostgreSQL.

use anyhow::Result;
use cpu_time::ProcessTime;
use page::ids::{DocHash, bin_of};
use store::Db;
use store::chunkfile::document::DocumentRole;
use store::ids::{BinId, ChunkId, IdMaker, JobId, NodeId, Part, QueueId, Run};
use store::tables::leases::{LeaseRequest, Lease};
use store::tables::queue::{Candidate, Entry, Place, SettledDocument, Settlement};
use store::tables::{chunks, leases, queue};

const CHUNK: u32 = 100;
const HOSTS: u64 = 50;
/// Documents between two looks at how fast the machine is.
const YARDSTICK_EVERY: u64 = 1_000;
/// Directories of a host.
const SECTIONS: u64 = 97;
const PLACE: Place = Place { part: Part(0), job: JobId(1) };
const ADDING: queue::AddContext = queue::AddContext {
    place: PLACE,
    run: RUN,
    now_ms: 0,
    room: None,
    requisites: queue::RequisiteRules { room: None, unlinks: false },
};
const RUN: Run = Run(1);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let documents: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let new_links: u64 = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let known_links: u64 = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let directory = std::env::temp_dir().join(format!("queue-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let db = match arguments.next() {
        Some(url) => Db::open_postgres(&url)?,
        None => Db::open_sqlite(&directory.join("bench.sqlite"))?,
    };
    store::migrate::migrate(&db, 0)?;
    let outcome = crawl(&db, documents, (new_links, known_links));
    drop(db);
    std::fs::remove_dir_all(&directory)?;
    outcome
}

fn crawl(db: &Db, documents: u64, (new_links, known_links): (u64, u64)) -> Result<()> {
    let asking =
        LeaseRequest { node: NodeId(1), node_name: "bench".into(), now_ms: 0, lease_ms: 1, skew_ms: 0 };
    let lease = db.write(move |tx| leases::take(tx, PLACE.part, "crawl", &asking))?;
    let lease = lease.expect("the lease is free");
    let ids = IdMaker::new(NodeId(1))?;
    // What was named, by its number: where it is.
    let mut named: Vec<Spot> = Vec::new();
    let seeds: Vec<Candidate> = (0..u64::from(CHUNK))
        .map(|number| fresh(&ids, &mut named, Spot::new(number, number)))
        .collect();
    db.write(move |tx| Ok(queue::add(tx, ADDING, &seeds)?))?;

    let tenth = documents / 10;
    let (mut done, mut times): (u64, Vec<(f64, f64)>) = (0, Vec::new());
    let mut yardstick = Yardstick::new();
    let mut start = ProcessTime::now();
    let mut host = 0;
    while done < documents {
        let claimed = claim(db, &lease, ChunkId(ids.next()), &mut host)?;
        let (chunk, entries) = claimed;
        let mut links = Vec::with_capacity(entries.len() * (new_links + known_links) as usize);
        for entry in &entries {
            let spot = named[number_of(&entry.docid)];
            for link in 0..new_links {
                let number = named.len() as u64;
                let to = match link % 4 {
                    0 | 1 => spot,
                    2 => Spot { section: number % SECTIONS, ..spot },
                    _ => Spot::new(number, number / HOSTS),
                };
                links.push(fresh(&ids, &mut named, to));
            }
            for _ in 0..known_links {
                links.push(known(&ids, &named));
            }
        }
        let named = named.len();
        let entries: Vec<QueueId> = entries.into_iter().map(|entry| entry.id).collect();
        let settled: Vec<SettledDocument> = entries
            .into_iter()
            .map(|id| SettledDocument { id, generation: 1, to: Settlement::Done })
            .collect();
        done += settled.len() as u64;
        commit(db, &lease, chunk, settled, links)?;
        if done % YARDSTICK_EVERY == 0 {
            yardstick.measure();
        }
        if done / tenth > times.len() as u64 {
            let measured_ms = yardstick.take_ms();
            let spent_ms = start.elapsed().as_secs_f64() * 1_000.0 - measured_ms.total;
            let ms = spent_ms / tenth as f64;
            println!(
                "{done:>9} documents, {named:>9} known: {ms:.4} CPU-ms a document, yardstick {:.3} ms",
                measured_ms.mean
            );
            times.push((ms, measured_ms.mean));
            start = ProcessTime::now();
        }
    }
    let [first, last] = [times[0], times[times.len() - 1]];
    println!("last tenth / first tenth: {:.2}", last.0 / first.0);
    let (first, last) = (first.0 / first.1, last.0 / last.1);
    println!("the same by the yardstick, for a machine that others slow down: {:.2}", last / first);
    Ok(())
}

/// A piece of work that is always the same, to tell how fast the machine is just now: others
/// on it slow down both, mostly alike.
struct Yardstick {
    words: Vec<u64>,
    total: f64,
    count: f64,
}

struct Measured {
    total: f64,
    mean: f64,
}

impl Yardstick {
    fn new() -> Yardstick {
        Yardstick { words: (0..1 << 22).collect(), total: 0.0, count: 0.0 }
    }

    fn measure(&mut self) {
        let start = ProcessTime::now();
        let mut at = 1u64;
        for _ in 0..20_000 {
            let index = (at >> 20) as usize % self.words.len();
            at = (at ^ self.words[index]).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            self.words[index] = at;
        }
        let text = [7; 1 << 18];
        std::hint::black_box((at, page::ids::hash128(&text)));
        self.total += start.elapsed().as_secs_f64() * 1_000.0;
        self.count += 1.0;
    }

    fn take_ms(&mut self) -> Measured {
        let measured = Measured { total: self.total, mean: self.total / self.count.max(1.0) };
        (self.total, self.count) = (0.0, 0.0);
        measured
    }
}

fn claim(
    db: &Db,
    lease: &Lease,
    chunk: ChunkId,
    host: &mut u64,
) -> Result<(ChunkId, Vec<Entry>)> {
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
        chunks::open(tx, &lease, chunk, PLACE.job, RUN, 0)?;
        queue::claim(tx, PLACE, chunk, found.clone())
    })?;
    Ok((chunk, claimed))
}

fn commit(
    db: &Db,
    lease: &Lease,
    chunk: ChunkId,
    settled: Vec<SettledDocument>,
    links: Vec<Candidate>,
) -> Result<()> {
    let lease = lease.clone();
    let summary =
        chunks::ChunkSummary { documents: settled.len() as i64, ..chunks::ChunkSummary::default() };
    db.write(move |tx| {
        let seq = leases::number_commit(tx, &lease)?;
        queue::add(tx, ADDING, &links)?;
        queue::settle(tx, PLACE, chunk, RUN, &settled)?;
        chunks::commit(tx, &lease, chunk, seq, &summary, 0)
    })?;
    Ok(())
}

fn host_name(number: u64) -> String {
    format!("host{}.example", number % HOSTS)
}

/// Where a document is.
#[derive(Clone, Copy)]
struct Spot {
    host: u64,
    section: u64,
}

impl Spot {
    fn new(host: u64, section: u64) -> Spot {
        Spot { host: host % HOSTS, section: section % SECTIONS }
    }
}

fn number_of(docid: &str) -> usize {
    let name = docid.rsplit('-').next().and_then(|name| name.strip_suffix(".html"));
    name.and_then(|number| number.parse().ok()).expect("it was made here")
}

fn candidate(ids: &IdMaker, number: usize, spot: Spot) -> Candidate {
    let (host, section) = (host_name(spot.host), spot.section);
    let docid = format!("https://{host}/section-{section}/a-typical-page-name-{number}.html");
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
        events: Vec::new(),
        role: DocumentRole::Page,
        levels: 0,
    }
}

fn fresh(ids: &IdMaker, named: &mut Vec<Spot>, spot: Spot) -> Candidate {
    named.push(spot);
    candidate(ids, named.len() - 1, spot)
}

/// Some document that was named before: which, is as good as random.
fn known(ids: &IdMaker, named: &[Spot]) -> Candidate {
    let number = ids.next().cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number >> 16) as usize % named.len();
    candidate(ids, number, named[number])
}
