//! Which addresses a host's name led to when it was last asked for: the web
//! connector's own table, in the part of the host's domain.
//!
//! For people who ask where a crawl went. Invariant: nothing connects to a stored
//! address; a name is looked up anew before every connection, so that the guard sees
//! what it leads to at that moment (T7).

use crate::ids::Part;
use crate::owned::WEB;
use crate::{Result, Tx};

/// Addresses kept of one host.
pub const ADDRESSES_MAX: usize = 16;

/// Writes which addresses a host's name leads to, instead of those known before. Of more
/// than [`ADDRESSES_MAX`] the first are kept.
pub fn replace(
    tx: &mut Tx<'_>,
    (part, host): (Part, &str),
    addresses: &[String],
    now_ms: i64,
) -> Result<()> {
    if !WEB.is_there(tx)? {
        return Ok(());
    }
    let removed = tx.execute(
        "DELETE FROM addresses WHERE part = $1 AND host = $2",
        &[part.into(), host.into()],
    );
    WEB.explained(removed)?;
    let rows: Vec<_> = addresses
        .iter()
        .take(ADDRESSES_MAX)
        .map(|address| vec![part.into(), host.into(), address.into(), now_ms.into()])
        .collect();
    let saved = tx.insert_rows(
        "INSERT INTO addresses (part, host, address, found_ms)",
        &rows,
        "ON CONFLICT (part, host, address) DO NOTHING",
    );
    WEB.explained(saved)?;
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

    #[test]
    fn a_hosts_addresses_are_those_it_was_last_found_at() {
        both_databases(|db| {
            let write = |addresses: &'static [&'static str], now_ms| {
                db.write(move |tx| {
                    let addresses: Vec<String> =
                        addresses.iter().map(|it| (*it).to_owned()).collect();
                    replace(tx, (Part(3), "a.example"), &addresses, now_ms)
                })
            };
            let found = || db.read(|tx| of_host(tx, Part(3), "a.example"));
            write(&["192.0.2.1", "2001:db8::1"], 5)?;
            write(&["192.0.2.2", "192.0.2.1", "192.0.2.2"], 7)?;
            assert_eq!(found()?, [("192.0.2.1".to_owned(), 7), ("192.0.2.2".to_owned(), 7)]);
            assert_eq!(db.read(|tx| of_host(tx, Part(3), "b.example"))?, []);
            db.write(|tx| registrations::deregister(tx, &testing::WEB, 8))?;
            write(&["192.0.2.1"], 9)?;
            assert_eq!(found()?, [], "without its connector nothing is kept");
            Ok(())
        });
    }
}
