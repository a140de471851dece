//! The first hosts of an order that no index has.
//!
//! All hosts are walked along the table's key and the best so far are kept.
//! Invariants: memory for twice as many hosts as are returned, whatever their number;
//! at most [`WALKED_MAX`] are looked at; a cursor goes on behind the last one listed.

use super::{HostOrder, HostsRequest};
use crate::refusal::OrRefuse;
use serde::{Deserialize, Serialize};
use store::Db;
use store::ids::{BinId, JobId, Part};
use store::tables::bins::{self, Bin};
use store::tables::{counters, settings};

/// Hosts that one call compares.
const WALKED_MAX: u64 = 200_000;
/// Hosts that one transaction reads.
const PAGE: u32 = 1_000;

/// Hosts in their order.
pub struct RankedHosts {
    pub bins: Vec<(Part, Bin)>,
    /// How many were compared.
    pub walked: u64,
    /// There are more than are compared.
    pub more: bool,
    /// To go on with, if there are more to list.
    pub cursor: Option<String>,
}

impl RankedHosts {
    /// One host, or none.
    pub fn one(bin: Option<(Part, Bin)>) -> RankedHosts {
        RankedHosts { bins: bin.into_iter().collect(), walked: 1, more: false, cursor: None }
    }
}

/// A host's place in the order: its figure first, its key to tell equals apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RankKey(i64, i64, i64);

/// The mean time an answer takes.
pub fn mean_ms(bin: &Bin) -> Option<i64> {
    bin.busy_ms.checked_div(bin.fetches)
}

fn place(by: HostOrder, part: Part, bin: &Bin) -> RankKey {
    let figure = match by {
        HostOrder::Documents => bin.documents,
        HostOrder::Errors => bin.errors,
        HostOrder::Slowest => mean_ms(bin).unwrap_or(0),
    };
    // The most come first, so the place is the negative; equals come in key order.
    RankKey(figure.saturating_neg(), part.0, bin.bin.0)
}

/// Finds the first hosts behind the cursor.
pub fn rank(db: &Db, job: Option<JobId>, request: &HostsRequest) -> anyhow::Result<RankedHosts> {
    let behind: Option<RankKey> = match &request.cursor {
        Some(text) => Some(read_cursor(text)?),
        None => None,
    };
    let mut best =
        BestHosts { limit: request.limit as usize, by: request.by, behind, found: Vec::new() };
    let mut walked = 0;
    let mut walk = HostScan::start(db, job)?;
    while walked < WALKED_MAX {
        let page = walk.next(db)?;
        if page.is_empty() {
            break;
        }
        walked += page.len() as u64;
        page.into_iter().for_each(|(part, bin)| best.offer(part, bin));
    }
    best.trim();
    let last = best.found.len().checked_sub(1).filter(|last| *last == best.limit);
    if last.is_some() {
        best.found.pop();
    }
    let cursor = match (last, best.found.last()) {
        (Some(_), Some((place, ..))) => Some(write_cursor(*place)),
        _ => None,
    };
    let bins = best.found.into_iter().map(|(_, part, bin)| (part, bin)).collect();
    Ok(RankedHosts { bins, walked, more: walked >= WALKED_MAX, cursor })
}

/// The best so far, and one more, which tells whether there are more.
struct BestHosts {
    limit: usize,
    by: HostOrder,
    behind: Option<RankKey>,
    found: Vec<(RankKey, Part, Bin)>,
}

impl BestHosts {
    fn offer(&mut self, part: Part, bin: Bin) {
        let place = place(self.by, part, &bin);
        if self.behind.is_some_and(|behind| place <= behind) {
            return;
        }
        self.found.push((place, part, bin));
        if self.found.len() > 2 * (self.limit + 1) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        self.found.sort_by_key(|(place, ..)| *place);
        self.found.truncate(self.limit + 1);
    }
}

/// A walk over all hosts, or over those of a job.
enum HostScan {
    All((Part, BinId)),
    OfJob { job: JobId, parts: Vec<Part>, after: BinId },
}

const BEFORE_ALL: BinId = BinId(-1);

impl HostScan {
    fn start(db: &Db, job: Option<JobId>) -> store::Result<HostScan> {
        let Some(job) = job else { return Ok(HostScan::All((Part(-1), BEFORE_ALL))) };
        let mut parts =
            db.read(move |tx| counters::parts_of(tx, job, Part(0), settings::PARTS_MAX))?;
        parts.reverse();
        Ok(HostScan::OfJob { job, parts, after: BEFORE_ALL })
    }

    /// The next page; empty at the end.
    fn next(&mut self, db: &Db) -> store::Result<Vec<(Part, Bin)>> {
        match self {
            HostScan::All(after) => {
                let (part, bin) = *after;
                let page = db.read(move |tx| bins::list_all(tx, part, bin, PAGE))?;
                if let Some((part, bin)) = page.last() {
                    *after = (*part, bin.bin);
                }
                Ok(page)
            }
            HostScan::OfJob { job, parts, after } => {
                while let Some(part) = parts.last().copied() {
                    let (job, from) = (*job, *after);
                    let page = db.read(move |tx| bins::list_of_job(tx, part, job, from, PAGE))?;
                    if let Some(last) = page.last() {
                        *after = last.bin;
                        return Ok(page.into_iter().map(|bin| (part, bin)).collect());
                    }
                    parts.pop();
                    *after = BEFORE_ALL;
                }
                Ok(Vec::new())
            }
        }
    }
}

fn write_cursor(place: RankKey) -> String {
    // Without a minus, which would look like another flag.
    format!("{}.{}.{}", place.0.unsigned_abs(), place.1, place.2)
}

fn read_cursor(text: &str) -> anyhow::Result<RankKey> {
    let numbers: Option<Vec<i64>> = text.split('.').map(|word| word.parse().ok()).collect();
    let place = match numbers.as_deref() {
        Some([figure, part, bin]) => Some(RankKey(figure.saturating_neg(), *part, *bin)),
        _ => None,
    };
    let why = "the cursor cannot be read; copy all of it, or start again without --cursor";
    Ok(place.or_refuse(|| why)?)
}
