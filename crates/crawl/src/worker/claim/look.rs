//! Looks at the tables for what is new: jobs, bins with work, documents that fall due,
//! and the room on the disk.
//!
//! Relies on marks in the tables, so that a look costs what there is to do, not what is
//! known. Invariants: whatever becomes ready in a part that is held is found by a later
//! look, however it came there; a job that nobody attends to any more leaves nothing
//! behind once its last commit is done.

use crate::worker::Worker;
use crate::worker::progress::Waiter;
use store::{Result, clock, disk};

impl Worker {
    /// Looks at the tables for what is new: jobs, bins with work, documents that fall
    /// due. Now and then, and when there is nothing to do. Returns whether all of it has
    /// been seen.
    pub(crate) fn look(&mut self) -> Result<bool> {
        let now_ms = clock::now_ms();
        if self.control.is_stopping() || now_ms < self.next_look_ms() {
            return Ok(false);
        }
        self.schedule.begin(self.frontier.is_idle(), now_ms);
        self.look_at_disk()?;
        self.save_sessions();
        self.look_for_jobs(now_ms)?;
        self.look_at_allowances(now_ms)?;
        self.links.forget_old(self.jobs.has_continuous(), now_ms);
        self.hosts.tidy(|host| self.frontier.knows(host));
        for part in self.parts.staying() {
            self.look_at_part(part, now_ms)?;
        }
        // What was woken is ready, but in the frontier only after that other look.
        Ok(!self.schedule.is_wanted())
    }

    /// When the tables are looked at again.
    pub(super) fn next_look_ms(&self) -> i64 {
        self.schedule.next_ms(self.frontier.is_idle())
    }

    /// Pauses while the disk is almost full, and goes on by itself.
    fn look_at_disk(&mut self) -> Result<()> {
        let Some(path) = &self.settings.disk else { return Ok(()) };
        let room = disk::room(path)?;
        let needed_bytes = room.needed_bytes(self.settings.disk_free_percent);
        let was_full = self.control.set_disk_full(room.free_bytes < needed_bytes);
        if self.control.is_paused() {
            let why = format!(
                "the disk that holds {} is almost full: {} MB are free, {} MB are needed for \
                 commits and merges; the crawl continues when there is space (--min-free 0 \
                 continues until it is full)",
                path.display(),
                room.free_bytes / 1_000_000,
                needed_bytes.div_ceil(1_000_000)
            );
            self.deps.progress.waits_for(Waiter::Disk, Some(why));
        } else if was_full {
            self.deps.progress.waits_for(Waiter::Disk, None);
        }
        Ok(())
    }
}
