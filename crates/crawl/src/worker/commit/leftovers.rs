//! What was done at hosts and belongs to no document that could commit it: a robots.txt that
//! was answered when its run was over, or when the worker stops.
//!
//! Relies on the lease of the part, like every commit. Invariant: a request that was made is
//! in the tables before its part is given back in good order, and a batch without documents
//! keeps neither a run nor a process from its end.

use crate::worker::Worker;
use store::Result;
use store::tables::{bins, history, robots};

impl Worker {
    /// Writes what places have to say of hosts that have no documents to commit: of jobs that
    /// nobody attends to any more, or of all.
    pub(crate) fn save_leftovers(&mut self, of_all: bool) -> Result<()> {
        let (parts, jobs) = (&self.parts, &self.jobs);
        let places = self.places.with_leftovers(|place| {
            parts.is_free(place.part) && (of_all || !jobs.is_attended(place.job))
        });
        for place in places {
            let Some((hosts, history)) = self.places.leftovers(place) else { continue };
            let visits: Vec<_> = hosts.visits.values().cloned().collect();
            let (rules, rows) = (hosts.robots.clone(), history.to_vec());
            let saved = self.write_as_holder(place.part, move |tx| {
                bins::visited(tx, place.part, &visits)?;
                for stored in &rules {
                    robots::save(tx, place.part, stored)?;
                }
                history::append(tx, place.part, &rows)
            })?;
            // If the database is away it is tried again, and a part that is lost has no places.
            if saved.is_some() {
                self.places.on_leftovers_saved(place);
            }
        }
        Ok(())
    }
}
