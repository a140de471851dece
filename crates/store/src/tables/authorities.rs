//! Authorization domains (table 11.3) and authority groups (table 11.4).
//!
//! Both are a name and a description. A group ties repository connections to the
//! authorities that know who may see their documents; a domain is a realm of user names.
//! Invariant: neither goes while a connection refers to it.

use crate::ids::ConnectionId;
use crate::{Error, Result, Tx, Value};

/// Characters of a name, as table 11.4 has it.
pub const NAME_MAX: usize = 32;
/// Characters of a description, as table 11.4 has it.
pub const DESCRIPTION_MAX: usize = 255;
/// Connections that a refusal names.
const NAMED_MAX: u32 = 5;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Realm {
    Groups,
    Domains,
}

impl Realm {
    /// What one of them is called.
    pub fn word(self) -> &'static str {
        match self {
            Realm::Groups => "authority group",
            Realm::Domains => "authorization domain",
        }
    }

    /// Its table, the column of its name, and the column of connections that refers to it.
    fn columns(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Realm::Groups => ("authgroups", "groupname", "groupname"),
            Realm::Domains => ("authdomains", "domainname", "authdomainname"),
        }
    }
}

/// A group or a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NamedGroup {
    pub name: String,
    /// What people say of it.
    pub description: String,
}

impl NamedGroup {
    /// Refuses names and descriptions that cannot be kept.
    fn check(&self, realm: Realm) -> Result<()> {
        let word = realm.word();
        let odd = |text: &str| text.chars().any(char::is_control);
        if !(1..=NAME_MAX).contains(&self.name.chars().count()) || odd(&self.name) {
            return Err(Error::Refused(format!(
                "{:?} cannot be the name of an {word}: it has 1 to {NAME_MAX} characters, none \
                 of them control characters",
                self.name
            )));
        }
        if self.description.chars().count() > DESCRIPTION_MAX || odd(&self.description) {
            return Err(Error::Refused(format!(
                "the description of {word} {} is too long or has control characters; at most \
                 {DESCRIPTION_MAX} characters are kept",
                self.name
            )));
        }
        Ok(())
    }
}

/// Writes a group or domain, new or described anew. Returns whether it is new.
pub fn save(tx: &mut Tx<'_>, realm: Realm, it: &NamedGroup) -> Result<bool> {
    it.check(realm)?;
    let is_new = find(tx, realm, &it.name)?.is_none();
    let (table, column, _) = realm.columns();
    tx.execute(
        &format!(
            "INSERT INTO {table} ({column}, description) VALUES ($1, $2)
             ON CONFLICT ({column}) DO UPDATE SET description = excluded.description"
        ),
        &[(&it.name).into(), (&it.description).into()],
    )?;
    Ok(is_new)
}

/// A group or domain by its name.
pub fn find(tx: &mut Tx<'_>, realm: Realm, name: &str) -> Result<Option<NamedGroup>> {
    let (table, column, _) = realm.columns();
    tx.query_opt(
        &format!("SELECT {column}, description FROM {table} WHERE {column} = $1"),
        &[name.into()],
        |row| Ok(NamedGroup { name: row.get(0)?, description: row.get(1)? }),
    )
}

/// Groups or domains by name, after one.
pub fn list(tx: &mut Tx<'_>, realm: Realm, after: &str, limit: u32) -> Result<Vec<NamedGroup>> {
    let (table, column, _) = realm.columns();
    tx.query(
        &format!(
            "SELECT {column}, description FROM {table} WHERE {column} > $1
             ORDER BY {column} LIMIT $2"
        ),
        &[after.into(), Value::from(limit)],
        |row| Ok(NamedGroup { name: row.get(0)?, description: row.get(1)? }),
    )
}

/// Removes a group or domain that no connection refers to. Returns whether it was there.
pub fn delete(tx: &mut Tx<'_>, realm: Realm, name: &str) -> Result<bool> {
    let (table, column, reference) = realm.columns();
    let users: Vec<(ConnectionId, String, String)> = tx.query(
        &format!(
            "SELECT id, kind, connectionname FROM connections WHERE {reference} = $1
             ORDER BY kind, connectionname LIMIT $2"
        ),
        &[name.into(), NAMED_MAX.into()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    if !users.is_empty() {
        let users: Vec<String> =
            users.iter().map(|(_, kind, user)| format!("{kind} connection {user}")).collect();
        return Err(Error::Refused(format!(
            "{} {name} is in use by {}; change or delete these first",
            realm.word(),
            users.join(", ")
        )));
    }
    let removed =
        tx.execute(&format!("DELETE FROM {table} WHERE {column} = $1"), &[name.into()])?;
    Ok(removed == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::connections::{self, Connection, ConnectionKind};
    use crate::testing::both_databases;

    fn named(name: &str, description: &str) -> NamedGroup {
        NamedGroup { name: name.into(), description: description.into() }
    }

    #[test]
    fn groups_and_domains_are_kept_apart_and_described_anew() {
        both_databases(|db| {
            for realm in [Realm::Groups, Realm::Domains] {
                let save = |it: NamedGroup| db.write(move |tx| super::save(tx, realm, &it));
                assert!(save(named("b", "first"))?);
                assert!(save(named("a", ""))?);
                assert!(!save(named("b", "second"))?);
                let listed = db.read(move |tx| list(tx, realm, "", 9))?;
                assert_eq!(listed, [named("a", ""), named("b", "second")]);
                assert_eq!(db.read(move |tx| list(tx, realm, "a", 9))?.len(), 1);
                assert!(db.write(move |tx| delete(tx, realm, "a"))?);
                assert!(!db.write(move |tx| delete(tx, realm, "a"))?);
                assert_eq!(db.read(move |tx| find(tx, realm, "a"))?, None);
            }
            Ok(())
        });
    }

    #[test]
    fn the_chapters_limits_hold_in_characters() {
        both_databases(|db| {
            let save = |it: NamedGroup| db.write(move |tx| super::save(tx, Realm::Groups, &it));
            assert!(save(named(&"ü".repeat(NAME_MAX), &"ß".repeat(DESCRIPTION_MAX)))?);
            for bad in [
                named("", ""),
                named(&"a".repeat(NAME_MAX + 1), ""),
                named("a\nb", ""),
                named("a", &"a".repeat(DESCRIPTION_MAX + 1)),
            ] {
                assert!(matches!(save(bad), Err(Error::Refused(_))));
            }
            Ok(())
        });
    }

    #[test]
    fn what_a_connection_refers_to_stays_and_the_refusal_names_it() {
        both_databases(|db| {
            let web = Connection {
                groupname: Some("staff".into()),
                ..Connection::new(ConnectionId(1), "intranet", "web")
            };
            let saved = web.clone();
            let refused = db
                .write(move |tx| connections::save(tx, ConnectionKind::Repository, &saved, 1))
                .unwrap_err();
            assert!(refused.to_string().contains("staff"), "{refused}");
            db.write(move |tx| {
                save(tx, Realm::Groups, &named("staff", ""))?;
                connections::save(tx, ConnectionKind::Repository, &web, 1)
            })?;
            let refused = db.write(|tx| delete(tx, Realm::Groups, "staff")).unwrap_err();
            assert!(refused.to_string().contains("repository connection intranet"), "{refused}");
            Ok(())
        });
    }
}
