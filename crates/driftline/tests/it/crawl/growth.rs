//! Crawls of a site day after day: what is stored stays within twice of what a fresh crawl
//! stores, nobody has to collect garbage, and a look at what did not change writes little.
//!
//! The days pass by a clock that is ahead: a small library makes the program see another time.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use store::testing::skipped;

use super::{Home, Running, Summary, words};
use crate::site::{Served, Site};

/// A tenth of the site of bench/growth.
const PAGES: usize = 200;
const DAYS: usize = 12;
/// Pages that change from one day to the next.
const CHANGED: usize = PAGES / 10;
/// Bodies that garbage collection has written again, which nobody asked for.
const REWRITTEN: &str = "SELECT COUNT(*) FROM objects WHERE path LIKE 'chunks/%-%.warc.zst'";
/// The library that tells another time.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    long outcome = syscall(SYS_clock_gettime, clock, time);
    const char *ahead = getenv("CLOCK_AHEAD_SECONDS");
    if (outcome == 0 && clock == CLOCK_REALTIME && ahead) time->tv_sec += atol(ahead);
    return (int)outcome;
}
"#;

/// Compiles the library; `None` and a line that says so where that is not possible.
fn clock(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, CLOCK).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
    match compiler.output() {
        Ok(output) if output.status.success() => Some(library),
        _ => {
            skipped("growth over days: there is no C compiler `cc`");
            None
        }
    }
}

/// A site that is crawled once a day.
struct Daily {
    home: Home,
    site: Served,
    clock: PathBuf,
}

impl Daily {
    fn new(home: Home) -> Option<Daily> {
        let site = Site::with_pages(PAGES).redirects(10).missing(8).serve();
        let clock = clock(home.folder.path())?;
        Some(Daily { home, site, clock })
    }

    /// Crawls the site into a home, on a day.
    fn crawl(&self, home: &Home, day: usize) -> Summary {
        let seeds = self.site.seeds();
        let mut crawl = home.crawl(&words(&seeds, &["--concurrency", "16"]));
        crawl.env("LD_PRELOAD", &self.clock);
        crawl.env("CLOCK_AHEAD_SECONDS", (day * 86_400).to_string());
        Summary::of(&Running::start(crawl).ended())
    }

    /// The pages that differ on a day, another tenth each time.
    fn change(&self, day: usize) {
        self.site.edit((0..CHANGED).map(|number| (day * 7 + number * 10) % PAGES));
    }
}

/// Bytes of a data directory on the disk, by what they are for; holes of files are none.
fn sizes(data: &Path) -> BTreeMap<&'static str, u64> {
    let mut sizes = BTreeMap::new();
    let mut folders = vec![data.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let (path, kind) = entry.map(|it| (it.path(), it.metadata().unwrap())).unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else {
                let name = purpose(path.strip_prefix(data).unwrap());
                *sizes.entry(name).or_default() += kind.len().min(kind.blocks() * 512);
            }
        }
    }
    sizes
}

fn purpose(path: &Path) -> &'static str {
    let text = path.to_string_lossy();
    let has = |part: &str| text.contains(part);
    match () {
        () if has("links") => "links",
        () if text.ends_with("-wal") || text.ends_with("-shm") => "log",
        () if has(".sqlite") || has(".db") => "rows",
        () if text.ends_with(".warc.zst") => "bodies",
        () if text.ends_with(".facts") && has("packs/") => "packs",
        () if text.ends_with(".facts") => "facts",
        () if has("shards/") => "search, published",
        () if has("search") => "search, cache",
        () => "other",
    }
}

fn total(sizes: &BTreeMap<&'static str, u64>) -> u64 {
    sizes.values().sum()
}

#[test]
fn a_site_that_is_crawled_every_day_takes_at_most_twice_what_a_fresh_crawl_takes() {
    let Some(daily) = Daily::new(Home::directory()) else { return };
    let (mut told, mut rewritten) = (Vec::new(), 0);
    for day in 0..DAYS {
        daily.crawl(&daily.home, day);
        rewritten += daily.home.number(REWRITTEN);
        told.push(format!("{day}: {:?}", sizes(&daily.home.data())));
        daily.change(day);
    }
    daily.crawl(&daily.home, DAYS);
    let fresh = Home::directory();
    daily.crawl(&fresh, DAYS);
    let (grown, fresh) = (sizes(&daily.home.data()), sizes(&fresh.data()));
    let days = told.join("\n");
    assert!(total(&grown) <= 2 * total(&fresh), "{days}\n{grown:?}\nfresh: {fresh:?}");
    let bodies = |sizes: &BTreeMap<&str, u64>| sizes.get("bodies").copied().unwrap_or_default();
    assert!(bodies(&grown) <= 2 * bodies(&fresh), "{days}\n{grown:?}\nfresh: {fresh:?}");
    assert!(rewritten > 0, "nobody has rewritten bodies: {days}");
    daily.home.verify();
    daily.home.verify_links();
    daily.home.verify_search();
}

/// Pages of the site whose looks are measured: fewer would show what a run writes once.
const LOOKED_AT: usize = 1_000;
/// What a look at a page that did not change may write here. bench/growth measures 2.0 KB with
/// 20,000 pages; with so few, what a run writes once is 0.6 KB a page.
const LOOK_BYTES_MAX: u64 = 3_000;

/// Bytes that a command and all it starts write, by its own count.
fn written_by(command: &Command) -> Option<u64> {
    let mut counted = Command::new("sh");
    counted.args(["-c", "\"$@\" >/dev/null && cat /proc/$$/io", "sh"]);
    counted.arg(command.get_program()).args(command.get_args());
    let output = counted.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let line = said.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    Some(line.parse().unwrap())
}

#[test]
fn a_look_at_a_page_that_did_not_change_writes_hardly_more_than_its_row() {
    let (home, site) = (Home::directory(), Site::with_pages(LOOKED_AT).serve());
    let seeds = site.seeds();
    let crawl = || home.crawl(&words(&seeds, &["--concurrency", "16"]));
    for _ in 0..2 {
        Summary::of(&Running::start(crawl()).ended());
    }
    let Some(written) = written_by(&crawl()) else {
        return skipped("bytes a look writes: the system does not count them");
    };
    let each = written / LOOKED_AT as u64;
    println!("{each} bytes a page");
    assert!(each <= LOOK_BYTES_MAX, "{each} bytes a page");
}
