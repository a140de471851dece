//! Answers questions: from what people write to pages of hits.
//!
//! In the order of the flow: [`parse`] reads the question, [`linked`] finds what has as many
//! in-links as it asks for, [`plan`] makes a query of it, [`gather`] finds the best in every shard, with statistics of the whole index, bounded in
//! time by [`bounded`]; then in-links are looked up, near-duplicates folded, and what is
//! shown gets its [`snippets`]; if little was found, [`suggest`] knows a better spelling.
//!
//! Invariants: an answer is of one state of the index; everything is bounded: clauses,
//! time ([`TIME_MAX`]), depth ([`DEPTH_MAX`]), and what is looked up for a question.

pub mod bounded;
pub mod gather;
mod linked;
pub mod parse;
pub mod plan;
mod snippets;
mod suggest;

use super::access::{Reader, TOKENS_MAX, visible_to};
use super::schema::{CONNECTION, Fields};
use super::server::Shards;
use super::told::{Columns, Target};
use bounded::{Bounded, Deadline};
use data_encoding::BASE64URL_NOPAD;
use gather::{Found, Gather, Gathered, Order, with_links};
use linked::Linked;
use parse::{Node, Refused};
use plan::{Plan, Weights};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use store::Error;
use store::ids::ConnectionId;
use tantivy::collector::Collector;
use tantivy::query::{Bm25StatisticsProvider, BooleanQuery, EnableScoring, Occur, Query};
use tantivy::schema::{Field, Value};
use tantivy::{Searcher, TantivyDocument, Term};

pub use snippets::Piece;

/// The longest a question may take.
pub const TIME_MAX: Duration = Duration::from_secs(2);
/// Hits that can be reached at most.
pub const DEPTH_MAX: usize = 10_000;
/// Hits of a page at most.
pub const PAGE_MAX: usize = 100;
/// The best that are looked at more closely: their in-links are looked up, and
/// near-duplicates among them folded.
const WINDOW: usize = 200;
/// Values that are shown of a facet.
const FACET_VALUES: usize = 10;
/// Bits in which the texts of near-duplicates may differ.
const NEAR_BITS: u32 = 3;
/// A question that finds less than this is told of a better spelling.
const FEW: u64 = 3;

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// Hits of a page.
    pub limit: usize,
    /// Where to go on.
    pub cursor: Option<String>,
    /// What comes first.
    pub order: Order,
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

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// Documents that were found.
    pub total: u64,
    /// Whether there was no time to find all.
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
    /// How long it took.
    pub took_ms: u64,
}

/// A document that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hit {
    /// Its identifier.
    pub url: String,
    /// Its title.
    pub title: String,
    /// What it says about the question.
    pub snippet: Vec<Piece>,
    /// Its domain.
    pub domain: String,
    /// Its language.
    pub language: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub media: String,
    /// When it was last modified.
    pub date_ms: i64,
    /// Who links to it.
    pub links: u64,
    /// What its words are worth.
    pub score: f32,
    /// Near-duplicates that are not shown.
    pub similar: Vec<String>,
}

/// How hits divide by one thing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Facet {
    /// What by.
    pub name: String,
    /// Values and how many have them, most first.
    pub values: Vec<(String, u64)>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The question cannot be answered.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// Something went wrong.
    #[error("{0}")]
    Store(#[from] Error),
}

/// In-links of documents, by where the link index has them, looked up when they are asked for.
pub type InLinks<'a> = &'a dyn Fn(&[Option<Target>]) -> store::Result<Vec<u64>>;

/// Answers questions about one state of the index.
pub struct Asking<'a> {
    /// The index.
    pub shards: &'a Shards,
    /// Its fields.
    pub fields: &'a Fields,
    /// What hits are worth.
    pub weights: Weights,
    /// Who links to what.
    pub in_links: InLinks<'a>,
    /// Connections whose documents an authority group secures, for a question with tokens.
    pub secured: &'a [ConnectionId],
}

/// What was found in one shard or all, with the shard.
struct InShards {
    gathered: Gathered,
    /// The shard of each of the best.
    shards: Vec<usize>,
}

impl Asking<'_> {
    /// Answers a question.
    pub fn answer(&self, question: &Question) -> Result<Answer, Failed> {
        let began = Instant::now();
        let node = parse::parse(&question.text)?;
        let limit = question.limit.clamp(1, PAGE_MAX);
        let from = from_cursor(question)?;
        if from + limit > DEPTH_MAX {
            return Err(Refused::TooFar(DEPTH_MAX).into());
        }
        let deadline = Deadline::new(began + TIME_MAX);
        let window = if from + limit < WINDOW { WINDOW } else { from + limit + WINDOW };
        let mut is_relaxed = false;
        let searchers: Vec<&Searcher> = self.shards.searchers().collect();
        let linked = Linked::find(&node, &searchers, self.in_links, &deadline)?;
        let plan = Plan { fields: self.fields, weights: self.weights, linked: &linked };
        let strict = plan.query(&node, true);
        let mut found = self.find(question, strict, window, &deadline)?;
        if found.gathered.total == 0 && matches!(node, Node::All(_)) {
            let relaxed = plan.query(&node, false);
            found = self.find(question, relaxed, window, &deadline)?;
            is_relaxed = found.gathered.total > 0;
        }
        let total = found.gathered.total;
        let facets = if question.facets { facets(&found.gathered) } else { Vec::new() };
        let hits = self.hits(question, &found)?;
        let has_more = hits.len() > from + limit;
        let next = has_more.then(|| to_cursor(question, from + limit));
        let mut hits: Vec<Ranked> = hits.into_iter().skip(from).take(limit).collect();
        let snippets = snippets::Snippets::new(self.fields, &node, self)?;
        for it in &mut hits {
            it.hit.snippet = snippets.of(&it.body, &it.description);
        }
        let is_few = total < FEW || is_relaxed;
        let suggestion = if is_few { suggest::better(self, &question.text, &node)? } else { None };
        Ok(Answer {
            total,
            is_partial: deadline.is_over(),
            is_relaxed,
            hits: hits.into_iter().map(|it| it.hit).collect(),
            facets,
            suggestion,
            next,
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Finds the best in every shard.
    fn find(
        &self,
        question: &Question,
        mut query: Box<dyn Query>,
        window: usize,
        deadline: &Deadline,
    ) -> Result<InShards, Failed> {
        if let Some(tokens) = &question.tokens {
            if tokens.len() > TOKENS_MAX {
                return Err(Refused::TooManyTokens(TOKENS_MAX).into());
            }
            let reader = Reader { tokens, secured: self.secured };
            let visible =
                tantivy::query::ConstScoreQuery::new(visible_to(&reader, self.fields), 0.0);
            query = Box::new(BooleanQuery::new(vec![
                (Occur::Must, query),
                (Occur::Must, Box::new(visible)),
            ]));
        }
        let query = Bounded::new(query, deadline.clone());
        let gather = Gather {
            window,
            order: question.order,
            links: self.weights.links,
            has_facets: question.facets,
        };
        let searchers: Vec<&Searcher> = self.shards.searchers().collect();
        let whole = Whole { searchers: &searchers };
        let mut all = InShards { gathered: Gathered::default(), shards: Vec::new() };
        let mut best: Vec<(usize, Found)> = Vec::new();
        let is_restricted = question.tokens.is_some();
        for (at, searcher) in searchers.iter().enumerate() {
            // A shard of an older make does not say whose documents are secured.
            if is_restricted && searcher.schema().get_field(CONNECTION).is_err() {
                continue;
            }
            let mut found = search(searcher, &whole, &query, &gather).map_err(broken)?;
            best.extend(std::mem::take(&mut found.best).into_iter().map(|it| (at, it)));
            all.gathered.add(found);
        }
        best.sort_by(|a, b| b.1.rank.total_cmp(&a.1.rank).then((a.0, a.1.at).cmp(&(b.0, b.1.at))));
        best.truncate(window);
        all.shards = best.iter().map(|(at, _)| *at).collect();
        all.gathered.best = best.into_iter().map(|(_, it)| it).collect();
        Ok(all)
    }

    /// The best, with their in-links looked up and near-duplicates folded.
    fn hits(&self, question: &Question, found: &InShards) -> Result<Vec<Ranked>, Failed> {
        let searchers: Vec<&Searcher> = self.shards.searchers().collect();
        let mut columns: HashMap<(usize, u32), Option<Columns>> = HashMap::new();
        let (mut hits, mut targets) = (Vec::new(), Vec::new());
        for (it, shard) in found.gathered.best.iter().zip(&found.shards) {
            let Some(searcher) = searchers.get(*shard) else { continue };
            let stored: TantivyDocument = searcher.doc(it.at).map_err(broken)?;
            hits.push(self.ranked(&stored, it));
            if targets.len() < WINDOW {
                let segment = it.at.segment_ord;
                let columns = columns
                    .entry((*shard, segment))
                    .or_insert_with(|| Columns::of(searcher.segment_reader(segment)));
                targets.push(columns.as_ref().and_then(|columns| columns.target(it.at.doc_id)));
            }
        }
        let looked_up = targets.len();
        for (it, links) in hits.iter_mut().zip((self.in_links)(&targets)?) {
            it.hit.links = links;
            #[allow(clippy::cast_precision_loss)]
            match question.order {
                Order::Relevance => it.rank = with_links(it.hit.score, links, self.weights.links),
                Order::Links => it.rank = links as f64,
                Order::Date => {}
            }
        }
        hits[..looked_up].sort_by(|a, b| b.rank.total_cmp(&a.rank));
        if question.duplicates {
            return Ok(hits);
        }
        Ok(folded(hits))
    }

    fn ranked(&self, stored: &TantivyDocument, found: &Found) -> Ranked {
        let fields = self.fields;
        let hit = Hit {
            url: text(stored, fields.url),
            title: text(stored, fields.title),
            domain: text(stored, fields.domain),
            language: text(stored, fields.language),
            media: text(stored, fields.media),
            date_ms: stored.get_first(fields.date).and_then(|it| it.as_i64()).unwrap_or(0),
            score: found.score,
            ..Hit::default()
        };
        Ranked {
            hit,
            rank: found.rank,
            simhash: stored.get_first(fields.simhash).and_then(|it| it.as_u64()).unwrap_or(0),
            body: text(stored, fields.body),
            description: text(stored, fields.description),
        }
    }
}

/// A hit before it is shown.
struct Ranked {
    hit: Hit,
    rank: f64,
    simhash: u64,
    body: String,
    description: String,
}

/// The first value of a field.
fn text(stored: &TantivyDocument, field: Field) -> String {
    stored.get_first(field).and_then(|it| it.as_str()).unwrap_or_default().to_owned()
}

/// Of near-duplicates the best is shown, and names the others.
fn folded(hits: Vec<Ranked>) -> Vec<Ranked> {
    let mut kept: Vec<Ranked> = Vec::new();
    for it in hits {
        let is_near = |other: &&mut Ranked| {
            it.simhash != 0 && (it.simhash ^ other.simhash).count_ones() <= NEAR_BITS
        };
        let in_reach = kept.len().min(WINDOW);
        match kept[..in_reach].iter_mut().find(is_near) {
            Some(other) => other.hit.similar.push(it.hit.url),
            None => kept.push(it),
        }
    }
    kept
}

fn facets(found: &Gathered) -> Vec<Facet> {
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

/// The statistics of all shards, so that what a word is worth does not depend on which
/// shard a document is in.
struct Whole<'a> {
    searchers: &'a [&'a Searcher],
}

impl Bm25StatisticsProvider for Whole<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searchers.iter().map(|it| it.total_num_tokens(field)).sum()
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.searchers.iter().map(|it| it.total_num_docs()).sum()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.searchers.iter().map(|it| Bm25StatisticsProvider::doc_freq(*it, term)).sum()
    }
}

fn search(
    searcher: &Searcher,
    whole: &Whole<'_>,
    query: &dyn Query,
    gather: &Gather,
) -> tantivy::Result<Gathered> {
    let scoring = EnableScoring::enabled_from_statistics_provider(whole, searcher);
    let weight = query.weight(scoring)?;
    let mut fruits = Vec::new();
    for (segment, reader) in (0u32..).zip(searcher.segment_readers()) {
        fruits.push(gather.collect_segment(weight.as_ref(), segment, reader)?);
    }
    gather.merge_fruits(fruits)
}

/// What the library says, in our words.
fn broken(error: tantivy::TantivyError) -> Failed {
    Failed::Store(super::writer::failed(Path::new("the search index"), error))
}

/// What a cursor is for: the same words in the same order.
fn mark(question: &Question) -> u32 {
    let text = format!("{:?} {:?} {}", question.order, question.duplicates, question.text);
    let hash = blake3::hash(text.as_bytes());
    u32::from_be_bytes([0, 1, 2, 3].map(|at| hash.as_bytes()[at]))
}

fn to_cursor(question: &Question, from: usize) -> String {
    let from = u32::try_from(from).unwrap_or(u32::MAX);
    let bytes = [mark(question).to_be_bytes(), from.to_be_bytes()].concat();
    BASE64URL_NOPAD.encode(&bytes)
}

fn from_cursor(question: &Question) -> Result<usize, Refused> {
    let Some(cursor) = &question.cursor else { return Ok(0) };
    let bytes = BASE64URL_NOPAD.decode(cursor.as_bytes()).map_err(|_| Refused::BadCursor)?;
    let bytes: [u8; 8] = bytes.try_into().map_err(|_| Refused::BadCursor)?;
    let [a, b, c, d, from @ ..] = bytes;
    if u32::from_be_bytes([a, b, c, d]) != mark(question) {
        return Err(Refused::BadCursor);
    }
    let from = usize::try_from(u32::from_be_bytes(from)).unwrap_or(usize::MAX);
    if from > DEPTH_MAX { Err(Refused::TooFar(DEPTH_MAX)) } else { Ok(from) }
}
