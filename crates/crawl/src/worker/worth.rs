//! Asks the budgets (T13): what a page was worth, and which of its links are.
//!
//! Relies on `budget` for every verdict. Invariants: the tallies of a part are restored
//! before anything of it is claimed, and forgotten with its lease; what was fetched
//! before is looked at again whatever its pattern has come to.

use super::Worker;
use super::reading::Reading;
use super::tasks::{Claimed, DocumentTask};
use crate::budget::{Closed, Link, ListIndex, Look, Novelty, Said, Seen};
use page::facts::Facts;
use page::ids::bin_of;
use page::url::host_of;
use store::Result;
use store::ids::{BinId, JobId, Part};
use store::tables::traps::{self, After};

/// Tallies read at once.
const TALLIES_PAGE: u32 = 1_000;

impl Worker {
    /// Counts a page that was read, and cuts those of its links that are not worth
    /// following.
    pub(super) fn weigh(&mut self, task: &DocumentTask, reading: &mut Reading) {
        let (job, entry) = (task.job.id, &task.claimed.entry);
        let look = look_of(&task.claimed, &reading.facts);
        let from = self.budgets.fetched(&Seen {
            job,
            part: task.host.part,
            bin: task.host.bin,
            url: &entry.docid,
            dochash: entry.dochash,
            hops: entry.hops,
            said: Said::of(&reading.facts),
            look,
        });
        let hops = entry.hops + 1;
        for target in reading.targets.iter_mut().filter(|target| target.cut.is_none()) {
            let dochash = target.dochash;
            if self.known.has(job, dochash, hops) {
                if from == Novelty::Fresh {
                    self.budgets.vouch(job, dochash);
                }
                continue;
            }
            let (url, bin) = (&*target.url, BinId(bin_of(host_of(&target.url))));
            let link = Link { job, bin, url, dochash, hops, from: Some(from) };
            let mut closed = self.budgets.judge(&link);
            if reading.is_index && closed.is_none() {
                let (part, bin, url) = (task.host.part, task.host.bin, &*entry.docid);
                closed = self.budgets.judge_list(ListIndex { part, job, bin, url, look });
            }
            target.cut = closed.map(|_| Closed::CODE);
        }
    }

    /// Whether a document that waits is one of a pattern that has closed since it was
    /// queued.
    pub(super) fn closed(&mut self, job: JobId, claimed: &Claimed) -> Option<Closed> {
        let entry = &claimed.entry;
        if entry.done_run.is_some() {
            return None;
        }
        self.budgets.judge(&Link {
            job,
            bin: entry.bin,
            url: &entry.docid,
            dochash: entry.dochash,
            hops: entry.hops,
            from: None,
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
