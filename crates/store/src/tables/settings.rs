//! What was fixed when the database was made: the number of parts and the public
//! suffix list. An upgrade must move no document, so both are frozen here.

use crate::checksums::coverage::SETTINGS;
use crate::{Error, Result, Tx, Value};
use page::domain::SuffixList;
use std::sync::Arc;

/// Parts of a database unless its maker says otherwise: enough for a laptop's few
/// cores and a first handful of machines.
pub const PARTS_DEFAULT: u32 = 16;
/// Parts a database may have.
pub const PARTS_MAX: u32 = 4_096;

const PARTS: &str = "parts";
/// A random name, so that records of two databases are never called the same.
const INSTALLATION: &str = "installation";
/// The newest event of the audit log.
const AUDIT_HEAD: &str = "audit head";
const SUFFIX_LIST: &str = "public suffix list";
/// Which connectors the database has met.
const CONNECTORS: &str = "connectors";
/// What archives have brought into the link index.
const LOADED: &str = "loaded archives";
/// Which lost links the link index keeps.
const LOST_LINKS: &str = "lost links";
/// There while a copy into this database is not whole.
const COPYING: &str = "copying";
pub(crate) const TABLE: &str = "settings";

/// Refuses a number of parts that makes no sense, before anything is made.
pub fn check_parts(parts: u32) -> Result<()> {
    if (1..=PARTS_MAX).contains(&parts) {
        return Ok(());
    }
    Err(Error::Refused(format!("a database can have 1 to {PARTS_MAX} parts, not {parts}")))
}

/// Freezes the settings of a new database; an old one keeps what it has.
/// Returns the number of parts in force.
pub fn freeze(tx: &mut Tx<'_>, parts: u32) -> Result<u32> {
    check_parts(parts)?;
    put_new(tx, PARTS, &parts.to_string())?;
    put_new(tx, SUFFIX_LIST, page::domain::BUNDLED_TEXT)?;
    put_new(tx, INSTALLATION, &random_name()?)?;
    self::parts(tx)
}

/// The random name of this database.
pub fn installation(tx: &mut Tx<'_>) -> Result<[u8; 16]> {
    let text = required(tx, INSTALLATION)?;
    let bytes = u128::from_str_radix(&text, 16)
        .map_err(|_| Error::corrupt("the setting \"installation\"", "it is not 128 bits in hex"))?;
    Ok(bytes.to_be_bytes())
}

fn random_name() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Refused(format!("the system gives no random bytes: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// The number of parts, fixed for the life of the database.
pub fn parts(tx: &mut Tx<'_>) -> Result<u32> {
    let text = required(tx, PARTS)?;
    text.parse().map_err(|_| Error::Corrupt {
        what: "the setting \"parts\"".into(),
        reason: format!("it is {text:?}, not a number"),
    })
}

/// The public suffix list that this database's parts are computed by.
pub fn suffix_list(tx: &mut Tx<'_>) -> Result<Arc<SuffixList>> {
    if let Some(list) = tx.own().suffixes.get() {
        return Ok(list.clone());
    }
    let text = required(tx, SUFFIX_LIST)?;
    let list = SuffixList::parse(text.as_bytes()).map_err(|error| Error::Corrupt {
        what: "the frozen public suffix list".into(),
        reason: error.to_string(),
    })?;
    Ok(tx.own().suffixes.get_or_init(|| Arc::new(list)).clone())
}

/// The connectors that this database has met, registered or not.
pub fn connectors(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let found = find(tx, CONNECTORS)?;
    let words = found.iter().flat_map(|value| value.split_whitespace());
    Ok(words.map(str::to_owned).collect())
}

/// As [`connectors`], and nobody else changes them before this transaction ends.
pub fn lock_connectors(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    // The list itself may not be there yet; the number of parts always is.
    tx.query_opt(
        "SELECT value FROM settings WHERE name = $1 /*for update*/",
        &[PARTS.into()],
        |_| Ok(()),
    )?;
    connectors(tx)
}

/// Remembers which connectors this database has met. A name has no white space.
pub fn set_connectors(tx: &mut Tx<'_>, names: &[String]) -> Result<()> {
    put(tx, CONNECTORS, &names.join(" "))
}

/// The newest event of the audit log's chain, as text.
pub fn audit_head(tx: &mut Tx<'_>) -> Result<Option<String>> {
    find(tx, AUDIT_HEAD)
}

/// Keeps everybody else from adding an event until this transaction ends.
pub fn lock_audit_head(tx: &mut Tx<'_>) -> Result<()> {
    // The head itself may not be there yet; the number of parts always is. Changes that are
    // written down are few, so that one lock for all of them is no bottleneck.
    let text = "SELECT value FROM settings WHERE name = $1 /*for update*/";
    tx.query_opt(text, &[PARTS.into()], |_| Ok(()))?;
    Ok(())
}

/// Notes the newest event.
pub fn set_audit_head(tx: &mut Tx<'_>, head: &str) -> Result<()> {
    put(tx, AUDIT_HEAD, head)
}

/// What archives have brought into the link index, over all loads.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct LoadedArchives {
    /// Files that were loaded to their end.
    pub files: u64,
    /// Captures of pages that were read.
    pub pages: u64,
    /// Links of those pages.
    pub links: u64,
    /// When something was last loaded.
    pub last_ms: i64,
}

/// What archives have brought into the link index, if anything.
pub fn loaded_archives(tx: &mut Tx<'_>) -> Result<Option<LoadedArchives>> {
    let found = find(tx, LOADED)?;
    let read = |text: String| {
        serde_json::from_str(&text)
            .map_err(|error| Error::corrupt("the setting \"loaded archives\"", error.to_string()))
    };
    found.map(read).transpose()
}

/// Adds what a load has brought.
pub fn add_loaded_archives(tx: &mut Tx<'_>, more: &LoadedArchives) -> Result<()> {
    tx.query_opt(
        "SELECT value FROM settings WHERE name = $1 /*for update*/",
        &[LOADED.into()],
        |_| Ok(()),
    )?;
    let before = loaded_archives(tx)?.unwrap_or_default();
    let all = LoadedArchives {
        files: before.files + more.files,
        pages: before.pages + more.pages,
        links: before.links + more.links,
        last_ms: before.last_ms.max(more.last_ms),
    };
    let text = serde_json::to_string(&all)
        .map_err(|error| Error::Statement { reason: error.to_string() })?;
    put(tx, LOADED, &text)
}

/// Which lost links the link index keeps: of one target, the latest ones.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct LostLinks {
    /// For how many days; 0 is for ever.
    pub days: u32,
    /// How many of one target; 0 is all of them.
    pub per_target: u32,
}

/// As long as history, unless somebody says otherwise.
pub const LOST_LINKS_DAYS: u32 = 90;
/// More than anybody reads; a target that a whole site stopped linking to has as many.
pub const LOST_LINKS_PER_TARGET: u32 = 1_000;

impl Default for LostLinks {
    fn default() -> LostLinks {
        LostLinks { days: LOST_LINKS_DAYS, per_target: LOST_LINKS_PER_TARGET }
    }
}

/// Which lost links the link index keeps.
pub fn lost_links(tx: &mut Tx<'_>) -> Result<LostLinks> {
    let found = find(tx, LOST_LINKS)?;
    let read = |text: String| {
        serde_json::from_str(&text)
            .map_err(|error| Error::corrupt("the setting \"lost links\"", error.to_string()))
    };
    Ok(found.map(read).transpose()?.unwrap_or_default())
}

/// Sets which lost links the link index keeps.
pub fn set_lost_links(tx: &mut Tx<'_>, kept: LostLinks) -> Result<()> {
    let text = serde_json::to_string(&kept)
        .map_err(|error| Error::Statement { reason: error.to_string() })?;
    put(tx, LOST_LINKS, &text)
}

/// The mark of the copy that is filling this database, or was when it was cut off.
pub fn copying(tx: &mut Tx<'_>) -> Result<Option<String>> {
    tx.query_opt("SELECT value FROM settings WHERE name = $1", &[COPYING.into()], |row| row.get(0))
}

/// As [`copying`], and nobody changes the mark before this transaction ends.
pub(crate) fn lock_copying(tx: &mut Tx<'_>) -> Result<Option<String>> {
    tx.query_opt(
        "SELECT value FROM settings WHERE name = $1 /*for update*/",
        &[COPYING.into()],
        |row| row.get(0),
    )
}

/// Says that a copy is filling this database. There must be no such mark yet.
pub(crate) fn set_copying(tx: &mut Tx<'_>, mark: &str) -> Result<()> {
    tx.execute(
        "INSERT INTO settings (name, value, checksum) VALUES ($1, $2, $3)",
        &row(COPYING, mark),
    )?;
    Ok(())
}

/// Says that the copy is whole.
pub(crate) fn clear_copying(tx: &mut Tx<'_>) -> Result<()> {
    tx.execute("DELETE FROM settings WHERE name = $1", &[COPYING.into()])?;
    Ok(())
}

/// Forgets all settings, for a copy that starts over.
pub(crate) fn clear(tx: &mut Tx<'_>) -> Result<()> {
    tx.execute("DELETE FROM settings", &[])?;
    Ok(())
}

fn put_new(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<u64> {
    tx.execute(
        "INSERT INTO settings (name, value, checksum) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO NOTHING",
        &row(name, value),
    )
}

fn put(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<()> {
    tx.execute(
        "INSERT INTO settings (name, value, checksum) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value, checksum = excluded.checksum",
        &row(name, value),
    )?;
    Ok(())
}

/// The values of a setting's row, its checksum behind them.
fn row<'a>(name: &'a str, value: &'a str) -> Vec<Value<'a>> {
    SETTINGS.places(SETTINGS.covered).with_checksum(vec![name.into(), value.into()])
}

/// The value of a setting, if there is one. One that is damaged is refused: another number of
/// parts, or another list of suffixes, would lose documents.
fn find(tx: &mut Tx<'_>, name: &str) -> Result<Option<String>> {
    let places = SETTINGS.places("name, value, checksum");
    let found = tx.query_opt(
        "SELECT name, value, checksum FROM settings WHERE name = $1",
        &[name.into()],
        |row| if places.is_whole(row)? { row.get(1).map(Some) } else { Ok(None) },
    )?;
    match found {
        Some(None) => Err(SETTINGS.damaged(&format!("with name {name:?}"))),
        found => Ok(found.flatten()),
    }
}

fn required(tx: &mut Tx<'_>, name: &str) -> Result<String> {
    find(tx, name)?.ok_or_else(|| {
        Error::Refused(format!("this database has no setting {name:?}; run `driftline init` first"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    #[test]
    fn loads_are_added_up() {
        both_databases(|db| {
            assert_eq!(db.read(loaded_archives)?, None);
            for last_ms in [7, 5] {
                let more = LoadedArchives { files: 1, pages: 10, links: 100, last_ms };
                db.write(move |tx| add_loaded_archives(tx, &more))?;
            }
            let all = LoadedArchives { files: 2, pages: 20, links: 200, last_ms: 7 };
            assert_eq!(db.read(loaded_archives)?, Some(all));
            Ok(())
        });
    }

    #[test]
    fn which_lost_links_are_kept_can_be_set() {
        both_databases(|db| {
            assert_eq!(db.read(lost_links)?, LostLinks { days: 90, per_target: 1_000 });
            for days in [7, 30] {
                db.write(move |tx| set_lost_links(tx, LostLinks { days, per_target: 2 }))?;
                assert_eq!(db.read(lost_links)?, LostLinks { days, per_target: 2 });
            }
            Ok(())
        });
    }

    #[test]
    fn what_is_frozen_stays() {
        both_databases(|db| {
            assert!(db.read(parts).is_err(), "a new database has no parts yet");
            assert_eq!(db.write(|tx| freeze(tx, 8))?, 8);
            assert_eq!(db.write(|tx| freeze(tx, 99))?, 8);
            let list = db.read(suffix_list)?;
            assert_eq!(list.registered_domain("www.example.co.uk"), Some("example.co.uk"));
            Ok(())
        });
    }

    #[test]
    fn the_connectors_that_were_met_are_remembered() {
        both_databases(|db| {
            db.write(|tx| freeze(tx, 8))?;
            assert!(db.write(lock_connectors)?.is_empty());
            let names = ["output/null".to_owned(), "repository/web".to_owned()];
            for count in 1..=2 {
                let names = names[..count].to_vec();
                db.write(move |tx| set_connectors(tx, &names))?;
            }
            assert_eq!(db.read(connectors)?, names);
            Ok(())
        });
    }

    #[test]
    fn a_senseless_number_of_parts_is_refused() {
        both_databases(|db| {
            for parts in [0, PARTS_MAX + 1] {
                assert!(db.write(move |tx| freeze(tx, parts)).is_err());
            }
            Ok(())
        });
    }
}
