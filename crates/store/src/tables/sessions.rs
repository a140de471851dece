//! Sessions of connections with sites they log in to: the web connector's own table.
//! While that connector is not registered there is no such table: nothing is found, and
//! what is saved is lost.
//!
//! Kept so that a restart, or another process, goes on in the same session. Invariant:
//! a session's number grows with every login, so whoever was answered in an older one
//! knows that there is a newer; what is written of its cookies is sealed.

use crate::ids::ConnectionId;
use crate::owned::WEB;
use crate::sealing::Keys;
use crate::{Result, Tx};

/// Bytes of a session's cookies.
pub const COOKIES_BYTES_MAX: usize = 256 << 10;
/// Sessions that are sealed anew at a time; there are as many as connections that log in.
const SESSIONS_MAX: i64 = 10_000;

/// A connection's session, as it stands.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoredSession {
    /// A hash of how it was begun.
    pub login: String,
    /// How many logins there have been.
    pub number: i64,
    /// What the site knows us by.
    pub cookies: String,
    /// When it was begun.
    pub since_ms: i64,
    /// When and why a login failed, if that was the last thing that happened.
    pub failed: Option<(i64, String)>,
}

/// Without the cookies, which are secrets.
impl std::fmt::Debug for StoredSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StoredSession { number, since_ms, failed, .. } = self;
        f.debug_struct("Stored")
            .field("number", number)
            .field("since_ms", since_ms)
            .field("failed", failed)
            .finish_non_exhaustive()
    }
}

/// The session of a connection, if there has been any.
pub fn find(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<Option<StoredSession>> {
    if !WEB.is_there(tx)? {
        return Ok(None);
    }
    let keys = tx.keys();
    let found = tx.query_opt(
        "SELECT login, number, cookies, since_ms, failed_ms, failure FROM sessions
         WHERE connectionid = $1",
        &[connection.into()],
        |row| {
            let failure: Option<String> = row.get(5)?;
            Ok(StoredSession {
                login: row.get(0)?,
                number: row.get(1)?,
                cookies: keys.open(row.get(2)?)?,
                since_ms: row.get(3)?,
                failed: row.get::<Option<i64>>(4)?.zip(failure),
            })
        },
    );
    WEB.explained(found)
}

/// Takes a session over, unless there is a newer one.
pub fn save(tx: &mut Tx<'_>, connection: ConnectionId, it: &StoredSession) -> Result<()> {
    if !WEB.is_there(tx)? {
        return Ok(());
    }
    let cookies = tx.keys().seal(&it.cookies)?;
    let saved = tx.execute(
        "INSERT INTO sessions (connectionid, login, number, cookies, since_ms, failed_ms, failure)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (connectionid) DO UPDATE SET login = excluded.login,
             number = excluded.number, cookies = excluded.cookies, since_ms = excluded.since_ms,
             failed_ms = excluded.failed_ms, failure = excluded.failure
         WHERE sessions.number <= excluded.number",
        &[
            connection.into(),
            (&it.login).into(),
            it.number.into(),
            cookies.as_str().into(),
            it.since_ms.into(),
            it.failed.as_ref().map(|failed| failed.0).into(),
            it.failed.as_ref().map(|failed| failed.1.as_str()).into(),
        ],
    );
    WEB.explained(saved)?;
    Ok(())
}

/// Seals cookies anew. See [`super::connections::reseal`].
pub(super) fn reseal(tx: &mut Tx<'_>, old: &Keys) -> Result<u64> {
    if !WEB.is_there(tx)? {
        return Ok(0);
    }
    let keys = tx.keys();
    let found: Vec<(ConnectionId, String)> = tx.query(
        "SELECT connectionid, cookies FROM sessions ORDER BY connectionid LIMIT $1",
        &[SESSIONS_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut count = 0;
    for (connection, stored) in found {
        let Some(cookies) = keys.resealed(old, stored)? else { continue };
        count += tx.execute(
            "UPDATE sessions SET cookies = $2 WHERE connectionid = $1",
            &[connection.into(), cookies.as_str().into()],
        )?;
    }
    Ok(count)
}

/// The session of a connection that goes.
pub(super) fn forget(tx: &mut Tx<'_>, connection: ConnectionId) -> Result<()> {
    if WEB.is_there(tx)? {
        let gone = tx.execute("DELETE FROM sessions WHERE connectionid = $1", &[connection.into()]);
        WEB.explained(gone)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    #[test]
    fn a_newer_session_stays_whatever_an_older_one_says() {
        both_databases(|db| {
            let id = ConnectionId(4);
            let second = StoredSession {
                login: "how".into(),
                number: 2,
                cookies: "a=b".into(),
                since_ms: 7,
                failed: None,
            };
            let first = StoredSession { number: 1, cookies: "old".into(), ..second.clone() };
            let failed = StoredSession { failed: Some((9, "refused".into())), ..second.clone() };
            assert_eq!(db.read(move |tx| find(tx, id))?, None);
            for (saved, stays) in
                [(&first, &first), (&second, &second), (&first, &second), (&failed, &failed)]
            {
                let saved = saved.clone();
                db.write(move |tx| save(tx, id, &saved))?;
                assert_eq!(db.read(move |tx| find(tx, id))?.as_ref(), Some(stays));
            }
            assert!(!format!("{second:?}").contains("a=b"), "cookies are shown to nobody");
            let raw = |tx: &mut Tx<'_>| -> Result<Vec<String>> {
                tx.query("SELECT cookies FROM sessions", &[], |row| row.get(0))
            };
            let before = db.read(raw)?;
            assert!(before[0].starts_with("sealed:1:"), "{before:?}");
            let folder = tempfile::tempdir().expect("a folder");
            let other = Keys::kept_in(&folder.path().join("secrets.key"));
            let (renewed, old) = (db.clone().with_keys(other), db.keys().clone());
            assert_eq!(renewed.write(move |tx| reseal(tx, &old))?, 1);
            assert_ne!(db.read(raw)?, before);
            assert_eq!(renewed.read(move |tx| find(tx, id))?.as_ref(), Some(&failed));
            db.write(move |tx| forget(tx, id))?;
            assert_eq!(db.read(move |tx| find(tx, id))?, None);
            Ok(())
        });
    }
}
