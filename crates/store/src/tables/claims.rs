//! Claims of documents on the URIs under which outputs keep them.
//!
//! The claims on a URI lie in one part, its home, whatever parts the documents of the
//! claimants lie in. They are written and dropped by whoever delivers for the part of the
//! claimant, under that lease. Invariant: of all who claim a URI exactly one owns it, and
//! everybody who reads the same claims names the same owner.

use crate::ids::{ConnectionId, Part};
use crate::tables::settings;
use crate::value::Row;
use crate::{Result, Tx, Value};
use page::domain::SuffixList;
use page::ids::{DocHash, part_of};
use page::url::host_of;
use std::sync::Arc;

/// Where the claims on URIs lie.
#[derive(Clone)]
pub struct Homes {
    suffixes: Arc<SuffixList>,
    parts: u32,
}

impl Homes {
    /// Those of a database.
    pub fn load(tx: &mut Tx<'_>) -> Result<Homes> {
        Ok(Homes { suffixes: settings::suffix_list(tx)?, parts: settings::parts(tx)? })
    }

    /// The part in which the claims on a URI lie. URIs of a registered domain or of a
    /// directory lie together, and mostly where their documents do, so that a batch of
    /// documents reaches few parts.
    pub fn of(&self, uri: &str) -> Part {
        let host = host_of(uri);
        let group = if host.is_empty() {
            let (_, name) = uri.split_once(':').unwrap_or(("", uri));
            let name = name.strip_prefix("//").unwrap_or(name);
            name.rsplit_once('/').map_or(name, |(directory, _)| directory)
        } else {
            self.suffixes.grouping_domain(host)
        };
        Part(part_of(Some(group), uri, self.parts).into())
    }
}

/// A document that claims a URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct ClaimingDocument {
    pub connection: ConnectionId,
    pub dochash: DocHash,
    /// The part of the document.
    pub part: Part,
}

/// The ordinal of a claim whose document is leaving the URI: it owns nothing, and stays
/// until all that follows from it is done.
pub const LEAVING: i64 = 0;

/// A claim on a URI of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Claim {
    pub uri_hash: Vec<u8>,
    pub by: ClaimingDocument,
    /// Grows with each claim on the URI, or is [`LEAVING`]. Two that are made at the same
    /// time may have the same.
    pub ordinal: i64,
}

impl Claim {
    fn from_row(row: &Row<'_>) -> Result<Claim> {
        let by =
            ClaimingDocument { connection: row.get(1)?, dochash: row.get(2)?, part: row.get(3)? };
        Ok(Claim { uri_hash: row.get(0)?, by, ordinal: row.get(4)? })
    }
}

/// The owner among those who claim one URI: the last of them.
pub fn owner(claims: &[Claim]) -> Option<&Claim> {
    claims.iter().filter(|it| it.ordinal > LEAVING).max_by_key(|it| (it.ordinal, it.by))
}

/// The claims on URIs, by their hashes, that lie in a part.
pub fn load(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    uri_hashes: &[Vec<u8>],
) -> Result<Vec<Claim>> {
    let keys: Vec<Value<'_>> = uri_hashes.iter().map(Value::from).collect();
    tx.query_in(
        "SELECT urihash, connectionid, dochash, docpart, ordinal FROM claims
         WHERE part = $1 AND outputid = $2 AND urihash IN ($keys)",
        &[part.into(), output.into()],
        &keys,
        Claim::from_row,
    )
}

/// Writes claims, or changes their ordinals.
pub fn save(tx: &mut Tx<'_>, part: Part, output: ConnectionId, claims: &[Claim]) -> Result<()> {
    let rows: Vec<Vec<Value<'_>>> = claims
        .iter()
        .map(|it| {
            vec![
                part.into(),
                output.into(),
                (&it.uri_hash).into(),
                it.by.connection.into(),
                (&it.by.dochash).into(),
                it.by.part.into(),
                it.ordinal.into(),
            ]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO claims (part, outputid, urihash, connectionid, dochash, docpart, ordinal)",
        &rows,
        "ON CONFLICT (part, outputid, urihash, connectionid, dochash) DO UPDATE
         SET ordinal = excluded.ordinal",
    )?;
    Ok(())
}

/// Drops claims of documents on URIs.
pub fn remove(
    tx: &mut Tx<'_>,
    part: Part,
    output: ConnectionId,
    claims: &[(Vec<u8>, ClaimingDocument)],
) -> Result<()> {
    for (uri_hash, by) in claims {
        tx.execute(
            "DELETE FROM claims WHERE part = $1 AND outputid = $2 AND urihash = $3
               AND connectionid = $4 AND dochash = $5",
            &[
                part.into(),
                output.into(),
                uri_hash.into(),
                by.connection.into(),
                (&by.dochash).into(),
            ],
        )?;
    }
    Ok(())
}

/// Forgets claims on URIs of an output that lie in a part. Returns how many went.
pub fn forget(tx: &mut Tx<'_>, part: Part, output: ConnectionId, limit: u32) -> Result<u64> {
    tx.execute(
        "DELETE FROM claims WHERE part = $1 AND outputid = $2 AND urihash IN (
             SELECT urihash FROM claims WHERE part = $1 AND outputid = $2
             ORDER BY urihash LIMIT $3)",
        &[part.into(), output.into(), limit.into()],
    )
}

/// A claim with the output that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ListedClaim {
    pub output: ConnectionId,
    pub claim: Claim,
}

/// The claims that lie in a part, in the order of their URIs, after a key.
pub fn after(
    tx: &mut Tx<'_>,
    part: Part,
    after_output: ConnectionId,
    after_hash: &[u8],
    limit: u32,
) -> Result<Vec<ListedClaim>> {
    tx.query(
        "SELECT urihash, connectionid, dochash, docpart, ordinal, outputid FROM claims
         WHERE part = $1 AND (outputid, urihash) > ($2, $3)
         ORDER BY outputid, urihash, connectionid, dochash LIMIT $4",
        &[part.into(), after_output.into(), after_hash.into(), limit.into()],
        |row| Ok(ListedClaim { output: row.get(5)?, claim: Claim::from_row(row)? }),
    )
}

#[cfg(test)]
mod tests;
