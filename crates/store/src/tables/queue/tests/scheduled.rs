//! Documents of continuous jobs: what becomes of their times when they fall due, when
//! another run begins, and when the job does not go on for ever any more.

use super::*;

/// Three documents: one is looked at again at its time, one expires, one is in trouble.
fn scheduled(db: &Db, place: Place) -> Result<()> {
    let held = lease(db, place.part, 1)?;
    db.write(move |tx| {
        let named = [candidate(1, 0, 0, None), candidate(2, 1, 0, None), candidate(3, 2, 0, None)];
        add(tx, at(place, Run(1), 0), &named)?;
        chunks::open(tx, &held, ChunkId(1), JOB, Run(1), 0)?;
        claim_ids(tx, place, ChunkId(1), &[QueueId(1), QueueId(2), QueueId(3)])?;
        let again = |action| Settlement::Again { check_ms: 50, action };
        let reason = Reason::new("http-503", None);
        let retry = Settlement::Retry { check_ms: 60, failcount: Some(1), failtime: None, reason };
        let settled = [(1, again(Action::Fetch)), (2, again(Action::Expire)), (3, retry)]
            .map(|(id, to)| SettledDocument { id: QueueId(id), generation: 0, to });
        settle(tx, place, ChunkId(1), Run(1), &settled)
    })
}

#[test]
fn what_waits_for_its_end_expires_unless_a_later_run_takes_it_before() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        scheduled(db, place)?;
        let held = lease(db, place.part, 2)?;
        let bin = |document: u8| candidate(9, document, 0, None).bin;
        let action = |document: u8| -> Result<(String, State)> {
            let found = db.read(move |tx| find(tx, place, hash(document)))?;
            Ok(found.map(|it| (it.action.name().to_owned(), it.state)).expect("it is there"))
        };
        let older = db.read(move |tx| peek_older(tx, place, bin(0), Run(1), 9))?;
        assert_eq!(older, [], "its own run waits for its time");
        db.write(move |tx| wake(tx, place, 50, 9))?;
        assert_eq!(action(1)?, ("expire".to_owned(), State::Ready));
        db.write(move |tx| {
            chunks::open(tx, &held, ChunkId(2), JOB, Run(1), 0)?;
            claim_ids(tx, place, ChunkId(2), &[QueueId(2)])?;
            let to = Settlement::Back { failcount: None, failtime: None };
            settle(
                tx,
                place,
                ChunkId(2),
                Run(1),
                &[SettledDocument { id: QueueId(2), generation: 0, to }],
            )
        })?;
        assert_eq!(action(1)?.0, "expire", "given back, it is as it was");
        Ok(())
    });
}

/// ManifoldCF gives it the time of its next look, or none.
#[test]
fn a_rescan_asked_for_while_active_is_not_lost() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        let held = lease(db, place.part, 1)?;
        db.write(move |tx| {
            let named = [candidate(1, 0, 0, None), candidate(2, 1, 0, None)];
            add(tx, at(place, Run(1), 0), &named)?;
            chunks::open(tx, &held, ChunkId(1), JOB, Run(1), 0)?;
            claim_ids(tx, place, ChunkId(1), &[QueueId(1), QueueId(2)])?;
            tx.execute("UPDATE queue SET rescan = 1 WHERE part = 1 AND id = 1", &[])?;
            let to = Settlement::Again { check_ms: 5_000, action: Action::Fetch };
            let settled =
                [1, 2].map(|id| SettledDocument { id: QueueId(id), generation: 0, to: to.clone() });
            settle(tx, place, ChunkId(1), Run(1), &settled)
        })?;
        let state = |document| {
            db.read(move |tx| find(tx, place, hash(document))).map(|it| it.map(|it| it.state))
        };
        assert_eq!((state(0)?, state(1)?), (Some(State::Ready), Some(State::Waiting)));
        Ok(())
    });
}

#[test]
fn a_later_run_looks_at_what_waits_for_its_time_but_not_at_what_is_in_trouble() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        scheduled(db, place)?;
        let held = lease(db, place.part, 2)?;
        let mut older = Vec::new();
        for bin in (0..BINS).map(BinId) {
            older.extend(db.read(move |tx| peek_older(tx, place, bin, Run(2), 9))?);
        }
        older.sort_by_key(|it| it.id);
        assert_eq!(older.iter().map(|it| it.id.0).collect::<Vec<_>>(), [1, 2]);
        let claimed = db.write(move |tx| {
            chunks::open(tx, &held, ChunkId(2), JOB, Run(2), 0)?;
            claim(tx, place, ChunkId(2), older.clone())
        })?;
        assert!(
            claimed.iter().all(|it| it.action.name() == "fetch"),
            "nothing ends by a later run"
        );
        assert_eq!(db.read(move |tx| next_due(tx, place))?, Some(60), "the one in trouble");
        Ok(())
    });
}

#[test]
fn a_job_that_does_not_go_on_for_ever_any_more_has_nothing_scheduled() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        scheduled(db, place)?;
        assert_eq!(db.write(move |tx| unschedule(tx, place, 1))?, 1);
        assert_eq!(db.write(move |tx| unschedule(tx, place, 9))?, 1);
        assert_eq!(db.write(move |tx| unschedule(tx, place, 9))?, 0);
        let counted = db.read(move |tx| count_rows(tx, place))?;
        assert_eq!(counted, [("done".to_owned(), 2), ("waiting".to_owned(), 1)]);
        let kept = db.read(move |tx| crate::tables::counters::in_part(tx, place.part, JOB))?;
        let kept: Vec<_> = kept.into_iter().filter(|it| it.1 != 0).collect();
        assert_eq!(kept, counted, "counters equal counts");
        Ok(())
    });
}

#[test]
fn only_what_waits_for_one_of_some_reasons_is_hastened() {
    both_databases(|db| {
        let place = Place { part: Part(1), job: JOB };
        scheduled(db, place)?;
        let due = |ms| db.write(move |tx| wake(tx, place, ms, 9));
        let hasten = |code: &str| {
            let reasons = ["dns".to_owned(), code.to_owned()];
            db.write(move |tx| hasten(tx, place, &reasons, 10, 9))
        };
        assert_eq!((hasten("connect")?, due(10)?), (0, 0));
        assert_eq!((hasten("http-503")?, due(10)?), (1, 1), "the one in trouble");
        assert_eq!((hasten("http-503")?, due(60)?), (0, 2), "the others keep their time");
        Ok(())
    });
}
