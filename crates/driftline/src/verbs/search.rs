//! Documents found by their words.

use super::access::{Area, Needs};
use super::context::VerbContext;
use super::{Opens, Verb};
use clap::ValueEnum;
use outputs::search::ask::gather::SortOrder;
use outputs::search::ask::{Answer, Question};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hits per page at most.
pub const HITS_MAX: u16 = outputs::search::ask::PAGE_MAX as u16;

/// Documents by their words.
pub struct Search;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// The query; docs/guide/search.md describes its syntax
    pub q: String,
    /// Hits per page
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = HITS_MAX))]
    pub limit: u16,
    /// Cursor of the next page, from an earlier answer
    pub cursor: Option<String>,
    /// Sort order
    #[serde(default)]
    pub sort: SearchOrder,
    /// Show near-duplicates separately
    #[serde(default)]
    pub duplicates: bool,
    /// Count hits by domain, language, type and year
    #[serde(default = "yes")]
    pub facets: bool,
    /// Only documents that a reader with this access token may see; can be repeated
    #[serde(default)]
    pub access: Vec<String>,
    /// Only documents that everybody may see, or readers with the given access tokens
    #[serde(default)]
    pub restricted: bool,
}

/// What hits are ordered by.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum SearchOrder {
    #[default]
    Relevance,
    Date,
    Links,
}

/// Hits per page where no limit is given.
pub fn usual_limit() -> u16 {
    10
}

fn yes() -> bool {
    true
}

impl SearchRequest {
    fn question(self) -> Question {
        let is_restricted = self.restricted || !self.access.is_empty();
        Question {
            text: self.q,
            limit: usize::from(self.limit),
            cursor: self.cursor,
            order: match self.sort {
                SearchOrder::Relevance => SortOrder::Relevance,
                SearchOrder::Date => SortOrder::Date,
                SearchOrder::Links => SortOrder::Links,
            },
            facets: self.facets,
            duplicates: self.duplicates,
            tokens: is_restricted.then_some(self.access),
        }
    }
}

impl Verb for Search {
    const NAME: &'static str = "search";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Search));
    const OPENS: Opens = Opens::SearchIndex;
    type Request = SearchRequest;
    type Response = Answer;

    fn answer(context: &VerbContext, request: SearchRequest) -> anyhow::Result<Answer> {
        context.search_index.answer(&request.question())
    }
}
