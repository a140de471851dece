//! Which addresses a host's name led to when it was last asked for: the web
//! connector's own table, in the part of the host's domain.
//!
//! For people who ask where a crawl went. Invariant: nothing connects to a stored
//! address; a name is looked up anew before every connection, so that the guard sees
//! what it leads to at that moment.

use crate::ids::Part;
use crate::owned::WEB;
use crate::{Result, Tx};
use std::collections::BTreeMap;

/// Addresses kept of one host.
pub const ADDRESSES_MAX: usize = 16;
/// One that a host has not been found at for so long is forgotten.
const KEPT_MS: i64 = 30 * 86_400_000;
/// One that is known is noted again after so long.
const FRESH_MS: i64 = 3_600_000;

/// Notes at which addresses hosts were found.
pub fn note(
    tx: &mut Tx<'_>,
    part: Part,
    found: &BTreeMap<String, String>,
    now_ms: i64,
) -> Result<()> {
    if found.is_empty() || !WEB.is_there(tx)? {
        return Ok(());
    }
    for (host, address) in found {
        let noted = tx.execute(
            "INSERT INTO addresses (part, host, address, found_ms) VALUES ($1, $2, $3, $4)
             ON CONFLICT (part, host, address) DO UPDATE SET found_ms = excluded.found_ms
             WHERE addresses.found_ms < $5",
            &[part.into(), host.into(), address.into(), now_ms.into(), (now_ms - FRESH_MS).into()],
        );
        if WEB.explained(noted)? == 0 {
            continue;
        }
        // It is new, or has not been seen for a while: a good time to tidy up.
        let tidied = tx.execute(
            "DELETE FROM addresses WHERE part = $1 AND host = $2 AND (found_ms < $3
                 OR address NOT IN (SELECT address FROM addresses WHERE part = $1 AND host = $2
                                    ORDER BY found_ms DESC, address LIMIT $4))",
            &[part.into(), host.into(), (now_ms - KEPT_MS).into(), (ADDRESSES_MAX as i64).into()],
        );
        WEB.explained(tidied)?;
    }
    Ok(())
}

/// The addresses of a host, and when each was found.
pub fn of_host(tx: &mut Tx<'_>, part: Part, host: &str) -> Result<Vec<(String, i64)>> {
    if !WEB.is_there(tx)? {
        return Ok(Vec::new());
    }
    let found = tx.query(
        "SELECT address, found_ms FROM addresses WHERE part = $1 AND host = $2
         ORDER BY address LIMIT $3",
        &[part.into(), host.into(), (ADDRESSES_MAX as i64).into()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    );
    WEB.explained(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::registrations;
    use crate::testing::{self, both_databases};

    fn at(host: &str, address: &str) -> BTreeMap<String, String> {
        [(host.to_owned(), address.to_owned())].into()
    }

    #[test]
    fn a_hosts_addresses_are_those_it_was_found_at() {
        both_databases(|db| {
            db.write(|tx| registrations::register(tx, &testing::WEB, 1))?;
            let part = Part(3);
            let note = |address: String, now_ms| {
                db.write(move |tx| super::note(tx, part, &at("a.example", &address), now_ms))
            };
            let known = || db.read(move |tx| of_host(tx, part, "a.example"));
            note("192.0.2.1".into(), 10)?;
            note("192.0.2.1".into(), 20)?;
            note("192.0.2.2".into(), 30)?;
            let both = [("192.0.2.1".to_owned(), 10), ("192.0.2.2".to_owned(), 30)];
            assert_eq!(known()?, both, "one that was noted a moment ago is not written again");
            note("192.0.2.1".into(), FRESH_MS + 40)?;
            assert_eq!(known()?[0].1, FRESH_MS + 40);
            for number in 0..40 {
                note(format!("198.51.100.{number}"), FRESH_MS + 100 + number)?;
            }
            assert_eq!(known()?.len(), ADDRESSES_MAX);
            note("203.0.113.9".into(), 2 * KEPT_MS)?;
            assert_eq!(known()?, [("203.0.113.9".to_owned(), 2 * KEPT_MS)]);
            db.write(|tx| registrations::deregister(tx, &testing::WEB, 1))?;
            note("203.0.113.10".into(), 3 * KEPT_MS)?;
            assert_eq!(known()?, [], "without its connector there is no table");
            Ok(())
        });
    }
}
