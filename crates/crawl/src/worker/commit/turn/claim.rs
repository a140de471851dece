//! What a turn claims, with what is known of it; and what one has claimed whose outcome is not
//! known.
//!
//! Invariant: a bin is unmarked only when nothing of it is left to be claimed, as it was marked
//! when that was looked at.

use super::{Turn, TurnDone};
use crate::frontier::DocumentDemand;
use crate::worker::ask::tasks::ClaimedDocument;
use page::ids::DocHash;
use std::collections::{HashMap, HashSet};
use store::ids::{QueueId, Run};
use store::tables::bins::{self, MarkedBin};
use store::tables::documents::{self, Document};
use store::tables::job_states::RunKind;
use store::tables::queue::sweep;
use store::tables::queue::{self, Action, Entry};
use store::tables::{carrydown, chunks, leases};
use store::{Error, Result, Tx};

/// Documents that can be active in one chunk.
const ACTIVE_MAX: u32 = 10_000;

/// What came of a want.
pub struct ClaimDone {
    pub want: DocumentDemand,
    pub documents: Vec<ClaimedDocument>,
    /// There are no more.
    pub is_exhausted: bool,
}

impl Turn {
    pub(super) fn claim(
        &self,
        tx: &mut Tx<'_>,
        want: DocumentDemand,
        done: &mut TurnDone,
    ) -> Result<()> {
        let (place, part, bin) = (self.place(), self.lease.part, want.host.bin);
        // Before the documents are looked at: whatever is queued after raises it.
        let mark = bins::mark(tx, part, self.job.id, bin)?;
        let limit = u32::try_from(want.documents).unwrap_or(u32::MAX);
        let mut peeked = match mark {
            0 => Vec::new(),
            _ => queue::peek_ready(tx, place, bin, limit)?,
        };
        let left = limit - u32::try_from(peeked.len()).unwrap_or(limit);
        if left > 0 && self.job.run.0 > 1 && self.job.kind == RunKind::Incremental {
            peeked.extend(queue::peek_older(tx, place, bin, self.job.run, left)?);
        }
        let mut is_exhausted = peeked.len() < want.documents;
        let count = peeked.len();
        let claimed = if peeked.is_empty() {
            peeked
        } else {
            self.open_next(tx, done)?;
            queue::claim(tx, place, self.open.claim, peeked)?
        };
        if claimed.len() < count {
            // Another job has them just now; a later look finds them again.
            is_exhausted = true;
        } else if is_exhausted && mark > 0 && !queue::is_held_back(tx, place, bin)? {
            is_exhausted = bins::unmark(tx, part, MarkedBin { job: self.job.id, bin, mark })?;
        }
        let documents = self.with_documents(tx, claimed)?;
        done.claimed.push(ClaimDone { want, documents, is_exhausted });
        Ok(())
    }

    /// Documents of the queue with what is known of them.
    pub(super) fn with_documents(
        &self,
        tx: &mut Tx<'_>,
        entries: Vec<Entry>,
    ) -> Result<Vec<ClaimedDocument>> {
        let keys: Vec<DocHash> = entries.iter().map(|entry| entry.dochash).collect();
        let known = documents::load(tx, self.lease.part, self.job.connection, &keys)?;
        let mut known: HashMap<DocHash, Document> =
            known.into_iter().map(|document| (document.dochash, document)).collect();
        for entry in &entries {
            if let Some(document) = known.remove(&entry.dochash) {
                let document = document.if_damaged_anew(&entry.docid, self.now_ms);
                known.insert(entry.dochash, document);
            }
        }
        let ends = entries.iter().filter(|entry| entry.action == Action::Expire);
        let ends: Vec<DocHash> = ends.map(|entry| entry.dochash).collect();
        if !ends.is_empty() {
            // What another job keeps ends for this one only.
            let shared = sweep::shared(tx, self.place(), self.job.connection, &ends)?;
            known.retain(|dochash, _| !shared.contains_key(dochash));
        }
        let token = self.lease.token;
        let mut far: HashMap<DocHash, String> = match &self.job.hops {
            Some(rules) => rules.too_far_among(tx, self.place(), &keys)?.into_iter().collect(),
            None => HashMap::new(),
        };
        let mut data = match self.job.carries {
            true => carrydown::data(tx, self.place(), &keys)?,
            false => HashMap::new(),
        };
        let with = |mut entry: Entry| {
            let known = known.remove(&entry.dochash).map(Box::new);
            let mut too_far = far.remove(&entry.dochash);
            if too_far.is_some() && self.needs(&entry) {
                // Distances are those of links: pages need it however far it is.
                entry.unlinked |= !entry.role.is_requisite();
                too_far = None;
            }
            let data = data.remove(&entry.dochash).unwrap_or_default();
            ClaimedDocument { entry, known, token, too_far, data }
        };
        Ok(entries.into_iter().map(with).collect())
    }

    /// Whether the job needs a document as a requisite, as far as this run has found out.
    fn needs(&self, entry: &Entry) -> bool {
        let since = if self.job.kind == RunKind::Full { self.job.run } else { Run(0) };
        entry.role.is_requisite() || entry.needed_run.is_some_and(|run| run >= since)
    }

    /// Looks whether the turn has already happened; if so, takes in what it claimed.
    pub(super) fn recover(&self, tx: &mut Tx<'_>, done: &mut TurnDone) -> Result<bool> {
        leases::fence(tx, &self.lease)?;
        let part = self.lease.part;
        let is_committed = match &self.commit {
            Some(commit) => chunks::is_committed(tx, part, commit.chunk.id)?,
            None => false,
        };
        let mut held: HashSet<QueueId> = self.active.iter().copied().collect();
        if let (false, Some(commit)) = (is_committed, &self.commit) {
            held.extend(commit.batch.settled.iter().map(|it| it.id));
        }
        let mut entries = queue::active_in(tx, self.place(), self.open.claim, ACTIVE_MAX)?;
        entries.retain(|entry| !held.contains(&entry.id));
        // It may be open though nothing could be claimed into it.
        done.is_open = chunks::is_open(tx, part, self.open.id)?;
        if !is_committed && entries.is_empty() {
            return Ok(false);
        }
        for want in &self.wants {
            let (mine, rest): (Vec<Entry>, Vec<Entry>) =
                entries.into_iter().partition(|entry| entry.bin == want.host.bin);
            entries = rest;
            let documents = self.with_documents(tx, mine)?;
            done.claimed.push(ClaimDone { want: *want, documents, is_exhausted: false });
        }
        if let Some(sweep) = self.sweep {
            // What no want has asked for was swept.
            done.swept = self.with_sharing(tx, sweep, std::mem::take(&mut entries))?;
        }
        if entries.is_empty() {
            return Ok(true);
        }
        Err(Error::Refused(format!("chunk {} holds documents nobody asked for", self.open.id)))
    }
}
