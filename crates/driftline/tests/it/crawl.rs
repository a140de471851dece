//! `driftline crawl` as its users run it: the real binary on the generated site, on a
//! data directory and on PostgreSQL, through kills, signals, outages and second thoughts.
//!
//! Tests wait for what the site has seen, for what the tables say or for an end, never
//! for time to pass. Invariant: no process outlives its test.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod clean;
mod continuous;
mod damaged;
mod endless;
mod failing;
mod files;
mod first_run;
mod growth;
mod handed;
mod killed;
mod limits;
mod links;
mod nodes;
mod notified;
mod outage;
mod outputs;
mod ownership;
mod receivers;
mod refused;
mod requisites;
mod run_as;
mod scenarios;
mod search;
mod served;
mod server;
mod signals;
mod throttled;
mod timed;
mod transformed;
mod unreachable;
mod whole;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use store::Db;
use store::datadir::Layout;
use store::testing::{FreshDatabase, environment, skipped};

const PROGRAM: &str = env!("CARGO_BIN_EXE_driftline");
/// How long anything may take on a busy machine before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long to wait before a condition is looked at again, if nothing happens.
const GLANCE: Duration = Duration::from_millis(20);
/// Times are kept in milliseconds, so a pause may seem shorter by one at each end, and
/// by another where two processes with clocks of their own meet.
const ROUNDING: Duration = Duration::from_millis(3);
/// Flags that make a crawl of loopback quick. A test that gives one of them wins.
const QUICK: [(&str, &str); 5] = [
    ("--allow-private", "true"),
    ("--delay", "0"),
    ("--retry-wait", "0.2"),
    ("--lease", "1"),
    ("--job", "site"),
];

/// A file with the key of secrets that all processes of all tests have.
pub fn secrets_key(folder: &Path) -> PathBuf {
    let path = folder.join("secrets.key");
    let mut options = OpenOptions::new();
    let mut file = options.create(true).write(true).mode(0o600).open(&path).unwrap();
    writeln!(file, "{}", "07".repeat(32)).unwrap();
    path
}

/// Where a crawl keeps what it finds.
struct Home {
    folder: tempfile::TempDir,
    /// The database's URL, unless it is a data directory.
    url: Option<String>,
    /// Dropped with this, if it was made for it.
    _database: Option<FreshDatabase>,
    /// Flags that name a bucket for its objects, in place of a directory.
    bucket: Vec<String>,
}

impl Home {
    /// A data directory that is not there yet.
    fn directory() -> Home {
        Home {
            folder: tempfile::tempdir().unwrap(),
            url: None,
            _database: None,
            bucket: Vec::new(),
        }
    }

    /// A database that somebody else made.
    fn at(url: &str) -> Home {
        Home { url: Some(url.to_owned()), ..Home::directory() }
    }

    /// A fresh PostgreSQL database with a directory for objects, or a line that says
    /// that there is none.
    fn database() -> Option<Home> {
        let Some(database) = FreshDatabase::from_environment() else {
            skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
            return None;
        };
        let url = database.url.clone();
        Some(Home { _database: Some(database), ..Home::at(&url) })
    }

    /// A fresh PostgreSQL database with objects on an S3 server, or a line that says what
    /// is missing.
    fn servers() -> Option<Home> {
        let variable = |name: &str| environment(&format!("DRIFTLINE_TEST_S3{name}"));
        let Some(endpoint) = variable("") else {
            skipped("S3: DRIFTLINE_TEST_S3 is not set");
            return None;
        };
        let mut home = Home::database()?;
        let keys = home.folder.path().join("keys");
        let [id, secret] = ["_KEY", "_SECRET"].map(|name| variable(name).unwrap());
        std::fs::write(&keys, format!("{id}\n{secret}\n")).unwrap();
        // A prefix of its own in the bucket that all tests share.
        let folder = home.folder.path().file_name().unwrap().to_string_lossy();
        let prefix = folder.trim_start_matches('.').to_lowercase();
        let bucket = format!("s3://{}/{prefix}", variable("_BUCKET").unwrap());
        let keys = keys.display().to_string();
        home.bucket = ["--objects", &bucket, "--s3-endpoint", &endpoint, "--s3-keys", &keys]
            .map(str::to_owned)
            .into();
        Some(home)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The program with a verb, told where the data is.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).stdin(Stdio::null());
        if self.url.is_some() {
            command.env("DRIFTLINE_SECRETS_KEY", secrets_key(self.folder.path()));
        }
        match &self.url {
            None => command.arg("--data").arg(self.data()),
            Some(url) if self.bucket.is_empty() => {
                let objects = format!("file://{}", self.data().display());
                command.args(["--database", url, "--objects", &objects])
            }
            Some(url) => command.args(["--database", url]).args(&self.bucket),
        };
        command
    }

    /// A crawl, quick unless it is told otherwise.
    fn crawl(&self, args: &[&str]) -> Command {
        let mut command = self.command(&["crawl", "--json"]);
        for (flag, value) in QUICK.iter().filter(|(flag, _)| !args.contains(flag)) {
            command.args([flag, value]);
        }
        command.args(args);
        command
    }

    /// Crawls until the run is over.
    fn crawled(&self, args: &[&str]) -> Summary {
        let ended = Running::start(self.crawl(args)).ended();
        Summary::of(&ended)
    }

    /// Asserts that everything that is stored is as it was written.
    #[track_caller]
    fn verify(&self) {
        let output = self.command(&["verify"]).output().unwrap();
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && errors.is_empty(), "{said}{errors}");
    }

    /// Asserts that the link index knows every page that is stored, and is what they say.
    /// Returns how many links there are.
    #[track_caller]
    fn verify_links(&self) -> u64 {
        let output = self.command(&["links", "verify", "--full", "--json"]).output().unwrap();
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && errors.is_empty(), "{said}{errors}");
        let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
        let stored = self.number(
            "SELECT COUNT(*) FROM documents d
             LEFT JOIN looks l ON l.part = d.part AND l.id = d.id AND l.base = d.checksum
             WHERE d.requisite = 0
               AND ((d.removed_ms IS NULL AND d.chunk IS NOT NULL)
                    OR COALESCE(l.outcome, d.outcome) = 'redirect')",
        );
        assert_eq!(answer["pages"], stored, "{answer}");
        answer["links"].as_u64().unwrap()
    }

    /// Asserts that the search index is what is committed. Returns how many documents it has.
    #[track_caller]
    fn verify_search(&self) -> u64 {
        let output = self.command(&["search", "verify", "--full", "--json"]).output().unwrap();
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && errors.is_empty(), "{said}{errors}");
        let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(answer["documents"], answer["indexed"], "{answer}");
        answer["indexed"].as_u64().unwrap()
    }

    /// The rows, beside whoever works on them.
    fn rows(&self) -> Db {
        match &self.url {
            None => Db::open_sqlite(&Layout::new(self.data()).database()).unwrap(),
            Some(url) => Db::open_postgres(url).unwrap(),
        }
    }

    /// A number from the tables.
    fn number(&self, sql: &'static str) -> i64 {
        self.rows().read(move |tx| tx.query_one(sql, &[], |row| row.get(0))).unwrap()
    }

    /// The first column of rows.
    fn texts(&self, sql: &'static str) -> BTreeSet<String> {
        let found: Vec<String> =
            self.rows().read(move |tx| tx.query(sql, &[], |row| row.get(0))).unwrap();
        found.into_iter().collect()
    }

    /// Documents that are claimed and not committed.
    fn active(&self) -> BTreeSet<String> {
        self.texts("SELECT docid FROM queue WHERE state = 'active'")
    }
}

/// What a crawl said of itself at its end.
#[derive(Debug)]
struct Summary(serde_json::Value);

impl Summary {
    /// Of a crawl whose run is over.
    #[track_caller]
    fn of(ended: &Output) -> Summary {
        let summary = Summary::printed(ended);
        assert_eq!(ended.status.code(), Some(0), "{} {}", summary.0, text(&ended.stderr));
        assert_eq!(summary.0["ended"], "finished");
        summary
    }

    /// Of any crawl that ended by itself.
    #[track_caller]
    fn printed(ended: &Output) -> Summary {
        let (said, errors) = (text(&ended.stdout), text(&ended.stderr));
        let parsed = serde_json::from_str(&said);
        Summary(parsed.unwrap_or_else(|_| panic!("{:?}: {said}{errors}", ended.status)))
    }

    /// A number, by its pointer; 0 where there is none.
    fn count(&self, pointer: &str) -> u64 {
        self.0.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or(0)
    }

    /// Added, updated, unchanged and removed, in this order.
    fn changes(&self) -> [u64; 4] {
        let removed = self.0["did"]["removed"].as_object().unwrap();
        let removed = removed.values().filter_map(serde_json::Value::as_u64).sum();
        let did = |name: &str| self.count(&format!("/did/{name}"));
        [did("added"), did("updated"), did("unchanged"), removed]
    }
}

/// A process that runs beside the test, and not longer.
struct Running {
    child: Child,
    said: Arc<Said>,
    whole: Receiver<()>,
    ended: Option<ExitStatus>,
}

/// What a process has printed so far.
#[derive(Default)]
struct Said {
    texts: Mutex<[Vec<u8>; 2]>,
    more: Condvar,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Said::default());
        let (end, whole) = sync_channel(2);
        let pipes: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for (number, mut pipe) in pipes.into_iter().enumerate() {
            let (said, end) = (said.clone(), end.clone());
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                    said.texts.lock().unwrap()[number].extend_from_slice(&bytes[..count]);
                    said.more.notify_all();
                }
                let _ = end.send(());
            });
        }
        Running { child, said, whole, ended: None }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `INT`.
    fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.id());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    }

    /// Kills it as a crash would, and waits until it is gone.
    fn kill(&mut self) {
        let _ = self.child.kill();
        self.ended = Some(self.child.wait().unwrap());
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for words among its messages.
    #[track_caller]
    fn says(&self, words: &str) {
        self.hears(1, words);
    }

    /// Waits for words among what it prints.
    #[track_caller]
    fn prints(&self, words: &str) {
        self.hears(0, words);
    }

    #[track_caller]
    fn hears(&self, pipe: usize, words: &str) {
        let silent = |texts: &mut [Vec<u8>; 2]| !text(&texts[pipe]).contains(words);
        let held = self.said.texts.lock().unwrap();
        let (held, late) = self.said.more.wait_timeout_while(held, PATIENCE, silent).unwrap();
        assert!(!late.timed_out(), "{words:?} is not in: {}", text(&held[pipe]));
    }

    /// Waits for its end.
    #[track_caller]
    fn ended(mut self) -> Output {
        for _ in 0..2 {
            let waited = self.whole.recv_timeout(PATIENCE);
            let held = self.said.texts.lock().unwrap();
            assert!(waited.is_ok(), "it does not end: {}{}", text(&held[0]), text(&held[1]));
        }
        let status = self.child.wait().unwrap();
        let [stdout, stderr] = std::mem::take(&mut *self.said.texts.lock().unwrap());
        Output { status, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again whenever the site is visited, until something holds.
#[track_caller]
fn until(site: &crate::site::Served, what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it never came to this: {what}");
        let next = site.web().visits_count() + 1;
        site.web().wait_for_visits(next, GLANCE);
    }
}

/// Asserts that a run ended with 2, printed no answer, and said these words.
#[track_caller]
fn assert_trouble(output: &Output, words: &[&str]) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}{}", text(&output.stdout));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    for word in words {
        assert!(errors.contains(word), "{word:?} is not in: {errors}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// URLs as arguments.
fn words<'a>(urls: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    urls.iter().map(String::as_str).chain(more.iter().copied()).collect()
}
