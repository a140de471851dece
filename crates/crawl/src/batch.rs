//! What has come of the documents of the open chunk so far: everything its commit
//! will write, collected in memory.
//!
//! Invariants: bounded in documents and bytes by whoever decides when to commit
//! ([`Batch::is_full`]); a document is in it once; nothing of it is visible to
//! anybody before the commit.

#[cfg(test)]
pub mod fixture;
pub mod known_links;
mod parts;

pub use parts::{BatchLinks, Counts, Had, HostRows, JobChanges, KeptBody, LinkGraph, Unread};

use crate::connectors::web::LINK;
use crate::job::{JobWork, LinkOrigin};
use known_links::{KnownLinks, as_requisite};
use page::ids::DocHash;
use std::collections::HashSet;
use std::collections::hash_map::Entry;
use store::chunkfile::document::{Change, DocumentRecord, DocumentRole};
use store::ids::{IdMaker, JobId, Part, QueueId};
use store::tables::carrydown::{Data, limited};
use store::tables::documents::Document;
use store::tables::history::Activity;
use store::tables::hops::Leads;
use store::tables::queue::{self, Candidate, ReasonCode, RoleChange, SettledDocument, Settlement};
use store::tables::removals::Presence;

/// Bytes that the facts and bodies of a batch may take before it is committed.
const BYTES_MAX: usize = 32 << 20;
/// Links that a batch may name before it is committed.
const LINKS_MAX: usize = 50_000;
/// Bytes that it takes to say where a link leads, about.
const LEAD_BYTES: usize = 100;

/// Everything that a commit will write.
#[derive(Default)]
pub struct Batch {
    /// Where each document goes.
    pub settled: Vec<SettledDocument>,
    /// What is known of them now.
    pub documents: Vec<Document>,
    /// Those of them that are as they are stored but for what a look notes.
    pub looks: HashSet<DocHash>,
    /// The chunk's records, which outputs hear of.
    pub records: Vec<DocumentRecord>,
    pub bodies: Vec<KeptBody>,
    pub links: BatchLinks,
    pub graph: LinkGraph,
    pub hosts: HostRows,
    pub job: JobChanges,
    pub history: Vec<Activity>,
    pub counts: Counts,
    /// When the first document was finished.
    pub first_ms: Option<i64>,
    /// When a document of it falls due again.
    pub due_ms: Option<i64>,
    /// Documents that were swept, and so never waited in the frontier.
    pub swept: usize,
    bytes_held: usize,
}

/// For which job links are named, and which need not be.
#[derive(Clone, Copy)]
pub struct LinkContext<'a> {
    pub job: &'a JobWork,
    pub ids: &'a IdMaker,
    /// Links that are queued already.
    pub known: &'a KnownLinks,
}

impl Batch {
    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty()
    }

    /// Whether it should be committed without waiting for more.
    pub fn is_full(&self, documents_max: usize) -> bool {
        self.settled.len() >= documents_max
            || self.bytes_held >= BYTES_MAX
            || self.links.named.len() >= LINKS_MAX
    }

    /// Settles a document that was claimed: it is looked at, or was, and goes where it goes.
    pub fn settle(&mut self, entry: &queue::Entry, to: Settlement, now_ms: i64) {
        if let Settlement::Retry { check_ms, .. } | Settlement::Again { check_ms, .. } = &to {
            self.due_ms = Some(self.due_ms.map_or(*check_ms, |due_ms| due_ms.min(*check_ms)));
        }
        self.first_ms.get_or_insert(now_ms);
        if entry.unlinked {
            self.job.roles.insert(entry.id, RoleChange::Unlinked);
        }
        self.settled.push(SettledDocument { id: entry.id, generation: entry.generation + 1, to });
    }

    /// Takes note of what a document is to the job.
    pub fn note_role(&mut self, entry: &queue::Entry) {
        if entry.role.is_requisite() {
            self.job.requisites.insert(entry.dochash);
        }
    }

    /// A document was not asked for after all: it is as it was.
    pub fn put_back(&mut self, entry: &queue::Entry, now_ms: i64) {
        self.first_ms.get_or_insert(now_ms);
        let to = Settlement::Back { failcount: entry.failcount, failtime: entry.failtime };
        self.settled.push(SettledDocument { id: entry.id, generation: entry.generation, to });
    }

    /// Takes a link in, unless it is known to be queued, or named already.
    pub fn link(&mut self, at: LinkContext<'_>, url: String, dochash: DocHash, found: LinkOrigin) {
        let job = at.job;
        // What pages need is as far as they are, and counts for no distance.
        let counts = job.hops.is_some() && found.role == DocumentRole::Page;
        if let (true, Some((_, parent))) = (counts, found.parent) {
            let target = (dochash, job.address(&url).part);
            let leads = self.graph.leads.entry(parent).or_default();
            leads.entry(found.link.to_owned()).or_default().insert(target);
            self.bytes_held += LEAD_BYTES;
        }
        let (key, nearness) = named_as(dochash, found.role, found.hops, found.levels);
        if at.known.has(job.id, key, nearness) {
            return;
        }
        // What a budget cuts, a better page may name a moment later.
        let nearness = if is_closed(found.cut) { i64::MAX } else { nearness };
        match self.links.named.entry(key) {
            Entry::Occupied(named) if *named.get() <= nearness => return,
            Entry::Occupied(mut named) => *named.get_mut() = nearness,
            Entry::Vacant(named) => {
                named.insert(nearness);
            }
        }
        let (part, candidate) = job.candidate(QueueId(at.ids.next()), url, found);
        self.bytes_held += candidate.docid.len() + 200;
        self.links.by_part.entry(part).or_default().push(candidate);
    }

    /// Takes in what an origin's robots.txt lists now; what it listed before is no more.
    pub fn list(&mut self, at: LinkContext<'_>, origin: &str, urls: Vec<String>) {
        let mut leads = Leads::new();
        for url in urls {
            let dochash = DocHash::of(&url);
            leads.entry(LINK.to_owned()).or_default().insert((dochash, at.job.address(&url).part));
            let found = LinkOrigin { hops: 1, list_depth: 1, ..LinkOrigin::default() };
            self.link(at, url, dochash, found);
        }
        if at.job.hops.is_some() {
            // No document has this name, not even robots.txt where it is one.
            self.graph.lists.insert(DocHash::of(&format!("robots.txt of {origin}")), leads);
        }
    }

    /// A document says where it leads and what it hands to others: nothing, but for what comes
    /// after this.
    pub fn clear_references(&mut self, job: &JobWork, dochash: DocHash) {
        self.clear_leads(job, dochash);
        if job.carries {
            self.graph.hands.insert(dochash, Default::default());
        }
    }

    /// A document says where it leads: nowhere, but for what is named after this.
    pub fn clear_leads(&mut self, job: &JobWork, dochash: DocHash) {
        if job.hops.is_some() {
            self.graph.leads.insert(dochash, Leads::new());
        }
    }

    /// A document hands something to one that it leads to, in a part.
    pub fn hand(&mut self, parent: DocHash, part: Part, child: DocHash, data: Data) {
        self.bytes_held += data.values().flatten().map(String::len).sum::<usize>() + LEAD_BYTES;
        let hands = self.graph.hands.entry(parent).or_default();
        let handed = hands.entry((part, child)).or_default();
        for (name, values) in limited(data) {
            handed.entry(name).or_default().extend(values);
        }
    }

    /// Takes a document's row in, as it is now; `known` is what is stored of it.
    pub fn document(&mut self, known: &Document, document: Document) {
        if document.differs_by_a_look(known) {
            self.looks.insert(document.dochash);
        } else {
            self.looks.remove(&document.dochash);
        }
        self.documents.push(document);
    }

    /// Takes a record of a change in, and counts it.
    pub fn record(&mut self, record: DocumentRecord) {
        match record.change {
            Change::Add => self.counts.adds += 1,
            Change::Update => self.counts.updates += 1,
            Change::Remove(_) => self.counts.removes += 1,
            Change::Keep => self.counts.keeps += 1,
            Change::NoContent => {}
        }
        if let Some(facts) = &record.facts {
            self.bytes_held += facts.text.len() + 100 * facts.links.len();
        }
        self.records.push(record);
    }

    /// Takes the bytes of the last record in.
    pub fn body(&mut self, body: KeptBody) {
        self.bytes_held += body.body.len();
        self.bodies.push(body);
    }

    /// Whether a removal is marked, and not carried out yet.
    pub fn marks_removals(&self) -> bool {
        self.job.presences.values().any(|it| matches!(it, Presence::Leaving(_)))
    }

    /// Documents of which it says more than that they go back as they were.
    pub fn with_contents(&self) -> impl Iterator<Item = QueueId> {
        let is_back = |it: &&SettledDocument| matches!(it.to, Settlement::Back { .. });
        self.settled.iter().filter(move |it| !is_back(it)).map(|it| it.id)
    }

    /// How many documents something is said of.
    pub fn len(&self) -> usize {
        self.settled.len()
    }

    /// How many of them the frontier counts as claimed.
    pub fn claimed(&self) -> usize {
        self.settled.len() - self.swept
    }

    /// Every link that this batch queues, once its commit is done; but what a budget
    /// cuts is judged anew each time.
    pub fn remember(&self, job: JobId, known: &KnownLinks) {
        let candidates = self.links.by_part.values().flatten();
        for candidate in candidates.filter(|it| !is_closed(it.cut)) {
            let Candidate { dochash, role, hops, levels, .. } = *candidate;
            let (key, nearness) = named_as(dochash, role, hops, levels);
            known.remember(job, key, nearness);
        }
        for dochash in &self.job.gone {
            known.forget(job, *dochash);
            known.forget(job, as_requisite(*dochash));
        }
    }
}

/// What a document that is named is remembered by, and how near: to a seed as a page, to a page as
/// a requisite.
fn named_as(dochash: DocHash, role: DocumentRole, hops: i64, levels: i64) -> (DocHash, i64) {
    match role {
        DocumentRole::Page => (dochash, hops),
        DocumentRole::Requisite => (as_requisite(dochash), levels),
    }
}

fn is_closed(cut: Option<ReasonCode>) -> bool {
    cut == Some(ReasonCode::Budget)
}

#[cfg(test)]
mod tests {
    use super::fixture::entry;
    use super::*;
    use store::tables::queue::Action;

    #[test]
    fn a_batch_waits_since_its_first_document_and_for_the_earliest_that_falls_due() {
        let mut batch = Batch::default();
        assert!(batch.is_empty() && !batch.is_full(1));
        batch.put_back(&entry(1), 500);
        for check_ms in [9_000, 7_000, 8_000] {
            let to = Settlement::Again { check_ms, action: Action::Fetch };
            batch.settle(&entry(check_ms), to, 900);
        }
        assert_eq!((batch.first_ms, batch.due_ms), (Some(500), Some(7_000)));
        assert_eq!((batch.len(), batch.with_contents().count()), (4, 3), "one only goes back");
        assert_eq!(batch.settled.iter().map(|it| it.generation).collect::<Vec<_>>(), [1, 2, 2, 2]);
        assert!(batch.is_full(4) && !batch.is_full(5));
        batch.swept = 1;
        assert_eq!(batch.claimed(), 3);
    }
}
