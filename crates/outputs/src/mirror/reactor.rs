//! The reactor: from original bytes to what the mirror shows.
//!
//! For each x-file it finds what must be made anew: members that changed, and those that refer
//! to something that joined, left or has another name now ([`merge`]). Style sheets come first
//! ([`sheets`]), then pages ([`pages`]). A step ends with a list of the paths that changed
//! ([`super::lists`]) and the cursor. Invariants: what is shown follows from the bytes, the
//! rules and the names of the members; a step reads the index as of the last one, so doing it
//! again gives the same bytes.

mod members;
mod merge;
mod names;
mod pages;
mod sheets;
mod targets;

use self::members::members;

use self::merge::Merged;
use self::names::NameTable;
use super::digest::Digest;
use super::lists::{self, Collector};
use super::settings::Names;
use super::sorter::Sorter;
use super::versions::Versions;
use super::{Mirror, Progress, cursor as cursors, x_files};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Mutex;
use store::Result;

const CURSOR: &str = "worker/reactor/cursor";
pub(super) const DIR: &str = "worker/reactor";
pub(super) const MEMBERS: &str = "worker/reactor/members";
const REFERENCES: &str = "worker/reactor/references";
const SHEETS: &str = "worker/reactor/sheets";

/// How far the reactor is, and by what it made what is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReactorCursor {
    /// The last x-file whose results are complete.
    pub(super) number: u64,
    /// Steps that were taken: one an x-file, and one each time that all was made anew.
    pub(super) step: u64,
    by: MadeBy,
}

/// What decides what pages look like, besides them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct MadeBy {
    names: Names,
    rules: Option<Digest>,
    outside_notice: Option<String>,
}

pub(super) fn cursor(mirror: &Mirror) -> Result<ReactorCursor> {
    cursors::read(&mirror.disk, CURSOR)
}

/// Follows the x-files up to the newest. With `all`, or when rules or names are others now, every
/// page is made anew.
pub fn run(mirror: &Mirror, all: bool) -> Result<Progress> {
    let _working = mirror.begin(&mirror.reactor);
    let newest = x_files::newest(&mirror.disk)?;
    let mut progress = Progress { number: cursor(mirror)?.number, ..Progress::default() };
    let mut all = all;
    while progress.number < newest {
        let number = x_files::after(&mirror.disk, progress.number)?;
        progress.changed += Step::new(mirror, number, all)?.take()?;
        progress.number = number;
        progress.x_files += 1;
        all = false;
    }
    let is_outdated = cursor(mirror)?.by != made_by(mirror);
    if progress.number > 0 && (all || is_outdated) {
        progress.changed += Step::new(mirror, progress.number, true)?.take()?;
    }
    Ok(progress)
}

fn made_by(mirror: &Mirror) -> MadeBy {
    let notice = mirror.rules().and_then(|rules| rules.reactor.notice.as_ref());
    MadeBy {
        names: mirror.settings.names,
        rules: mirror.rules_digest(),
        outside_notice: notice.or(mirror.settings.outside_notice.as_ref()).cloned(),
    }
}

/// One step.
struct Step<'m> {
    mirror: &'m Mirror,
    /// The x-file that it is for.
    number: u64,
    before: ReactorCursor,
    after: ReactorCursor,
    /// Whether every page is made anew.
    all: bool,
    list: Mutex<Collector<'m>>,
}

/// Short hashes of URLs that are called otherwise now, came or went.
type Renamed = HashSet<u64>;

impl<'m> Step<'m> {
    fn new(mirror: &'m Mirror, number: u64, all: bool) -> Result<Step<'m>> {
        let before = cursor(mirror)?;
        let by = made_by(mirror);
        let all = all || (before.by != by && before.step > 0);
        let after = ReactorCursor { number, step: before.step + 1, by };
        let list = Mutex::new(Collector::new(&mirror.disk));
        Ok(Step { mirror, number, before, after, all, list })
    }

    /// Takes the step. Returns how many paths changed.
    fn take(self) -> Result<u64> {
        let disk = &self.mirror.disk;
        for dir in [MEMBERS, REFERENCES, SHEETS] {
            // Nothing of an attempt that broke off may be left among what is written now.
            Versions::open(disk, dir, self.before.step)?.tidy()?;
        }
        let changes = match self.number > self.before.number {
            true => merge::changes(self.mirror, self.before.number, self.number)?,
            false => Sorter::new(disk).finish()?,
        };
        let Merged { mut names, mut renamed, sheets, changed_pages, mut left_assets } =
            merge::merge(&self, changes)?;
        sheets::make(&self, sheets, &mut names, &mut renamed, &mut left_assets)?;
        pages::make(&self, &names, &renamed, &changed_pages)?;
        self.remove_assets(&names, &left_assets)?;
        let list = self.list.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let changed = list.finish(disk, self.after.step, self.number)?;
        cursors::write(disk, CURSOR, &self.after)?;
        for dir in [MEMBERS, REFERENCES, SHEETS] {
            Versions::open(disk, dir, self.after.step)?.tidy()?;
        }
        Ok(changed)
    }

    /// Has the files go of requisites that no member is any more.
    fn remove_assets(&self, names: &NameTable, left: &[names::AssetFile]) -> Result<()> {
        let current = names.assets();
        for asset in left.iter().filter(|asset| current.binary_search(asset).is_err()) {
            self.goes(&asset.path())?;
        }
        Ok(())
    }

    fn shows(&self, path: &str, file: &Digest) -> Result<()> {
        let mut list = self.list.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        list.shows(path, file)
    }

    fn goes(&self, path: &str) -> Result<()> {
        let mut list = self.list.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        list.goes(path)
    }
}

/// The digests of all bytes that members are shown as or made of.
pub(super) fn digests(mirror: &Mirror, found: &mut dyn FnMut(&Digest)) -> Result<()> {
    let step = cursor(mirror)?.step;
    let versions = Versions::open(&mirror.disk, MEMBERS, step)?;
    for bucket in 0..super::versions::BUCKETS {
        members(&versions, bucket)?.iter().for_each(|member| found(&member.sha256));
    }
    sheets::sheets(&Versions::open(&mirror.disk, SHEETS, step)?)?
        .iter()
        .for_each(|sheet| found(&sheet.output));
    Ok(())
}

/// Removes lists that every reader has gone past.
pub(super) fn remove_lists(mirror: &Mirror, through: u64) -> Result<()> {
    let old = lists::steps(&mirror.disk)?.into_iter().take_while(|step| *step <= through);
    old.into_iter().try_for_each(|step| mirror.disk.remove(lists::path(step)))
}

/// The digests of all files that the assembler has yet to put into the webroot.
pub(super) fn list_digests(mirror: &Mirror, found: &mut dyn FnMut(&Digest)) -> Result<()> {
    for step in lists::steps(&mirror.disk)? {
        let mut list = lists::List::open(&mirror.disk, step)?;
        while let Some(change) = list.next()? {
            change.file.iter().for_each(&mut *found);
        }
    }
    Ok(())
}
