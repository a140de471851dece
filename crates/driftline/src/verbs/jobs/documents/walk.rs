//! Going through a job's documents part by part along the queue's indexes.
//!
//! What an index does not leave out is left out here, row by row. Invariants: a call
//! looks at no more than [`WALKED_MAX`] rows and keeps no more than it returns; a
//! cursor goes on exactly behind what was seen, and only with the same question.

use super::DocumentFilter;
use crate::refusal::{OrRefuse, refuse, require};
use data_encoding::BASE64URL_NOPAD;
use page::ids::{bin_of, hash128, part_of};
use page::url::{Policy, canonical, host_of};
use serde::{Deserialize, Serialize};
use store::Db;
use store::ids::{BinId, Part};
use store::tables::jobs::Job;
use store::tables::queue::list::{self, ListedDocument, QueuePosition, QueueQuery};
use store::tables::queue::{Place, State};
use store::tables::{counters, settings};

/// Rows that one call looks at.
const WALKED_MAX: u64 = 20_000;
/// Rows that one transaction reads.
const PAGE: u32 = 500;
/// Bytes of a cursor: a key has a reason in it, nothing else is long.
const CURSOR_BYTES_MAX: usize = 1_024;

/// What a call found.
pub struct FoundDocuments {
    pub rows: Vec<ListedDocument>,
    /// How many were looked at.
    pub walked: u64,
    /// To go on with, if there may be more.
    pub cursor: Option<String>,
}

/// Which documents are walked, and from where on.
#[derive(Clone, Copy)]
pub struct DocumentWalk<'a> {
    pub filter: &'a DocumentFilter,
    pub cursor: Option<&'a str>,
}

/// Where a walk stands.
#[derive(Clone, Serialize, Deserialize)]
struct WalkCursor {
    /// What was asked: a cursor of another question would skip documents.
    question: String,
    part: i64,
    /// Which of the states.
    step: usize,
    key: QueuePosition,
}

/// Lists up to `limit` documents of a job, from a cursor on.
pub fn walk(
    db: &Db,
    job: &Job,
    asked: &DocumentWalk<'_>,
    limit: usize,
) -> anyhow::Result<FoundDocuments> {
    let DocumentWalk { filter, cursor } = *asked;
    let bin = filter.host.as_deref().map(|host| BinId(bin_of(&host_name(host))));
    let steps = steps(filter)?;
    let mut at = match cursor {
        Some(text) => read_cursor(text, &question(job, filter))?,
        None => WalkCursor {
            question: question(job, filter),
            part: 0,
            step: 0,
            key: QueuePosition::first(),
        },
    };
    require!(at.step < steps.len(), "the cursor is damaged; start again without --cursor");
    let mut found = FoundDocuments { rows: Vec::new(), walked: 0, cursor: None };
    for part in parts(db, job, filter, Part(at.part))? {
        if part.0 != at.part {
            at = WalkCursor { part: part.0, step: 0, key: QueuePosition::first(), ..at };
        }
        while at.step < steps.len() {
            let walk = QueueQuery {
                place: Place { part, job: job.id },
                connection: job.connection,
                state: steps[at.step],
                bin,
                reason: filter.reason.clone(),
            };
            let key = at.key.clone();
            let page = db.read(move |tx| list::list(tx, &walk, &key, PAGE))?;
            let last_page = page.len() < PAGE as usize;
            for row in page {
                if !filter.takes(&row, steps[at.step], bin) {
                    at.key = row.key(steps[at.step]);
                    found.walked += 1;
                    continue;
                }
                if found.rows.len() == limit {
                    found.cursor = Some(write_cursor(&at)?);
                    return Ok(found);
                }
                at.key = row.key(steps[at.step]);
                found.walked += 1;
                found.rows.push(row);
            }
            if last_page {
                at = WalkCursor { step: at.step + 1, key: QueuePosition::first(), ..at };
            } else if found.walked >= WALKED_MAX {
                found.cursor = Some(write_cursor(&at)?);
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// The states that are walked one after the other; `None` is all in one.
fn steps(filter: &DocumentFilter) -> anyhow::Result<Vec<Option<State>>> {
    if let Some(name) = &filter.state {
        let state = State::parse(name).or_refuse(|| format!("there is no state {name:?}"))?;
        return Ok(vec![Some(state)]);
    }
    let some = |states: &[State]| Ok(states.iter().copied().map(Some).collect());
    match (&filter.reason, &filter.host) {
        // Only these have a reason.
        (Some(_), _) => some(&[State::Waiting, State::Cut, State::Failed]),
        // An index of what is ready and one of what is settled know the host.
        (None, Some(_)) => some(State::ALL),
        (None, None) => Ok(vec![None]),
    }
}

/// The parts where the job has documents; of a host, there is one.
fn parts(db: &Db, job: &Job, filter: &DocumentFilter, from: Part) -> anyhow::Result<Vec<Part>> {
    let (id, host) = (job.id, filter.host.as_deref().map(host_name));
    let parts = db.read(move |tx| match &host {
        Some(host) => {
            let suffixes = settings::suffix_list(tx)?;
            let part = part_of(Some(suffixes.grouping_domain(host)), host, settings::parts(tx)?);
            Ok(vec![Part(part.into())])
        }
        None => counters::parts_of(tx, id, from, settings::PARTS_MAX),
    })?;
    Ok(parts)
}

/// A host as bins are named: as canonical URLs spell it, without a port.
pub fn host_name(text: &str) -> String {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    match canonical(&format!("http://{text}"), &Policy::default()) {
        Ok(url) => host_of(&url).to_owned(),
        Err(_) => text.to_ascii_lowercase(),
    }
}

impl DocumentFilter {
    fn takes(&self, row: &ListedDocument, state: Option<State>, bin: Option<BinId>) -> bool {
        state.is_none_or(|state| state == row.state)
            && bin.is_none_or(|bin| bin == row.bin)
            && (self.reason.is_none() || self.reason == row.reason)
            && (self.status.is_none() || self.status == row.status)
            && self.contains.as_ref().is_none_or(|text| row.docid.contains(text.as_str()))
    }
}

/// A short name for what was asked.
fn question(job: &Job, filter: &DocumentFilter) -> String {
    let text = serde_json::to_string(&(job.id.0, filter)).unwrap_or_default();
    BASE64URL_NOPAD.encode(&hash128(text.as_bytes())[..6])
}

fn write_cursor(cursor: &WalkCursor) -> anyhow::Result<String> {
    Ok(BASE64URL_NOPAD.encode(serde_json::to_string(cursor)?.as_bytes()))
}

fn read_cursor(text: &str, question: &str) -> anyhow::Result<WalkCursor> {
    const AGAIN: &str = "copy all of it, or start again without --cursor";
    require!(text.len() <= CURSOR_BYTES_MAX, "the cursor is too long; {AGAIN}");
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    let cursor = bytes.and_then(|bytes| serde_json::from_slice::<WalkCursor>(&bytes).ok());
    match cursor {
        Some(cursor) if cursor.question == question => Ok(cursor),
        Some(_) => refuse!("the cursor belongs to a list with other filters; use the same filters"),
        None => refuse!("the cursor cannot be read; {AGAIN}"),
    }
}

#[cfg(test)]
mod tests;
