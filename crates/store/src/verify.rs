//! Checks that what is stored is what was written: rows against their checksums and each
//! other, counters against counts, objects against their rows.
//!
//! It only reads, in bounded steps, and works while the program runs; each check
//! sees one snapshot. A finding names the thing, what is wrong, and what to do.

mod counters;
mod row_sums;
mod uri_claims;

use crate::chunkfile::facts::FactsStream;
use crate::dialect::Dialect;
use crate::ids::{ChunkId, CommitNumber, ObjectId, Part};
use crate::objects::{ChunkKey, ObjectPath, Objects};
use crate::tables::history::counts;
use crate::tables::objects::{self, PublishedObject};
use crate::tables::{audit, chunk_storage, chunks, settings};
use crate::{Db, Error, Result};

/// Rows and objects looked at in one step.
const PAGE: u32 = 500;
/// Findings reported; more of the same help nobody.
pub const FINDINGS_MAX: usize = 1_000;

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct Finding {
    pub what: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct VerifyReport {
    /// Parts of the database.
    pub parts: u64,
    /// Jobs in parts whose counters were compared.
    pub counters: u64,
    pub chunks: u64,
    pub objects: u64,
    /// Rows whose checksums were compared.
    pub rows: u64,
    /// Bytes read and hashed.
    pub bytes: u64,
    /// What is wrong, in the order it was found.
    pub findings: Vec<Finding>,
}

impl VerifyReport {
    fn find(&mut self, what: impl Into<String>, problem: impl Into<String>, remedy: &str) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding {
                what: what.into(),
                problem: problem.into(),
                remedy: remedy.to_owned(),
            });
        }
    }
}

const RESTORE: &str = "restore from a backup";
const ASK_WHO: &str = "somebody wrote to the database: compare with a backup, and with the heads \
     that logs of `driftline serve` have told";
const REPORT_BUG: &str = "this is a bug: keep a copy of the data directory and report it";

/// Checks everything. With `read_objects` every object is read and hashed, else
/// only its presence and size are looked at.
pub fn verify(db: &Db, store: &Objects, read_objects: bool) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    check_database(db, &mut report)?;
    row_sums::check(db, &mut report)?;
    // Without it nobody knows where anything is; it is among the rows that were named.
    let Some(parts) = named(db.read(settings::parts), &mut report)? else { return Ok(report) };
    report.parts = parts.into();
    let checks = [
        counters::check_counters,
        counters::check_bins,
        check_claims,
        check_chunks,
        uri_claims::check,
    ];
    for part in (0..i64::from(parts)).map(Part) {
        for check in checks {
            let checked = check(db, part, &mut report);
            named(checked, &mut report)?;
        }
    }
    for check in [check_history, check_audit] {
        let checked = check(db, &mut report);
        named(checked, &mut report)?;
    }
    check_objects(db, store, read_objects, &mut report)?;
    Ok(report)
}

/// What cannot be read because it is damaged is a finding, and the other checks go on.
fn named<T>(outcome: Result<T>, report: &mut VerifyReport) -> Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(Error::Corrupt { what, reason }) => {
            report.find(what, reason, RESTORE);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The audit log was written by this program alone, and only added to.
fn check_audit(db: &Db, report: &mut VerifyReport) -> Result<()> {
    for problem in audit::chain::check(db)?.problems {
        report.find("the audit log", problem, ASK_WHO);
    }
    Ok(())
}

/// SQLite's own check of its file.
fn check_database(db: &Db, report: &mut VerifyReport) -> Result<()> {
    if db.dialect() == Dialect::Postgres {
        return Ok(());
    }
    let problems: Vec<String> =
        db.read(|tx| tx.query("PRAGMA integrity_check(20)", &[], |row| row.get(0)))?;
    for problem in problems.iter().filter(|problem| *problem != "ok") {
        report.find(db.place(), problem, RESTORE);
    }
    Ok(())
}

/// I7 for the history: what is counted of an hour is what its rows say.
fn check_history(db: &Db, report: &mut VerifyReport) -> Result<()> {
    for it in db.read(counts::differences)? {
        let counts::Difference { part, connection, hour, kind, result, kept, counted } = it;
        report.find(
            format!(
                "the count of {kind} {result} of connection {connection} in the hour {hour} in \
                 part {part}"
            ),
            format!(
                "it says {} activities and {} bytes, there are {} and {}",
                kept.0, kept.1, counted.0, counted.1
            ),
            REPORT_BUG,
        );
    }
    Ok(())
}

/// Every active document is in the claim of a chunk that is being crawled.
fn check_claims(db: &Db, part: Part, report: &mut VerifyReport) -> Result<()> {
    let strays: Vec<(String, Option<ChunkId>)> = db.read(move |tx| {
        tx.query(
            "SELECT q.docid, q.chunk FROM queue q
             LEFT JOIN chunks c ON c.part = q.part AND c.claim = q.chunk AND c.state = 'crawling'
             WHERE q.part = $1 AND q.state = 'active' AND c.id IS NULL LIMIT 100",
            &[part.into()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    })?;
    for (docid, chunk) in strays {
        let chunk = chunk.map_or("no chunk".to_owned(), |chunk| format!("chunk {chunk}"));
        report.find(
            docid,
            format!("it is active in {chunk}, and no chunk that is being crawled goes on with it"),
            REPORT_BUG,
        );
    }
    Ok(())
}

/// Commit numbers have no gaps above what every consumer has passed (below, garbage collection
/// forgets rows that nothing needs), and the facts in rows can be read.
fn check_chunks(db: &Db, part: Part, report: &mut VerifyReport) -> Result<()> {
    let passed = match db.read(move |tx| chunk_storage::settled(tx, part, i64::MAX)) {
        Ok(settled) => settled.seq,
        // The check of rows names it; what it says is not believed.
        Err(Error::Corrupt { .. }) => CommitNumber::NONE,
        Err(error) => return Err(error),
    };
    let mut seq = CommitNumber::NONE;
    loop {
        let page = db.read(move |tx| chunks::after(tx, part, seq, PAGE))?;
        if page.is_empty() {
            return Ok(());
        }
        for chunk in page {
            report.chunks += 1;
            if chunk.seq != seq.next() && chunk.seq > passed.next() {
                report.find(
                    format!("part {part}"),
                    format!("its commits jump from {seq} to {}", chunk.seq),
                    REPORT_BUG,
                );
            }
            seq = chunk.seq;
            if let chunks::Facts::Inline(bytes) = &chunk.facts {
                report.bytes += bytes.len() as u64;
                if let Err(error) = read_facts(part, chunk.id, bytes) {
                    let what = format!("the facts of chunk {} in part {part}", chunk.id);
                    report.find(what, error.to_string(), RESTORE);
                }
            }
        }
    }
}

/// Reads all records, which checks every byte.
fn read_facts(part: Part, chunk: ChunkId, bytes: &[u8]) -> Result<()> {
    let key = ChunkKey::new(part, chunk)?;
    FactsStream::open(key, bytes)?.try_for_each(|record| record.map(|_| ()))
}

/// Every published object is there and is what was written.
fn check_objects(db: &Db, store: &Objects, read: bool, report: &mut VerifyReport) -> Result<()> {
    let (mut part, mut id) = (Part(i64::MIN), ObjectId(i64::MIN));
    loop {
        let page = db.read(move |tx| objects::published_after(tx, part, id, PAGE))?;
        let Some(last) = page.last() else { return Ok(()) };
        (part, id) = (last.part, last.id);
        for object in &page {
            report.objects += 1;
            let found = report.findings.len();
            let checked = check_object(store, object, read, report);
            if (checked.is_err() || report.findings.len() > found) && !is_needed(db, object)? {
                // Files of the search index come and go while others work.
                report.findings.truncate(found);
                continue;
            }
            checked?;
        }
    }
}

/// Whether something still points to an object.
fn is_needed(db: &Db, object: &PublishedObject) -> Result<bool> {
    let (part, id) = (object.part, object.id);
    db.read(move |tx| objects::is_published(tx, part, id))
}

fn check_object(
    store: &Objects,
    object: &PublishedObject,
    read: bool,
    report: &mut VerifyReport,
) -> Result<()> {
    let path = ObjectPath::parse(&object.path)?;
    let Some(bytes) = store.head(&path)? else {
        report.find(&object.path, "it is missing", RESTORE);
        return Ok(());
    };
    if i64::try_from(bytes) != Ok(object.bytes) {
        let problem = format!("it has {bytes} bytes, {} were written", object.bytes);
        report.find(&object.path, problem, RESTORE);
        return Ok(());
    }
    if !read {
        return Ok(());
    }
    match store.get(&path) {
        Ok(content) => {
            report.bytes += bytes;
            let found = blake3::hash(&content);
            if object.hash.as_deref() != Some(found.as_bytes().as_slice()) {
                report.find(&object.path, "its bytes are not those that were written", RESTORE);
            }
        }
        Err(Error::Corrupt { reason, .. }) => report.find(&object.path, reason, RESTORE),
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
