//! Documents: rows saved, loaded, noted, listed, on both databases.

use super::*;
use crate::testing::{both_databases, damages_rows};
use crate::tx::with_keys;

#[test]
fn a_document_is_saved_whole_and_keeps_its_id() {
    both_databases(|db| {
        let url = "https://example.com/";
        let hash = DocHash::of(url);
        let new = Document::new(DocumentId(1), hash, url.into(), 5);
        let mut full = new.clone();
        full.outcome = "ok".into();
        full.title = Some("Пример".into());
        full.content_hash = Some(vec![7; 16]);
        full.simhash = Some(-1);
        full.redirect = Some((Part(3), DocHash::of("x")));
        full.restless_ms = 12;
        full.reason = Some("gone".into());
        full.checks = 3;
        let (first, second) = (new.clone(), Document { id: DocumentId(9), ..full.clone() });
        let key = (Part(0), ConnectionId(1));
        db.write(move |tx| save(tx, key.0, key.1, std::slice::from_ref(&first)))?;
        db.write(move |tx| save(tx, key.0, key.1, std::slice::from_ref(&second)))?;
        let keys = [hash, DocHash::of("unknown")];
        let mut found = db.read(move |tx| load(tx, key.0, key.1, &keys))?;
        assert_ne!(found[0].row_checksum, 0);
        found[0].row_checksum = 0;
        assert_eq!(found, [full.clone()]);
        assert_eq!(db.read(move |tx| load(tx, key.0, ConnectionId(2), &keys))?, []);
        let original = || db.read(move |tx| originals(tx, key.0, key.1, &[vec![7; 16]]));
        assert_eq!(original()?, [(vec![7; 16], hash)]);
        let copy = Document { duplicate_of: Some((Part(0), hash)), ..full.clone() };
        db.write(move |tx| save(tx, key.0, key.1, std::slice::from_ref(&copy)))?;
        assert_eq!(original()?, [], "a copy is nobody's original");
        Ok(())
    });
}

#[test]
fn the_documents_of_a_chunk_are_found_page_by_page() {
    both_databases(|db| {
        let document = |id: i64, chunk: Option<i64>| {
            let url = format!("https://example.com/{id}");
            let mut it = Document::new(DocumentId(id), DocHash::of(&url), url, 0);
            it.chunk = chunk.map(ChunkId);
            it
        };
        let all = [document(1, Some(7)), document(2, Some(8)), document(3, Some(7))];
        let (part, connection) = (Part(0), ConnectionId(4));
        db.write(move |tx| save(tx, part, connection, &all))?;
        let page = |after| db.read(move |tx| of_chunk(tx, part, ChunkId(7), DocumentId(after), 1));
        let expected = |id: i64| {
            let hash = DocHash::of(&format!("https://example.com/{id}"));
            vec![(DocumentId(id), connection, hash)]
        };
        assert_eq!(page(i64::MIN)?, expected(1));
        assert_eq!(page(1)?, expected(3));
        assert_eq!(page(3)?, []);
        Ok(())
    });
}

#[test]
fn a_look_is_noted_without_touching_the_rest_of_the_row() {
    both_databases(|db| {
        let (part, connection) = (Part(2), ConnectionId(1));
        let url = "https://example.com/";
        let mut stored = Document::new(DocumentId(7), DocHash::of(url), url.into(), 5);
        assert!(!stored.clone().differs_by_a_look(&stored), "nobody has stored it");
        stored.checks = 1;
        stored.title = Some("A".into());
        stored.content_hash = Some(vec![7; 16]);
        (stored.chunk, stored.ordinal) = (Some(ChunkId(3)), Some(4));
        let first = stored.clone();
        db.write(move |tx| save(tx, part, connection, std::slice::from_ref(&first)))?;
        let stored = db.read(move |tx| load(tx, part, connection, &[DocHash::of(url)]))?.remove(0);
        let looked = Document {
            outcome: "not modified".into(),
            http_status: Some(304),
            etag: Some("\"x\"".into()),
            last_modified: Some("yesterday".into()),
            checked_ms: 9,
            fetched_ms: Some(8),
            checks: 2,
            quiet_ms: 4,
            restless_ms: 1,
            missing: 2,
            missing_run: Some(Run(3)),
            missing_ms: Some(6),
            ..stored.clone()
        };
        assert!(looked.differs_by_a_look(&stored));
        assert!(!Document { title: None, ..looked.clone() }.differs_by_a_look(&stored));
        assert!(!Document { ordinal: Some(5), ..looked.clone() }.differs_by_a_look(&stored));
        let noted = looked.clone();
        db.write(move |tx| note_looks(tx, part, [&noted]))?;
        let found = db.read(move |tx| load(tx, part, connection, &[DocHash::of(url)]))?;
        assert_eq!(found, [looked]);
        Ok(())
    });
}

#[test]
fn a_look_counts_for_the_row_it_is_about_and_for_no_other() {
    both_databases(|db| {
        let (part, connection) = (Part(2), ConnectionId(1));
        let url = "https://example.com/";
        let mut first = Document::new(DocumentId(7), DocHash::of(url), url.into(), 5);
        first.checks = 1;
        let store = |it: Document| db.write(move |tx| save(tx, part, connection, [&it]));
        let load = || db.read(move |tx| load(tx, part, connection, &[DocHash::of(url)]));
        store(first)?;
        let stored = load()?.remove(0);
        let looked = Document { checks: 2, checked_ms: 9, ..stored.clone() };
        let noted = looked.clone();
        db.write(move |tx| note_looks(tx, part, [&noted]))?;
        assert_eq!(load()?, std::slice::from_ref(&looked));
        // Somebody who has seen the look writes the row, and then somebody who has not.
        for checks in [3, 1] {
            store(Document { checks, title: Some("new".into()), ..looked.clone() })?;
            assert_eq!(load()?[0].checks, checks);
        }
        // A late look at a row that is there no more changes nothing.
        db.write(move |tx| note_looks(tx, part, [&looked]))?;
        assert_eq!(load()?[0].checks, 1);
        Ok(())
    });
}

#[test]
fn a_damaged_look_is_left_out_of_account() {
    both_databases(|db| {
        damages_rows();
        let (part, connection) = (Part(2), ConnectionId(1));
        let url = "https://example.com/";
        let mut first = Document::new(DocumentId(7), DocHash::of(url), url.into(), 5);
        first.checks = 1;
        db.write(move |tx| save(tx, part, connection, [&first]))?;
        let load = || db.read(move |tx| load(tx, part, connection, &[DocHash::of(url)]));
        let looked = Document { checks: 2, ..load()?.remove(0) };
        db.write(move |tx| note_looks(tx, part, [&looked]))?;
        db.write(|tx| tx.execute("UPDATE looks SET quiet_ms = 77", &[]))?;
        let found = load()?;
        assert_eq!((found[0].checks, found[0].quiet_ms), (1, 0));
        Ok(())
    });
}

#[test]
fn originals_are_looked_up_by_their_content() {
    crate::testing::on_sqlite(|db| {
        let sql = format!("EXPLAIN QUERY PLAN {}", with_keys(ORIGINALS, "IN ($3, $4)"));
        let plan: Vec<String> =
            db.read(move |tx| tx.query(&sql, &[Value::Int(1); 4], |row| row.get(3)))?;
        assert!(plan[0].contains("documents_by_content (part=? AND contenthash=?)"), "{plan:?}");
        Ok(())
    });
}
