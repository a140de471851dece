//! What the index has of documents, compared with their stored facts.
//!
//! Chunks are read in the order of their commits, each once; what a chunk says of a document
//! counts if the document's row names that chunk. Invariant: what is held in memory is a chunk.

use super::{Jobs, VerifyContext, VerifyPositions, broken};
use crate::search::follow::is_news;
use crate::search::job_filter::is_for_readers;
use crate::search::schema::{AnchorText, DocumentKey, IndexedDocument};
use page::domain::SuffixList;
use std::collections::BTreeMap;
use store::chunkfile::document::DocumentRecord;
use store::ids::{ChunkId, CommitNumber, Part};
use store::tables::chunks::{self, CommittedChunk};
use store::tables::{documents, settings};
use store::{Result, pack};
use tantivy::schema::{OwnedValue, Schema};
use tantivy::{Document, TantivyDocument};

/// Chunks that are looked up at a time.
const CHUNKS_STEP: u32 = 32;

/// A comparison under way.
pub(super) struct FactsComparison<'a> {
    pub of: &'a VerifyContext<'a>,
    pub jobs: Jobs,
    /// Documents that were compared.
    pub compared: u64,
}

impl FactsComparison<'_> {
    /// Compares all that the index has followed.
    pub fn compare(
        &mut self,
        reached: &VerifyPositions,
        report: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let db = self.of.db;
        let list = db.read(settings::suffix_list)?;
        let mut parts: Vec<_> = reached.iter().collect();
        parts.sort();
        for (part, (until, _)) in parts {
            let (part, mut seq) = (*part, CommitNumber::NONE);
            while seq < *until {
                let chunks =
                    db.read(move |tx| chunks::changes_after(tx, part, seq, CHUNKS_STEP))?;
                let Some(last) = chunks.last() else { break };
                seq = last.seq;
                for chunk in chunks.into_iter().filter(|it| it.seq <= *until) {
                    self.chunk(part, chunk, &list, report)?;
                }
            }
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        part: Part,
        chunk: CommittedChunk,
        list: &SuffixList,
        report: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let VerifyContext { db, objects, .. } = *self.of;
        let id = chunk.id;
        if !self.jobs.want(db, Some(chunk.job))? {
            return Ok(());
        }
        let Some(bytes) = pack::read_facts(db, objects, part, chunk.facts)? else { return Ok(()) };
        let mut records = Vec::new();
        for record in pack::stream(part, id, bytes)? {
            let record = record?;
            if is_news(&record) && record.facts.as_ref().is_some_and(is_for_readers) {
                records.push(record);
            }
        }
        let hashes: Vec<_> = records.iter().map(|it| it.dochash).collect();
        let mut rows = db.read(move |tx| documents::pointers(tx, part, &hashes))?;
        rows.retain(|row| row.chunk == Some(id) && !row.is_removed && !row.role.is_requisite());
        for record in &records {
            for row in rows.iter().filter(|row| row.dochash == record.dochash) {
                let key = DocumentKey { connection: row.connection, hash: row.dochash };
                self.document(key, part, id, record, list)?.iter().for_each(|it| report(it));
            }
        }
        Ok(())
    }

    /// How the index differs from a document's facts, in sentences.
    fn document(
        &mut self,
        key: DocumentKey,
        part: Part,
        chunk: ChunkId,
        record: &DocumentRecord,
        list: &SuffixList,
    ) -> Result<Vec<String>> {
        let mut differences = Vec::new();
        let Some(facts) = &record.facts else { return Ok(differences) };
        // What is not there, or older, or there twice, has been told of.
        if self.of.chunks_of(key)? != [chunk] {
            return Ok(differences);
        }
        self.compared += 1;
        let fields = self.of.fields;
        let anchor_text = AnchorText::default();
        let entry =
            IndexedDocument { key, place: (part, chunk), record, facts, anchor_text: &anchor_text };
        let should = fields.document(&entry, list);
        let should = stored_of(&should, &fields.schema);
        for (searcher, at) in self.of.places_of(key)? {
            let is: TantivyDocument = searcher.doc(at).map_err(broken)?;
            let is = stored_of(&is, searcher.schema());
            let names = differing(&is, &should);
            if !names.is_empty() {
                let (docid, names) = (&record.docid, names.join(", "));
                let what = format!("{docid}: the index has another {names} than its facts");
                differences.push(what);
            }
        }
        Ok(differences)
    }
}

/// The values of a document that are stored, by the names of their fields.
fn stored_of(document: &TantivyDocument, schema: &Schema) -> BTreeMap<String, Vec<OwnedValue>> {
    let mut values = document.to_named_doc(schema).0;
    let is_stored = |name: &str| {
        schema.get_field(name).is_ok_and(|field| schema.get_field_entry(field).is_stored())
    };
    values.retain(|name, _| is_stored(name));
    values
}

/// The names of fields that have other values.
fn differing(
    is: &BTreeMap<String, Vec<OwnedValue>>,
    should: &BTreeMap<String, Vec<OwnedValue>>,
) -> Vec<String> {
    let mut names: Vec<&String> = is.keys().chain(should.keys()).collect();
    names.sort();
    names.dedup();
    names.into_iter().filter(|name| is.get(*name) != should.get(*name)).cloned().collect()
}
