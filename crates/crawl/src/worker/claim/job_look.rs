//! Looks for the jobs that somebody attends to, and for what their connections allow.
//!
//! Invariant: a job that nobody attends to any more leaves nothing behind once its last commit is
//! done.

use crate::conduct;
use crate::frontier::HostKey;
use crate::job::JobWork;
use crate::lifecycle::JobEvent;
use crate::worker::Worker;
use crate::worker::ask::host_access::PartTerms;
use std::collections::BTreeSet;
use store::ids::{ConnectionId, Part};
use store::tables::job_states::{self, AttendedJob};
use store::tables::{connections, throttles};
use store::{Error, Result};

/// Jobs that can be attended to at once.
const JOBS_MAX: u32 = 1_000;

impl Worker {
    pub(super) fn look_for_jobs(&mut self, now_ms: i64) -> Result<()> {
        let attended = match self.load_attended(now_ms) {
            Ok(attended) => attended,
            // A database that is away is no news: turns wait for it, and say so.
            Err(error) if error.passes() => return Ok(()),
            Err(error) => return Err(error),
        };
        for job in self.jobs.retire_missing(&attended) {
            for part in self.parts.parts().collect::<Vec<Part>>() {
                for item in self.frontier.forget(part, Some(job)) {
                    self.give_back(part, item);
                }
            }
            self.frontier.forget_job(job);
        }
        self.look_at_connections(&attended)?;
        for it in attended {
            self.take_up(&it, now_ms)?;
        }
        self.save_leftovers(false)?;
        let (jobs, parts) = (&self.jobs, &self.parts);
        self.places.forget_idle(|place| {
            let has_turn = parts.has(place.part) && !parts.is_free(place.part);
            jobs.is_attended(place.job) || has_turn
        });
        let places = &self.places;
        self.jobs.forget_former(|job| places.has_job(job));
        Ok(())
    }

    /// The jobs that somebody attends to. Of several processes that attend to one job its
    /// row names one; when that one has gone, another takes its place.
    fn load_attended(&self, now_ms: i64) -> Result<Vec<AttendedJob>> {
        let heard_since_ms = now_ms - self.settings.lease_ms - self.settings.skew_ms;
        let (db, attends, node) = (&self.deps.db, self.jobs.attends(), self.deps.ids.node());
        let left = db.read(move |tx| job_states::unattended(tx, heard_since_ms, JOBS_MAX))?;
        for job in left.into_iter().filter(|job| attends.includes(*job)) {
            db.write(move |tx| job_states::attend(tx, job, node))?;
        }
        db.read(move |tx| job_states::attended(tx, heard_since_ms, JOBS_MAX))
    }

    /// Takes a job up, or takes over what has changed in its definition.
    fn take_up(&mut self, it: &AttendedJob, now_ms: i64) -> Result<()> {
        let known = self.jobs.get(it.job.id).cloned();
        if known.as_ref().is_some_and(|work| work.is_defined_as(it)) {
            return Ok(());
        }
        let unusable = self.hosts.throttling().unusable(it.job.connection);
        let work = match unusable {
            Some(reason) => Err(reason.to_owned()),
            None => JobWork::new(it, &self.deps.shared).map_err(|bad| bad.to_string()),
        };
        match work {
            Ok(work) => {
                self.places.on_job_changed(work.id);
                match known {
                    None => {
                        self.links.on_run();
                        self.places.on_run(work.id);
                        self.reread_blocked_hosts();
                    }
                    Some(known) if known.removals.released < work.removals.released => {
                        self.places.on_released(work.id);
                    }
                    Some(_) => {}
                }
                self.frontier.set_job(work.id, work.connection, work.definition.priority);
                self.jobs.attend(work);
                Ok(())
            }
            // It cannot be what it is told to be: whoever looks after it hears why.
            Err(bad) => {
                let (job, event) = (it.job.id, JobEvent::Fail(bad));
                match self.deps.db.write(move |tx| conduct::change(tx, job, &event, now_ms)) {
                    Err(Error::Refused(_)) | Ok(_) => Ok(()),
                    Err(error) if error.passes() => Ok(()),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Whoever starts a run may have closed breakers in the tables.
    fn reread_blocked_hosts(&mut self) {
        let (frontier, places) = (&self.frontier, &self.places);
        self.hosts.forget_blocked(|host| !frontier.knows(host) && !places.is_unsaved(host));
    }

    /// Looks whether the connections of jobs are what they were.
    fn look_at_connections(&mut self, attended: &[AttendedJob]) -> Result<()> {
        let used: BTreeSet<ConnectionId> = attended.iter().map(|it| it.job.connection).collect();
        self.hosts.throttling_mut().retain(&used);
        let ids: Vec<ConnectionId> = used.into_iter().collect();
        let terms = match self.deps.db.read(move |tx| connections::terms(tx, &ids)) {
            Err(error) if error.passes() => return Ok(()),
            read => read?,
        };
        for connection in self.hosts.throttling().changed(&terms) {
            let Some(it) = terms.iter().find(|it| it.connection == connection).copied() else {
                continue;
            };
            let loaded = match self.deps.db.read(move |tx| throttles::load(tx, connection)) {
                Err(error) if error.passes() => return Ok(()),
                read => read?,
            };
            self.hosts.throttling_mut().set(connection, it.version, &loaded);
            let requests_max = usize::try_from(it.maxcount).unwrap_or(usize::MAX);
            self.frontier.set_connection(connection, requests_max);
            self.repace(connection);
        }
        Ok(())
    }

    /// Tells the frontier what the bins of a connection are allowed now.
    fn repace(&mut self, connection: ConnectionId) {
        let Some(work) = self.jobs.all().find(|it| it.connection == connection).cloned() else {
            return;
        };
        let (hosts, parts) = (&mut self.hosts, &self.parts);
        let dropped = self.frontier.repace(connection, |host: HostKey| {
            let terms: PartTerms = parts.terms(host.part);
            hosts.pace(&work, host, terms)
        });
        for (host, item) in dropped {
            self.give_back(host.part, item);
        }
    }

    /// More parts are held, or fewer: bins that lie in all of them are allowed more, or
    /// less.
    pub(crate) fn repace_all(&mut self) {
        let others: BTreeSet<ConnectionId> =
            self.jobs.attended().filter(|it| it.web().is_none()).map(|it| it.connection).collect();
        for connection in others {
            self.repace(connection);
        }
    }
}
