//! Which documents of a bin are next: in the order of their arrival, and lists of documents
//! (sitemaps that an index or a robots.txt names) beside them.
//!
//! Invariant: while there are documents, lists take at most about every second place, and while
//! there are lists, documents do: neither keeps the other waiting, however many there are.

use super::{ENTRY, Entry, Place};
use crate::ids::BinId;
use crate::{Result, Tx, Value};

/// The depth of a list that is told apart from deeper ones.
const LIST_DEPTH_MAX: u8 = 64;

/// What a place in the order of a bin says of a document: 0 is no list, others are lists.
pub(super) fn depth_of(priority: f64) -> u8 {
    let depth = (0..LIST_DEPTH_MAX).find(|depth| f64::from(*depth) >= priority);
    depth.unwrap_or(LIST_DEPTH_MAX)
}

/// Of a bin, what is ready; `least` is the place in its order where to begin.
pub(super) fn ready_text(least: &str) -> String {
    format!(
        "SELECT {ENTRY} FROM queue q
         WHERE q.part = $1 AND q.jobid = $2 AND q.bin = $3 AND q.state = 'ready'
           AND q.docpriority >= {least}
           AND NOT EXISTS (SELECT 1 FROM prereqevents p JOIN events e ON e.name = p.eventname
                           WHERE p.part = q.part AND p.owner = q.id)
         ORDER BY q.docpriority, q.id LIMIT $4"
    )
}

/// Where the order of a bin begins, and where its lists do.
pub(super) const ALL: &str = "0";
pub(super) const LISTS: &str = "1";

/// The next documents of a bin that may be processed, in order. A document waits
/// while an event that it depends on is in play.
pub fn peek_ready(tx: &mut Tx<'_>, place: Place, bin: BinId, limit: u32) -> Result<Vec<Entry>> {
    let mut peek = |least: &str, limit: u32| {
        let values: [Value<'_>; 4] =
            [place.part.into(), place.job.into(), bin.into(), limit.into()];
        tx.query(&ready_text(least), &values, Entry::from_row)
    };
    let found = peek(ALL, limit)?;
    let is_full = u32::try_from(found.len()).is_ok_and(|count| count >= limit);
    let has_lists = found.last().is_some_and(|it| it.list_depth > 0);
    if !is_full || has_lists || limit == 0 {
        return Ok(found);
    }
    let lists = peek(LISTS, limit.div_ceil(2))?;
    Ok(share(found, lists))
}

/// As many as there are documents, and every second of them a list.
fn share(documents: Vec<Entry>, lists: Vec<Entry>) -> Vec<Entry> {
    let count = documents.len();
    let Some(first) = lists.first().filter(|_| count > 0) else { return documents };
    if count == 1 {
        // Whoever takes one at a time has no memory of the last. The parity of the bits of ids
        // that are given out one after the other is the same for two of them at most.
        let is_lists_turn = (documents[0].id.0 ^ first.id.0).count_ones() % 2 == 1;
        return if is_lists_turn { vec![first.clone()] } else { documents };
    }
    let mut lists = lists.into_iter();
    let mut shared = Vec::with_capacity(count + 1);
    for document in documents {
        if shared.len() >= count {
            break;
        }
        shared.push(document);
        shared.extend(lists.next());
    }
    shared.truncate(count);
    shared
}
