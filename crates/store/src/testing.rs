//! What tests share: a fresh database of each kind for every test, and something
//! to fill it with.
//!
//! PostgreSQL comes from `DRIFTLINE_TEST_POSTGRES` (a connection string), which
//! `make test` sets. Each test gets a database of its own, cloned from a template
//! that is made once; so tests neither wait for nor see each other.

#[cfg(test)]
pub(crate) mod steps;

use crate::catalog::Connector;
use crate::chunkfile::bodies::BodiesWriter;
use crate::chunkfile::document::{Body, Change, DocumentRecord, DocumentRole};
use crate::chunkfile::facts;
use crate::chunkfile::warc::{self, Capture, RecordId};
use crate::ids::{BinId, ChunkId, CommitNumber, JobId, NodeId, ObjectId, Part, QueueId, Run};
use crate::objects::{ChunkKey, ObjectPath, Objects};
use crate::sealing::Keys;
use crate::tables::connections::ConnectionKind;
use crate::tables::leases::{self, LeaseRequest};
use crate::tables::queue::{self, Candidate, Place, SettledDocument, Settlement};
use crate::tables::{chunks, objects, registrations, settings};
use crate::{Db, Result, Tx, checksums, clock, migrate, owned};
use page::ids::DocHash;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs a test on SQLite and on PostgreSQL, each fresh and migrated.
pub fn both_databases(test: impl Fn(&Db) -> Result<()>) {
    on_sqlite(&test);
    on_postgres(&test);
}

/// The web connector, as far as tests of tables need it: a fresh database has it
/// registered, as one that the program makes has.
pub const WEB: Connector = Connector {
    kind: ConnectionKind::Repository,
    name: "web",
    about: "pages of the web",
    settings: &[],
    not_destination: &[],
    spec: &[],
    link_types: &["link", "redirect"],
    takes_bodies: false,
    takes_requisites: false,
    check_config: |text| Ok(text.to_owned()),
    check_spec: |text| Ok(text.to_owned()),
    check_job: None,
    install: Some(|tx| owned::WEB.install(tx)),
    deinstall: Some(|tx| owned::WEB.deinstall(tx)),
};

/// Runs a test on a fresh SQLite database.
pub fn on_sqlite(test: impl Fn(&Db) -> Result<()>) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let db = Db::open_sqlite(&directory.path().join("test.sqlite")).expect("SQLite opens");
    let db = db.with_keys(Keys::of_tests());
    migrate::migrate(&db, clock::now_ms()).expect("the schema applies on SQLite");
    db.write(|tx| registrations::register(tx, &WEB, 0)).expect("a connector can be registered");
    if let Err(error) = test(&db).and_then(|()| rows_are_whole(&db)) {
        panic!("on SQLite: {error}");
    }
}

thread_local! {
    static DAMAGED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Says that this test changes rows behind the back of their checksums.
pub fn damages_rows() {
    DAMAGED.set(true);
}

/// Gives all rows their checksums, after a test has changed some as if the program had.
pub fn sum_rows(tx: &mut Tx<'_>) -> Result<()> {
    checksums::fill(tx, checksums::coverage::TABLES)
}

/// Whoever writes a row that carries a checksum writes that too: every test looks, but for
/// those that say [`damages_rows`].
fn rows_are_whole(db: &Db) -> Result<()> {
    if DAMAGED.replace(false) {
        return Ok(());
    }
    let mut next = Some(checksums::ScanPosition::default());
    while let Some(place) = next {
        let found = db.read(move |tx| checksums::damaged_after(tx, place.clone(), 1_000))?;
        if let Some(key) = found.keys.first() {
            return Err(found.table.damaged(key));
        }
        next = found.next;
    }
    Ok(())
}

/// Runs a test on a fresh PostgreSQL database, or says that there is none.
pub fn on_postgres(test: impl Fn(&Db) -> Result<()>) {
    let Some(server) = environment("DRIFTLINE_TEST_POSTGRES") else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let fresh = FreshDatabase::make(&server);
    let db = Db::open_postgres(&fresh.url).expect("the fresh database opens");
    let db = db.with_keys(Keys::of_tests());
    db.write(|tx| registrations::register(tx, &WEB, 0)).expect("a connector can be registered");
    let outcome = test(&db).and_then(|()| rows_are_whole(&db));
    drop(db);
    drop(fresh);
    if let Err(error) = outcome {
        panic!("on PostgreSQL: {error}");
    }
}

/// A PostgreSQL database that is dropped with this value.
pub struct FreshDatabase {
    /// Its connection string.
    pub url: String,
    server: String,
    name: String,
}

static MADE: AtomicU64 = AtomicU64::new(0);

impl FreshDatabase {
    /// A migrated database on the test server, or `None` when there is no server.
    pub fn from_environment() -> Option<FreshDatabase> {
        Some(FreshDatabase::make(&environment("DRIFTLINE_TEST_POSTGRES")?))
    }

    fn make(server: &str) -> FreshDatabase {
        let template = template(server);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("driftline_{}_{number}", std::process::id());
        let mut client = admin(server);
        client
            .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
            .expect("an old database of that name can be dropped");
        client
            .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}"))
            .expect("a database can be made from the template");
        FreshDatabase { url: format!("{server} dbname={name}"), server: server.into(), name }
    }
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        let _ = admin(&self.server)
            .batch_execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

#[allow(clippy::disallowed_methods, reason = "tests make databases, which the pool cannot")]
fn admin(server: &str) -> postgres::Client {
    postgres::Client::connect(server, postgres::NoTls).expect("the test PostgreSQL answers")
}

/// The name of the migrated template; the first test of a run makes it, under a
/// lock, because tests are processes of their own under some runners.
fn template(server: &str) -> String {
    let name = format!("driftline_template_{}", migrate::fingerprint());
    let mut client = admin(server);
    client.batch_execute("SELECT pg_advisory_lock(3501)").expect("the lock is granted");
    let there = client
        .query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name])
        .expect("databases can be listed")
        .is_some();
    if !there {
        let making = format!("{name}_making");
        client
            .batch_execute(&format!("DROP DATABASE IF EXISTS {making} WITH (FORCE)"))
            .expect("a half-made template can be dropped");
        client.batch_execute(&format!("CREATE DATABASE {making}")).expect("a database can be made");
        let db = Db::open_postgres(&format!("{server} dbname={making}")).expect("it opens");
        migrate::migrate(&db, 0).expect("the schema applies on PostgreSQL");
        drop(db);
        client
            .batch_execute(&format!("ALTER DATABASE {making} RENAME TO {name}"))
            .expect("the finished template gets its name");
    }
    client.batch_execute("SELECT pg_advisory_unlock(3501)").expect("the lock is given back");
    name
}

/// The job that [`commit_sample`] works for.
pub const SAMPLE_JOB: JobId = JobId(1);

/// Queues three documents in a part and commits two of them as a chunk whose facts
/// are in its row and whose bodies are an object, as a crawl does. Each `round`
/// makes another chunk. Returns its number.
pub fn commit_sample(db: &Db, store: &Objects, part: Part, round: i64) -> Result<CommitNumber> {
    db.write(|tx| settings::freeze(tx, 4))?;
    let place = Place { part, job: SAMPLE_JOB };
    let first = (part.0 + 1) * 1_000_000 + round * 1_000;
    let candidates: Vec<Candidate> = (0..3).map(|n| sample_candidate(first + n)).collect();
    let ids: Vec<QueueId> = candidates[..2].iter().map(|it| it.id).collect();
    let (chunk, object) = (ChunkId(first + 10), ObjectId(first + 11));
    let asking = LeaseRequest {
        node: NodeId(round + 1),
        node_name: "sample".into(),
        now_ms: 0,
        lease_ms: 1_000,
        skew_ms: 0,
    };
    let lease = db
        .write(move |tx| leases::take(tx, part, "crawl", &asking))?
        .expect("a sample is made by one node");

    let key = ChunkKey::new(part, chunk)?;
    let bodies = ObjectPath::bodies(key);
    let docids: Vec<&str> = candidates[..2].iter().map(|it| it.docid.as_str()).collect();
    let (records, content) = sample_files(key, &docids)?;
    let (path, held) = (bodies.as_str().to_owned(), lease.clone());
    db.write(move |tx| {
        leases::fence(tx, &held)?;
        let adding = queue::AddContext {
            place,
            run: Run(1),
            now_ms: 0,
            room: None,
            requisites: Default::default(),
        };
        queue::add(tx, adding, &candidates)?;
        chunks::open(tx, &held, chunk, SAMPLE_JOB, Run(1), 0)?;
        let peeked = queue::load(tx, place, &ids)?;
        queue::claim(tx, place, chunk, peeked)?;
        objects::stage(tx, part, object, objects::ObjectKind::Bodies, &path, 0)
    })?;
    store.put(&bodies, content.clone())?;
    let settled: Vec<SettledDocument> = (first..first + 2)
        .map(|id| SettledDocument { id: QueueId(id), generation: 1, to: Settlement::Done })
        .collect();
    let summary = chunks::ChunkSummary {
        documents: 2,
        adds: 2,
        facts: Some(facts::encode(key, &records)?),
        bodies_object: Some(object),
        ..chunks::ChunkSummary::default()
    };
    db.write(move |tx| {
        let seq = leases::number_commit(tx, &lease)?;
        queue::settle(tx, place, chunk, Run(1), &settled)?;
        let hash = *blake3::hash(&content).as_bytes();
        objects::publish(tx, part, object, content.len() as u64, &hash, 0)?;
        chunks::commit(tx, &lease, chunk, seq, &summary, 0)?;
        Ok(seq)
    })
}

/// The records and the sealed bodies of a chunk with these documents.
pub(crate) fn sample_files(
    key: ChunkKey,
    docids: &[&str],
) -> Result<(Vec<DocumentRecord>, Vec<u8>)> {
    let id = |ordinal| RecordId::of([1; 16], key, ordinal);
    let info = warc::warcinfo(&id(0), 0, &[("software", "driftline")]);
    let mut bodies = BodiesWriter::new(key, &info)?;
    let mut records = Vec::new();
    for docid in docids {
        let body = format!("<p>{docid}</p>").into_bytes();
        let capture = Capture {
            target_uri: docid,
            date_ms: 0,
            ip: None,
            status: 200,
            headers: &[("Content-Type", b"text/html")],
            body: &body,
            truncated: false,
        };
        let place = bodies.push(&warc::response(&id(bodies.records()), &capture))?;
        let mut record = DocumentRecord::new(*docid, SAMPLE_JOB.0, Change::Add);
        record.body = Body::Here { offset: place.offset, len: place.len };
        records.push(record);
    }
    Ok((records, bodies.finish()))
}

fn sample_candidate(id: i64) -> Candidate {
    Candidate { seed: true, ..candidate(id, format!("http://example.com/{id}"), "example.com") }
}

/// A document of a host to be queued, which nobody has linked to.
pub fn candidate(id: i64, docid: impl Into<String>, host: &str) -> Candidate {
    let docid = docid.into();
    Candidate {
        id: QueueId(id),
        dochash: DocHash::of(&docid),
        docid,
        bin: BinId(page::ids::bin_of(host)),
        bin_name: host.to_owned(),
        priority: 0.0,
        hops: 0,
        redirects: 0,
        seed: false,
        parent: None,
        cut: None,
        events: Vec::new(),
        role: DocumentRole::Page,
        levels: 0,
    }
}

/// Runs a property on many generated cases, each in a part of its own, which is what
/// keeps them apart in one database.
#[cfg(test)]
pub(crate) fn each_case<T: std::fmt::Debug>(
    cases: u32,
    strategy: &impl proptest::strategy::Strategy<Value = T>,
    check: impl Fn(Part, &T) -> Result<()>,
) {
    use proptest::test_runner::{Config, TestCaseError, TestRunner};
    let part = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let outcome = runner.run(strategy, |case| {
        part.set(part.get() + 1);
        check(Part(part.get()), &case).map_err(|error| TestCaseError::fail(error.to_string()))
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Says that a test, or half of it, could not run. The summary of `make test`
/// repeats it, through the file that `DRIFTLINE_TEST_SKIPS` names.
#[allow(clippy::print_stdout, reason = "the runner shows what tests print")]
pub fn skipped(what: &str) {
    println!("SKIPPED: {what}");
    let Some(path) = environment("DRIFTLINE_TEST_SKIPS") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "SKIPPED: {what}");
    }
}

/// A variable of the test environment, if it is set and not empty.
#[allow(clippy::disallowed_methods, reason = "the test environment has no config file")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
