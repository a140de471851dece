//! The schema: one text for both databases, forward only, one transaction a version.
//!
//! Invariants: a database with a newer schema than this program's is refused and
//! left alone; two processes that migrate at once end with one schema, because
//! each version's row is inserted before its statements run; a database that a copy
//! has not filled to the end is refused, except by a copy.

use crate::tables::settings;
use crate::{Db, Error, Result, Tx, checksums};

struct Migration {
    version: i64,
    name: &'static str,
    texts: &'static [&'static str],
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "ground",
        texts: &[
            include_str!("../migrations/definitions.sql"),
            include_str!("../migrations/jobs.sql"),
            include_str!("../migrations/queue.sql"),
            include_str!("../migrations/chunks.sql"),
            include_str!("../migrations/documents.sql"),
            include_str!("../migrations/views.sql"),
        ],
    },
    Migration { version: 2, name: "links", texts: &[include_str!("../migrations/links.sql")] },
    Migration { version: 3, name: "search", texts: &[include_str!("../migrations/search.sql")] },
    Migration { version: 4, name: "api", texts: &[include_str!("../migrations/api.sql")] },
    Migration {
        version: 5,
        name: "review",
        texts: &[
            include_str!("../migrations/claims.sql"),
            include_str!("../migrations/removals.sql"),
            include_str!("../migrations/standing.sql"),
        ],
    },
    Migration {
        version: 6,
        name: "checksums",
        texts: &[include_str!("../migrations/checksums.sql")],
    },
    Migration {
        version: 7,
        name: "writes and audit chain",
        texts: &[include_str!("../migrations/writes.sql"), include_str!("../migrations/audit.sql")],
    },
    Migration { version: 8, name: "looks", texts: &[include_str!("../migrations/looks.sql")] },
    Migration {
        version: 9,
        name: "requisites",
        texts: &[include_str!("../migrations/requisites.sql")],
    },
];

/// The newest schema this program knows.
pub const SCHEMA_VERSION: i64 = 9;

/// The version in which it last changed what checksums of rows are made of. Rows that are
/// older get theirs with it, in the same transaction; so there is no row without one.
const CHECKSUMS_VERSION: i64 = 6;

/// A hash of the whole schema: databases made from equal texts are equal.
pub fn fingerprint() -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts() {
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..12].to_owned()
}

const VERSIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_versions (
    version    BIGINT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_ms BIGINT NOT NULL
);";

/// Brings the schema up to this program's version. Returns the versions applied.
pub fn migrate(db: &Db, now_ms: i64) -> Result<Vec<i64>> {
    let applied = apply(db, now_ms)?;
    refuse_incomplete(db)?;
    Ok(applied)
}

/// As [`migrate`], for a database that a copy fills.
pub(crate) fn apply(db: &Db, now_ms: i64) -> Result<Vec<i64>> {
    let mut applied = Vec::new();
    loop {
        let step = db.write(move |tx| one_step(tx, now_ms));
        match step {
            Ok(Some(version)) => applied.push(version),
            Ok(None) => return Ok(applied),
            // Another process is applying the same version: look again.
            Err(Error::Duplicate { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The texts that make the schema, oldest first.
pub(crate) fn texts() -> impl Iterator<Item = &'static str> {
    MIGRATIONS.iter().flat_map(|migration| migration.texts).copied()
}

/// Refuses a database that a copy is filling, or was filling when it was cut off.
pub(crate) fn refuse_incomplete(db: &Db) -> Result<()> {
    match db.read(settings::copying)? {
        None => Ok(()),
        Some(_) => Err(Error::Refused(format!(
            "{} is incomplete: a `driftline copy` into it runs or was cut off; wait for it, \
             or run the same copy again",
            db.place()
        ))),
    }
}

/// Refuses a schema that is missing or newer, and an incomplete copy; for commands
/// that only look.
pub fn check(db: &Db) -> Result<()> {
    // A database without that table was never finished, or is not ours.
    let found = match db.read(current) {
        Err(Error::Statement { .. }) => 0,
        found => found?,
    };
    if found > SCHEMA_VERSION {
        return Err(Error::NewerSchema { found, known: SCHEMA_VERSION });
    }
    if found < SCHEMA_VERSION {
        return Err(Error::Refused(format!(
            "the database has schema {found}, this program needs {SCHEMA_VERSION}; \
             run a command that writes (such as `driftline init`) to upgrade it"
        )));
    }
    refuse_incomplete(db)
}

fn current(tx: &mut Tx<'_>) -> Result<i64> {
    tx.query_one("SELECT COALESCE(MAX(version), 0) FROM schema_versions", &[], |row| row.get(0))
}

/// Applies the next version, if there is one.
fn one_step(tx: &mut Tx<'_>, now_ms: i64) -> Result<Option<i64>> {
    tx.run_schema(VERSIONS_TABLE)?;
    let found = current(tx)?;
    if found > SCHEMA_VERSION {
        return Err(Error::NewerSchema { found, known: SCHEMA_VERSION });
    }
    let Some(next) = MIGRATIONS.iter().find(|migration| migration.version == found + 1) else {
        return Ok(None);
    };
    tx.execute(
        "INSERT INTO schema_versions (version, name, applied_ms) VALUES ($1, $2, $3)",
        &[next.version.into(), next.name.into(), now_ms.into()],
    )?;
    for text in next.texts {
        tx.run_schema(text)?;
    }
    if next.version == CHECKSUMS_VERSION {
        checksums::fill(tx, &checksums::coverage::older())?;
    }
    Ok(Some(next.version))
}

#[cfg(test)]
mod tests;
