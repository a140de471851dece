//! A map in memory, which a test can have many of: it keeps the promises of the real ones,
//! and changes all parts at once or one at a time, as it is asked to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use store::Result;
use store::ids::Part;
use store::sorted::{
    BulkReplacement, Pair, Row, SortedMap, SortedRows, Span, View, ViewReader, Work,
};
use store::tables::leases::Lease;

/// Rows by part and key.
type Rows = BTreeMap<(Part, Vec<u8>), Vec<u8>>;

pub(super) struct InMemory {
    rows: Mutex<Rows>,
    spans_parts: bool,
}

/// An empty map.
pub(in crate::links::tests) fn in_memory(spans_parts: bool) -> Arc<dyn SortedMap> {
    Arc::new(InMemory { rows: Mutex::default(), spans_parts })
}

struct Moment<'a>(&'a Rows);

impl View for Moment<'_> {
    fn get_many(&self, part: Part, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(keys.iter().map(|key| self.0.get(&(part, key.clone())).cloned()).collect())
    }

    fn scan(&self, part: Part, span: &Span, limit: usize) -> Result<Vec<Pair>> {
        if span.from >= span.to {
            return Ok(Vec::new());
        }
        let rows = self.0.range((part, span.from.clone())..(part, span.to.clone()));
        let rows = rows.map(|((_, key), value)| (key.clone(), value.clone()));
        Ok(match span.backwards {
            false => rows.take(limit).collect(),
            true => rows.rev().take(limit).collect(),
        })
    }
}

impl SortedMap for InMemory {
    fn spans_parts(&self) -> bool {
        self.spans_parts
    }

    fn change(&self, own: Part, _: Option<&Lease>, work: Work) -> Result<()> {
        let mut rows = self.rows.lock().unwrap();
        for Row { part, key, value } in work(&Moment(&rows))? {
            assert!(self.spans_parts || part == own, "a change of {own} writes to {part}");
            match value {
                Some(value) => rows.insert((part, key), value),
                None => rows.remove(&(part, key)),
            };
        }
        Ok(())
    }

    fn look(&self, mut look: ViewReader) -> Result<()> {
        look(&Moment(&self.rows.lock().unwrap()))
    }

    fn replace(&self, what: &BulkReplacement<'_>, stream: &mut SortedRows<'_>) -> Result<()> {
        let mut rows = self.rows.lock().unwrap();
        rows.retain(|(_, key), _| what.families.iter().all(|family| key[0] != family.byte));
        while let Some(Row { part, key, value }) = stream()? {
            rows.insert((part, key), value.unwrap_or_default());
        }
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        Ok(0)
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }
}
