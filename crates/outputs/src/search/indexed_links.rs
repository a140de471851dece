//! What the index was told of documents when they were indexed: where the link index has
//! them, and how many linked to them.
//!
//! A document is indexed anew when its in-links are four times as many, or a quarter
//! ([`super::refresh`]), so what the index was told bounds what is so now. Invariant:
//! [`now_between`] is right of every document that [`is_worth_it`] is not true of.

use page::ids::DocHash;
use store::ids::Part;
use tantivy::{DocId, SegmentReader};

/// How many times as many in-links, or how few, are worth indexing a document anew.
const TIMES: u64 = 4;

/// Where the link index has a document: the part and the key.
pub type Target = (Part, DocHash);

/// Whether so many in-links more, or less, are worth indexing a document anew.
pub fn is_worth_it(indexed: u64, now: u64) -> bool {
    let (less, more) = (indexed.min(now), indexed.max(now));
    less != more && more >= less.saturating_mul(TIMES).max(1)
}

/// The least and the most in-links that a document can have now, if it is not worth indexing
/// it anew.
pub fn now_between(indexed: u64) -> (u64, u64) {
    match indexed {
        0 => (0, 0),
        indexed => (indexed / TIMES + 1, indexed.saturating_mul(TIMES) - 1),
    }
}

/// What the index was told of the documents of a segment.
pub struct Columns {
    home: tantivy::columnar::Column<u64>,
    target: tantivy::columnar::BytesColumn,
    links: tantivy::columnar::Column<u64>,
}

impl Columns {
    /// `None` if the segment has no pages of the web.
    pub fn of(reader: &SegmentReader) -> Option<Columns> {
        let columns = reader.fast_fields();
        Some(Columns {
            home: columns.u64("home").ok()?,
            target: columns.bytes("target").ok()??,
            links: columns.u64("links").ok()?,
        })
    }

    /// How many linked to a document.
    pub fn links(&self, doc: DocId) -> u64 {
        self.links.first(doc).unwrap_or(0)
    }

    /// Where the link index has a document, if it is a page of the web.
    pub fn target(&self, doc: DocId) -> Option<Target> {
        let home = i64::try_from(self.home.first(doc)?).ok()?;
        let mut bytes = Vec::new();
        let value = self.target.term_ords(doc).next()?;
        self.target.ord_to_bytes(value, &mut bytes).ok()?;
        Some((Part(home), DocHash(bytes.try_into().ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_gains_a_thousand_links_is_written_a_few_times() {
        let (mut indexed, mut times) = (0, 0);
        for now in 1..=1_000 {
            if is_worth_it(indexed, now) {
                (indexed, times) = (now, times + 1);
            }
        }
        assert_eq!(times, 5, "at 1, 4, 16, 64 and 256");
        assert!(is_worth_it(5, 0) && is_worth_it(8, 2) && !is_worth_it(7, 2) && !is_worth_it(0, 0));
    }

    #[test]
    fn what_was_told_bounds_what_is_so() {
        for indexed in 0..100 {
            let (least, most) = now_between(indexed);
            let can_be: Vec<u64> = (0..1_000).filter(|now| !is_worth_it(indexed, *now)).collect();
            assert_eq!((can_be.first(), can_be.last()), (Some(&least), Some(&most)), "{indexed}");
        }
    }
}
