//! The whole index made anew from what is committed, or compared with it.
//!
//! Invariants: what is compared is what is published with the rows as they are, so nobody
//! may commit meanwhile; a comparison holds one step of documents in memory.

use super::follow::Search;
use super::schema::{Fields, Key};
use super::server::Shards;
use super::shard::Means;
use super::wanted::{Wanted, is_for_readers};
use super::writer::failed;
use crate::follow::{Consumer, Work};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use store::ids::{ChunkId, DocumentId, Part};
use store::objects::Objects;
use store::tables::chunks;
use store::tables::documents::{self, Live};
use store::tables::leases::{self, Lease};
use store::tables::{cursors, settings, shards};
use store::{Db, Result, clock, pack};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, SegmentReader, TERMINATED};

/// Documents of a step.
const STEP: u32 = 1_000;

/// Makes the index anew, under the leases of all parts. Returns how many documents it has.
pub fn rebuild(means: &Means, leases: &[Lease]) -> Result<i64> {
    let db = &means.claimant.db;
    let mut homes: Vec<Part> = leases.iter().map(|it| means.shard_of(it.part)).collect();
    homes.dedup();
    let retracted = homes.clone();
    db.write(move |tx| {
        for part in &retracted {
            shards::retract(tx, *part, clock::now_ms())?;
        }
        // Until it is made, it is behind by all there is, and `status` says so.
        cursors::forget(tx, cursors::SEARCH)
    })?;
    let mut search = Search::new(means.clone(), Box::new(|| {}))?;
    let mut at: Vec<i64> = Vec::new();
    for lease in leases {
        at.push(search.take_up(lease)?);
    }
    loop {
        let mut work = Vec::new();
        for (lease, at) in leases.iter().zip(&at) {
            let part = lease.part;
            let head = db.read(move |tx| leases::last_commit(tx, part, "crawl"))?;
            if *at < head {
                work.push(Work { lease: lease.clone(), at: *at, head });
            }
            if !means.spans_parts && !work.is_empty() {
                break;
            }
        }
        if work.is_empty() {
            break;
        }
        for (part, seq) in search.apply(&work)?.reached {
            if let Some(at) = leases.iter().position(|it| it.part == part).map(|it| &mut at[it]) {
                *at = seq;
            }
        }
    }
    while search.tend(leases, true)? {}
    let mut documents = 0;
    for part in homes {
        documents += db.read(move |tx| shards::current(tx, part))?.map_or(0, |it| it.documents);
    }
    Ok(documents)
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Documents that should be found.
    pub documents: u64,
    /// Documents in the index.
    pub indexed: u64,
    /// Differences.
    pub differences: u64,
}

/// Compares what is published with the rows, and tells every difference.
pub fn verify(
    (db, objects): (&Db, &Objects),
    (shards, fields): (&Shards, &Fields),
    tell: &mut dyn FnMut(&str),
) -> Result<Verified> {
    let mut verified = Verified { indexed: shards.documents(), ..Verified::default() };
    let mut differ = |verified: &mut Verified, what: String| {
        verified.differences += 1;
        tell(&what);
    };
    // Nobody changes their mind meanwhile.
    let (mut wanted, mut said) = (Wanted::default(), HashMap::new());
    for part in (0..i64::from(db.read(settings::parts)?)).map(Part) {
        let mut after = DocumentId(i64::MIN);
        loop {
            let rows = db.read(move |tx| documents::live_after(tx, part, after, STEP))?;
            let Some(last) = rows.last() else { break };
            after = last.id;
            for row in &rows {
                let is_wanted = match row.job.map(|job| (job, said.get(&job).copied())) {
                    None => true,
                    Some((_, Some(is_wanted))) => is_wanted,
                    Some((job, None)) => *said.entry(job).or_insert(wanted.of(db, job)?),
                };
                let key = Key { connection: row.connection, hash: row.dochash };
                let found = chunks_of(shards, fields, key)?;
                match found.as_slice() {
                    [] if !is_wanted => {}
                    [_] if !is_wanted => {
                        let what = format!("{} is in the index, and its job wants none", row.docid);
                        differ(&mut verified, what);
                    }
                    [chunk] if *chunk == row.chunk => verified.documents += 1,
                    [] if !has_facts(db, objects, part, row)? => {}
                    [] => differ(&mut verified, format!("{} is not in the index", row.docid)),
                    [_] => {
                        let what = format!("{} is in the index in an older version", row.docid);
                        differ(&mut verified, what);
                    }
                    many => {
                        let what = format!("{} is in the index {} times", row.docid, many.len());
                        differ(&mut verified, what);
                    }
                }
            }
        }
    }
    if verified.differences == 0 && verified.indexed != verified.documents {
        let extra = verified.indexed.abs_diff(verified.documents);
        let what = format!("{extra} documents are in the index that are not there any more");
        differ(&mut verified, what);
    }
    Ok(verified)
}

/// The chunks that a document is in the index from.
fn chunks_of(shards: &Shards, fields: &Fields, key: Key) -> Result<Vec<ChunkId>> {
    let mut found = Vec::new();
    for searcher in shards.searchers() {
        for reader in searcher.segment_readers() {
            of_segment(reader, fields, key, &mut found)
                .map_err(|error| failed(Path::new("the search index"), error))?;
        }
    }
    Ok(found)
}

fn of_segment(
    reader: &SegmentReader,
    fields: &Fields,
    key: Key,
    found: &mut Vec<ChunkId>,
) -> tantivy::Result<()> {
    let inverted = reader.inverted_index(fields.key)?;
    let term = key.term(fields);
    let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::Basic)? else {
        return Ok(());
    };
    let chunks = reader.fast_fields().i64("chunk")?;
    while postings.doc() != TERMINATED {
        let doc = postings.doc();
        if !reader.is_deleted(doc) {
            found.push(ChunkId(chunks.first(doc).unwrap_or(0)));
        }
        postings.advance();
    }
    Ok(())
}

/// Whether the chunk of a document has something to find it by.
fn has_facts(db: &Db, objects: &Objects, part: Part, row: &Live) -> Result<bool> {
    let chunk = row.chunk;
    let Some(facts) = db.read(move |tx| chunks::facts_of(tx, part, chunk))? else {
        return Ok(false);
    };
    let Some(bytes) = pack::read_facts(db, objects, part, facts)? else { return Ok(false) };
    for record in pack::stream(part, chunk, bytes)? {
        let record = record?;
        if record.dochash == row.dochash && record.facts.as_ref().is_some_and(is_for_readers) {
            return Ok(true);
        }
    }
    Ok(false)
}
