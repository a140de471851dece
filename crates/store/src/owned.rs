//! Tables that belong to a connector: not part of the schema, made when the connector
//! is registered and dropped when it is deregistered.
//!
//! Their text stands with the schema's, so that a copy knows them. Invariants: such a
//! table is there exactly while its connector is registered, because both change in one
//! transaction; whoever uses it asks [`OwnedTables::is_there`] first and passes what went
//! wrong through [`OwnedTables::explained`], so that a worker whose connector goes away in mid-run
//! finds nothing instead of failing.

use crate::tables::connections::ConnectionKind;
use crate::tables::registrations;
use crate::{Error, Result, Tx};

/// The tables of one connector.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OwnedTables {
    pub kind: ConnectionKind,
    pub classname: &'static str,
    /// What makes its tables; making them again changes nothing.
    pub(crate) text: &'static str,
    tables: &'static [&'static str],
}

/// The web connector's: what robots.txt said, where names led, and sessions.
pub static WEB: OwnedTables = OwnedTables {
    kind: ConnectionKind::Repository,
    classname: "web",
    text: include_str!("../migrations/web.sql"),
    tables: &["robots", "addresses", "sessions"],
};

/// The tables of all connectors that have some.
pub(crate) static ALL: &[&OwnedTables] = &[&WEB];

impl OwnedTables {
    /// Makes the tables, if they are not there.
    pub fn install(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.run_schema(self.text)
    }

    /// Drops the tables with all that is in them.
    pub fn deinstall(&self, tx: &mut Tx<'_>) -> Result<()> {
        for table in self.tables {
            tx.run_schema(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        Ok(())
    }

    /// Whether the tables are there, which is while the connector is registered.
    pub(crate) fn is_there(&self, tx: &mut Tx<'_>) -> Result<bool> {
        registrations::is_registered(tx, self.kind, self.classname)
    }

    /// On PostgreSQL a table can go between a look and the statement after it. That is a
    /// conflict: the transaction starts over, and finds the connector gone.
    pub(crate) fn explained<T>(&self, outcome: Result<T>) -> Result<T> {
        match outcome {
            Err(Error::Statement { reason }) if reason.ends_with(NO_TABLE) => {
                Err(Error::Conflict { reason })
            }
            outcome => outcome,
        }
    }
}

/// How PostgreSQL's refusal ends when a table is not there (its code for it).
const NO_TABLE: &str = "(42P01)";

/// The tables of connectors that are registered.
pub(crate) fn present(tx: &mut Tx<'_>) -> Result<Vec<&'static OwnedTables>> {
    let mut found = Vec::new();
    for owned in ALL {
        if owned.is_there(tx)? {
            found.push(*owned);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::dialect::Dialect;
    use crate::ids::Part;
    use crate::tables::robots;
    use crate::testing::{WEB as CONNECTOR, both_databases};
    use std::cell::Cell;

    fn tables(db: &Db) -> Result<usize> {
        let mut there = 0;
        for table in WEB.tables {
            let found = db.read(move |tx| {
                tx.query(&format!("SELECT 1 FROM {table} LIMIT 1"), &[], |_| Ok(()))
            });
            there += usize::from(found.is_ok());
        }
        Ok(there)
    }

    #[test]
    fn a_connectors_tables_come_and_go_with_its_registration() {
        both_databases(|db| {
            assert_eq!(tables(db)?, 3, "a test's database has the web connector");
            db.write(|tx| registrations::register(tx, &CONNECTOR, 1))?;
            assert_eq!(tables(db)?, 3, "to register again changes nothing");
            assert!(db.write(|tx| registrations::deregister(tx, &CONNECTOR, 2))?);
            assert_eq!((tables(db)?, db.read(present)?.len()), (0, 0));
            db.write(|tx| registrations::register(tx, &CONNECTOR, 3))?;
            assert_eq!((tables(db)?, db.read(present)?.len()), (3, 1));
            Ok(())
        });
    }

    #[test]
    fn a_table_that_goes_between_two_statements_is_found_gone() {
        both_databases(|db| {
            if db.dialect() == Dialect::Sqlite {
                return Ok(()); // One writer at a time, and readers keep their snapshot.
            }
            let (other, tries) = (db.clone(), Cell::new(0));
            let found = db.write(move |tx| {
                tries.set(tries.get() + 1);
                if !WEB.is_there(tx)? {
                    return Ok((tries.get(), false));
                }
                other.write(|tx| registrations::deregister(tx, &CONNECTOR, 2))?;
                let found = tx.query("SELECT part FROM robots LIMIT 1", &[], |_| Ok(()));
                WEB.explained(found)?;
                Ok((tries.get(), true))
            })?;
            assert_eq!(found, (2, false));
            assert_eq!(db.read(|tx| robots::find(tx, Part(0), "http://a.example"))?, None);
            Ok(())
        });
    }
}
