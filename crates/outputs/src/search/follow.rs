//! Follows the crawl for the search index: documents of committed chunks go into the
//! writers of their shards, and a version is published.
//!
//! What a document's row says decides: its content is that of the chunk the row names, and
//! of no other; a row that is removed, or only a requisite of pages, is not in the index. So chunks that were superseded
//! cost nothing, and applying one again changes nothing. The facts of a chunk are read only if
//! it has news for the index: not if its documents say what they said, nor if its job wants no
//! search and removes nothing.
//!
//! Invariants: the cursor of a part is with the version that has its documents; commits that
//! change no document make no version; a shard that is made anew is shown when it has all that
//! was committed when it was begun.

mod beside;
mod tend;

use super::anchor_text;
use super::job_filter::{JobFilter, is_for_readers};
use super::refresh::Refresh;
use super::schema::{AnchorText, DocumentKey, IndexedDocument};
use super::shard::{In, PublishContext, Shard};
use crate::follow::{AppliedBatch, Consumer, LeftOut, PartWork};
use page::domain::SuffixList;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::chunkfile::document::{Change, DocumentRecord};
use store::ids::{ChunkId, CommitNumber, DocumentId, Part};
use store::panics::{FaultPoint, Faults, caught};
use store::tables::chunks::{self, ChunkHead, Task};
use store::tables::documents::{self, Pointer};
use store::tables::leases::Lease;
use store::tables::{cursors, settings};
use store::{Db, Error, Result, Tx, clock, memory, pack};

/// Documents of a batch: so many are found before others are begun.
const DOCUMENTS_MAX: usize = 1_000;
/// Bytes of text of a batch.
const TEXT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A batch is closed after so long, so that what is in it is found.
const BATCH_TIME: Duration = Duration::from_millis(400);
/// Chunks that are looked up at a time.
const CHUNKS_STEP: u32 = 32;
/// Documents that are looked up at a time.
const DOCUMENTS_STEP: u32 = 1_000;
/// A document is found within two seconds, and a crawl in full swing makes few versions.
const GATHER_MS: i64 = 300;

/// The search index, as it follows a crawl.
pub struct SearchIndexConsumer {
    context: PublishContext,
    list: Arc<SuffixList>,
    shards: BTreeMap<Part, (Shard, Refresh)>,
    /// The chunk that is being read.
    reading: Option<In>,
    /// Which jobs want their documents to be found.
    wanted: JobFilter,
    /// Whether documents are tried one by one, because a batch has failed.
    is_careful: bool,
    /// Whether shards are made anew, whatever is published of them.
    is_anew: bool,
    /// Faults that tests inject.
    faults: Faults,
    /// Who is told of a version.
    published: Box<dyn FnMut() + Send>,
}

/// Chunks that are in, by shard.
type ChunksByShard = BTreeMap<Part, Vec<In>>;

/// What a batch has so far.
struct IndexBatch {
    until: Instant,
    documents: usize,
    text_bytes: usize,
    left_out: Vec<LeftOut>,
}

impl IndexBatch {
    fn has_room(&self) -> bool {
        self.documents < DOCUMENTS_MAX
            && self.text_bytes < TEXT_BYTES_MAX
            && (self.documents == 0 || Instant::now() < self.until)
    }
}

impl SearchIndexConsumer {
    /// The index, and who is told of every version.
    pub fn new(
        context: PublishContext,
        published: Box<dyn FnMut() + Send>,
    ) -> Result<SearchIndexConsumer> {
        let list = context.claimant.db.read(settings::suffix_list)?;
        let (shards, wanted) = (BTreeMap::new(), JobFilter::default());
        let (is_careful, is_anew, faults, reading) = Default::default();
        Ok(SearchIndexConsumer {
            context,
            list,
            shards,
            reading,
            wanted,
            is_careful,
            is_anew,
            faults,
            published,
        })
    }

    /// The same, made anew: shards are begun from nothing, whatever is published of them.
    pub fn anew(context: PublishContext) -> Result<SearchIndexConsumer> {
        Ok(SearchIndexConsumer {
            is_anew: true,
            ..SearchIndexConsumer::new(context, Box::new(|| {}))?
        })
    }

    /// The same, with faults that a test injects.
    pub fn with_faults(self, faults: Faults) -> SearchIndexConsumer {
        SearchIndexConsumer { faults, ..self }
    }

    fn db(&self) -> &Db {
        &self.context.claimant.db
    }

    /// A shard, opened if it is not. When there are too many, another one is closed, which
    /// loses nothing: what it has is published.
    fn open(&mut self, part: Part) -> Result<&mut Shard> {
        if !self.shards.contains_key(&part) {
            if self.shards.len() >= memory::SEARCH_WRITERS_MAX {
                self.shards.pop_first();
            }
            let shard = match self.is_anew {
                true => Shard::begin(&self.context, part)?,
                false => Shard::open(&self.context, part)?,
            };
            self.shards.insert(part, (shard, Refresh::default()));
        }
        let opened = self.shards.get_mut(&part).map(|(shard, _)| shard);
        opened.ok_or_else(|| closed(part))
    }

    /// Passes over a chunk that has no news for the index, without reading its facts. What the
    /// index has of documents whose job wants no search goes.
    fn pass(&mut self, part: Part, chunk: &ChunkHead) -> Result<bool> {
        if !chunk.has_news() {
            return Ok(true);
        }
        if self.wanted.of(&self.context.claimant.db, chunk.job)? {
            return Ok(false);
        }
        let (home, db) = (self.context.shard_of(part), self.db().clone());
        let shard = self.open(home)?;
        match () {
            () if shard.is_empty() => {}
            () if chunk.removes > 0 => return Ok(false),
            () => leave_out(&db, part, chunk.id, shard)?,
        }
        Ok(true)
    }

    /// Puts what a chunk says into its shard.
    fn take(&mut self, part: Part, chunk: &ChunkHead, batch: &mut IndexBatch) -> Result<()> {
        let id = chunk.id;
        let db = self.db().clone();
        let Some(facts) = db.read(move |tx| chunks::facts_of(tx, part, id))? else {
            return Ok(());
        };
        let is_wanted = self.wanted.of(&db, chunk.job)?;
        let Some(bytes) = pack::read_facts(&db, &self.context.objects, part, facts)? else {
            return Ok(());
        };
        let mut records: Vec<DocumentRecord> = Vec::new();
        for record in pack::stream(part, id, bytes)? {
            records.extend(Some(record?).filter(is_news));
        }
        let hashes: Vec<_> = records.iter().map(|it| it.dochash).collect();
        let rows = db.read(move |tx| documents::pointers(tx, part, &hashes))?;
        let mut by_hash: HashMap<_, Vec<&Pointer>> = HashMap::new();
        rows.iter().for_each(|row| by_hash.entry(row.dochash).or_default().push(row));
        let anchor_text = self.anchor_text(&records)?;
        let home = self.context.shard_of(part);
        let Some((shard, _)) = self.shards.get_mut(&home) else { return Err(closed(home)) };
        for (record, anchor_text) in records.iter().zip(&anchor_text) {
            for row in by_hash.get(&record.dochash).into_iter().flatten() {
                let key = DocumentKey { connection: row.connection, hash: row.dochash };
                match record.facts.as_ref().filter(|_| row.chunk == Some(id)) {
                    _ if row.is_removed => shard.writer.delete(key),
                    // Nobody looks for what pages need; it may have been a page.
                    _ if row.role.is_requisite() => shard.writer.delete_if_in(key)?,
                    // What it says now is in another chunk.
                    None => {}
                    Some(facts) if !is_wanted || !is_for_readers(facts) => {
                        shard.writer.delete(key);
                    }
                    Some(facts) => {
                        batch.documents += 1;
                        batch.text_bytes += facts.text.len();
                        let entry =
                            IndexedDocument { key, place: (part, id), record, facts, anchor_text };
                        let document = caught(|| {
                            self.faults.at(FaultPoint::IndexDocument, &record.docid);
                            let document = shard.writer.fields.document(&entry, &self.list);
                            if self.is_careful {
                                shard.writer.try_words(&document);
                            }
                            document
                        });
                        match document {
                            Ok(document) => shard.writer.put(key, document)?,
                            Err(error) => {
                                let (docid, why) = (record.docid.clone(), error.to_string());
                                shard.writer.delete(key);
                                batch.left_out.push(LeftOut { docid, why });
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// What others say of documents that have something to be found by.
    fn anchor_text(&self, records: &[DocumentRecord]) -> Result<Vec<AnchorText>> {
        let Some(links) = &self.context.links else {
            return Ok(vec![AnchorText::default(); records.len()]);
        };
        let target = |record: &DocumentRecord| {
            record.facts.as_ref()?;
            anchor_text::target(links, &self.list, &record.docid)
        };
        anchor_text::of(links, &records.iter().map(target).collect::<Vec<_>>())
    }

    /// A batch of what is behind where parts are: what it came to, the chunks that are in, and
    /// how many documents.
    fn fill(&mut self, work: &[PartWork]) -> Result<(AppliedBatch, ChunksByShard, usize)> {
        let (mut applied, mut taken) = (AppliedBatch::default(), ChunksByShard::new());
        let until = Instant::now() + BATCH_TIME;
        let mut batch = IndexBatch { until, documents: 0, text_bytes: 0, left_out: Vec::new() };
        self.wanted.begin();
        for it in work {
            let (part, mut at) = (it.lease.part, it.at);
            let shard = self.context.shard_of(part);
            if self.open(shard)?.writer.cursors.of(part) != it.at {
                return Err(closed(shard));
            }
            while at < it.head && batch.has_room() {
                let seq = at;
                let heads = move |tx: &mut Tx<'_>| chunks::heads_after(tx, part, seq, CHUNKS_STEP);
                let chunks = self.db().read(heads)?;
                if chunks.is_empty() {
                    // Numbers without a chunk: commits that settled nothing.
                    at = it.head;
                }
                for chunk in chunks {
                    if !batch.has_room() {
                        break;
                    }
                    applied.committed_ms.push(chunk.committed_ms);
                    if !self.pass(part, &chunk)? {
                        let mark = In { lease: it.lease.clone(), chunk: chunk.id };
                        self.reading = Some(mark.clone());
                        taken.entry(shard).or_default().push(mark);
                        self.take(part, &chunk, &mut batch)?;
                        self.reading = None;
                    }
                    at = chunk.seq;
                }
            }
            if let Some((shard, _)) = self.shards.get_mut(&shard) {
                shard.writer.cursors.set(part, at);
            }
            applied.reached.push((part, at));
        }
        applied.left_out = batch.left_out;
        Ok((applied, taken, batch.documents))
    }

    /// Marks the chunk that could not be read, if it was one, for whoever looks.
    fn blame(&mut self, why: &str) {
        let Some(In { lease, chunk }) = self.reading.take() else { return };
        let (why, now_ms) = (why.to_owned(), clock::now_ms());
        // If this cannot be written either, the follower says what it waits for.
        let _ = self
            .db()
            .write(move |tx| chunks::mark_task(tx, &lease, chunk, Task::Error, Some(&why), now_ms));
    }

    fn by_shard<'a>(&self, leases: impl Iterator<Item = &'a Lease>) -> BTreeMap<Part, Vec<Lease>> {
        let mut by_shard: BTreeMap<Part, Vec<Lease>> = BTreeMap::new();
        for lease in leases {
            by_shard.entry(self.context.shard_of(lease.part)).or_default().push(lease.clone());
        }
        by_shard
    }

    fn publish(&mut self, work: &[PartWork], taken: &ChunksByShard) -> Result<()> {
        for (part, leases) in self.by_shard(work.iter().map(|it| &it.lease)) {
            let Some((shard, refresh)) = self.shards.get_mut(&part) else { continue };
            refresh.on_commits();
            let chunks = taken.get(&part).map_or(&[][..], Vec::as_slice);
            if !shard.writer.is_changed() && shard.move_on(&leases, chunks)? {
                continue;
            }
            shard.publish(&leases, chunks)?;
            (self.published)();
            shard.mark(chunks, Task::Propagated)?;
        }
        Ok(())
    }
}

/// Takes out of a shard what it has of documents whose content is in a chunk.
fn leave_out(db: &Db, part: Part, chunk: ChunkId, shard: &mut Shard) -> Result<()> {
    let mut after = DocumentId(i64::MIN);
    loop {
        let found =
            db.read(move |tx| documents::of_chunk(tx, part, chunk, after, DOCUMENTS_STEP))?;
        for (_, connection, hash) in &found {
            shard.writer.delete_if_in(DocumentKey { connection: *connection, hash: *hash })?;
        }
        match found.last() {
            Some((last, ..)) if found.len() == DOCUMENTS_STEP as usize => after = *last,
            _ => return Ok(()),
        }
    }
}

impl Consumer for SearchIndexConsumer {
    fn role(&self) -> &'static str {
        cursors::SEARCH
    }

    fn spans_parts(&self) -> bool {
        self.context.spans_parts
    }

    fn gather_ms(&self) -> i64 {
        GATHER_MS
    }

    fn take_up(&mut self, lease: &Lease) -> Result<CommitNumber> {
        let part = self.context.shard_of(lease.part);
        // A shard that covers all parts is this process's as long as it has the directory.
        let before = match self.context.spans_parts {
            true => None,
            // Its writer is closed before another one is opened.
            false => self.shards.remove(&part).map(|(_, refresh)| refresh),
        };
        let at = self.open(part)?.writer.cursors.of(lease.part);
        if let (Some(before), Some((_, refresh))) = (before, self.shards.get_mut(&part)) {
            *refresh = before.taken_up();
        }
        Ok(at)
    }

    fn apply(&mut self, work: &[PartWork]) -> Result<AppliedBatch> {
        let outcome = caught(|| {
            for it in work {
                self.open(self.context.shard_of(it.lease.part))?;
            }
            if self.is_beside(work) {
                return self.make_beside(work);
            }
            let (applied, taken, _) = self.fill(work)?;
            self.publish(work, &taken)?;
            Ok(applied)
        })
        .flatten();
        // A writer's thread that panics over a document is only known to have ended: the next
        // time, documents are tried one by one before they are handed to it.
        self.is_careful = outcome.as_ref().is_err_and(|error| !error.passes());
        if let Err(error) = &outcome {
            self.blame(&error.to_string());
            // What is in memory is of no use any more; what is published is.
            for it in work {
                let part = self.context.shard_of(it.lease.part);
                self.shards.remove(&part);
                if self.is_careful {
                    // It may be damage: the files are read again before they are opened.
                    self.context.checked.keep(part, &[]);
                }
            }
        }
        outcome
    }

    fn is_to_be_tended(&self, part: Part) -> Result<bool> {
        let Some((_, refresh)) = self.shards.get(&self.context.shard_of(part)) else {
            return Ok(false);
        };
        match &self.context.links {
            Some(links) => refresh.is_due(links),
            None => Ok(false),
        }
    }

    fn tend(&mut self, leases: &[Lease], is_last: bool) -> Result<bool> {
        let mut is_more = false;
        let parts: BTreeMap<Part, Vec<Lease>> = self.by_shard(leases.iter());
        for (part, leases) in parts {
            match self.tend_shard(part, &leases, is_last) {
                Ok(is_more_here) => is_more |= is_more_here,
                Err(error) => {
                    self.shards.remove(&part);
                    return Err(error);
                }
            }
        }
        Ok(is_more)
    }
}

/// Whether a record may say something of a document that the index does not have. What says what
/// it said is written down again when its bytes are first stored, in the chunk that its row names
/// from then on.
pub(super) fn is_news(record: &DocumentRecord) -> bool {
    match record.change {
        Change::Keep => record.facts.is_some(),
        Change::NoContent => false,
        Change::Add | Change::Update | Change::Remove(_) => true,
    }
}

/// A shard is not as it was left: whoever follows takes it up anew.
fn closed(part: Part) -> Error {
    Error::Conflict { reason: format!("the shard of part {part} was closed meanwhile") }
}
