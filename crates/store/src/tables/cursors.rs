//! How far each consumer of changes has come in each part.
//!
//! Invariant: a cursor moves in the same transaction as the effect it stands for,
//! and only forward from where the consumer thinks it is; so a repeated or a stale
//! step is refused instead of applied twice.

use crate::ids::Part;
use crate::{Error, Result, Tx};

/// The number of the last commit that `consumer` has applied; 0 before the first.
pub fn get(tx: &mut Tx<'_>, part: Part, consumer: &str) -> Result<i64> {
    let seq = tx.query_opt(
        "SELECT seq FROM cursors WHERE part = $1 AND consumer = $2",
        &[part.into(), consumer.into()],
        |row| row.get(0),
    )?;
    Ok(seq.unwrap_or(0))
}

/// The commit that every consumer of a part has applied, or `None` when there is no
/// consumer. One that has applied nothing yet has no cursor and does not count.
pub fn slowest(tx: &mut Tx<'_>, part: Part) -> Result<Option<i64>> {
    tx.query_one("SELECT MIN(seq) FROM cursors WHERE part = $1", &[part.into()], |row| row.get(0))
}

/// Moves the cursor on, in the transaction of the effect.
pub fn advance(
    tx: &mut Tx<'_>,
    (part, consumer): (Part, &str),
    from: i64,
    to: i64,
    now_ms: i64,
) -> Result<()> {
    assert!(from < to, "a cursor moves forward");
    let key = [part.into(), consumer.into(), to.into(), now_ms.into()];
    let touched = if from == 0 {
        tx.execute(
            "INSERT INTO cursors (part, consumer, seq, changed_ms) VALUES ($1, $2, $3, $4)
             ON CONFLICT (part, consumer) DO NOTHING",
            &key,
        )?
    } else {
        tx.execute(
            "UPDATE cursors SET seq = $3, changed_ms = $4
             WHERE part = $1 AND consumer = $2 AND seq = $5",
            &[key[0], key[1], key[2], key[3], from.into()],
        )?
    };
    if touched == 1 {
        return Ok(());
    }
    let found = get(tx, part, consumer)?;
    Err(Error::Refused(format!(
        "the cursor of {consumer} in part {part} is at {found}, not at {from}; \
         somebody else has moved it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    #[test]
    fn a_cursor_moves_only_from_where_it_is() {
        both_databases(|db| {
            let step = |from, to| db.write(move |tx| advance(tx, (Part(3), "links"), from, to, 0));
            assert!(step(1, 2).is_err(), "nothing was applied yet");
            step(0, 2)?;
            assert!(step(0, 2).is_err(), "a repeated step is refused");
            assert!(step(1, 3).is_err(), "a stale step is refused");
            step(2, 5)?;
            assert_eq!(db.read(|tx| get(tx, Part(3), "links"))?, 5);
            assert_eq!(db.read(|tx| get(tx, Part(3), "search"))?, 0);
            assert_eq!(db.read(|tx| slowest(tx, Part(4)))?, None);
            db.write(|tx| advance(tx, (Part(3), "search"), 0, 3, 0))?;
            assert_eq!(db.read(|tx| slowest(tx, Part(3)))?, Some(3));
            Ok(())
        });
    }
}
