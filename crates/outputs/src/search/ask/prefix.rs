//! Documents with a word that begins in a certain way.
//!
//! The documents of all such words are collected before the first is found, since one may
//! have many of them. Invariants: the clock is looked at while that is done, and when time is
//! over it ends at once; of a field of a segment at most so many words are taken as is said,
//! the first in their order, and whoever asks hears that others were left out.

use super::deadline::Deadline;
use tantivy::query::{
    BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{BitSet, DocId, Score, SegmentReader, TantivyError};

/// Words that a beginning stands for in a field of a segment: more than a language has with
/// the same two letters.
pub const BEGINNING_WORDS_MAX: usize = 50_000;
/// Words between two looks at the clock.
const WORDS_A_LOOK: usize = 256;
/// Blocks of documents of a word between two looks at the clock.
const BLOCKS_A_LOOK: usize = 64;

/// The query. It is its own weight, for it needs no statistics.
#[derive(Debug, Clone)]
pub struct PrefixQuery {
    /// Where words are looked for.
    pub field: Field,
    /// How they begin; at least one letter.
    pub letters: String,
    /// Words that are taken at most.
    pub words_max: usize,
    /// The time it has.
    pub deadline: Deadline,
}

impl Query for PrefixQuery {
    fn weight(&self, _scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl PrefixQuery {
    fn documents(&self, reader: &SegmentReader) -> tantivy::Result<BitSet> {
        let mut documents = BitSet::with_max_value(reader.max_doc());
        let Some(end) = behind(self.letters.as_bytes()) else { return Ok(documents) };
        let inverted = reader.inverted_index(self.field)?;
        let range = inverted.terms().range().ge(&self.letters).lt(end).without_keys();
        let mut words = range.into_stream()?;
        let mut seen = 0_usize;
        while words.advance() {
            if seen == self.words_max {
                self.deadline.leave_out();
                break;
            }
            if seen.is_multiple_of(WORDS_A_LOOK) && self.deadline.look() {
                break;
            }
            seen += 1;
            let option = IndexRecordOption::Basic;
            let mut blocks = inverted.read_block_postings_from_terminfo(words.value(), option)?;
            for block in 1_usize.. {
                if blocks.docs().is_empty()
                    || block.is_multiple_of(BLOCKS_A_LOOK) && self.deadline.look()
                {
                    break;
                }
                for doc in blocks.docs() {
                    documents.insert(*doc);
                }
                blocks.advance();
            }
        }
        Ok(documents)
    }
}

impl Weight for PrefixQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let documents = BitSetDocSet::from(self.documents(reader)?);
        Ok(Box::new(ConstScorer::new(documents, boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        match self.documents(reader)?.contains(doc) {
            true => Ok(Explanation::new("a word that begins so", 1.0)),
            false => Err(TantivyError::InvalidArgument("it has no such word".to_owned())),
        }
    }
}

/// The first bytes behind all that begin with these, which are of a text.
fn behind(letters: &[u8]) -> Option<Vec<u8>> {
    let mut behind = letters.to_vec();
    *behind.last_mut()? += 1;
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::schema::{Fields, analysers};
    use std::time::{Duration, Instant};
    use tantivy::collector::Count;
    use tantivy::{Index, IndexWriter, Searcher, TantivyDocument};

    fn searcher(texts: &[&str], fields: &Fields) -> Searcher {
        let made = Index::builder().schema(fields.schema.clone()).tokenizers(analysers());
        let index = made.create_in_ram().unwrap();
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        for text in texts {
            let mut document = TantivyDocument::default();
            document.add_text(fields.body, text);
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
        index.reader().unwrap().searcher()
    }

    #[test]
    fn a_beginning_finds_all_words_that_begin_so_up_to_a_number_and_until_time_is_over() {
        let fields = Fields::default();
        let searcher = searcher(&["ab", "abc abd", "ac", "aa", "éabc 東京都", "abe ab"], &fields);
        let deadline = || Deadline::new(Instant::now() + Duration::from_secs(60));
        let found = |letters: &str, words_max, deadline: &Deadline| {
            let (field, deadline) = (fields.body, deadline.clone());
            let query = PrefixQuery { field, letters: letters.into(), words_max, deadline };
            searcher.search(&query, &Count).unwrap()
        };
        let whole = deadline();
        assert_eq!(
            (found("ab", 9, &whole), found("東", 9, &whole), found("b", 9, &whole)),
            (3, 1, 0)
        );
        assert_eq!(found("ab", 4, &whole), 3, "there are no more than four");
        assert!(whole.is_kept());
        let cut = deadline();
        assert_eq!(found("ab", 2, &cut), 3, "ab and abc");
        assert!(!cut.is_kept() && !cut.is_over(), "words are left out, and it says so");
        let over = Deadline::new(Instant::now());
        assert_eq!(found("ab", 9, &over), 0);
        assert!(over.is_over());
    }
}
