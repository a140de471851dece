//! The parts of this process: leases taken, checked before every request, and given back.
//!
//! Invariant: what is known of a part is forgotten with its lease, and it is given back in good
//! order only if every request to its hosts is in the tables.

pub mod check;
pub mod consumer_lag;
pub mod held_parts;
pub mod keeper;

use super::Worker;
use check::LeaseKey;
use consumer_lag::{BEHIND_MAX, LagNews};
use keeper::LeaseEvent;
use std::collections::BTreeSet;
use store::ids::Part;
use store::tables::{cursors, leases};
use store::{Error, Result, Tx, clock};

use super::progress::Waiter;

impl Worker {
    /// A lease came, went, or is wanted back.
    pub(super) fn on_lease(&mut self, event: LeaseEvent) {
        match event {
            LeaseEvent::Held { lease, clean } => {
                self.parts.on_held(lease, clean, clock::now_ms());
                self.repace_all();
                self.schedule.want();
            }
            LeaseEvent::Lost(part) => self.lose(part),
            LeaseEvent::Leave(part) => {
                self.parts.on_leave(part);
                for item in self.frontier.forget(part, None) {
                    self.give_back(part, item);
                }
            }
            LeaseEvent::Replaced => self.control.on_replaced(),
        }
    }

    /// Forgets everything of a part that is somebody else's now.
    pub(super) fn lose(&mut self, part: Part) {
        if !self.parts.remove(part) {
            return;
        }
        let waiting = self.frontier.forget(part, None).len();
        let uncommitted = self.places.forget_part(part);
        self.frontier.committed(waiting + uncommitted);
        self.repace_all();
        self.hosts.forget(part);
        self.links.forget_part(part);
        // Links of lost batches were never queued.
        self.links.forget_queued();
    }

    /// Gives parts back that others should have, once nothing of them is under way.
    pub(super) fn give_parts_back(&mut self) {
        for part in self.parts.leaving() {
            if !self.places.is_idle(part) || self.frontier.in_flight_in(part) > 0 {
                continue;
            }
            let in_order = self.is_in_order(part);
            self.parts.remove(part);
            self.places.forget_part(part);
            self.hosts.forget(part);
            self.links.forget_part(part);
            self.threads.give_lease_back(part, in_order);
            self.repace_all();
        }
    }

    /// Whether all that was asked of a part's hosts is in the tables.
    fn is_in_order(&self, part: Part) -> bool {
        let is_booked = !self.places.has_visits(part);
        is_booked && self.parts.is_free(part) && self.frontier.in_flight_in(part) == 0
    }

    /// The leases that are given back in good order if the worker ends now.
    pub(super) fn leases_in_order(&self) -> BTreeSet<LeaseKey> {
        let in_order = self.parts.parts().filter(|part| self.is_in_order(*part));
        in_order.filter_map(|part| self.parts.lease(part)).map(LeaseKey::from).collect()
    }

    /// Looks now and then who is behind in the parts that this process holds.
    pub(super) fn look_at_consumers(&mut self) -> Result<()> {
        let now_ms = clock::now_ms();
        let Some(look) = self.parts.begin_lag_look(now_ms) else { return Ok(()) };
        let behind = self
            .deps
            .db
            .read(move |tx| cursors::behind(tx, &look.parts, look.chunks_over, now_ms, BEHIND_MAX));
        let behind = match behind {
            // A database that is away is no news: turns wait for it, and say so.
            Err(error) if error.passes() => return Ok(()),
            behind => behind?,
        };
        match self.parts.on_lag_look(behind, now_ms) {
            Some(LagNews::Waits(what)) => {
                self.deps.progress.waits_for(Waiter::Claims, Some(what));
            }
            Some(LagNews::Over) => self.deps.progress.waits_for(Waiter::Claims, None),
            None => {}
        }
        Ok(())
    }

    /// Writes with the right of a part's holder; nothing comes of it when the part is lost,
    /// or the database is away.
    pub(super) fn write_as_holder<T: Send + 'static>(
        &mut self,
        part: Part,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let Some(lease) = self.parts.lease(part).cloned() else { return Ok(None) };
        let done = self.deps.db.write(move |tx| {
            leases::fence(tx, &lease)?;
            work(tx)
        });
        match done {
            Ok(done) => Ok(Some(done)),
            Err(Error::LeaseLost { .. }) => {
                self.lose(part);
                Ok(None)
            }
            Err(error) if error.passes() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
