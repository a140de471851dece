//! What the throttles of connections allow a host, for people.
//!
//! Read from the definitions, as a worker reads them: what stands here is what a worker
//! keeps to.

use crate::text::{self, count, quoted, shown, size};
use crawl::throttle::{BinLimits, Throttles};
use serde::{Deserialize, Serialize};
use store::tables::connections::{self, ConnectionKind};
use store::tables::throttles;
use store::{Result, Tx};

/// Connections that are looked at.
const CONNECTIONS_MAX: u32 = 100;

/// What one connection allows a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostThrottle {
    connection: String,
    /// The expression that stops it.
    stopped_by: Option<String>,
    /// From the start of one document to the next.
    interval_ms: Option<i64>,
    /// The most requests at once.
    requests: Option<usize>,
    bytes_per_s: Option<u64>,
}

/// What connections allow a host, if they hold it back.
pub fn of_host(tx: &mut Tx<'_>, name: &str) -> Result<Vec<HostThrottle>> {
    let mut found = Vec::new();
    for connection in connections::list(tx, ConnectionKind::Repository, "", CONNECTIONS_MAX)? {
        // One that cannot be used is refused when it is defined, and by whoever works.
        let Ok(throttles) = Throttles::new(&throttles::load(tx, connection.id)?) else { continue };
        let limits = throttles.limits(name);
        if limits != BinLimits::default() {
            found.push(HostThrottle {
                connection: connection.name,
                interval_ms: limits.interval_us.map(|us| us / 1_000),
                requests: limits.requests_max,
                bytes_per_s: limits.bytes_per_s_max,
                stopped_by: limits.stopped_by,
            });
        }
    }
    Ok(found)
}

impl HostThrottle {
    pub fn line(&self) -> String {
        let connection = format!("connection {}", shown(&self.connection));
        if let Some(expression) = &self.stopped_by {
            return format!("    {connection}: blocked by throttle {}", quoted(&shown(expression)));
        }
        let bytes = self.bytes_per_s.map(|it| i64::try_from(it).unwrap_or(i64::MAX));
        let said: Vec<String> = [
            self.interval_ms.map(|ms| format!("one document every {}", text::exact_span(ms))),
            self.requests.map(|most| format!("{} at once", count(most as i64, "request"))),
            bytes.map(|most| format!("{}/s", size(most))),
        ]
        .into_iter()
        .flatten()
        .collect();
        format!("    {connection}: at most {}", said.join(", "))
    }
}
