//! Finds the best documents for a query in all shards.
//!
//! Invariants: what a word is worth does not depend on the shard a document is in; the order
//! is the same however many are asked for, so the best of a smaller window are the first of
//! a larger one; the clock is looked at before every segment.

use super::answer::AnswerFailure;
use super::broken;
use super::deadline::{Deadline, DeadlineQuery};
use super::gather::{FoundDocument, Gather, GatheredDocuments};
use std::cell::RefCell;
use std::collections::HashMap;
use tantivy::collector::Collector;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring, Query, Weight};
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

/// A document that was found, and the shard that has it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct Candidate {
    /// The number of the shard.
    pub shard: usize,
    pub found: FoundDocument,
}

/// What was found in all shards.
pub struct Matches {
    /// How many there are, and how they divide.
    pub gathered: GatheredDocuments,
    /// The best, best first.
    pub best: Vec<Candidate>,
}

/// A query over shards.
pub struct Finder<'a> {
    /// The query for each shard that is asked.
    weights: Vec<(usize, &'a Searcher, Box<dyn Weight>)>,
    deadline: &'a Deadline,
}

impl<'a> Finder<'a> {
    /// A query over shards, with their numbers; the statistics are those of all.
    pub fn new(
        searchers: impl Iterator<Item = (usize, &'a Searcher)>,
        all: &[&Searcher],
        query: Box<dyn Query>,
        deadline: &'a Deadline,
    ) -> Result<Finder<'a>, AnswerFailure> {
        let query = DeadlineQuery::new(query, deadline.clone());
        let statistics = Statistics { searchers: all, documents: RefCell::default() };
        let mut weights = Vec::new();
        for (shard, searcher) in searchers {
            if deadline.look() {
                break;
            }
            let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, searcher);
            weights.push((shard, searcher, query.weight(scoring).map_err(broken)?));
        }
        Ok(Finder { weights, deadline })
    }

    /// The best of all shards.
    pub fn find(&self, gather: &Gather) -> Result<Matches, AnswerFailure> {
        let window = gather.window.max(1);
        let (mut gathered, mut best) = (GatheredDocuments::default(), Vec::new());
        for (shard, searcher, weight) in &self.weights {
            for (segment, reader) in (0u32..).zip(searcher.segment_readers()) {
                if self.deadline.look() {
                    break;
                }
                let found = gather.collect_segment(weight.as_ref(), segment, reader);
                let mut found = found.map_err(broken)?;
                let of_segment = std::mem::take(&mut found.best).into_iter();
                best.extend(of_segment.map(|found| Candidate { shard: *shard, found }));
                if best.len() > 2 * window {
                    best.select_nth_unstable_by(window - 1, Candidate::cmp);
                    best.truncate(window);
                }
                gathered.add(found);
            }
        }
        best.sort_unstable_by(Candidate::cmp);
        best.truncate(window);
        Ok(Matches { gathered, best })
    }
}

impl Candidate {
    /// Best first; of equals the one that comes first in the index.
    fn cmp(&self, other: &Candidate) -> std::cmp::Ordering {
        let by_rank = other.found.rank.total_cmp(&self.found.rank);
        by_rank.then((self.shard, self.found.at).cmp(&(other.shard, other.found.at)))
    }
}

/// The statistics of all shards.
struct Statistics<'a> {
    searchers: &'a [&'a Searcher],
    /// Documents that have a word: every shard is told of the same words.
    documents: RefCell<HashMap<Term, u64>>,
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searchers.iter().map(|it| it.total_num_tokens(field)).sum()
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.searchers.iter().map(|it| it.total_num_docs()).sum()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        if let Some(known) = self.documents.borrow().get(term) {
            return Ok(*known);
        }
        let of = |it: &&Searcher| Bm25StatisticsProvider::doc_freq(*it, term);
        let sum = self.searchers.iter().map(of).sum::<tantivy::Result<u64>>()?;
        self.documents.borrow_mut().insert(term.clone(), sum);
        Ok(sum)
    }
}
