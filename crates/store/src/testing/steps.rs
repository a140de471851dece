//! How much work SQLite has with the queries of a test: the steps of its machine.
//!
//! A number that is the same on every computer, where time is not. Only files that a test
//! has named are counted.

use crate::{Db, Result};
use rusqlite::{Connection, Statement, StatementStatus};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Steps, by the file that the queries were for.
static COUNTED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

fn counted() -> MutexGuard<'static, BTreeMap<String, u64>> {
    COUNTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the steps of a statement that has been run.
pub(crate) fn count(connection: &Connection, statement: &Statement<'_>) {
    let steps = u64::from(statement.reset_status(StatementStatus::VmStep).unsigned_abs());
    if let Some(sum) = counted().get_mut(connection.path().unwrap_or_default()) {
        *sum += steps;
    }
}

/// The steps of all queries of a SQLite database while something is done.
pub(crate) fn of(db: &Db, work: impl FnOnce() -> Result<()>) -> Result<u64> {
    counted().insert(db.place().to_owned(), 0);
    work()?;
    Ok(counted().remove(db.place()).unwrap_or(0))
}
