//! How far each consumer of changes has come in each part.
//!
//! Invariant: a cursor moves in the same transaction as the effect it stands for,
//! and only forward from where the consumer thinks it is; so a repeated or a stale
//! step is refused instead of applied twice.

use crate::checksums::coverage::CURSORS;
use crate::ids::{CommitNumber, Part};
use crate::tables::settings::PARTS_MAX;
use crate::{Error, Result, Tx, Value};
use std::collections::BTreeMap;

/// Parts of which is looked since when something is behind; those that are furthest behind.
const SINCE_PARTS_MAX: usize = 16;

/// The link index, as a consumer and as the role of who runs it.
pub const LINKS: &str = "links";
/// The search index, likewise.
pub const SEARCH: &str = "search";

/// Consumers of one part: the indexes, and outputs that read chunks.
const CONSUMERS_MAX: i64 = 10_000;

/// What people call a consumer.
pub fn title(consumer: &str) -> String {
    match consumer {
        LINKS => "the link index".to_owned(),
        SEARCH => "the search index".to_owned(),
        other => format!("the output {other}"),
    }
}

/// The number of the last commit that `consumer` has applied; 0 before the first.
pub fn get(tx: &mut Tx<'_>, part: Part, consumer: &str) -> Result<CommitNumber> {
    let places = CURSORS.places(SELECTED);
    let found = tx.query_opt(
        &format!("SELECT {SELECTED} FROM cursors WHERE part = $1 AND consumer = $2"),
        &[part.into(), consumer.into()],
        |row| if places.is_whole(row)? { row.get(2).map(Some) } else { Ok(None) },
    )?;
    match found {
        None => Ok(CommitNumber::NONE),
        Some(Some(seq)) => Ok(seq),
        Some(None) => Err(damaged(part, consumer)),
    }
}

/// What is read of a cursor to check it.
const SELECTED: &str = "part, consumer, seq, changed_ms, checksum";

/// A cursor that is damaged must not be believed: an index would leave commits out.
fn damaged(part: Part, consumer: &str) -> Error {
    CURSORS.damaged(&format!("with part {part}, consumer {consumer:?}"))
}

/// The commit that every consumer of a part has applied, or `None` when there is no
/// consumer. One that has applied nothing yet has no cursor and does not count.
pub fn slowest(tx: &mut Tx<'_>, part: Part) -> Result<Option<CommitNumber>> {
    let places = CURSORS.places(SELECTED);
    let found = tx.query(
        &format!("SELECT {SELECTED} FROM cursors WHERE part = $1 ORDER BY consumer LIMIT $2"),
        &[part.into(), CONSUMERS_MAX.into()],
        |row| if places.is_whole(row)? { row.get(2).map(Ok) } else { row.get(1).map(Err) },
    )?;
    let mut slowest: Option<CommitNumber> = None;
    for it in found {
        let seq = it.map_err(|consumer: String| damaged(part, &consumer))?;
        slowest = Some(slowest.map_or(seq, |slowest| slowest.min(seq)));
    }
    Ok(slowest)
}

/// Moves the cursor on, in the transaction of the effect.
pub fn advance(
    tx: &mut Tx<'_>,
    part: Part,
    consumer: &str,
    from: CommitNumber,
    to: CommitNumber,
    now_ms: i64,
) -> Result<()> {
    assert!(from < to, "a cursor moves forward");
    let row = row(part, consumer, to, now_ms);
    let touched = if from == CommitNumber::NONE {
        tx.execute(
            "INSERT INTO cursors (part, consumer, seq, changed_ms, checksum)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (part, consumer) DO NOTHING",
            &row,
        )?
    } else {
        tx.execute(
            "UPDATE cursors SET seq = $3, changed_ms = $4, checksum = $5
             WHERE part = $1 AND consumer = $2 AND seq = $6",
            &[row.as_slice(), &[from.into()]].concat(),
        )?
    };
    if touched == 1 {
        return Ok(());
    }
    let found = get(tx, part, consumer)?;
    Err(Error::invariant(format!(
        "the cursor of {consumer} in part {part} is at {found}, not at {from}; \
         somebody else has moved it"
    )))
}

/// The values of a cursor's row, its checksum behind them.
fn row<'a>(part: Part, consumer: &'a str, seq: CommitNumber, now_ms: i64) -> Vec<Value<'a>> {
    let values = vec![part.into(), consumer.into(), seq.into(), now_ms.into()];
    CURSORS.places(CURSORS.covered).with_checksum(values)
}

/// Tells how far a consumer is that keeps its cursor with its own effect; this is only what
/// others are told of it. It never goes back.
pub fn set(
    tx: &mut Tx<'_>,
    part: Part,
    consumer: &str,
    seq: CommitNumber,
    now_ms: i64,
) -> Result<()> {
    tx.execute(
        "INSERT INTO cursors (part, consumer, seq, changed_ms, checksum)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (part, consumer) DO UPDATE SET seq = excluded.seq,
             changed_ms = excluded.changed_ms, checksum = excluded.checksum
         WHERE cursors.seq < excluded.seq",
        &row(part, consumer, seq, now_ms),
    )?;
    Ok(())
}

/// Forgets how far a consumer is: it begins anew.
pub fn forget(tx: &mut Tx<'_>, consumer: &str) -> Result<()> {
    tx.execute("DELETE FROM cursors WHERE consumer = $1", &[consumer.into()])?;
    Ok(())
}

/// A consumer that is behind in a part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Behind {
    pub part: Part,
    pub consumer: String,
    /// Commits of the part that it has not applied.
    pub chunks: i64,
    /// When the first of them was made, if it is known.
    pub since_ms: Option<i64>,
    /// When its cursor was moved last.
    pub moved_ms: i64,
}

/// Consumers of some parts that are at work, which is who holds the part's lease in the role of that
/// name, and more than so many commits behind the crawl. One that nobody runs is not
/// waited for.
pub fn behind(
    tx: &mut Tx<'_>,
    parts: &[Part],
    chunks_over: i64,
    now_ms: i64,
    limit: u32,
) -> Result<Vec<Behind>> {
    let parts: Vec<Value<'_>> = parts.iter().map(|part| (*part).into()).collect();
    tx.query_in(
        "SELECT c.part, c.consumer, l.seq - c.seq,
                (SELECT k.committed_ms FROM chunks k
                 WHERE k.part = c.part AND k.state = 'crawled' AND k.seq > c.seq
                 ORDER BY k.seq LIMIT 1),
                c.changed_ms
         FROM cursors c
         JOIN leases l ON l.part = c.part AND l.role = 'crawl'
         JOIN leases own ON own.part = c.part AND own.role = c.consumer
         WHERE l.seq > c.seq + $1 AND own.deadline_ms > $2 AND c.part IN ($keys)
         ORDER BY c.part, c.consumer LIMIT $3",
        &[chunks_over.into(), now_ms.into(), limit.into()],
        &parts,
        |row| {
            let (part, consumer) = (row.get(0)?, row.get(1)?);
            let (since_ms, moved_ms) = (row.get(3)?, row.get(4)?);
            Ok(Behind { part, consumer, chunks: row.get(2)?, since_ms, moved_ms })
        },
    )
}

/// How far a consumer is behind the crawl, over all parts.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Lag {
    /// Commits that it has not applied.
    pub behind_chunks: i64,
    /// How long ago the first of them was made.
    pub behind_ms: i64,
}

/// How far a consumer is behind the crawl, whether it is at work or not. One that has no
/// cursor is behind by all there is.
pub fn lag(tx: &mut Tx<'_>, consumer: &str, now_ms: i64) -> Result<Lag> {
    let behind: Vec<(i64, Option<i64>)> = tx.query(
        "SELECT l.seq - COALESCE(c.seq, 0),
                (SELECT k.committed_ms FROM chunks k
                 WHERE k.part = l.part AND k.state = 'crawled' AND k.seq > COALESCE(c.seq, 0)
                 ORDER BY k.seq LIMIT 1)
         FROM leases l LEFT JOIN cursors c ON c.part = l.part AND c.consumer = $1
         WHERE l.role = 'crawl' AND l.seq > COALESCE(c.seq, 0)
         ORDER BY l.part LIMIT $2",
        &[consumer.into(), PARTS_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let first_ms = behind.iter().filter_map(|(_, first_ms)| *first_ms).min();
    Ok(Lag {
        behind_chunks: behind.iter().map(|(chunks, _)| chunks).sum(),
        behind_ms: first_ms.map_or(0, |first_ms| now_ms.saturating_sub(first_ms).max(0)),
    })
}

/// How far something is behind the crawl that has all commits of parts up to these, such as a
/// version that was published earlier. Of a part that is not among them it has none.
pub fn lag_behind(
    tx: &mut Tx<'_>,
    reached: &BTreeMap<Part, CommitNumber>,
    now_ms: i64,
) -> Result<Lag> {
    let heads: Vec<(Part, CommitNumber)> = tx.query(
        "SELECT part, seq FROM leases WHERE role = 'crawl' AND seq > 0 ORDER BY part LIMIT $1",
        &[PARTS_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut behind: Vec<(i64, Part, CommitNumber)> = Vec::new();
    for (part, head) in heads {
        let seq = reached.get(&part).copied().unwrap_or(CommitNumber::NONE);
        if seq < head {
            behind.push((seq.behind(head), part, seq));
        }
    }
    behind.sort_unstable_by_key(|(chunks, part, _)| (-chunks, *part));
    let mut first_ms: Option<i64> = None;
    for (_, part, seq) in behind.iter().take(SINCE_PARTS_MAX) {
        let committed_ms: Option<Option<i64>> = tx.query_opt(
            "SELECT committed_ms FROM chunks
             WHERE part = $1 AND state = 'crawled' AND seq > $2
             ORDER BY seq LIMIT 1",
            &[(*part).into(), (*seq).into()],
            |row| row.get(0),
        )?;
        first_ms = first_ms.into_iter().chain(committed_ms.flatten()).min();
    }
    Ok(Lag {
        behind_chunks: behind.iter().map(|(chunks, ..)| chunks).sum(),
        behind_ms: first_ms.map_or(0, |first_ms| now_ms.saturating_sub(first_ms).max(0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use crate::objects::{Location, Objects};
    use crate::tables::leases::{self, LeaseRequest};
    use crate::testing::{both_databases, commit_sample};

    fn at(seq: i64) -> CommitNumber {
        CommitNumber(seq)
    }

    #[test]
    fn a_cursor_moves_only_from_where_it_is() {
        both_databases(|db| {
            let step =
                |from, to| db.write(move |tx| advance(tx, Part(3), "links", at(from), at(to), 0));
            assert!(step(1, 2).is_err(), "nothing was applied yet");
            step(0, 2)?;
            assert!(step(0, 2).is_err(), "a repeated step is refused");
            assert!(step(1, 3).is_err(), "a stale step is refused");
            step(2, 5)?;
            assert_eq!(db.read(|tx| get(tx, Part(3), "links"))?, at(5));
            assert_eq!(db.read(|tx| get(tx, Part(3), "search"))?, CommitNumber::NONE);
            assert_eq!(db.read(|tx| slowest(tx, Part(4)))?, None);
            db.write(|tx| advance(tx, Part(3), "search", at(0), at(3), 0))?;
            assert_eq!(db.read(|tx| slowest(tx, Part(3)))?, Some(at(3)));
            Ok(())
        });
    }

    #[test]
    fn what_others_are_told_never_goes_back() {
        both_databases(|db| {
            for (seq, expected) in [(3, 3), (9, 9), (5, 9)] {
                db.write(move |tx| set(tx, Part(1), "links", at(seq), 7))?;
                assert_eq!(db.read(|tx| get(tx, Part(1), "links"))?, at(expected));
            }
            Ok(())
        });
    }

    fn asking(now_ms: i64) -> LeaseRequest {
        let (node, node_name) = (NodeId(9), "follower".to_owned());
        LeaseRequest { node, node_name, now_ms, lease_ms: 100, skew_ms: 0 }
    }

    #[test]
    fn only_a_consumer_that_somebody_runs_is_behind() {
        both_databases(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            for round in 0..3 {
                commit_sample(db, &store, Part(1), round)?;
            }
            let behind =
                |over, now_ms| db.read(move |tx| behind(tx, &[Part(0), Part(1)], over, now_ms, 9));
            db.write(|tx| leases::take(tx, Part(1), "links", &asking(1_000)))?;
            assert_eq!(behind(0, 1_000)?, [], "it has no cursor yet");
            db.write(|tx| set(tx, Part(1), "links", at(1), 0))?;
            db.write(|tx| set(tx, Part(1), "search", at(1), 0))?;
            // Samples are committed at 0.
            let (consumer, since_ms) = ("links".into(), Some(0));
            let links = Behind { part: Part(1), consumer, chunks: 2, since_ms, moved_ms: 0 };
            assert_eq!(behind(1, 1_099)?, [links], "nobody runs the other");
            assert_eq!(behind(2, 1_099)?, [], "it is not so far behind");
            assert_eq!(behind(1, 1_100)?, [], "its lease is over");
            Ok(())
        });
    }

    #[test]
    fn a_lag_is_counted_over_all_parts_from_the_first_commit_that_is_missed() {
        both_databases(|db| {
            let place = tempfile::tempdir().expect("a temporary directory can be made");
            let store = Objects::open(&Location::Directory(place.path().to_owned()))?;
            let lag = || db.read(|tx| lag(tx, "links", 5_000));
            assert_eq!(lag()?, Lag::default(), "nothing is committed");
            // Samples are committed at 0.
            for (part, round) in [(1, 0), (1, 1), (2, 0)] {
                commit_sample(db, &store, Part(part), round)?;
            }
            assert_eq!(lag()?, Lag { behind_chunks: 3, behind_ms: 5_000 });
            for (part, seq, behind_chunks) in [(1, 1, 2), (2, 1, 1)] {
                db.write(move |tx| set(tx, Part(part), "links", at(seq), 0))?;
                assert_eq!(lag()?, Lag { behind_chunks, behind_ms: 5_000 });
            }
            db.write(|tx| set(tx, Part(1), "links", at(2), 0))?;
            assert_eq!(lag()?, Lag::default(), "it is up to date");
            // What was there earlier is behind, whatever was reached since.
            let earlier = |reached: &[(i64, i64)]| {
                let reached: BTreeMap<Part, CommitNumber> =
                    reached.iter().map(|(part, seq)| (Part(*part), at(*seq))).collect();
                db.read(move |tx| lag_behind(tx, &reached, 5_000))
            };
            assert_eq!(earlier(&[])?, Lag { behind_chunks: 3, behind_ms: 5_000 });
            assert_eq!(earlier(&[(1, 1), (2, 1)])?, Lag { behind_chunks: 1, behind_ms: 5_000 });
            assert_eq!(earlier(&[(1, 2), (2, 1)])?, Lag::default());
            Ok(())
        });
    }
}
