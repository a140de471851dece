//! The assembler: generations of the webroot, of what the reactor has listed.
//!
//! A step loads the last directory index, applies the x-file to it, and the list to the tree of
//! folders ([`folders`]), and shows the new generation by one rename. Invariants: a generation is
//! complete and on the disk before `webroot` leads to it; it never changes afterwards; folders
//! that did not change are shared.

pub(super) mod folders;
mod index_page;
mod leaving;
pub(super) mod listing;

use self::folders::Folders;
use self::leaving::{Changes, Leaving};
use super::digest::Digest;
use super::lists::{Change, List};
use super::{Mirror, Progress, cursor as cursors, generations, x_files};
use page::mirror::dir_index::{DirIndex, IndexHeader, Position};
use serde::{Deserialize, Serialize};
use std::io::BufReader;
use store::{Error, Result};

const CURSOR: &str = "worker/assembler/cursor";
const DIR: &str = "worker/assembler";
/// The directory index in the root folder.
pub(super) const DIR_INDEX: &str = "dir.xml";
/// The page that a reader begins with.
pub(super) const INDEX: &str = "index.html";

/// How far the assembler is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct AssemblerCursor {
    /// The x-file of the newest generation.
    pub(super) number: u64,
    /// The step of the reactor that it shows.
    pub(super) step: u64,
    /// The root folder of the newest generation.
    pub(super) root: Option<Digest>,
    /// Its directory index, without saying which x-file it is as of.
    dir_index: Option<Digest>,
    /// The x-file that the directory index is as of.
    position: Option<StoredPosition>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredPosition {
    epoch: String,
    number: u64,
    sha256: Digest,
}

pub(super) fn cursor(mirror: &Mirror) -> Result<AssemblerCursor> {
    cursors::read(&mirror.disk, CURSOR)
}

/// Makes a generation for each step of the reactor, and shows the newest.
pub fn run(mirror: &Mirror, now_ms: i64) -> Result<Progress> {
    let _working = mirror.begin(&mirror.assembler);
    let newest = super::reactor::cursor(mirror)?.step;
    let mut cursor = cursor(mirror)?;
    let mut progress = Progress { number: cursor.number, ..Progress::default() };
    while cursor.step < newest {
        let done = step(mirror, &cursor, now_ms)?;
        progress.x_files += u64::from(done.cursor.number > cursor.number);
        progress.changed += done.changed;
        cursor = done.cursor;
        progress.number = cursor.number;
    }
    generations::show_something(mirror, &cursor)?;
    Ok(progress)
}

struct Done {
    cursor: AssemblerCursor,
    changed: u64,
}

fn step(mirror: &Mirror, before: &AssemblerCursor, now_ms: i64) -> Result<Done> {
    let disk = &mirror.disk;
    let step = before.step + 1;
    let list = List::open(disk, step)?;
    let number = list.number;
    let index = index(mirror, before, number)?;
    let mut leaving = Leaving::open(disk, before.step)?;
    let due = leaving.follow(list, mirror.settings.grace_ms, now_ms)?;
    let mut folders = Folders::open(disk, before.root)?;
    let mut changes = Changes::new(List::open(disk, step)?, due);
    let mut changed = 0;
    while let Some(change) = changes.next()? {
        folders.apply(&change)?;
        changed += 1;
    }
    leaving.write(disk, step)?;
    for (name, file) in [(DIR_INDEX, index.dir_index), (INDEX, index.page)] {
        folders.apply_to_root(&Change { path: name.to_owned(), file: Some(file) })?;
    }
    let root = folders.finish()?;
    let cursor = AssemblerCursor {
        number,
        step,
        root: Some(root),
        dir_index: Some(index.dir_index),
        position: index.position,
    };
    generations::make(mirror, &cursor, changed, now_ms)?;
    disk.link_blob(&index.dir_index, format!("{DIR}/{DIR_INDEX}"))?;
    disk.sync()?;
    generations::show_newest(mirror, &cursor)?;
    cursors::write(disk, CURSOR, &cursor)?;
    leaving::tidy(disk, step)?;
    Ok(Done { cursor, changed })
}

/// The directory index of a generation, and the page that a reader begins with.
struct Indexes {
    dir_index: Digest,
    page: Digest,
    position: Option<StoredPosition>,
}

/// Brings the directory index up to an x-file.
fn index(mirror: &Mirror, before: &AssemblerCursor, number: u64) -> Result<Indexes> {
    let disk = &mirror.disk;
    let mut index = match &before.dir_index {
        Some(digest) => {
            let file = BufReader::new(disk.open_blob(digest)?);
            DirIndex::read(file).map_err(|error| damaged(mirror, &error))?
        }
        None => DirIndex::new(IndexHeader::default()),
    };
    index.header.position = before.position.clone().map(|it| Position {
        epoch: it.epoch,
        number: it.number,
        sha256: it.sha256.into(),
    });
    if number > before.number {
        let x_file = x_files::open_after(disk, before.number, number)?;
        index = index
            .apply(x_file.reader, x_file.digest.into())
            .map_err(|error| x_files::failed(disk, number, error))?;
    }
    let position = index.header.position.take().map(|it| StoredPosition {
        epoch: it.epoch,
        number: it.number,
        sha256: it.sha256.into(),
    });
    // Two mirrors of one state have the same bytes, so it does not say how that came about.
    let out = index.write(disk.begin()?).map_err(|error| damaged(mirror, &error))?;
    let dir_index = out.finish()?.into_blob()?;
    let page = disk.keep(&index_page::index_page(&index, mirror.settings.names))?;
    // The reactor's files are on the disk already. A bucket that is there is taken to be whole,
    // also after a loss of power, so that its files must be there before it is.
    disk.sync()?;
    Ok(Indexes { dir_index, page, position })
}

fn damaged(mirror: &Mirror, error: &page::mirror::Error) -> Error {
    let what = mirror.disk.place(DIR).join(DIR_INDEX).display().to_string();
    Error::corrupt(what, error.to_string())
}
