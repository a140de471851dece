//! What a crawl has done so far, for whoever watches: counts by outcome, errors with
//! an example each, the slowest hosts, and what it waits for.
//!
//! Counted for the process and for the present run of each job. Written by the worker, read
//! by the command line and the socket. Invariant: its size is bounded however many jobs,
//! hosts and kinds of errors there are.

use crate::worker::finish::ResultClass;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::ids::{JobId, Run};

pub use crate::job::RunKey;

/// Kinds of errors that are told apart.
const ERRORS_MAX: usize = 100;
/// Hosts whose times are kept.
const HOSTS_MAX: usize = 1_000;
/// Hosts whose times are kept for the run of one job.
const RUN_HOSTS_MAX: usize = 100;
/// Jobs whose runs are counted.
const JOBS_MAX: usize = 1_000;
/// Notices that are kept.
const NOTICES_MAX: usize = 20;

/// One kind of error.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub struct ErrorGroup {
    pub count: u64,
    /// A URL it happened to.
    pub example: String,
    /// What happened to it, in words; none where the code says all.
    pub sentence: Option<String>,
}

/// What a host cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub struct HostTime {
    pub requests: u64,
    pub busy_ms: u64,
}

/// Counts of a process, or of the run of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
// tidy: wide what is counted of a run, one field a line of the summary
pub struct ProgressCounts {
    /// Requests that were answered or failed, robots.txt not included.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Documents new to us.
    pub added: u64,
    pub updated: u64,
    /// Documents that are the same.
    pub unchanged: u64,
    /// Of these, those the server did not even send.
    pub not_modified: u64,
    /// Documents removed, by reason.
    pub removed: BTreeMap<Cow<'static, str>, u64>,
    /// Documents that lead elsewhere.
    pub redirected: u64,
    /// Links to what is not there.
    pub missing: u64,
    /// Documents that a rule forbids, by rule.
    pub forbidden: BTreeMap<Cow<'static, str>, u64>,
    /// Documents that will be looked at again in this run.
    pub again: u64,
    /// Errors, by code: documents that were given up.
    pub errors: BTreeMap<String, ErrorGroup>,
    /// Trouble after which something was or will be tried again, by code.
    pub troubles: BTreeMap<String, ErrorGroup>,
    pub found: u64,
    pub commits: u64,
    /// Hosts by the time spent waiting for them.
    #[serde(skip)]
    pub hosts: HashMap<String, HostTime>,
    /// What is waited for, if anything: what keeps the most from being done.
    pub waiting_for: Option<String>,
    /// All that is waited for, by who does.
    #[serde(skip)]
    pub waits: BTreeMap<Waiter, String>,
    /// Things that happened and are worth a line.
    #[serde(skip)]
    pub notices: Vec<String>,
}

/// Who waits, the ones first whose wait keeps the most from being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiter {
    /// Everything, for room on the disk.
    Disk,
    /// A commit, for the database or the store.
    Commit,
    /// Claims, for a consumer of chunks that is far behind.
    Claims,
    /// The link index, for what it needs.
    Links,
    /// The search index, likewise.
    Search,
    /// Deliveries, for an output.
    Outputs,
    /// The run, for a host or a time.
    Run,
}

impl ProgressCounts {
    /// Documents that were finished.
    pub fn documents(&self) -> u64 {
        let sum = |counts: &BTreeMap<Cow<'static, str>, u64>| counts.values().sum::<u64>();
        self.added
            + self.updated
            + self.unchanged
            + sum(&self.removed)
            + self.redirected
            + self.missing
            + sum(&self.forbidden)
            + self.failed()
    }

    /// Documents that were given up.
    pub fn failed(&self) -> u64 {
        self.errors.values().map(|group| group.count).sum()
    }

    /// Hosts with the longest mean time of an answer, slowest first.
    pub fn slowest(&self, limit: usize) -> Vec<(String, HostTime)> {
        let mut hosts: Vec<(String, HostTime)> =
            self.hosts.iter().map(|(name, time)| (name.clone(), time.clone())).collect();
        hosts.sort_by_key(|(name, time)| {
            (std::cmp::Reverse(time.busy_ms / time.requests.max(1)), name.clone())
        });
        hosts.truncate(limit);
        hosts
    }
}

/// Shared by the worker and those who watch.
#[derive(Default)]
pub struct Progress {
    state: Mutex<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    /// What the process did.
    all: ProgressCounts,
    /// What it did for the last run of each job that it has worked on.
    runs: BTreeMap<JobId, (Run, ProgressCounts)>,
}

impl ProgressState {
    /// Counts something for the process and for a run; `count` is told how many hosts are kept.
    fn count(&mut self, key: RunKey, count: impl Fn(&mut ProgressCounts, usize)) {
        count(&mut self.all, HOSTS_MAX);
        if self.runs.len() >= JOBS_MAX && !self.runs.contains_key(&key.job) {
            return;
        }
        let (run, counted) =
            self.runs.entry(key.job).or_insert_with(|| (key.run, ProgressCounts::default()));
        if *run != key.run {
            (*run, *counted) = (key.run, ProgressCounts::default());
        }
        count(counted, RUN_HOSTS_MAX);
    }
}

impl Progress {
    /// A copy of what the process did.
    pub fn snapshot(&self) -> ProgressCounts {
        self.lock().all.clone()
    }

    /// A copy of what the process did for a run, with what the process waits for now.
    pub fn snapshot_of(&self, key: RunKey) -> ProgressCounts {
        let kept = self.lock();
        let of_run = kept.runs.get(&key.job).filter(|(run, _)| *run == key.run);
        let counted = of_run.map(|(_, counted)| counted.clone()).unwrap_or_default();
        ProgressCounts { waiting_for: kept.all.waiting_for.clone(), ..counted }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has ended.
    pub fn requested(&self, key: RunKey, host: &str, bytes: u64, busy_ms: u64) {
        self.lock().count(key, |counted, hosts_max| {
            counted.requests += 1;
            counted.bytes += bytes;
            if counted.hosts.len() >= hosts_max && !counted.hosts.contains_key(host) {
                return;
            }
            // Nearly always it is there; its name is only copied when it is not.
            let time = match counted.hosts.get_mut(host) {
                Some(time) => time,
                None => counted.hosts.entry(host.to_owned()).or_default(),
            };
            time.requests += 1;
            time.busy_ms += busy_ms;
        });
    }

    /// A document was finished.
    pub fn finished(&self, key: RunKey, class: &ResultClass, url: &str) {
        self.lock().count(key, |counted, _| match class {
            ResultClass::Added => counted.added += 1,
            ResultClass::Updated => counted.updated += 1,
            ResultClass::Kept { not_modified } => {
                counted.unchanged += 1;
                counted.not_modified += u64::from(*not_modified);
            }
            ResultClass::Removed(reason) => {
                *counted.removed.entry(Cow::Borrowed(reason.name())).or_default() += 1;
            }
            // It is counted when it is removed.
            ResultClass::Leaving => {}
            ResultClass::Redirected => counted.redirected += 1,
            ResultClass::Missing => counted.missing += 1,
            ResultClass::Forbidden(by) => {
                *counted.forbidden.entry(Cow::Borrowed(by.name())).or_default() += 1;
            }
            ResultClass::Again(_) => counted.again += 1,
            ResultClass::Failed(reason) => {
                group(&mut counted.errors, reason.code(), url, reason.detail());
            }
        });
    }

    /// A request failed in a way that may pass.
    pub fn troubled(&self, key: RunKey, code: &str, url: &str) {
        self.lock().count(key, |counted, _| group(&mut counted.troubles, code, url, None));
    }

    /// A chunk was committed.
    pub fn committed(&self, key: RunKey, found: u64) {
        self.lock().count(key, |counted, _| {
            counted.commits += 1;
            counted.found += found;
        });
    }

    /// What somebody waits for now; `None` when for nothing.
    pub fn waits_for(&self, who: Waiter, what: Option<String>) {
        let counted = &mut self.lock().all;
        if counted.waits.get(&who) == what.as_ref() {
            return;
        }
        match what {
            Some(what) => {
                if counted.notices.len() < NOTICES_MAX {
                    counted.notices.push(what.clone());
                }
                counted.waits.insert(who, what);
            }
            None => {
                counted.waits.remove(&who);
            }
        }
        counted.waiting_for = counted.waits.values().next().cloned();
    }

    /// Takes what is worth a line and was not shown yet.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().all.notices)
    }
}

fn group(groups: &mut BTreeMap<String, ErrorGroup>, code: &str, url: &str, words: Option<&str>) {
    let full = groups.len() >= ERRORS_MAX && !groups.contains_key(code);
    let code = if full { "other" } else { code };
    let first = || {
        let (example, sentence) = (url.to_owned(), words.map(str::to_owned));
        ErrorGroup { count: 0, example, sentence }
    };
    groups.entry(code.to_owned()).or_insert_with(first).count += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::tables::queue::Reason;

    #[test]
    fn each_run_is_counted_by_itself_and_a_new_one_begins_at_nothing() {
        let progress = Progress::default();
        let key = |job, run| RunKey { job: JobId(job), run: Run(run) };
        progress.finished(key(1, 1), &ResultClass::Added, "http://a/");
        progress.finished(key(2, 5), &ResultClass::Updated, "http://b/");
        progress.requested(key(1, 1), "a", 10, 3);
        progress.finished(
            key(1, 2),
            &ResultClass::Failed(Reason::new("http-500", None)),
            "http://a/",
        );
        progress.waits_for(Waiter::Disk, Some("room".into()));
        let all = progress.snapshot();
        assert_eq!((all.added, all.updated, all.failed(), all.requests), (1, 1, 1, 1));
        let second = progress.snapshot_of(key(1, 2));
        assert_eq!((second.added, second.failed(), second.requests), (0, 1, 0));
        assert_eq!(second.waiting_for.as_deref(), Some("room"));
        assert_eq!(progress.snapshot_of(key(2, 5)).updated, 1);
        assert_eq!(progress.snapshot_of(key(1, 1)).added, 0, "it is over");
        let told = serde_json::to_string(&second).unwrap();
        let read: ProgressCounts = serde_json::from_str(&told).unwrap();
        assert_eq!((read.failed(), read.documents()), (1, 1), "it goes through a socket");
    }
}
