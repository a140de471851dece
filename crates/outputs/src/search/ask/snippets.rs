//! What a document says about a question: the piece of its text with the most of its words,
//! and which words those are.
//!
//! Invariant: a piece is text and nothing else; whoever shows it escapes it as they must.

use super::answer::AnswerFailure;
use super::deadline::Deadline;
use super::parse::{FieldScope, QueryNode};
use super::{IndexSearcher, broken};
use crate::search::words::analyser;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tantivy::Term;
use tantivy::snippet::SnippetGenerator;

/// Letters of a snippet.
const LETTERS_MAX: usize = 200;
/// Bytes of a text that are looked at.
const TEXT_BYTES_MAX: usize = 100_000;
/// Terms that a beginning stands for.
const BEGINNINGS_MAX: usize = 50;

/// A piece of a snippet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct SnippetFragment {
    pub text: String,
    /// Whether it was asked for.
    pub hit: bool,
}

/// Makes snippets for one question.
pub struct Snippets {
    generator: SnippetGenerator,
}

impl Snippets {
    /// For a question. When time is over, words of it are not marked.
    pub fn new(
        asking: &IndexSearcher<'_>,
        node: &QueryNode,
        deadline: &Deadline,
    ) -> Result<Snippets, AnswerFailure> {
        let fields = asking.fields;
        let mut words = Vec::new();
        collect(node, &mut words);
        let mut worth: BTreeMap<String, f32> = BTreeMap::new();
        for (word, is_beginning) in words {
            if deadline.look() {
                break;
            }
            if is_beginning {
                let words =
                    super::suggest::beginning_with(asking, &word, BEGINNINGS_MAX, deadline)?;
                for term in words {
                    worth.insert(term, 0.5);
                }
                continue;
            }
            let term = Term::from_field_text(fields.body, &word);
            let mut documents = 0;
            for searcher in asking.shards.searchers() {
                documents += searcher.doc_freq(&term).map_err(broken)?;
            }
            #[allow(clippy::cast_precision_loss)]
            worth.insert(word, 1.0 / (1.0 + documents as f32).ln_1p().max(0.1));
        }
        let generator = SnippetGenerator::new(worth, analyser(), fields.body, LETTERS_MAX);
        Ok(Snippets { generator })
    }

    /// What a text says, or its description if the words are not in it.
    pub fn of(&self, body: &str, description: &str) -> Vec<SnippetFragment> {
        let mut end = body.len().min(TEXT_BYTES_MAX);
        while !body.is_char_boundary(end) {
            end -= 1;
        }
        let snippet = self.generator.snippet(&body[..end]);
        if snippet.is_empty() {
            return Snippets::beginning(body, description);
        }
        let fragment = snippet.fragment();
        let mut pieces = Vec::new();
        let mut at = 0;
        let mut push = |text: &str, hit: bool| {
            if !text.is_empty() {
                pieces.push(SnippetFragment { text: text.replace(char::is_whitespace, " "), hit });
            }
        };
        for range in tantivy::snippet::collapse_overlapped_ranges(snippet.highlighted()) {
            push(&fragment[at..range.start], false);
            push(&fragment[range.clone()], true);
            at = range.end;
        }
        push(&fragment[at..], false);
        pieces
    }

    /// The description of a document, or how its text begins.
    pub fn beginning(body: &str, description: &str) -> Vec<SnippetFragment> {
        let text = if description.is_empty() { body } else { description };
        let text: String = text.chars().take(LETTERS_MAX).collect();
        if text.is_empty() { Vec::new() } else { vec![SnippetFragment { text, hit: false }] }
    }
}

/// The words that are asked for, and whether each is only a beginning.
pub fn collect(node: &QueryNode, words: &mut Vec<(String, bool)>) {
    match node {
        QueryNode::All(nodes) | QueryNode::Any(nodes) => {
            nodes.iter().for_each(|it| collect(it, words))
        }
        QueryNode::Words(FieldScope::Anywhere | FieldScope::Title, all) => {
            words.extend(all.iter().map(|word| (word.clone(), false)));
        }
        QueryNode::Beginning(FieldScope::Anywhere | FieldScope::Title, word) => {
            words.push((word.clone(), true))
        }
        QueryNode::Words(..)
        | QueryNode::Beginning(..)
        | QueryNode::Not(_)
        | QueryNode::Filter(_) => {}
    }
}
