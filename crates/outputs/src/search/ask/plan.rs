//! A question as the library understands it: which fields are searched, and what a hit in
//! each of them is worth.
//!
//! Invariant: filters decide what is found, never how it ranks.

use super::deadline::{Deadline, DeadlineClause};
use super::in_links::{LinkRange, LinkRangeDocs};
use super::parse::{FieldScope, Filter, QueryNode};
use super::prefix::{BEGINNING_WORDS_MAX, PrefixQuery};
use crate::search::schema::Fields;
use std::ops::Bound;
use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, RangeQuery,
    TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

/// What a hit in a field is worth. The defaults are what the judged questions of
/// `bench/search` are answered best with.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct Weights {
    pub title: f32,
    pub headings: f32,
    pub body: f32,
    pub address: f32,
    /// 0 leaves the words of links out.
    pub anchors: f32,
    /// What words that follow each other are worth beside the words themselves.
    pub together: f32,
    /// What ten times as many in-links are worth, as a share of the score.
    pub links: f32,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            title: 4.0,
            headings: 0.5,
            body: 1.0,
            address: 1.5,
            anchors: 0.5,
            together: 0.75,
            links: 0.4,
        }
    }
}

impl Weights {
    /// The body alone, as a plain index has it.
    pub fn plain() -> Weights {
        let (title, headings, address, anchors, together, links) = Default::default();
        Weights { title, headings, body: 1.0, address, anchors, together, links }
    }
}

/// Makes queries of questions.
#[derive(Clone, Copy)]
pub struct QueryPlanner<'a> {
    fields: &'a Fields,
    weights: Weights,
    linked: &'a LinkRangeDocs,
    deadline: &'a Deadline,
    /// Words that a beginning stands for.
    beginning_words_max: usize,
}

impl<'a> QueryPlanner<'a> {
    /// With these fields, which are worth so much, for a question that has so much time.
    pub fn new(
        fields: &'a Fields,
        weights: Weights,
        linked: &'a LinkRangeDocs,
        deadline: &'a Deadline,
    ) -> QueryPlanner<'a> {
        QueryPlanner { fields, weights, linked, deadline, beginning_words_max: BEGINNING_WORDS_MAX }
    }

    /// For what is not wanted: all of its words count, or it would be found after all.
    fn negated(&self) -> QueryPlanner<'a> {
        QueryPlanner { beginning_words_max: usize::MAX, ..*self }
    }

    /// The query of a question. One that is not strict also finds what has most of the
    /// words.
    pub fn query(&self, node: &QueryNode, is_strict: bool) -> Box<dyn Query> {
        let QueryNode::All(nodes) = node else { return self.node(node) };
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut optional = 0;
        for node in nodes {
            // What is asked of a title or a URL is meant as it is written.
            let is_text = matches!(
                node,
                QueryNode::Words(FieldScope::Anywhere, _)
                    | QueryNode::Beginning(FieldScope::Anywhere, _)
            );
            let occur = match node {
                QueryNode::Not(_) => Occur::MustNot,
                _ if is_text && !is_strict => Occur::Should,
                _ => Occur::Must,
            };
            optional += usize::from(occur == Occur::Should);
            match node {
                QueryNode::Not(inner) => clauses.push((occur, self.negated().node(inner))),
                _ => clauses.push((occur, self.node(node))),
            }
        }
        if !clauses.iter().any(|(occur, _)| *occur != Occur::MustNot) {
            clauses.push((Occur::Must, Box::new(ConstScoreQuery::new(Box::new(AllQuery), 0.0))));
        }
        clauses.extend(self.together(nodes).map(|query| (Occur::Should, query)));
        if optional > 0 {
            let least = optional.div_ceil(2);
            return Box::new(BooleanQuery::with_minimum_required_clauses(clauses, least.max(1)));
        }
        Box::new(BooleanQuery::new(clauses))
    }

    fn node(&self, node: &QueryNode) -> Box<dyn Query> {
        match node {
            QueryNode::All(_) => self.query(node, true),
            QueryNode::Any(nodes) => {
                Box::new(BooleanQuery::union(nodes.iter().map(|node| self.node(node)).collect()))
            }
            QueryNode::Not(inner) => Box::new(BooleanQuery::new(vec![
                (Occur::Must, Box::new(ConstScoreQuery::new(Box::new(AllQuery), 0.0)) as _),
                (Occur::MustNot, self.negated().node(inner)),
            ])),
            QueryNode::Words(scope, words) => self.words(*scope, words),
            QueryNode::Beginning(scope, word) => self.beginning(*scope, word),
            QueryNode::Filter(filter) => Box::new(ConstScoreQuery::new(self.filter(filter), 0.0)),
        }
    }

    /// The fields of a scope, with what they are worth.
    fn searched(&self, scope: FieldScope) -> Vec<(Field, f32)> {
        let (fields, weights) = (self.fields, self.weights);
        let all = match scope {
            FieldScope::Title => vec![(fields.title, 1.0)],
            FieldScope::Address => vec![(fields.address, 1.0)],
            FieldScope::Anywhere => vec![
                (fields.body, weights.body),
                (fields.title, weights.title),
                (fields.headings, weights.headings),
                (fields.address, weights.address),
                (fields.anchors, weights.anchors),
            ],
        };
        all.into_iter().filter(|(_, weight)| *weight > 0.0).collect()
    }

    fn words(&self, scope: FieldScope, words: &[String]) -> Box<dyn Query> {
        let each = self.searched(scope).into_iter().map(|(field, weight)| {
            let query = self.exactly(field, words);
            Box::new(BoostQuery::new(query, weight)) as Box<dyn Query>
        });
        Box::new(BooleanQuery::union(each.collect()))
    }

    fn beginning(&self, scope: FieldScope, word: &str) -> Box<dyn Query> {
        let each = self.searched(scope).into_iter().map(|(field, weight)| {
            let (letters, words_max) = (word.to_owned(), self.beginning_words_max);
            let query = PrefixQuery { field, letters, words_max, deadline: self.deadline.clone() };
            Box::new(BoostQuery::new(Box::new(query), weight)) as Box<dyn Query>
        });
        Box::new(BooleanQuery::union(each.collect()))
    }

    /// The words of a question as they follow each other, which is worth something.
    fn together(&self, nodes: &[QueryNode]) -> Option<Box<dyn Query>> {
        let words: Vec<String> = nodes
            .iter()
            .filter_map(|node| match node {
                QueryNode::Words(FieldScope::Anywhere, words) => Some(words.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        if words.len() < 2 || self.weights.together <= 0.0 {
            return None;
        }
        let weights = self.weights;
        let fields = [(self.fields.title, weights.title), (self.fields.body, weights.body)];
        let each = fields.into_iter().filter(|(_, weight)| *weight > 0.0).map(|(field, weight)| {
            let query = self.exactly(field, &words);
            Box::new(BoostQuery::new(query, weight * weights.together)) as Box<dyn Query>
        });
        Some(Box::new(BooleanQuery::union(each.collect())))
    }

    fn filter(&self, filter: &Filter) -> Box<dyn Query> {
        let fields = self.fields;
        let is = |field: Field, text: &str| -> Box<dyn Query> {
            let term = Term::from_field_text(field, text);
            Box::new(TermQuery::new(term, IndexRecordOption::Basic))
        };
        match filter {
            Filter::Site(host) => is(fields.host, host),
            Filter::Domain(domain) => is(fields.domain, domain),
            Filter::Language(language) => is(fields.language, language),
            Filter::Media(media) => is(fields.media, media),
            Filter::Before(ms) => {
                let end = Bound::Excluded(Term::from_field_i64(fields.date, *ms));
                Box::new(RangeQuery::new(Bound::Unbounded, end))
            }
            Filter::After(ms) => {
                let begin = Bound::Included(Term::from_field_i64(fields.date, *ms));
                Box::new(RangeQuery::new(begin, Bound::Unbounded))
            }
            Filter::Links(least, most) => {
                self.linked.query(LinkRange { least: *least, most: *most })
            }
        }
    }

    /// Words that follow each other in a field. Those of a phrase are compared with each other
    /// when it is set up, up to the first document that has it.
    fn exactly(&self, field: Field, words: &[String]) -> Box<dyn Query> {
        let term = |word: &String| Term::from_field_text(field, word);
        let terms: Vec<Term> = words.iter().map(term).collect();
        match <[Term; 1]>::try_from(terms) {
            Ok([term]) => Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
            Err(terms) => {
                let phrase = Box::new(PhraseQuery::new(terms));
                Box::new(DeadlineClause::new(phrase, self.deadline.clone()))
            }
        }
    }
}
