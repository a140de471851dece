//! How many bytes a second may be read, by all requests that share a bound.
//!
//! Whatever is read is paid for in time, and nobody reads on while something is unpaid:
//! so the average holds however large the pieces are, and waiting costs no thread.
//! Invariant: in any stretch of time no more is read than it pays for, but for the piece
//! that each request reads last.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The longest that one piece can be paid for, so that no sum is too large.
const PIECE_PAID_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A bound on bytes a second. It is shared by cloning an `Arc` of it.
#[derive(Debug)]
pub struct Bandwidth {
    bytes_per_s: u64,
    /// When all that was read is paid for.
    paid_at: Mutex<Instant>,
}

impl Bandwidth {
    /// A bound that nothing has been read under.
    pub fn new(bytes_per_s: u64) -> Bandwidth {
        Bandwidth { bytes_per_s: bytes_per_s.max(1), paid_at: Mutex::new(Instant::now()) }
    }

    /// How long nothing may be read; `None` if something may.
    pub(super) fn wait(&self) -> Option<Duration> {
        let paid_at = *self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
        Some(paid_at.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    /// So many bytes have been read.
    pub(super) fn count(&self, bytes: usize) {
        let cost = Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
        let cost = cost.unwrap_or(PIECE_PAID_MAX).min(PIECE_PAID_MAX);
        let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
        // Time in which nothing was read pays for nothing that comes later.
        *paid_at = (*paid_at).max(Instant::now()) + cost;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_who_share_a_bound_keep_it_together_and_none_is_left_out() {
        let bandwidth = Arc::new(Bandwidth::new(1_000));
        let begun = Instant::now();
        let mut readers = JoinSet::new();
        for _ in 0..4 {
            let bandwidth = bandwidth.clone();
            readers.spawn(async move {
                for _ in 0..10 {
                    while let Some(wait) = bandwidth.wait() {
                        sleep(wait).await;
                    }
                    bandwidth.count(100);
                }
            });
        }
        while readers.join_next().await.is_some() {}
        let took = begun.elapsed();
        let (least, most) = (Duration::from_millis(3_600), Duration::from_millis(4_000));
        assert!(least <= took && took <= most, "4,000 bytes took {took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_time_is_no_credit_and_the_first_piece_waits_for_nobody() {
        let bandwidth = Bandwidth::new(100);
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!(bandwidth.wait(), None);
        bandwidth.count(1_000);
        assert_eq!(bandwidth.wait(), Some(Duration::from_secs(10)));
        sleep(Duration::from_secs(10)).await;
        assert_eq!(bandwidth.wait(), None);
        let slowest = Bandwidth::new(0);
        slowest.count(usize::MAX);
        assert_eq!(slowest.wait(), Some(PIECE_PAID_MAX));
    }
}
