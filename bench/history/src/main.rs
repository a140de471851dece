//! How long a page of each report takes, as who asks for it waits: from the call of the
//! program to its end.
//!
//! `history-bench DRIFTLINE [ROWS] [POSTGRES_URL]` makes a data directory (or fills an empty
//! database) with so many activities of one connection, through the store's own functions:
//! seven of ten spread over thirty days, the rest in the last hour; and with a quarter as
//! many documents. It ends with 1 when the median of a page is above the limit at the real
//! size.

use anyhow::{Context, Result, ensure};
use page::ids::{DocHash, bin_of, part_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use store::chunkfile::document::DocumentRole;
use store::datadir::Layout;
use store::ids::{BinId, ConnectionId, IdMaker, JobId, Part, QueueId, Run};
use store::tables::history::{self, Activity};
use store::tables::nodes::{self, NewNode};
use store::tables::queue::{self, AddContext, Candidate, Place, RequisiteRules};
use store::tables::{jobs, settings};
use store::{Db, clock};

/// Activities or documents written in one transaction.
const CHUNK: usize = 2_000;
/// Hosts that they are about.
const HOSTS: usize = 300;
/// How often each question is asked.
const TIMES: usize = 7;
/// A page is there by then.
const LIMIT_MS: f64 = 200.0;
/// At which size that must hold.
const ROWS: usize = 1_000_000;
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;

/// What is asked.
const QUESTIONS: [&[&str]; 17] = [
    &["history"],
    &["history", "--limit", "1000"],
    &["history", "--since", "1h"],
    &["history", "--order", "asc"],
    &["history", "--match", "h299\\.example/1"],
    &["history", "--match", "never"],
    &["history", "--sort", "bytes"],
    &["history", "--sort", "identifier"],
    &["activity"],
    &["activity", "--class", "^https?://([^/]+)"],
    &["bandwidth", "--class", "^https?://([^/]+)", "--window", "1min"],
    &["results"],
    &["results", "--activity", "fetch", "--result-class", "^([0-9])"],
    &["results", "--class", "^https?://([^/]+)"],
    &["documents"],
    &["documents", "--status", "waiting-forever"],
    &["queue"],
];

struct Bench {
    program: PathBuf,
    folder: PathBuf,
    url: Option<String>,
    db: Db,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = PathBuf::from(arguments.next().context("the first argument is the program")?);
    let rows: usize = arguments.next().map_or(Ok(ROWS), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("history-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = measure(program, (&folder, arguments.next()), rows);
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn measure(program: PathBuf, (folder, url): (&Path, Option<String>), rows: usize) -> Result<()> {
    let at = prepare(program, folder.to_owned(), url)?;
    let began = Instant::now();
    fill(&at.db, rows)?;
    println!("{rows} activities written in {:.0} s", began.elapsed().as_secs_f64());
    queued(&at.db, rows / 4)?;
    let mut too_slow = Vec::new();
    println!("{:<72} {:>9} {:>9}", "report", "median ms", "worst ms");
    for question in QUESTIONS {
        let mut took: Vec<f64> = Vec::new();
        for _ in 0..TIMES {
            let began = Instant::now();
            let done = at.command(question).stdout(Stdio::null()).status()?;
            ensure!(done.success(), "{question:?} has failed");
            took.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        took.sort_by(f64::total_cmp);
        let (median, worst) = (took[TIMES / 2], took[TIMES - 1]);
        println!("{:<72} {median:>9.0} {worst:>9.0}", question.join(" "));
        if median > LIMIT_MS {
            too_slow.push(question.join(" "));
        }
    }
    ensure!(rows < ROWS || too_slow.is_empty(), "above {LIMIT_MS} ms: {}", too_slow.join("; "));
    Ok(())
}

impl Bench {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("report").args(words).arg("--json");
        place(&mut command, &self.folder, self.url.as_deref());
        command
    }
}

fn place(command: &mut Command, folder: &Path, url: Option<&str>) {
    match url {
        Some(url) => {
            command.arg("--database").arg(url);
            command.arg("--objects").arg(format!("file://{}", folder.join("objects").display()));
        }
        None => {
            command.arg("--data").arg(folder.join("data"));
        }
    }
}

fn prepare(program: PathBuf, folder: PathBuf, url: Option<String>) -> Result<Bench> {
    std::fs::create_dir_all(folder.join("objects"))?;
    let file = folder.join("jobs.toml");
    std::fs::write(
        &file,
        "[connections.repository.web]\nconnector = \"web\"\n\
         [jobs.site]\nconnection = \"web\"\nspec.seeds = [\"http://h0.example/\"]\n",
    )?;
    for words in [vec!["init"], vec!["import", file.to_str().context("a path of ours")?]] {
        let mut command = Command::new(&program);
        command.args(&words);
        place(&mut command, &folder, url.as_deref());
        ensure!(command.stdout(Stdio::null()).status()?.success(), "{words:?} has failed");
    }
    let db = match &url {
        Some(url) => Db::open_postgres(url)?,
        None => Db::open_sqlite(&Layout::new(folder.join("data")).database())?,
    };
    Ok(Bench { program, folder, url, db })
}

fn url_of(number: usize) -> (String, String) {
    let host = format!("h{}.example", number % HOSTS);
    (format!("http://{host}/section/{}/page-{number}.html", number % 17), host)
}

fn job(db: &Db) -> Result<(JobId, ConnectionId)> {
    let job = db.read(|tx| jobs::find(tx, "site"))?.context("it was imported")?;
    Ok((job.id, job.connection))
}

fn ids(db: &Db) -> Result<IdMaker> {
    let node =
        NewNode { name: "bench".into(), roles: "bench".into(), address: None, version: "0".into() };
    let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
    Ok(IdMaker::new(node)?)
}

/// Activities in the order of time, as chunks of all parts commit them.
fn fill(db: &Db, rows: usize) -> Result<()> {
    let ((job, connection), ids, now_ms) = (job(db)?, ids(db)?, clock::now_ms());
    let parts = i64::from(db.read(settings::parts)?);
    let spread = rows * 7 / 10;
    let start_of = |number: usize| match number < spread {
        true => now_ms - 30 * DAY_MS + (30 * DAY_MS - HOUR_MS) * number as i64 / spread as i64,
        false => now_ms - HOUR_MS + HOUR_MS * (number - spread) as i64 / (rows - spread) as i64,
    };
    for (count, first) in (0..rows).step_by(CHUNK).enumerate() {
        let activities: Vec<Activity> = (first..rows.min(first + CHUNK))
            .map(|number| {
                let (result, bytes) = match number % 20 {
                    0 => ("404", 0),
                    1 => ("dns", 0),
                    2 => ("301", 0),
                    _ => ("200", 1_000 + number as i64 % 50_000),
                };
                let kind = if number % 3 == 2 { "document ingest (copy)" } else { "fetch" };
                Activity {
                    id: ids.next(),
                    connection,
                    job: Some(job),
                    kind: kind.to_owned(),
                    entity: url_of(number).0,
                    bytes: Some(bytes),
                    result: Some(if kind == "fetch" { result } else { "OK" }.to_owned()),
                    description: None,
                    start_ms: start_of(number),
                    end_ms: start_of(number) + 40 + number as i64 % 500,
                }
            })
            .collect();
        let part = Part(count as i64 % parts);
        db.write(move |tx| history::append(tx, part, &activities))?;
    }
    Ok(())
}

/// Documents that are ready.
fn queued(db: &Db, documents: usize) -> Result<()> {
    let ((job, _), ids) = (job(db)?, ids(db)?);
    let parts = db.read(settings::parts)?;
    let suffixes = db.read(settings::suffix_list)?;
    let mut by_part: Vec<Vec<Candidate>> = vec![Vec::new(); parts as usize];
    for number in 0..documents {
        let (docid, host) = url_of(number);
        let part = part_of(Some(suffixes.grouping_domain(&host)), &host, parts);
        by_part[part as usize].push(Candidate {
            id: QueueId(ids.next()),
            dochash: DocHash::of(&docid),
            docid,
            bin: BinId(bin_of(&host)),
            bin_name: host,
            priority: 1.0,
            hops: 1,
            redirects: 0,
            seed: false,
            parent: None,
            cut: None,
            events: Vec::new(),
            role: DocumentRole::Page,
            levels: 0,
        });
    }
    for (part, all) in by_part.into_iter().enumerate() {
        let place = Place { part: Part(part as i64), job };
        for some in all.chunks(CHUNK) {
            let some = some.to_vec();
            db.write(move |tx| {
                let adding = AddContext { place, run: Run(1), now_ms: 0, room: None, requisites: RequisiteRules::default() };
                queue::add(tx, adding, &some).map(|_| ())
            })?;
        }
    }
    Ok(())
}
