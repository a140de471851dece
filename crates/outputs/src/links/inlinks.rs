//! Who links to a URI: one small block, a base and blocks of edits, or a row each.
//!
//! Most URIs have a few in-links, which stand in the URI's own row. Of others a change
//! leaves one block with its edits; when there are too many blocks they become the base;
//! and when there are too many in-links ([`WIDE_MIN`]) each gets a row, so that no list is
//! ever read or written whole beyond that size.
//!
//! Invariant: of several edits of one source the newest counts; a list is in the order of
//! its sources, each once.

use super::codec::{self, ByteReader};
use super::keys::{self, InlinkForm, PageRef};
use super::node::{Inlinks, Node};
use super::pages::{attributes, read_attributes};
use page::facts::{LinkKind, Rel};
use page::ids::DocHash;
use std::collections::HashMap;
use store::ids::Part;
use store::sorted::{Span, View};
use store::{Error, Result};

/// Bytes of in-links that stand in the row of their URI.
pub const HERE_BYTES_MAX: usize = 256;
/// In-links beyond which each has a row.
pub const WIDE_MIN: u64 = 2_048;
/// Blocks beside the base, whatever the list's length.
const BLOCKS_MIN: u64 = 8;
/// One block more is allowed for so many in-links: merging costs what the list is long.
const BLOCK_PER_INLINKS: u64 = 64;
/// Marks an edit that takes an in-link away.
const REMOVED: u8 = 0x80;
/// Rows read at a time.
pub const ROWS_STEP: usize = 4_096;

/// How many blocks a list of this length may have.
pub fn blocks_max(incount: u64) -> u64 {
    BLOCKS_MIN + incount / BLOCK_PER_INLINKS
}

/// An in-link, or its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Edit {
    pub source: PageRef,
    /// How; `None` takes it away.
    pub link: Option<Inlink>,
}

/// What is known of an in-link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Inlink {
    pub anchor: String,
    /// How the page names it.
    pub kind: LinkKind,
    pub rel: Rel,
    /// When it was first seen, in seconds.
    pub first_s: u64,
    /// The change of the target's part that wrote it.
    pub seq: u64,
}

/// Edits of a target in the order of their sources, as a block.
pub fn encode(edits: &[Edit]) -> Vec<u8> {
    let mut anchors: Vec<&str> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let links = || edits.iter().filter_map(|edit| edit.link.as_ref());
    for link in links() {
        places.entry(&link.anchor).or_insert_with(|| {
            anchors.push(&link.anchor);
            anchors.len() - 1
        });
    }
    let mut out = Vec::with_capacity(16 + edits.len() * 8);
    codec::put_number(&mut out, edits.len() as u64);
    codec::put_number(&mut out, anchors.len() as u64);
    anchors.iter().for_each(|anchor| codec::put_text(&mut out, anchor));
    let (mut part, mut number) = (None, 0);
    let (mut first_s, mut seq) = (0, 0);
    for edit in edits {
        let PageRef { part: its_part, number: its_number } = edit.source;
        if part == Some(its_part) {
            codec::put_number(&mut out, (its_number - number) << 1);
        } else {
            codec::put_number(&mut out, its_part.0.unsigned_abs() << 1 | 1);
            codec::put_number(&mut out, its_number);
        }
        (part, number) = (Some(its_part), its_number);
        let Some(link) = &edit.link else {
            out.push(REMOVED);
            continue;
        };
        out.push(attributes(link.kind, link.rel));
        codec::put_signed(&mut out, link.first_s as i64 - first_s as i64);
        codec::put_signed(&mut out, link.seq as i64 - seq as i64);
        codec::put_number(&mut out, places[&*link.anchor] as u64);
        (first_s, seq) = (link.first_s, link.seq);
    }
    out
}

/// Reads the changes of in-links that one row holds.
pub fn decode(bytes: &[u8]) -> Result<Vec<Edit>> {
    let mut reader = ByteReader::new("inlinks", bytes);
    let count = reader.count()?;
    let anchors = reader.count()?;
    let anchors: Vec<&str> = (0..anchors).map(|_| reader.text()).collect::<Result<_>>()?;
    let mut edits = Vec::with_capacity(count);
    let mut source = PageRef { part: Part(0), number: 0 };
    let (mut first_s, mut seq) = (0u64, 0u64);
    for _ in 0..count {
        let word = reader.number()?;
        source = match word & 1 {
            0 => PageRef { number: source.number.wrapping_add(word >> 1), ..source },
            _ => PageRef {
                part: match u16::try_from(word >> 1) {
                    Ok(part) => Part(part.into()),
                    Err(_) => return Err(reader.broken("no such part")),
                },
                number: reader.number()?,
            },
        };
        let byte = reader.byte()?;
        if byte & REMOVED != 0 {
            edits.push(Edit { source, link: None });
            continue;
        }
        let (kind, rel) =
            read_attributes(byte).ok_or_else(|| reader.broken("a link is of no known kind"))?;
        first_s = first_s.wrapping_add_signed(reader.signed()?);
        seq = seq.wrapping_add_signed(reader.signed()?);
        let anchor = usize::try_from(reader.number()?).ok().and_then(|at| anchors.get(at));
        let anchor = (*anchor.ok_or_else(|| reader.broken("a link has no words"))?).to_owned();
        edits.push(Edit { source, link: Some(Inlink { anchor, kind, rel, first_s, seq }) });
    }
    Ok(edits)
}

/// An in-link as a row of its own.
pub fn encode_wide(link: &Inlink) -> Vec<u8> {
    let mut out = Vec::with_capacity(12 + link.anchor.len());
    out.push(attributes(link.kind, link.rel));
    codec::put_number(&mut out, link.first_s);
    codec::put_number(&mut out, link.seq);
    out.extend_from_slice(link.anchor.as_bytes());
    out
}

/// Reads such a row.
pub fn decode_wide(bytes: &[u8]) -> Result<Inlink> {
    let mut reader = ByteReader::new("inlinks", bytes);
    let (kind, rel) = read_attributes(reader.byte()?)
        .ok_or_else(|| reader.broken("a link is of no known kind"))?;
    let (first_s, seq) = (reader.number()?, reader.number()?);
    Ok(Inlink { anchor: reader.rest()?.to_owned(), kind, rel, first_s, seq })
}

/// All edits together, oldest first: the newest of each source counts, and what is
/// removed is gone.
pub fn merged(mut edits: Vec<Edit>) -> Vec<Edit> {
    // Stable: of one source the newest stays last.
    edits.sort_by_key(|edit| edit.source);
    let mut out: Vec<Edit> = Vec::with_capacity(edits.len());
    for edit in edits {
        match out.last_mut() {
            Some(last) if last.source == edit.source => *last = edit,
            _ => out.push(edit),
        }
    }
    out.retain(|edit| edit.link.is_some());
    out
}

/// The list of a URI whose in-links have not a row each.
pub fn list(view: &dyn View, part: Part, hash: DocHash, node: &Node) -> Result<Vec<Edit>> {
    match &node.inlinks {
        Inlinks::Here(block) if block.is_empty() => Ok(Vec::new()),
        Inlinks::Here(block) => decode(block),
        _ => Ok(merged(blocks(view, part, hash, &node.uri)?.1)),
    }
}

/// The blocks of a list that is not wide: their keys, and their edits from the oldest on.
/// They are few ([`blocks_max`]); more of them, or rows of single in-links among them, are
/// damage.
pub fn blocks(
    view: &dyn View,
    part: Part,
    hash: DocHash,
    uri: &str,
) -> Result<(Vec<Vec<u8>>, Vec<Edit>)> {
    let damaged = |reason: &str| {
        let reason = format!("{reason}; run `driftline links rebuild`");
        Error::corrupt(format!("the link index (in-links of {uri})"), reason)
    };
    let rows = view.scan(part, &Span::prefix(&keys::inlinks(hash)), ROWS_STEP)?;
    if rows.len() == ROWS_STEP {
        return Err(damaged("it has more blocks than a list can have"));
    }
    let (mut keys, mut edits) = (Vec::with_capacity(rows.len()), Vec::new());
    for (key, value) in rows {
        if keys::form_of(&key).is_none_or(|(form, _)| form == InlinkForm::Wide as u8) {
            return Err(damaged("it should be blocks, but there are rows of single in-links"));
        }
        edits.extend(decode(&value)?);
        keys.push(key);
    }
    Ok((keys, edits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit() -> impl Strategy<Value = Edit> {
        let link = ("[a-cä]{0,3}", 0u8..8, 0u64..1 << 33, any::<u32>()).prop_map(
            |(anchor, rel, first_s, seq)| Inlink {
                anchor,
                kind: LinkKind::A,
                rel: Rel(rel),
                first_s,
                seq: seq.into(),
            },
        );
        ((0i64..3).prop_map(Part), 0u64..40, proptest::option::of(link))
            .prop_map(|(part, number, link)| Edit { source: PageRef { part, number }, link })
    }

    proptest! {
        #[test]
        fn a_block_is_read_as_it_was_written(mut edits in proptest::collection::vec(edit(), 0..60)) {
            edits.sort_by_key(|edit| edit.source);
            edits.dedup_by_key(|edit| edit.source);
            let bytes = encode(&edits);
            prop_assert_eq!(decode(&bytes).unwrap(), edits.clone());
            for end in 0..bytes.len() {
                let _ = decode(&bytes[..end]);
            }
            for link in edits.into_iter().filter_map(|edit| edit.link) {
                prop_assert_eq!(decode_wide(&encode_wide(&link)).unwrap(), link);
            }
        }

        #[test]
        fn the_newest_edit_of_a_source_counts(edits in proptest::collection::vec(edit(), 0..60)) {
            let mut expected = std::collections::BTreeMap::new();
            for edit in &edits {
                match &edit.link {
                    Some(link) => expected.insert(edit.source, link.clone()),
                    None => expected.remove(&edit.source),
                };
            }
            let found: Vec<_> = merged(edits).into_iter().map(|it| (it.source, it.link.unwrap())).collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
