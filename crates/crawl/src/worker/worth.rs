//! Asks the budgets (T13): what a page was worth, and which of its links are.
//!
//! Relies on `budget` for every verdict. Invariants: the tallies of a part are restored
//! before anything of it is claimed, and forgotten with its lease; what was fetched
//! before is looked at again whatever its pattern has come to.

use super::Worker;
use super::job::{JobWork, Web};
use super::reading::Reading;
use super::tasks::{Claimed, DocumentTask};
use crate::budget::{Closed, Link, ListIndex, Look, NO_LIMIT, Novelty, ReadList, Said, Seen};
use page::facts::Facts;
use page::ids::bin_of;
use page::url::host_of;
use store::Result;
use store::ids::{BinId, Part};
use store::tables::traps::{self, After};

/// Tallies read at once.
const TALLIES_PAGE: u32 = 1_000;

impl Worker {
    /// Counts a page that was read, and cuts those of its links that are not worth
    /// following.
    pub(super) fn weigh(&mut self, task: &DocumentTask, reading: &mut Reading) {
        let (job, entry) = (task.job.id, &task.claimed.entry);
        let (web, host) = (task.job.web(), host_of(&entry.docid));
        let look = look_of(&task.claimed, &reading.facts);
        let parent = entry.parent_part;
        let from = self.budgets.fetched(&Seen {
            job,
            part: task.host.part,
            bin: task.host.bin,
            url: &entry.docid,
            dochash: entry.dochash,
            hops: entry.hops,
            said: Said::of(&reading.facts),
            look,
            host_pages: host_pages(web, task.host.bin),
            is_named_elsewhere: parent.is_some_and(|part| !self.parts.contains_key(&part)),
        });
        self.count_list(task, reading, look);
        let hops = entry.hops + 1;
        for target in reading.targets.iter_mut().filter(|target| target.cut.is_none()) {
            let dochash = target.dochash;
            let is_outside = look == Look::First && host_of(&target.url) != host;
            if is_outside {
                self.budgets.link_outside(job, bin_at(&target.url));
            }
            if self.known.has(job, dochash, hops) {
                if from == Novelty::Fresh {
                    self.budgets.vouch(job, dochash);
                }
                continue;
            }
            let (url, bin) = (&*target.url, bin_at(&target.url));
            let (from, host_pages) = (Some(from), host_pages(web, bin));
            let link = Link { job, bin, url, dochash, hops, from, host_pages, list_depth: 0 };
            let mut closed = self.budgets.judge(&link);
            if reading.is_index {
                let index = index_of(task, look);
                target.list_depth = index.depth_below();
                closed = closed.or_else(|| self.budgets.judge_list(index));
            }
            target.cut = closed.map(|_| Closed::CODE);
        }
    }

    /// Counts a sitemap, or an index of them.
    fn count_list(&mut self, task: &DocumentTask, reading: &Reading, look: Look) {
        let Some(bytes) = reading.list_bytes else { return };
        let (part, bin) = (task.host.part, task.host.bin);
        let (job, url) = (task.job.id, &*task.claimed.entry.docid);
        self.budgets.read_list(ReadList { part, job, bin, url, look, bytes });
    }

    /// Whether a document that waits is one of a pattern that has closed since it was
    /// queued.
    pub(super) fn closed(&mut self, job: &JobWork, claimed: &Claimed) -> Option<Closed> {
        let entry = &claimed.entry;
        if entry.done_run.is_some() {
            return None;
        }
        self.budgets.judge(&Link {
            job: job.id,
            bin: entry.bin,
            url: &entry.docid,
            dochash: entry.dochash,
            hops: entry.hops,
            from: None,
            host_pages: host_pages(job.web(), entry.bin),
            list_depth: entry.list_depth,
        })
    }

    /// Restores what earlier holders of a part have counted.
    pub(super) fn restore_budgets(&mut self, part: Part) -> Result<()> {
        let mut after: Option<After> = None;
        loop {
            let page =
                self.db.read(move |tx| traps::load(tx, part, after.as_ref(), TALLIES_PAGE))?;
            self.budgets.restore(part, &page);
            match page.into_iter().last() {
                Some(last) => after = Some((last.job, last.bin, last.pattern)),
                None => return Ok(()),
            }
        }
    }
}

fn bin_at(url: &str) -> BinId {
    BinId(bin_of(host_of(url)))
}

/// Pages that a host may have before pages of other hosts link to it.
fn host_pages(web: Option<&Web>, host: BinId) -> i64 {
    web.map_or(NO_LIMIT, |web| web.host_pages(host))
}

fn index_of(task: &DocumentTask, look: Look) -> ListIndex<'_> {
    let (part, bin, entry) = (task.host.part, task.host.bin, &task.claimed.entry);
    let (url, list_depth) = (&*entry.docid, entry.list_depth);
    ListIndex { part, job: task.job.id, bin, url, look, list_depth }
}

fn look_of(claimed: &Claimed, facts: &Facts) -> Look {
    match content_of(claimed) {
        None => Look::First,
        Some(content) if *content == facts.content_hash => Look::Same,
        Some(_) => Look::Changed,
    }
}

/// The hash of what was fetched before; `None` for what was only named, or cut.
fn content_of(claimed: &Claimed) -> Option<&[u8]> {
    claimed.known.as_ref()?.content_hash.as_deref()
}
