//! Decisions are delivered once, in order, and counted whatever happens to them.

use super::*;
use crate::testing::both_databases;
use crate::tx::with_keys;

const PART: Part = Part(2);
const OUTPUT: ConnectionId = ConnectionId(5);
const AT: Due = Due { part: PART, output: OUTPUT };
const JOB: JobId = JobId(7);

fn ingest(id: i64, decision: Decision, seq: i64) -> Ingest {
    let uri = format!("http://example.com/{id}");
    Ingest {
        uri_hash: Some(DocHash::of(&uri).0.to_vec()),
        uri: Some(uri),
        version: Some("v1".into()),
        last_change_ms: Some(10),
        changes: 1,
        stale_uris: Some("http://example.com/old".into()),
        pending: Some(PendingDecision::new(decision, CommitNumber(seq), JOB)),
        ..Ingest::new(id, ConnectionId(1), DocHash::of(&id.to_string()))
    }
}

fn met(id: i64, decision: Decision, seq: i64, fate: Fate) -> DeliveryResult {
    DeliveryResult { id, pending: PendingDecision::new(decision, CommitNumber(seq), JOB), fate }
}

fn decide(tx: &mut Tx<'_>, rows: Vec<Ingest>) -> Result<()> {
    let keys: Vec<DocHash> = rows.iter().map(|row| row.dochash).collect();
    let known = load(tx, PART, OUTPUT, ConnectionId(1), &keys)?;
    let moves: Vec<Move> = rows
        .into_iter()
        .map(|row| {
            let before = known.iter().find(|it| it.dochash == row.dochash).cloned();
            Move { before, after: Some(row) }
        })
        .collect();
    save(tx, PART, OUTPUT, &moves)
}

/// The counters, which must equal the rows.
fn counted(tx: &mut Tx<'_>) -> Result<[i64; 2]> {
    let counts = [UNDELIVERED, UNDELIVERABLE].map(|name| counters::total(tx, JOB, name));
    let [undelivered, undeliverable] = counts;
    let counts = [undelivered?, undeliverable?];
    let rows = count_rows(tx, PART)?;
    let of = |name: &str| rows.iter().filter(|it| it.1 == name).map(|it| it.2).sum::<i64>();
    assert_eq!(counts, [of(UNDELIVERED), of(UNDELIVERABLE)]);
    Ok(counts)
}

#[test]
fn a_late_acknowledgement_cannot_hide_a_newer_decision() {
    both_databases(|db| {
        db.write(|tx| decide(tx, vec![ingest(1, Decision::Add, 1), ingest(2, Decision::Add, 1)]))?;
        assert_eq!(db.read(counted)?, [2, 0]);
        // While the output works on commit 1, commit 2 changes its mind on document 1.
        db.write(|tx| decide(tx, vec![ingest(1, Decision::Remove, 2)]))?;
        let late = [1, 2].map(|id| met(id, Decision::Add, 1, Fate::Taken));
        assert_eq!(db.write(move |tx| delivered(tx, AT, &late, 50))?, 1);
        assert_eq!(db.read(counted)?, [1, 0]);
        let left = db.read(|tx| undelivered(tx, AT, 60, 10))?;
        assert_eq!(left, [ingest(1, Decision::Remove, 2)]);
        let removed = [met(1, Decision::Remove, 2, Fate::Taken)];
        assert_eq!(db.write(move |tx| delivered(tx, AT, &removed, 70))?, 1);
        assert_eq!(db.read(|tx| undelivered(tx, AT, 80, 10))?, []);
        assert_eq!(db.read(counted)?, [0, 0]);
        let keys = [DocHash::of("1"), DocHash::of("2")];
        let kept = db.write(move |tx| load(tx, PART, OUTPUT, ConnectionId(1), &keys))?;
        assert_eq!(kept.len(), 1, "what was removed leaves no row");
        assert_eq!(
            (kept[0].first_ingest_ms, kept[0].delivered_seq),
            (Some(50), Some(CommitNumber(1)))
        );
        assert_eq!(kept[0].stale_uris, None);
        Ok(())
    });
}

#[test]
fn what_fails_is_tried_again_and_given_up_and_retried() {
    both_databases(|db| {
        db.write(|tx| decide(tx, vec![ingest(1, Decision::Add, 1), ingest(2, Decision::Add, 3)]))?;
        let again = |check_ms| Fate::Again {
            check_ms,
            failcount: Some(1),
            failtime: Some(900),
            error: "full".into(),
        };
        let first = Due { part: Part(i64::MIN), output: ConnectionId(0) };
        assert_eq!(db.read(move |tx| due(tx, first))?, Some(AT));
        assert_eq!(db.read(|tx| due(tx, AT))?, None);
        let fates = [met(1, Decision::Add, 1, again(95)), met(2, Decision::Add, 3, again(90))];
        db.write(move |tx| delivered(tx, AT, &fates, 50))?;
        assert_eq!(db.read(move |tx| due(tx, first))?, None);
        assert_eq!(db.read(move |tx| retries(tx, first))?, Some((AT, 90)));
        assert_eq!(db.read(|tx| retries(tx, AT))?, None);
        assert_eq!(db.read(|tx| undelivered(tx, AT, 89, 10))?, []);
        let ids = |rows: Vec<Ingest>| rows.iter().map(|row| row.id).collect::<Vec<_>>();
        assert_eq!(ids(db.read(|tx| undelivered(tx, AT, 95, 10))?), [2, 1]);
        assert_eq!(ids(db.read(|tx| undelivered(tx, AT, 95, 1))?), [2]);
        assert_eq!(db.read(counted)?, [2, 0]);
        assert!(db.read(is_any_due)?);
        let never = met(1, Decision::Add, 1, again(NEVER_MS));
        let fates = [never, met(2, Decision::Add, 3, Fate::Rejected)];
        db.write(move |tx| delivered(tx, AT, &fates, 99))?;
        assert_eq!(db.read(counted)?, [0, 1]);
        assert!(!db.read(is_any_due)?);
        assert_eq!(db.read(|tx| undelivered(tx, AT, i64::MAX, 10))?, []);
        let rejected =
            db.write(|tx| load(tx, PART, OUTPUT, ConnectionId(1), &[DocHash::of("2")]))?.remove(0);
        assert_eq!((rejected.uri, rejected.version.as_deref()), (None, Some("v1")));
        let given_up = db.read(|tx| given_up(tx, PART, OUTPUT, 0, 10))?;
        assert_eq!(given_up[0].pending.as_ref().and_then(|it| it.error.as_deref()), Some("full"));
        let other = UndeliveredFilter { part: PART, output: OUTPUT, job: JobId(8) };
        assert_eq!(db.write(move |tx| retry(tx, other, 0, 10, |_| true))?, (Some(1), 0));
        let own = UndeliveredFilter { job: JOB, ..other };
        assert_eq!(db.write(move |tx| retry(tx, own, 0, 10, |_| false))?, (Some(1), 0));
        assert_eq!(db.write(move |tx| retry(tx, own, 0, 10, |_| true))?, (Some(1), 1));
        assert_eq!(db.write(move |tx| retry(tx, own, 1, 10, |_| true))?, (None, 0));
        assert_eq!(db.read(|tx| undelivered(tx, AT, 0, 10))?.len(), 1);
        assert_eq!(db.read(counted)?, [1, 0]);
        Ok(())
    });
}

#[test]
fn an_output_is_forgotten_piece_by_piece() {
    both_databases(|db| {
        db.write(|tx| decide(tx, (1..=5).map(|id| ingest(id, Decision::Add, id)).collect()))?;
        assert_eq!(db.write(|tx| forget(tx, PART, OUTPUT, 3))?, 3);
        assert_eq!(db.read(counted)?, [2, 0]);
        assert_eq!(db.write(|tx| forget(tx, PART, ConnectionId(6), 3))?, 0);
        assert_eq!(db.write(|tx| forget(tx, PART, OUTPUT, 3))?, 2);
        assert_eq!(db.write(|tx| forget(tx, PART, OUTPUT, 3))?, 0);
        assert_eq!(db.read(counted)?, [0, 0]);
        Ok(())
    });
}

#[test]
fn every_look_goes_along_the_index_that_is_made_for_it() {
    crate::testing::on_sqlite(|db| {
        for (found, words) in [
            (BY_ID, "(part=? AND id=?)"),
            (BY_KEY, "ingests_by_key (part=? AND outputid=? AND dochash=? AND connectionid=?)"),
        ] {
            // The list counts as the last parameter.
            let count = found.matches('$').count();
            let found = with_keys(found, &format!("= ${count}"));
            let sql = format!("EXPLAIN QUERY PLAN SELECT {COLUMNS} FROM ingests {found}");
            let plan: Vec<String> =
                db.read(move |tx| tx.query(&sql, &[Value::Int(1); 4][..count], |row| row.get(3)))?;
            assert!(plan.iter().any(|line| line.contains(words)), "{plan:?}");
        }
        Ok(())
    });
}

/// An owner that is sent again is so whatever was under way; a removal stays one, and what
/// does not want the URI is told apart.
#[test]
fn an_owner_is_sent_again_whatever_is_under_way() {
    both_databases(|db| {
        use crate::tables::claims::ClaimingDocument;
        use crate::tables::connections::{self, Connection, ConnectionKind};
        use crate::tables::jobs::{self, Job};
        db.write(|tx| {
            let it = Connection::new(ConnectionId(1), "source", "files");
            connections::save(tx, ConnectionKind::Repository, &it, 0)?;
            jobs::save(tx, &Job::new(JOB, "docs", ConnectionId(1)), 0)?;
            let rows = (1..=2).map(|id| ingest(id, Decision::Add, 1));
            decide(tx, rows.chain([ingest(3, Decision::Remove, 1)]).collect())
        })?;
        let done = [met(1, Decision::Add, 1, Fate::Taken)];
        db.write(move |tx| delivered(tx, AT, &done, 50))?;
        let resends: Vec<Resend> = (1..=4)
            .map(|id| {
                let row = ingest(id, Decision::Add, 1);
                let owner = ClaimingDocument {
                    connection: row.connection,
                    dochash: row.dochash,
                    part: PART,
                };
                Resend { owner, uri_hash: row.uri_hash.unwrap_or_default(), resent: id }
            })
            .collect();
        let wanted = resends.clone();
        let unwanted = db.write(move |tx| resend(tx, PART, OUTPUT, &wanted))?;
        assert_eq!(unwanted, resends[3..], "nothing is known of it");
        assert_eq!(db.read(counted)?, [3, 0]);
        // What was under way when they were sent again is heard of too late.
        let late = [met(2, Decision::Add, 1, Fate::Taken)];
        assert_eq!(db.write(move |tx| delivered(tx, AT, &late, 60))?, 0);
        let left = db.read(|tx| undelivered(tx, AT, 70, 10))?;
        let left: Vec<(i64, Option<Decision>)> =
            left.iter().map(|row| (row.id, row.pending.as_ref().map(|it| it.decision))).collect();
        let expected = [(1, Decision::Update), (2, Decision::Add), (3, Decision::Remove)];
        assert_eq!(left, expected.map(|(id, decision)| (id, Some(decision))));
        let resent = |id, decision, fate| {
            let it = met(id, decision, 1, fate);
            DeliveryResult { pending: PendingDecision { resent: Some(id), ..it.pending }, ..it }
        };
        let fates =
            [resent(1, Decision::Update, Fate::Shadowed), resent(2, Decision::Add, Fate::Claimed)];
        assert_eq!(db.write(move |tx| delivered(tx, AT, &fates, 80))?, 2);
        let keys = [1, 2].map(|id| ingest(id, Decision::Add, 1).dochash);
        let rows = db.write(move |tx| load(tx, PART, OUTPUT, ConnectionId(1), &keys))?;
        let ownership = |id| rows.iter().find(|row| row.id == id).and_then(|row| row.ownership);
        assert_eq!(ownership(1), Some(Ownership::Shadowed));
        assert_eq!(ownership(2), Some(Ownership::Owned));
        assert_eq!(rows.iter().filter(|row| row.last_ingest_ms == Some(80)).count(), 0);
        assert_eq!(db.read(counted)?, [1, 0]);
        Ok(())
    });
}
