//! Looks at the tables for what is new: jobs, bins with work, documents that fall due,
//! and the room on the disk.
//!
//! Relies on marks in the tables, so that a look costs what there is to do, not what is
//! known. Invariants: whatever becomes ready in a part that is held is found by a later
//! look, however it came there; a job that nobody attends to any more leaves nothing
//! behind once its last commit is done.

use super::job::{Doing, JobWork};
use super::progress::Waiter;
use super::{Older, PlaceWork, Worker};
use crate::conduct;
use crate::frontier::HostKey;
use crate::hops::Spread;
use crate::lifecycle::Event;
use crate::stored_times;
use std::collections::HashMap;
use store::ids::{BinId, JobId, Part};
use store::tables::bins::{self, Bin};
use store::tables::hops;
use store::tables::job_states::{self, Attended, RunKind};
use store::tables::leases;
use store::tables::queue::{self, Place};
use store::{Error, Result, Tx, disk};

/// Hosts known at once; those beyond wait until others have no work.
const HOSTS_MAX: usize = 10_000;
/// Bins looked up at once, of a part.
const BINS_MAX: u32 = 1_000;
/// Jobs that can be attended to at once.
const JOBS_MAX: u32 = 1_000;
/// Documents woken at once.
const WAKE_MAX: u32 = 1_000;

/// For how long a process remembers links of continuous jobs.
const KNOWN_MS_MAX: i64 = 600_000;

/// Where a walk over marked bins begins.
pub(super) const FIRST: (JobId, BinId) = (JobId(i64::MIN), BinId(i64::MIN));

/// What a look at a part found.
struct Found {
    /// Where the next look goes on.
    marked_after: (JobId, BinId),
    bins: Vec<(JobId, Bin)>,
    older: Vec<(JobId, Older)>,
    due: Vec<(JobId, Option<i64>)>,
    /// Jobs whose graphs have something to be done for.
    spread: Vec<JobId>,
}

impl Worker {
    /// Looks at the tables for what is new: jobs, bins with work, documents that fall
    /// due. Now and then, and when there is nothing to do. Returns whether all of it has
    /// been seen.
    pub(super) fn look(&mut self) -> Result<bool> {
        let now_ms = self.now.ms();
        if self.control.is_stopping() || now_ms < self.next_look_ms() {
            return Ok(false);
        }
        self.schedule.begin(self.frontier.is_idle(), now_ms);
        self.look_at_disk()?;
        self.save_sessions();
        self.look_for_jobs(now_ms)?;
        self.look_at_allowances(now_ms)?;
        self.forget_links(now_ms);
        self.hosts.tidy(|host| self.frontier.knows(host));
        let parts: Vec<Part> =
            self.parts.iter().filter(|(_, held)| !held.leaving).map(|(part, _)| *part).collect();
        for part in parts {
            self.look_at(part, now_ms)?;
        }
        // What was woken is ready, but in the frontier only after that other look.
        Ok(!self.schedule.is_wanted())
    }

    /// Forgets now and then which links are queued: documents of continuous jobs leave the
    /// queue, in other processes too.
    fn forget_links(&mut self, now_ms: i64) {
        let is_old = now_ms.saturating_sub(self.known_since_ms) > KNOWN_MS_MAX;
        if is_old && self.jobs.attended().any(|work| work.definition.continuous) {
            self.known.clear();
            self.known_since_ms = now_ms;
        }
    }

    /// Pauses while the disk is almost full, and goes on by itself (T31).
    fn look_at_disk(&mut self) -> Result<()> {
        let Some(path) = &self.settings.disk else { return Ok(()) };
        let room = disk::room(path)?;
        let needed_bytes = room.needed_bytes(self.settings.disk_free_percent);
        let was = self.control.set_disk_full(room.free_bytes < needed_bytes);
        if self.control.is_paused() {
            self.progress.waits_for(
                Waiter::Disk,
                Some(format!(
                    "the disk that holds {} is almost full: {} MB are free, {} MB are needed for \
                     commits and merges; the crawl goes on when there is room (--min-free 0 goes \
                     on until it is full)",
                    path.display(),
                    room.free_bytes / 1_000_000,
                    needed_bytes.div_ceil(1_000_000)
                )),
            );
        } else if was {
            self.progress.waits_for(Waiter::Disk, None);
        }
        Ok(())
    }

    /// When the tables are looked at again.
    pub(super) fn next_look_ms(&self) -> i64 {
        self.schedule.next_ms(self.frontier.is_idle())
    }

    fn look_for_jobs(&mut self, now_ms: i64) -> Result<()> {
        let attended = match self.attended(now_ms) {
            Ok(attended) => attended,
            // A database that is away is no news: turns wait for it, and say so.
            Err(error) if error.passes() => return Ok(()),
            Err(error) => return Err(error),
        };
        for job in self.jobs.retire_missing(&attended) {
            let parts: Vec<Part> = self.parts.keys().copied().collect();
            for part in parts {
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
        self.forget_former_jobs();
        Ok(())
    }

    /// Takes a job up, or takes over what has changed in its definition.
    fn take_up(&mut self, it: &Attended, now_ms: i64) -> Result<()> {
        let known = self.jobs.get(it.job.id).cloned();
        if known.as_ref().is_some_and(|work| work.is_defined_as(it)) {
            return Ok(());
        }
        let unusable = self.throttling.unusable(it.job.connection);
        let work = match unusable {
            Some(reason) => Err(reason.to_owned()),
            None => JobWork::new(it, &self.ground).map_err(|bad| bad.to_string()),
        };
        match work {
            Ok(work) => {
                if known.is_none() {
                    // Another run has its own links to find, and its own documents to
                    // look at again.
                    self.known.clear();
                    self.told.clear();
                    for place in self.places.iter_mut().filter(|(key, _)| key.1 == work.id) {
                        (place.1.older, place.1.is_swept) = (Older::Unknown, false);
                        place.1.is_unscheduled = false;
                        place.1.gives_up_ms = None;
                    }
                    self.reread_blocked_hosts();
                }
                if known.is_some_and(|known| known.removals.released < work.removals.released) {
                    // There is more to sweep.
                    for place in self.places.iter_mut().filter(|(key, _)| key.1 == work.id) {
                        place.1.is_swept = false;
                    }
                }
                self.frontier.set_job(work.id, work.connection, work.definition.priority);
                self.jobs.attend(work);
                Ok(())
            }
            // It cannot be what it is told to be: whoever looks after it hears why.
            Err(bad) => {
                let (job, event) = (it.job.id, Event::Fail(bad));
                match self.db.write(move |tx| conduct::change(tx, job, &event, now_ms)) {
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
        self.hosts.forget_blocked(|host| {
            let mut places = places.iter().filter(|(key, _)| key.0 == host.part).map(|it| it.1);
            let is_unsaved =
                |place: &PlaceWork| place.turning || place.batch.visits.contains_key(&host.bin);
            !frontier.knows(host) && !places.any(is_unsaved)
        });
    }

    /// Forgets jobs that nobody attends to and that have nothing uncommitted.
    fn forget_former_jobs(&mut self) {
        let (jobs, parts) = (&self.jobs, &self.parts);
        self.places.retain(|(part, job), place| {
            let busy = parts.get(part).is_some_and(|held| held.busy);
            jobs.is_attended(*job) || busy || !place.is_idle() || !place.batch.visits.is_empty()
        });
        let places = &self.places;
        self.jobs.forget_former(|job| places.keys().any(|key| key.1 == job));
    }

    /// The jobs that somebody attends to. Of several processes that attend to one job its
    /// row names one; when that one has gone, another takes its place.
    fn attended(&self, now_ms: i64) -> Result<Vec<Attended>> {
        let heard_since_ms = now_ms - self.settings.lease_ms - self.settings.skew_ms;
        let (attends, node) = (self.attends, self.ids.node());
        let left = self.db.read(move |tx| job_states::unattended(tx, heard_since_ms, JOBS_MAX))?;
        for job in left.into_iter().filter(|job| attends.includes(*job)) {
            self.db.write(move |tx| job_states::attend(tx, job, node))?;
        }
        self.db.read(move |tx| job_states::attended(tx, heard_since_ms, JOBS_MAX))
    }

    fn look_at(&mut self, part: Part, now_ms: i64) -> Result<()> {
        if self.parts.get(&part).is_some_and(|held| !held.weighed) {
            match self.restore_budgets(part) {
                Err(error) if error.passes() => return Ok(()),
                restored => restored?,
            }
            if let Some(held) = self.parts.get_mut(&part) {
                held.weighed = true;
            }
        }
        let room = HOSTS_MAX.saturating_sub(self.frontier.hosts());
        let limit = u32::try_from(room).unwrap_or(BINS_MAX).min(BINS_MAX);
        let after = self.parts.get(&part).map_or(FIRST, |held| held.marked_after);
        for work in self.jobs.attended().filter(|work| work.doing != Doing::Crawl) {
            // There is nothing to look for: sweeping takes what there is.
            self.places.entry((part, work.id)).or_default();
        }
        let counting: Vec<JobId> =
            self.jobs.attended().filter(|work| work.hops.is_some()).map(|work| work.id).collect();
        let works: Vec<(JobId, store::ids::Run, Older)> = self
            .jobs
            .attended()
            .filter(|work| work.doing == Doing::Crawl)
            .map(|work| {
                let place = self.places.entry((part, work.id)).or_default();
                // Only such a run looks at all that older ones have settled; for others
                // it must be found again.
                if work.kind != RunKind::Incremental {
                    place.older = Older::Done;
                }
                (work.id, work.run, place.older)
            })
            .collect();
        let found = self.db.read(move |tx| {
            let mut found = look_at(tx, (part, after), &works, limit)?;
            for job in &counting {
                if hops::is_due(tx, Place { part, job: *job })? {
                    found.spread.push(*job);
                }
            }
            Ok(found)
        });
        let found = match found {
            Err(error) if error.passes() => return Ok(()),
            found => found?,
        };
        if let Some(held) = self.parts.get_mut(&part) {
            held.marked_after = found.marked_after;
        }
        for job in found.spread {
            self.places.entry((part, job)).or_default().spread = Spread::More;
        }
        for (job, older) in found.older {
            self.places.entry((part, job)).or_default().older = older;
        }
        for (job, bin) in found.bins {
            self.has_work(part, job, &bin);
        }
        self.take_due(part, found.due, now_ms)
    }

    /// Takes over when documents of jobs fall due in a part, and wakes those that have.
    fn take_due(&mut self, part: Part, due: Vec<(JobId, Option<i64>)>, now_ms: i64) -> Result<()> {
        for (job, due_ms) in due {
            let place = self.places.entry((part, job)).or_default();
            place.due_ms = due_ms;
            let is_scheduled = due_ms.is_some() && !place.is_unscheduled;
            let scans_once = self.jobs.get(job).is_some_and(|it| !it.definition.continuous);
            let latest_ms = self.latest_retry_ms(job, now_ms);
            if is_scheduled && scans_once {
                self.unschedule(part, job)?;
            } else if scans_once && due_ms.is_some_and(|due_ms| due_ms > latest_ms) {
                // The clock was wrong when that was written.
                let place = Place { part, job };
                self.holding_part(part, move |tx| queue::pull_in(tx, place, latest_ms))?;
                self.schedule.want();
            } else if due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
                self.wake(part, job, now_ms)?;
            }
        }
        Ok(())
    }

    /// A job that scans once has nothing scheduled: what it looked at when it went on for
    /// ever is settled.
    fn unschedule(&mut self, part: Part, job: JobId) -> Result<()> {
        let place = Place { part, job };
        let count = self.holding_part(part, move |tx| queue::unschedule(tx, place, WAKE_MAX))?;
        if let Some(count) = count {
            let place = self.places.entry((part, job)).or_default();
            place.is_unscheduled = count < u64::from(WAKE_MAX);
            self.schedule.want();
        }
        Ok(())
    }

    /// When what waits of a job that scans once is looked at again, at the latest.
    fn latest_retry_ms(&self, job: JobId, now_ms: i64) -> i64 {
        let Some(work) = self.jobs.get(job) else { return i64::MAX };
        stored_times::retry_max_ms(work.manners.patience, now_ms)
    }

    /// Documents of a part have fallen due.
    fn wake(&mut self, part: Part, job: JobId, now_ms: i64) -> Result<()> {
        let place = Place { part, job };
        let due_ms = self.holding_part(part, move |tx| {
            queue::wake(tx, place, now_ms, WAKE_MAX)?;
            queue::next_due(tx, place)
        })?;
        if let Some(due_ms) = due_ms {
            self.places.entry((part, job)).or_default().due_ms = due_ms;
            // Their bins are marked now.
            self.schedule.want();
        }
        Ok(())
    }

    /// Writes with the right of a part's holder; nothing comes of it when the part is lost,
    /// or the database is away.
    pub(super) fn holding_part<T: Send + 'static>(
        &mut self,
        part: Part,
        work: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let Some(lease) = self.parts.get(&part).map(|held| held.lease.clone()) else {
            return Ok(None);
        };
        let done = self.db.write(move |tx| {
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

    pub(super) fn has_work(&mut self, part: Part, job: JobId, bin: &Bin) {
        let (Some(work), Some(held)) = (self.jobs.get(job), self.parts.get(&part)) else { return };
        if held.leaving {
            return;
        }
        let (work, since_ms) = (work.clone(), held.since_ms);
        let host = HostKey { part, bin: bin.bin };
        let delays = work.manners.delays();
        self.hosts.learn(host, bin, delays, self.now.ms());
        // One that is stopped has no work, as far as anybody here is concerned.
        let Some(pace) = self.pace(&work, host, since_ms) else { return };
        let mut politeness = self.hosts.politeness(host, delays, since_ms);
        if bin.fetches == 0 && delays.job_ms > 0 {
            let domain = work.ground.suffixes.grouping_domain(&bin.name);
            let not_before_ms = self.hosts.admitted_ms(domain, host, self.now.ms());
            politeness.next_ms = politeness.next_ms.max(not_before_ms);
        }
        self.frontier.has_work(host, job, politeness, pace);
    }
}

fn look_at(
    tx: &mut Tx<'_>,
    (part, after): (Part, (JobId, BinId)),
    works: &[(JobId, store::ids::Run, Older)],
    limit: u32,
) -> Result<Found> {
    let marked = bins::marked(tx, part, after.0, after.1, limit)?;
    // A page that is not full was the last; the next look begins again.
    let last = marked.last().filter(|_| marked.len() == limit as usize);
    let marked_after = last.map_or(FIRST, |mark| (mark.job, mark.bin));
    let (bins, older, due, spread) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut found = Found { marked_after, bins, older, due, spread };
    let mut wanted: Vec<(JobId, BinId)> = marked
        .into_iter()
        .filter(|mark| works.iter().any(|work| work.0 == mark.job))
        .map(|mark| (mark.job, mark.bin))
        .collect();
    for (job, run, older) in works {
        let place = Place { part, job: *job };
        found.due.push((*job, queue::next_due(tx, place)?));
        let mut at = match older {
            Older::Done => continue,
            Older::Unknown => BinId(i64::MIN),
            Older::After(bin) => *bin,
        };
        let mut state = Older::Done;
        for count in 0..=limit {
            match queue::next_older_bin(tx, place, *run, at)? {
                Some(_) if count == limit => state = Older::After(at),
                Some(bin) => {
                    wanted.push((*job, bin));
                    at = bin;
                }
                None => break,
            }
        }
        found.older.push((*job, state));
    }
    let keys: Vec<BinId> = wanted.iter().map(|(_, bin)| *bin).collect();
    let loaded: HashMap<BinId, Bin> =
        bins::load(tx, part, &keys)?.into_iter().map(|bin| (bin.bin, bin)).collect();
    let known = wanted.into_iter().filter_map(|(job, bin)| Some((job, loaded.get(&bin)?.clone())));
    found.bins.extend(known);
    Ok(found)
}
