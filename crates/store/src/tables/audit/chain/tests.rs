//! Every way to rewrite the log is noticed.

use super::super::{begin, complete};
use super::*;
use crate::testing::{both_databases, damages_rows};

fn entry(id: i64) -> AuditEntry {
    let (who, verb) = ("me".to_owned(), "job".to_owned());
    AuditEntry { id, at_ms: id * 10, who, verb, outcome: String::new(), changes: "what".to_owned() }
}

/// Entries 1 to 3, of which the last is only begun.
fn fill(db: &Db) -> Result<()> {
    for id in 1..=3 {
        db.write(move |tx| begin(tx, &entry(id)))?;
    }
    for id in 1..=2 {
        db.write(move |tx| complete(tx, id, "done", "job docs: new"))?;
    }
    Ok(())
}

#[test]
fn a_log_that_nobody_touched_is_as_it_was() {
    both_databases(|db| {
        assert_eq!(check(db)?, ChainCheck::default(), "there is none");
        fill(db)?;
        let checked = check(db)?;
        assert_eq!((checked.events, &checked.problems[..]), (6, &[][..]), "{checked:?}");
        let head = db.read(head)?.map(|it| it.to_string());
        assert!(head.as_deref().is_some_and(|it| it.starts_with("6 ")), "{head:?}");
        assert_eq!(checked.head, head);
        Ok(())
    });
}

#[test]
fn a_head_that_is_no_head_is_told_and_so_are_events_behind_it() {
    both_databases(|db| {
        damages_rows();
        fill(db)?;
        let before = db.read(head)?.expect("there are events").to_string();
        for odd in ["6 abc", "6", "x 00", "5 00", ""] {
            db.write(move |tx| settings::set_audit_head(tx, odd))?;
            assert!(matches!(check(db), Err(Error::Corrupt { .. })), "{odd:?}");
        }
        db.write(move |tx| settings::set_audit_head(tx, &before))?;
        assert_eq!(check(db)?.problems, [""; 0]);
        db.write(|tx| tx.execute("UPDATE audit_chain SET number = 7 WHERE number = 6", &[]))?;
        let behind = check(db)?.problems;
        assert!(behind.iter().any(|it| it.contains("event 7 is behind its head")), "{behind:?}");
        Ok(())
    });
}

#[test]
fn what_is_changed_dropped_or_added_behind_our_back_is_named() {
    both_databases(|db| {
        damages_rows();
        // One from before there was a chain.
        db.write(|tx| {
            tx.execute(
                "INSERT INTO audit (id, at_ms, who, verb, outcome, changes)
                 VALUES (900, 1, 'old', 'job', 'done', 'x')",
                &[],
            )
        })?;
        fill(db)?;
        assert_eq!(check(db)?.problems, [""; 0]);
        let undone: [(&'static str, &'static str, &str); 6] = [
            (
                "UPDATE audit SET who = 'you' WHERE id = 1",
                "UPDATE audit SET who = 'me' WHERE id = 1",
                "entry 1",
            ),
            (
                "UPDATE audit SET at_ms = 31 WHERE id = 3",
                "UPDATE audit SET at_ms = 30 WHERE id = 3",
                "entry 3",
            ),
            (
                "UPDATE audit SET changes = 'y' WHERE id = 900",
                "UPDATE audit SET changes = 'x' WHERE id = 900",
                "before the chain",
            ),
            (
                "INSERT INTO audit (id, at_ms, who, verb, outcome, changes) VALUES (5, 5, 'a', 'b', 'done', '')",
                "DELETE FROM audit WHERE id = 5",
                "before the chain",
            ),
            (
                "UPDATE audit_chain SET event = 'refused' WHERE number = 6",
                "UPDATE audit_chain SET event = 'done' WHERE number = 6",
                "does not follow",
            ),
            ("DELETE FROM audit WHERE id = 2", "SELECT 1", "entry 2"),
        ];
        for (text, back, named) in undone {
            db.write(move |tx| tx.execute(text, &[]))?;
            let problems = check(db)?.problems;
            assert!(problems.iter().any(|it| it.contains(named)), "{text}: {problems:?}");
            if back.starts_with("SELECT") {
                break;
            }
            db.write(move |tx| tx.execute(back, &[]))?;
            assert_eq!(check(db)?.problems, [""; 0], "{back}");
        }
        db.write(|tx| tx.execute("DELETE FROM audit_chain WHERE number = 6", &[]))?;
        let cut = check(db)?.problems;
        assert!(cut.iter().any(|it| it.contains("its last event is number 5")), "{cut:?}");
        db.write(|tx| tx.execute("DELETE FROM audit_chain WHERE number = 3", &[]))?;
        let missing = check(db)?.problems;
        assert!(missing.iter().any(|it| it.contains("3 to 3 are missing")), "{missing:?}");
        Ok(())
    });
}
