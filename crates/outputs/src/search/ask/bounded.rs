//! A query that ends when its time is over, whatever it still would find.
//!
//! Invariant: what is found until then counts, and the answer says that it is not all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

/// Documents between two looks at the clock.
const DOCUMENTS_A_LOOK: u32 = 512;

/// The time a query has.
#[derive(Debug, Clone)]
pub struct Deadline {
    until: Instant,
    is_over: Arc<AtomicBool>,
}

impl Deadline {
    /// A query has until then.
    pub fn new(until: Instant) -> Deadline {
        Deadline { until, is_over: Arc::new(AtomicBool::new(false)) }
    }

    /// Whether a query was ended by it.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Whether time is over by now.
    pub fn look(&self) -> bool {
        let is_over = self.is_over() || Instant::now() >= self.until;
        if is_over {
            self.is_over.store(true, Ordering::Relaxed);
        }
        is_over
    }
}

/// A query with a deadline.
#[derive(Debug)]
pub struct Bounded {
    query: Box<dyn Query>,
    deadline: Deadline,
}

impl Bounded {
    /// A query, and the time it has.
    pub fn new(query: Box<dyn Query>, deadline: Deadline) -> Bounded {
        Bounded { query, deadline }
    }
}

impl Clone for Bounded {
    fn clone(&self) -> Bounded {
        Bounded { query: self.query.box_clone(), deadline: self.deadline.clone() }
    }
}

impl Query for Bounded {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let weight = self.query.weight(scoring)?;
        Ok(Box::new(BoundedWeight { weight, deadline: self.deadline.clone() }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

struct BoundedWeight {
    weight: Box<dyn Weight>,
    deadline: Deadline,
}

impl Weight for BoundedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let scorer = self.weight.scorer(reader, boost)?;
        Ok(Box::new(BoundedScorer {
            scorer,
            deadline: self.deadline.clone(),
            seen: 0,
            over: false,
        }))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.weight.explain(reader, doc)
    }
}

struct BoundedScorer {
    scorer: Box<dyn Scorer>,
    deadline: Deadline,
    seen: u32,
    over: bool,
}

impl DocSet for BoundedScorer {
    fn advance(&mut self) -> DocId {
        self.seen += 1;
        if self.seen.is_multiple_of(DOCUMENTS_A_LOOK) && self.deadline.look() {
            self.over = true;
        }
        if self.over { TERMINATED } else { self.scorer.advance() }
    }

    fn doc(&self) -> DocId {
        if self.over { TERMINATED } else { self.scorer.doc() }
    }

    fn size_hint(&self) -> u32 {
        self.scorer.size_hint()
    }
}

impl Scorer for BoundedScorer {
    fn score(&mut self) -> Score {
        self.scorer.score()
    }
}
