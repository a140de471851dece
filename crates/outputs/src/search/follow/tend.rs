//! What is done for a shard when no chunk is left.
//!
//! Invariant: a step at a time, so that chunks that are committed meanwhile come first.

use super::SearchIndexConsumer;
use crate::search::shard::MergeResult;
use std::time::Duration;
use store::Result;
use store::ids::Part;
use store::tables::leases::Lease;

/// How often is looked whether the last merges have ended.
const MERGE_POLL: Duration = Duration::from_millis(20);

impl SearchIndexConsumer {
    /// Takes a step with a shard that has all chunks: what others say of its documents, then what
    /// its merges made. Whether there is more to do.
    pub(super) fn tend_shard(
        &mut self,
        part: Part,
        leases: &[Lease],
        is_last: bool,
    ) -> Result<bool> {
        let Some((shard, refresh)) = self.shards.get_mut(&part) else { return Ok(false) };
        if is_last {
            refresh.wake();
        }
        let refreshed = match &self.context.links {
            Some(links) => refresh.step(&mut shard.writer, links)?,
            None => None,
        };
        match refreshed {
            Some(0) => return Ok(true),
            Some(_) => {
                shard.publish(leases, &[])?;
                (self.published)();
                return Ok(true);
            }
            None => {}
        }
        match shard.publish_merged(leases)? {
            MergeResult::Nothing => Ok(false),
            MergeResult::Published => {
                (self.published)();
                Ok(true)
            }
            // Whoever ends now would leave both versions behind.
            MergeResult::Later if is_last => {
                std::thread::park_timeout(MERGE_POLL);
                Ok(true)
            }
            MergeResult::Later => Ok(false),
        }
    }
}
