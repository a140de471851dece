//! Looks at a part for work: bins that are marked, documents of older runs, documents that fall
//! due.
//!
//! Relies on marks in the tables, so that a look costs what there is to do, not what is
//! known. Invariant: whatever becomes ready in a part that is held is found by a later look,
//! however it came there.

use crate::job::JobMode;
use crate::stored_times;
use crate::worker::Worker;
use crate::worker::commit::places::{DueAction, DueLook, OlderWalk};
use crate::worker::leases::held_parts::WalkPosition;
use std::collections::HashMap;
use store::ids::{BinId, JobId, Part, Run};
use store::tables::bins::{self, Bin};
use store::tables::hops;
use store::tables::job_states::RunKind;
use store::tables::queue::{self, Place};
use store::{Result, Tx};

/// Hosts known at once; those beyond wait until others have no work.
const HOSTS_MAX: usize = 10_000;
/// Bins looked up at once, of a part.
const BINS_MAX: u32 = 1_000;
/// Documents woken at once.
const WAKE_MAX: u32 = 1_000;

/// What is looked for in a part.
struct PartLook {
    part: Part,
    /// Where the walk over marked bins goes on.
    after: WalkPosition,
    crawls: Vec<JobLook>,
    /// Jobs that count how far documents are.
    counting: Vec<JobId>,
    limit: u32,
}

/// A job whose documents are looked for.
#[derive(Clone, Copy)]
struct JobLook {
    job: JobId,
    run: Run,
    older: OlderWalk,
}

/// What a look at a part found.
#[derive(Default)]
struct PartFindings {
    bins: Vec<(JobId, Bin)>,
    older: Vec<(JobId, OlderWalk)>,
    due: Vec<(JobId, Option<i64>)>,
    /// Jobs whose graphs have something to be done for.
    spread: Vec<JobId>,
}

impl Worker {
    pub(super) fn look_at_part(&mut self, part: Part, now_ms: i64) -> Result<()> {
        if self.parts.lacks_tallies(part) {
            match self.restore_tallies(part) {
                Err(error) if error.passes() => return Ok(()),
                restored => restored?,
            }
            self.parts.on_tallies(part);
        }
        let look = self.plan_look(part);
        let found = self.deps.db.read(move |tx| look.find(tx));
        let (found, walk) = match found {
            Err(error) if error.passes() => return Ok(()),
            found => found?,
        };
        self.parts.set_walk(part, walk);
        for job in found.spread {
            self.places.want_spread(Place { part, job });
        }
        for (job, older) in found.older {
            self.places.set_older(Place { part, job }, older);
        }
        for (job, bin) in found.bins {
            self.on_work_at(part, job, &bin);
        }
        for (job, due_ms) in found.due {
            self.on_due(Place { part, job }, due_ms, now_ms)?;
        }
        Ok(())
    }

    fn plan_look(&mut self, part: Part) -> PartLook {
        let room = HOSTS_MAX.saturating_sub(self.frontier.hosts());
        let limit = u32::try_from(room).unwrap_or(BINS_MAX).min(BINS_MAX);
        let (mut crawls, mut counting) = (Vec::new(), Vec::new());
        for work in self.jobs.attended() {
            let place = work.place(part);
            if work.hops.is_some() {
                counting.push(work.id);
            }
            if work.mode != JobMode::Crawl {
                // There is nothing to look for: sweeping takes what there is.
                self.places.add(place);
                continue;
            }
            // Only such a run looks at all that older ones have settled; for others
            // it must be found again.
            if work.kind != RunKind::Incremental {
                self.places.set_older(place, OlderWalk::Done);
            }
            crawls.push(JobLook { job: work.id, run: work.run, older: self.places.older(place) });
        }
        PartLook { part, after: self.parts.walk(part), crawls, counting, limit }
    }

    /// Takes over when documents of a job fall due in a part, and wakes those that have.
    fn on_due(&mut self, place: Place, due_ms: Option<i64>, now_ms: i64) -> Result<()> {
        let work = self.jobs.get(place.job);
        let scans_once = work.is_some_and(|it| !it.definition.continuous);
        let latest_ms =
            work.map_or(i64::MAX, |it| stored_times::retry_max_ms(it.settings.patience, now_ms));
        let look = DueLook { due_ms, scans_once, latest_ms, now_ms };
        match self.places.on_due_look(place, look) {
            DueAction::Nothing => Ok(()),
            DueAction::Unschedule => self.unschedule(place),
            DueAction::PullIn => {
                let part = place.part;
                self.write_as_holder(part, move |tx| queue::pull_in(tx, place, latest_ms))?;
                self.schedule.want();
                Ok(())
            }
            DueAction::Wake => self.wake(place, now_ms),
        }
    }

    /// A job that scans once has nothing scheduled: what it looked at when it went on for
    /// ever is settled.
    fn unschedule(&mut self, place: Place) -> Result<()> {
        let count =
            self.write_as_holder(place.part, move |tx| queue::unschedule(tx, place, WAKE_MAX))?;
        if let Some(count) = count {
            self.places.on_unscheduled(place, count < u64::from(WAKE_MAX));
            self.schedule.want();
        }
        Ok(())
    }

    /// Documents of a part have fallen due.
    fn wake(&mut self, place: Place, now_ms: i64) -> Result<()> {
        let due_ms = self.write_as_holder(place.part, move |tx| {
            queue::wake(tx, place, now_ms, WAKE_MAX)?;
            queue::next_due(tx, place)
        })?;
        if let Some(due_ms) = due_ms {
            self.places.set_due(place, due_ms);
            // Their bins are marked now.
            self.schedule.want();
        }
        Ok(())
    }
}

impl PartLook {
    /// Looks. Returns what was found, and where the walk over marked bins stands now.
    fn find(&self, tx: &mut Tx<'_>) -> Result<(PartFindings, WalkPosition)> {
        let WalkPosition { job, bin } = self.after;
        let marked = bins::marked(tx, self.part, job, bin, self.limit)?;
        // A page that is not full was the last; the next look begins again.
        let last = marked.last().filter(|_| marked.len() == self.limit as usize);
        let walk =
            last.map_or(WalkPosition::FIRST, |mark| WalkPosition { job: mark.job, bin: mark.bin });
        let mut found = PartFindings::default();
        let mut wanted: Vec<(JobId, BinId)> = marked
            .into_iter()
            .filter(|mark| self.crawls.iter().any(|it| it.job == mark.job))
            .map(|mark| (mark.job, mark.bin))
            .collect();
        for look in &self.crawls {
            let place = Place { part: self.part, job: look.job };
            found.due.push((look.job, queue::next_due(tx, place)?));
            if look.older != OlderWalk::Done {
                let (bins, older) = self.find_older(tx, *look)?;
                wanted.extend(bins.into_iter().map(|bin| (look.job, bin)));
                found.older.push((look.job, older));
            }
        }
        let keys: Vec<BinId> = wanted.iter().map(|(_, bin)| *bin).collect();
        let loaded: HashMap<BinId, Bin> =
            bins::load(tx, self.part, &keys)?.into_iter().map(|bin| (bin.bin, bin)).collect();
        let known = wanted.into_iter();
        found.bins =
            known.filter_map(|(job, bin)| Some((job, loaded.get(&bin)?.clone()))).collect();
        for job in &self.counting {
            if hops::is_due(tx, Place { part: self.part, job: *job })? {
                found.spread.push(*job);
            }
        }
        Ok((found, walk))
    }

    /// Goes on with the walk over bins with documents that an older run settled.
    fn find_older(&self, tx: &mut Tx<'_>, look: JobLook) -> Result<(Vec<BinId>, OlderWalk)> {
        let place = Place { part: self.part, job: look.job };
        let mut at = match look.older {
            OlderWalk::After(bin) => bin,
            OlderWalk::Unknown | OlderWalk::Done => BinId(i64::MIN),
        };
        let mut found = Vec::new();
        for _ in 0..self.limit {
            let Some(bin) = queue::next_older_bin(tx, place, look.run, at)? else {
                return Ok((found, OlderWalk::Done));
            };
            found.push(bin);
            at = bin;
        }
        let has_more = queue::next_older_bin(tx, place, look.run, at)?.is_some();
        Ok((found, if has_more { OlderWalk::After(at) } else { OlderWalk::Done }))
    }
}
