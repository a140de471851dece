//! What a batch consists of, by whom it is about: links, other documents, hosts, the job.

use crate::carrydown::Hands;
use crate::fetch::HeaderMap;
use bytes::Bytes;
use page::ids::DocHash;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use store::chunkfile::document::RemoveReason;
use store::ids::{BinId, ChunkId, Part, QueueId};
use store::tables::bins::Visit;
use store::tables::hops::Leads;
use store::tables::queue::{Candidate, RoleChange, Standing};
use store::tables::removals::Presence;
use store::tables::robots::StoredRobots;
use store::tables::traps::TrapRow;

/// A document whose bytes are kept.
pub struct KeptBody {
    /// Which record it belongs to.
    pub record: usize,
    pub url: String,
    /// When it was had.
    pub date_ms: i64,
    pub had: Had,
    pub body: Bytes,
    /// Whether a limit cut it.
    pub truncated: bool,
}

/// How the bytes of a document were had.
pub enum Had {
    /// As an answer from the web.
    Answer { ip: IpAddr, status: u16, headers: HeaderMap },
    /// As they are, of this media type.
    Whole(String),
}

/// A document that was not read this time, and where its links are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub docid: String,
    pub dochash: DocHash,
    /// Where it stands among the documents of its job.
    pub standing: Standing,
    /// The chunk with its facts, and its place there.
    pub facts: (ChunkId, i64),
}

/// What the documents of a chunk came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub adds: i64,
    pub updates: i64,
    pub removes: i64,
    pub keeps: i64,
    pub errors: i64,
    pub bytes: i64,
}

/// Links that documents name.
#[derive(Default)]
pub struct BatchLinks {
    /// What joins the queue, by its part.
    pub by_part: BTreeMap<Part, Vec<Candidate>>,
    /// Documents that say what they said before: their links are taken from the store.
    pub unread: Vec<Unread>,
    /// How near to a seed each was named.
    pub(super) named: HashMap<DocHash, i64>,
}

/// What documents say to those they lead to.
#[derive(Default)]
pub struct LinkGraph {
    /// Where documents lead, of jobs that count hops; of what was not read, nothing.
    pub leads: HashMap<DocHash, Leads>,
    /// The same of what is no document and is there from the beginning: robots.txt.
    pub lists: HashMap<DocHash, Leads>,
    /// What documents hand to those they lead to, of jobs whose connector does so.
    pub hands: HashMap<DocHash, Hands>,
    /// Documents that were seeds, and are none any more.
    pub no_seeds: Vec<DocHash>,
}

/// What is written of hosts.
#[derive(Default)]
pub struct HostRows {
    /// The requests to each.
    pub visits: BTreeMap<BinId, Visit>,
    pub robots: Vec<StoredRobots>,
    /// The address that each was found at.
    pub addresses: BTreeMap<String, String>,
    /// What was counted of patterns that may be traps.
    pub traps: Vec<TrapRow>,
}

impl HostRows {
    /// Adds a visit to those of its host; what it says of the host itself is the newest.
    pub fn book(&mut self, visit: Visit) {
        let visit = match self.visits.remove(&visit.bin) {
            None => visit,
            Some(before) => Visit {
                fetches: before.fetches + visit.fetches,
                errors: before.errors + visit.errors,
                bytes: before.bytes + visit.bytes,
                busy_ms: before.busy_ms + visit.busy_ms,
                ..visit
            },
        };
        self.visits.insert(visit.bin, visit);
    }
}

/// What changes for the job beside its queue.
#[derive(Default)]
pub struct JobChanges {
    /// What it has of the documents that are settled.
    pub presences: HashMap<QueueId, Presence>,
    /// Documents that it loses without an approval, by cause.
    pub lost: BTreeMap<RemoveReason, i64>,
    /// Documents that leave it, and that another job keeps.
    pub kept_by_others: Vec<DocHash>,
    /// Documents that leave it: whoever names them again, queues them again.
    pub gone: Vec<DocHash>,
    /// Documents that outputs do not hear of: they only lead to others.
    pub unlisted: HashSet<DocHash>,
    /// Documents that the job has as requisites: only outputs that take such hear of them.
    pub requisites: HashSet<DocHash>,
    /// Documents whose role changes.
    pub roles: HashMap<QueueId, RoleChange>,
    /// Documents that go back to wait for an event.
    pub waits: Vec<(QueueId, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_of_a_host_add_up_and_its_last_state_counts() {
        let visit = |fetches, next_ms| Visit {
            bin: BinId(1),
            next_ms,
            delay_ms: None,
            failures: 0,
            blocked_ms: None,
            blocked_by: None,
            fetches,
            errors: 1,
            bytes: 10,
            busy_ms: 3,
        };
        let mut rows = HostRows::default();
        rows.book(visit(1, 500));
        rows.book(visit(0, 900));
        let booked = &rows.visits[&BinId(1)];
        assert_eq!((booked.fetches, booked.errors, booked.bytes, booked.busy_ms), (1, 2, 20, 6));
        assert_eq!(booked.next_ms, 900);
    }
}
