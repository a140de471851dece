//! What the frontier wants to be claimed: shared out over jobs by weight, over the lines
//! of a job evenly.
//!
//! Invariants: whoever has nothing is given something before anybody is given more than
//! its weight; of several jobs none can hold everything, however slow it is.

use super::host::{self, FrontierHost, Hunger};
use super::{DocumentDemand, Frontier, HostKey};
use std::collections::{BTreeSet, VecDeque};
use store::ids::{JobId, Part};

/// With several jobs, one part in so many of what may be claimed is kept for those that
/// hold little.
const RESERVE: usize = 4;

/// What a job asks for.
struct JobDemand {
    job: JobId,
    stride: u64,
    held: usize,
    /// Lines that could take more: host, documents given, documents missing.
    lines: VecDeque<(HostKey, usize, usize)>,
    full: Vec<(HostKey, usize)>,
}

impl<T> Frontier<T> {
    /// Lines of the given parts that could use documents now, soonest first; only those
    /// that are running out, unless everybody may fill up. What is wanted counts as
    /// claimed until [`Frontier::claimed`] tells what came.
    pub fn wants(
        &mut self,
        now_ms: i64,
        fill: bool,
        of: impl Fn(Part) -> bool,
    ) -> Vec<DocumentDemand> {
        let room = self.limits.claimed_max.saturating_sub(self.claimed);
        if room == 0 {
            return Vec::new();
        }
        let is_soon = |it: &&(Hunger, HostKey)| it.0.1 <= now_ms + self.limits.ahead_ms;
        let mut asking = Vec::new();
        for (job, hungry) in &self.hungry {
            let lines: VecDeque<(HostKey, usize, usize)> = hungry
                .range(..host::FED)
                .take_while(is_soon)
                .chain(hungry.range(host::FED..).take_while(is_soon))
                .filter(|((_, _, waiting), host)| {
                    of(host.part) && (fill || waiting * 4 < self.enough(*host, *job))
                })
                .take(room)
                .map(|((_, _, waiting), host)| (*host, 0, self.enough(*host, *job) - waiting))
                .collect();
            asking.push((*job, lines));
        }
        let mut jobs: Vec<JobDemand> = Vec::new();
        for (job, lines) in asking.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            let share = self.shares.share(job);
            let (stride, held) = (share.stride, share.held);
            jobs.push(JobDemand { job, stride, held, lines, full: Vec::new() });
        }
        self.share_out(room, &mut jobs);
        let mut wants = Vec::new();
        for asking in jobs {
            let given = asking.lines.into_iter().map(|(host, given, _)| (host, given));
            for (host, documents) in asking.full.into_iter().chain(given) {
                if documents > 0 {
                    wants.push(DocumentDemand { host, job: asking.job, documents });
                }
            }
        }
        for want in &wants {
            self.claimed += want.documents;
            self.shares.hold(want.job, want.documents);
            if let Some(line) = self.hosts.get_mut(&want.host).and_then(|it| it.line(want.job)) {
                line.requested = want.documents;
            }
            self.settle(want.host);
        }
        wants
    }

    /// Documents were claimed as wanted; `exhausted` if there are no more.
    pub fn claimed(&mut self, want: DocumentDemand, documents: Vec<T>, exhausted: bool) {
        let came = documents.len();
        match self.hosts.get_mut(&want.host) {
            Some(host) => host.fill(want.job, documents),
            None => debug_assert!(came == 0, "documents of a host that nobody announced"),
        }
        self.end_want(want, came, exhausted);
    }

    /// What was wanted is not claimed now; it may be wanted again at once.
    pub fn cancel(&mut self, want: DocumentDemand) {
        self.end_want(want, 0, false);
    }

    /// What was wanted is not claimed, and nothing more of the line is until somebody says that
    /// there is work.
    pub fn abandon(&mut self, want: DocumentDemand) {
        self.end_want(want, 0, true);
    }

    /// A want is answered: so many documents have come, and there are no more if it is exhausted.
    fn end_want(&mut self, want: DocumentDemand, came: usize, exhausted: bool) {
        self.claimed -= want.documents.saturating_sub(came);
        let line = self.hosts.get_mut(&want.host).and_then(|host| host.line(want.job));
        if let Some(line) = line {
            line.exhausted = exhausted;
            let requested = std::mem::take(&mut line.requested);
            self.shares.hold(want.job, came);
            self.shares.release(want.job, requested);
        }
        self.settle(want.host);
    }

    /// One document after the other goes to the job that has least for its weight, and
    /// there to the next line.
    fn share_out(&self, room: usize, jobs: &mut [JobDemand]) {
        let known = self.shares.jobs();
        let reserve = if known > 1 { self.limits.claimed_max / RESERVE } else { 0 };
        let little = (reserve / known.max(1)).max(1);
        let order = |asking: &JobDemand| (asking.held as u64).saturating_mul(asking.stride);
        let mut behind: BTreeSet<(u64, usize)> =
            jobs.iter().enumerate().map(|(at, asking)| (order(asking), at)).collect();
        for left in (1..=room).rev() {
            let may = |at: usize| left > reserve || jobs[at].held < little;
            let Some(next) = behind.iter().copied().find(|(_, at)| may(*at)) else { return };
            behind.remove(&next);
            let asking = &mut jobs[next.1];
            let Some((host, given, missing)) = asking.lines.pop_front() else { continue };
            asking.held += 1;
            match missing {
                0 | 1 => asking.full.push((host, given + 1)),
                _ => asking.lines.push_back((host, given + 1, missing - 1)),
            }
            if !asking.lines.is_empty() {
                behind.insert((order(asking), next.1));
            }
        }
    }

    /// How many documents a line should have waiting.
    pub(super) fn enough(&self, key: HostKey, job: JobId) -> usize {
        let delay_ms =
            self.hosts.get(&key).map_or(0, |host: &FrontierHost<T>| host.politeness.delay_ms);
        let interval_ms = self.gates.interval_ms((self.shares.connection(job), key.bin));
        match delay_ms.max(interval_ms) {
            0 => (self.limits.claimed_max / 2).max(1),
            pause => usize::try_from(self.limits.ahead_ms / pause).unwrap_or(0) + 1,
        }
    }
}
