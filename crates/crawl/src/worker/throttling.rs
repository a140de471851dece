//! What connections allow, as the worker knows it: their throttles, compiled, and how
//! many requests they may have under way.
//!
//! Relies on the versions of connections to notice a change, so that expressions are
//! compiled once for each. A host belongs to one part and so to one process; the bins of
//! other connectors lie in all parts, and a process is allowed of them what it holds of
//! the parts. Invariants: a bin that is stopped is not known to the frontier; whatever
//! changes takes effect with the next look at the tables.

use super::Worker;
use super::job::{JobWork, Source};
use crate::fetch::Bandwidth;
use crate::frontier::{HostKey, Pace};
use crate::throttle::{BinLimits, Throttles};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use store::Result;
use store::ids::{BinId, ConnectionId, Part};
use store::tables::connections::{self, Terms};
use store::tables::job_states::Attended;
use store::tables::throttles;

/// Bins whose limits are remembered.
const BINS_MAX: usize = 20_000;

/// A bound on what is read, if there is one.
type Shared = Option<Arc<Bandwidth>>;

/// Why a connection cannot be used.
pub(super) type Unusable = String;

/// A connection in use.
struct Known {
    version: i64,
    throttles: std::result::Result<Throttles, Unusable>,
    bins: HashMap<BinId, Arc<BinLimits>>,
    bandwidths: HashMap<BinId, Arc<Bandwidth>>,
}

/// The connections in use.
#[derive(Default)]
pub(super) struct Throttling {
    connections: BTreeMap<ConnectionId, Known>,
    free: Arc<BinLimits>,
}

impl Throttling {
    /// What a bin is allowed for documents of a connection.
    pub fn limits(&mut self, connection: ConnectionId, bin: BinId, name: &str) -> Arc<BinLimits> {
        let Some(known) = self.connections.get_mut(&connection) else { return self.free.clone() };
        let throttles = match &known.throttles {
            Ok(throttles) if !throttles.is_empty() => throttles,
            _ => return self.free.clone(),
        };
        if known.bins.len() >= BINS_MAX {
            known.bins.clear();
        }
        let limits = known.bins.entry(bin).or_insert_with(|| Arc::new(throttles.limits(name)));
        limits.clone()
    }

    /// What all who read from a bin share, if it is bounded.
    fn bandwidth(&mut self, connection: ConnectionId, bin: BinId, name: &str) -> Shared {
        let bytes_per_s = self.limits(connection, bin, name).bytes_per_s_max?;
        let known = self.connections.get_mut(&connection)?;
        if known.bandwidths.len() >= BINS_MAX {
            // Those that somebody reads under stay.
            known.bandwidths.retain(|_, bandwidth| Arc::strong_count(bandwidth) > 1);
        }
        let bandwidth =
            known.bandwidths.entry(bin).or_insert_with(|| Arc::new(Bandwidth::new(bytes_per_s)));
        Some(bandwidth.clone())
    }

    /// Why a connection cannot be used, if it cannot.
    pub fn unusable(&self, connection: ConnectionId) -> Option<&str> {
        self.connections.get(&connection)?.throttles.as_ref().err().map(String::as_str)
    }

    /// Those whose version is not the one that is known.
    fn changed(&self, terms: &[Terms]) -> Vec<ConnectionId> {
        let is_new = |it: &&Terms| {
            self.connections.get(&it.connection).is_none_or(|known| known.version != it.version)
        };
        terms.iter().filter(is_new).map(|it| it.connection).collect()
    }
}

/// The share of something that a process is allowed which holds so many of all parts.
#[derive(Clone, Copy)]
struct Holds {
    parts: i64,
    of: i64,
}

impl Holds {
    /// What a bin is allowed that was asked last at a time, or may have been.
    fn pace(self, limits: &BinLimits, last_ms: i64) -> Pace {
        let (parts, of) = (self.parts.clamp(1, self.of.max(1)), self.of.max(1));
        let interval_us = limits.interval_us.unwrap_or(0);
        let interval_us =
            i64::try_from(i128::from(interval_us) * i128::from(of) / i128::from(parts))
                .unwrap_or(i64::MAX / 4);
        let share = |most: usize| {
            let (parts, of) = (parts.unsigned_abs() as usize, of.unsigned_abs() as usize);
            (most.saturating_mul(parts) / of).max(1)
        };
        let not_before_ms =
            if last_ms > 0 { last_ms.saturating_add(interval_us / 1_000) } else { 0 };
        Pace { interval_us, requests_max: limits.requests_max.map(share), not_before_ms }
    }
}

impl Worker {
    /// Looks whether the connections of jobs are what they were.
    pub(super) fn look_at_connections(&mut self, attended: &[Attended]) -> Result<()> {
        let used: BTreeSet<ConnectionId> = attended.iter().map(|it| it.job.connection).collect();
        self.throttling.connections.retain(|connection, _| used.contains(connection));
        let ids: Vec<ConnectionId> = used.into_iter().collect();
        let read = self.db.read(move |tx| connections::terms(tx, &ids));
        let terms = match read {
            Err(error) if error.passes() => return Ok(()),
            read => read?,
        };
        for connection in self.throttling.changed(&terms) {
            let Some(it) = terms.iter().find(|it| it.connection == connection).copied() else {
                continue;
            };
            let read = self.db.read(move |tx| throttles::load(tx, connection));
            let loaded = match read {
                Err(error) if error.passes() => return Ok(()),
                read => read?,
            };
            let throttles = Throttles::new(&loaded).map_err(|bad| bad.to_string());
            let (bins, bandwidths) = (HashMap::new(), HashMap::new());
            let known = Known { version: it.version, throttles, bins, bandwidths };
            self.throttling.connections.insert(connection, known);
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
        let (throttling, hosts) = (&mut self.throttling, &mut self.hosts);
        let holds = Holds::of(&work, self.parts.len());
        let since = |part: Part| self.parts.get(&part).map_or(0, |held| held.since_ms);
        let dropped = self.frontier.repace(connection, |host: HostKey| {
            let known = hosts.get(host);
            let limits = throttling.limits(connection, host.bin, &known.name);
            let last_ms = known.next_ms.max(since(host.part));
            limits.stopped_by.is_none().then(|| holds.pace(&limits, last_ms))
        });
        for (host, item) in dropped {
            self.give_back(host.part, item);
        }
    }

    /// More parts are held, or fewer: bins that lie in all of them are allowed more, or
    /// less.
    pub(super) fn repace_all(&mut self) {
        let others: BTreeSet<ConnectionId> =
            self.jobs.attended().filter(|it| it.web().is_none()).map(|it| it.connection).collect();
        for connection in others {
            self.repace(connection);
        }
    }

    /// What a host of a part that is held since a time is allowed for a job; `None` if it
    /// is stopped.
    pub(super) fn pace(&mut self, work: &JobWork, host: HostKey, since_ms: i64) -> Option<Pace> {
        let known = self.hosts.get(host);
        let limits = self.throttling.limits(work.connection, host.bin, &known.name);
        let holds = Holds::of(work, self.parts.len());
        // Not before a delay after the last request, which whoever sent it has written.
        let last_ms = known.next_ms.max(since_ms);
        limits.stopped_by.is_none().then(|| holds.pace(&limits, last_ms))
    }

    /// What all who read from a host for a job share, if it is bounded.
    pub(super) fn bandwidth(&mut self, host: HostKey, job: &JobWork) -> Option<Arc<Bandwidth>> {
        let name = &self.hosts.get(host).name;
        self.throttling.bandwidth(job.connection, host.bin, name)
    }
}

impl Holds {
    fn of(work: &JobWork, parts: usize) -> Holds {
        match work.source {
            Source::Web(_) => Holds { parts: 1, of: 1 },
            Source::Other(_) => Holds {
                parts: i64::try_from(parts).unwrap_or(i64::MAX),
                of: i64::from(work.ground.parts),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_allowed_what_it_holds_of_the_parts() {
        let limits = BinLimits {
            interval_us: Some(1_000_000),
            requests_max: Some(8),
            ..BinLimits::default()
        };
        let pace = |parts, of| Holds { parts, of }.pace(&limits, 0);
        assert_eq!((pace(16, 16).interval_us, pace(16, 16).requests_max), (1_000_000, Some(8)));
        assert_eq!((pace(4, 16).interval_us, pace(4, 16).requests_max), (4_000_000, Some(2)));
        assert_eq!(pace(1, 16).requests_max, Some(1), "at least one, or nothing would go on");
        assert_eq!(Holds { parts: 1, of: 1 }.pace(&limits, 500).not_before_ms, 1_500);
        assert_eq!(Holds { parts: 1, of: 1 }.pace(&BinLimits::default(), 0), Pace::default());
    }
}
