//! How many documents stand where, without looking at them one by one.
//!
//! Counters say how many are in a state; partial indexes hold those of a state that stand
//! in it in another way than nearly all do. Invariant: the shapes of a state add up to its
//! counter.

use super::{BEHIND_SHAPE, Due, JobConditions, SHAPE, Shape, due};
use crate::ids::Run;
use crate::tables::{counters, queue};
use crate::{Result, Tx, Value};

/// Shapes that documents of one state have at most: a few dozen.
const SHAPES_MAX: u32 = 1_000;

/// How many documents of each shape a job has in a part, seen from a moment. Nearly all are
/// told by counters and indexes; only what is active or has failed is looked at. Where a
/// field of a shape does not matter for its state and status, it is not told apart.
pub fn counts(
    tx: &mut Tx<'_>,
    place: queue::Place,
    conditions: JobConditions,
    run: Run,
    now_ms: i64,
) -> Result<Vec<(Shape, i64)>> {
    let kept = counters::in_part(tx, place.part, place.job)?;
    let mut found = Vec::new();
    for &state in queue::State::ALL {
        let count = kept.iter().find(|it| it.0 == state.name()).map_or(0, |it| it.1);
        match state {
            _ if count == 0 => {}
            queue::State::Done if !conditions.looks_at_older() => {
                found.push((Shape { processed: true, ..Shape::plain(state) }, count));
            }
            queue::State::Done => found.extend(count_done(tx, place, run, count)?),
            queue::State::Cut => {
                let too_far = count_too_far(tx, place)?;
                found.push((Shape { too_far: true, ..Shape::plain(state) }, too_far));
                found.push((Shape::plain(state), count - too_far));
            }
            queue::State::Ready => found.extend(count_ready(tx, place, count)?),
            queue::State::Waiting => found.extend(count_waiting(tx, place, now_ms, count)?),
            _ => found.extend(count_shapes(tx, place, state, run, now_ms)?),
        }
    }
    found.retain(|(_, count)| *count != 0);
    Ok(found)
}

fn count_too_far(tx: &mut Tx<'_>, place: queue::Place) -> Result<i64> {
    tx.query_one(
        "SELECT COUNT(*) FROM queue
         WHERE part = $1 AND jobid = $2 AND state = 'cut' AND reason = 'hops'",
        &[place.part.into(), place.job.into()],
        |row| row.get(0),
    )
}

/// What older runs than `$3` have done, by whether this one has named it.
pub(super) const DONE_BEFORE: &str =
    "SELECT CAST(CASE WHEN seen_run >= $3 THEN 1 ELSE 0 END AS BIGINT), COUNT(*) FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'done' AND done_run < $3
     GROUP BY 1 LIMIT $4";

fn count_done(
    tx: &mut Tx<'_>,
    place: queue::Place,
    run: Run,
    count: i64,
) -> Result<Vec<(Shape, i64)>> {
    let done = Shape { processed: true, ..Shape::plain(queue::State::Done) };
    let mut found = tx.query(
        DONE_BEFORE,
        &[place.part.into(), place.job.into(), run.into(), SHAPES_MAX.into()],
        |row| {
            let seen = row.get::<i64>(0)? == 1;
            Ok((Shape { older: true, seen, ..done.clone() }, row.get(1)?))
        },
    )?;
    let older: i64 = found.iter().map(|it| it.1).sum();
    found.push((done, count - older));
    Ok(found)
}

/// What is ready in another way than to be fetched for the first time, in the words of an index.
pub(super) const READY_APART: &str =
    "SELECT action, CAST(CASE WHEN done_run IS NULL THEN 0 ELSE 1 END AS BIGINT), COUNT(*)
     FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'ready'
       AND (action <> 'fetch' OR done_run IS NOT NULL)
     GROUP BY 1, 2 LIMIT $3";

fn count_ready(tx: &mut Tx<'_>, place: queue::Place, count: i64) -> Result<Vec<(Shape, i64)>> {
    let ready = Shape::plain(queue::State::Ready);
    let mut found =
        tx.query(READY_APART, &[place.part.into(), place.job.into(), SHAPES_MAX.into()], |row| {
            let (action, processed) = (row.get(0)?, row.get::<i64>(1)? == 1);
            Ok((Shape { action, processed, ..ready.clone() }, row.get(2)?))
        })?;
    let apart: i64 = found.iter().map(|it| it.1).sum();
    found.push((ready, count - apart));
    Ok(found)
}

/// When what waits is due, in the order of [`Due`], seen from the moment `$3`.
const DUE: &str =
    "CAST(CASE WHEN checktime IS NULL THEN 0 WHEN checktime <= $3 THEN 1 ELSE 2 END AS BIGINT)";

/// What waits in another way than to be fetched again, in the words of an index.
pub(super) fn waiting_apart() -> String {
    format!(
        "SELECT action, CAST(CASE WHEN done_run IS NULL THEN 0 ELSE 1 END AS BIGINT), {DUE},
                COUNT(*)
         FROM queue
         WHERE part = $1 AND jobid = $2 AND state = 'waiting'
           AND (action <> 'fetch' OR done_run IS NULL)
         GROUP BY 1, 2, 3 LIMIT $4"
    )
}

/// What waits and is due, or never will be: the two ends of an index.
pub(super) const WAITING_ENDS: [&str; 2] = [
    "SELECT COUNT(*) FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND checktime IS NULL",
    "SELECT COUNT(*) FROM queue
     WHERE part = $1 AND jobid = $2 AND state = 'waiting' AND checktime <= $3",
];

fn count_waiting(
    tx: &mut Tx<'_>,
    place: queue::Place,
    now_ms: i64,
    count: i64,
) -> Result<Vec<(Shape, i64)>> {
    let waiting = Shape { processed: true, ..Shape::plain(queue::State::Waiting) };
    let place: [Value<'_>; 2] = [place.part.into(), place.job.into()];
    let [part, job] = place;
    let mut found =
        tx.query(&waiting_apart(), &[part, job, now_ms.into(), SHAPES_MAX.into()], |row| {
            let (action, processed) = (row.get(0)?, row.get::<i64>(1)? == 1);
            let shape = Shape { action, processed, due: due(row, 2)?, ..waiting.clone() };
            Ok((shape, row.get(3)?))
        })?;
    let never: i64 = tx.query_one(WAITING_ENDS[0], &place, |row| row.get(0))?;
    let now: i64 = tx.query_one(WAITING_ENDS[1], &[part, job, now_ms.into()], |row| row.get(0))?;
    let ends = [(Due::Never, never), (Due::Now, now), (Due::Later, count - never - now)];
    for (due, all) in ends {
        let apart: i64 = found.iter().filter(|it| it.0.due == due).map(|it| it.1).sum();
        found.push((Shape { due, ..waiting.clone() }, all - apart));
    }
    Ok(found)
}

fn count_shapes(
    tx: &mut Tx<'_>,
    place: queue::Place,
    state: queue::State,
    run: Run,
    now_ms: i64,
) -> Result<Vec<(Shape, i64)>> {
    // The state stands in the text, so that the index of this state is taken.
    tx.query(
        &format!(
            "SELECT {SHAPE}, COUNT(*) FROM queue q
             WHERE q.part = $1 AND q.jobid = $4 AND q.state = '{}'
             GROUP BY 1, 2, 3, 4, 5, 6, 7 LIMIT $5",
            state.name()
        ),
        &[place.part.into(), now_ms.into(), run.into(), place.job.into(), SHAPES_MAX.into()],
        |row| Ok((Shape::from_row(row)?, row.get(BEHIND_SHAPE)?)),
    )
}
