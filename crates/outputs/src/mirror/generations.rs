//! Generations: whole webroots, of which one is shown.
//!
//! Invariant: what is shown changes by one rename of the link `webroot`, and a generation is on
//! the disk before.

mod checkout;
mod compare;

pub use self::checkout::checkout;
pub use self::compare::{Comparison, PathChange, compare};

use super::assembler::AssemblerCursor;
use super::assembler::folders;
use super::assembler::listing::{self, Entry};
use super::digest::Digest;
use super::disk::Disk;
use super::x_files::DIGITS;
use super::{Mirror, assembler};
use serde::{Deserialize, Serialize};
use store::{Error, Result};

pub(super) const DIR: &str = "generations";
const WEBROOT: &str = "webroot";

/// What is known of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    /// The x-file that it is as of.
    pub number: u64,
    /// When it was assembled.
    pub assembled_ms: i64,
    /// Paths that differ from the one before.
    pub changed_paths: u64,
    /// The digest of its root folder.
    root: String,
    /// Whether it is the one that is shown.
    #[serde(skip)]
    pub is_shown: bool,
}

fn link_path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}")
}

fn about_path(number: u64) -> String {
    format!("{DIR}/{number:0DIGITS$}.toml")
}

impl Generation {
    /// The root folder.
    pub(super) fn root(&self) -> Result<Digest> {
        let parsed = Digest::parse(&self.root);
        parsed.ok_or_else(|| Error::corrupt(about_path(self.number), "its root is no digest"))
    }
}

/// Makes a generation visible under its number.
pub(super) fn make(
    mirror: &Mirror,
    cursor: &AssemblerCursor,
    changed_paths: u64,
    now_ms: i64,
) -> Result<()> {
    let root = cursor.root.ok_or_else(|| Error::invariant("a generation without a root folder"))?;
    let generation = Generation {
        number: cursor.number,
        assembled_ms: now_ms,
        changed_paths,
        root: root.to_string(),
        is_shown: false,
    };
    let text = toml::to_string(&generation)
        .map_err(|error| Error::invariant(format!("a generation cannot be written: {error}")))?;
    mirror.disk.write(about_path(cursor.number), text.as_bytes())?;
    mirror.disk.symlink(&format!("../{}", folders::path(&root)), link_path(cursor.number))
}

/// Shows the newest generation.
pub(super) fn show_newest(mirror: &Mirror, cursor: &AssemblerCursor) -> Result<()> {
    switch(&mirror.disk, cursor.number)
}

/// Shows the newest generation if none is shown. One that somebody went back to stays.
pub(super) fn show_something(mirror: &Mirror, cursor: &AssemblerCursor) -> Result<()> {
    if cursor.number == 0 || mirror.disk.kind(WEBROOT)?.is_some() {
        return Ok(());
    }
    switch(&mirror.disk, cursor.number)
}

fn switch(disk: &Disk, number: u64) -> Result<()> {
    disk.symlink(&link_path(number), WEBROOT)?;
    disk.sync()
}

/// The number of the generation that is shown.
pub(super) fn shown(disk: &Disk) -> Result<Option<u64>> {
    let target = disk.link_target(WEBROOT)?;
    Ok(target.and_then(|target| target.strip_prefix(DIR)?.strip_prefix('/')?.parse().ok()))
}

/// All generations, the oldest first.
pub fn list(mirror: &Mirror) -> Result<Vec<Generation>> {
    let shown = shown(&mirror.disk)?;
    let mut generations = Vec::new();
    for name in mirror.disk.names(DIR)? {
        let Some(number) = super::x_files::number_of(&name, "") else { continue };
        generations.push(Generation { is_shown: shown == Some(number), ..read(mirror, number)? });
    }
    Ok(generations)
}

/// What is known of one generation.
pub(super) fn read(mirror: &Mirror, number: u64) -> Result<Generation> {
    let path = about_path(number);
    let Some(bytes) = mirror.disk.read_if_there(&path)? else {
        return Err(Error::Refused(format!("the mirror has no generation {number}")));
    };
    let what = || mirror.disk.place(&path).display().to_string();
    let text =
        String::from_utf8(bytes).map_err(|error| Error::corrupt(what(), error.to_string()))?;
    toml::from_str(&text).map_err(|error| Error::corrupt(what(), error.to_string()))
}

/// Shows a generation that there is, until the next is assembled.
pub fn rollback(mirror: &Mirror, number: u64) -> Result<()> {
    let _working = mirror.begin(&mirror.assembler);
    let generation = read(mirror, number)?;
    if mirror.disk.kind(folders::path(&generation.root()?))?.is_none() {
        let what = mirror.disk.place(link_path(number)).display().to_string();
        return Err(Error::corrupt(what, "its root folder is missing"));
    }
    switch(&mirror.disk, number)
}

/// The bytes of a file of a generation.
pub fn show(mirror: &Mirror, number: u64, path: &str) -> Result<Vec<u8>> {
    let missing = || Error::Refused(format!("generation {number} has no file {path:?}"));
    let mut folder = read(mirror, number)?.root()?;
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        let listing = listing::read(&mirror.disk, &folder)?;
        match listing.get(part) {
            Some(Entry::Folder(digest)) => folder = *digest,
            Some(Entry::File(digest)) if parts.peek().is_none() => return mirror.disk.blob(digest),
            _ => return Err(missing()),
        }
    }
    Err(missing())
}

/// Removes a generation that is neither shown nor the newest.
pub(super) fn remove(mirror: &Mirror, number: u64) -> Result<()> {
    let newest = assembler::cursor(mirror)?.number;
    if number == newest || shown(&mirror.disk)? == Some(number) {
        return Ok(());
    }
    mirror.disk.remove(link_path(number))?;
    mirror.disk.remove(about_path(number))
}
