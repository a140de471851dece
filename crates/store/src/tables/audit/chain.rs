//! The chain of the audit log: each event has the hash of the one before in its own, so that
//! nobody who can write to the database can change, drop or insert an entry unnoticed.
//!
//! The newest hash, the head, is in the settings and in the log of whoever changes something.
//! Somebody who rewrites the whole chain cannot rewrite what such a log has told elsewhere.
//! Invariants: an event is added in the transaction that writes its entry, under the lock of the
//! head; the numbers of events have no gaps; the first event stands for all entries that are
//! older than the chain.

use super::AuditEntry;
use crate::tables::settings;
use crate::{Db, Error, Result, Tx};
use serde::{Deserialize, Serialize};

/// The event that stands for what is older than the chain.
const BEFORE: &str = "before";
/// Events looked at in one query.
const PAGE: u32 = 500;
/// Problems that are told; more of the same help nobody.
const PROBLEMS_MAX: usize = 100;

/// The number and the hash of the newest event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChainHead {
    pub number: i64,
    hash: [u8; 32],
}

impl std::fmt::Display for ChainHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.number, data_encoding::HEXLOWER.encode(&self.hash))
    }
}

impl ChainHead {
    fn parse(text: &str) -> Option<ChainHead> {
        let (number, hash) = text.split_once(' ')?;
        let hash = data_encoding::HEXLOWER.decode(hash.as_bytes()).ok()?;
        Some(ChainHead { number: number.parse().ok()?, hash: hash.try_into().ok()? })
    }
}

/// The newest event, if there is a chain.
pub fn head(tx: &mut Tx<'_>) -> Result<Option<ChainHead>> {
    let Some(text) = settings::audit_head(tx)? else { return Ok(None) };
    let corrupt = || Error::corrupt("the head of the audit log", format!("it is {text:?}"));
    ChainHead::parse(&text).ok_or_else(corrupt).map(Some)
}

/// Adds what was written of an entry.
pub(super) fn add(tx: &mut Tx<'_>, entry: &AuditEntry) -> Result<ChainHead> {
    settings::lock_audit_head(tx)?;
    let before = match head(tx)? {
        Some(head) => head,
        None => {
            let content = older(tx)?;
            let none = ChainHead { number: 0, hash: [0; 32] };
            insert(tx, none, 0, BEFORE, content)?
        }
    };
    insert(tx, before, entry.id, &entry.outcome, content(entry))
}

fn insert(
    tx: &mut Tx<'_>,
    before: ChainHead,
    id: i64,
    event: &str,
    content: [u8; 32],
) -> Result<ChainHead> {
    let number = before.number + 1;
    let head = ChainHead { number, hash: link(before, id, event, &content) };
    tx.execute(
        "INSERT INTO audit_chain (number, id, event, content, hash) VALUES ($1, $2, $3, $4, $5)",
        &[
            number.into(),
            id.into(),
            event.into(),
            content.as_slice().into(),
            head.hash.as_slice().into(),
        ],
    )?;
    settings::set_audit_head(tx, &head.to_string())?;
    Ok(head)
}

fn link(before: ChainHead, id: i64, event: &str, content: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("driftline audit chain 1");
    hasher.update(&before.hash).update(&(before.number + 1).to_be_bytes());
    hasher.update(&id.to_be_bytes()).update(event.as_bytes()).update(&[0]).update(content);
    *hasher.finalize().as_bytes()
}

fn content(entry: &AuditEntry) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("driftline audit entry 1");
    add_entry(&mut hasher, entry);
    *hasher.finalize().as_bytes()
}

fn add_entry(hasher: &mut blake3::Hasher, entry: &AuditEntry) {
    hasher.update(&entry.id.to_be_bytes()).update(&entry.at_ms.to_be_bytes());
    for text in [&entry.who, &entry.verb, &entry.outcome, &entry.changes] {
        hasher.update(&(text.len() as u64).to_be_bytes()).update(text.as_bytes());
    }
}

/// What the entries are that no event tells of.
fn older(tx: &mut Tx<'_>) -> Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new_derive_key("driftline audit older 1");
    let mut after = (i64::MIN, i64::MIN);
    loop {
        let page: Vec<AuditEntry> = tx.query(
            "SELECT a.id, a.at_ms, a.who, a.verb, a.outcome, a.changes FROM audit a
             WHERE (a.at_ms > $1 OR (a.at_ms = $1 AND a.id > $2))
               AND NOT EXISTS (SELECT 1 FROM audit_chain c WHERE c.id = a.id)
             ORDER BY a.at_ms, a.id LIMIT $3",
            &[after.0.into(), after.1.into(), PAGE.into()],
            AuditEntry::from_row,
        )?;
        let Some(last) = page.last() else { break };
        after = (last.at_ms, last.id);
        page.iter().for_each(|entry| add_entry(&mut hasher, entry));
    }
    Ok(*hasher.finalize().as_bytes())
}

/// What was found of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainCheck {
    /// Events that were looked at.
    pub events: u64,
    /// The newest one, as it can be compared with what a log has told.
    pub head: Option<String>,
    /// What is wrong, in sentences.
    pub problems: Vec<String>,
}

/// An event with its entry, as a check reads them.
struct AuditEvent {
    head: ChainHead,
    id: i64,
    event: String,
    content: Vec<u8>,
    entry: Option<AuditEntry>,
}

/// Goes through the chain up to its head. Others may add events meanwhile: they are not looked at,
/// and no trouble.
pub fn check(db: &Db) -> Result<ChainCheck> {
    let mut checked = ChainCheck::default();
    let none = ChainHead { number: 0, hash: [0; 32] };
    let newest = db.read(head)?;
    checked.head = newest.map(|it| it.to_string());
    let (newest, mut at) = (newest.unwrap_or(none), none);
    'walk: loop {
        let after = at.number;
        let page = db.read(move |tx| events(tx, after))?;
        if page.is_empty() {
            break;
        }
        for event in page {
            if event.head.number > newest.number {
                break 'walk;
            }
            checked.events += 1;
            checked.judge(db, at, &event)?;
            at = event.head;
        }
    }
    if at != newest {
        let number = at.number;
        checked.find(format!("its last event is number {number}, and its head is {newest}"));
    }
    // The head is read after the event that it must not be behind.
    let last = db.read(last_number)?;
    let number = db.read(head)?.map_or(0, |it| it.number);
    if last > number {
        checked.find(format!("event {last} is behind its head, which is number {number}"));
    }
    Ok(checked)
}

fn last_number(tx: &mut Tx<'_>) -> Result<i64> {
    let text = "SELECT number FROM audit_chain ORDER BY number DESC LIMIT 1";
    Ok(tx.query_opt(text, &[], |row| row.get(0))?.unwrap_or(0))
}

fn events(tx: &mut Tx<'_>, after: i64) -> Result<Vec<AuditEvent>> {
    tx.query(
        "SELECT a.id, a.at_ms, a.who, a.verb, a.outcome, a.changes,
                c.number, c.id, c.event, c.content, c.hash
         FROM audit_chain c LEFT JOIN audit a ON a.id = c.id
         WHERE c.number > $1 ORDER BY c.number LIMIT $2",
        &[after.into(), PAGE.into()],
        |row| {
            let entry = match row.get::<Option<i64>>(0)? {
                Some(_) => Some(AuditEntry::from_row(row)?),
                None => None,
            };
            let hash: Vec<u8> = row.get(10)?;
            let hash = hash.try_into().unwrap_or([0; 32]);
            let head = ChainHead { number: row.get(6)?, hash };
            Ok(AuditEvent {
                head,
                id: row.get(7)?,
                event: row.get(8)?,
                content: row.get(9)?,
                entry,
            })
        },
    )
}

impl ChainCheck {
    fn find(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Looks at one event, which follows another.
    fn judge(&mut self, db: &Db, before: ChainHead, it: &AuditEvent) -> Result<()> {
        let number = it.head.number;
        if number != before.number + 1 {
            self.find(format!("events {} to {} are missing", before.number + 1, number - 1));
        }
        let content: [u8; 32] = it.content.clone().try_into().unwrap_or([0; 32]);
        if link(ChainHead { number: number - 1, ..before }, it.id, &it.event, &content)
            != it.head.hash
        {
            self.find(format!("event {number} does not follow from the one before it"));
        }
        let is_right = match (&it.entry, it.event.as_str()) {
            (_, BEFORE) => db.read(older)? == content,
            (None, _) => false,
            // It was completed since; another event tells of that.
            (Some(entry), "begun") if entry.outcome != "begun" => true,
            (Some(entry), _) => self::content(entry) == content,
        };
        if !is_right {
            self.find(match it.event.as_str() {
                BEFORE => {
                    "entries from before the chain were changed, or others were added".to_owned()
                }
                _ => format!("the entry {} of event {number} was changed, or is gone", it.id),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
