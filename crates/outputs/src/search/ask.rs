//! Answers questions: from what people write to pages of hits.
//!
//! In the order of the flow: [`parse`] reads the [question](answer), [`in_links`] finds what
//! has as many in-links as it asks for, [`plan`] makes a query of it, [`find`] finds the best
//! in every shard, which [`gather`] gathers segment by segment; [`ranking`] orders them, looks
//! up their in-links and folds near-duplicates, and more are found until the page is full;
//! [`show`] loads what is on it, with its [`snippets`]. If little was found, [`suggest`]
//! knows a better spelling. [`deadline`] keeps the time of all this.
//!
//! Invariants: an answer is of one state of the index; everything is bounded: clauses, time
//! ([`TIME_MAX`]), depth ([`DEPTH_MAX`]), and what is looked at for a page
//! ([`CANDIDATES_MAX`]); what a bound has cut off is said.

pub mod answer;
mod cursor;
pub mod deadline;
mod find;
pub mod gather;
mod in_links;
pub mod parse;
pub mod plan;
mod prefix;
mod ranking;
mod show;
mod snippets;
mod suggest;

use super::access::{ReaderAccess, TOKENS_MAX, visible_to};
use super::indexed_links::Target;
use super::schema::{CONNECTION, Fields};
use super::server::Shards;
use cursor::{from_cursor, to_cursor};
use deadline::Deadline;
use find::Finder;
use gather::Gather;
use in_links::LinkRangeDocs;
use parse::{QueryNode, QuestionRefusal};
use plan::{QueryPlanner, Weights};
use ranking::{RankedHit, Ranking, RankingRules};
use show::Pages;
use snippets::Snippets;
use std::path::Path;
use std::time::{Duration, Instant};
use store::ids::ConnectionId;
use store::tables::cursors::Lag;
use tantivy::Searcher;
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, Query};

pub use answer::{Answer, AnswerFailure, Facet, Hit, Question};
pub use snippets::SnippetFragment;

/// The longest a question may take.
pub const TIME_MAX: Duration = Duration::from_secs(2);
/// Of five pieces of that time, those in which hits are found. The rest is for showing them.
const FIND_FIFTHS: u32 = 4;
/// Hits that can be reached at most.
pub const DEPTH_MAX: usize = 10_000;
/// Hits of a page at most.
pub const PAGE_MAX: usize = 100;
/// The best whose in-links are looked up for their order; and how many more are found than a
/// page needs, since near-duplicates among them are folded.
const WINDOW: usize = 200;
/// How many times as many are found when too many were folded.
const WINDOW_GROWTH: usize = 8;
/// Hits that are looked at for a page, near-duplicates included: they fit into a few
/// megabytes, and are ordered in a fraction of the time a question has.
pub const CANDIDATES_MAX: usize = 100_000;
/// A question that finds less than this is told of a better spelling.
const FEW: u64 = 3;

/// In-links of documents, by where the link index has them, looked up when they are asked for.
pub type InLinks<'a> = &'a dyn Fn(&[Option<Target>]) -> store::Result<Vec<u64>>;

/// Answers questions about one state of the index.
#[allow(missing_docs)]
pub struct IndexSearcher<'a> {
    pub shards: &'a Shards,
    pub fields: &'a Fields,
    /// What hits are worth.
    pub weights: Weights,
    /// Who links to what.
    pub in_links: InLinks<'a>,
    /// Connections whose documents an authority group secures, for a question with tokens.
    pub secured: &'a [ConnectionId],
    /// How far this state is behind the crawl.
    pub lag: Lag,
}

/// How much is done for a question.
#[derive(Debug, Clone, Copy)]
pub struct SearchLimits {
    /// The time it has.
    pub time: Duration,
    /// Hits that are looked at for a page, near-duplicates included.
    pub candidates: usize,
}

impl Default for SearchLimits {
    fn default() -> SearchLimits {
        SearchLimits { time: TIME_MAX, candidates: CANDIDATES_MAX }
    }
}

/// What was found for a page.
struct FoundPage {
    total: u64,
    is_relaxed: bool,
    facets: Vec<Facet>,
    page: Vec<RankedHit>,
    /// In-links of the page's hits.
    links: Vec<u64>,
    /// Hits that are known, near-duplicates folded, from the first one on.
    known: usize,
    /// Whether these are all there are.
    is_all: bool,
}

/// Hits that are wanted.
#[derive(Clone, Copy)]
struct HitRange {
    from: usize,
    limit: usize,
    candidates: usize,
}

impl HitRange {
    /// Behind the last of them.
    fn end(self) -> usize {
        self.from + self.limit
    }
}

impl IndexSearcher<'_> {
    /// Answers a question with a page of hits, its facets and how far the index is behind.
    pub fn answer(&self, question: &Question) -> Result<Answer, AnswerFailure> {
        self.answer_within(question, SearchLimits::default())
    }

    /// Answers a question with other limits than usual.
    pub fn answer_within(
        &self,
        question: &Question,
        limits: SearchLimits,
    ) -> Result<Answer, AnswerFailure> {
        let began = Instant::now();
        let node = parse::parse(&question.text)?;
        if question.tokens.as_ref().is_some_and(|tokens| tokens.len() > TOKENS_MAX) {
            return Err(QuestionRefusal::TooManyTokens(TOKENS_MAX).into());
        }
        let from = from_cursor(question)?;
        let limit = question.limit.clamp(1, PAGE_MAX).min(DEPTH_MAX - from);
        let wanted = HitRange { from, limit, candidates: limits.candidates };
        let finding = Deadline::new(began + limits.time * FIND_FIFTHS / 5);
        let whole = Deadline::new(began + limits.time);
        let searchers: Vec<&Searcher> = self.shards.searchers().collect();
        let found = self.find(question, &node, wanted, &finding)?;
        let snippets = Snippets::new(self, &node, &whole)?;
        let (fields, deadline) = (self.fields, &whole);
        let pages = Pages { searchers: &searchers, fields, snippets: &snippets, deadline };
        let hits = pages.hits(&found.page, &found.links)?;
        let is_few = found.total < FEW || found.is_relaxed;
        let suggestion = match is_few && !whole.look() {
            true => suggest::better(self, question, &node, &whole)?,
            false => None,
        };
        let end = from + hits.len();
        let has_more = found.known > end || !found.is_all;
        let ran_out = finding.is_over() || whole.is_over();
        let goes_on = !hits.is_empty() && end < DEPTH_MAX && (found.known > end || ran_out);
        Ok(Answer {
            total: found.total,
            is_partial: !finding.is_kept() || !whole.is_kept(),
            is_relaxed: found.is_relaxed,
            hits,
            facets: found.facets,
            suggestion,
            next: (has_more && goes_on).then(|| to_cursor(question, end)),
            has_more,
            behind_chunks: self.lag.behind_chunks,
            behind_ms: self.lag.behind_ms,
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Finds a page of hits.
    fn find(
        &self,
        question: &Question,
        node: &QueryNode,
        wanted: HitRange,
        deadline: &Deadline,
    ) -> Result<FoundPage, AnswerFailure> {
        let searchers: Vec<&Searcher> = self.shards.searchers().collect();
        let linked = LinkRangeDocs::find(node, &searchers, self.in_links, deadline)?;
        let plan = QueryPlanner::new(self.fields, self.weights, &linked, deadline);
        let finder = |is_strict| {
            let query = self.seen_by(question, plan.query(node, is_strict));
            Finder::new(self.searchers_of(question), &searchers, query, deadline)
        };
        let end = wanted.end();
        let window = if end < WINDOW { WINDOW } else { end + WINDOW };
        let gather = self.gather(question, window);
        let mut finding = finder(true)?;
        let mut matches = finding.find(&gather)?;
        let mut is_relaxed = false;
        if matches.gathered.total == 0 && matches!(node, QueryNode::All(_)) && !deadline.look() {
            finding = finder(false)?;
            matches = finding.find(&gather)?;
            is_relaxed = matches.gathered.total > 0;
        }
        let rules = RankingRules {
            order: question.order,
            links_weight: self.weights.links,
            duplicates: question.duplicates,
            in_links: self.in_links,
            deadline,
        };
        let mut ranking = Ranking::new(&searchers, rules);
        ranking.extend(&matches.best)?;
        widen(&finding, &mut ranking, gather, wanted, matches.gathered.total, deadline)?;
        let page: Vec<RankedHit> =
            ranking.kept().iter().skip(wanted.from).take(wanted.limit).cloned().collect();
        let total = matches.gathered.total;
        Ok(FoundPage {
            total,
            is_relaxed,
            facets: if question.facets { answer::facets(&matches.gathered) } else { Vec::new() },
            links: ranking.links_of(&page)?,
            page,
            known: ranking.kept().len(),
            is_all: ranking.added() as u64 >= total && !deadline.is_over(),
        })
    }

    fn gather(&self, question: &Question, window: usize) -> Gather {
        let (order, has_facets) = (question.order, question.facets);
        Gather { window, order, links: self.weights.links, has_facets }
    }

    /// The shards that a question is asked of, with their numbers.
    fn searchers_of(&self, question: &Question) -> impl Iterator<Item = (usize, &Searcher)> {
        let is_restricted = question.tokens.is_some();
        // A shard of an older make does not say whose documents are secured.
        let is_asked = move |searcher: &Searcher| {
            !is_restricted || searcher.schema().get_field(CONNECTION).is_ok()
        };
        self.shards.searchers().enumerate().filter(move |(_, searcher)| is_asked(searcher))
    }

    /// What a question may find, if that is not everything.
    fn visible(&self, question: &Question) -> Option<Box<dyn Query>> {
        let tokens = question.tokens.as_ref()?;
        let reader = ReaderAccess { tokens, secured: self.secured };
        Some(Box::new(ConstScoreQuery::new(visible_to(&reader, self.fields), 0.0)))
    }

    /// A query, for what its reader may see.
    fn seen_by(&self, question: &Question, query: Box<dyn Query>) -> Box<dyn Query> {
        match self.visible(question) {
            None => query,
            Some(visible) => {
                Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, visible)]))
            }
        }
    }
}

/// Finds more until one hit more is known than the page needs, near-duplicates folded, or
/// there are no more than `total`, or as many were looked at as may be.
fn widen(
    finder: &Finder<'_>,
    ranking: &mut Ranking<'_>,
    gather: Gather,
    wanted: HitRange,
    total: u64,
    deadline: &Deadline,
) -> Result<(), AnswerFailure> {
    let mut gather = Gather { has_facets: false, ..gather };
    let is_open = |ranking: &Ranking<'_>| {
        ranking.kept().len() <= wanted.end() && (ranking.added() as u64) < total
    };
    while is_open(ranking) && gather.window < wanted.candidates && !deadline.look() {
        gather.window = (gather.window * WINDOW_GROWTH).min(wanted.candidates);
        let wider = finder.find(&gather)?;
        // If it was cut off, others may be better than what it has found.
        if deadline.is_over() {
            break;
        }
        ranking.extend(&wider.best)?;
    }
    Ok(())
}

/// What the library says, in our words.
fn broken(error: tantivy::TantivyError) -> AnswerFailure {
    AnswerFailure::Store(super::writer::failed(Path::new("the search index"), error))
}
