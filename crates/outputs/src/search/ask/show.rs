//! Loads the documents of a page, as they are shown.
//!
//! Invariant: nothing is loaded but what is shown; when time is over, what was loaded is the
//! page, and the next one begins behind it.

use super::answer::{AnswerFailure, Hit};
use super::broken;
use super::deadline::Deadline;
use super::find::Candidate;
use super::ranking::RankedHit;
use super::snippets::Snippets;
use crate::search::schema::Fields;
use tantivy::schema::{Field, Value};
use tantivy::{Searcher, TantivyDocument};

/// Where documents of a page come from.
#[allow(missing_docs)]
pub struct Pages<'a> {
    pub searchers: &'a [&'a Searcher],
    pub fields: &'a Fields,
    /// What a document says about the question.
    pub snippets: &'a Snippets,
    /// The time there is.
    pub deadline: &'a Deadline,
}

impl Pages<'_> {
    /// The hits of a page, each with its in-links. At least one, however late it is.
    pub fn hits(&self, page: &[RankedHit], links: &[u64]) -> Result<Vec<Hit>, AnswerFailure> {
        let mut hits: Vec<Hit> = Vec::new();
        for (ranked, links) in page.iter().zip(links) {
            if !hits.is_empty() && self.deadline.look() {
                break;
            }
            hits.push(Hit { links: *links, ..self.hit(ranked)? });
        }
        Ok(hits)
    }

    fn hit(&self, ranked: &RankedHit) -> Result<Hit, AnswerFailure> {
        let (stored, fields) = (self.document(&ranked.candidate)?, self.fields);
        let (body, description) = (text(&stored, fields.body), text(&stored, fields.description));
        let snippet = match self.deadline.look() {
            true => Snippets::beginning(body, description),
            false => self.snippets.of(body, description),
        };
        let mut similar = Vec::new();
        for other in &ranked.similar {
            if self.deadline.look() {
                break;
            }
            similar.push(text(&self.document(other)?, fields.url).to_owned());
        }
        Ok(Hit {
            url: text(&stored, fields.url).to_owned(),
            title: text(&stored, fields.title).to_owned(),
            snippet,
            domain: text(&stored, fields.domain).to_owned(),
            language: text(&stored, fields.language).to_owned(),
            media: text(&stored, fields.media).to_owned(),
            date_ms: stored.get_first(fields.date).and_then(|it| it.as_i64()).unwrap_or(0),
            links: 0,
            score: ranked.candidate.found.score,
            similar,
            similar_count: ranked.similar_count,
        })
    }

    fn document(&self, candidate: &Candidate) -> Result<TantivyDocument, AnswerFailure> {
        self.searchers[candidate.shard].doc(candidate.found.at).map_err(broken)
    }
}

/// The first value of a field.
fn text(stored: &TantivyDocument, field: Field) -> &str {
    stored.get_first(field).and_then(|it| it.as_str()).unwrap_or_default()
}
