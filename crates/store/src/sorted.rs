//! Sorted maps: keys and values in parts, for indexes that write at random.
//!
//! One small trait, two engines, one suite of tests: [`EmbeddedMap`] is an LSM tree in the
//! data directory (fjall), [`InRows`] is one table `(part, key, value)` in the database
//! that many machines share. The first byte of a key names its [`Family`]; keys of a
//! family lie together and compare bytewise.
//!
//! Invariants: a change is whole or not there, and durable when [`SortedMap::change`]
//! returns; of two changes of a part the second sees the first; whoever looks sees each
//! part as it was between two changes.

mod embedded;
mod in_rows;
#[cfg(test)]
mod tests;
pub mod transfer;

pub use embedded::{EmbeddedMap, MapLocation};
pub use in_rows::InRows;

use crate::ids::Part;
use crate::tables::leases::Lease;
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// A kind of rows: what they are called, and how they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The first byte of its keys.
    pub byte: u8,
    /// Its name on disk.
    pub name: &'static str,
    /// How it is read and written.
    pub habit: Habit,
}

/// How rows of a family are used, so that an engine can lay them out for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Small rows that are looked up one by one, and written often.
    Looked,
    /// Small rows that are read in order, and come and go.
    Ranked,
    /// Large rows that are written once and seldom looked up.
    Kept,
}

/// One row to be written, or to be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Row {
    pub part: Part,
    /// Its key, with the family's byte.
    pub key: Vec<u8>,
    /// What it holds; `None` removes it.
    pub value: Option<Vec<u8>>,
}

/// Keys from one to before another, all of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Span {
    pub from: Vec<u8>,
    /// The first key that is not in it any more.
    pub to: Vec<u8>,
    /// Whether the last comes first.
    pub backwards: bool,
}

impl Span {
    /// All keys that begin so.
    pub fn prefix(prefix: &[u8]) -> Span {
        Span { from: prefix.to_vec(), to: after_prefix(prefix), backwards: false }
    }

    /// The same, from the end.
    #[must_use]
    pub fn reversed(self) -> Span {
        Span { backwards: !self.backwards, ..self }
    }

    /// What is left of it behind a key, in its direction.
    #[must_use]
    pub fn behind(mut self, key: &[u8]) -> Span {
        if self.backwards {
            self.to = key.to_vec();
        } else {
            self.from = [key, &[0]].concat();
        }
        self
    }
}

/// The first key behind all that begin so.
pub fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Families are letters, so there is a byte behind every prefix.
    vec![u8::MAX]
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A part, or all, at one moment.
pub trait View {
    /// The values of these keys, in their order.
    fn get_many(&self, part: Part, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>>;

    /// Up to `limit` rows of a span, in its direction.
    fn scan(&self, part: Part, span: &Span, limit: usize) -> Result<Vec<Pair>>;

    /// The value of one key.
    fn get(&self, part: Part, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.get_many(part, &[key.to_vec()])?.pop().flatten())
    }
}

/// What a change writes, computed from what is there. It may be computed again.
pub type Work = Arc<dyn Fn(&dyn View) -> Result<Vec<Row>> + Send + Sync>;
/// Reads one consistent view of the map.
pub type ViewReader = Box<dyn FnMut(&dyn View) -> Result<()> + Send>;
/// Rows of whole families: by part, and within one each family in the order of its keys.
/// `None` at the end.
pub type SortedRows<'a> = dyn FnMut() -> Result<Option<Row>> + Send + 'a;

/// What is replaced in bulk.
#[derive(Debug, Clone, Copy)]
pub struct BulkReplacement<'a> {
    /// The families whose rows are replaced.
    pub families: &'a [Family],
    /// How many parts there are.
    pub parts: u32,
    /// The leases of the parts; a map that nobody else can change needs none.
    pub leases: &'a [Lease],
}

/// A sorted map in parts.
pub trait SortedMap: Send + Sync {
    /// Whether one change may write to several parts. If not, each part has its own,
    /// and what belongs together must be repeatable.
    fn spans_parts(&self) -> bool;

    /// Changes a part, alone among those who change it. With a lease, only while it is
    /// held.
    fn change(&self, part: Part, lease: Option<&Lease>, work: Work) -> Result<()>;

    /// Looks at what is there.
    fn look(&self, look: ViewReader) -> Result<()>;

    /// Replaces all rows of families by those of a stream, in bulk. Readers see the old
    /// ones, or the new ones: on one machine of all parts at once, else part by part.
    /// Nobody changes anything meanwhile; a part whose lease is lost stays as it is.
    fn replace(&self, what: &BulkReplacement<'_>, rows: &mut SortedRows<'_>) -> Result<()>;

    /// Bytes on the disk, as far as the engine can tell.
    fn disk_bytes(&self) -> Result<u64>;

    /// Gives back what is superseded.
    fn compact(&self) -> Result<()>;

    /// Gives back what is cheap to give back, if it has become much. Whoever changes the map
    /// calls it when there is nothing else to do; readers are not kept waiting for it.
    fn tidy(&self) -> Result<()> {
        Ok(())
    }
}

impl dyn SortedMap {
    /// Looks at what is there, and says what was seen.
    pub fn read<T: Send + 'static>(
        &self,
        look: impl Fn(&dyn View) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let seen = Arc::new(Mutex::new(None));
        let slot = seen.clone();
        self.look(Box::new(move |view| {
            let found = look(view)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            Ok(())
        }))?;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.take().ok_or_else(|| Error::invariant("a look saw nothing"))
    }
}
