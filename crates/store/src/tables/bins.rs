//! Bins: what politeness counts by (for the web, a host), and which have work.
//!
//! Invariant: when a bin may be asked again is written with the commit that used it, or before
//! its part is given back in good order; whoever takes a part that was not given back so waits
//! a full delay on top. So the gap between requests to a bin never shrinks, across restarts too.

use crate::dialect::ValueKind;
use crate::ids::{BinId, JobId, Part};
use crate::value::{Row, column};
use crate::{Result, Tx, Value};

/// A bin's politeness and record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Bin {
    pub bin: BinId,
    pub name: String,
    /// The delay between requests if it has one of its own.
    pub delay_ms: Option<i64>,
    /// Not before this time.
    pub next_ms: i64,
    /// Failures in a row.
    pub failures: i64,
    /// The breaker is open until then.
    pub blocked_ms: Option<i64>,
    /// Why it is open. Without a time: why it is not asked at all.
    pub blocked_by: Option<String>,
    /// Documents of all jobs known in it.
    pub documents: i64,
    /// Requests so far.
    pub fetches: i64,
    /// Requests that failed.
    pub errors: i64,
    /// Bytes received.
    pub bytes: i64,
    /// Time spent waiting for its answers.
    pub busy_ms: i64,
}

const BIN: &str = "bin, name, delay_ms, next_ms, failures, blocked_ms, blocked_by, documents, \
                   fetches, errors, bytes, busy_ms";

impl Bin {
    fn from_row(row: &Row<'_>) -> Result<Bin> {
        Ok(Bin {
            bin: row.get(column!(BIN, "bin"))?,
            name: row.get(column!(BIN, "name"))?,
            delay_ms: row.get(column!(BIN, "delay_ms"))?,
            next_ms: row.get(column!(BIN, "next_ms"))?,
            failures: row.get(column!(BIN, "failures"))?,
            blocked_ms: row.get(column!(BIN, "blocked_ms"))?,
            blocked_by: row.get(column!(BIN, "blocked_by"))?,
            documents: row.get(column!(BIN, "documents"))?,
            fetches: row.get(column!(BIN, "fetches"))?,
            errors: row.get(column!(BIN, "errors"))?,
            bytes: row.get(column!(BIN, "bytes"))?,
            busy_ms: row.get(column!(BIN, "busy_ms"))?,
        })
    }
}

/// Loads bins by their numbers.
pub fn load(tx: &mut Tx<'_>, part: Part, bins: &[BinId]) -> Result<Vec<Bin>> {
    let keys: Vec<Value<'_>> = bins.iter().map(|bin| (*bin).into()).collect();
    tx.query_in(
        &format!("SELECT {BIN} FROM bins WHERE part = $1 AND bin IN ($keys)"),
        &[part.into()],
        &keys,
        Bin::from_row,
    )
}

/// Bins of a part in the order of their numbers, after one.
pub fn list(tx: &mut Tx<'_>, part: Part, after: BinId, limit: u32) -> Result<Vec<Bin>> {
    tx.query(
        &format!("SELECT {BIN} FROM bins WHERE part = $1 AND bin > $2 ORDER BY bin LIMIT $3"),
        &[part.into(), after.into(), limit.into()],
        Bin::from_row,
    )
}

/// Bins of all parts in the order of part and number, after one, with their parts.
pub fn list_all(
    tx: &mut Tx<'_>,
    after_part: Part,
    after_bin: BinId,
    limit: u32,
) -> Result<Vec<(Part, Bin)>> {
    tx.query(
        &format!(
            "SELECT {BIN}, part FROM bins WHERE (part, bin) > ($1, $2) ORDER BY part, bin LIMIT $3"
        ),
        &[after_part.into(), after_bin.into(), limit.into()],
        |row| Ok((row.get(12)?, Bin::from_row(row)?)),
    )
}

/// Bins of a part that have had work for a job, in the order of their numbers, after
/// one.
pub fn list_of_job(
    tx: &mut Tx<'_>,
    part: Part,
    job: JobId,
    after: BinId,
    limit: u32,
) -> Result<Vec<Bin>> {
    let columns: Vec<String> = BIN.split(", ").map(|column| format!("b.{column}")).collect();
    tx.query(
        &format!(
            "SELECT {} FROM bin_work w JOIN bins b ON b.part = w.part AND b.bin = w.bin
             WHERE w.part = $1 AND w.jobid = $2 AND w.bin > $3 ORDER BY w.bin LIMIT $4",
            columns.join(", ")
        ),
        &[part.into(), job.into(), after.into(), limit.into()],
        Bin::from_row,
    )
}

/// What a chunk did to a bin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Visit {
    pub bin: BinId,
    /// Not before this time from now on.
    pub next_ms: i64,
    /// The delay it asks for, if it asks.
    pub delay_ms: Option<i64>,
    /// Failures in a row, as they stand now.
    pub failures: i64,
    /// The breaker, as it stands now.
    pub blocked_ms: Option<i64>,
    /// Why it is open.
    pub blocked_by: Option<String>,
    /// Requests in this chunk.
    pub fetches: i64,
    /// Requests that failed.
    pub errors: i64,
    /// Bytes received.
    pub bytes: i64,
    /// Time that requests took.
    pub busy_ms: i64,
}

/// Books the visits of a chunk, in its commit. Times only move forward.
pub fn visited(tx: &mut Tx<'_>, part: Part, visits: &[Visit]) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = visits
        .iter()
        .map(|visit| {
            vec![
                visit.bin.into(),
                visit.next_ms.into(),
                visit.delay_ms.into(),
                visit.failures.into(),
                visit.blocked_ms.into(),
                (&visit.blocked_by).into(),
                visit.fetches.into(),
                visit.errors.into(),
                visit.bytes.into(),
                visit.busy_ms.into(),
            ]
        })
        .collect();
    let mut kinds = [ValueKind::Int; 10];
    kinds[5] = ValueKind::Text;
    tx.update_rows(
        "UPDATE bins SET
             next_ms = CASE WHEN v.column2 > next_ms THEN v.column2 ELSE next_ms END,
             delay_ms = COALESCE(v.column3, delay_ms), failures = v.column4,
             blocked_ms = v.column5, blocked_by = v.column6, fetches = fetches + v.column7,
             errors = errors + v.column8, bytes = bytes + v.column9, busy_ms = busy_ms + v.column10",
        &[part.into()],
        &kinds,
        &rows,
        "WHERE bins.part = $1 AND bins.bin = v.column1",
    )?;
    Ok(())
}

/// Closes the breaker of the bins of a job that it was opened for by one of these codes:
/// they may be asked after their delay, which is at least `delay_ms`, counted from now.
/// Returns how many there were.
pub fn unblock(
    tx: &mut Tx<'_>,
    part: Part,
    job: JobId,
    codes: &[String],
    now_ms: i64,
    delay_ms: i64,
) -> Result<u64> {
    let codes: Vec<Value<'_>> = codes.iter().map(Value::from).collect();
    let bins: Vec<BinId> = tx.query_in(
        "UPDATE bins SET failures = 0, blocked_ms = NULL, blocked_by = NULL,
             next_ms = CASE WHEN COALESCE(delay_ms, 0) > $4 THEN $3 + delay_ms ELSE $3 + $4 END
         WHERE part = $1 AND blocked_ms > $3
           AND bin IN (SELECT w.bin FROM bin_work w WHERE w.part = $1 AND w.jobid = $2)
           AND blocked_by IN ($keys)
         RETURNING bin",
        &[part.into(), job.into(), now_ms.into(), delay_ms.into()],
        &codes,
        |row| row.get(0),
    )?;
    Ok(bins.len() as u64)
}

/// A bin of a job that may have something ready, and the mark that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MarkedBin {
    pub job: JobId,
    pub bin: BinId,
    pub mark: i64,
}

/// Bins that may have something ready, after one, in order of job and number.
pub fn marked(
    tx: &mut Tx<'_>,
    part: Part,
    after_job: JobId,
    after_bin: BinId,
    limit: u32,
) -> Result<Vec<MarkedBin>> {
    tx.query(
        "SELECT jobid, bin, mark FROM bin_work
         WHERE part = $1 AND mark > 0 AND (jobid, bin) > ($2, $3)
         ORDER BY jobid, bin LIMIT $4",
        &[part.into(), after_job.into(), after_bin.into(), limit.into()],
        |row| Ok(MarkedBin { job: row.get(0)?, bin: row.get(1)?, mark: row.get(2)? }),
    )
}

/// Whether a bin that may have something ready for a job may be asked before a time.
pub fn has_due(tx: &mut Tx<'_>, part: Part, job: JobId, before_ms: i64) -> Result<bool> {
    let found = tx.query_opt(
        "SELECT b.bin FROM bin_work w JOIN bins b ON b.part = w.part AND b.bin = w.bin
         WHERE w.part = $1 AND w.jobid = $2 AND w.mark > 0
           AND b.next_ms <= $3 AND COALESCE(b.blocked_ms, 0) <= $3
         LIMIT 1",
        &[part.into(), job.into(), before_ms.into()],
        |row| row.get::<BinId>(0),
    )?;
    Ok(found.is_some())
}

/// The mark of a bin of a job as it stands: to be read before its documents are, if
/// it is to be lowered after. 0 when there is none.
pub fn mark(tx: &mut Tx<'_>, part: Part, job: JobId, bin: BinId) -> Result<i64> {
    let mark = tx.query_opt(
        "SELECT mark FROM bin_work WHERE part = $1 AND jobid = $2 AND bin = $3",
        &[part.into(), job.into(), bin.into()],
        |row| row.get(0),
    )?;
    Ok(mark.unwrap_or(0))
}

/// Lowers a mark if it is still the one that was seen: nothing was queued since.
pub fn unmark(tx: &mut Tx<'_>, part: Part, seen: MarkedBin) -> Result<bool> {
    let touched = tx.execute(
        "UPDATE bin_work SET mark = 0 WHERE part = $1 AND jobid = $2 AND bin = $3 AND mark = $4",
        &[part.into(), seen.job.into(), seen.bin.into(), seen.mark.into()],
    )?;
    Ok(touched == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Run;
    use crate::tables::queue::{self, AddContext, Candidate, Place};
    use crate::testing::{self, both_databases};

    fn candidate(id: i64) -> Candidate {
        let host = format!("h{id}.example");
        let document = testing::candidate(id, format!("http://{host}/"), &host);
        Candidate { bin: BinId(id), seed: true, ..document }
    }

    #[test]
    fn bins_are_walked_over_all_parts_or_for_one_job() {
        both_databases(|db| {
            for (part, job, ids) in [(0, 1, 10..14), (2, 1, 20..22), (2, 2, 22..25)] {
                let place = Place { part: Part(part), job: JobId(job) };
                db.write(move |tx| {
                    let all: Vec<Candidate> = ids.clone().map(candidate).collect();
                    let adding = AddContext {
                        place,
                        run: Run(1),
                        now_ms: 0,
                        room: None,
                        requisites: Default::default(),
                    };
                    queue::add(tx, adding, &all).map(|_| ())
                })?;
            }
            let (mut after, mut seen) = ((Part(-1), BinId(-1)), Vec::new());
            loop {
                let page = db.read(move |tx| list_all(tx, after.0, after.1, 2))?;
                let Some((part, bin)) = page.last() else { break };
                after = (*part, bin.bin);
                seen.extend(page.iter().map(|(part, bin)| (part.0, bin.bin.0)));
            }
            let want: Vec<(i64, i64)> =
                (10..14).map(|bin| (0, bin)).chain((20..25).map(|bin| (2, bin))).collect();
            assert_eq!(seen, want);
            let of_job = |job| -> Result<Vec<i64>> {
                let bins = db.read(move |tx| list_of_job(tx, Part(2), JobId(job), BinId(20), 9))?;
                Ok(bins.iter().map(|bin| bin.bin.0).collect())
            };
            assert_eq!(of_job(1)?, [21]);
            assert_eq!(of_job(2)?, [22, 23, 24]);
            Ok(())
        });
    }

    #[test]
    fn only_bins_of_the_job_that_nobody_answered_for_are_unblocked() {
        both_databases(|db| {
            for (job, ids) in [(1, 10..13), (2, 13..14)] {
                let place = Place { part: Part(1), job: JobId(job) };
                db.write(move |tx| {
                    let all: Vec<Candidate> = ids.clone().map(candidate).collect();
                    let adding = AddContext {
                        place,
                        run: Run(1),
                        now_ms: 0,
                        room: None,
                        requisites: Default::default(),
                    };
                    queue::add(tx, adding, &all).map(|_| ())
                })?;
            }
            let visit = |bin, delay_ms, code: &str| Visit {
                bin: BinId(bin),
                next_ms: 9_000,
                delay_ms,
                failures: 4,
                blocked_ms: Some(9_000),
                blocked_by: Some(code.to_owned()),
                fetches: 1,
                errors: 1,
                bytes: 0,
                busy_ms: 0,
            };
            let visits = [
                visit(10, None, "dns"),
                visit(11, Some(300), "connect-refused"),
                visit(12, None, "http-503"),
                visit(13, None, "dns"),
            ];
            db.write(move |tx| visited(tx, Part(1), &visits))?;
            let codes = ["dns".to_owned(), "connect-refused".to_owned()];
            let count = db.write(move |tx| unblock(tx, Part(1), JobId(1), &codes, 1_000, 200))?;
            assert_eq!(count, 2);
            let bins = db.read(|tx| list(tx, Part(1), BinId(-1), 9))?;
            let states: Vec<_> =
                bins.iter().map(|it| (it.next_ms, it.blocked_ms, it.failures)).collect();
            let blocked = (9_000, Some(9_000), 4);
            assert_eq!(states, [(1_200, None, 0), (1_300, None, 0), blocked, blocked]);
            Ok(())
        });
    }

    #[test]
    fn a_bin_is_due_when_it_has_work_and_is_not_left_alone() {
        both_databases(|db| {
            let place = Place { part: Part(1), job: JobId(1) };
            let due = |before_ms| db.read(move |tx| has_due(tx, Part(1), JobId(1), before_ms));
            assert!(!due(100)?, "there is none");
            db.write(move |tx| {
                let adding = AddContext {
                    place,
                    run: Run(1),
                    now_ms: 0,
                    room: None,
                    requisites: Default::default(),
                };
                queue::add(tx, adding, &[candidate(7)]).map(|_| ())
            })?;
            assert!(due(0)?);
            let visit = |blocked_ms| Visit {
                bin: BinId(7),
                next_ms: 50,
                delay_ms: None,
                failures: 0,
                blocked_ms,
                blocked_by: None,
                fetches: 0,
                errors: 0,
                bytes: 0,
                busy_ms: 0,
            };
            db.write(move |tx| visited(tx, Part(1), &[visit(None)]))?;
            assert_eq!((due(49)?, due(50)?), (false, true));
            db.write(move |tx| visited(tx, Part(1), &[visit(Some(90))]))?;
            assert_eq!((due(89)?, due(90)?), (false, true), "the breaker is open");
            let mark = db.read(|tx| mark(tx, Part(1), JobId(1), BinId(7)))?;
            let seen = MarkedBin { job: JobId(1), bin: BinId(7), mark };
            assert!(db.write(move |tx| unmark(tx, Part(1), seen))?);
            assert!(!due(1_000)?, "it has no work");
            Ok(())
        });
    }
}
