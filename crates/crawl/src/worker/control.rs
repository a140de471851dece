//! Whether the worker goes on: it was asked to stop, another process took its name, or the disk
//! is almost full.
//!
//! Invariant: a worker that was asked to stop never claims again, and waits for what is under way
//! for no longer than [`STOP_MS_MAX`].

use crate::worker::CrawlEnd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a clean stop waits for requests that are under way.
const STOP_MS_MAX: i64 = 10_000;

/// Whether it goes on.
pub(super) struct RunControl {
    /// Somebody asks to stop.
    stop: Arc<AtomicBool>,
    /// Another process works under this one's name.
    is_replaced: bool,
    /// When the stop began.
    stop_since_ms: Option<i64>,
    is_disk_full: bool,
}

impl RunControl {
    /// It goes on until somebody sets the flag.
    pub fn new(stop: Arc<AtomicBool>) -> RunControl {
        RunControl { stop, is_replaced: false, stop_since_ms: None, is_disk_full: false }
    }

    /// Whether it is to end.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst) || self.is_replaced
    }

    /// Whether it waits for room on the disk.
    pub fn is_paused(&self) -> bool {
        self.is_disk_full
    }

    /// Whether documents may be claimed and asked for.
    pub fn may_claim(&self) -> bool {
        !self.is_stopping() && !self.is_paused()
    }

    /// The disk is almost full, or is not. Returns what it was.
    pub fn set_disk_full(&mut self, is_full: bool) -> bool {
        std::mem::replace(&mut self.is_disk_full, is_full)
    }

    /// Another process has taken this one's name.
    pub fn on_replaced(&mut self) {
        self.is_replaced = true;
    }

    /// From the first call on, time is counted.
    pub fn begin_drain(&mut self, now_ms: i64) {
        self.stop_since_ms.get_or_insert(now_ms);
    }

    /// Whether what is under way, or the database, has kept a clean stop waiting for long enough.
    pub fn is_overdue(&self, now_ms: i64) -> bool {
        self.stop_since_ms.is_some_and(|since_ms| now_ms - since_ms > STOP_MS_MAX)
    }

    /// How it has ended, if it has.
    pub fn ended(&self) -> CrawlEnd {
        if self.is_replaced { CrawlEnd::Replaced } else { CrawlEnd::Stopped }
    }

    /// The clock was set.
    pub fn shift(&mut self, jump_ms: i64) {
        self.stop_since_ms = self.stop_since_ms.map(|ms| ms.saturating_add(jump_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_waits_for_a_while_whatever_is_done_to_the_clock() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut control = RunControl::new(stop.clone());
        assert!(control.may_claim() && !control.is_overdue(i64::MAX));
        stop.store(true, Ordering::SeqCst);
        assert!(control.is_stopping() && !control.may_claim());
        control.begin_drain(1_000);
        control.begin_drain(2_000);
        assert!(!control.is_overdue(1_000 + STOP_MS_MAX));
        assert!(control.is_overdue(1_001 + STOP_MS_MAX), "the first call counts");
        control.shift(3_600_000);
        assert!(!control.is_overdue(3_601_000 + STOP_MS_MAX));
        assert!(control.is_overdue(3_601_001 + STOP_MS_MAX));
        assert_eq!(control.ended(), CrawlEnd::Stopped);
    }

    #[test]
    fn a_full_disk_pauses_and_another_process_of_the_same_name_ends_it() {
        let mut control = RunControl::new(Arc::default());
        assert!(!control.set_disk_full(true));
        assert!(control.is_paused() && !control.may_claim() && !control.is_stopping());
        assert!(control.set_disk_full(false));
        assert!(control.may_claim());
        control.on_replaced();
        assert!(control.is_stopping());
        assert_eq!(control.ended(), CrawlEnd::Replaced);
    }
}
