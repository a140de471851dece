//! The time a question has, and queries that keep to it.
//!
//! [`DeadlineQuery`] ends a whole query, [`DeadlineClause`] does not begin a clause that takes
//! long to set up, [`DeadlineAutomaton`] ends a walk through words. Invariants: what is found
//! until then counts, and
//! the answer says that it is not all; a segment in which any clause was cut off finds
//! nothing, so a document that a cut clause would have left out is never shown.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED, Term};
use tantivy_fst::Automaton;

/// Documents between two looks at the clock.
const DOCUMENTS_A_LOOK: u32 = 512;
/// Steps of a walk through words between two looks at the clock.
const STEPS_A_LOOK: u32 = 4_096;

/// The time a question has.
#[derive(Debug, Clone)]
pub struct Deadline {
    until: Instant,
    is_over: Arc<AtomicBool>,
    has_left_out: Arc<AtomicBool>,
}

impl Deadline {
    /// A question has until then.
    pub fn new(until: Instant) -> Deadline {
        let (is_over, has_left_out) = Default::default();
        Deadline { until, is_over, has_left_out }
    }

    /// Whether somebody has looked when time was over.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Whether time is over by now. Once it is, it stays over.
    pub fn look(&self) -> bool {
        let is_over = self.is_over() || Instant::now() >= self.until;
        if is_over {
            self.is_over.store(true, Ordering::Relaxed);
        }
        is_over
    }

    /// Something is left out for another reason than time.
    pub fn leave_out(&self) {
        self.has_left_out.store(true, Ordering::Relaxed);
    }

    /// Whether everything was looked at.
    pub fn is_kept(&self) -> bool {
        !self.is_over() && !self.has_left_out.load(Ordering::Relaxed)
    }
}

/// A query with a deadline.
#[derive(Debug)]
pub struct DeadlineQuery {
    query: Box<dyn Query>,
    deadline: Deadline,
}

impl DeadlineQuery {
    /// A query, and the time it has.
    pub fn new(query: Box<dyn Query>, deadline: Deadline) -> DeadlineQuery {
        DeadlineQuery { query, deadline }
    }
}

impl Clone for DeadlineQuery {
    fn clone(&self) -> DeadlineQuery {
        DeadlineQuery { query: self.query.box_clone(), deadline: self.deadline.clone() }
    }
}

impl Query for DeadlineQuery {
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
        if self.deadline.look() {
            return Ok(Box::new(EmptyScorer));
        }
        let scorer = self.weight.scorer(reader, boost)?;
        // Clauses are cut off only while they are set up, which is now behind them.
        if self.deadline.look() {
            return Ok(Box::new(EmptyScorer));
        }
        let deadline = self.deadline.clone();
        Ok(Box::new(BoundedScorer { scorer, deadline, seen: 0, over: false }))
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

/// A clause of a [`DeadlineQuery`] that is not set up any more when time is over. One that
/// was set up goes on as it is.
#[derive(Debug)]
pub struct DeadlineClause {
    query: Box<dyn Query>,
    deadline: Deadline,
}

impl DeadlineClause {
    /// A clause, and the time it has.
    pub fn new(query: Box<dyn Query>, deadline: Deadline) -> DeadlineClause {
        DeadlineClause { query, deadline }
    }
}

impl Clone for DeadlineClause {
    fn clone(&self) -> DeadlineClause {
        DeadlineClause { query: self.query.box_clone(), deadline: self.deadline.clone() }
    }
}

impl Query for DeadlineClause {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let weight = self.query.weight(scoring)?;
        Ok(Box::new(GatedWeight { weight, deadline: self.deadline.clone() }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

struct GatedWeight {
    weight: Box<dyn Weight>,
    deadline: Deadline,
}

impl Weight for GatedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        match self.deadline.look() {
            true => Ok(Box::new(EmptyScorer)),
            false => self.weight.scorer(reader, boost),
        }
    }

    fn scorer_danger(
        &self,
        reader: &SegmentReader,
        target: DocId,
        boost: Score,
    ) -> tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)> {
        match self.deadline.look() {
            true => Ok((SeekDangerResult::SeekLowerBound(TERMINATED), Box::new(EmptyScorer))),
            false => self.weight.scorer_danger(reader, target, boost),
        }
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.weight.explain(reader, doc)
    }
}

/// An automaton that takes nothing any more when time is over.
pub struct DeadlineAutomaton<'a, A> {
    automaton: A,
    deadline: &'a Deadline,
    steps: Cell<u32>,
}

impl<'a, A> DeadlineAutomaton<'a, A> {
    /// An automaton, and the time it has.
    pub fn new(automaton: A, deadline: &'a Deadline) -> DeadlineAutomaton<'a, A> {
        DeadlineAutomaton { automaton, deadline, steps: Cell::new(0) }
    }
}

impl<A: Automaton> Automaton for DeadlineAutomaton<'_, A> {
    type State = A::State;

    fn start(&self) -> A::State {
        self.automaton.start()
    }

    fn is_match(&self, state: &A::State) -> bool {
        self.automaton.is_match(state)
    }

    fn can_match(&self, state: &A::State) -> bool {
        self.steps.set(self.steps.get().wrapping_add(1));
        let is_over = match self.steps.get().is_multiple_of(STEPS_A_LOOK) {
            true => self.deadline.look(),
            false => self.deadline.is_over(),
        };
        !is_over && self.automaton.can_match(state)
    }

    fn will_always_match(&self, state: &A::State) -> bool {
        self.automaton.will_always_match(state)
    }

    fn accept(&self, state: &A::State, byte: u8) -> A::State {
        self.automaton.accept(state, byte)
    }
}
