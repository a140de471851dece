//! What differs between two generations.
//!
//! Invariant: folders that are the same in both are not read.

use super::read;
use crate::mirror::Mirror;
use crate::mirror::assembler::listing::{self, Entry, Listing};
use crate::mirror::digest::Digest;
use store::Result;

/// Paths of a comparison; what is beyond is counted.
pub const PATHS_MAX: usize = 10_000;

/// The difference of two generations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The first [`PATHS_MAX`] paths that differ, folder by folder.
    pub paths: Vec<PathChange>,
    /// Files that only the later one has.
    pub added: u64,
    /// Files that differ.
    pub changed: u64,
    /// Files that only the earlier one has.
    pub removed: u64,
}

/// A path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// Below the webroot.
    pub path: String,
    /// The file before.
    pub before: Option<Digest>,
    /// The file after.
    pub after: Option<Digest>,
}

/// Two folders of one path.
struct Pair {
    path: String,
    before: Option<Digest>,
    after: Option<Digest>,
}

/// Compares two generations.
pub fn compare(mirror: &Mirror, before: u64, after: u64) -> Result<Comparison> {
    let (before, after) = (read(mirror, before)?.root()?, read(mirror, after)?.root()?);
    let mut comparison = Comparison::default();
    let mut open = vec![Pair { path: String::new(), before: Some(before), after: Some(after) }];
    let listed = |digest: Option<Digest>| match digest {
        Some(digest) => listing::read(&mirror.disk, &digest),
        None => Ok(Listing::new()),
    };
    while let Some(pair) = open.pop() {
        if pair.before == pair.after {
            continue;
        }
        let (before, after) = (listed(pair.before)?, listed(pair.after)?);
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut folders = Vec::new();
        for name in names {
            let (before, after) = (before.get(name).copied(), after.get(name).copied());
            let path = format!("{}{name}", pair.path);
            comparison.note(&path, before.and_then(file), after.and_then(file));
            let (before, after) = (before.and_then(folder), after.and_then(folder));
            if before != after {
                folders.push(Pair { path: format!("{path}/"), before, after });
            }
        }
        open.extend(folders.into_iter().rev());
    }
    Ok(comparison)
}

fn file(entry: Entry) -> Option<Digest> {
    match entry {
        Entry::File(digest) => Some(digest),
        Entry::Folder(_) => None,
    }
}

fn folder(entry: Entry) -> Option<Digest> {
    match entry {
        Entry::Folder(digest) => Some(digest),
        Entry::File(_) => None,
    }
}

impl Comparison {
    fn note(&mut self, path: &str, before: Option<Digest>, after: Option<Digest>) {
        match (before, after) {
            (before, after) if before == after => return,
            (None, _) => self.added += 1,
            (_, None) => self.removed += 1,
            _ => self.changed += 1,
        }
        if self.paths.len() < PATHS_MAX {
            self.paths.push(PathChange { path: path.to_owned(), before, after });
        }
    }
}
