//! Servers that answer as the real ones do, on loopback, for tests of this and other
//! crates.
//!
//! Each keeps what a real one would keep, so that a test compares its state with what
//! there is, and each can be told to fail in the ways that real ones fail. Invariant: a
//! server that is dropped has closed its port.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

pub mod opensearch;
pub mod receiver;
pub mod server;
pub mod smtp;

pub mod solr;

use serde_json::Value as Json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A document whose text has this in it is one that servers do not take.
pub const UNACCEPTABLE: &str = "UNACCEPTABLE";
/// How long a test waits for something before it fails.
const PATIENCE: Duration = Duration::from_secs(40);

/// A way to fail, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Too many requests, with seconds to wait.
    Busy(u64),
    /// Too many requests for all items of a batch but so many.
    BusyAfter(usize),
    /// This status, without a word.
    Status(u16),
    /// Somebody else has written every document at the same time.
    Conflict,
    /// The answer breaks off, after the request was carried out.
    Half,
    /// The connection breaks before the answer, after the request was carried out.
    Lost,
}

/// What a server keeps, and how it will fail.
#[derive(Debug, Default)]
pub struct ServerState {
    /// Documents by their identifiers.
    pub documents: BTreeMap<String, Json>,
    /// How often everything was made visible.
    pub commits: usize,
    /// Requests that changed something, or should have.
    pub updates: usize,
    /// How the next requests fail, in order.
    pub faults: VecDeque<Fault>,
    /// What requests must say to be let in, if anything: the `authorization` header.
    pub authorization: Option<String>,
    /// Bytes of a request that are taken.
    pub bytes_max: Option<usize>,
}

/// What a server keeps, shared with the test.
#[derive(Clone, Default)]
pub struct Shelf {
    kept: Arc<(Mutex<ServerState>, Condvar)>,
}

impl Shelf {
    /// What is kept.
    pub fn kept(&self) -> MutexGuard<'_, ServerState> {
        self.kept.0.lock().unwrap()
    }

    /// Lets the next requests fail.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.kept().faults.extend(faults);
    }

    /// Documents by identifier, with one field of each.
    pub fn field(&self, name: &str) -> BTreeMap<String, String> {
        let text = |json: &Json| json[name].as_str().unwrap_or_default().to_owned();
        self.kept().documents.iter().map(|(id, it)| (id.clone(), text(it))).collect()
    }

    /// Waits until something holds.
    #[track_caller]
    pub fn wait(&self, what: &str, holds: impl Fn(&ServerState) -> bool) {
        let held = self.kept();
        let (held, late) = self.kept.1.wait_timeout_while(held, PATIENCE, |it| !holds(it)).unwrap();
        assert!(!late.timed_out(), "it never came to this: {what}; {held:?}");
    }

    /// Whoever waits looks again.
    fn changed(&self) {
        self.kept.1.notify_all();
    }
}

/// A certificate as files have it.
pub fn pem(certificate: &[u8]) -> String {
    let text = data_encoding::BASE64.encode(certificate);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|it| str::from_utf8(it).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
