//! The parser: an article of every page, from its original bytes.
//!
//! Reads x-files and blobs, and writes `worker/parser` alone. Invariant: an article follows from
//! the bytes, the URL and the rules; doing an x-file again gives the same articles.

use super::digest::Digest;
use super::kind::Kind;
use super::spider::content_type;
use super::threads::{Sender, spread};
use super::versions::{BUCKETS, Versions};
use super::x_files::XFile;
use super::{Mirror, Progress, cursor as cursors, spider, x_files};
use page::mirror::article::{Page, extract, write};
use page::mirror::names::HashName;
use page::mirror::xfile::{Content, Event, Node, NodeKind, Operation};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use store::{Error, Result};

const CURSOR: &str = "worker/parser/cursor";
const DIR: &str = "worker/parser";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ParserCursor {
    number: u64,
    /// The rules by which articles were made.
    rules: Option<Digest>,
}

pub(super) fn cursor(mirror: &Mirror) -> Result<u64> {
    Ok(cursors::read::<ParserCursor>(&mirror.disk, CURSOR)?.number)
}

/// A page whose article is to be made, or to go.
struct Task {
    hash: HashName,
    url: String,
    /// `None` when it goes.
    original: Option<Original>,
}

struct Original {
    sha256: Digest,
    content_type: String,
    title: String,
    last_modified_ms: Option<i64>,
}

/// Follows the x-files up to the newest; after a change of the rules, all articles are made anew.
pub fn run(mirror: &Mirror) -> Result<Progress> {
    let _working = mirror.begin(&mirror.parser);
    let newest = x_files::newest(&mirror.disk)?;
    let mut cursor: ParserCursor = cursors::read(&mirror.disk, CURSOR)?;
    let mut progress = Progress { number: cursor.number, ..Progress::default() };
    if cursor.number > 0 && cursor.rules != mirror.rules_digest() {
        progress.changed += make(mirror, |tasks| members(mirror, tasks))?;
        cursor.rules = mirror.rules_digest();
        cursors::write(&mirror.disk, CURSOR, &cursor)?;
    }
    while cursor.number < newest {
        let number = x_files::after(&mirror.disk, cursor.number)?;
        let x_file = x_files::open_after(&mirror.disk, cursor.number, number)?;
        progress.changed += make(mirror, |tasks| nodes(mirror, number, x_file, tasks))?;
        cursor = ParserCursor { number, rules: mirror.rules_digest() };
        cursors::write(&mirror.disk, CURSOR, &cursor)?;
        progress.number = number;
        progress.x_files += 1;
    }
    Ok(progress)
}

/// Works on all pages that are named. Returns how many articles changed.
fn make(mirror: &Mirror, name: impl FnOnce(&Sender<'_, Task>) -> Result<()>) -> Result<u64> {
    let changed = AtomicU64::new(0);
    spread(mirror.settings.threads, name, |task| {
        changed.fetch_add(1, Ordering::Relaxed);
        article(mirror, &task)
    })?;
    Ok(changed.into_inner())
}

/// Names the pages of an x-file.
fn nodes(mirror: &Mirror, number: u64, mut x_file: XFile, tasks: &Sender<'_, Task>) -> Result<()> {
    let failed = |error| x_files::failed(&mirror.disk, number, error);
    while let Some(event) = x_file.reader.next().map_err(failed)? {
        if let Event::Open(node) = event
            && node.operation != Operation::Keep
        {
            tasks.send(task(&node))?;
        }
    }
    Ok(())
}

fn task(node: &Node) -> Task {
    let original = match &node.content {
        Content::Stored(stored) if node.operation != Operation::Remove => {
            let is_requisite = node.kind == Some(NodeKind::Requisite);
            let is_page = Kind::of(&stored.media_type, is_requisite) == Kind::Page && !is_requisite;
            is_page.then(|| Original {
                sha256: stored.sha256.into(),
                content_type: content_type(&stored.media_type, stored.charset.as_deref()),
                title: node.name.clone(),
                last_modified_ms: node.last_modified_ms,
            })
        }
        _ => None,
    };
    Task { hash: node.hash_name, url: node.url.clone(), original }
}

/// Names all pages that there are. Those of x-files to come are made again with them.
fn members(mirror: &Mirror, tasks: &Sender<'_, Task>) -> Result<()> {
    let number = spider::cursor(mirror)?.number;
    let versions = Versions::open(&mirror.disk, spider::MEMBERS, number)?;
    for bucket in 0..BUCKETS {
        for member in spider::members(&versions, bucket)? {
            if member.is_requisite || Kind::of(&member.media_type, false) != Kind::Page {
                continue;
            }
            let (hash, content_type) = (member.hash(), member.content_type());
            let original = Some(Original {
                sha256: member.sha256,
                content_type,
                title: member.title,
                last_modified_ms: member.last_modified_ms,
            });
            tasks.send(Task { hash, url: member.url, original })?;
        }
    }
    Ok(())
}

/// Makes one article, or has it go.
fn article(mirror: &Mirror, task: &Task) -> Result<()> {
    let path = format!("{DIR}/{}", task.hash.path(".xml"));
    let Some(original) = &task.original else { return mirror.disk.remove(path) };
    let body = mirror.disk.blob(&original.sha256)?;
    let page = Page {
        body: &body,
        url: &task.url,
        content_type: Some(&original.content_type),
        title: &original.title,
        last_modified_ms: original.last_modified_ms,
    };
    let place = || mirror.disk.place(&path).display().to_string();
    let xml = write(&extract(&page, mirror.rules()), Vec::new())
        .map_err(|error| Error::invariant(format!("{}: {error}", place())))?;
    mirror.disk.write(path, &xml)
}
