//! Counters and bins against the rows that they count.
//!
//! Invariant: the work grows with the rows of a part, not with its rows times its bins or
//! jobs; each part is counted in one walk over its queue for each of the two.

use super::{REPORT_BUG, VerifyReport};
use crate::ids::{JobId, Part};
use crate::tables::{counters, ingests, queue, removals};
use crate::{Db, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Counters of a part: a job has a few dozen.
const COUNTERS_MAX: u32 = 1_000_000;

/// I7: counters equal counts.
pub(super) fn check_counters(db: &Db, part: Part, report: &mut VerifyReport) -> Result<()> {
    let (kept, counted) = db.read(move |tx| {
        let kept = counters::of_part(tx, part, COUNTERS_MAX)?;
        let mut counted = queue::count_part(tx, part)?;
        let pending = ingests::count_rows(tx, part)?;
        counted.extend(pending.into_iter().map(|(job, name, count)| (job, name.to_owned(), count)));
        Ok((kept, counted))
    })?;
    let jobs: BTreeSet<JobId> = kept.iter().chain(&counted).map(|it| it.0).collect();
    report.counters += jobs.len() as u64;
    let states = queue::State::ALL.iter().map(|state| state.name().to_owned());
    let others = [ingests::UNDELIVERED, ingests::UNDELIVERABLE].map(str::to_owned);
    let names: Vec<String> = states.chain(others).chain(removals::counter_names()).collect();
    let by_name = |list: Vec<(JobId, String, i64)>| -> BTreeMap<(JobId, String), i64> {
        list.into_iter().map(|(job, name, value)| ((job, name), value)).collect()
    };
    let (kept, counted) = (by_name(kept), by_name(counted));
    for job in jobs {
        for name in &names {
            let key = (job, name.clone());
            let value = |of: &BTreeMap<(JobId, String), i64>| of.get(&key).copied().unwrap_or(0);
            let (kept, counted) = (value(&kept), value(&counted));
            if kept != counted {
                report.find(
                    format!("counter {name} of job {job} in part {part}"),
                    format!("it says {kept}, there are {counted}"),
                    REPORT_BUG,
                );
            }
        }
    }
    Ok(())
}

/// A bin counts its documents, and is marked if one of them is ready: otherwise
/// nobody would ever look.
pub(super) fn check_bins(db: &Db, part: Part, report: &mut VerifyReport) -> Result<()> {
    let wrong: Vec<(String, i64, i64)> = db.read(move |tx| {
        // No index leads from a bin to its documents: both sides are added up by bin.
        tx.query(
            "SELECT b.name, d.kept, d.counted FROM (
                 SELECT bin, CAST(SUM(kept) AS BIGINT) AS kept,
                        CAST(SUM(counted) AS BIGINT) AS counted
                 FROM (SELECT bin, documents AS kept, 0 AS counted FROM bins WHERE part = $1
                       UNION ALL
                       SELECT bin, 0, 1 FROM queue WHERE part = $1) AS sides
                 GROUP BY bin HAVING SUM(kept) <> SUM(counted) ORDER BY bin LIMIT 100) AS d
             JOIN bins b ON b.part = $1 AND b.bin = d.bin ORDER BY d.bin LIMIT 100",
            &[part.into()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
    })?;
    for (name, kept, counted) in wrong {
        let problem = format!("it says {kept} documents, there are {counted}");
        report.find(format!("bin {name} in part {part}"), problem, REPORT_BUG);
    }
    let asleep: Vec<(JobId, String)> = db.read(move |tx| {
        tx.query(
            "SELECT DISTINCT q.jobid, b.name FROM queue q
             JOIN bins b ON b.part = q.part AND b.bin = q.bin
             LEFT JOIN bin_work w ON w.part = q.part AND w.jobid = q.jobid AND w.bin = q.bin
             WHERE q.part = $1 AND q.state = 'ready' AND COALESCE(w.mark, 0) = 0 LIMIT 100",
            &[part.into()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    })?;
    for (job, name) in asleep {
        let what = format!("bin {name} of job {job} in part {part}");
        report.find(what, "it has documents that are ready, and no mark that says so", REPORT_BUG);
    }
    Ok(())
}
