//! Connection definitions of every kind (tables 11.5 to 11.9).
//!
//! A connection is a plain struct that this module loads and saves whole. Its id is
//! what documents and history refer to, so a connection can be renamed.

use crate::ids::ConnectionId;
use crate::value::Row;
use crate::{Result, Tx, Value};

/// What a connection connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Kind {
    Repository,
    Output,
    Authority,
    Mapping,
    Transformation,
    Notification,
}

impl Kind {
    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Repository => "repository",
            Kind::Output => "output",
            Kind::Authority => "authority",
            Kind::Mapping => "mapping",
            Kind::Transformation => "transformation",
            Kind::Notification => "notification",
        }
    }
}

/// A connection's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Its id, made by us.
    pub id: ConnectionId,
    /// Unique within its kind.
    pub name: String,
    /// What people say of it.
    pub description: Option<String>,
    /// The connector.
    pub classname: String,
    /// The connector's settings, as JSON.
    pub config: String,
    /// Connections open at once.
    pub maxcount: i64,
    /// The authority group that secures its documents.
    pub groupname: Option<String>,
    /// The authorization domain of an authority.
    pub authdomainname: Option<String>,
    /// The mapping that must be asked first.
    pub prerequisite: Option<String>,
    /// How long its history is kept; `None` keeps it for ever.
    pub history_ms: Option<i64>,
}

const COLUMNS: &str = "id, connectionname, description, classname, config, maxcount, groupname, \
                       authdomainname, prerequisite, history_ms";

impl Connection {
    fn from_row(row: &Row<'_>) -> Result<Connection> {
        Ok(Connection {
            id: row.get(0)?,
            name: row.get(1)?,
            description: row.get(2)?,
            classname: row.get(3)?,
            config: row.get(4)?,
            maxcount: row.get(5)?,
            groupname: row.get(6)?,
            authdomainname: row.get(7)?,
            prerequisite: row.get(8)?,
            history_ms: row.get(9)?,
        })
    }
}

/// Writes a connection, new or changed; its version counts the changes.
pub fn save(tx: &mut Tx<'_>, kind: Kind, it: &Connection, now_ms: i64) -> Result<()> {
    tx.execute(
        "INSERT INTO connections (id, connectionname, description, classname, config, maxcount,
             groupname, authdomainname, prerequisite, history_ms, kind, version, changed_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12)
         ON CONFLICT (id) DO UPDATE SET
             connectionname = excluded.connectionname, description = excluded.description,
             classname = excluded.classname, config = excluded.config,
             maxcount = excluded.maxcount, groupname = excluded.groupname,
             authdomainname = excluded.authdomainname, prerequisite = excluded.prerequisite,
             history_ms = excluded.history_ms, version = connections.version + 1,
             changed_ms = excluded.changed_ms",
        &[
            it.id.into(),
            (&it.name).into(),
            (&it.description).into(),
            (&it.classname).into(),
            (&it.config).into(),
            it.maxcount.into(),
            (&it.groupname).into(),
            (&it.authdomainname).into(),
            (&it.prerequisite).into(),
            it.history_ms.into(),
            kind.name().into(),
            now_ms.into(),
        ],
    )?;
    Ok(())
}

/// A connection by its name.
pub fn find(tx: &mut Tx<'_>, kind: Kind, name: &str) -> Result<Option<Connection>> {
    tx.query_opt(
        &format!("SELECT {COLUMNS} FROM connections WHERE kind = $1 AND connectionname = $2"),
        &[kind.name().into(), name.into()],
        Connection::from_row,
    )
}

/// Connections of a kind by name, after one.
pub fn list(tx: &mut Tx<'_>, kind: Kind, after: &str, limit: u32) -> Result<Vec<Connection>> {
    tx.query(
        &format!(
            "SELECT {COLUMNS} FROM connections WHERE kind = $1 AND connectionname > $2
             ORDER BY connectionname LIMIT $3"
        ),
        &[kind.name().into(), after.into(), Value::from(limit)],
        Connection::from_row,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::testing::both_databases;

    fn connection(id: i64, name: &str) -> Connection {
        Connection {
            id: ConnectionId(id),
            name: name.into(),
            description: None,
            classname: "web".into(),
            config: "{}".into(),
            maxcount: 10,
            groupname: None,
            authdomainname: None,
            prerequisite: None,
            history_ms: Some(1_000),
        }
    }

    #[test]
    fn a_connection_is_saved_whole_and_can_be_renamed() {
        both_databases(|db| {
            let first = connection(1, "the web");
            let renamed =
                Connection { description: Some("ours".into()), ..connection(1, "intranet") };
            for it in [first, renamed.clone()] {
                db.write(move |tx| save(tx, Kind::Repository, &it, 5))?;
            }
            assert_eq!(db.read(|tx| find(tx, Kind::Repository, "the web"))?, None);
            let found = db.read(|tx| find(tx, Kind::Repository, "intranet"))?;
            assert_eq!(found, Some(renamed.clone()));
            assert_eq!(db.read(|tx| find(tx, Kind::Output, "intranet"))?, None);
            assert_eq!(db.read(|tx| list(tx, Kind::Repository, "", 9))?, [renamed]);
            Ok(())
        });
    }

    #[test]
    fn two_connections_of_a_kind_cannot_share_a_name() {
        both_databases(|db| {
            db.write(|tx| save(tx, Kind::Output, &connection(1, "solr"), 0))?;
            db.write(|tx| save(tx, Kind::Repository, &connection(2, "solr"), 0))?;
            let refused = db.write(|tx| save(tx, Kind::Output, &connection(3, "solr"), 0));
            assert!(matches!(refused, Err(Error::Duplicate { .. })), "{refused:?}");
            Ok(())
        });
    }
}
