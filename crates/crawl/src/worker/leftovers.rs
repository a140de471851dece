//! What was done at hosts and belongs to no document that could commit it: a robots.txt that
//! was answered when its run was over, or when the worker stops.
//!
//! Relies on the lease of the part, like every commit. Invariant: a request that was made is
//! in the tables before its part is given back in good order, and a batch without documents
//! keeps neither a run nor a process from its end.

use super::Worker;
use store::Result;
use store::ids::{JobId, Part};
use store::tables::{bins, history, robots};

impl Worker {
    /// Writes what places have to say of hosts that have no documents to commit: of jobs that
    /// nobody attends to any more, or of all.
    pub(super) fn save_leftovers(&mut self, of_all: bool) -> Result<()> {
        let (parts, jobs) = (&self.parts, &self.jobs);
        let is_free = |part: &Part| parts.get(part).is_some_and(|held| !held.busy);
        let keys: Vec<(Part, JobId)> = self
            .places
            .iter()
            .filter(|((part, job), place)| {
                let is_over = of_all || !jobs.is_attended(*job);
                is_over && is_free(part) && place.is_idle() && !place.batch.visits.is_empty()
            })
            .map(|(key, _)| *key)
            .collect();
        for (part, job) in keys {
            let Some(place) = self.places.get(&(part, job)) else { continue };
            let visits: Vec<_> = place.batch.visits.values().cloned().collect();
            let (rules, rows) = (place.batch.robots.clone(), place.batch.history.clone());
            let saved = self.holding_part(part, move |tx| {
                bins::visited(tx, part, &visits)?;
                for stored in &rules {
                    robots::save(tx, part, stored)?;
                }
                history::append(tx, part, &rows)
            })?;
            // If the database is away it is tried again, and a part that is lost has no places.
            if let Some(place) = self.places.get_mut(&(part, job)).filter(|_| saved.is_some()) {
                place.batch.visits.clear();
                place.batch.robots.clear();
                place.batch.history.clear();
            }
        }
        Ok(())
    }
}
