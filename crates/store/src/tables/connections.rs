//! Connection definitions of every kind (tables 11.5 to 11.9).
//!
//! A connection is a plain struct that this module loads and saves whole. Its id is
//! what jobs, documents and history refer to, so a connection can be renamed. Invariants:
//! whatever a connection names (group, domain, prerequisite) is there; it does not go
//! while a job or another connection uses it; when what it fetches or delivers changes,
//! the jobs that use it look at everything again. What is written of its settings is
//! sealed, since passwords are among them.

mod kind;
mod reseal;

pub use kind::ConnectionKind;
pub use reseal::{forget_locked, reseal};

use crate::checksums::coverage::CONNECTIONS;
use crate::ids::ConnectionId;
use crate::sealing::Keys;
use crate::tables::authorities::{self, Realm};
use crate::tables::{jobs, registrations, sessions};
use crate::value::{Row, column};
use crate::{Error, Result, Tx, Value, checksums};

/// Bytes of a connection's name.
pub const NAME_BYTES_MAX: usize = 255;
/// Connections open at once, where nothing else is said.
pub const MAXCOUNT: i64 = 10;
/// How long the history of a connection is kept when nothing else is said: 90 days.
pub const HISTORY_MS: i64 = 90 * 24 * 3_600_000;
/// Mappings that may be asked one after the other; a longer chain is a circle.
const CHAIN_MAX: usize = 20;
/// Repository connections with an authority group.
const SECURED_MAX: i64 = 10_000;
/// Users of a connection that a refusal names.
const NAMED_MAX: u32 = 5;

/// A named use of a connector with its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Connection {
    /// Its id, made by us.
    pub id: ConnectionId,
    /// Unique within its kind.
    pub name: String,
    /// What people say of it.
    pub description: Option<String>,
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
    /// A connection as it is made when nothing else is said.
    pub fn new(id: ConnectionId, name: &str, classname: &str) -> Connection {
        Connection {
            id,
            name: name.to_owned(),
            description: None,
            classname: classname.to_owned(),
            config: "{}".to_owned(),
            maxcount: MAXCOUNT,
            groupname: None,
            authdomainname: None,
            prerequisite: None,
            history_ms: Some(HISTORY_MS),
        }
    }

    fn from_row(row: &Row<'_>, keys: &Keys) -> Result<Connection> {
        Ok(Connection {
            id: row.get(column!(COLUMNS, "id"))?,
            name: row.get(column!(COLUMNS, "connectionname"))?,
            description: row.get(column!(COLUMNS, "description"))?,
            classname: row.get(column!(COLUMNS, "classname"))?,
            config: keys.open(row.get(column!(COLUMNS, "config"))?)?,
            maxcount: row.get(column!(COLUMNS, "maxcount"))?,
            groupname: row.get(column!(COLUMNS, "groupname"))?,
            authdomainname: row.get(column!(COLUMNS, "authdomainname"))?,
            prerequisite: row.get(column!(COLUMNS, "prerequisite"))?,
            history_ms: row.get(column!(COLUMNS, "history_ms"))?,
        })
    }
}

/// Writes a connection, new or changed; its version counts the changes. One that is
/// as it was is left alone.
pub fn save(tx: &mut Tx<'_>, kind: ConnectionKind, it: &Connection, now_ms: i64) -> Result<()> {
    let known = load(tx, it.id)?;
    let is_same =
        known.as_ref().is_some_and(|(known_kind, known)| *known_kind == kind && known == it);
    if is_same && is_whole(tx, it.id)? {
        return Ok(());
    }
    check(tx, kind, it)?;
    write(tx, kind, it, now_ms)?;
    let Some((_, known)) = known else { return Ok(()) };
    if kind == ConnectionKind::Mapping && known.name != it.name {
        rename_prerequisite(tx, &known.name, &it.name)?;
    }
    let means = |it: &Connection| (it.classname.clone(), it.config.clone(), it.groupname.clone());
    if means(&known) != means(it) {
        jobs::reseed_users(tx, it.id)?;
    }
    if known.classname != it.classname {
        registrations::assess_connection(tx, it.id, now_ms)?;
    }
    Ok(())
}

fn write(tx: &mut Tx<'_>, kind: ConnectionKind, it: &Connection, now_ms: i64) -> Result<()> {
    let config = tx.keys().seal(&it.config)?;
    let mut values = vec![
        it.id.into(),
        (&it.name).into(),
        (&it.description).into(),
        (&it.classname).into(),
        config.as_str().into(),
        it.maxcount.into(),
        (&it.groupname).into(),
        (&it.authdomainname).into(),
        (&it.prerequisite).into(),
        it.history_ms.into(),
        kind.name().into(),
    ];
    let checksum = CONNECTIONS.places(&format!("{COLUMNS}, kind")).of(&values);
    values.extend([Value::from(now_ms), checksum.into()]);
    let written = tx.execute(
        "INSERT INTO connections (id, connectionname, description, classname, config, maxcount,
             groupname, authdomainname, prerequisite, history_ms, kind, reindexed, version,
             changed_ms, checksum)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 1, $12, $13)
         ON CONFLICT (id) DO UPDATE SET
             connectionname = excluded.connectionname, description = excluded.description,
             classname = excluded.classname, config = excluded.config,
             maxcount = excluded.maxcount, groupname = excluded.groupname,
             authdomainname = excluded.authdomainname, prerequisite = excluded.prerequisite,
             history_ms = excluded.history_ms, version = connections.version + 1,
             changed_ms = excluded.changed_ms, checksum = excluded.checksum
         WHERE connections.kind = excluded.kind",
        &values,
    )?;
    match written {
        0 => Err(Error::Refused(format!("connection {} is of another kind", it.name))),
        _ => Ok(()),
    }
}

/// Whether a connection's row is as it was written.
fn is_whole(tx: &mut Tx<'_>, id: ConnectionId) -> Result<bool> {
    checksums::are_whole(tx, &CONNECTIONS, "id", id.into())
}

/// Changes what a connection's checksum is made of.
fn change(
    tx: &mut Tx<'_>,
    id: ConnectionId,
    statement: impl FnOnce(&mut Tx<'_>) -> Result<u64>,
) -> Result<u64> {
    checksums::change(tx, &CONNECTIONS, &[("id", id.into())], statement)
}

/// Connections that ask for a mapping first ask for it by its new name.
fn rename_prerequisite(tx: &mut Tx<'_>, from: &str, to: &str) -> Result<()> {
    let users: Vec<ConnectionId> = tx.query(
        "SELECT id FROM connections WHERE prerequisite = $1 ORDER BY id LIMIT 100000",
        &[from.into()],
        |row| row.get(0),
    )?;
    for user in users {
        change(tx, user, |tx| {
            tx.execute(
                "UPDATE connections SET prerequisite = $2 WHERE id = $1",
                &[user.into(), to.into()],
            )
        })?;
    }
    Ok(())
}

/// Refuses a connection that names what is not there, or what its kind does not have.
fn check(tx: &mut Tx<'_>, kind: ConnectionKind, it: &Connection) -> Result<()> {
    let what = format!("{} connection {}", kind.name(), it.name);
    let refused = |reason: String| Err(Error::Refused(format!("{what}: {reason}")));
    if !(1..=NAME_BYTES_MAX).contains(&it.name.len()) || it.name.chars().any(char::is_control) {
        return refused(format!("a name has 1 to {NAME_BYTES_MAX} bytes, no control characters"));
    }
    if it.maxcount < 1 {
        return refused(format!("at least 1 connection must be allowed, not {}", it.maxcount));
    }
    let (has_group, has_domain, has_prerequisite) = match kind {
        ConnectionKind::Repository => (true, false, false),
        ConnectionKind::Authority => (true, true, true),
        ConnectionKind::Mapping => (false, false, true),
        ConnectionKind::Output | ConnectionKind::Transformation | ConnectionKind::Notification => {
            (false, false, false)
        }
    };
    for (name, has, realm) in [
        (&it.groupname, has_group, Realm::Groups),
        (&it.authdomainname, has_domain, Realm::Domains),
    ] {
        let Some(name) = name else { continue };
        if !has {
            return refused(format!("this kind has no {}", realm.word()));
        }
        if authorities::find(tx, realm, name)?.is_none() {
            return refused(format!("there is no {} named {name}; make it first", realm.word()));
        }
    }
    if kind == ConnectionKind::Authority && it.groupname.is_none() {
        return refused("an authority belongs to an authority group; name one".to_owned());
    }
    match &it.prerequisite {
        Some(_) if !has_prerequisite => refused("this kind has no prerequisite".to_owned()),
        Some(first) => check_chain(tx, kind, it, first.clone()),
        None => Ok(()),
    }
}

/// Follows the mappings that must be asked first: each is there, and none asks for itself.
fn check_chain(
    tx: &mut Tx<'_>,
    kind: ConnectionKind,
    it: &Connection,
    first: String,
) -> Result<()> {
    let mut next = Some(first);
    for _ in 0..CHAIN_MAX {
        let Some(name) = next else { return Ok(()) };
        if kind == ConnectionKind::Mapping && name == it.name {
            break;
        }
        let Some(found) = find(tx, ConnectionKind::Mapping, &name)? else {
            return Err(Error::Refused(format!(
                "{} connection {}: there is no mapping connection named {name} to be asked first",
                kind.name(),
                it.name
            )));
        };
        if found.id == it.id {
            break;
        }
        next = found.prerequisite;
    }
    Err(Error::Refused(format!(
        "{} connection {}: its prerequisites go round in a circle, or are more than {CHAIN_MAX}",
        kind.name(),
        it.name
    )))
}

/// Removes a connection that nothing uses, with what belongs to it. Returns whether it was
/// there.
pub fn delete(tx: &mut Tx<'_>, kind: ConnectionKind, name: &str) -> Result<bool> {
    let Some(it) = find(tx, kind, name)? else { return Ok(false) };
    let mut users: Vec<String> = tx.query(
        "SELECT name FROM job_definitions WHERE connectionid = $1
         UNION SELECT d.name FROM jobpipelines p JOIN job_definitions d ON d.id = p.ownerid
         WHERE p.connectionid = $1
         UNION SELECT d.name FROM jobnotifications n JOIN job_definitions d ON d.id = n.ownerid
         WHERE n.connectionid = $1
         ORDER BY name LIMIT $2",
        &[it.id.into(), NAMED_MAX.into()],
        |row| Ok(format!("job {}", row.get::<String>(0)?)),
    )?;
    if kind == ConnectionKind::Mapping {
        users.extend(tx.query(
            "SELECT kind, connectionname FROM connections WHERE prerequisite = $1
             ORDER BY kind, connectionname LIMIT $2",
            &[name.into(), NAMED_MAX.into()],
            |row| Ok(format!("{} connection {}", row.get::<String>(0)?, row.get::<String>(1)?)),
        )?);
    }
    if !users.is_empty() {
        return Err(Error::Refused(format!(
            "{} connection {name} is in use by {}; change or delete these first",
            kind.name(),
            users.join(", ")
        )));
    }
    for (table, owner) in [
        ("throttles", "ownerid"),
        ("slots", "connectionid"),
        ("slot_waits", "connectionid"),
        ("former_outputs", "connectionid"),
    ] {
        tx.execute(&format!("DELETE FROM {table} WHERE {owner} = $1"), &[it.id.into()])?;
    }
    sessions::forget(tx, it.id)?;
    tx.execute("DELETE FROM connections WHERE id = $1", &[it.id.into()])?;
    Ok(true)
}

/// A connection by its id, with its kind.
pub fn load(tx: &mut Tx<'_>, id: ConnectionId) -> Result<Option<(ConnectionKind, Connection)>> {
    let keys = tx.keys();
    tx.query_opt(
        &format!("SELECT {COLUMNS}, kind FROM connections WHERE id = $1"),
        &[id.into()],
        |row| {
            Ok((ConnectionKind::read(&row.get::<String>(10)?)?, Connection::from_row(row, &keys)?))
        },
    )
}

/// How often a connection has been changed since it was made, which counts as the first.
pub fn version(tx: &mut Tx<'_>, id: ConnectionId) -> Result<Option<i64>> {
    tx.query_opt("SELECT version FROM connections WHERE id = $1", &[id.into()], |row| row.get(0))
}

/// What a process that uses a connection must know to notice a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Terms {
    pub connection: ConnectionId,
    /// See [`version`]; another one means that its throttles may be others, too.
    pub version: i64,
    pub maxcount: i64,
}

/// The terms of connections.
pub fn terms(tx: &mut Tx<'_>, ids: &[ConnectionId]) -> Result<Vec<Terms>> {
    let keys: Vec<Value<'_>> = ids.iter().map(|id| (*id).into()).collect();
    tx.query_in(
        "SELECT id, version, maxcount FROM connections WHERE id IN ($keys)",
        &[],
        &keys,
        |row| {
            let (connection, version) = (row.get(0)?, row.get(1)?);
            Ok(Terms { connection, version, maxcount: row.get(2)? })
        },
    )
}

/// Counts a change of what belongs to a connection but stands in other tables.
pub(super) fn changed(tx: &mut Tx<'_>, id: ConnectionId) -> Result<()> {
    tx.execute("UPDATE connections SET version = version + 1 WHERE id = $1", &[id.into()])?;
    Ok(())
}

/// The name of a connection's connector.
pub fn connector_of(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<Option<String>> {
    tx.query_opt("SELECT classname FROM connections WHERE id = $1", &[connection.into()], |row| {
        row.get(0)
    })
}

/// Repository connections whose documents an authority group secures, by id.
pub fn secured(tx: &mut Tx<'_>) -> Result<Vec<ConnectionId>> {
    let found = tx.query(
        "SELECT id FROM connections
         WHERE kind = $1 AND groupname IS NOT NULL
         ORDER BY id LIMIT $2",
        &[ConnectionKind::Repository.name().into(), (SECURED_MAX + 1).into()],
        |row| row.get(0),
    )?;
    if i64::try_from(found.len()).unwrap_or(i64::MAX) > SECURED_MAX {
        // Whoever asks must not take the rest for unsecured.
        return Err(Error::Refused(format!(
            "more than {SECURED_MAX} repository connections have an authority group, so nobody \
             can be told which documents they may see"
        )));
    }
    Ok(found)
}

/// A connection by its name.
pub fn find(tx: &mut Tx<'_>, kind: ConnectionKind, name: &str) -> Result<Option<Connection>> {
    let keys = tx.keys();
    tx.query_opt(
        &format!("SELECT {COLUMNS} FROM connections WHERE kind = $1 AND connectionname = $2"),
        &[kind.name().into(), name.into()],
        |row| Connection::from_row(row, &keys),
    )
}

/// Connections of a kind by name, after one.
pub fn list(
    tx: &mut Tx<'_>,
    kind: ConnectionKind,
    after: &str,
    limit: u32,
) -> Result<Vec<Connection>> {
    let keys = tx.keys();
    tx.query(
        &format!(
            "SELECT {COLUMNS} FROM connections WHERE kind = $1 AND connectionname > $2
             ORDER BY connectionname LIMIT $3"
        ),
        &[kind.name().into(), after.into(), Value::from(limit)],
        |row| Connection::from_row(row, &keys),
    )
}

#[cfg(test)]
mod tests;
