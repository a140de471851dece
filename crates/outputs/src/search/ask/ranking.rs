//! Hits in the order in which they are shown: in-links of the best are looked up,
//! near-duplicates are folded.
//!
//! What is needed for that is in columns of the index; no document is loaded. Invariant: the
//! order and what is folded depend on the hits alone, not on how many were asked for at a
//! time: hits are added from the best on, and what was added does not change any more but
//! for near-duplicates that join it. So pages follow each other without a gap.

use super::answer::AnswerFailure;
use super::deadline::Deadline;
use super::find::Candidate;
use super::gather::{SortOrder, with_links};
use super::{InLinks, WINDOW};
use crate::search::indexed_links::{Columns, Target};
use std::collections::HashMap;
use tantivy::Searcher;
use tantivy::columnar::Column;

/// Bits in which the texts of near-duplicates may differ.
const NEAR_BITS: u32 = 3;
/// A text's 64 bits are divided into one piece more than may differ: near-duplicates have at
/// least one piece in common.
const PIECES: u32 = NEAR_BITS + 1;
/// Bits of a piece.
const PIECE_BITS: u32 = 64 / PIECES;
/// Near-duplicates of a hit that are named.
const SIMILAR_MAX: usize = 10;
/// Hits between two looks at the clock.
const HITS_A_LOOK: usize = 512;

/// A hit in its order.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct RankedHit {
    pub candidate: Candidate,
    /// What it is ordered by.
    rank: f64,
    /// Who links to it, if that was looked up.
    pub links: Option<u64>,
    /// The first near-duplicates behind it.
    pub similar: Vec<Candidate>,
    /// How many there are, as far as was looked.
    pub similar_count: u64,
    simhash: u64,
}

/// How hits are ordered.
#[allow(missing_docs)]
pub struct RankingRules<'a> {
    pub order: SortOrder,
    /// What ten times as many in-links are worth.
    pub links_weight: f32,
    /// Whether near-duplicates are shown each for itself.
    pub duplicates: bool,
    /// Who links to what.
    pub in_links: InLinks<'a>,
    /// The time there is.
    pub deadline: &'a Deadline,
}

/// Hits in their order, from the best on.
pub struct Ranking<'a> {
    rules: RankingRules<'a>,
    columns: BySegment<'a>,
    /// Hits that were added, near-duplicates included.
    added: usize,
    /// Those that are shown.
    kept: Vec<RankedHit>,
    /// Where in them a text with this piece is.
    by_piece: HashMap<(u32, u64), Vec<usize>>,
}

impl<'a> Ranking<'a> {
    /// No hits yet, of these shards.
    pub fn new(searchers: &'a [&'a Searcher], rules: RankingRules<'a>) -> Ranking<'a> {
        let (added, kept, by_piece) = Default::default();
        Ranking { rules, columns: BySegment::new(searchers), added, kept, by_piece }
    }

    /// Adds what was found and is not added yet: the best are those that were added before.
    /// The first time, this is at least [`WINDOW`] or all there is.
    pub fn extend(&mut self, best: &[Candidate]) -> Result<(), AnswerFailure> {
        let new = best.get(self.added..).unwrap_or_default();
        let mut ranked: Vec<RankedHit> = new.iter().map(|it| self.ranked(it)).collect();
        if self.added == 0 {
            let looked_up = ranked.len().min(WINDOW);
            self.look_up(&mut ranked[..looked_up])?;
        }
        for it in ranked {
            // What is not added is not shown, and the answer says that there is more.
            if self.added.is_multiple_of(HITS_A_LOOK)
                && self.added > 0
                && self.rules.deadline.look()
            {
                break;
            }
            self.added += 1;
            self.add(it);
        }
        Ok(())
    }

    /// Hits that were added, near-duplicates included.
    pub fn added(&self) -> usize {
        self.added
    }

    /// Those that are shown.
    pub fn kept(&self) -> &[RankedHit] {
        &self.kept
    }

    /// The in-links of hits of a page, where they were not looked up for their order.
    pub fn links_of(&mut self, page: &[RankedHit]) -> Result<Vec<u64>, AnswerFailure> {
        let is_open = |it: &&RankedHit| it.links.is_none();
        let open: Vec<&RankedHit> = page.iter().filter(is_open).collect();
        let mut indexed = Vec::new();
        let mut targets = Vec::new();
        for it in open {
            let columns = self.columns.of(&it.candidate);
            let doc = it.candidate.found.at.doc_id;
            indexed.push(columns.indexed.as_ref().map_or(0, |columns| columns.links(doc)));
            targets.push(columns.target(doc));
        }
        let is_needed = !targets.is_empty() && !self.rules.deadline.look();
        let mut looked = match is_needed {
            true => (self.rules.in_links)(&targets)?,
            false => indexed,
        }
        .into_iter();
        Ok(page.iter().map(|it| it.links.or_else(|| looked.next()).unwrap_or(0)).collect())
    }

    fn ranked(&mut self, candidate: &Candidate) -> RankedHit {
        let simhash = match self.rules.duplicates {
            true => 0,
            false => self.columns.of(candidate).simhash(candidate.found.at.doc_id),
        };
        let (candidate, rank) = (*candidate, candidate.found.rank);
        let (links, similar, similar_count) = Default::default();
        RankedHit { candidate, rank, links, similar, similar_count, simhash }
    }

    /// Looks up in-links, and orders by them as they are now.
    fn look_up(&mut self, hits: &mut [RankedHit]) -> Result<(), AnswerFailure> {
        if hits.is_empty() || self.rules.deadline.look() {
            return Ok(());
        }
        let mut targets: Vec<Option<Target>> = Vec::new();
        for it in hits.iter() {
            let doc = it.candidate.found.at.doc_id;
            targets.push(self.columns.of(&it.candidate).target(doc));
        }
        for (it, links) in hits.iter_mut().zip((self.rules.in_links)(&targets)?) {
            it.links = Some(links);
            #[allow(clippy::cast_precision_loss)]
            match self.rules.order {
                SortOrder::Relevance => {
                    it.rank = with_links(it.candidate.found.score, links, self.rules.links_weight);
                }
                SortOrder::Links => it.rank = links as f64,
                SortOrder::Date => {}
            }
        }
        hits.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        Ok(())
    }

    /// Of near-duplicates the best is kept, and knows the others.
    fn add(&mut self, it: RankedHit) {
        if let Some(other) = self.near(it.simhash) {
            let other = &mut self.kept[other];
            other.similar_count += 1;
            if other.similar.len() < SIMILAR_MAX {
                other.similar.push(it.candidate);
            }
            return;
        }
        if it.simhash != 0 {
            for piece in pieces(it.simhash) {
                self.by_piece.entry(piece).or_default().push(self.kept.len());
            }
        }
        self.kept.push(it);
    }

    /// The first hit whose text is nearly this. A text without words is like no other.
    fn near(&self, simhash: u64) -> Option<usize> {
        if simhash == 0 {
            return None;
        }
        let is_near = |at: &&usize| (self.kept[**at].simhash ^ simhash).count_ones() <= NEAR_BITS;
        let with_piece = |piece| self.by_piece.get(&piece)?.iter().find(is_near);
        pieces(simhash).filter_map(with_piece).min().copied()
    }
}

/// The pieces of a text's bits, each with its number.
fn pieces(simhash: u64) -> impl Iterator<Item = (u32, u64)> {
    (0..PIECES).map(move |at| (at, simhash >> (at * PIECE_BITS) & ((1 << PIECE_BITS) - 1)))
}

/// Columns of segments, opened when they are first needed.
struct BySegment<'a> {
    searchers: &'a [&'a Searcher],
    opened: HashMap<(usize, u32), OfSegment>,
}

struct OfSegment {
    indexed: Option<Columns>,
    simhash: Option<Column<u64>>,
}

impl<'a> BySegment<'a> {
    fn new(searchers: &'a [&'a Searcher]) -> BySegment<'a> {
        BySegment { searchers, opened: HashMap::new() }
    }

    fn of(&mut self, candidate: &Candidate) -> &OfSegment {
        let (shard, segment) = (candidate.shard, candidate.found.at.segment_ord);
        self.opened.entry((shard, segment)).or_insert_with(|| {
            let reader = self.searchers[shard].segment_reader(segment);
            let simhash = reader.fast_fields().u64("simhash").ok();
            OfSegment { indexed: Columns::of(reader), simhash }
        })
    }
}

impl OfSegment {
    fn simhash(&self, doc: u32) -> u64 {
        self.simhash.as_ref().and_then(|column| column.first(doc)).unwrap_or(0)
    }

    fn target(&self, doc: u32) -> Option<Target> {
        self.indexed.as_ref().and_then(|columns| columns.target(doc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::ask::gather::FoundDocument;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};
    use tantivy::DocAddress;

    fn ranked(at: usize, simhash: u64) -> RankedHit {
        let at = DocAddress::new(0, u32::try_from(at).unwrap());
        let candidate = Candidate { shard: 0, found: FoundDocument { rank: 1.0, score: 1.0, at } };
        let (links, similar, similar_count) = Default::default();
        RankedHit { candidate, rank: 1.0, links, similar, similar_count, simhash }
    }

    proptest! {
        #[test]
        fn near_duplicates_are_folded_into_the_first_of_them(
            // Few base texts, of which some bits are changed: many are near each other.
            texts in prop::collection::vec((0u64..4, prop::collection::vec(0u32..64, 0..5)), 0..60),
        ) {
            let bits = |(base, flips): &(u64, Vec<u32>)| {
                let base = base.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                flips.iter().fold(base, |bits, at| bits ^ (1 << at))
            };
            let texts: Vec<u64> = texts.iter().map(bits).collect();
            let deadline = Deadline::new(Instant::now() + Duration::from_secs(60));
            let rules = RankingRules {
                order: SortOrder::Relevance,
                links_weight: 0.0,
                duplicates: false,
                in_links: &|_| Ok(Vec::new()),
                deadline: &deadline,
            };
            let mut ranking = Ranking::new(&[], rules);
            let mut kept: Vec<(usize, u64)> = Vec::new();
            for (at, text) in texts.iter().enumerate() {
                ranking.add(ranked(at, *text));
                let is_near = |it: &&mut (usize, u64)| {
                    let other = texts[it.0];
                    *text != 0 && other != 0 && (other ^ text).count_ones() <= NEAR_BITS
                };
                match kept.iter_mut().find(is_near) {
                    Some(other) => other.1 += 1,
                    None => kept.push((at, 0)),
                }
            }
            let found: Vec<(usize, u64)> = ranking
                .kept()
                .iter()
                .map(|it| (it.candidate.found.at.doc_id as usize, it.similar_count))
                .collect();
            prop_assert_eq!(found, kept);
        }
    }
}
