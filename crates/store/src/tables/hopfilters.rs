//! How far from the seeds a job goes, for each kind of link (the second table 11.14).
//!
//! Which kinds there are the connector says; a kind without a filter is not limited.
//! Invariant: when a filter changes, the job looks at everything again.

use crate::checksums::coverage::JOB_HOP_FILTERS;
use crate::ids::JobId;
use crate::tables::jobs;
use crate::{Error, Result, Tx, checksums};
use std::collections::BTreeMap;

/// Filters of one job; connectors know fewer kinds of links.
pub const FILTERS_MAX: usize = 100;

/// The most hops for each kind of link.
pub type HopFilters = BTreeMap<String, i64>;

/// Gives a job these filters instead of those it had.
pub fn replace(tx: &mut Tx<'_>, job: JobId, filters: &HopFilters, now_ms: i64) -> Result<()> {
    let is_whole = checksums::are_whole(tx, &JOB_HOP_FILTERS, "ownerid", job.into())?;
    if load(tx, job)? == *filters && is_whole {
        return Ok(());
    }
    if filters.len() > FILTERS_MAX {
        let number = filters.len();
        return Err(Error::Refused(format!(
            "a job has at most {FILTERS_MAX} hop filters, not {number}"
        )));
    }
    if let Some((linktype, hops)) = filters.iter().find(|(_, hops)| **hops < 0) {
        return Err(Error::Refused(format!("a job goes 0 or more {linktype} hops, not {hops}")));
    }
    tx.execute("DELETE FROM jobhopfilters WHERE ownerid = $1", &[job.into()])?;
    let places = JOB_HOP_FILTERS.places(JOB_HOP_FILTERS.covered);
    let rows: Vec<_> = filters
        .iter()
        .map(|(linktype, hops)| vec![job.into(), linktype.into(), (*hops).into()])
        .map(|row| places.with_checksum(row))
        .collect();
    tx.insert_rows("INSERT INTO jobhopfilters (ownerid, linktype, maxhops, checksum)", &rows, "")?;
    jobs::touch(tx, job, now_ms)?;
    jobs::reseed(tx, job)
}

/// The filters of a job.
pub fn load(tx: &mut Tx<'_>, job: JobId) -> Result<HopFilters> {
    let rows = tx.query(
        "SELECT linktype, maxhops FROM jobhopfilters WHERE ownerid = $1 ORDER BY linktype LIMIT $2",
        &[job.into(), (FILTERS_MAX as i64).into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(rows.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConnectionId;
    use crate::tables::jobs::Job;
    use crate::testing::both_databases;

    fn filters(list: &[(&str, i64)]) -> HopFilters {
        list.iter().map(|(linktype, hops)| ((*linktype).to_owned(), *hops)).collect()
    }

    #[test]
    fn filters_are_replaced_together_and_a_change_looks_at_everything_again() {
        both_databases(|db| {
            let job = JobId(1);
            db.write(move |tx| jobs::save(tx, &Job::new(job, "docs", ConnectionId(1)), 0))?;
            let replace = |list: HopFilters| {
                db.write(move |tx| {
                    tx.execute("UPDATE job_states SET seedingversion = 'so far'", &[])?;
                    super::replace(tx, job, &list, 5)?;
                    let sql = "SELECT seedingversion FROM job_states";
                    tx.query_one(sql, &[], |row| Ok(row.get::<Option<String>>(0)?.is_some()))
                })
            };
            let both = filters(&[("link", 3), ("redirect", 0)]);
            assert!(!replace(both.clone())?);
            assert!(replace(both.clone())?, "they are the same");
            assert_eq!(db.read(move |tx| load(tx, job))?, both);
            assert!(!replace(filters(&[("link", 4)]))?);
            assert_eq!(db.read(move |tx| load(tx, job))?, filters(&[("link", 4)]));
            let refused = replace(filters(&[("link", -1)])).unwrap_err().to_string();
            assert!(refused.contains("link"), "{refused}");
            assert!(!replace(HopFilters::new())?);
            assert_eq!(db.read(|tx| load(tx, JobId(2)))?, HopFilters::new());
            Ok(())
        });
    }
}
