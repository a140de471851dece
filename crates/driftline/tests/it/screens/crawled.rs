//! The directory that the screens show: two crawls of the demo's web, which changes in between.
//!
//! It is made once for a build of the program, in cargo's directory for tests, by the first test
//! that needs it; other tests wait for it, also those of other processes. Ids and the order of
//! documents come from URLs, so the web is always at the same address and port, and requests
//! are made one after the other. Invariant: nobody changes it; a test works on its [`Copy`].

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use driftline::demo_site::{self, DemoSite};
use driftline::loopback_web::Settings;
use store::Db;
use store::datadir::Layout;

use super::{PROGRAM, command};

const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/screens");
/// An address of this machine where nobody else listens, at a port that is never given away.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 1);
const PORT: u16 = 8017;
/// How long tests of other builds may have the address.
const PATIENCE: Duration = Duration::from_secs(40);
const GLANCE: Duration = Duration::from_millis(50);
/// Long before anything in it is out of date.
const FRESH: Duration = Duration::from_secs(600);

/// A copy of the directory that a test may change.
pub struct Copy {
    folder: tempfile::TempDir,
    /// What the crawls printed.
    pub printed: String,
}

impl Copy {
    /// Of the directory that is there, or is made now.
    pub fn new() -> Copy {
        let folder = Path::new(FOLDER);
        fs::create_dir_all(folder).unwrap();
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        let (data, mark) = (folder.join("data"), folder.join("build"));
        if !is_current(&mark) {
            let _ = fs::remove_dir_all(&data);
            fs::write(folder.join("printed"), crawl_twice(&data)).unwrap();
            fs::write(&mark, build()).unwrap();
        }
        let printed = fs::read_to_string(folder.join("printed")).unwrap();
        let copy = Copy { folder: tempfile::tempdir().unwrap(), printed };
        copy_directory(&data, &copy.data());
        copy
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

/// Whether the directory was made by this build, lately.
fn is_current(mark: &Path) -> bool {
    let made = mark.metadata().and_then(|it| it.modified());
    let is_fresh = made.is_ok_and(|it| it.elapsed().is_ok_and(|age| age < FRESH));
    is_fresh && fs::read_to_string(mark).is_ok_and(|it| it == build())
}

/// Tells a build of the program and its tests from others.
fn build() -> String {
    let age = |file: &Path| {
        let modified = file.metadata().and_then(|it| it.modified()).unwrap();
        modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()
    };
    format!("{} {}", age(Path::new(PROGRAM)), age(&std::env::current_exe().unwrap()))
}

fn crawl_twice(data: &Path) -> String {
    let site = serve();
    let first = crawl(data, &site);
    site.change();
    let second = crawl(data, &site);
    steady(data);
    format!("the first crawl:\n{first}\nthe second crawl:\n{second}")
}

/// Waits while another build has the address.
fn serve() -> DemoSite {
    let settings = Settings { addresses: vec![ADDRESS], port: PORT, ..Settings::default() };
    let started = Instant::now();
    loop {
        match DemoSite::start_with(&settings) {
            Ok(site) => return site,
            Err(error) => assert!(started.elapsed() < PATIENCE, "{ADDRESS}:{PORT}: {error}"),
        }
        std::thread::park_timeout(GLANCE);
    }
}

/// Crawls, and returns what was printed.
fn crawl(data: &Path, site: &DemoSite) -> String {
    let mut crawl = command(&["crawl", "--job", "demo", "--allow-private"]);
    crawl.args(["--delay", "0.001", "--concurrency", "1", "--retries", "0", "--patience", "2"]);
    crawl.args(["--address-rate", "0"]);
    for name in demo_site::names() {
        crawl.args(["--resolve", &format!("{name}={ADDRESS}")]);
    }
    let output = crawl.args(site.seeds()).arg("--data").arg(data).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What was measured becomes the same on every machine, and what is blocked stays so.
fn steady(data: &Path) {
    let db = Db::open_sqlite(&Layout::new(data).database()).unwrap();
    db.write(|tx| {
        tx.execute("UPDATE history SET endtime = starttime + 7", &[])?;
        tx.execute("UPDATE bins SET busy_ms = 7 * fetches, next_ms = 0", &[])?;
        tx.execute("UPDATE bins SET blocked_ms = blocked_ms + 43200000", &[])?;
        store::testing::sum_rows(tx)
    })
    .unwrap();
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_directory(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
