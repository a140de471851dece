//! How a worker works: its limits and its rhythms.

use crate::conduct::{self, Attends};
use crate::fetch;
use crate::frontier::FrontierLimits;
use crate::worker::WorkerDeps;
use crate::worker::leases::keeper::LeaseTerms;

/// Documents asked for and not committed: what a crash repeats at most.
pub const UNCOMMITTED_MAX: usize = 200;
/// Documents claimed and not committed: enough wait for chunks to be full when they are committed.
const CLAIMED_MAX: usize = 2 * UNCOMMITTED_MAX;

/// Slow requests for each that may be under way, and how many at most: hosts that hardly answer
/// must not keep the others waiting, and claims are left for what is quick.
const SLOW_SHARE: usize = 4;
const SLOW_MAX: usize = 128;

/// How a worker works.
#[derive(Clone)]
#[allow(missing_docs)]
// tidy: wide one setting each, set together
pub struct WorkerSettings {
    /// This node's name: the same after a restart.
    pub node_name: String,
    /// How long a lease lasts.
    pub lease_ms: i64,
    /// How far the clocks of nodes may differ.
    pub skew_ms: i64,
    /// How often the tables are looked at for what others did.
    pub poll_ms: i64,
    /// Documents of a chunk.
    pub chunk_documents: usize,
    /// A chunk is committed this long after its first finished document.
    pub chunk_ms: i64,
    /// When a consumer is late that does not have a commit yet: nothing is claimed then.
    /// Without it, consumers may fall behind by a number of chunks.
    pub late: Option<Late>,
    /// Documents asked for and not committed: what a crash repeats at most.
    pub uncommitted_max: usize,
    /// Documents claimed and not committed: those, and the ones that wait in memory.
    pub claimed_max: usize,
    /// Requests under way that are not slow.
    pub in_flight_max: usize,
    /// Slow requests that are under way beside them.
    pub slow_max: usize,
    pub fetch_threads: usize,
    pub fetch: fetch::FetcherSettings,
    /// Where this process writes: work pauses while its disk is almost full.
    pub disk: Option<std::path::PathBuf>,
    /// The least room, in percent.
    pub disk_free_percent: u64,
    /// Whether it ends when no job has anything to do.
    pub until_idle: bool,
}

/// When a consumer is late, in milliseconds since the first commit that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// Consumers take all parts at once: if one is late, all parts wait.
    Together(i64),
    /// Consumers take one part after the other: each part waits for itself, and no sooner
    /// than its consumer can come round again.
    ByPart(i64),
}

impl WorkerSettings {
    /// The usual settings for so many requests at once.
    pub fn new(node_name: &str, in_flight_max: usize) -> WorkerSettings {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        WorkerSettings {
            node_name: node_name.to_owned(),
            lease_ms: 30_000,
            skew_ms: 2_000,
            poll_ms: 1_000,
            chunk_documents: 125,
            chunk_ms: 500,
            late: None,
            uncommitted_max: UNCOMMITTED_MAX,
            claimed_max: CLAIMED_MAX,
            in_flight_max: in_flight_max.min(UNCOMMITTED_MAX),
            slow_max: (SLOW_SHARE * in_flight_max).min(SLOW_MAX),
            fetch_threads: cores.clamp(1, 4).min(in_flight_max),
            fetch: fetch::FetcherSettings::default(),
            disk: None,
            disk_free_percent: 5,
            until_idle: false,
        }
    }

    /// The same with another time that a silent node keeps what it holds.
    pub fn with_lease(mut self, lease_ms: i64) -> WorkerSettings {
        self.lease_ms = lease_ms;
        self.skew_ms = self.skew_ms.min(lease_ms / 5);
        self.poll_ms = self.poll_ms.min(lease_ms / 4).max(50);
        self
    }

    /// How jobs are conducted beside the work.
    pub fn terms(&self, attends: Attends) -> conduct::Terms {
        let silence_ms = self.lease_ms + self.skew_ms;
        conduct::Terms { attends, silence_ms, poll_ms: self.poll_ms }
    }

    pub(super) fn lease_terms(&self, deps: &WorkerDeps) -> LeaseTerms {
        LeaseTerms {
            node: deps.ids.node(),
            node_name: self.node_name.clone(),
            lease_ms: self.lease_ms,
            heartbeat_ms: self.heartbeat_ms(),
            skew_ms: self.skew_ms,
            parts: deps.shared.parts,
        }
    }

    /// How much of the queue is in memory.
    pub(super) fn limits(&self) -> FrontierLimits {
        FrontierLimits {
            in_flight_max: self.in_flight_max,
            slow_max: self.slow_max,
            uncommitted_max: self.uncommitted_max,
            claimed_max: self.claimed_max,
            ahead_ms: 2 * self.chunk_ms,
        }
    }

    /// Requests under way, slow or not.
    pub(super) fn under_way_max(&self) -> usize {
        self.in_flight_max + self.slow_max
    }

    fn heartbeat_ms(&self) -> i64 {
        (self.lease_ms / 6).max(50)
    }
}
