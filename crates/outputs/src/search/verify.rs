//! Compares what is published with what is committed, and names every difference.
//!
//! What is committed behind the cursor of a part is what the index has still to follow: it is
//! counted, and is no difference. By default keys and chunks are compared, which costs a look-up
//! for each document; [`facts`] also compares what the index has of each with its stored facts.
//!
//! Invariants: nobody publishes meanwhile, whoever commits; what is held in memory is a step of
//! documents, a chunk, and at most [`STRAYS_MAX`] documents that are in the index and not there.

mod facts;
mod strays;

use super::job_filter::{JobFilter, is_for_readers};
use super::schema::{DocumentKey, Fields};
use super::server::Shards;
use super::writer::{Cursors, failed};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use store::ids::{ChunkId, CommitNumber, DocumentId, JobId, Part};
use store::objects::Objects;
use store::tables::documents::{self, Live};
use store::tables::settings::{self, PARTS_MAX};
use store::tables::{chunks, leases, shards};
use store::{Db, Result, pack};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Searcher, SegmentReader, TERMINATED};

pub use strays::STRAYS_MAX;

/// Documents of a step.
const STEP: u32 = 1_000;

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct ShardVerifyResult {
    /// Documents that should be found, and are.
    pub documents: u64,
    /// Documents in the index.
    pub indexed: u64,
    pub differences: u64,
    /// Files that are not what was published; nothing else is compared then.
    pub damaged_files: u64,
    /// Commits that the index has still to follow.
    pub behind_chunks: u64,
    /// Documents that these commits are about.
    pub waiting: u64,
    /// Documents that were compared with their facts.
    pub compared: u64,
}

/// The rows, facts and shards that a comparison reads.
#[allow(missing_docs)]
pub struct VerifyContext<'a> {
    pub db: &'a Db,
    pub objects: &'a Objects,
    pub shards: &'a Shards,
    pub fields: &'a Fields,
}

/// How far the index is in each part, and how far the crawl was.
type VerifyPositions = HashMap<Part, (CommitNumber, CommitNumber)>;

impl VerifyContext<'_> {
    /// Compares, with the stored facts too if that is wanted, and tells every difference.
    pub fn verify(&self, is_full: bool, report: &mut dyn FnMut(&str)) -> Result<ShardVerifyResult> {
        let indexed = self.shards.documents();
        let mut verified = ShardVerifyResult { indexed, ..ShardVerifyResult::default() };
        let mut differ = |verified: &mut ShardVerifyResult, what: &str| {
            verified.differences += 1;
            report(what);
        };
        let parts = self.db.read(settings::parts)?;
        let reached = self.reached(parts)?;
        let behind = reached.values().map(|(at, head)| at.behind(*head));
        verified.behind_chunks = behind.map(i64::unsigned_abs).sum();
        let mut jobs = Jobs::default();
        let mut met = 0;
        for part in (0..i64::from(parts)).map(Part) {
            let (at, head) =
                reached.get(&part).unwrap_or(&(CommitNumber::NONE, CommitNumber::NONE));
            let at = *at;
            let mut after = DocumentId(i64::MIN);
            loop {
                let rows = self.db.read(move |tx| documents::live_after(tx, part, after, STEP))?;
                let Some(last) = rows.last() else { break };
                after = last.id;
                for row in &rows {
                    let key = DocumentKey { connection: row.connection, hash: row.dochash };
                    let found = self.chunks_of(key)?;
                    met += found.len() as u64;
                    let is_late = row.seq.is_some_and(|seq| seq > at);
                    let is_page = !row.role.is_requisite();
                    // That it is none any more stands in another commit than what it says.
                    let is_late = is_late || (!is_page && !found.is_empty() && at < *head);
                    let is_wanted = is_page && jobs.want(self.db, row.job)?;
                    match found.as_slice() {
                        _ if is_late => verified.waiting += 1,
                        [chunk] if is_wanted && *chunk == row.chunk => verified.documents += 1,
                        found => {
                            let what = self.difference(part, row, is_wanted, found)?;
                            what.iter().for_each(|what| differ(&mut verified, what));
                        }
                    }
                }
            }
        }
        if met != verified.indexed {
            let mut report = |what: &str| differ(&mut verified, what);
            let late = strays::report(self, &reached, &mut report)?;
            verified.waiting += late;
        }
        if is_full {
            let mut full = facts::FactsComparison { of: self, jobs, compared: 0 };
            full.compare(&reached, &mut |what| differ(&mut verified, what))?;
            verified.compared = full.compared;
        }
        Ok(verified)
    }

    /// What is wrong with what the index has of a document that it should have followed.
    fn difference(
        &self,
        part: Part,
        row: &Live,
        is_wanted: bool,
        found: &[ChunkId],
    ) -> Result<Option<String>> {
        let docid = &row.docid;
        Ok(match found {
            [] if !is_wanted || !self.has_facts(part, row)? => None,
            [] => Some(format!("{docid} is not in the index")),
            _ if row.role.is_requisite() => {
                Some(format!("{docid} is in the index, and is only a requisite of pages"))
            }
            _ if !is_wanted => Some(format!("{docid} is in the index, and its job wants none")),
            [_] => Some(format!("{docid} is in the index in an older version")),
            many => Some(format!("{docid} is in the index {} times", many.len())),
        })
    }

    /// How far the index is, as it says itself and as its rows say.
    fn reached(&self, parts: u32) -> Result<VerifyPositions> {
        let mut reached = VerifyPositions::new();
        for part in (0..i64::from(parts)).map(Part) {
            let head = self.db.read(move |tx| leases::last_commit(tx, part, "crawl"))?;
            reached.insert(part, (CommitNumber::NONE, head));
        }
        for (shard, _) in self.db.read(|tx| shards::versions(tx, PARTS_MAX))? {
            let (current, rows) = self
                .db
                .read(move |tx| Ok((shards::current(tx, shard)?, shards::reached(tx, shard)?)))?;
            let mut cursors =
                current.map_or_else(Cursors::default, |it| Cursors::of_index(&it.description.meta));
            rows.into_iter().for_each(|(part, seq)| cursors.raise(part, seq));
            for (part, (at, _)) in &mut reached {
                *at = (*at).max(cursors.of(*part));
            }
        }
        Ok(reached)
    }

    /// The chunks that a document is in the index from.
    fn chunks_of(&self, key: DocumentKey) -> Result<Vec<ChunkId>> {
        let mut found = Vec::new();
        for (searcher, at) in self.places_of(key)? {
            let reader = searcher.segment_reader(at.segment_ord);
            let chunks = reader.fast_fields().i64("chunk").map_err(broken)?;
            found.push(ChunkId(chunks.first(at.doc_id).unwrap_or(0)));
        }
        Ok(found)
    }

    /// Where a document is in the index.
    fn places_of(&self, key: DocumentKey) -> Result<Vec<(&Searcher, DocAddress)>> {
        let mut found = Vec::new();
        for searcher in self.shards.searchers() {
            for (segment, reader) in (0u32..).zip(searcher.segment_readers()) {
                let docs = of_segment(reader, self.fields, key).map_err(broken)?;
                found.extend(docs.into_iter().map(|doc| (searcher, DocAddress::new(segment, doc))));
            }
        }
        Ok(found)
    }

    /// Whether the chunk of a document has something to find it by.
    fn has_facts(&self, part: Part, row: &Live) -> Result<bool> {
        let chunk = row.chunk;
        let Some(facts) = self.db.read(move |tx| chunks::facts_of(tx, part, chunk))? else {
            return Ok(false);
        };
        let Some(bytes) = pack::read_facts(self.db, self.objects, part, facts)? else {
            return Ok(false);
        };
        for record in pack::stream(part, chunk, bytes)? {
            let record = record?;
            if record.dochash == row.dochash && record.facts.as_ref().is_some_and(is_for_readers) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What jobs want, asked once: nobody changes their mind meanwhile.
#[derive(Default)]
struct Jobs {
    wanted: JobFilter,
    known: HashMap<JobId, bool>,
}

impl Jobs {
    fn want(&mut self, db: &Db, job: Option<JobId>) -> Result<bool> {
        let Some(job) = job else { return Ok(true) };
        if let Some(known) = self.known.get(&job) {
            return Ok(*known);
        }
        let wanted = self.wanted.of(db, job)?;
        self.known.insert(job, wanted);
        Ok(wanted)
    }
}

/// Documents of a segment that are under a key.
fn of_segment(
    reader: &SegmentReader,
    fields: &Fields,
    key: DocumentKey,
) -> tantivy::Result<Vec<u32>> {
    let inverted = reader.inverted_index(fields.key)?;
    let term = key.term(fields);
    let Some(postings) = inverted.read_postings(&term, IndexRecordOption::Basic)? else {
        return Ok(Vec::new());
    };
    Ok(live(reader, postings))
}

/// Those of postings that are not deleted.
fn live(reader: &SegmentReader, mut postings: impl DocSet) -> Vec<u32> {
    let mut found = Vec::new();
    while postings.doc() != TERMINATED {
        if !reader.is_deleted(postings.doc()) {
            found.push(postings.doc());
        }
        postings.advance();
    }
    found
}

fn broken(error: tantivy::TantivyError) -> store::Error {
    failed(Path::new("the search index"), error)
}
