//! What connections allow, as the worker knows it: their throttles, compiled, and how
//! many requests they may have under way.
//!
//! Pure. Relies on the versions of connections to notice a change, so that expressions are
//! compiled once for each. A host belongs to one part and so to one process; the bins of
//! other connectors lie in all parts, and a process is allowed of them what it holds of
//! the parts. Invariants: a bin that is stopped is not known to the frontier; whatever
//! changes takes effect with the next look at the tables.

use crate::fetch::Bandwidth;
use crate::frontier::Pace;
use crate::job::{JobSource, JobWork};
use crate::throttle::{BinLimits, Throttles};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use store::ids::{BinId, ConnectionId};
use store::tables::connections::Terms;
use store::tables::throttles::Throttle;

/// Bins whose limits are remembered.
const BINS_MAX: usize = 20_000;

/// Why a connection cannot be used.
pub type Unusable = String;

/// The throttles of a connection in use.
struct ConnectionThrottles {
    version: i64,
    throttles: Result<Throttles, Unusable>,
    bins: HashMap<BinId, Arc<BinLimits>>,
    bandwidths: HashMap<BinId, Arc<Bandwidth>>,
}

/// The connections in use.
#[derive(Default)]
pub struct ThrottledConnections {
    connections: BTreeMap<ConnectionId, ConnectionThrottles>,
    free: Arc<BinLimits>,
}

impl ThrottledConnections {
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
    pub fn bandwidth(
        &mut self,
        connection: ConnectionId,
        bin: BinId,
        name: &str,
    ) -> Option<Arc<Bandwidth>> {
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

    /// Forgets connections that are not in use.
    pub fn retain(&mut self, used: &BTreeSet<ConnectionId>) {
        self.connections.retain(|connection, _| used.contains(connection));
    }

    /// Takes in the throttles of a connection, which cannot be used if one of them is wrong.
    pub fn set(&mut self, connection: ConnectionId, version: i64, throttles: &[Throttle]) {
        let throttles = Throttles::new(throttles).map_err(|bad| bad.to_string());
        let (bins, bandwidths) = (HashMap::new(), HashMap::new());
        let known = ConnectionThrottles { version, throttles, bins, bandwidths };
        self.connections.insert(connection, known);
    }

    /// Those whose version is not the one that is known.
    pub fn changed(&self, terms: &[Terms]) -> Vec<ConnectionId> {
        let is_new = |it: &&Terms| {
            self.connections.get(&it.connection).is_none_or(|known| known.version != it.version)
        };
        terms.iter().filter(is_new).map(|it| it.connection).collect()
    }
}

/// The share of something that a process is allowed which holds so many of all parts.
#[derive(Clone, Copy)]
pub struct PartShare {
    parts: i64,
    of: i64,
}

impl PartShare {
    /// What a bin is allowed that was asked last at a time, or may have been.
    pub fn pace(self, limits: &BinLimits, last_ms: i64) -> Pace {
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

impl PartShare {
    /// The share of a process that holds so many parts. A host belongs to one part.
    pub fn of(work: &JobWork, parts: usize) -> PartShare {
        match work.source {
            JobSource::Web(_) => PartShare { parts: 1, of: 1 },
            JobSource::Other(_) => PartShare {
                parts: i64::try_from(parts).unwrap_or(i64::MAX),
                of: i64::from(work.shared.parts),
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
        let pace = |parts, of| PartShare { parts, of }.pace(&limits, 0);
        assert_eq!((pace(16, 16).interval_us, pace(16, 16).requests_max), (1_000_000, Some(8)));
        assert_eq!((pace(4, 16).interval_us, pace(4, 16).requests_max), (4_000_000, Some(2)));
        assert_eq!(pace(1, 16).requests_max, Some(1), "at least one, or nothing would go on");
        assert_eq!(PartShare { parts: 1, of: 1 }.pace(&limits, 500).not_before_ms, 1_500);
        assert_eq!(PartShare { parts: 1, of: 1 }.pace(&BinLimits::default(), 0), Pace::default());
    }
}
