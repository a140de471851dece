//! Which links a crawl follows: not those that are queued already, and not those that budgets
//! close.
//!
//! Relies on `budget` for every verdict on what a page was worth, and which of its links are.
//! Invariants: a link that is known to be queued is not queued again; the tallies of a part are
//! restored before anything of it is claimed, and forgotten with its lease; what was fetched
//! before is looked at again whatever its pattern has come to.

use crate::batch::Batch;
use crate::batch::known_links::KnownLinks;
use crate::budget::{
    self, Budgets, CandidateLink, ClosedPattern, ListIndex, LookKind, NO_LIMIT, Novelty, ReadList,
};
use crate::budget::{ContentDigest, FetchedDocument};
use crate::job::{JobWork, WebJob};
use crate::targets::Target;
use crate::worker::Worker;
use crate::worker::ask::tasks::{ClaimedDocument, DocumentTask};
use crate::worker::read::ParsedDocument;
use page::domain::SuffixList;
use page::facts::Facts;
use page::ids::bin_of;
use page::url::host_of;
use std::collections::HashSet;
use std::sync::Arc;
use store::Result;
use store::ids::{BinId, JobId, Part};
use store::tables::queue::ReasonCode;
use store::tables::traps::{self, After, TrapRow};

/// Tallies read at once.
const TALLIES_PAGE: u32 = 1_000;
/// For how long a process remembers links of continuous jobs, whose documents leave the queue in
/// other processes too.
const KNOWN_MS_MAX: i64 = 600_000;
/// Origins that are remembered for having named their sitemaps; to name them twice is
/// only work.
const ORIGINS_MAX: usize = 100_000;

pub struct LinkFilter {
    /// Links that are queued, since when they are remembered.
    known: KnownLinks,
    known_since_ms: i64,
    budgets: Budgets,
    /// Origins whose sitemaps have been named to a job.
    sitemaps: HashSet<(JobId, String)>,
}

impl LinkFilter {
    /// Knows no link; hosts are told apart by registered domain as `suffixes` say.
    pub fn new(suffixes: Arc<SuffixList>) -> LinkFilter {
        LinkFilter {
            known: KnownLinks::default(),
            known_since_ms: i64::MIN,
            budgets: Budgets::new(budget::BudgetLimits::default(), suffixes),
            sitemaps: HashSet::new(),
        }
    }

    /// Links that are queued already.
    pub fn known(&self) -> &KnownLinks {
        &self.known
    }

    /// A batch is committed, so its links are queued.
    pub fn on_committed(&self, job: JobId, batch: &Batch) {
        batch.remember(job, &self.known);
    }

    /// Forgets which links are queued.
    pub fn forget_queued(&self) {
        self.known.clear();
    }

    /// The same, now and then, for the sake of continuous jobs.
    pub fn forget_old(&mut self, has_continuous: bool, now_ms: i64) {
        let is_old = now_ms.saturating_sub(self.known_since_ms) > KNOWN_MS_MAX;
        if is_old && has_continuous {
            self.known.clear();
            self.known_since_ms = now_ms;
        }
    }

    /// Another run begins, which has its own links to find.
    pub fn on_run(&mut self) {
        self.known.clear();
        self.sitemaps.clear();
    }

    /// Whether the sitemaps of an origin are to be named to a job, which is done with that.
    pub fn take_sitemaps(&mut self, job: JobId, origin: &str) -> bool {
        let key = (job, origin.to_owned());
        if self.sitemaps.contains(&key) {
            return false;
        }
        if self.sitemaps.len() >= ORIGINS_MAX {
            self.sitemaps.clear();
        }
        self.sitemaps.insert(key)
    }

    /// The sitemaps of an origin may be others now.
    pub fn forget_sitemaps(&mut self, job: JobId, origin: &str) {
        self.sitemaps.remove(&(job, origin.to_owned()));
    }

    /// Takes in what earlier holders of a part have counted.
    pub fn restore(&mut self, part: Part, tallies: &[TrapRow]) {
        self.budgets.restore(part, tallies);
    }

    /// What was counted of a part since it was last taken.
    pub fn take_changed(&mut self, part: Part) -> Vec<TrapRow> {
        self.budgets.take_changed(part)
    }

    pub fn forget_part(&mut self, part: Part) {
        self.budgets.forget(part);
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        self.known_since_ms = self.known_since_ms.saturating_add(jump_ms);
    }

    /// Counts a page that was read, and cuts those of its links that are not worth
    /// following. `is_named_elsewhere` says that another process has read the page that named it.
    pub fn weigh(
        &mut self,
        task: &DocumentTask,
        reading: &mut ParsedDocument,
        is_named_elsewhere: bool,
    ) {
        let (job, entry) = (task.job.id, &task.claimed.entry);
        if entry.looked_at_as().is_requisite() {
            // It is no page, and leads to none: they have a budget of their own.
            return;
        }
        let (web, host) = (task.job.web(), host_of(&entry.docid));
        let look = look_of(&task.claimed, &reading.facts);
        let from = self.budgets.fetched(&FetchedDocument {
            job,
            part: task.host.part,
            bin: task.host.bin,
            url: &entry.docid,
            dochash: entry.dochash,
            hops: entry.hops,
            content: ContentDigest::of(&reading.facts),
            look,
            host_pages: host_pages(web, task.host.bin),
            is_named_elsewhere,
        });
        self.count_list(task, reading, look);
        let hops = entry.hops + 1;
        let is_judged = |it: &&mut Target| it.cut.is_none() && !it.role.is_requisite();
        for target in reading.targets.iter_mut().filter(is_judged) {
            let dochash = target.dochash;
            let is_outside = look == LookKind::First && host_of(&target.url) != host;
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
            let link =
                CandidateLink { job, bin, url, dochash, hops, from, host_pages, list_depth: 0 };
            let mut closed = self.budgets.judge(&link);
            if reading.is_index {
                let index = index_of(task, look);
                target.list_depth = index.depth_below();
                closed = closed.or_else(|| self.budgets.judge_list(index));
            }
            target.cut = closed.map(|_| ReasonCode::Budget);
        }
    }

    /// Counts a sitemap, or an index of them.
    fn count_list(&mut self, task: &DocumentTask, reading: &ParsedDocument, look: LookKind) {
        let Some(bytes) = reading.list_bytes else { return };
        let (part, bin) = (task.host.part, task.host.bin);
        let (job, url) = (task.job.id, &*task.claimed.entry.docid);
        self.budgets.read_list(ReadList { part, job, bin, url, look, bytes });
    }

    /// What closes a document that waits, if it is one of a pattern that has closed since it was
    /// queued.
    pub fn closed(&mut self, job: &JobWork, claimed: &ClaimedDocument) -> Option<ClosedPattern> {
        let entry = &claimed.entry;
        if entry.done_run.is_some() || entry.looked_at_as().is_requisite() {
            return None;
        }
        self.budgets.judge(&CandidateLink {
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
}

impl Worker {
    /// Restores what earlier holders of a part have counted.
    pub(crate) fn restore_tallies(&mut self, part: Part) -> Result<()> {
        let mut after: Option<After> = None;
        loop {
            let page =
                self.deps.db.read(move |tx| traps::load(tx, part, after.as_ref(), TALLIES_PAGE))?;
            self.links.restore(part, &page);
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
fn host_pages(web: Option<&WebJob>, host: BinId) -> i64 {
    web.map_or(NO_LIMIT, |web| web.host_pages(host))
}

fn index_of(task: &DocumentTask, look: LookKind) -> ListIndex<'_> {
    let (part, bin, entry) = (task.host.part, task.host.bin, &task.claimed.entry);
    let (url, list_depth) = (&*entry.docid, entry.list_depth);
    ListIndex { part, job: task.job.id, bin, url, look, list_depth }
}

fn look_of(claimed: &ClaimedDocument, facts: &Facts) -> LookKind {
    match content_of(claimed) {
        None => LookKind::First,
        Some(content) if *content == facts.content_hash => LookKind::Same,
        Some(_) => LookKind::Changed,
    }
}

/// The hash of what was fetched before; `None` for what was only named, or cut.
fn content_of(claimed: &ClaimedDocument) -> Option<&[u8]> {
    claimed.known.as_ref()?.content_hash.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::LinkContext;
    use crate::job::LinkOrigin;
    use crate::job::fixture::{JOB, work};
    use page::ids::DocHash;
    use store::ids::{IdMaker, NodeId};

    fn filter() -> LinkFilter {
        LinkFilter::new(work(1).shared.suffixes)
    }

    #[test]
    fn a_link_whose_batch_is_committed_is_not_named_again() {
        let (mut filter, job) = (filter(), work(1));
        let ids = IdMaker::new(NodeId(1)).expect("a node");
        let url = "http://a.example/x";
        let found = LinkOrigin { hops: 1, ..LinkOrigin::default() };
        let name = |filter: &LinkFilter| {
            let mut batch = Batch::default();
            let at = LinkContext { job: &job, ids: &ids, known: filter.known() };
            batch.link(at, url.to_owned(), DocHash::of(url), found);
            batch
        };
        let batch = name(&filter);
        assert_eq!(batch.links.by_part.len(), 1);
        filter.on_committed(JOB, &batch);
        assert!(name(&filter).links.by_part.is_empty());
        filter.forget_old(false, i64::MAX);
        assert!(name(&filter).links.by_part.is_empty(), "nothing else takes it from the queue");
        filter.forget_old(true, 5_000);
        assert_eq!(name(&filter).links.by_part.len(), 1);
        filter.on_committed(JOB, &batch);
        filter.forget_old(true, 5_000 + KNOWN_MS_MAX);
        assert!(name(&filter).links.by_part.is_empty(), "it is not that old");
        filter.on_run();
        assert_eq!(name(&filter).links.by_part.len(), 1, "another run has its own links");
    }

    #[test]
    fn sitemaps_of_an_origin_are_named_once_in_a_run_and_when_its_robots_txt_is_news() {
        let mut filter = filter();
        let origin = "http://a.example";
        assert!(filter.take_sitemaps(JOB, origin) && !filter.take_sitemaps(JOB, origin));
        assert!(filter.take_sitemaps(JobId(8), origin), "each job hears of them");
        filter.forget_sitemaps(JOB, origin);
        assert!(filter.take_sitemaps(JOB, origin) && !filter.take_sitemaps(JobId(8), origin));
        filter.on_run();
        assert!(filter.take_sitemaps(JobId(8), origin));
    }
}
