//! Gathers what a query finds in one pass: how many there are, the best of them, and how
//! they divide into facets.
//!
//! Invariant: what is held is the window of the best and the counters of facets; a facet
//! of which a segment has too many values is counted for the first of them only.

use std::collections::HashMap;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

/// Values of a facet that a segment counts.
const VALUES_MAX: usize = 100_000;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// What hits are ordered by, the most relevant, newest or most linked first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum SortOrder {
    #[default]
    Relevance,
    Date,
    Links,
}

/// A document that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundDocument {
    /// What it is ordered by.
    pub rank: f64,
    /// What its words are worth.
    pub score: f32,
    /// Where it is in its shard.
    pub at: DocAddress,
}

/// What a shard has for a question: the number of hits, the best of them, and facets.
#[derive(Debug, Clone, Default)]
pub struct GatheredDocuments {
    /// How many there are.
    pub total: u64,
    /// The best, best first.
    pub best: Vec<FoundDocument>,
    /// Counts of facets: domains, languages, kinds.
    pub texts: [HashMap<String, u64>; 3],
    /// Counts by the day, from 1970 on.
    pub days: HashMap<i64, u64>,
}

/// Collects the best hits and counts facets.
#[allow(missing_docs)]
pub struct Gather {
    /// How many of the best are wanted.
    pub window: usize,
    pub order: SortOrder,
    /// What ten times as many in-links are worth.
    pub links: f32,
    /// Whether facets are counted.
    pub has_facets: bool,
}

/// The facets that are texts, in order.
const TEXTS: [&str; 3] = ["domain", "language", "media"];

impl Collector for Gather {
    type Fruit = GatheredDocuments;
    type Child = OfSegment;

    fn for_segment(
        &self,
        segment: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<OfSegment> {
        let columns = reader.fast_fields();
        let mut texts = Vec::new();
        for name in TEXTS.iter().filter(|_| self.has_facets) {
            texts.push((columns.str(name)?, HashMap::new()));
        }
        Ok(OfSegment {
            segment,
            top: Top::new(self.window),
            total: 0,
            order: self.order,
            weight: self.links,
            links: columns.u64("links")?,
            dates: columns.i64("date")?,
            texts,
            days: self.has_facets.then(HashMap::new),
        })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, fruits: Vec<GatheredDocuments>) -> tantivy::Result<GatheredDocuments> {
        let mut all = GatheredDocuments::default();
        for it in fruits {
            all.add(it);
        }
        all.keep(self.window);
        Ok(all)
    }
}

impl GatheredDocuments {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: GatheredDocuments) {
        self.total += other.total;
        self.best.extend(other.best);
        for (to, from) in self.texts.iter_mut().zip(other.texts) {
            for (value, count) in from {
                *to.entry(value).or_default() += count;
            }
        }
        for (day, count) in other.days {
            *self.days.entry(day).or_default() += count;
        }
    }

    /// Sorts what was found and keeps the best `window`.
    pub fn keep(&mut self, window: usize) {
        sort(&mut self.best);
        self.best.truncate(window);
    }
}

/// Best first; of equals the one that came first.
pub fn sort(found: &mut [FoundDocument]) {
    found.sort_by(|a, b| b.rank.total_cmp(&a.rank).then(a.at.cmp(&b.at)));
}

/// How in-links move a score: a little, and the less the more there are.
pub fn with_links(score: f32, links: u64, weight: f32) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let tens = (1.0 + links as f64).log10();
    f64::from(score) * (1.0 + f64::from(weight) * tens)
}

/// Gathers in a segment.
pub struct OfSegment {
    segment: SegmentOrdinal,
    top: Top,
    total: u64,
    order: SortOrder,
    weight: f32,
    links: Column<u64>,
    dates: Column<i64>,
    texts: Vec<(Option<StrColumn>, HashMap<u64, u64>)>,
    days: Option<HashMap<i64, u64>>,
}

impl SegmentCollector for OfSegment {
    type Fruit = GatheredDocuments;

    fn collect(&mut self, doc: DocId, score: Score) {
        self.total += 1;
        #[allow(clippy::cast_precision_loss)]
        let rank = match self.order {
            SortOrder::Relevance => {
                let links = self.links.first(doc).unwrap_or(0);
                with_links(score, links, self.weight)
            }
            SortOrder::Date => self.dates.first(doc).unwrap_or(0) as f64,
            SortOrder::Links => self.links.first(doc).unwrap_or(0) as f64,
        };
        if rank > self.top.least {
            self.top.push(FoundDocument { rank, score, at: DocAddress::new(self.segment, doc) });
        }
        for (column, counts) in &mut self.texts {
            let value = column.as_ref().and_then(|column| column.ords().first(doc));
            let Some(value) = value else { continue };
            if counts.len() < VALUES_MAX || counts.contains_key(&value) {
                *counts.entry(value).or_default() += 1;
            }
        }
        if let Some(days) = &mut self.days {
            let day = self.dates.first(doc).unwrap_or(0).div_euclid(DAY_MS);
            if days.len() < VALUES_MAX || days.contains_key(&day) {
                *days.entry(day).or_default() += 1;
            }
        }
    }

    fn harvest(self) -> GatheredDocuments {
        let mut gathered = GatheredDocuments {
            total: self.total,
            best: self.top.found,
            days: self.days.unwrap_or_default(),
            ..GatheredDocuments::default()
        };
        for (to, (column, counts)) in gathered.texts.iter_mut().zip(self.texts) {
            let Some(column) = column else { continue };
            for (value, count) in counts {
                let mut text = String::new();
                if column.ord_to_str(value, &mut text).unwrap_or(false) {
                    to.insert(text, count);
                }
            }
        }
        gathered
    }
}

/// The best of many, in bounded memory.
struct Top {
    window: usize,
    found: Vec<FoundDocument>,
    /// What does not rank above this is not among them.
    least: f64,
}

impl Top {
    fn new(window: usize) -> Top {
        Top { window, found: Vec::new(), least: f64::NEG_INFINITY }
    }

    fn push(&mut self, it: FoundDocument) {
        self.found.push(it);
        if self.found.len() >= 2 * self.window.max(1) {
            sort(&mut self.found);
            self.found.truncate(self.window);
            self.least = self.found.last().map_or(f64::INFINITY, |it| it.rank);
        }
    }
}
