//! Chunks of which little is needed are rewritten; whoever points to what is left finds it.

use super::*;
use crate::chunkfile::bodies;
use crate::chunkfile::document::{Body, Fetch};
use crate::chunkfile::warc_reader::ByteRange;
use crate::testing::sample_files;

const CHUNK: i64 = 1;

fn url(number: i64) -> String {
    format!("https://example.com/{number}")
}

/// What the row of a document says.
#[derive(Clone, Copy)]
enum Row {
    /// Its facts are in the chunk, under its number.
    Here,
    /// They are in another chunk.
    Elsewhere,
    /// It was removed at a time.
    Removed(i64),
    /// It has none, and answered this the last time.
    Answered(&'static str, i64),
}

impl Store<'_> {
    /// A chunk with facts and bodies of so many documents, and then what these answered.
    fn commit_documents(&self, count: i64, answers: &[DocumentRecord]) -> Result<()> {
        let key = self.key(CHUNK);
        let urls: Vec<String> = (0..count).map(url).collect();
        let (mut records, bodies) =
            sample_files(key, &urls.iter().map(String::as_str).collect::<Vec<_>>())?;
        records.extend_from_slice(answers);
        let path = ObjectPath::bodies(key);
        let (part, kind) = (self.part, ObjectKind::Bodies);
        let object = NewObject { part, id: ObjectId(70), kind, path: &path };
        let written = collect::write(self.db, self.objects, object, bodies, THEN_MS)?;
        self.db.write(move |tx| written.publish(tx, THEN_MS))?;
        self.commit(
            CHUNK,
            ChunkSummary {
                documents: count + answers.len() as i64,
                adds: count,
                facts: Some(encode(key, &records)?),
                bodies_object: Some(ObjectId(70)),
                ..ChunkSummary::default()
            },
        )
    }

    fn row(&self, number: i64, row: Row) -> Result<()> {
        let mut it =
            Document::new(DocumentId(number + 1), DocHash::of(&url(number)), url(number), 0);
        (it.chunk, it.ordinal, it.body_chunk) =
            (Some(ChunkId(CHUNK)), Some(number), Some(ChunkId(CHUNK)));
        match row {
            Row::Here => {}
            Row::Elsewhere => (it.chunk, it.body_chunk) = (Some(ChunkId(99)), None),
            Row::Removed(at_ms) => it.removed_ms = Some(at_ms),
            Row::Answered(outcome, status) => {
                (it.chunk, it.ordinal, it.body_chunk) = (None, None, None);
                (it.outcome, it.http_status) = (outcome.into(), Some(status));
            }
        }
        let part = self.part;
        self.db.write(move |tx| documents::save(tx, part, ConnectionId(1), [&it]))
    }

    /// The numbers of documents that the chunk has facts of, each read with its body.
    fn left(&self) -> Result<Vec<i64>> {
        let (part, id) = (self.part, ChunkId(CHUNK));
        let places = self.db.read(move |tx| chunk_storage::places(tx, part, id))?;
        let (facts, path) = places.expect("the chunk is there");
        let path = path.map(|path| ObjectPath::parse(&path)).transpose()?;
        let Some(bytes) = read_facts(self.db, self.objects, part, facts)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for (ordinal, record) in (0..).zip(FactsStream::open(self.key(CHUNK), bytes.as_slice())?) {
            let record = record?;
            if record.is_dropped() {
                continue;
            }
            assert_eq!(record.docid, url(ordinal), "it has kept its number");
            if let Body::Here { offset, len } = record.body {
                let path = path.as_ref().expect("there are bodies");
                let body = bodies::read(self.objects, path, ByteRange { offset, len })?;
                assert_eq!(body.target_uri(), Some(record.docid.as_str()));
            }
            found.push(ordinal);
        }
        Ok(found)
    }
}

#[test]
fn what_nothing_needs_of_a_chunk_is_given_back_and_the_rest_is_found_where_it_was() {
    with_store(|store| {
        store.commit_documents(6, &[])?;
        for number in 0..6 {
            store.row(number, Row::Here)?;
        }
        let keep = Keep { pack_chunks_min: 100, ..KEEP };
        let before = store.gc(&keep, || NOW_MS)?;
        assert_eq!((before.rewritten, before.condemned), (0, 0), "all of it is needed");
        store.row(0, Row::Elsewhere)?;
        assert_eq!(store.gc(&keep, || NOW_MS)?.rewritten, 0, "most of it is needed");
        store.row(3, Row::Removed(NOW_MS - KEEP.settled_ms))?;
        store.row(4, Row::Removed(NOW_MS - KEEP.settled_ms - 1))?;
        store.row(5, Row::Elsewhere)?;
        let report = store.gc(&keep, || NOW_MS)?;
        assert_eq!((report.rewritten, report.condemned), (1, 1), "its bodies were an object");
        assert_eq!(store.left()?, [1, 2, 3], "one was removed just now");
        assert_eq!(store.gc(&keep, || NOW_MS)?.rewritten, 0, "what is left is needed");
        assert_eq!(verify(store.db, store.objects, true)?.findings, []);
        // The old bodies can be read until their grace is over.
        let old = ObjectPath::bodies(store.key(CHUNK));
        assert!(store.objects.head(&old)?.is_some());
        let later = store.gc(&keep, || NOW_MS + 1_000)?;
        assert_eq!((later.collected, store.objects.head(&old)?), (1, None));
        store.row(1, Row::Elsewhere)?;
        let again = store.gc(&keep, || NOW_MS + 1_000)?;
        assert_eq!((again.rewritten, again.condemned), (1, 2), "facts and bodies");
        assert_eq!(store.left()?, [2]);
        store.row(2, Row::Elsewhere)?;
        let last = store.gc(&keep, || NOW_MS + 2_000)?;
        assert_eq!((last.condemned, store.left()?), (2, vec![]));
        let end = store.gc(&keep, || NOW_MS + 9_000)?;
        assert_eq!((end.rewritten, store.stored_paths()?), (0, vec![]));
        assert_eq!(verify(store.db, store.objects, true)?.findings, []);
        Ok(())
    });
}

#[test]
fn what_a_document_without_content_answered_last_stays() {
    with_store(|store| {
        let answered = |number, status, to: Option<&str>| {
            let mut record = DocumentRecord::new(url(number), 1, Change::NoContent);
            let final_url = to.map(str::to_owned);
            record.fetch = Some(Fetch { status, final_url, ..Fetch::default() });
            record
        };
        let answers = [
            answered(1, 404, None),
            answered(2, 301, Some("https://example.com/x")),
            answered(3, 404, None),
        ];
        store.commit_documents(1, &answers)?;
        store.row(0, Row::Elsewhere)?;
        store.row(1, Row::Answered("gone", 404))?;
        store.row(2, Row::Answered("redirect", 301))?;
        store.row(3, Row::Answered("timeout", 404))?;
        let report = store.gc(&KEEP, || NOW_MS)?;
        assert_eq!((report.rewritten, report.facts_dropped), (1, 0));
        assert_eq!(store.left()?, [1, 2]);
        let again = store.gc(&KEEP, || NOW_MS + 1_000)?;
        assert_eq!((again.rewritten, store.left()?), (0, vec![1, 2]));
        assert_eq!(verify(store.db, store.objects, true)?.findings, []);
        Ok(())
    });
}

#[test]
fn a_pack_of_which_little_is_left_is_given_back_and_the_rest_moves() {
    with_store(|store| {
        for id in 1..=4 {
            store.commit_inline(id)?;
            store.point_to(id)?;
        }
        assert_eq!(store.gc(&KEEP, || NOW_MS)?.packed, 4);
        let pack = store.stored_paths()?;
        let forget = |chunk: i64| {
            let sql = "UPDATE documents SET chunk = NULL WHERE chunk = $1";
            store.db.write(move |tx| {
                tx.execute(sql, &[chunk.into()])?;
                crate::testing::sum_rows(tx)
            })
        };
        forget(1)?;
        assert_eq!(store.gc(&KEEP, || NOW_MS)?.rewritten, 0, "most of the pack is needed");
        forget(3)?;
        let report = store.gc(&KEEP, || NOW_MS)?;
        assert_eq!((report.rewritten, report.condemned), (2, 1), "what is left has moved");
        assert_eq!(store.with_facts()?, [2, 4]);
        assert_eq!(store.gc(&KEEP, || NOW_MS + 1_000)?.rewritten, 0);
        let paths = store.stored_paths()?;
        assert!(paths.len() == 1 && paths != pack, "{paths:?}");
        assert_eq!(store.with_facts()?, [2, 4]);
        assert_eq!(verify(store.db, store.objects, true)?.findings, []);
        Ok(())
    });
}

#[test]
fn a_chunk_whose_consumers_have_not_passed_is_not_rewritten() {
    with_store(|store| {
        let keep = Keep { pack_chunks_min: 100, ..KEEP };
        store.commit_inline(50)?;
        store.point_to(50)?;
        store.commit_documents(3, &[])?;
        store.row(0, Row::Here)?;
        store.db.write(|tx| {
            cursors::advance(tx, PART, "search", CommitNumber(0), CommitNumber(1), 0)
        })?;
        let report = store.gc(&keep, || NOW_MS)?;
        assert_eq!((report.rewritten, store.left()?), (0, vec![0, 1, 2]));
        store.db.write(|tx| {
            cursors::advance(tx, PART, "search", CommitNumber(1), CommitNumber(2), 0)
        })?;
        let report = store.gc(&keep, || NOW_MS)?;
        assert_eq!((report.rewritten, store.left()?), (1, vec![0]));
        Ok(())
    });
}

/// A process dies when the new objects are written and nothing points to them.
#[test]
fn a_rewriting_that_was_cut_off_changes_nothing() {
    with_store(|store| {
        store.commit_documents(3, &[])?;
        store.row(0, Row::Here)?;
        let other = LeaseRequest { node: NodeId(2), ..asking("two", NOW_MS) };
        let taken = store.db.write(move |tx| leases::take(tx, PART, ROLE, &other))?;
        let held = LeasedPart { db: store.db, lease: &store.lease, clock: || NOW_MS };
        let settled = SettledChunks { seq: CommitNumber(1), before_ms: NOW_MS - KEEP.settled_ms };
        let (objects, ids, until_bytes) = (store.objects, &store.ids, u64::MAX);
        let rewriting = RewriteContext { held: &held, objects, ids, settled, until_bytes };
        let lost = rewriting.run(&mut GcReport::default());
        assert!(matches!(lost, Err(Error::LeaseLost { .. })), "{lost:?}");
        assert_eq!(store.left()?, [0, 1, 2]);
        assert_eq!(store.stored_paths()?.len(), 3, "the old bodies, new ones and a pack");
        assert_eq!(verify(store.db, store.objects, true)?.findings, []);
        let taken = taken.expect("it is over");
        store.db.write(move |tx| leases::release(tx, &taken, true))?;
        let late = || NOW_MS + 20_000;
        assert_eq!(store.gc(&KEEP, late)?.rewritten, 1);
        store.gc(&KEEP, || NOW_MS + 21_000)?;
        assert_eq!((store.left()?, store.stored_paths()?.len()), (vec![0], 2));
        assert_eq!(verify(store.db, store.objects, true)?.findings, []);
        Ok(())
    });
}
