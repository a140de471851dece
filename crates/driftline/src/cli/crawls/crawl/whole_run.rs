//! What came of a whole run, from the tables: several processes may have worked on it, and
//! this one perhaps only on its end.
//!
//! Invariant: nothing is counted row by row beyond a bound.

use ::crawl::definitions::WebSpec;
use page::ids::{DocHash, part_of};
use page::url::host_of;
use store::ids::{JobId, Part, Run};
use store::tables::overview::{self, RunTotals};
use store::tables::queue::list;
use store::tables::queue::{Place, ReasonCode};
use store::tables::{documents, jobs, settings};
use store::{Result, Tx};

/// Seeds that are looked at.
const SEEDS_MAX: usize = 100;
/// URLs that a limit has left out, counted in each part.
const LEFT_OUT_MAX: i64 = 10_000;

/// What a run came to.
#[derive(serde::Serialize)]
pub struct WholeRun {
    /// What all its processes have committed.
    pub totals: RunTotals,
    /// The limit that it has reached.
    pub stopped_at: Option<StoppedAt>,
    /// Seeds that the server says are not there.
    pub missing_seeds: Vec<String>,
}

/// A run that `--max-pages` has stopped.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct StoppedAt {
    pub pages: i64,
    /// URLs that are known and not taken in; a least number where there are very many.
    pub left_out: i64,
}

impl WholeRun {
    pub fn read(tx: &mut Tx<'_>, job: JobId, run: Run) -> Result<WholeRun> {
        let totals = overview::run_totals(tx, job, run)?;
        let definition = jobs::load(tx, job)?;
        let spec = definition.as_ref().and_then(|it| WebSpec::from_json(&it.docspec).ok());
        let (Some(definition), Some(spec)) = (definition, spec) else {
            return Ok(WholeRun { totals, stopped_at: None, missing_seeds: Vec::new() });
        };
        let parts = settings::parts(tx)?;
        let stopped_at = match spec.pages_max {
            Some(pages) => stopped_at(tx, job, pages, parts)?,
            None => None,
        };
        let suffixes = settings::suffix_list(tx)?;
        let mut missing_seeds = Vec::new();
        for seed in spec.seeds.iter().take(SEEDS_MAX) {
            let domain = suffixes.grouping_domain(host_of(seed));
            let part = Part(part_of(Some(domain), seed, parts).into());
            let key = [DocHash::of(seed)];
            let found = documents::load(tx, part, definition.connection, &key)?.pop();
            let status = found.and_then(|it| it.http_status);
            if status.is_some_and(|status| matches!(status, 404 | 410)) {
                missing_seeds.push(seed.clone());
            }
        }
        Ok(WholeRun { totals, stopped_at, missing_seeds })
    }

    /// Whether there was something to do, and nothing at all could be had. `failed` are the
    /// documents that this process, or the run, has given up.
    pub fn is_in_vain(&self, failed: u64) -> bool {
        let totals = &self.totals;
        let had = totals.adds + totals.updates + totals.keeps + totals.removes;
        had == 0 && (failed > 0 || totals.errors > 0 || !self.missing_seeds.is_empty())
    }
}

fn stopped_at(tx: &mut Tx<'_>, job: JobId, pages: i64, parts: u32) -> Result<Option<StoppedAt>> {
    let mut left_out = 0;
    for part in (0..i64::from(parts)).map(Part) {
        left_out += list::count_cut(tx, Place { part, job }, ReasonCode::Limit, LEFT_OUT_MAX)?;
    }
    Ok((left_out > 0).then_some(StoppedAt { pages, left_out }))
}
