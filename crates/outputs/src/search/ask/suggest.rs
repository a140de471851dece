//! Better spellings: for a word that no document has, one like it that many have.
//!
//! Invariants: what is suggested finds something; looking for it is bounded by the number of
//! words that are like it and by the time of the question; a reader who may not see all
//! documents is told nothing of words that are only in others.

use super::answer::{AnswerFailure, Question};
use super::deadline::{Deadline, DeadlineAutomaton, DeadlineQuery};
use super::parse::QueryNode;
use super::snippets::collect;
use super::{IndexSearcher, broken};
use std::collections::HashMap;
use tantivy::Term;
use tantivy::query::{BooleanQuery, EnableScoring, FuzzyTermQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::termdict::TermStreamer;

/// Words that are compared with one that is not known.
const LIKE_MAX: usize = 2_000;
/// Words of which is looked whether a reader may see a document with them.
const CHECKED_MAX: usize = 20;
/// Letters from which a word may differ in two.
const LONG: usize = 6;
/// Letters below which nothing is suggested.
const SHORT: usize = 4;

/// The question with the words that nothing has put right, if that helps and there is time.
pub fn better(
    index_searcher: &IndexSearcher<'_>,
    question: &Question,
    node: &QueryNode,
    deadline: &Deadline,
) -> Result<Option<String>, AnswerFailure> {
    let mut words = Vec::new();
    collect(node, &mut words);
    let suggesting = Suggester { index_searcher, question, deadline };
    let mut better = question.text.to_lowercase();
    let mut is_better = false;
    for (word, is_beginning) in words {
        if is_beginning || word.chars().count() < SHORT || suggesting.documents(&word)? > 0 {
            continue;
        }
        let Some(other) = suggesting.like(&word)? else { continue };
        if let Some(at) = better.find(&word) {
            better.replace_range(at..at + word.len(), &other);
            is_better = true;
        }
    }
    Ok(is_better.then_some(better))
}

struct Suggester<'a> {
    index_searcher: &'a IndexSearcher<'a>,
    question: &'a Question,
    deadline: &'a Deadline,
}

impl Suggester<'_> {
    fn fields(&self) -> [Field; 2] {
        [self.index_searcher.fields.body, self.index_searcher.fields.title]
    }

    /// How many documents have a word, in their text or title, of those that may be seen.
    fn documents(&self, word: &str) -> Result<u64, AnswerFailure> {
        let terms = self.fields().map(|field| Term::from_field_text(field, word));
        let mut sum = 0;
        let Some(visible) = self.index_searcher.visible(self.question) else {
            for searcher in self.index_searcher.shards.searchers() {
                for term in &terms {
                    sum += searcher.doc_freq(term).map_err(broken)?;
                }
            }
            return Ok(sum);
        };
        let has = |term| Box::new(TermQuery::new(term, IndexRecordOption::Basic)) as Box<dyn Query>;
        let has = BooleanQuery::union(terms.into_iter().map(has).collect());
        let both = BooleanQuery::new(vec![(Occur::Must, Box::new(has)), (Occur::Must, visible)]);
        let query = DeadlineQuery::new(Box::new(both), self.deadline.clone());
        for (_, searcher) in self.index_searcher.searchers_of(self.question) {
            let scoring = EnableScoring::disabled_from_searcher(searcher);
            let weight = query.weight(scoring).map_err(broken)?;
            for reader in searcher.segment_readers() {
                sum += u64::from(weight.count(reader).map_err(broken)?);
            }
        }
        Ok(sum)
    }

    /// The most frequent word that differs in one letter, or in two if it is long.
    fn like(&self, word: &str) -> Result<Option<String>, AnswerFailure> {
        let most = if word.chars().count() >= LONG { 2 } else { 1 };
        for distance in 1..=most {
            let mut counts: HashMap<String, u64> = HashMap::new();
            for field in self.fields() {
                let term = Term::from_field_text(field, word);
                let query = FuzzyTermQuery::new(term, distance, true);
                let automaton = query.automaton().map_err(broken)?;
                let (index_searcher, deadline) = (self.index_searcher, self.deadline);
                each_word(
                    index_searcher,
                    field,
                    LIKE_MAX,
                    automaton,
                    deadline,
                    &mut |word, documents| {
                        *counts.entry(word.to_owned()).or_default() += documents;
                    },
                )?;
            }
            if self.deadline.look() {
                return Ok(None);
            }
            let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
            counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            if let Some(word) = self.visible(counts)? {
                return Ok(Some(word));
            }
        }
        Ok(None)
    }

    /// The first of these words, or for a reader who may not see all documents the one that
    /// most of theirs have.
    fn visible(&self, counts: Vec<(String, u64)>) -> Result<Option<String>, AnswerFailure> {
        let mut words = counts.into_iter().map(|(word, _)| word);
        if self.question.tokens.is_none() {
            return Ok(words.next());
        }
        let mut best: Option<(u64, String)> = None;
        for word in words.take(CHECKED_MAX) {
            let documents = self.documents(&word)?;
            if documents > best.as_ref().map_or(0, |it| it.0) {
                best = Some((documents, word));
            }
        }
        Ok(best.filter(|_| !self.deadline.look()).map(|it| it.1))
    }
}

/// Words of texts that begin like this, up to so many of a segment.
pub fn beginning_with(
    index_searcher: &IndexSearcher<'_>,
    word: &str,
    limit: usize,
    deadline: &Deadline,
) -> Result<Vec<String>, AnswerFailure> {
    let mut words = Vec::new();
    let field = index_searcher.fields.body;
    let query = FuzzyTermQuery::new_prefix(Term::from_field_text(field, word), 0, false);
    let automaton = query.automaton().map_err(broken)?;
    each_word(index_searcher, field, limit, automaton, deadline, &mut |word, _| {
        words.push(word.to_owned());
    })?;
    Ok(words)
}

/// Calls for words of a field that an automaton takes, up to so many of a segment.
fn each_word<A>(
    index_searcher: &IndexSearcher<'_>,
    field: Field,
    limit: usize,
    automaton: A,
    deadline: &Deadline,
    call: &mut dyn FnMut(&str, u64),
) -> Result<(), AnswerFailure>
where
    A: tantivy_fst::Automaton,
    A::State: Clone,
{
    let automaton = DeadlineAutomaton::new(automaton, deadline);
    for searcher in index_searcher.shards.searchers() {
        for reader in searcher.segment_readers() {
            if deadline.look() {
                return Ok(());
            }
            let inverted = reader.inverted_index(field).map_err(broken)?;
            let stream = inverted.terms().search(&automaton).into_stream();
            let mut stream: TermStreamer<'_, _> = stream.map_err(|error| broken(error.into()))?;
            let mut seen = 0;
            while seen < limit && stream.advance() {
                seen += 1;
                if let Ok(word) = std::str::from_utf8(stream.key()) {
                    call(word, u64::from(stream.value().doc_freq));
                }
            }
        }
    }
    Ok(())
}
