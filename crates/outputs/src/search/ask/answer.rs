//! What is asked of the search index, and what it answers.
//!
//! Invariant: an answer says what it lacks: documents that there was no time for, hits that
//! are behind its page, commits that the index does not have yet.

use super::SnippetFragment;
use super::gather::{GatheredDocuments, SortOrder};
use super::parse::QuestionRefusal;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::Error;

/// Values that are shown of a facet.
const FACET_VALUES: usize = 10;

/// A search request: the text, the page of hits, and who reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Question {
    /// The text as a person typed it, with filters and operators.
    pub text: String,
    /// Hits of a page.
    pub limit: usize,
    /// Where to go on.
    pub cursor: Option<String>,
    pub order: SortOrder,
    /// Whether facets are counted.
    pub facets: bool,
    /// Whether near-duplicates are shown each for itself.
    pub duplicates: bool,
    /// The tokens of a reader; without them everything is found.
    pub tokens: Option<Vec<String>>,
}

impl Default for Question {
    fn default() -> Question {
        let (text, cursor, order, duplicates, tokens) = Default::default();
        Question { text, limit: 10, cursor, order, facets: true, duplicates, tokens }
    }
}

/// A page of hits with their number, facets and a correction of the spelling.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// Documents that were found.
    pub total: u64,
    /// Whether not everything was looked at: time was over, or a word with `*` stands for
    /// too many words.
    pub is_partial: bool,
    /// Whether nothing has all the words, so that hits have most of them.
    pub is_relaxed: bool,
    /// A page of them.
    pub hits: Vec<Hit>,
    /// How they divide: domain, language, type, year.
    pub facets: Vec<Facet>,
    /// The question, spelled otherwise.
    pub suggestion: Option<String>,
    /// Where to go on.
    pub next: Option<String>,
    /// Whether there are, or may be, hits behind this page. Without `next` they cannot be
    /// reached: the question has to be narrowed down.
    #[serde(default)]
    pub has_more: bool,
    /// Commits of the crawl that the index does not have yet.
    #[serde(default)]
    pub behind_chunks: i64,
    /// How long ago the first of them was made.
    #[serde(default)]
    pub behind_ms: i64,
    /// How long it took.
    pub took_ms: u64,
}

/// A document that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct Hit {
    pub url: String,
    pub title: String,
    /// What it says about the question.
    pub snippet: Vec<SnippetFragment>,
    pub domain: String,
    pub language: String,
    #[serde(rename = "type")]
    pub media: String,
    /// When it was last modified.
    pub date_ms: i64,
    /// Who links to it.
    pub links: u64,
    /// What its words are worth.
    pub score: f32,
    /// Near-duplicates that are not shown: the first of them.
    pub similar: Vec<String>,
    /// How many of them were seen.
    #[serde(default)]
    pub similar_count: u64,
}

/// How hits divide by one thing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct Facet {
    pub name: String,
    /// Values and how many have them, most first.
    pub values: Vec<(String, u64)>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerFailure {
    /// The question cannot be answered.
    #[error("{0}")]
    Refused(#[from] QuestionRefusal),
    /// An error of the database, the object store or the index.
    #[error("{0}")]
    Store(#[from] Error),
}

/// How what was found divides.
pub(super) fn facets(found: &GatheredDocuments) -> Vec<Facet> {
    let mut years: HashMap<String, u64> = HashMap::new();
    for (day, count) in &found.days {
        let at = jiff::Timestamp::from_millisecond(day.saturating_mul(86_400_000));
        let year = at.map(|at| at.to_zoned(jiff::tz::TimeZone::UTC).year());
        *years.entry(year.map_or_else(|_| "unknown".into(), |it| it.to_string())).or_default() +=
            count;
    }
    let [domains, languages, media] = &found.texts;
    [("domain", domains), ("language", languages), ("type", media), ("year", &years)]
        .into_iter()
        .map(|(name, counts)| {
            let mut values: Vec<(String, u64)> =
                counts.iter().map(|(value, count)| (value.clone(), *count)).collect();
            values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            values.truncate(FACET_VALUES);
            Facet { name: name.to_owned(), values }
        })
        .collect()
}
