//! Better spellings: for a word that no document has, one like it that many have.
//!
//! Invariant: what is suggested finds something; looking for it is bounded by the number of
//! words that are like it.

use super::parse::Node;
use super::snippets::collect;
use super::{Asking, Failed, broken};
use std::collections::HashMap;
use tantivy::Term;
use tantivy::query::FuzzyTermQuery;
use tantivy::schema::Field;
use tantivy::termdict::TermStreamer;

/// Words that are compared with one that is not known.
const LIKE_MAX: usize = 2_000;
/// Letters from which a word may differ in two.
const LONG: usize = 6;
/// Letters below which nothing is suggested.
const SHORT: usize = 4;

/// The question with the words that nothing has put right, if that helps.
pub fn better(asking: &Asking<'_>, text: &str, node: &Node) -> Result<Option<String>, Failed> {
    let mut words = Vec::new();
    collect(node, &mut words);
    let mut better = text.to_lowercase();
    let mut is_better = false;
    for (word, is_beginning) in words {
        if is_beginning || word.chars().count() < SHORT || documents(asking, &word)? > 0 {
            continue;
        }
        let Some(other) = like(asking, &word)? else { continue };
        if let Some(at) = better.find(&word) {
            better.replace_range(at..at + word.len(), &other);
            is_better = true;
        }
    }
    Ok(is_better.then_some(better))
}

/// How many documents have a word, in their text or title.
fn documents(asking: &Asking<'_>, word: &str) -> Result<u64, Failed> {
    let mut sum = 0;
    for field in [asking.fields.body, asking.fields.title] {
        let term = Term::from_field_text(field, word);
        for searcher in asking.shards.searchers() {
            sum += searcher.doc_freq(&term).map_err(broken)?;
        }
    }
    Ok(sum)
}

/// The most frequent word that differs in one letter, or in two if it is long.
fn like(asking: &Asking<'_>, word: &str) -> Result<Option<String>, Failed> {
    let most = if word.chars().count() >= LONG { 2 } else { 1 };
    for distance in 1..=most {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for field in [asking.fields.body, asking.fields.title] {
            let term = Term::from_field_text(field, word);
            let query = FuzzyTermQuery::new(term, distance, true);
            let automaton = query.automaton().map_err(broken)?;
            each_term(asking, field, LIKE_MAX, &automaton, &mut |word, documents| {
                *counts.entry(word.to_owned()).or_default() += documents;
            })?;
        }
        let best = counts.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        if let Some((word, _)) = best {
            return Ok(Some(word));
        }
    }
    Ok(None)
}

/// Words of texts that begin like this.
pub fn beginning_with(
    asking: &Asking<'_>,
    word: &str,
    limit: usize,
) -> Result<Vec<String>, Failed> {
    let mut words = Vec::new();
    let field = asking.fields.body;
    let query = FuzzyTermQuery::new_prefix(Term::from_field_text(field, word), 0, false);
    let automaton = query.automaton().map_err(broken)?;
    each_term(asking, field, limit, &automaton, &mut |word, _| words.push(word.to_owned()))?;
    Ok(words)
}

/// Calls for words of a field that an automaton takes, up to so many of a segment.
fn each_term<A>(
    asking: &Asking<'_>,
    field: Field,
    limit: usize,
    automaton: &A,
    call: &mut dyn FnMut(&str, u64),
) -> Result<(), Failed>
where
    A: tantivy_fst::Automaton,
    A::State: Clone,
{
    for searcher in asking.shards.searchers() {
        for reader in searcher.segment_readers() {
            let inverted = reader.inverted_index(field).map_err(broken)?;
            let stream = inverted.terms().search(automaton).into_stream();
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
