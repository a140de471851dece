//! Compares claims on URIs with what outputs were told of documents.
//!
//! While decisions are being delivered the two may differ for what is pending, and for
//! nothing else. What was delivered before there were claims has none until it is looked at
//! again, and is left out.

use super::{PAGE, VerifyReport};
use crate::ids::{ConnectionId, Part};
use crate::tables::claims::{self, Claim, Homes, ListedClaim};
use crate::tables::ingests::{self, Ingest, Ownership};
use crate::{Db, Result, Tx};
use page::ids::DocHash;

const SEND_AGAIN: &str = "let everything be sent to the output again (`driftline connection \
     reindex`), and run the jobs that use it";

/// An output, and the hash of a URI.
type UriKey = (ConnectionId, Vec<u8>);
/// A difference: what, and what is wrong with it.
type Difference = (String, &'static str);

/// Checks the claims that lie in a part, and those of its documents.
pub(super) fn check(db: &Db, part: Part, report: &mut VerifyReport) -> Result<()> {
    let mut at = (ConnectionId(i64::MIN), Vec::new());
    loop {
        let from = at.clone();
        let (next, found) = db.read(move |tx| check_claims(tx, part, &from))?;
        found.into_iter().for_each(|(what, problem)| report.find(what, problem, SEND_AGAIN));
        let Some(next) = next else { break };
        at = next;
    }
    let mut at = i64::MIN;
    loop {
        let (next, found) = db.read(move |tx| check_documents(tx, part, at))?;
        found.into_iter().for_each(|(what, problem)| report.find(what, problem, SEND_AGAIN));
        let Some(next) = next else { return Ok(()) };
        at = next;
    }
}

/// Every claim is one of a document that wants the URI, and its owner has been delivered.
fn check_claims(
    tx: &mut Tx<'_>,
    part: Part,
    after: &UriKey,
) -> Result<(Option<UriKey>, Vec<Difference>)> {
    let mut page = claims::after(tx, part, after.0, &after.1, PAGE)?;
    let is_last = page.len() < PAGE as usize;
    let key = |it: &ListedClaim| (it.output, it.claim.uri_hash.clone());
    if let Some(last) = page.last().map(key).filter(|_| !is_last) {
        // The rest of its claims may be on the next page.
        let whole = page.iter().take_while(|it| key(it) != last).count();
        if whole > 0 {
            page.truncate(whole);
        }
    }
    let mut found = Vec::new();
    for group in page.chunk_by(|one, other| key(one) == key(other)) {
        let claims: Vec<Claim> = group.iter().map(|it| it.claim.clone()).collect();
        let owner = claims::owner(&claims).map(|it| it.by);
        for ListedClaim { output, claim } in group {
            let row = row_of(tx, *output, claim)?;
            let what = || {
                let document = claim.by.dochash.to_hex();
                let uri = row.as_ref().and_then(|it| it.uri.clone()).unwrap_or_default();
                format!("the claim of document {document} on a URI of output {output} {uri}")
            };
            match &row {
                Some(row) if row.pending.is_some() => {}
                Some(row)
                    if row.uri_hash.as_ref() == Some(&claim.uri_hash)
                        && claim.ordinal > claims::LEAVING =>
                {
                    if owner == Some(claim.by) && row.ownership != Some(Ownership::Owned) {
                        found.push((what(), "it owns the URI, and the output was not told of it"));
                    }
                }
                _ => found.push((what(), "the document is not to be kept under it")),
            }
        }
    }
    Ok((page.last().map(key).filter(|_| !is_last), found))
}

fn row_of(tx: &mut Tx<'_>, output: ConnectionId, claim: &Claim) -> Result<Option<Ingest>> {
    let by = claim.by;
    let rows = ingests::look_up(tx, by.part, output, by.connection, by.dochash)?;
    Ok(rows.into_iter().find(|row| row.component.is_empty()))
}

/// Every document that an output was told of claims its URI.
fn check_documents(
    tx: &mut Tx<'_>,
    part: Part,
    after: i64,
) -> Result<(Option<i64>, Vec<Difference>)> {
    let page = ingests::kept_after(tx, part, after, PAGE)?;
    let homes = if page.is_empty() { None } else { Some(Homes::load(tx)?) };
    let mut found = Vec::new();
    for (output, row) in &page {
        let (Some(uri), Some(homes)) = (&row.uri, &homes) else { continue };
        let hash = DocHash::of(uri).0.to_vec();
        let claims = claims::load(tx, homes.of(uri), *output, &[hash])?;
        let is_claimed = claims.iter().any(|it| {
            (it.by.connection, it.by.dochash, it.by.part) == (row.connection, row.dochash, part)
        });
        if !is_claimed {
            found.push((format!("{uri} of output {output}"), "its document does not claim it"));
        }
    }
    Ok((page.last().map(|it| it.1.id), found))
}
