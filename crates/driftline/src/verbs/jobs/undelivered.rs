//! What outputs of a job could not take, and were given up: listed and tried again with
//! the other dead letters.
//!
//! Invariant: a request looks at a bounded number of rows in each transaction; none spans
//! two parts.

use super::failed::FailedDocument;
use page::ids::DocHash;
use store::ids::{ConnectionId, JobId, Part};
use store::tables::connections::{self, ConnectionKind};
use store::tables::ingests::{self, Ingest};
use store::tables::{counters, settings};
use store::{Db, Result};

/// The reason under which they are listed.
pub const REASON: &str = "output";
/// Whether a request with this reason, or with none, is about them.
pub fn is_meant_by(reason: Option<&str>) -> bool {
    reason.is_none_or(|reason| reason == REASON)
}

/// Rows that one transaction looks at.
const STEP: u32 = 500;
/// Output connections there can be.
const OUTPUTS_MAX: u32 = 1_000;

/// Where they are: parts, and outputs with their names.
type Places = (Vec<Part>, Vec<(ConnectionId, String)>);

fn places(db: &Db, job: JobId) -> Result<Places> {
    db.read(move |tx| {
        let (name, most) = (ingests::UNDELIVERABLE, settings::PARTS_MAX);
        let parts = counters::parts_with(tx, job, name, Part(0), most)?;
        let outputs = match parts.is_empty() {
            true => Vec::new(),
            false => connections::list(tx, ConnectionKind::Output, "", OUTPUTS_MAX)?,
        };
        Ok((parts, outputs.into_iter().map(|it| (it.id, it.name)).collect()))
    })
}

/// How many there are, and the first of them.
pub fn list(db: &Db, job: JobId, limit: usize) -> Result<(i64, Vec<FailedDocument>)> {
    let count = db.read(move |tx| counters::total(tx, job, ingests::UNDELIVERABLE))?;
    let (parts, outputs) = places(db, job)?;
    let mut found = Vec::new();
    for part in parts {
        for (output, name) in &outputs {
            let (output, mut at) = (*output, i64::MIN);
            while found.len() < limit {
                let rows = db.read(move |tx| ingests::given_up(tx, part, output, at, STEP))?;
                let Some(last) = rows.last() else { break };
                at = last.id;
                found.extend(rows.iter().filter_map(|row| failed(row, job, name)));
            }
        }
    }
    found.truncate(limit);
    Ok((count, found))
}

fn failed(row: &Ingest, job: JobId, output: &str) -> Option<FailedDocument> {
    let pending = row.pending.as_ref().filter(|it| it.job == job)?;
    let error = pending.error.as_deref().unwrap_or("it could not be taken");
    Some(FailedDocument {
        document: row.uri.clone().unwrap_or_default(),
        reason: Some(REASON.to_owned()),
        detail: Some(format!("output {output}: {error}")),
        status: None,
        checked_ms: row.last_change_ms,
        tries: None,
        run: None,
    })
}

/// Lets them be tried again: all, or those of some documents. Returns how many, and the
/// documents that were among them.
pub fn retry(db: &Db, job: JobId, keys: &[DocHash]) -> Result<(u64, Vec<DocHash>)> {
    let (parts, outputs) = places(db, job)?;
    let (mut retried, mut found) = (0, Vec::new());
    for part in parts {
        for (output, _) in &outputs {
            let (output, mut at) = (*output, Some(i64::MIN));
            while let Some(row) = at {
                let keys = keys.to_vec();
                let (next, count, these) = db.write(move |tx| {
                    let mut these = Vec::new();
                    for row in ingests::given_up(tx, part, output, row, STEP)? {
                        let uri = DocHash::of(row.uri.as_deref().unwrap_or_default());
                        these.extend([row.dochash, uri].into_iter().filter(|it| keys.contains(it)));
                    }
                    let wants = |row: &Ingest| {
                        let uri = DocHash::of(row.uri.as_deref().unwrap_or_default());
                        keys.is_empty() || keys.contains(&row.dochash) || keys.contains(&uri)
                    };
                    let place = ingests::UndeliveredFilter { part, output, job };
                    let (next, count) = ingests::retry(tx, place, row, STEP, wants)?;
                    Ok((next, count, these))
                })?;
                retried += count;
                found.extend(these);
                at = next;
            }
        }
    }
    Ok((retried, found))
}
