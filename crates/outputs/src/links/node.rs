//! A URI: how many pages link to it, and its page if it was crawled.
//!
//! Invariant: a URI counts (in rankings, for its domain) while somebody links to it or it
//! is crawled. The row of one that was crawled and is gone stays, because it knows the
//! page's number; it counts for nothing.

use super::codec::{self, ByteReader};
use super::keys::{self, RankingList};
use store::Result;

const HAS_PAGE: u8 = 1;
const CRAWLED: u8 = 2;
const WIDE: u8 = 4;
const BLOCKS: u8 = 8;

/// A URI with its counts, as the index stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The URI in its row form.
    pub uri: String,
    /// How many pages link to it.
    pub incount: u64,
    /// The number of its page, if it was ever crawled.
    pub page: Option<u64>,
    /// Whether its page is there.
    pub crawled: bool,
    /// The change of the part that last gave it another count or class.
    pub seq: u64,
    /// Where its in-links are.
    pub inlinks: Inlinks,
}

/// Where the in-links of a URI are: more of them need more room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inlinks {
    /// Here, as one block; empty if there are none.
    Here(Vec<u8>),
    /// In a base and so many blocks of later edits.
    Blocks(u64),
    /// In a row each.
    Wide,
}

impl Default for Inlinks {
    fn default() -> Inlinks {
        Inlinks::Here(Vec::new())
    }
}

impl Node {
    /// Whether the URI is linked to or crawled.
    pub fn counts(&self) -> bool {
        self.incount > 0 || self.crawled
    }

    /// The list of rankings that it is in.
    pub fn class(&self) -> RankingList {
        RankingList::of(self.crawled)
    }

    /// Its rows in rankings.
    pub fn ranks(&self) -> impl Iterator<Item = Vec<u8>> {
        let of_all = self.counts().then(|| keys::rank(self.class(), self.incount, &self.uri));
        let is_one_of_many = self.incount > keys::FEW_MAX;
        let of_domain =
            is_one_of_many.then(|| keys::domain_rank(self.class(), self.incount, &self.uri));
        of_all.into_iter().chain(of_domain)
    }

    /// The bytes of the row.
    pub fn encode(&self) -> Vec<u8> {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let (form, here) = match &self.inlinks {
            Inlinks::Here(block) => (0, block.len()),
            Inlinks::Blocks(_) => (BLOCKS, 0),
            Inlinks::Wide => (WIDE, 0),
        };
        let mut out = Vec::with_capacity(self.uri.len() + here + 20);
        out.push(form | flag(self.page.is_some(), HAS_PAGE) | flag(self.crawled, CRAWLED));
        codec::put_number(&mut out, self.incount);
        codec::put_number(&mut out, self.seq);
        if let Some(number) = self.page {
            codec::put_number(&mut out, number);
        }
        match &self.inlinks {
            Inlinks::Here(block) => {
                codec::put_number(&mut out, block.len() as u64);
                out.extend_from_slice(block);
            }
            Inlinks::Blocks(blocks) => codec::put_number(&mut out, *blocks),
            Inlinks::Wide => {}
        }
        out.extend_from_slice(self.uri.as_bytes());
        out
    }

    /// Reads the bytes of a row.
    pub fn decode(bytes: &[u8]) -> Result<Node> {
        let mut reader = ByteReader::new("nodes", bytes);
        let flags = reader.byte()?;
        let (incount, seq) = (reader.number()?, reader.number()?);
        let page = (flags & HAS_PAGE != 0).then(|| reader.number()).transpose()?;
        let inlinks = match flags & (WIDE | BLOCKS) {
            0 => Inlinks::Here(reader.piece()?.to_vec()),
            BLOCKS => Inlinks::Blocks(reader.number()?),
            _ => Inlinks::Wide,
        };
        let uri = reader.rest()?.to_owned();
        Ok(Node { uri, incount, page, crawled: flags & CRAWLED != 0, seq, inlinks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_as_it_was_written() {
        for inlinks in [
            Inlinks::default(),
            Inlinks::Here(vec![1, 2, 3]),
            Inlinks::Blocks(0),
            Inlinks::Blocks(300),
            Inlinks::Wide,
        ] {
            for (page, crawled) in [(None, false), (Some(70_000), true), (Some(0), false)] {
                let uri = "com.ä>>o>/".to_owned();
                let inlinks = inlinks.clone();
                let node = Node { uri, incount: 129, page, crawled, seq: 5, inlinks };
                assert_eq!(Node::decode(&node.encode()).unwrap(), node);
            }
        }
        assert!(Node::decode(&[]).is_err() && Node::decode(&[0, 0, 0, 9]).is_err());
    }
}
