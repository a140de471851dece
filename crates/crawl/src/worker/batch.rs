//! What has come of the documents of the open chunk so far: everything its commit
//! will write, collected in memory.
//!
//! Invariants: bounded in documents and bytes by whoever decides when to commit
//! ([`Batch::is_full`]); a document is in it once; nothing of it is visible to
//! anybody before the commit.

use super::job::JobWork;
use crate::budget::Closed;
use crate::carrydown::Hands;
use crate::connectors::web::LINK;
use crate::fetch::HeaderMap;
use bytes::Bytes;
use page::ids::DocHash;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use store::chunkfile::document::{Change, DocumentRecord, RemoveReason};
use store::ids::{BinId, ChunkId, IdMaker, JobId, Part, QueueId};
use store::tables::bins::Visit;
use store::tables::carrydown::{Data, limited};
use store::tables::documents::Document;
use store::tables::history::Activity;
use store::tables::hops::Leads;
use store::tables::queue::{Candidate, Settled, Settlement};
use store::tables::removals::Presence;
use store::tables::robots::Stored;
use store::tables::traps::TrapRow;

use super::job::Found;
use super::known::KnownLinks;

/// Bytes that the facts and bodies of a batch may take before it is committed.
const BYTES_MAX: usize = 32 << 20;
/// Links that a batch may name before it is committed.
const LINKS_MAX: usize = 50_000;
/// Bytes that it takes to say where a link leads, about.
const LEAD_BYTES: usize = 100;

/// A document whose bytes are kept.
pub struct KeptBody {
    /// Which record it belongs to.
    pub record: usize,
    /// Where it came from.
    pub url: String,
    /// When it was had.
    pub date_ms: i64,
    /// How it was had.
    pub had: Had,
    /// The body.
    pub body: Bytes,
    /// Whether a limit cut it.
    pub truncated: bool,
}

/// How the bytes of a document were had.
pub enum Had {
    /// As an answer from the web.
    Answer {
        /// Who answered.
        ip: IpAddr,
        /// The status.
        status: u16,
        /// The headers.
        headers: HeaderMap,
    },
    /// As they are, of this media type.
    Whole(String),
}

/// A document that was not read this time, and where its links are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Its identifier.
    pub docid: String,
    /// Its key.
    pub dochash: DocHash,
    /// How far it is from a seed.
    pub hops: i64,
    /// The chunk with its facts, and its place there.
    pub facts: (ChunkId, i64),
}

/// What the documents of a chunk came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counts {
    pub adds: i64,
    pub updates: i64,
    pub removes: i64,
    pub keeps: i64,
    pub errors: i64,
    pub bytes: i64,
}

/// Everything that a commit will write.
#[derive(Default)]
pub struct Batch {
    /// Where each document goes.
    pub settled: Vec<Settled>,
    /// What is known of them now.
    pub documents: Vec<Document>,
    /// Those of them that are as they are stored but for what a look notes.
    pub looks: HashSet<DocHash>,
    /// What outputs hear.
    pub records: Vec<DocumentRecord>,
    /// Bytes to keep.
    pub bodies: Vec<KeptBody>,
    /// Links found, by part.
    pub links: BTreeMap<Part, Vec<Candidate>>,
    /// What was done.
    pub history: Vec<Activity>,
    /// What it did to hosts.
    pub visits: BTreeMap<BinId, Visit>,
    /// What robots.txt said.
    pub robots: Vec<Stored>,
    /// Where hosts were found.
    pub addresses: BTreeMap<String, String>,
    /// What was counted of patterns that may be traps.
    pub traps: Vec<TrapRow>,
    /// Counts.
    pub counts: Counts,
    /// When the first document was finished.
    pub first_ms: Option<i64>,
    /// When a document of it falls due again.
    pub due_ms: Option<i64>,
    /// Documents that say what they said before: their links are taken from the store.
    pub unread: Vec<Unread>,
    /// Documents that leave the job, and that another job keeps.
    pub left: Vec<DocHash>,
    /// Documents that leave their job: whoever names them again, queues them again.
    pub gone: Vec<DocHash>,
    /// Where documents lead, of jobs that count hops; of what was not read, nothing.
    pub leads: HashMap<DocHash, Leads>,
    /// The same of what is no document and is there from the beginning: robots.txt.
    pub lists: HashMap<DocHash, Leads>,
    /// What documents hand to those they lead to, of jobs whose connector does so.
    pub hands: HashMap<DocHash, Hands>,
    /// Documents that go back to wait for an event.
    pub waits: Vec<(QueueId, String)>,
    /// Documents that were seeds, and are none any more.
    pub no_seeds: Vec<DocHash>,
    /// Documents that outputs do not hear of: they only lead to others.
    pub unlisted: HashSet<DocHash>,
    /// Documents that were swept, and so never waited in the frontier.
    pub swept: usize,
    /// What the job has of the documents that are settled.
    pub presences: HashMap<QueueId, Presence>,
    /// Documents that the job loses without an approval, by cause.
    pub lost: BTreeMap<RemoveReason, i64>,
    named: HashMap<DocHash, i64>,
    bytes_held: usize,
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
            || self.named.len() >= LINKS_MAX
    }

    /// Takes a link in, unless it is known to be queued, or named already.
    pub fn link(
        &mut self,
        (job, ids, known): (&JobWork, &IdMaker, &KnownLinks),
        (url, dochash): (String, DocHash),
        found: Found,
    ) {
        if let (true, Some((_, parent))) = (job.hops.is_some(), found.parent) {
            let target = (dochash, job.address(&url).part);
            let leads = self.leads.entry(parent).or_default();
            leads.entry(found.link.to_owned()).or_default().insert(target);
            self.bytes_held += LEAD_BYTES;
        }
        if known.has(job.id, dochash, found.hops) {
            return;
        }
        // What a budget cuts, a better page may name a moment later.
        let nearness = if is_closed(found.cut) { i64::MAX } else { found.hops };
        match self.named.entry(dochash) {
            Entry::Occupied(named) if *named.get() <= nearness => return,
            Entry::Occupied(mut named) => *named.get_mut() = nearness,
            Entry::Vacant(named) => {
                named.insert(nearness);
            }
        }
        let (part, candidate) = job.candidate(QueueId(ids.next()), url, found);
        self.bytes_held += candidate.docid.len() + 200;
        self.links.entry(part).or_default().push(candidate);
    }

    /// Takes in what an origin's robots.txt lists now; what it listed before is no more.
    pub fn list(
        &mut self,
        (job, ids, known): (&JobWork, &IdMaker, &KnownLinks),
        origin: &str,
        urls: Vec<String>,
    ) {
        let mut leads = Leads::new();
        for url in urls {
            let dochash = DocHash::of(&url);
            leads.entry(LINK.to_owned()).or_default().insert((dochash, job.address(&url).part));
            let found = Found { hops: 1, list_depth: 1, ..Found::default() };
            self.link((job, ids, known), (url, dochash), found);
        }
        if job.hops.is_some() {
            // No document has this name, not even robots.txt where it is one.
            self.lists.insert(DocHash::of(&format!("robots.txt of {origin}")), leads);
        }
    }

    /// A document says where it leads: nowhere, but for what is named after this.
    pub fn leads_anew(&mut self, job: &JobWork, dochash: DocHash) {
        if job.hops.is_some() {
            self.leads.insert(dochash, Leads::new());
        }
    }

    /// A document says what it hands to others: nothing, but for what comes after this.
    pub fn hands_anew(&mut self, job: &JobWork, dochash: DocHash) {
        if job.carries {
            self.hands.insert(dochash, Hands::new());
        }
    }

    /// A document hands something to another.
    pub fn hand(&mut self, parent: DocHash, child: (Part, DocHash), data: Data) {
        self.bytes_held += data.values().flatten().map(String::len).sum::<usize>() + LEAD_BYTES;
        let handed = self.hands.entry(parent).or_default().entry(child).or_default();
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

    /// Whether a removal is marked, and not carried out yet.
    pub fn marks(&self) -> bool {
        self.presences.values().any(|it| matches!(it, Presence::Leaving(_)))
    }

    /// Takes the bytes of the last record in.
    pub fn body(&mut self, body: KeptBody) {
        self.bytes_held += body.body.len();
        self.bodies.push(body);
    }

    /// Documents of which it says more than that they go back as they were.
    pub fn with_contents(&self) -> impl Iterator<Item = QueueId> {
        let is_back = |it: &&Settled| matches!(it.to, Settlement::Back { .. });
        self.settled.iter().filter(move |it| !is_back(it)).map(|it| it.id)
    }

    /// Documents that something is said of.
    pub fn documents(&self) -> usize {
        self.settled.len()
    }

    /// Those of them that the frontier counts as claimed.
    pub fn claimed(&self) -> usize {
        self.settled.len() - self.swept
    }

    /// Every link that this batch queues, once its commit is done; but what a budget
    /// cuts is judged anew each time.
    pub fn remember(&self, job: JobId, known: &KnownLinks) {
        for candidate in self.links.values().flatten().filter(|it| !is_closed(it.cut)) {
            known.remember(job, candidate.dochash, candidate.hops);
        }
        for dochash in &self.gone {
            known.forget(job, *dochash);
        }
    }
}

fn is_closed(cut: Option<&str>) -> bool {
    cut == Some(Closed::CODE)
}
