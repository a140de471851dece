//! The sql connector: rows of a SQLite or PostgreSQL database, by two queries of the
//! user's own.
//!
//! One query lists ids, the other finds the row of an id. Every run names all ids, so what
//! is not named any more leaves. Invariants: the database is only read; whatever is stored
//! as a configuration or a specification has passed its check.

mod work;

use super::{read, written};
use crate::repository::Repository;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::catalog::{ConfigField, Connector, Searchable, SettingKind};
use store::foreign::{Address, Foreign, QUERY_BYTES_MAX};
use store::tables::connections::ConnectionKind;

/// Stands for the id in the address of a row.
const ID: &str = "{id}";

/// A sql connection's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqlConfig {
    /// The absolute path of a SQLite file, or what leads to PostgreSQL.
    pub database: String,
    /// password for PostgreSQL, if it requires one.
    pub password: Option<String>,
}

impl SqlConfig {
    fn address(&self) -> Result<Address, String> {
        let address = Address::parse(&self.database, self.password.as_deref());
        address.map_err(|error| error.to_string())
    }

    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(self) -> Result<SqlConfig, String> {
        self.address()?;
        Ok(self)
    }
}

/// A sql job's document specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqlSpec {
    /// The query whose first column has the ids.
    pub ids: String,
    /// The query that finds the row of the id `$1`.
    pub document: String,
    /// Where outputs keep a row, with `{id}` for its id.
    pub url: String,
    /// Whether its documents can be searched.
    #[serde(skip_serializing_if = "Searchable::is_usual")]
    pub search: Searchable,
}

impl SqlSpec {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(self) -> Result<SqlSpec, String> {
        for (name, query) in [("ids", &self.ids), ("document", &self.document)] {
            if query.trim().is_empty() {
                return Err(format!("{name}: a job needs this query"));
            }
            if query.len() > QUERY_BYTES_MAX || query.contains('\0') {
                return Err(format!(
                    "{name}: a query has at most {QUERY_BYTES_MAX} bytes and no NUL"
                ));
            }
        }
        if !self.url.is_empty() {
            let example = url::Url::parse(&self.url.replace(ID, "1"));
            if !self.url.contains(ID) || example.is_err() {
                return Err(format!(
                    "url: {:?} is no URL with {ID} in it, as https://shop.example/item/{ID} is",
                    self.url
                ));
            }
        }
        Ok(self)
    }
}

/// A repository of a connection's configuration and a job's specification.
pub fn repository(config: &str, docspec: &str) -> Result<Arc<dyn Repository>, String> {
    let (config, spec): (SqlConfig, SqlSpec) = (read(config)?, read(docspec)?);
    let theirs = Foreign::new(config.address()?);
    Ok(Arc::new(work::SqlRepository::new(theirs, spec.check()?)))
}

/// Opens a connection's database.
pub fn open(config: &str) -> Result<(), String> {
    let theirs = Foreign::new(read::<SqlConfig>(config)?.address()?);
    theirs.check().map_err(|error| error.to_string())
}

/// What the program knows of this connector.
pub const CONNECTOR: Connector = Connector {
    kind: ConnectionKind::Repository,
    name: "sql",
    about: "rows of a SQLite or PostgreSQL database",
    settings: &[
        ConfigField {
            name: "database",
            about: "the absolute path of a SQLite file, or a PostgreSQL URL or connection string",
            example: "postgres://reader@db.example/shop",
            default: None,
            kind: SettingKind::Text,
        },
        ConfigField {
            name: "password",
            about: "password for PostgreSQL, if it requires one",
            example: "secret",
            default: None,
            kind: SettingKind::Secret,
        },
    ],
    not_destination: &[],
    spec: &[
        ConfigField {
            name: "ids",
            about: "a query that returns the ids of all documents in its first column",
            example: "select id from products",
            default: None,
            kind: SettingKind::Text,
        },
        ConfigField {
            name: "document",
            about: "a query that returns the row with the id $1; the columns version, title, \
                 content, media_type and url have a fixed meaning, others become fields",
            example: "select changed as version, name as title, body as content from products where id = $1",
            default: None,
            kind: SettingKind::Text,
        },
        ConfigField {
            name: "url",
            about: "URL of a document in outputs, with {id} for its id",
            example: "https://shop.example/item/{id}",
            default: Some(""),
            kind: SettingKind::Text,
        },
        Searchable::SETTING,
    ],
    link_types: &[],
    takes_bodies: false,
    takes_requisites: false,
    check_config: |text| written(&read::<SqlConfig>(text)?.check()?),
    check_spec: |text| written(&read::<SqlSpec>(text)?.check()?),
    check_job: None,
    install: None,
    deinstall: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_names_its_field() {
        let full = |it: &str| format!(r#"{{"ids": "select 1", "document": "select $1", {it}}}"#);
        for (text, field) in [
            ("{}".to_owned(), "ids"),
            (r#"{"ids": "select 1", "document": " "}"#.to_owned(), "document"),
            (full(r#""url": "https://shop.example/""#), "{id}"),
            (full(r#""url": "shop/{id}""#), "url"),
            (full(r#""page": 1"#), "page"),
        ] {
            let refused = (CONNECTOR.check_spec)(&text).unwrap_err();
            assert!(refused.contains(field), "{text}: {refused}");
        }
        for (text, field) in [
            ("{}", "database"),
            (r#"{"database": "shop.db"}"#, "shop.db"),
            (r#"{"database": "postgres://me:hush@a.example/b"}"#, "password="),
            (r#"{"database": "/shop.db", "passwort": "x"}"#, "passwort"),
        ] {
            let refused = (CONNECTOR.check_config)(text).unwrap_err();
            assert!(refused.contains(field) && !refused.contains("hush"), "{text}: {refused}");
        }
    }
}
