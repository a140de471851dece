//! The fetcher against servers that are written here, on loopback.

mod hostile;
mod paced;
mod plain;
mod rebinding;
mod redirects;
mod secure;
mod server;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::*;

/// Long enough to be no part of a test, short enough to end a broken one.
const LONG: Duration = Duration::from_secs(20);
/// A limit that a test wants to be passed.
const SHORT: Duration = Duration::from_millis(60);

fn limits() -> Limits {
    Limits {
        connect: LONG,
        first_byte: LONG,
        idle: LONG,
        total: LONG,
        rate_window: LONG,
        header_bytes_max: 8 * 1024,
        ..Limits::default()
    }
}

fn settings(limits: Limits) -> FetcherSettings {
    let here: IpAddr = [127, 0, 0, 1].into();
    FetcherSettings {
        agent: "driftline/0".to_owned(),
        contact: "https://owner.example/bot".to_owned(),
        limits,
        lookup: Lookup::Given(Arc::new(move |_: &str| vec![here])),
        extra_roots: Vec::new(),
        addresses: Default::default(),
        memory: Default::default(),
    }
}

fn fetcher(limits: Limits) -> Fetcher {
    Fetcher::new(settings(limits)).unwrap()
}

fn intranet() -> Guard {
    Guard { allow_private: true, ..Guard::default() }
}

fn body(outcome: Outcome) -> Fetched {
    match outcome {
        Outcome::Body(fetched) => *fetched,
        other => panic!("no body but {other:?}"),
    }
}

fn code(outcome: &Outcome) -> String {
    outcome.reason().map_or(format!("{outcome:?}"), |reason| reason.code().into_owned())
}
