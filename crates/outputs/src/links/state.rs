//! How far a part is: its changes counted, its pages numbered, its chunks read.

use super::codec::{self, ByteReader};
use super::keys;
use store::Result;
use store::ids::{CommitNumber, Part};
use store::sorted::{Row, View};

/// How far a part is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartState {
    /// The last change, of whichever batch: what rows call their sequence number.
    pub seq: u64,
    /// The last batch of this part's own pages.
    pub batch: u64,
    /// The number that its next page gets.
    pub next_page: u64,
    /// The last commit of the crawl that is in the index.
    pub cursor: CommitNumber,
}

impl PartState {
    /// Reads it; all zero before the first change.
    pub fn load(view: &dyn View, part: Part) -> Result<PartState> {
        let Some(bytes) = view.get(part, &keys::state())? else { return Ok(PartState::default()) };
        let mut reader = ByteReader::new("meta", &bytes);
        Ok(PartState {
            seq: reader.number()?,
            batch: reader.number()?,
            next_page: reader.number()?,
            cursor: CommitNumber(reader.signed()?),
        })
    }

    /// The row of the map that holds it.
    pub fn row(&self, part: Part) -> Row {
        let mut value = Vec::new();
        codec::put_number(&mut value, self.seq);
        codec::put_number(&mut value, self.batch);
        codec::put_number(&mut value, self.next_page);
        codec::put_signed(&mut value, self.cursor.0);
        Row { part, key: keys::state(), value: Some(value) }
    }
}
