//! Links that are known to be in the queue, so that a page's hundred links do not
//! become a hundred look-ups.
//!
//! A table of fixed size in which a newer link takes the place of an older one:
//! forgetting costs a look-up, nothing else. Invariant: a link is remembered only
//! after the commit that queued it, so what is remembered is in the queue.

use page::ids::DocHash;
use std::sync::{Arc, PoisonError, RwLock};
use store::ids::JobId;

/// Links remembered by one process: 20 bytes each.
const LINKS_MAX: usize = 1 << 19;

#[derive(Clone, Copy, Default)]
struct KnownLinkSlot {
    key: [u8; 16],
    hops: u32,
}

/// The links of all jobs of a process, in their present runs. Copies are the same table.
#[derive(Clone)]
pub struct KnownLinks {
    slots: Arc<RwLock<Vec<KnownLinkSlot>>>,
}

impl Default for KnownLinks {
    fn default() -> KnownLinks {
        KnownLinks { slots: Arc::new(RwLock::new(vec![KnownLinkSlot::default(); LINKS_MAX])) }
    }
}

impl KnownLinks {
    /// Whether a link is queued already, at this distance or nearer.
    pub fn has(&self, job: JobId, dochash: DocHash, hops: i64) -> bool {
        let key = key_of(job, dochash);
        let slot = self.slots.read().unwrap_or_else(PoisonError::into_inner)[place_of(&key)];
        slot.key == key && i64::from(slot.hops) <= hops
    }

    /// A link was queued, and that is committed.
    pub fn remember(&self, job: JobId, dochash: DocHash, hops: i64) {
        let key = key_of(job, dochash);
        let hops = u32::try_from(hops).unwrap_or(u32::MAX);
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots[place_of(&key)] = KnownLinkSlot { key, hops };
    }

    /// A link is not queued any more: its row was taken out.
    pub fn forget(&self, job: JobId, dochash: DocHash) {
        let key = key_of(job, dochash);
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut slots[place_of(&key)];
        if slot.key == key {
            *slot = KnownLinkSlot::default();
        }
    }

    /// Forgets everything: another run begins, or rows were taken out of the queue.
    pub fn clear(&self) {
        self.slots.write().unwrap_or_else(PoisonError::into_inner).fill(KnownLinkSlot::default());
    }
}

/// What a document that is named as a requisite is remembered by: that says nothing of whether
/// it was named as a page.
pub fn as_requisite(dochash: DocHash) -> DocHash {
    DocHash(dochash.0.map(|byte| !byte))
}

/// The document's key, different for each job. A document hash is as good as random,
/// so mixing in the job keeps it so.
fn key_of(job: JobId, dochash: DocHash) -> [u8; 16] {
    let mut key = dochash.0;
    let mixed = job.0.cast_unsigned().wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (byte, mix) in key.iter_mut().zip(mixed.to_le_bytes()) {
        *byte ^= mix;
    }
    key
}

fn place_of(key: &[u8; 16]) -> usize {
    let mut last = [0; 8];
    last.copy_from_slice(&key[8..]);
    // The table is smaller than any usize.
    usize::try_from(u64::from_le_bytes(last) % LINKS_MAX as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_known_to_its_job_at_its_distance_or_farther() {
        let known = KnownLinks::default();
        let link = DocHash::of("http://a.example/");
        assert!(!known.has(JobId(1), link, 5));
        known.remember(JobId(1), link, 3);
        assert!(known.has(JobId(1), link, 3) && known.has(JobId(1), link, 9));
        assert!(!known.has(JobId(1), link, 2), "a shorter path is news");
        assert!(!known.has(JobId(2), link, 3), "another job has its own queue");
        known.forget(JobId(2), link);
        assert!(known.has(JobId(1), link, 3));
        known.forget(JobId(1), link);
        assert!(!known.has(JobId(1), link, 3));
        known.remember(JobId(1), link, 3);
        known.clear();
        assert!(!known.has(JobId(1), link, 3));
    }

    #[test]
    fn a_full_table_forgets_but_is_never_wrong() {
        let known = KnownLinks::default();
        let link = |number: usize| DocHash::of(&number.to_string());
        for number in 0..2 * LINKS_MAX {
            known.remember(JobId(1), link(number), 0);
        }
        let kept =
            (0..2 * LINKS_MAX).filter(|number| known.has(JobId(1), link(*number), 0)).count();
        assert!(kept <= LINKS_MAX && kept > LINKS_MAX / 2, "{kept}");
        assert!((0..1_000).all(|number| !known.has(
            JobId(1),
            DocHash::of(&format!("x{number}")),
            9
        )));
    }
}
