//! Where a document leads, as the parts of its targets were told.
//!
//! One row for each document, so that a page's hundred links cost one row in its own part.
//! Invariant: what stands here has been told, or is told again after a crash.

use super::Graphs;
use crate::ids::Part;
use crate::{Error, Result, Tx, Value};
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where a document leads, by kind of link.
pub type Leads = BTreeMap<String, BTreeSet<(DocHash, Part)>>;

/// Bytes of a target's key.
const KEY_BYTES: usize = 16;

/// What its targets know of where a document leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentState {
    /// All have heard of it.
    Sent,
    /// All have heard of it, and keep the links.
    Kept,
    /// They are being told; if that is interrupted, nobody knows who has heard what.
    Sending,
}

impl SentState {
    const ALL: [SentState; 3] = [SentState::Sent, SentState::Kept, SentState::Sending];

    /// What is known when all have been told.
    pub fn when_sent(graphs: Graphs<'_>) -> SentState {
        if graphs.keeps_links { SentState::Kept } else { SentState::Sent }
    }

    fn name(self) -> &'static str {
        match self {
            SentState::Sent => "told",
            SentState::Kept => "kept",
            SentState::Sending => "telling",
        }
    }
}

/// Where documents lead, each with what its targets know. Of those that lead nowhere, as
/// far as anybody knows, nothing.
pub fn leads(
    tx: &mut Tx<'_>,
    graphs: Graphs<'_>,
    keys: &[DocHash],
) -> Result<HashMap<DocHash, (Leads, SentState)>> {
    let place = graphs.place;
    let keys: Vec<Value<'_>> = keys.iter().map(Into::into).collect();
    let rows = tx.query_in(
        "SELECT dochash, targets, known FROM outlinks WHERE part = $1 AND jobid = $2
           AND dochash IN ($keys)",
        &[place.part.into(), place.job.into()],
        &keys,
        |row| Ok((row.get::<DocHash>(0)?, row.get::<Vec<u8>>(1)?, row.get::<String>(2)?)),
    )?;
    rows.into_iter()
        .map(|(dochash, bytes, known)| {
            let leads = decode(&bytes);
            let known = SentState::ALL.into_iter().find(|it| it.name() == known);
            match leads.zip(known) {
                Some(found) => Ok((dochash, found)),
                None => Err(Error::corrupt("outlinks of", dochash.to_hex())),
            }
        })
        .collect()
}

/// Writes where documents lead.
pub fn save_leads(
    tx: &mut Tx<'_>,
    graphs: Graphs<'_>,
    leads: &[(DocHash, Leads)],
    known: SentState,
) -> Result<()> {
    let place = graphs.place;
    let (some, none): (Vec<_>, Vec<_>) =
        leads.iter().partition(|(_, leads)| leads.values().any(|it| !it.is_empty()));
    let encoded: Vec<(DocHash, Vec<u8>)> =
        some.into_iter().map(|(dochash, leads)| (*dochash, encode(leads))).collect();
    let rows: Vec<Vec<Value<'_>>> = encoded
        .iter()
        .map(|(dochash, bytes)| {
            let bytes: &[u8] = bytes;
            let known = known.name().into();
            vec![place.part.into(), place.job.into(), dochash.into(), bytes.into(), known]
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO outlinks (part, jobid, dochash, targets, known)",
        &rows,
        "ON CONFLICT (part, jobid, dochash)
         DO UPDATE SET targets = excluded.targets, known = excluded.known",
    )?;
    for (dochash, _) in none {
        tx.execute(
            "DELETE FROM outlinks WHERE part = $1 AND jobid = $2 AND dochash = $3",
            &[place.part.into(), place.job.into(), dochash.into()],
        )?;
    }
    Ok(())
}

/// For each kind and part: the bytes of the kind's name and their number, the part, how many
/// targets, and their keys. Most of a page's links lead to few parts.
fn encode(leads: &Leads) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, targets) in leads {
        let name = &kind.as_bytes()[..kind.len().min(usize::from(u8::MAX))];
        let mut parts: BTreeMap<Part, Vec<&DocHash>> = BTreeMap::new();
        for (dochash, part) in targets {
            parts.entry(*part).or_default().push(dochash);
        }
        for (part, keys) in parts {
            out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            out.extend(name);
            out.extend(u32::try_from(part.0).unwrap_or(u32::MAX).to_le_bytes());
            out.extend(u32::try_from(keys.len()).unwrap_or(u32::MAX).to_le_bytes());
            keys.iter().for_each(|key| out.extend(key.0));
        }
    }
    out
}

fn decode(mut bytes: &[u8]) -> Option<Leads> {
    let mut leads = Leads::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (part, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let part = Part(u32::from_le_bytes(*part).into());
        let size = usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(KEY_BYTES)?;
        let (keys, rest) = rest.split_at_checked(size)?;
        let targets = leads.entry(String::from_utf8(name.to_vec()).ok()?).or_default();
        let keys = keys.as_chunks::<KEY_BYTES>().0.iter();
        targets.extend(keys.map(|key| (DocHash(*key), part)));
        bytes = rest;
    }
    Some(leads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn leads_come_back_and_damage_is_found(
            leads in prop::collection::btree_map(
                "[a-z]{1,9}",
                prop::collection::btree_set((any::<[u8; 16]>(), 0u16..), 1..9),
                0..4,
            ),
            cut in any::<prop::sample::Index>(),
        ) {
            let leads: Leads = leads
                .into_iter()
                .map(|(kind, targets)| {
                    let targets = targets.into_iter();
                    (kind, targets.map(|(key, part)| (DocHash(key), Part(part.into()))).collect())
                })
                .collect();
            let bytes = encode(&leads);
            prop_assert_eq!(decode(&bytes), Some(leads.clone()));
            if !bytes.is_empty() {
                let cut = &bytes[..cut.index(bytes.len())];
                prop_assert_ne!(decode(cut), Some(leads));
            }
        }
    }
}
