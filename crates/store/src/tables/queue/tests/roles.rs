//! Pages and requisites: what a document is to its job, whoever names it as what.

use super::*;
use crate::tables::queue::sweep::{self, Sweep};
use std::collections::HashMap;

const PLACE: Place = Place { part: Part(1), job: JOB };

fn page(id: i64, document: u8) -> Candidate {
    Candidate { seed: false, ..candidate(id, document, 3, None) }
}

fn requisite(id: i64, document: u8, levels: i64) -> Candidate {
    Candidate { role: DocumentRole::Requisite, levels, ..page(id, document) }
}

/// Names documents in a run that names all pages again if it is not the first.
fn name(db: &Db, run: i64, named: &[Candidate]) -> Result<AddResult> {
    let requisites = RequisiteRules { room: Some(100), unlinks: run > 1 };
    let adding = AddContext { requisites, ..at(PLACE, Run(run), 0) };
    let named = named.to_vec();
    let added = db.write(move |tx| add(tx, adding, &named))?;
    counted(db)?;
    Ok(added)
}

/// Looks at all that is ready.
fn look(db: &Db, held: &Lease, run: i64) -> Result<Vec<Entry>> {
    let held = held.clone();
    let looked = db.write(move |tx| {
        let ready: Vec<QueueId> = tx.query(
            "SELECT id FROM queue WHERE state = 'ready' ORDER BY id LIMIT 100",
            &[],
            |row| row.get(0),
        )?;
        let last: i64 =
            tx.query_one("SELECT COALESCE(MAX(id), 0) FROM chunks", &[], |row| row.get(0))?;
        let chunk = ChunkId(last + 1);
        chunks::open(tx, &held, chunk, JOB, Run(run), 0)?;
        let claimed = claim_ids(tx, PLACE, chunk, &ready)?;
        let done: Vec<SettledDocument> = claimed
            .iter()
            .map(|it| SettledDocument { id: it.id, generation: 0, to: Settlement::Done })
            .collect();
        settle(tx, PLACE, chunk, Run(run), &done)?;
        Ok(claimed)
    })?;
    counted(db)?;
    Ok(looked)
}

/// Each document by its state and its role; `page?` is one that nothing has linked to.
fn stands(db: &Db) -> Result<Vec<(i64, String)>> {
    db.read(|tx| {
        let sql = "SELECT id, state, requisite, unlinked FROM queue ORDER BY id LIMIT 100";
        tx.query(sql, &[], |row| {
            let role = match (row.get(2)?, row.get(3)?) {
                (true, _) => "requisite",
                (false, true) => "page?",
                (false, false) => "page",
            };
            Ok((row.get(0)?, format!("{} {role}", row.get::<String>(1)?)))
        })
    })
}

fn of(all: &[(i64, &str)]) -> Vec<(i64, String)> {
    all.iter().map(|(id, stands)| (*id, (*stands).to_owned())).collect()
}

/// Asserts that counters are what they count.
fn counted(db: &Db) -> Result<()> {
    let (counters, rows) =
        db.read(|tx| Ok((counters::in_part(tx, PLACE.part, JOB)?, count_part(tx, PLACE.part)?)))?;
    let kept: BTreeMap<String, i64> = counters.into_iter().filter(|it| it.1 != 0).collect();
    let real: BTreeMap<String, i64> = rows.into_iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(kept, real);
    Ok(())
}

#[test]
fn what_is_linked_is_a_page_in_whatever_order_it_is_named() {
    both_databases(|db| {
        let held = lease(db, PLACE.part, 1)?;
        name(db, 1, &[requisite(1, 1, 1), page(2, 1), requisite(3, 2, 1), page(4, 3)])?;
        assert_eq!(
            stands(db)?,
            of(&[(2, "ready page"), (3, "ready requisite"), (4, "ready page")])
        );
        look(db, &held, 1)?;
        name(db, 1, &[page(9, 2), requisite(9, 3, 1)])?;
        let third = db.read(|tx| find(tx, PLACE, hash(3)))?.expect("it is there");
        assert_eq!(third.needed_run, Some(Run(1)), "it is known that pages need it");
        let after = of(&[(2, "done page"), (3, "ready page"), (4, "done page")]);
        assert_eq!(stands(db)?, after, "what becomes a page is looked at again, and nothing else");
        assert_eq!(look(db, &held, 1)?.iter().map(|it| it.id.0).collect::<Vec<_>>(), [3]);
        let pages = db.read(|tx| counters::pages_let_in(tx, JOB))?;
        assert_eq!(pages, 3);
        Ok(())
    });
}

#[test]
fn what_is_at_work_when_it_is_linked_is_looked_at_again_afterwards() {
    both_databases(|db| {
        name(db, 1, &[requisite(1, 1, 1)])?;
        let held = lease(db, PLACE.part, 1)?;
        db.write(move |tx| {
            chunks::open(tx, &held, ChunkId(1), JOB, Run(1), 0)?;
            claim_ids(tx, PLACE, ChunkId(1), &[QueueId(1)]).map(|_| ())
        })?;
        name(db, 1, &[page(9, 1)])?;
        assert_eq!(stands(db)?, of(&[(1, "active page")]));
        let done = SettledDocument { id: QueueId(1), generation: 0, to: Settlement::Done };
        db.write(move |tx| settle(tx, PLACE, ChunkId(1), Run(1), std::slice::from_ref(&done)))?;
        assert_eq!(stands(db)?, of(&[(1, "ready page")]));
        counted(db)
    });
}

#[test]
fn a_page_that_a_run_only_needs_becomes_a_requisite_at_its_end_unless_it_is_linked() {
    both_databases(|db| {
        let held = lease(db, PLACE.part, 1)?;
        name(db, 1, &[page(1, 1), page(2, 2), page(3, 3)])?;
        look(db, &held, 1)?;
        name(db, 2, &[requisite(9, 1, 1), requisite(9, 2, 1)])?;
        let named = of(&[(1, "ready page?"), (2, "ready page?"), (3, "done page")]);
        assert_eq!(stands(db)?, named, "until then it is a page");
        let looked = look(db, &held, 2)?;
        assert!(looked.iter().all(|it| it.role == DocumentRole::Page));
        assert!(looked.iter().all(|it| it.looked_at_as() == DocumentRole::Requisite));
        name(db, 2, &[page(9, 2)])?;
        assert_eq!(stands(db)?[1], (2, "ready page".to_owned()), "its links were not named yet");
        look(db, &held, 2)?;
        let clean = Sweep::Clean(Run(2));
        let older = db.read(move |tx| sweep::peek(tx, PLACE, clean, 10))?;
        assert_eq!(older.iter().map(|it| it.id.0).collect::<Vec<_>>(), [3], "older ones go first");
        assert!(db.read(|tx| has_unlinked(tx, PLACE, Run(2)))?);
        let held = held.clone();
        db.write(move |tx| {
            chunks::open(tx, &held, ChunkId(7), JOB, Run(2), 0)?;
            let older = sweep::claim(tx, PLACE, ChunkId(7), clean, older.clone())?;
            let unlinked = sweep::peek(tx, PLACE, clean, 10)?;
            assert_eq!(unlinked.iter().map(|it| it.id.0).collect::<Vec<_>>(), [1]);
            let unlinked = sweep::claim(tx, PLACE, ChunkId(7), clean, unlinked)?;
            let to = |it: &Entry, to| SettledDocument { id: it.id, generation: 0, to };
            let settled = [to(&older[0], Settlement::Deleted), to(&unlinked[0], Settlement::Done)];
            let (by_id, roles) =
                (HashMap::new(), HashMap::from([(QueueId(1), RoleChange::Requisite)]));
            let presences = Presences { by_id: &by_id, round: 0, roles: &roles };
            settle_with(tx, PLACE, ChunkId(7), Run(2), &settled, presences)
        })?;
        assert_eq!(stands(db)?, of(&[(1, "done requisite"), (2, "done page")]));
        assert!(!db.read(|tx| has_unlinked(tx, PLACE, Run(2)))?);
        counted(db)
    });
}

#[test]
fn other_runs_make_no_requisite_of_a_page() {
    both_databases(|db| {
        let held = lease(db, PLACE.part, 1)?;
        name(db, 1, &[page(1, 1)])?;
        look(db, &held, 1)?;
        let named = [requisite(9, 1, 1)];
        db.write(move |tx| add(tx, at(PLACE, Run(2), 0), &named))?;
        assert_eq!(stands(db)?, of(&[(1, "ready page")]));
        counted(db)
    });
}

#[test]
fn requisites_have_a_budget_of_their_own() {
    both_databases(|db| {
        let requisites = RequisiteRules { room: Some(2), unlinks: false };
        let adding = AddContext { room: Some(1), requisites, ..at(PLACE, Run(1), 0) };
        let named: Vec<Candidate> = (1..=4)
            .map(|id| requisite(id, u8::try_from(id).expect("it is small"), 1))
            .chain([page(8, 8), page(9, 9)])
            .collect();
        db.write(move |tx| add(tx, adding, &named))?;
        counted(db)?;
        let reasons: Vec<(i64, Option<String>)> = db.read(|tx| {
            let sql = "SELECT id, reason FROM queue ORDER BY id LIMIT 9";
            tx.query(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))
        })?;
        let cut = |code: ReasonCode| Some(code.name().to_owned());
        let expected = [
            (1, None),
            (2, None),
            (3, cut(ReasonCode::Budget)),
            (4, cut(ReasonCode::Budget)),
            (8, None),
            (9, cut(ReasonCode::Limit)),
        ];
        assert_eq!(reasons, expected);
        let (pages, let_in) = db.read(|tx| {
            Ok((counters::pages_let_in(tx, JOB)?, counters::total(tx, JOB, REQUISITES)?))
        })?;
        assert_eq!((pages, let_in), (1, 2));
        // There is no room for another page, so that it stays what it is.
        let full = AddContext { room: Some(0), ..adding };
        let linked = [page(9, 1)];
        db.write(move |tx| add(tx, full, &linked))?;
        assert_eq!(stands(db)?[0], (1, "ready requisite".to_owned()));
        let linked = [page(9, 1), page(9, 3)];
        db.write(move |tx| add(tx, AddContext { room: None, ..adding }, &linked))?;
        assert_eq!(stands(db)?[0], (1, "ready page".to_owned()));
        assert_eq!(stands(db)?[2], (3, "ready page".to_owned()), "it is cut no more");
        counted(db)
    });
}

#[test]
fn a_page_that_was_cut_comes_back_as_a_requisite() {
    both_databases(|db| {
        let far = Candidate { cut: Some(ReasonCode::Hops), ..page(1, 1) };
        name(db, 1, &[far.clone(), Candidate { cut: Some(ReasonCode::Robots), ..page(2, 2) }])?;
        name(db, 1, &[requisite(9, 1, 1), requisite(9, 2, 1)])?;
        assert_eq!(stands(db)?, of(&[(1, "ready requisite"), (2, "cut page")]));
        name(db, 1, &[far])?;
        assert_eq!(stands(db)?[0], (1, "ready requisite".to_owned()), "it is still too far");
        let keys = [hash(1)];
        db.write(move |tx| let_in(tx, at(PLACE, Run(1), 0), &keys))?;
        assert_eq!(stands(db)?[0], (1, "ready page".to_owned()), "now it is near enough");
        counted(db)
    });
}

#[test]
fn one_that_leads_further_than_it_was_known_to_is_looked_at_again() {
    both_databases(|db| {
        let held = lease(db, PLACE.part, 1)?;
        name(db, 1, &[requisite(1, 1, 4)])?;
        look(db, &held, 1)?;
        name(db, 1, &[requisite(9, 1, LEVELS_MAX)])?;
        assert_eq!(stands(db)?, of(&[(1, "done requisite")]));
        name(db, 1, &[requisite(9, 1, 1)])?;
        assert_eq!(stands(db)?, of(&[(1, "ready requisite")]));
        assert_eq!(look(db, &held, 1)?[0].levels, 1);
        name(db, 2, &[requisite(9, 1, 3)])?;
        assert_eq!(look(db, &held, 2)?[0].levels, 3, "another run finds another way");
        Ok(())
    });
}
