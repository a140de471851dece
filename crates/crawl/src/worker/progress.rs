//! What a crawl has done so far, for whoever watches: counts by outcome, errors with
//! an example each, the slowest hosts, and what it waits for.
//!
//! Written by the worker, read by the command line and the socket. Invariant: its
//! size is bounded however many hosts and kinds of errors there are.

use super::finish::Class;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kinds of errors that are told apart.
const ERRORS_MAX: usize = 100;
/// Hosts whose times are kept.
const HOSTS_MAX: usize = 1_000;
/// Notices that are kept.
const NOTICES_MAX: usize = 20;

/// One kind of error.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ErrorGroup {
    /// How often.
    pub count: u64,
    /// A URL it happened to.
    pub example: String,
}

/// What a host cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct HostTime {
    pub requests: u64,
    pub busy_ms: u64,
}

/// Everything counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counted {
    /// Requests that were answered or failed, robots.txt not included.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Documents new to us.
    pub added: u64,
    /// Documents that changed.
    pub updated: u64,
    /// Documents that are the same.
    pub unchanged: u64,
    /// Of these, those the server did not even send.
    pub not_modified: u64,
    /// Documents removed, by reason.
    pub removed: BTreeMap<&'static str, u64>,
    /// Documents that lead elsewhere.
    pub redirected: u64,
    /// Links to what is not there.
    pub missing: u64,
    /// Documents that a rule forbids, by rule.
    pub forbidden: BTreeMap<&'static str, u64>,
    /// Documents that will be looked at again in this run.
    pub again: u64,
    /// Errors, by code: documents that were given up.
    pub errors: BTreeMap<String, ErrorGroup>,
    /// Trouble after which something was or will be tried again, by code.
    pub troubles: BTreeMap<String, ErrorGroup>,
    /// Documents found.
    pub found: u64,
    /// Chunks committed.
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

impl Counted {
    /// Documents that were finished.
    pub fn documents(&self) -> u64 {
        let sum = |counts: &BTreeMap<&'static str, u64>| counts.values().sum::<u64>();
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
    counted: Mutex<Counted>,
}

impl Progress {
    /// A copy of what there is.
    pub fn snapshot(&self) -> Counted {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has ended.
    pub fn requested(&self, host: &str, bytes: u64, busy_ms: u64) {
        let mut counted = self.lock();
        counted.requests += 1;
        counted.bytes += bytes;
        if counted.hosts.len() >= HOSTS_MAX && !counted.hosts.contains_key(host) {
            return;
        }
        // Nearly always it is there; its name is only copied when it is not.
        let time = match counted.hosts.get_mut(host) {
            Some(time) => time,
            None => counted.hosts.entry(host.to_owned()).or_default(),
        };
        time.requests += 1;
        time.busy_ms += busy_ms;
    }

    /// A document was finished.
    pub fn finished(&self, class: &Class, url: &str) {
        let mut counted = self.lock();
        match class {
            Class::Added => counted.added += 1,
            Class::Updated => counted.updated += 1,
            Class::Kept { not_modified } => {
                counted.unchanged += 1;
                counted.not_modified += u64::from(*not_modified);
            }
            Class::Removed(reason) => *counted.removed.entry(reason.name()).or_default() += 1,
            // It is counted when it is removed.
            Class::Leaving => {}
            Class::Redirected => counted.redirected += 1,
            Class::Missing => counted.missing += 1,
            Class::Forbidden(code) => *counted.forbidden.entry(code).or_default() += 1,
            Class::Again(_) => counted.again += 1,
            Class::Failed(code) => group(&mut counted.errors, code, url),
        }
    }

    /// A request failed in a way that may pass.
    pub fn troubled(&self, code: &str, url: &str) {
        group(&mut self.lock().troubles, code, url);
    }

    /// A chunk was committed.
    pub fn committed(&self, found: u64) {
        let mut counted = self.lock();
        counted.commits += 1;
        counted.found += found;
    }

    /// What somebody waits for now; `None` when for nothing.
    pub fn waits_for(&self, who: Waiter, what: Option<String>) {
        let mut counted = self.lock();
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
        std::mem::take(&mut self.lock().notices)
    }
}

fn group(groups: &mut BTreeMap<String, ErrorGroup>, code: &str, url: &str) {
    let full = groups.len() >= ERRORS_MAX && !groups.contains_key(code);
    let code = if full { "other" } else { code };
    let first = || ErrorGroup { count: 0, example: url.to_owned() };
    groups.entry(code.to_owned()).or_insert_with(first).count += 1;
}
