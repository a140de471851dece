//! Documents by how many link to them now.
//!
//! Most are judged by what the index was told of them ([`crate::search::indexed_links`]);
//! where that does not decide it, the link index is asked. Invariant: it is asked for at most
//! [`LOOKED_MAX`] documents for a question, a few at a time; beyond that, what was told
//! decides. When time is over it is asked no more, and nothing more is found.

use super::InLinks;
use super::answer::AnswerFailure;
use super::deadline::Deadline;
use super::parse::{Filter, QueryNode};
use crate::search::indexed_links::{Columns, Target, now_between};
use std::collections::HashMap;
use std::sync::Arc;
use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED};

/// Documents that are looked up for a question.
const LOOKED_MAX: usize = 50_000;
/// Documents that are looked up between two looks at the clock.
const LOOKED_STEP: usize = 1_000;

/// The least and the most in-links that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkRange {
    pub least: u64,
    pub most: u64,
}

impl LinkRange {
    fn has(self, count: u64) -> bool {
        (self.least..=self.most).contains(&count)
    }
}

/// The documents of every segment that have as many in-links as is asked for.
#[derive(Debug, Clone, Default)]
pub struct LinkRangeDocs {
    by_range: HashMap<LinkRange, Arc<BySegment>>,
}

type BySegment = HashMap<SegmentId, Vec<DocId>>;

impl LinkRangeDocs {
    /// Finds them for all that a question asks.
    pub fn find(
        node: &QueryNode,
        searchers: &[&Searcher],
        in_links: InLinks<'_>,
        deadline: &Deadline,
    ) -> Result<LinkRangeDocs, AnswerFailure> {
        let mut ranges = Vec::new();
        collect_ranges(node, &mut ranges);
        let (mut found, mut left) = (LinkRangeDocs::default(), LOOKED_MAX);
        for range in ranges {
            let mut by_segment = BySegment::new();
            for reader in searchers.iter().flat_map(|it| it.segment_readers()) {
                if deadline.look() {
                    break;
                }
                let (docs, looked) = of_segment(reader, range, in_links, left, deadline)?;
                left -= looked;
                by_segment.insert(reader.segment_id(), docs);
            }
            found.by_range.insert(range, Arc::new(by_segment));
        }
        Ok(found)
    }

    /// The query for a range.
    pub fn query(&self, range: LinkRange) -> Box<dyn Query> {
        Box::new(ByLinks { docs: self.by_range.get(&range).cloned().unwrap_or_default() })
    }
}

/// The ranges that a question asks for.
fn collect_ranges(node: &QueryNode, ranges: &mut Vec<LinkRange>) {
    match node {
        QueryNode::All(nodes) | QueryNode::Any(nodes) => {
            nodes.iter().for_each(|it| collect_ranges(it, ranges))
        }
        QueryNode::Not(inner) => collect_ranges(inner, ranges),
        QueryNode::Filter(Filter::Links(least, most)) => {
            let range = LinkRange { least: *least, most: *most };
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        }
        QueryNode::Filter(_) | QueryNode::Words(..) | QueryNode::Beginning(..) => {}
    }
}

/// The documents of a segment, and how many were looked up.
fn of_segment(
    reader: &SegmentReader,
    range: LinkRange,
    in_links: InLinks<'_>,
    looked_max: usize,
    deadline: &Deadline,
) -> Result<(Vec<DocId>, usize), AnswerFailure> {
    let columns = Columns::of(reader);
    let (mut docs, mut open) = (Vec::new(), Vec::new());
    for doc in reader.doc_ids_alive() {
        let indexed = columns.as_ref().map_or(0, |it| it.links(doc));
        let (at_least, at_most) = now_between(indexed);
        let is_in = range.least <= at_least && at_most <= range.most;
        let is_out = at_most < range.least || range.most < at_least;
        if is_in || (!is_out && open.len() >= looked_max && range.has(indexed)) {
            docs.push(doc);
        } else if !is_out && open.len() < looked_max {
            open.push(doc);
        }
    }
    let mut looked = 0;
    for some in open.chunks(LOOKED_STEP) {
        if deadline.look() {
            break;
        }
        looked += some.len();
        let target = |doc: &DocId| columns.as_ref().and_then(|it| it.target(*doc));
        let targets: Vec<Option<Target>> = some.iter().map(target).collect();
        let is_right = |(_, count): &(&DocId, u64)| range.has(*count);
        let counts = in_links(&targets)?;
        docs.extend(some.iter().zip(counts).filter(is_right).map(|(doc, _)| *doc));
    }
    docs.sort_unstable();
    Ok((docs, looked))
}

/// A query that finds documents that are known already.
#[derive(Debug, Clone)]
struct ByLinks {
    docs: Arc<BySegment>,
}

impl Query for ByLinks {
    fn weight(&self, _scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for ByLinks {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let docs = self.docs.get(&reader.segment_id()).cloned().unwrap_or_default();
        Ok(Box::new(SortedDocs { docs, at: 0, boost }))
    }

    fn explain(&self, _reader: &SegmentReader, _doc: DocId) -> tantivy::Result<Explanation> {
        Ok(Explanation::new("by the number of its in-links", 1.0))
    }
}

/// Documents in their order.
struct SortedDocs {
    docs: Vec<DocId>,
    at: usize,
    boost: Score,
}

impl DocSet for SortedDocs {
    fn advance(&mut self) -> DocId {
        self.at += 1;
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let left = self.docs.get(self.at..).unwrap_or_default();
        self.at += left.partition_point(|doc| *doc < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.docs.get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn size_hint(&self) -> u32 {
        u32::try_from(self.docs.len()).unwrap_or(u32::MAX)
    }
}

impl Scorer for SortedDocs {
    fn score(&mut self) -> Score {
        self.boost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::indexed_links::is_worth_it;
    use crate::search::schema::{Fields, analysers};
    use page::ids::DocHash;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::time::{Duration, Instant};
    use store::ids::Part;
    use tantivy::collector::DocSetCollector;
    use tantivy::{Index, IndexWriter, TantivyDocument};

    /// An index of documents that were told a number of in-links each, in segments.
    fn index(indexed: &[u64], fields: &Fields) -> Index {
        let made = Index::builder().schema(fields.schema.clone()).tokenizers(analysers());
        let index = made.create_in_ram().unwrap();
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        for (number, indexed) in indexed.iter().enumerate() {
            let mut document = TantivyDocument::default();
            document.add_u64(fields.links, *indexed);
            document.add_u64(fields.home, 3);
            document.add_bytes(fields.target, &hash(number).0);
            writer.add_document(document).unwrap();
            if number % 7 == 6 {
                writer.commit().unwrap();
            }
        }
        writer.commit().unwrap();
        index
    }

    fn hash(number: usize) -> DocHash {
        DocHash::of(&number.to_string())
    }

    fn number_of(numbers: usize, target: &Option<Target>) -> usize {
        let (part, wanted) = target.unwrap();
        assert_eq!(part, Part(3));
        (0..numbers).find(|number| hash(*number) == wanted).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn documents_are_found_by_the_links_they_have_now(
            indexed in prop::collection::vec((0u64..60, 0u64..200), 1..30),
            (least, more) in (0u64..80, 0u64..200),
        ) {
            // Whose number is too far from what was told has been indexed anew.
            let now: Vec<u64> = indexed.iter().map(|(_, now)| *now).collect();
            let indexed: Vec<u64> = indexed.iter().map(|(indexed, now)| {
                if is_worth_it(*indexed, *now) { *now } else { *indexed }
            }).collect();
            let fields = Fields::default();
            let index = index(&indexed, &fields);
            let searcher = index.reader().unwrap().searcher();
            let looked = Cell::new(0);
            let in_links = |targets: &[Option<Target>]| {
                looked.set(looked.get() + targets.len());
                Ok(targets.iter().map(|it| now[number_of(now.len(), it)]).collect())
            };
            let most = if more > 150 { u64::MAX } else { least + more };
            let node = QueryNode::Filter(Filter::Links(least, most));
            let deadline = Deadline::new(Instant::now() + Duration::from_secs(60));
            let linked = LinkRangeDocs::find(&node, &[&searcher], &in_links, &deadline).unwrap();
            let found = searcher.search(&linked.query(LinkRange { least, most }), &DocSetCollector).unwrap();
            let right = now.iter().filter(|it| (least..=most).contains(it)).count();
            prop_assert_eq!(found.len(), right);
            prop_assert!(looked.get() <= indexed.len());
            // When time is over, nobody is asked.
            let over = Deadline::new(Instant::now());
            let refuses = |_: &[Option<Target>]| panic!("there is no time");
            let linked = LinkRangeDocs::find(&node, &[&searcher], &refuses, &over).unwrap();
            let found = searcher.search(&linked.query(LinkRange { least, most }), &DocSetCollector).unwrap();
            prop_assert!(found.is_empty() && over.is_over());
        }
    }

    #[test]
    fn what_is_listed_can_be_sought() {
        let mut listed = SortedDocs { docs: vec![2, 5, 9], at: 0, boost: 1.0 };
        assert_eq!((listed.doc(), listed.seek(5), listed.seek(6)), (2, 5, 9));
        assert_eq!((listed.advance(), listed.advance()), (TERMINATED, TERMINATED));
        assert_eq!((listed.seek(TERMINATED), listed.size_hint()), (TERMINATED, 3));
    }
}
