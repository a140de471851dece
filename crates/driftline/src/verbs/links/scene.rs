//! A small web whose links come and go, for tests.

use crate::place::link_index::PlaceLinkIndex;
use crate::verbs::context::VerbContext;
use clap::Parser;
use outputs::links::{ChangeBatch, LinkIndex, PageChange, PageContent, What, keys};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use std::sync::Arc;
use store::datadir::DataDir;
use store::ids::{ConnectionId, JobId};
use store::sorted::{EmbeddedMap, MapLocation as Files};
use store::tables::jobs::{self, Job};

/// Noon of 2026-01-31, when most of it was crawled.
pub const FIRST_MS: i64 = 1_769_860_800_000;
const HOUR_MS: i64 = 3_600_000;
/// A day later something had changed.
pub const SECOND_MS: i64 = FIRST_MS + 24 * HOUR_MS;
/// Two days later somebody asks.
pub const NOW_MS: i64 = FIRST_MS + 48 * HOUR_MS;
/// The job that crawled it; job 9 did too, and is deleted.
const JOB: i64 = 7;

/// A directory with a link index that has this:
///
/// | page | links to |
/// |---|---|
/// | `a.example/1` | `b.example/`, `b.example/x` (nofollow) |
/// | `a.example/2` | `c.example/`, at first also `b.example/` (an area) |
/// | `a.example/3`, loaded on the second day | `b.example/` |
/// | `a.example/4`, gone on the second day | `b.example/` |
/// | `b.example/` | `a.example/1` |
pub struct Scene {
    pub context: VerbContext,
    // Dropped behind what uses them.
    _directory: DataDir,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDir::open(&folder.path().join("data"), 4, 0).unwrap();
        let db = directory.db().clone();
        let job = Job::new(JobId(JOB), "news", ConnectionId(1));
        db.write(move |tx| jobs::save(tx, &job, 1)).unwrap();
        let files = Files { path: folder.path().join("links"), families: keys::FAMILIES };
        let index = LinkIndex::new(Arc::new(EmbeddedMap::open(&files).unwrap()), 4);
        for changes in [first(), second()] {
            index.apply(ChangeBatch { changes, marks: Vec::new() }, &[]).unwrap();
        }
        let link_index = Arc::new(PlaceLinkIndex::opened(&db, index));
        Scene {
            context: VerbContext { link_index, ..VerbContext::of_rows(db) },
            _directory: directory,
            _folder: folder,
        }
    }

    /// One more page, with links to so many others.
    pub fn add_many_links(&self, count: usize) {
        let links = (0..count).map(|at| link(&format!("example.d>>s>/{at}"), "many")).collect();
        let changes = vec![page("example.d>>s>/", "Many", links)];
        let index = self.context.link_index.open().unwrap();
        index.apply(ChangeBatch { changes, marks: Vec::new() }, &[]).unwrap();
    }
}

fn first() -> Vec<PageChange> {
    let home = || link("example.b>>s>/", "Home");
    let nofollow = OutLink { rel: Rel::NOFOLLOW, ..link("example.b>>s>/x", "See\u{1b}[2J also") };
    let area = OutLink { kind: LinkKind::Area, ..link("example.b>>s>/", "=cmd(), \"x\"") };
    let long = link("example.c>>s>/", &"long ".repeat(20));
    vec![
        page("example.a>>s>/1", "One", vec![home(), nofollow]),
        page("example.a>>s>/2", "Two", vec![area, long]),
        page("example.a>>s>/4", "Four", vec![link("example.b>>s>/", "four")]),
        page("example.b>>s>/", "B", vec![link("example.a>>s>/1", "back")]),
        PageChange { job: 9, ..page("example.b>>s>/", "B", vec![link("example.a>>s>/1", "back")]) },
    ]
}

fn second() -> Vec<PageChange> {
    let third = page("example.a>>s>/3", "Three", vec![link("example.b>>s>/", "third")]);
    let two = page("example.a>>s>/2", "Two", vec![link("example.c>>s>/", &"long ".repeat(20))]);
    let four = page("example.a>>s>/4", "", Vec::new());
    vec![
        PageChange { job: 0, in_order: false, date_ms: SECOND_MS, ..third },
        PageChange { date_ms: SECOND_MS, ..two },
        PageChange { date_ms: SECOND_MS + HOUR_MS, what: What::Gone("http-404".into()), ..four },
    ]
}

fn link(uri: &str, anchor: &str) -> OutLink {
    OutLink { uri: uri.into(), anchor: anchor.into(), kind: LinkKind::A, rel: Rel::default() }
}

pub fn page(uri: &str, title: &str, links: Vec<OutLink>) -> PageChange {
    let (title, server) = (title.to_owned(), "nginx".to_owned());
    let content = PageContent { status: 200, title, server, links };
    PageChange {
        uri: uri.to_owned(),
        date_ms: FIRST_MS,
        job: JOB,
        in_order: true,
        what: What::Page(Box::new(content)),
    }
}

/// A command line, beginning with the verb.
pub fn parsed<T: Parser>(words: &[&str]) -> T {
    T::try_parse_from(words).map_err(|error| error.to_string()).unwrap()
}

/// The command line that a line suggests.
pub fn suggested(line: &str) -> Vec<&str> {
    line.split_once("page: driftline ").unwrap().1.split_whitespace().collect()
}
