//! What is damaged is named; what is whole is not.

use super::*;
use crate::ids::{BinId, ConnectionId, JobId, Run};
use crate::objects::Location;
use crate::tables::claims::{self, Claim, ClaimingDocument, Homes};
use crate::tables::counters;
use crate::tables::ingests::{self, Ingest, Move, Ownership};
use crate::tables::queue::{self, AddContext, Candidate, Place};
use crate::testing::{SAMPLE_JOB, both_databases, candidate, commit_sample, on_sqlite, steps};
use page::ids::DocHash;

/// Runs `damage` on a filled database and returns what `verify` says of it.
fn findings_after(damage: impl Fn(&Db, &Objects) -> Result<()>) -> Vec<Vec<Finding>> {
    let all = std::cell::RefCell::new(Vec::new());
    both_databases(|db| {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
        for (part, round) in [(0, 0), (0, 1), (3, 0)] {
            commit_sample(db, &store, Part(part), round)?;
        }
        damage(db, &store)?;
        let report = verify(db, &store, true)?;
        assert_eq!((report.parts, report.chunks, report.objects), (4, 3, 3));
        all.borrow_mut().push(report.findings);
        Ok(())
    });
    all.into_inner()
}

/// Exactly one finding on each database, with these words in it.
fn assert_names(found: Vec<Vec<Finding>>, what: &str, problem: &str) {
    for findings in found {
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert!(findings[0].what.contains(what), "{findings:#?}");
        assert!(findings[0].problem.contains(problem), "{findings:#?}");
    }
}

fn first_object(db: &Db) -> Result<ObjectPath> {
    let all = db.read(|tx| objects::published_after(tx, Part(-1), ObjectId(0), 1))?;
    ObjectPath::parse(&all[0].path)
}

#[test]
fn a_whole_database_has_no_findings() {
    for findings in findings_after(|_, _| Ok(())) {
        assert_eq!(findings, []);
    }
}

#[test]
fn a_counter_that_lies_is_named() {
    let found = findings_after(|db, _| {
        db.write(|tx| counters::add(tx, Part(3), SAMPLE_JOB, &[("done", 1)]))
    });
    assert_names(found, "counter done of job 1 in part 3", "it says 3, there are 2");
}

#[test]
fn a_missing_object_is_named() {
    let found = findings_after(|db, store| store.delete(&first_object(db)?));
    assert_names(found, "chunks/0/", "missing");
}

#[test]
fn an_object_with_other_bytes_is_named() {
    let found = findings_after(|db, store| {
        let path = first_object(db)?;
        let mut bytes = store.get(&path)?;
        bytes[0] ^= 1;
        store.delete(&path)?;
        store.put(&path, bytes)
    });
    assert_names(found, "chunks/0/", "not those that were written");
}

#[test]
fn facts_with_a_flipped_bit_are_named() {
    let found = findings_after(|db, _| {
        db.write(|tx| {
            let chunk = chunks::after(tx, Part(0), CommitNumber::NONE, 1)?.remove(0);
            let chunks::Facts::Inline(mut bytes) = chunk.facts else { panic!("inline facts") };
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            tx.execute(
                "UPDATE chunks SET facts = $2 WHERE part = 0 AND id = $1",
                &[chunk.id.into(), (&bytes).into()],
            )?;
            Ok(())
        })
    });
    assert_names(found, "the facts of chunk", "chunk");
}

#[test]
fn a_document_without_its_chunk_is_named() {
    let found = findings_after(|db, _| {
        db.write(|tx| {
            tx.execute(
                "UPDATE queue SET state = 'active', chunk = 77 WHERE part = 3 AND state = 'ready'",
                &[],
            )?;
            counters::add(tx, Part(3), SAMPLE_JOB, &[("ready", -1), ("active", 1)])
        })
    });
    assert_names(found, "http://example.com/", "active in chunk 77");
}

#[test]
fn a_bin_that_miscounts_or_sleeps_is_named() {
    let found = findings_after(|db, _| {
        db.write(|tx| tx.execute("UPDATE bins SET documents = documents + 1 WHERE part = 3", &[]))?;
        Ok(())
    });
    assert_names(found, "bin example.com in part 3", "it says 4 documents, there are 3");
    let found = findings_after(|db, _| {
        db.write(|tx| tx.execute("UPDATE bin_work SET mark = 0 WHERE part = 3", &[]))?;
        Ok(())
    });
    assert_names(found, "bin example.com of job 1 in part 3", "no mark");
}

/// A document of part 3 in output 5, which claims its URI, and the claim.
fn kept(tx: &mut crate::Tx<'_>, claims: bool) -> Result<Ingest> {
    let uri = "http://example.com/kept".to_owned();
    let uri_hash = DocHash::of(&uri).0.to_vec();
    let row = Ingest {
        uri: Some(uri.clone()),
        uri_hash: Some(uri_hash.clone()),
        ownership: Some(Ownership::Owned),
        delivered_seq: Some(CommitNumber(1)),
        ..Ingest::new(1, ConnectionId(1), DocHash::of("kept"))
    };
    let moves = [Move { before: None, after: Some(row.clone()) }];
    ingests::save(tx, Part(3), ConnectionId(5), &moves)?;
    let home = Homes::load(tx)?.of(&uri);
    let by = ClaimingDocument { connection: row.connection, dochash: row.dochash, part: Part(3) };
    let claim = Claim { uri_hash, by, ordinal: 1 };
    let added: &[Claim] = if claims { &[claim] } else { &[] };
    claims::save(tx, home, ConnectionId(5), added)?;
    Ok(row)
}

#[test]
fn a_document_that_claims_its_uri_is_whole_and_one_that_does_not_is_named() {
    let found = findings_after(|db, _| db.write(|tx| kept(tx, true)).map(drop));
    assert_eq!(found.concat(), []);
    let found = findings_after(|db, _| db.write(|tx| kept(tx, false)).map(drop));
    assert_names(found, "http://example.com/kept of output 5", "does not claim it");
}

#[test]
fn a_claim_that_nobody_stands_behind_or_whose_owner_was_not_told_is_named() {
    let found = findings_after(|db, _| {
        db.write(|tx| {
            let row = kept(tx, true)?;
            let moves = [Move { before: Some(row), after: None }];
            ingests::save(tx, Part(3), ConnectionId(5), &moves)
        })
    });
    assert_names(found, "on a URI of output 5", "not to be kept under it");
    let found = findings_after(|db, _| {
        db.write(|tx| {
            let row = kept(tx, true)?;
            let shadowed = Ingest { ownership: Some(Ownership::Shadowed), ..row.clone() };
            let moves = [Move { before: Some(row), after: Some(shadowed) }];
            ingests::save(tx, Part(3), ConnectionId(5), &moves)
        })
    });
    assert_names(found, "http://example.com/kept", "was not told of it");
}

/// Queues two documents of each of so many hosts, and makes a job of every twenty hosts.
fn queue_hosts(tx: &mut crate::Tx<'_>, hosts: i64) -> Result<()> {
    settings::freeze(tx, 4)?;
    for host in 0..hosts {
        let (name, bin) = (format!("{host}.example"), BinId(host));
        let place = Place { part: Part(host % 4), job: JobId(1 + host / 20) };
        let document = |number: i64| Candidate {
            bin,
            seed: true,
            ..candidate(host * 2 + number, format!("http://{name}/{number}"), &name)
        };
        let adding = AddContext {
            place,
            run: Run(1),
            now_ms: 0,
            room: None,
            requisites: Default::default(),
        };
        queue::add(tx, adding, &[document(0), document(1)])?;
    }
    Ok(())
}

#[test]
fn checking_ten_times_as_many_hosts_and_jobs_is_ten_times_the_work() {
    let work_of = |hosts: i64| {
        let found = std::cell::Cell::new(0);
        on_sqlite(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            db.write(move |tx| queue_hosts(tx, hosts))?;
            found.set(steps::of(db, || {
                assert_eq!(verify(db, &store, true)?.findings, []);
                Ok(())
            })?);
            Ok(())
        });
        found.get()
    };
    let (few, many) = (work_of(200), work_of(2_000));
    assert!(few > 10_000, "the work is counted: {few} steps");
    assert!(many < few * 11, "{few} steps for 200 hosts, {many} for 2,000");
}
