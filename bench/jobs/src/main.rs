//! What jobs with many documents cost: CPU of an idle continuous job, and how long it takes
//! to start, pause, resume, restart and abort a job.
//!
//! `jobs-bench DRIFTLINE [DOCUMENTS] [IDLE_SECONDS] [POSTGRES_URL]` makes a data directory
//! (or fills an empty database) with two jobs of so many processed documents each, one
//! continuous, one that scans once, through the store's own functions; then it runs
//! `driftline work` on them. A verb's time is from its call to the state it brings.

use anyhow::{Context, Result, bail, ensure};
use page::ids::{DocHash, bin_of, part_of};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use store::Db;
use store::chunkfile::document::DocumentRole;
use store::datadir::Layout;
use store::ids::{BinId, ChunkId, IdMaker, Part, QueueId, Run};
use store::tables::leases::{LeaseRequest, Lease};
use store::tables::nodes::{self, NewNode};
use store::tables::queue::{AddContext, Candidate, Place, RequisiteRules, SettledDocument, Settlement};
use store::tables::{chunks, job_states, jobs, leases, queue, settings};

/// Documents added and settled in one transaction.
const CHUNK: usize = 2_000;
/// How far ahead the documents of the continuous job are due.
const DAY_MS: i64 = 86_400_000;
/// A state that is not there by then will not be.
const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(2);
/// Clock ticks of /proc a second.
const TICKS: f64 = 100.0;
const RUN: Run = Run(1);
/// Files that are really there, so that a run has something to do while it is told things.
const FILES: usize = 2_000;

/// What is measured, and where.
struct Bench {
    program: PathBuf,
    folder: PathBuf,
    url: Option<String>,
    db: Db,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = PathBuf::from(arguments.next().context("the first argument is the program")?);
    let documents: usize = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let idle_s: u64 = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("jobs-bench-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("files"))?;
    for number in 0..FILES {
        std::fs::write(folder.join(format!("files/{number}.txt")), format!("file {number}"))?;
    }
    let outcome = measure((program, arguments.next()), &folder, (documents, idle_s));
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn measure(
    (program, url): (PathBuf, Option<String>),
    folder: &Path,
    (documents, idle_s): (usize, u64),
) -> Result<()> {
    let at = prepare(program, folder.to_owned(), url)?;
    for (job, to) in [("goes-on", Some(DAY_MS)), ("scans-once", None)] {
        let began = Instant::now();
        fill(&at.db, job, documents, to)?;
        println!("{job}: {documents} documents filled in in {:.0} s", began.elapsed().as_secs_f64());
    }
    let mut work = at.command(&["work"]).stdout(Stdio::piped()).spawn()?;
    // It says so when the data is its own; before, a verb would hold the data itself.
    let mut said = BufReader::new(work.stdout.take().context("it has an output")?);
    said.read_line(&mut String::new())?;
    let measured = measure_work(&at, &mut work, idle_s);
    Command::new("kill").args(["-INT", &work.id().to_string()]).status()?;
    work.wait()?;
    measured
}

fn measure_work(at: &Bench, work: &mut Child, idle_s: u64) -> Result<()> {
    at.verb(("goes-on", "resume"), "ACTIVE", RUN)?;
    // What follows a start is over by then.
    std::thread::sleep(Duration::from_secs(5));
    let before = cpu_s(work)?;
    std::thread::sleep(Duration::from_secs(idle_s));
    let spent = cpu_s(work)? - before;
    println!(
        "an idle continuous job: {spent:.2} CPU-s in {idle_s} s, {:.2} % of a core",
        spent / idle_s as f64 * 100.0
    );
    ensure!(work.try_wait()?.is_none(), "the process has ended");
    for (verb, state, run) in [
        ("pause", "PAUSED", 1),
        ("resume", "ACTIVE", 1),
        ("restart", "ACTIVE", 2),
        ("abort", "INACTIVE", 2),
        ("start", "ACTIVE", 3),
        ("abort", "INACTIVE", 3),
    ] {
        at.verb(("goes-on", verb), state, Run(run))?;
    }
    for (verb, state, run) in [
        ("start", "ACTIVE", 2),
        ("pause", "PAUSED", 2),
        ("resume", "ACTIVE", 2),
        ("pause", "PAUSED", 2),
        ("restart", "ACTIVE", 3),
        ("abort", "INACTIVE", 3),
    ] {
        at.verb(("scans-once", verb), state, Run(run))?;
    }
    Ok(())
}

fn prepare(program: PathBuf, folder: PathBuf, url: Option<String>) -> Result<Bench> {
    let mut command = Command::new(&program);
    place(&mut command.arg("init"), &folder, url.as_deref());
    ensure!(command.stdout(Stdio::null()).status()?.success(), "init has failed");
    let db = match &url {
        Some(url) => Db::open_postgres(url)?,
        None => Db::open_sqlite(&Layout::new(folder.join("data")).database())?,
    };
    let at = Bench { program, folder, url, db };
    let root = at.folder.join("files").display().to_string();
    let definitions = format!(
        "[connections.repository.disk]\nconnector = \"files\"\n\
         [jobs.goes-on]\nconnection = \"disk\"\nspec.roots = [{root:?}]\n\
         type = \"continuous\"\nrecrawl_ms = {DAY_MS}\nfetches_per_day = 1000\n\
         [jobs.scans-once]\nconnection = \"disk\"\nspec.roots = [{root:?}]\n"
    );
    let file = at.folder.join("jobs.toml");
    std::fs::write(&file, definitions)?;
    let file = file.display().to_string();
    let done = at.command(&["import", &file]).stdout(Stdio::null()).status()?;
    ensure!(done.success(), "the import has failed");
    Ok(at)
}

fn place(command: &mut &mut Command, folder: &Path, url: Option<&str>) {
    match url {
        None => command.arg("--data").arg(folder.join("data")),
        Some(url) => {
            let objects = format!("file://{}", folder.join("data").display());
            command.args(["--database", url, "--objects", &objects])
        }
    };
}

impl Bench {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        place(&mut command.args(arguments), &self.folder, self.url.as_deref());
        command
    }

    /// Tells a job something, and waits until it is where that leads.
    fn verb(&self, (job, verb): (&str, &str), state: &str, run: Run) -> Result<()> {
        let began = Instant::now();
        let told = self.command(&["job", verb, job]).output()?;
        ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        let called_ms = began.elapsed().as_secs_f64() * 1_000.0;
        let name = job.to_owned();
        let id = self.db.read(move |tx| jobs::find(tx, &name))?.context("the job is gone")?.id;
        loop {
            let now = self.db.read(move |tx| job_states::state(tx, id))?;
            if (now.name().as_str(), now.run) == (state, run) {
                break;
            }
            if began.elapsed() > PATIENCE {
                bail!("{job} {verb}: it is {} in run {}", now.name(), now.run);
            }
            std::thread::sleep(GLANCE);
        }
        let took_ms = began.elapsed().as_secs_f64() * 1_000.0;
        println!("{job:>10} {verb:<8} {took_ms:>6.0} ms (the command: {called_ms:.0} ms)");
        Ok(())
    }
}

/// CPU that a process has spent.
fn cpu_s(process: &Child) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id()))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok());
    let (user, system) = (ticks(11).context("no user time")?, ticks(12).context("no system time")?);
    Ok((user + system) / TICKS)
}

/// Gives a job a run, which is paused if it goes on, and its documents.
fn fill(db: &Db, name: &str, documents: usize, due_ms: Option<i64>) -> Result<()> {
    let (now_ms, name) = (store::clock::now_ms(), name.to_owned());
    let node = NewNode { name: "bench".into(), roles: "crawl".into(), address: None, version: "0".into() };
    let (job, node, parts) = db.write(move |tx| {
        let job = jobs::find(tx, &name)?.expect("it was imported").id;
        let node = nodes::register(tx, &node, now_ms)?;
        job_states::start_run(tx, job, node, now_ms)?;
        match due_ms {
            None => job_states::end_run(tx, job, RUN, now_ms)?,
            Some(_) => {
                let before = job_states::state(tx, job)?;
                let now = job_states::JobState { paused: true, ..before.clone() };
                job_states::save(tx, job, &before, &now, now_ms)?;
            }
        }
        Ok((job, node, settings::parts(tx)?))
    })?;
    let ids = IdMaker::new(node)?;
    for part in 0..parts {
        let asking =
            LeaseRequest { node, node_name: "bench".into(), now_ms, lease_ms: 60_000, skew_ms: 0 };
        let place = Place { part: Part(part.into()), job };
        let lease = db.write(move |tx| leases::take(tx, place.part, "crawl", &asking))?;
        let lease = lease.context("the lease is free")?;
        let mine: Vec<String> = (0..documents)
            .map(|number| format!("/srv/{}/a-typical-file-name-{number}.txt", number % 997))
            .filter(|docid| u32::from(part_of(None, docid, parts)) == part)
            .collect();
        for (turn, docids) in mine.chunks(CHUNK).enumerate() {
            let due_ms = due_ms.map(|after_ms| now_ms + after_ms + turn as i64);
            fill_chunk(db, (&lease, place), docids, (&ids, due_ms))?;
        }
        let held = lease.clone();
        db.write(move |tx| leases::release(tx, &held, true))?;
    }
    Ok(())
}

fn fill_chunk(
    db: &Db,
    (lease, place): (&Lease, Place),
    docids: &[String],
    (ids, due_ms): (&IdMaker, Option<i64>),
) -> Result<()> {
    let candidates: Vec<Candidate> = docids.iter().map(|it| candidate(ids, it)).collect();
    let keys: Vec<QueueId> = candidates.iter().map(|it| it.id).collect();
    let to = match due_ms {
        Some(check_ms) => Settlement::Again { check_ms, action: queue::Action::Fetch },
        None => Settlement::Done,
    };
    let settled: Vec<SettledDocument> =
        keys.iter().map(|id| SettledDocument { id: *id, generation: 1, to: to.clone() }).collect();
    let (chunk, lease) = (ChunkId(ids.next()), lease.clone());
    let adding = AddContext { place, run: RUN, now_ms: 0, room: None, requisites: RequisiteRules::default() };
    db.write(move |tx| {
        let seq = leases::number_commit(tx, &lease)?;
        queue::add(tx, adding, &candidates)?;
        chunks::open(tx, &lease, chunk, place.job, RUN, 0)?;
        let peeked = queue::load(tx, place, &keys)?;
        queue::claim(tx, place, chunk, peeked)?;
        queue::settle(tx, place, chunk, RUN, &settled)?;
        let summary = chunks::ChunkSummary { documents: settled.len() as i64, ..Default::default() };
        chunks::commit(tx, &lease, chunk, seq, &summary, 0)
    })?;
    Ok(())
}

fn candidate(ids: &IdMaker, docid: &str) -> Candidate {
    Candidate {
        id: QueueId(ids.next()),
        dochash: DocHash::of(docid),
        docid: docid.to_owned(),
        bin: BinId(bin_of("")),
        bin_name: String::new(),
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
