//! Keeps the database's knowledge of its own tables fresh while they grow.
//!
//! PostgreSQL plans by statistics that it gathers about once a minute. A crawl fills
//! tables from nothing to a million rows in that time, and with no statistics, or those
//! of a small table, a look-up by key is planned as a walk over a whole part: fine for
//! a hundred rows, seconds for a million. Invariant: at most [`TABLES_MAX`] tables at
//! once, and a table not before it has changed by half.

use crate::dialect::Dialect;
use crate::{Result, Tx};

/// Tables looked at once; there are fewer.
const TABLES_MAX: u32 = 100;
/// Changes from which on a table is worth a look.
const CHANGES_MIN: i64 = 500;

/// Gathers statistics of the tables that have changed by half since that was last done.
/// Returns which. SQLite needs none: its plans follow from the indexes alone.
pub fn refresh(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    if tx.dialect() == Dialect::Sqlite {
        return Ok(Vec::new());
    }
    let stale: Vec<String> = tx.query(
        "SELECT relname FROM pg_stat_user_tables
         WHERE schemaname = CURRENT_SCHEMA() AND n_mod_since_analyze > $1
           AND n_mod_since_analyze > n_live_tup / 2
         ORDER BY relname LIMIT $2",
        &[CHANGES_MIN.into(), TABLES_MAX.into()],
        |row| row.get(0),
    )?;
    for table in &stale {
        tx.execute(&format!("ANALYZE {table}"), &[])?;
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{BinId, JobId, Part};
    use crate::tables::traps::{self, TrapRow};
    use crate::testing::both_databases;
    use std::time::{Duration, Instant};

    #[test]
    fn a_table_that_has_grown_is_looked_at_again() {
        both_databases(|db| {
            let rows: Vec<TrapRow> = (0..1_000)
                .map(|number| TrapRow {
                    job: JobId(1),
                    bin: BinId(number),
                    pattern: "a.example/#".into(),
                    documents: 1,
                    stale: 0,
                    deep: 0,
                    suspects: 0,
                    recent_stale: 0,
                    recent_alike: 0,
                    rule: None,
                    outside: 0,
                    bytes: 0,
                })
                .collect();
            db.write(move |tx| traps::save(tx, Part(0), &rows, 0))?;
            if db.dialect() == Dialect::Sqlite {
                assert!(db.write(refresh)?.is_empty());
                return Ok(());
            }
            // What a connection has changed is counted when it is next idle for a moment.
            let began = Instant::now();
            while db.write(refresh)? != ["traps"] {
                assert!(began.elapsed() < Duration::from_secs(20), "nobody counts");
                std::thread::yield_now();
            }
            Ok(())
        });
    }
}
