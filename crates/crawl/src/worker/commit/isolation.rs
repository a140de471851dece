//! Finds the document that makes commits panic, so that it fails alone.
//!
//! A commit that panics is treated as a crash of its part: the lease is given back, the
//! chunk is abandoned, and its documents are claimed again. What is kept here is who was in
//! it. Pure. Invariants: among the suspects of a job in a part is one that is to blame; they
//! become fewer with every panic, because commits are half as large; a document that commits
//! is no suspect any more; after [`PANICS_MAX`] panics whoever is left is given up.

use std::collections::{BTreeSet, HashMap};
use store::ids::QueueId;
use store::tables::queue::Place;

/// Panics of one search after which all that is left is given up: twice what halving the
/// largest batch takes.
const PANICS_MAX: u32 = 32;
/// Documents that are remembered for having been found out.
const CONDEMNED_MAX: usize = 10_000;

/// What is known of commits that panic.
#[derive(Debug, Default)]
pub(crate) struct Isolation {
    searches: HashMap<Place, PanicSearch>,
    /// Documents that are to fail when they are claimed next, and what the panic said.
    condemned: HashMap<QueueId, String>,
    /// Whether people are told of a panic that nothing has succeeded after.
    is_announced: bool,
}

/// The search for one document in a job's commits of a part.
#[derive(Debug, Default)]
struct PanicSearch {
    suspects: BTreeSet<QueueId>,
    panics: u32,
}

impl Isolation {
    /// A commit of these documents panicked.
    pub fn on_panic(&mut self, place: Place, documents: &[QueueId], message: &str) {
        if documents.is_empty() {
            return;
        }
        let search = self.searches.entry(place).or_default();
        // One of these is to blame, whoever was suspected before: the smaller set is closer.
        if search.suspects.is_empty() || documents.len() <= search.suspects.len() {
            search.suspects = documents.iter().copied().collect();
        }
        search.panics += 1;
        if search.suspects.len() > 1 && search.panics < PANICS_MAX {
            return;
        }
        if self.condemned.len() >= CONDEMNED_MAX {
            self.condemned.clear();
        }
        let search = self.searches.remove(&place).unwrap_or_default();
        self.condemned.extend(search.suspects.into_iter().map(|id| (id, message.to_owned())));
    }

    /// People are told that something panicked.
    pub fn announce(&mut self) {
        self.is_announced = true;
    }

    /// Whether people must hear that it is over, now that something has succeeded.
    pub fn take_announced(&mut self) -> bool {
        std::mem::take(&mut self.is_announced)
    }

    /// A commit of these documents succeeded.
    pub fn on_commit(&mut self, place: Place, documents: impl IntoIterator<Item = QueueId>) {
        let Some(search) = self.searches.get_mut(&place) else { return };
        for id in documents {
            search.suspects.remove(&id);
        }
        if search.suspects.is_empty() {
            self.searches.remove(&place);
        }
    }

    /// How many documents a commit may have, while somebody is searched for.
    pub fn documents_max(&self, place: Place) -> Option<usize> {
        Some((self.searches.get(&place)?.suspects.len() / 2).max(1))
    }

    /// Whether a document was found out; it is told once what the panic said.
    pub fn take_condemned(&mut self, id: QueueId) -> Option<String> {
        match self.condemned.is_empty() {
            true => None,
            false => self.condemned.remove(&id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::{JobId, Part};

    const PLACE: Place = Place { part: Part(1), job: JobId(1) };

    /// Commits documents in batches as large as allowed until none is left; those in `bad`
    /// make their batch panic. Returns those that were condemned, and how many panics it took.
    fn work_off(count: i64, bad: &[i64]) -> (Vec<i64>, usize) {
        let mut isolation = Isolation::default();
        let mut ready: Vec<QueueId> = (0..count).map(QueueId).collect();
        let (mut failed, mut panics) = (Vec::new(), 0);
        while !ready.is_empty() {
            ready.retain(|id| match isolation.take_condemned(*id) {
                Some(message) => {
                    assert_eq!(message, "bug");
                    failed.push(id.0);
                    false
                }
                None => true,
            });
            let size = isolation.documents_max(PLACE).unwrap_or(200).min(ready.len());
            let batch: Vec<QueueId> = ready.drain(..size).collect();
            if batch.iter().any(|id| bad.contains(&id.0)) {
                panics += 1;
                isolation.on_panic(PLACE, &batch, "bug");
                // They are claimed again, behind the others.
                ready.extend(batch);
            } else {
                isolation.on_commit(PLACE, batch);
            }
        }
        failed.sort_unstable();
        (failed, panics)
    }

    #[test]
    fn one_bad_document_is_found_among_many_and_fails_alone() {
        let (failed, panics) = work_off(1_000, &[617]);
        assert_eq!(failed, [617]);
        assert!(panics <= 12, "{panics}");
    }

    #[test]
    fn several_bad_documents_fail_and_all_others_are_committed() {
        for bad in [vec![0, 1, 2], vec![5, 105, 205, 305], vec![999]] {
            let (failed, panics) = work_off(1_000, &bad);
            assert_eq!(failed, bad);
            assert!(panics <= 20 * bad.len(), "{panics} for {bad:?}");
        }
    }

    #[test]
    fn a_batch_that_always_panics_ends_all_the_same() {
        let all: Vec<i64> = (0..50).collect();
        assert_eq!(work_off(50, &all).0, all);
    }

    #[test]
    fn a_search_that_comes_no_further_gives_up_whoever_is_left() {
        let mut isolation = Isolation::default();
        let batch: Vec<QueueId> = (0..10).map(QueueId).collect();
        for _ in 0..PANICS_MAX {
            assert!(isolation.take_condemned(QueueId(3)).is_none());
            isolation.on_panic(PLACE, &batch, "bug");
        }
        assert!(batch.iter().all(|id| isolation.take_condemned(*id).is_some()));
        assert_eq!(isolation.documents_max(PLACE), None);
    }
}
