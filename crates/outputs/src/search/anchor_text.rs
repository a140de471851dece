//! What the link index says of documents: how many link to each, and with what words.
//!
//! Invariant: whatever the number of in-links, at most [`LOOKED_MAX`] of them are read, and
//! the words of at most [`ANCHORS_MAX`] are taken.

use super::schema::AnchorText;
use crate::links::LinkIndex;
use crate::links::keys;
use crate::links::node::Node;
use crate::links::queries::{self, KnownUri};
use page::domain::SuffixList;
use page::ids::DocHash;
use page::uri::Uri;
use std::collections::{BTreeMap, HashMap};
use store::Result;
use store::ids::Part;
use store::sorted::View;

/// In-links of a document that are read.
const LOOKED_MAX: usize = 200;
/// Different words of links that are taken.
const ANCHORS_MAX: usize = 40;
/// Rows that are asked for at a time.
const KEYS_STEP: usize = 1_000;
/// Bytes of the words of a link.
const ANCHOR_BYTES_MAX: usize = 200;

/// Where the link index has a document, if it is a page of the web: the part and the key.
pub fn target(index: &LinkIndex, list: &SuffixList, url: &str) -> Option<(Part, DocHash)> {
    let uri = Uri::canonical(url, list).ok()?.to_uri();
    Some((index.part_of(&uri), keys::hash(&uri)))
}

/// How many link to each of these.
pub fn in_links(index: &LinkIndex, targets: &[Option<(Part, DocHash)>]) -> Result<Vec<u64>> {
    let targets = targets.to_vec();
    index.read(move |view| {
        let nodes = nodes(view, &targets)?;
        Ok(nodes.iter().map(|node| node.as_ref().map_or(0, |it| it.incount)).collect())
    })
}

/// What is said of each of these.
pub fn of(index: &LinkIndex, targets: &[Option<(Part, DocHash)>]) -> Result<Vec<AnchorText>> {
    let targets = targets.to_vec();
    index.read(move |view| {
        let mut texts = Vec::new();
        for (target, node) in targets.iter().zip(nodes(view, &targets)?) {
            let (Some((part, hash)), Some(node)) = (*target, node) else {
                texts.push(AnchorText { target: *target, ..AnchorText::default() });
                continue;
            };
            let known = KnownUri { part, hash, node };
            let anchors = queries::anchors(view, &known, LOOKED_MAX)?;
            let anchors = chosen(anchors.iter().map(String::as_str).take(LOOKED_MAX));
            texts.push(AnchorText {
                links: known.node.incount,
                anchors,
                target: Some((part, hash)),
            });
        }
        Ok(texts)
    })
}

/// The rows of targets, in their order.
fn nodes(view: &dyn View, targets: &[Option<(Part, DocHash)>]) -> Result<Vec<Option<Node>>> {
    let mut wanted: BTreeMap<Part, Vec<usize>> = BTreeMap::new();
    for (at, target) in targets.iter().enumerate() {
        if let Some((part, _)) = target {
            wanted.entry(*part).or_default().push(at);
        }
    }
    let mut found = vec![None; targets.len()];
    for (part, all) in wanted {
        for some in all.chunks(KEYS_STEP) {
            let hashes = some.iter().filter_map(|at| targets[*at].map(|it| it.1));
            let rows: Vec<Vec<u8>> = hashes.map(keys::node).collect();
            for (at, row) in some.iter().zip(view.get_many(part, &rows)?) {
                found[*at] = row.map(|row| Node::decode(&row)).transpose()?;
            }
        }
    }
    Ok(found)
}

/// The most frequent words of links, each once for every doubling of its number: what a
/// thousand pages say counts more than what one says, but not a thousand times.
fn chosen<'a>(anchors: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    for anchor in anchors {
        let words = anchor.trim();
        if words.is_empty() || words.len() > ANCHOR_BYTES_MAX {
            continue;
        }
        *counts.entry(words.to_lowercase()).or_default() += 1;
    }
    let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(ANCHORS_MAX);
    let times = |count: u32| usize::try_from(count.ilog2() + 1).unwrap_or(1);
    counts.into_iter().flat_map(|(words, count)| vec![words; times(count)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_say_counts_more_but_not_as_many_times() {
        let many = std::iter::repeat_n("Home", 100);
        let all = many.chain(["The Guide", "the guide ", "", "once"]);
        let chosen = chosen(all);
        assert_eq!(chosen.iter().filter(|it| *it == "home").count(), 7);
        assert_eq!(chosen.iter().filter(|it| *it == "the guide").count(), 2);
        assert_eq!(chosen.iter().filter(|it| *it == "once").count(), 1);
        assert_eq!(chosen.len(), 10);
        assert_eq!(chosen.first().map(String::as_str), Some("home"));
    }
}
