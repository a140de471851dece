//! Copies everything durable from one home to another: an embedded data directory
//! to PostgreSQL and an object store, or back.
//!
//! Which tables and columns there are comes from the schema's own text ([`schema`]) and
//! that of registered connectors, so a new table is copied without a line here. Rows are read page by page in the
//! order of their primary key, all from one snapshot of the source; objects are those
//! that the copied rows name, each hashed before it is written and again after it is
//! read back.
//!
//! Invariants: a target is empty at first, and carries a mark from the first write
//! until the last, so that a copy that was cut off is never taken for a whole one
//! and can be started over. Each write looks for its own mark, so of two copies to
//! one target only the later goes on. In the copy nobody holds a lease and no node runs,
//! and secrets are sealed with the keys of the target.

mod rows;
pub(crate) mod schema;
#[cfg(test)]
mod tests;

use crate::dialect::Dialect;
use crate::ids::{ObjectId, Part};
use crate::objects::{ObjectPath, Objects};
use crate::owned::{self, OwnedTables};
use crate::tables::objects::{self, PublishedObject};
use crate::tables::{connections, link_rows, settings, shards};
use crate::{Db, Error, Result, Tx, migrate};
use schema::Table;

/// Objects listed at a time.
const OBJECTS_PAGE: u32 = 500;

/// One of the two homes: rows, and the objects they name.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Home {
    /// The rows. A target's schema is brought up to date by the copy.
    pub db: Db,
    pub objects: Objects,
    /// Where the objects are, as an operator writes it.
    pub objects_at: String,
}

/// How much a copy between two places has copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct CopySummary {
    /// Tables, empty ones among them.
    pub tables: u64,
    pub rows: u64,
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
}

/// Copies all of `source` to `target`, which must be empty or left over from a copy
/// that was cut off. The caller holds the data directory that takes part, if any. `links`
/// copies the link index, which is rows on one side and files on the other.
pub fn copy(
    source: &Home,
    target: &Home,
    now_ms: i64,
    links: &mut dyn FnMut() -> Result<()>,
) -> Result<CopySummary> {
    check_source(source, now_ms)?;
    migrate::apply(&target.db, now_ms)?;
    let owned = source.db.read(owned::present)?;
    let mut tables = schema::tables(&owned);
    // The link index is copied by whoever has it open; the search index is made anew.
    tables.retain(|table| table.name != link_rows::TABLE && !shards::TABLES.contains(&table.name));
    let mark = begin(target, &owned, now_ms)?;

    let mut copied = CopySummary { tables: tables.len() as u64, ..CopySummary::default() };
    let writer = rows::Writer { db: target.db.clone(), mark: mark.clone(), now_ms };
    copied.rows = copy_rows(&source.db, tables, writer)?;
    let (fenced, keys) = (mark.clone(), source.db.keys().clone());
    target.db.write(move |tx| {
        fence(tx, &fenced)?;
        connections::reseal(tx, &keys)?;
        shards::forget_all(tx)
    })?;
    copy_objects(source, target, &mut copied)?;
    links()?;
    target.db.write(move |tx| {
        fence(tx, &mark)?;
        settings::clear_copying(tx)
    })?;
    Ok(copied)
}

/// Refuses a source that is incomplete, of another schema, or in use. [`copy`] asks
/// this first; a caller may ask before it makes a target.
pub fn check_source(source: &Home, now_ms: i64) -> Result<()> {
    migrate::check(&source.db)?;
    match source.db.dialect() {
        Dialect::Postgres => source.db.read(move |tx| refuse_held(tx, now_ms)),
        // Whoever holds the directory is alone; leases in it are its predecessor's.
        Dialect::Sqlite => Ok(()),
    }
}

/// A cluster that works would go on without what it does from now on.
fn refuse_held(tx: &mut Tx<'_>, now_ms: i64) -> Result<()> {
    let held: Option<(String, i64, String)> = tx.query_opt(
        "SELECT node_name, part, role FROM leases WHERE deadline_ms > $1
         ORDER BY part, role LIMIT 1",
        &[now_ms.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    match held {
        None => Ok(()),
        Some((node, part, role)) => Err(Error::Refused(format!(
            "the source is in use: node {node} holds part {part} for {role}; stop every \
             node, wait a minute until its leases have ended, and copy again"
        ))),
    }
}

/// Marks an empty target, or clears one that an earlier copy left. Returns the mark.
/// The tables of connectors are there afterwards exactly as the source has them.
fn begin(target: &Home, owned: &[&'static OwnedTables], now_ms: i64) -> Result<String> {
    let tables = &schema::tables(&[]);
    let left = target.db.read(settings::copying)?;
    if objects_of(left.as_deref()) != Some(target.objects_at.as_str()) {
        refuse_objects(target)?;
    }
    let mark = format!("{now_ms}/{} {}", std::process::id(), target.objects_at);
    let taken = match take(target, tables, &mark) {
        // Another copy began at the same moment: this one is the later.
        Err(Error::Duplicate { .. }) => take(target, tables, &mark)?,
        other => other?,
    };
    for connectors in owned::ALL {
        let (mark, is_there) = (mark.clone(), owned.contains(connectors));
        target.db.write(move |tx| {
            fence(tx, &mark)?;
            connectors.deinstall(tx)?;
            if is_there { connectors.install(tx) } else { Ok(()) }
        })?;
    }
    if taken == TargetState::Over {
        for table in tables.iter().filter(|table| table.name != settings::TABLE) {
            let (mark, sql) = (mark.clone(), format!("DELETE FROM {}", table.name));
            target.db.write(move |tx| {
                fence(tx, &mark)?;
                tx.execute(&sql, &[])
            })?;
        }
    }
    Ok(mark)
}

/// Where the copy that set this mark was putting its objects.
fn objects_of(mark: Option<&str>) -> Option<&str> {
    mark?.split_once(' ').map(|(_, place)| place)
}

/// Objects that a collection would take for orphans, or that belong to somebody else.
fn refuse_objects(target: &Home) -> Result<()> {
    for root in ObjectPath::ROOTS {
        let found = target.objects.list(&ObjectPath::parse(root)?, None, 1)?;
        if let Some(found) = found.first() {
            return Err(Error::Refused(format!(
                "{} is not empty: it has {}; name an empty directory, or another prefix of \
                 the bucket",
                target.objects_at, found.path
            )));
        }
    }
    Ok(())
}

/// How a target was when it was marked.
#[derive(Clone, Copy, PartialEq)]
enum TargetState {
    Empty,
    Over,
}

fn take(target: &Home, tables: &[Table], mark: &str) -> Result<TargetState> {
    let (tables, mark, place) = (tables.to_vec(), mark.to_owned(), target.db.place().to_owned());
    target.db.write(move |tx| {
        if settings::copying(tx)?.is_some() {
            settings::clear(tx)?;
            settings::set_copying(tx, &mark)?;
            return Ok(TargetState::Over);
        }
        for table in &tables {
            let sql = format!("SELECT 1 FROM {} LIMIT 1", table.name);
            if tx.query_opt(&sql, &[], |_| Ok(()))?.is_some() {
                return Err(Error::Refused(format!(
                    "{place} is not empty: table {} has rows; copy to a database or a data \
                     directory that is new",
                    table.name
                )));
            }
        }
        settings::set_copying(tx, &mark)?;
        Ok(TargetState::Empty)
    })
}

/// Stops a copy whose target has been taken over by a later one.
fn fence(tx: &mut Tx<'_>, mark: &str) -> Result<()> {
    if settings::lock_copying(tx)?.as_deref() == Some(mark) {
        return Ok(());
    }
    Err(Error::Refused(
        "another copy to the same target began after this one; let that one finish".to_owned(),
    ))
}

/// Copies all rows from one snapshot of `source`. Returns how many there were.
fn copy_rows(source: &Db, tables: Vec<Table>, writer: rows::Writer) -> Result<u64> {
    let mut begun = false;
    source.read(move |tx| {
        // Rows of the first try are in the target already; a second would repeat them.
        if std::mem::replace(&mut begun, true) {
            return Ok(Err(Error::Unavailable {
                what: "the source".to_owned(),
                reason: "its connection broke during the copy; start the copy over".to_owned(),
            }));
        }
        // An error is an answer here: `read` would try again after some of them.
        Ok(tables
            .iter()
            .try_fold(0, |rows, table| Ok(rows + rows::copy_table(tx, table, &writer)?)))
    })?
}

/// Copies the objects that the copied rows name, and reads each back.
fn copy_objects(source: &Home, target: &Home, copied: &mut CopySummary) -> Result<()> {
    let (mut part, mut id) = (Part(i64::MIN), ObjectId(i64::MIN));
    loop {
        let page =
            target.db.read(move |tx| objects::published_after(tx, part, id, OBJECTS_PAGE))?;
        let Some(last) = page.last() else { return Ok(()) };
        (part, id) = (last.part, last.id);
        for object in &page {
            let path = ObjectPath::parse(&object.path)?;
            let content = source.objects.get(&path)?;
            check_hash(object, &content, &source.objects_at)?;
            copied.objects += 1;
            copied.bytes += content.len() as u64;
            target.objects.put(&path, content)?;
            check_hash(object, &target.objects.get(&path)?, &target.objects_at)?;
        }
    }
}

fn check_hash(object: &PublishedObject, content: &[u8], place: &str) -> Result<()> {
    if object.hash.as_deref() == Some(blake3::hash(content).as_bytes().as_slice()) {
        return Ok(());
    }
    Err(Error::Corrupt {
        what: format!("object {} in {place}", object.path),
        reason: "it is not what was written; run `driftline verify`".into(),
    })
}
