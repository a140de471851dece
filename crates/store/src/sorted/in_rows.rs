//! A sorted map in one table of the database: what many machines share.
//!
//! Relies on the database for everything: a change is one transaction of one part, which
//! begins with the lock of the part's first row. Invariant: no transaction writes to two
//! parts.

use super::{
    BulkReplacement, Family, Pair, Row, SortedMap, SortedRows, Span, View, ViewReader, Work,
};
use crate::ids::Part;
use crate::tables::leases::{self, Lease};
use crate::tables::link_rows;
use crate::{Db, Error, Result, Tx};
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Rows that are sent to a part's transaction together when its families are replaced.
const REPLACE_ROWS: usize = 5_000;
/// Such batches that may wait for it.
const REPLACE_BATCHES: usize = 4;

/// A sorted map in a table of the database, for installations of many machines.
#[derive(Clone)]
pub struct InRows {
    db: Db,
}

impl InRows {
    /// In a database that has the schema.
    pub fn new(db: &Db) -> InRows {
        InRows { db: db.clone() }
    }
}

struct TxView<'v, 't>(RefCell<&'v mut Tx<'t>>);

impl View for TxView<'_, '_> {
    fn get_many(&self, part: Part, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        link_rows::get_many(&mut self.0.borrow_mut(), part, keys)
    }

    fn scan(&self, part: Part, span: &Span, limit: usize) -> Result<Vec<Pair>> {
        link_rows::scan(&mut self.0.borrow_mut(), part, span, limit)
    }
}

impl SortedMap for InRows {
    fn spans_parts(&self) -> bool {
        false
    }

    fn change(&self, part: Part, lease: Option<&Lease>, work: Work) -> Result<()> {
        let lease = lease.cloned();
        self.db.write(move |tx| {
            if let Some(lease) = &lease {
                leases::fence(tx, lease)?;
            }
            link_rows::lock(tx, part)?;
            let rows = work(&TxView(RefCell::new(tx)))?;
            if let Some(elsewhere) = rows.iter().find(|row| row.part != part) {
                return Err(Error::Statement {
                    reason: format!("a change of part {part} writes to part {}", elsewhere.part),
                });
            }
            link_rows::write(tx, part, &rows)
        })
    }

    fn look(&self, mut look: ViewReader) -> Result<()> {
        self.db.read(move |tx| look(&TxView(RefCell::new(tx))))
    }

    fn replace(&self, what: &BulkReplacement<'_>, rows: &mut SortedRows<'_>) -> Result<()> {
        let mut next = rows()?;
        for part in (0..i64::from(what.parts)).map(Part) {
            let (send, incoming) = sync_channel(REPLACE_BATCHES);
            let lease = what.leases.iter().find(|lease| lease.part == part).cloned();
            let filling =
                PartReplacement { part, lease, families: what.families.to_vec(), incoming };
            std::thread::scope(|scope| {
                let filled = scope.spawn(|| filling.run(&self.db));
                let fed = feed(part, &mut next, rows, &send);
                // A stream that broke off must not be taken for one that has ended.
                let _ = send.send(fed.as_ref().map(|()| None).map_err(ToString::to_string));
                drop(send);
                let filled = filled.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                fed.and(filled)
            })?;
        }
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.db.read(link_rows::bytes)
    }

    fn compact(&self) -> Result<()> {
        // The database does that by itself.
        Ok(())
    }
}

/// Rows on their way to a part's transaction; `None` is the good end, an error the bad.
type Batch = std::result::Result<Option<Vec<Row>>, String>;

/// Sends the rows of one part.
fn feed(
    part: Part,
    next: &mut Option<Row>,
    rows: &mut SortedRows<'_>,
    send: &SyncSender<Batch>,
) -> Result<()> {
    let mut batch = Vec::new();
    while let Some(row) = next.take_if(|row| row.part == part) {
        batch.push(row);
        *next = rows()?;
        // Whoever has stopped listening says why.
        if batch.len() >= REPLACE_ROWS && send.send(Ok(Some(std::mem::take(&mut batch)))).is_err() {
            return Ok(());
        }
    }
    let _ = send.send(Ok(Some(batch)));
    Ok(())
}

/// A part whose families are replaced in one transaction.
///
/// The lease is checked before it begins, so that a lost one costs nothing, and again as its
/// last statement. Not as its first, as elsewhere: that would lock the lease's row for as long
/// as the part takes, and whoever renews the leases would wait for it while the others run out.
struct PartReplacement {
    part: Part,
    lease: Option<Lease>,
    families: Vec<Family>,
    incoming: Receiver<Batch>,
}

impl PartReplacement {
    fn run(self, db: &Db) -> Result<()> {
        if let Some(lease) = self.lease.clone() {
            db.write(move |tx| leases::fence(tx, &lease))?;
        }
        let mut begun = false;
        db.write(move |tx| {
            if std::mem::replace(&mut begun, true) {
                return Err(Error::invariant("a part was changed while it was replaced"));
            }
            link_rows::lock(tx, self.part)?;
            for family in &self.families {
                link_rows::clear(tx, self.part, family.byte)?;
            }
            loop {
                match self.incoming.recv() {
                    Ok(Ok(Some(batch))) => link_rows::write(tx, self.part, &batch)?,
                    Ok(Ok(None)) => break,
                    Ok(Err(reason)) => return Err(Error::Refused(reason)),
                    Err(_) => return Err(Error::invariant("the stream of rows broke off")),
                }
            }
            self.lease.as_ref().map_or(Ok(()), |lease| leases::fence(tx, lease))
        })
    }
}
