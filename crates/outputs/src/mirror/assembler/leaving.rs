//! Requisites on their way out: they stay for a grace after the last page that needed them.
//!
//! A reader may have an old page open whose styles it has yet to load. Invariant: what comes
//! back while it is leaving stays.

use crate::mirror::disk::Disk;
use crate::mirror::lists::{self, Change, List};
use crate::mirror::sealed::{Kind, open, seal};
use crate::mirror::versions::Versions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;
use store::Result;

const DIR: &str = "worker/assembler/leaving";
/// All are in one file.
const BUCKET: usize = 0;
/// The folder of requisites.
const ASSETS: &str = "assets/";

#[derive(Debug, Serialize, Deserialize)]
struct Left {
    path: String,
    since_ms: i64,
}

/// The paths that are leaving, and since when.
pub(super) struct Leaving {
    paths: BTreeMap<String, i64>,
}

impl Leaving {
    pub(super) fn open(disk: &Disk, step: u64) -> Result<Leaving> {
        let versions = Versions::open(disk, DIR, step)?;
        versions.tidy()?;
        let left: Vec<Left> = match versions.read(BUCKET)? {
            Some(file) => open(Kind::Leaving, &file.bytes, &file.path)?,
            None => Vec::new(),
        };
        Ok(Leaving { paths: left.into_iter().map(|it| (it.path, it.since_ms)).collect() })
    }

    /// Takes in what a list says of requisites. Returns those whose grace is over, in the order
    /// of lists.
    pub(super) fn follow(
        &mut self,
        mut list: List,
        grace_ms: i64,
        now_ms: i64,
    ) -> Result<Vec<String>> {
        while let Some(change) = list.next()? {
            match change.file {
                _ if !change.path.starts_with(ASSETS) => {}
                Some(_) => drop(self.paths.remove(&change.path)),
                None => drop(self.paths.insert(change.path, now_ms)),
            }
        }
        let is_due = |_: &String, since_ms: &mut i64| now_ms.saturating_sub(*since_ms) >= grace_ms;
        let mut due: Vec<String> =
            self.paths.extract_if(.., is_due).map(|(path, _)| path).collect();
        due.sort_unstable_by(|a, b| lists::order(a, b));
        Ok(due)
    }

    /// Writes what is leaving as of a step.
    pub(super) fn write(&self, disk: &Disk, step: u64) -> Result<()> {
        let left = self.paths.iter();
        let left: Vec<Left> =
            left.map(|(path, since_ms)| Left { path: path.clone(), since_ms: *since_ms }).collect();
        Versions::open(disk, DIR, step)?.write(BUCKET, step, &seal(Kind::Leaving, &left))
    }
}

/// The changes of a list as they are to be applied now.
pub(super) struct Changes {
    list: List,
    due: Peekable<IntoIter<String>>,
    next: Option<Change>,
}

impl Changes {
    pub(super) fn new(list: List, due: Vec<String>) -> Changes {
        Changes { list, due: due.into_iter().peekable(), next: None }
    }

    pub(super) fn next(&mut self) -> Result<Option<Change>> {
        while self.next.is_none() {
            let Some(change) = self.list.next()? else { break };
            // Requisites go when their grace is over.
            let is_later = change.file.is_none() && change.path.starts_with(ASSETS);
            self.next = (!is_later).then_some(change);
        }
        let is_first = |path: &String| match &self.next {
            Some(change) => lists::order(path, &change.path).is_lt(),
            None => true,
        };
        Ok(match self.due.next_if(is_first) {
            Some(path) => Some(Change { path, file: None }),
            None => self.next.take(),
        })
    }
}

/// Removes what earlier steps have written.
pub(super) fn tidy(disk: &Disk, step: u64) -> Result<()> {
    Versions::open(disk, DIR, step)?.tidy()
}
