//! What the crawl has counted of patterns of URLs that may be traps: kept so
//! that a restart does not open a trap again, and so that people can be told.
//!
//! The holder of a part writes rows with the commit of a chunk and reads them when it
//! takes the lease. Invariant: a row holds absolute numbers, so writing it again
//! changes nothing, and the time of closing stays that of the first write that closed
//! it, until a write opens it again.

use crate::ids::{BinId, JobId, Part};
use crate::value::{Row, column};
use crate::{Result, Tx, Value};

/// What was counted of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TrapRow {
    pub job: JobId,
    /// The host; for a registered domain, the bin that its name has.
    pub bin: BinId,
    pub pattern: String,
    /// Documents of the pattern that were fetched.
    pub documents: i64,
    /// Of them, said nothing new.
    pub stale: i64,
    /// Of them, were far from every seed.
    pub deep: i64,
    /// Of those that said nothing new, named by no page that said more.
    pub suspects: i64,
    /// How many in a million of the recent documents said nothing new.
    pub recent_stale: i64,
    /// How many in a million of the recent documents said nothing new, or next to
    /// nothing.
    pub recent_alike: i64,
    /// The code of the rule that closed it; `None` while it is open.
    pub rule: Option<String>,
    /// Of a host: links to it from pages of other hosts.
    pub outside: i64,
    /// Of the sitemaps of a host: bytes that were read.
    pub bytes: i64,
}

const COLUMNS: &str = "jobid, bin, pattern, documents, stale, deep, suspects, recent_stale,
    recent_alike, rule, outside, bytes";

impl TrapRow {
    fn from_row(row: &Row<'_>) -> Result<TrapRow> {
        Ok(TrapRow {
            job: row.get(column!(COLUMNS, "jobid"))?,
            bin: row.get(column!(COLUMNS, "bin"))?,
            pattern: row.get(column!(COLUMNS, "pattern"))?,
            documents: row.get(column!(COLUMNS, "documents"))?,
            stale: row.get(column!(COLUMNS, "stale"))?,
            deep: row.get(column!(COLUMNS, "deep"))?,
            suspects: row.get(column!(COLUMNS, "suspects"))?,
            recent_stale: row.get(column!(COLUMNS, "recent_stale"))?,
            recent_alike: row.get(column!(COLUMNS, "recent_alike"))?,
            rule: row.get(column!(COLUMNS, "rule"))?,
            outside: row.get(column!(COLUMNS, "outside"))?,
            bytes: row.get(column!(COLUMNS, "bytes"))?,
        })
    }
}

/// Writes what was counted, in the commit of a chunk.
pub fn save(tx: &mut Tx<'_>, part: Part, traps: &[TrapRow], now_ms: i64) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = traps
        .iter()
        .map(|it| {
            vec![
                part.into(),
                it.job.into(),
                it.bin.into(),
                (&it.pattern).into(),
                it.documents.into(),
                it.stale.into(),
                it.deep.into(),
                it.suspects.into(),
                it.recent_stale.into(),
                it.recent_alike.into(),
                (&it.rule).into(),
                it.outside.into(),
                it.bytes.into(),
                it.rule.is_some().then_some(now_ms).into(),
            ]
        })
        .collect();
    tx.insert_rows(
        &format!("INSERT INTO traps (part, {COLUMNS}, closed_ms)"),
        &rows,
        "ON CONFLICT (part, jobid, bin, pattern) DO UPDATE SET
             documents = excluded.documents, stale = excluded.stale, deep = excluded.deep,
             suspects = excluded.suspects, recent_stale = excluded.recent_stale,
             recent_alike = excluded.recent_alike, rule = excluded.rule,
             outside = excluded.outside, bytes = excluded.bytes,
             closed_ms = CASE WHEN excluded.rule IS NULL THEN NULL
                              ELSE COALESCE(traps.closed_ms, excluded.closed_ms) END",
    )?;
    Ok(())
}

/// Where a page of [`load`] ended: the key of its last row.
pub type After = (JobId, BinId, String);

/// What was counted in a part, in the order of job, bin and pattern, after a row.
pub fn load(
    tx: &mut Tx<'_>,
    part: Part,
    after: Option<&After>,
    limit: u32,
) -> Result<Vec<TrapRow>> {
    let first = (JobId(i64::MIN), BinId(i64::MIN), String::new());
    let (job, bin, pattern) = after.unwrap_or(&first);
    tx.query(
        &format!(
            "SELECT {COLUMNS} FROM traps
             WHERE part = $1 AND (jobid, bin, pattern) > ($2, $3, $4)
             ORDER BY jobid, bin, pattern LIMIT $5"
        ),
        &[part.into(), (*job).into(), (*bin).into(), pattern.into(), limit.into()],
        TrapRow::from_row,
    )
}

/// What is closed of a host in a job; of a registered domain, by the bin that its name
/// has.
pub fn closed_in(
    tx: &mut Tx<'_>,
    part: Part,
    job: JobId,
    bin: BinId,
    limit: u32,
) -> Result<Vec<TrapRow>> {
    tx.query(
        &format!(
            "SELECT {COLUMNS} FROM traps
             WHERE part = $1 AND jobid = $2 AND bin = $3 AND closed_ms IS NOT NULL
             ORDER BY pattern LIMIT $4"
        ),
        &[part.into(), job.into(), bin.into(), limit.into()],
        TrapRow::from_row,
    )
}

/// What was counted of a pattern, if it is closed.
pub fn find_closed(
    tx: &mut Tx<'_>,
    part: Part,
    job: JobId,
    bin: BinId,
    pattern: &str,
) -> Result<Option<TrapRow>> {
    let found = tx.query(
        &format!(
            "SELECT {COLUMNS} FROM traps WHERE part = $1 AND jobid = $2 AND bin = $3
             AND pattern = $4 AND closed_ms IS NOT NULL"
        ),
        &[part.into(), job.into(), bin.into(), pattern.into()],
        TrapRow::from_row,
    )?;
    Ok(found.into_iter().next())
}

/// What is closed in a job, with the time it was: the largest first.
pub fn closed(tx: &mut Tx<'_>, job: JobId, limit: u32) -> Result<Vec<(TrapRow, i64)>> {
    tx.query(
        &format!(
            "SELECT {COLUMNS}, closed_ms FROM traps
             WHERE jobid = $1 AND closed_ms IS NOT NULL
             ORDER BY jobid DESC, documents DESC, part DESC, bin DESC, pattern DESC LIMIT $2"
        ),
        &[job.into(), limit.into()],
        |row| Ok((TrapRow::from_row(row)?, row.get(12)?)),
    )
}

/// Forgets what was counted in a job, so that its traps are open again; at most
/// `limit` rows of a part. Returns how many; call again while it is `limit`.
pub fn forget(tx: &mut Tx<'_>, part: Part, job: JobId, limit: u32) -> Result<u64> {
    tx.execute(
        "DELETE FROM traps WHERE part = $1 AND jobid = $2 AND (bin, pattern) IN (
             SELECT bin, pattern FROM traps WHERE part = $1 AND jobid = $2
             ORDER BY bin, pattern LIMIT $3)",
        &[part.into(), job.into(), limit.into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    const JOB: JobId = JobId(7);

    fn row(bin: i64, pattern: &str, documents: i64) -> TrapRow {
        TrapRow {
            job: JOB,
            bin: BinId(bin),
            pattern: pattern.into(),
            documents,
            stale: documents - 1,
            deep: 3,
            suspects: 4,
            recent_stale: 990_000,
            recent_alike: 1_000_000,
            rule: None,
            outside: documents + 5,
            bytes: documents << 32,
        }
    }

    fn shut(row: TrapRow) -> TrapRow {
        TrapRow { rule: Some("stale".into()), ..row }
    }

    #[test]
    fn rows_are_read_back_page_by_page_in_order() {
        both_databases(|db| {
            let mut all: Vec<TrapRow> = (0..25)
                .map(|number| row(number / 10, &format!("a.example/{}/#", number % 10), number))
                .collect();
            all[3] = shut(all[3].clone());
            all[4].job = JobId(6);
            let saved = all.clone();
            db.write(move |tx| save(tx, Part(2), &saved, 50))?;
            db.write(|tx| save(tx, Part(3), &[row(1, "b.example/", 1)], 50))?;
            let mut read = Vec::new();
            let mut after = None;
            loop {
                let page = db.read(move |tx| load(tx, Part(2), after.as_ref(), 4))?;
                let Some(last) = page.last() else { break };
                after = Some((last.job, last.bin, last.pattern.clone()));
                read.extend(page);
            }
            all.sort_by_key(|it| (it.job, it.bin, it.pattern.clone()));
            assert_eq!(read, all);
            Ok(())
        });
    }

    #[test]
    fn writing_again_changes_nothing_and_newer_numbers_take_over() {
        both_databases(|db| {
            let loaded = || db.read(|tx| load(tx, Part(0), None, 10));
            let closed_at = || db.read(|tx| closed(tx, JOB, 10));
            let write = |row: &TrapRow, now_ms| {
                let rows = [row.clone()];
                db.write(move |tx| save(tx, Part(0), &rows, now_ms))
            };
            let open = row(1, "a.example/cal?month", 400);
            write(&open, 10)?;
            assert_eq!((loaded()?, closed_at()?), (vec![open.clone()], vec![]));
            let closed_row = shut(row(1, "a.example/cal?month", 500));
            for now_ms in [20, 30] {
                write(&closed_row, now_ms)?;
                assert_eq!(loaded()?, vec![closed_row.clone()]);
                assert_eq!(
                    closed_at()?,
                    [(closed_row.clone(), 20)],
                    "closed since the first write"
                );
            }
            write(&open, 40)?;
            assert_eq!(closed_at()?, [], "open again");
            write(&closed_row, 50)?;
            assert_eq!(closed_at()?, [(closed_row, 50)]);
            Ok(())
        });
    }

    #[test]
    fn people_see_the_largest_closed_ones_of_a_job_over_all_parts() {
        both_databases(|db| {
            for part in 0..4 {
                let rows = [
                    shut(row(1, "a.example/x/#", 100 + part)),
                    shut(row(2, "a.example/y/#", 200 - part)),
                    row(3, "a.example/open/#", 1_000),
                    TrapRow { job: JobId(8), ..shut(row(1, "a.example/x/#", 900)) },
                ];
                db.write(move |tx| save(tx, Part(part), &rows, part))?;
            }
            let found = db.read(|tx| closed(tx, JOB, 5))?;
            let documents: Vec<i64> = found.iter().map(|(it, _)| it.documents).collect();
            assert_eq!(documents, [200, 199, 198, 197, 103]);
            assert_eq!(found[1].1, 1, "the time of the write that closed it");
            Ok(())
        });
    }

    #[test]
    fn what_is_closed_of_a_host_is_found_by_it_and_by_name() {
        both_databases(|db| {
            let rows = [
                shut(row(1, "a.example/x/#", 300)),
                shut(row(1, "a.example/b/#", 900)),
                row(1, "a.example/open/#", 50),
                shut(row(2, "b.example/x/#", 300)),
                TrapRow { job: JobId(8), ..shut(row(1, "a.example/x/#", 100)) },
            ];
            let saved = rows.clone();
            db.write(move |tx| save(tx, Part(3), &saved, 0))?;
            let (part, bin) = (Part(3), BinId(1));
            let found = db.read(move |tx| closed_in(tx, part, JOB, bin, 10))?;
            assert_eq!(found, [rows[1].clone(), rows[0].clone()]);
            assert_eq!(db.read(move |tx| closed_in(tx, part, JOB, bin, 1))?.len(), 1);
            let find =
                |pattern: &'static str| db.read(move |tx| find_closed(tx, part, JOB, bin, pattern));
            assert_eq!(find("a.example/x/#")?, Some(rows[0].clone()));
            assert_eq!(find("a.example/open/#")?, None, "it is open");
            assert_eq!(find("b.example/x/#")?, None, "another host");
            Ok(())
        });
    }

    #[test]
    fn a_job_can_be_forgotten_bit_by_bit() {
        both_databases(|db| {
            let rows: Vec<TrapRow> = (0..5).map(|bin| row(bin, "a.example/#", 100)).collect();
            let other = TrapRow { job: JobId(8), ..row(1, "a.example/#", 100) };
            let saved = [rows, vec![other.clone()]].concat();
            db.write(move |tx| save(tx, Part(0), &saved, 0))?;
            let counts = [3, 2, 0];
            for expected in counts {
                assert_eq!(db.write(|tx| forget(tx, Part(0), JOB, 3))?, expected);
            }
            assert_eq!(db.read(|tx| load(tx, Part(0), None, 10))?, [other]);
            Ok(())
        });
    }
}
