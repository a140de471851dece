//! Decides on the documents of a batch, for every output that may have them.
//!
//! A document belongs to its connection; several jobs may hold it, and each may send it to
//! outputs. Which of them do is looked up for each document in the queue of its part, in
//! the transaction of the commit. Invariants: what an output has of a document is what
//! some job now sends there; a job decides for its own outputs, those it had, and, when the
//! source says that a document is gone, for those of the jobs that hold it too.

use super::{DecisionContext, IngestCommit, Offer, RowChange, SentDocument, decide};
use crate::batch::Batch;
use crate::compare::is_live;
use crate::job::JobWork;
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use store::chunkfile::document::{Change, DocumentRecord, DocumentRole, RemoveReason};
use store::ids::{ConnectionId, JobId};
use store::tables::documents::{self, Document};
use store::tables::ingests::{self, Ingest, Move};
use store::tables::outlets::{self, Outlet, Route};
use store::tables::queue::sweep;
use store::{Result, Tx};

/// How a document of a batch stands after it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DocumentState {
    There {
        uri: String,
        version: String,
        /// Whether this job holds it, and outputs hear of it.
        sent: bool,
    },
    /// Its source says that it is not there any more.
    Gone,
    /// This job has removed it by a rule of its own, which is not one of other jobs.
    Dropped,
}

/// The documents of a batch, and the other jobs that hold them.
struct BatchDocuments<'a> {
    stands: BTreeMap<DocHash, DocumentState>,
    /// Each with what the document is to it.
    holders: HashMap<DocHash, Vec<(JobId, DocumentRole)>>,
    /// Those that are requisites of this job.
    requisites: &'a HashSet<DocHash>,
    /// Outlets of the jobs that hold some of them.
    siblings: BTreeMap<JobId, Vec<Outlet>>,
}

/// Decides on all documents of a batch.
pub fn commit(tx: &mut Tx<'_>, at: IngestCommit<'_>, job: &JobWork, batch: &Batch) -> Result<()> {
    if job.outlets.is_empty() && !job.has_siblings {
        return Ok(());
    }
    // Only what is gone concerns the outputs of other jobs.
    let is_concerned = |it: &DocumentRecord| !job.outlets.is_empty() || is_gone(it);
    let mut stands = stands(job, batch, is_concerned);
    if !job.outlets.is_empty() {
        stands.extend(left(tx, at, job, batch)?);
    }
    if stands.is_empty() {
        return Ok(());
    }
    let standing = BatchDocuments::new(tx, at, job, stands, &batch.job.requisites)?;
    for outlet in &job.outlets {
        standing.decide_own(tx, at, job, outlet)?;
    }
    standing.decide_others(tx, at, job)
}

/// How the documents stand that the batch has records of.
fn stands(
    job: &JobWork,
    batch: &Batch,
    is_concerned: impl Fn(&DocumentRecord) -> bool,
) -> BTreeMap<DocHash, DocumentState> {
    let documents: HashMap<DocHash, &Document> =
        batch.documents.iter().map(|document| (document.dochash, document)).collect();
    let mut stands = BTreeMap::new();
    for record in batch.records.iter().filter(|it| is_concerned(it)) {
        let stand = match record.change {
            // Outputs never had it.
            Change::NoContent => continue,
            Change::Remove(_) if is_gone(record) => DocumentState::Gone,
            Change::Remove(_) => DocumentState::Dropped,
            Change::Add | Change::Update | Change::Keep => DocumentState::There {
                uri: job.uri(&record.docid),
                version: documents.get(&record.dochash).map_or_else(String::new, |it| version(it)),
                sent: !batch.job.unlisted.contains(&record.dochash),
            },
        };
        stands.insert(record.dochash, stand);
    }
    stands
}

/// How the documents stand that leave the job, and that another job keeps.
fn left(
    tx: &mut Tx<'_>,
    at: IngestCommit<'_>,
    job: &JobWork,
    batch: &Batch,
) -> Result<Vec<(DocHash, DocumentState)>> {
    if batch.job.kept_by_others.is_empty() {
        return Ok(Vec::new());
    }
    let found = documents::load(tx, at.part, job.connection, &batch.job.kept_by_others)?;
    let known: HashMap<DocHash, Document> =
        found.into_iter().map(|document| (document.dochash, document)).collect();
    let stand = |dochash: &DocHash| match known.get(dochash).filter(|it| is_live(it)) {
        Some(it) => DocumentState::There {
            uri: job.uri(&it.docid),
            version: version(it),
            sent: batch.job.requisites.contains(dochash),
        },
        None => DocumentState::Gone,
    };
    Ok(batch.job.kept_by_others.iter().map(|dochash| (*dochash, stand(dochash))).collect())
}

/// What outputs know the version of a document by; empty if nobody knows it. One that becomes a
/// requisite, or a page, is another.
fn version(document: &Document) -> String {
    let hash = document.content_hash.as_deref().and_then(|it| <[u8; 16]>::try_from(it).ok());
    let version = hash.map(|it| DocHash(it).to_hex()).unwrap_or_default();
    match document.role {
        DocumentRole::Requisite if !version.is_empty() => format!("{version} requisite"),
        _ => version,
    }
}

/// Whether a document is removed by its source's word, which holds for every job.
fn is_gone(record: &DocumentRecord) -> bool {
    use RemoveReason::{Gone, Redirected, Robots};
    matches!(record.change, Change::Remove(Gone | Redirected | Robots))
}

impl<'a> BatchDocuments<'a> {
    fn new(
        tx: &mut Tx<'_>,
        at: IngestCommit<'_>,
        job: &JobWork,
        stands: BTreeMap<DocHash, DocumentState>,
        requisites: &'a HashSet<DocHash>,
    ) -> Result<BatchDocuments<'a>> {
        let (mut holders, mut siblings) = (HashMap::<_, Vec<_>>::new(), BTreeMap::new());
        if job.has_siblings {
            let keys: Vec<DocHash> = stands.keys().copied().collect();
            let held = sweep::holdings(tx, job.place(at.part), job.connection, &keys)?;
            for it in held.into_iter().filter(|it| !job.only_leads(it.hops)) {
                holders.entry(it.dochash).or_default().push((it.job, it.role));
                siblings.insert(it.job, Vec::new());
            }
            for (sibling, outlets) in &mut siblings {
                *outlets = outlets::of_job(tx, *sibling)?;
            }
        }
        Ok(BatchDocuments { stands, holders, requisites, siblings })
    }

    /// The ways of other jobs that hold a document to an output.
    fn other_ways(
        &self,
        dochash: DocHash,
        output: ConnectionId,
    ) -> impl Iterator<Item = (JobId, &Outlet)> {
        let holders = self.holders.get(&dochash).into_iter().flatten();
        holders.filter_map(move |(holder, role)| {
            let outlets = self.siblings.get(holder)?;
            let way = outlets.iter().find(|it| it.connection == output && !it.former)?;
            takes(way, *role).then_some((*holder, way))
        })
    }

    /// Decides for an output that the job sends to, or has sent to.
    fn decide_own(
        &self,
        tx: &mut Tx<'_>,
        at: IngestCommit<'_>,
        job: &JobWork,
        outlet: &Outlet,
    ) -> Result<()> {
        let authority = job.authority.as_deref();
        // The same jobs send nearly all documents.
        let mut routes: BTreeMap<Vec<JobId>, Option<Route>> = BTreeMap::new();
        let mut ways: Vec<(DocHash, Vec<JobId>)> = Vec::with_capacity(self.stands.len());
        for (dochash, stand) in &self.stands {
            let mut found: Vec<(JobId, &Outlet)> =
                self.other_ways(*dochash, outlet.connection).collect();
            let role = DocumentRole::of_requisite(self.requisites.contains(dochash));
            let is_sent = matches!(stand, DocumentState::There { sent: true, .. });
            if is_sent && !outlet.former && takes(outlet, role) {
                found.push((job.id, outlet));
            }
            let mut jobs: Vec<JobId> = found.iter().map(|it| it.0).collect();
            jobs.sort_unstable();
            routes.entry(jobs.clone()).or_insert_with(|| Route::new(found));
            ways.push((*dochash, jobs));
        }
        let mut offers = Vec::with_capacity(ways.len());
        for (dochash, jobs) in &ways {
            let route = routes.get(jobs).and_then(Option::as_ref);
            let offer = match (&self.stands[dochash], route) {
                (DocumentState::There { uri, version, .. }, Some(route)) => {
                    Offer::There(SentDocument { uri, version, authority, route })
                }
                // It is others' now.
                (DocumentState::Dropped, Some(_)) => continue,
                _ => Offer::Gone,
            };
            offers.push((*dochash, offer));
        }
        decide_all(tx, at, job, outlet.connection, &offers)
    }

    /// Tells outputs that only other jobs send to what is gone from its source: those jobs
    /// will find nothing that they have not known.
    fn decide_others(&self, tx: &mut Tx<'_>, at: IngestCommit<'_>, job: &JobWork) -> Result<()> {
        let is_own = |output| job.outlets.iter().any(|own| own.connection == output);
        let outputs: BTreeSet<ConnectionId> = self
            .siblings
            .values()
            .flatten()
            .map(|it| it.connection)
            .filter(|output| !is_own(*output))
            .collect();
        for output in outputs {
            let offers: Vec<(DocHash, Offer<'_>)> = self
                .stands
                .iter()
                .filter(|(dochash, stand)| {
                    **stand == DocumentState::Gone && self.holders.contains_key(dochash)
                })
                .map(|(dochash, _)| (*dochash, Offer::Gone))
                .collect();
            decide_all(tx, at, job, output, &offers)?;
        }
        Ok(())
    }
}

/// Whether an output hears of documents of a role.
fn takes(outlet: &Outlet, role: DocumentRole) -> bool {
    outlet.requisites || !role.is_requisite()
}

/// Decides what an output must hear, and writes it.
fn decide_all(
    tx: &mut Tx<'_>,
    at: IngestCommit<'_>,
    job: &JobWork,
    output: ConnectionId,
    offers: &[(DocHash, Offer<'_>)],
) -> Result<()> {
    if offers.is_empty() {
        return Ok(());
    }
    let keys: Vec<DocHash> = offers.iter().map(|(dochash, _)| *dochash).collect();
    let known = ingests::load(tx, at.part, output, job.connection, &keys)?;
    let known: HashMap<DocHash, Ingest> = known
        .into_iter()
        .filter(|row| row.component.is_empty())
        .map(|row| (row.dochash, row))
        .collect();
    let deciding = DecisionContext { seq: at.seq, job: job.id, now_ms: at.now_ms };
    let mut moves = Vec::new();
    for (dochash, offer) in offers {
        let before = known.get(dochash);
        let after = match decide(before, *offer, deciding) {
            RowChange::Keep => continue,
            RowChange::Remove => None,
            RowChange::Save(mut row) if before.is_none() => {
                (row.id, row.connection, row.dochash) = (at.ids.next(), job.connection, *dochash);
                Some(*row)
            }
            RowChange::Save(row) => Some(*row),
        };
        moves.push(Move { before: before.cloned(), after });
    }
    ingests::save(tx, at.part, output, &moves)
}

#[cfg(test)]
mod tests;
