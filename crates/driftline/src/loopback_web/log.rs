//! What was asked, when, and how it ended: in memory, and as it happens in a file.
//!
//! Times are since the web's start. A visit begins when its head has been read and
//! ends just before its last bytes are written, so its time lies within the time that
//! the client spent: what overlaps here overlapped there, and a pause between two
//! visits was at most this long for the client. Invariant: nothing is answered that
//! is not in the file.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::request::Request;

/// Visits that are remembered; the oldest go first.
pub const VISITS_MAX: usize = 500_000;

/// One request that was answered, or dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Counted from 1 by the begin of visits.
    pub id: u64,
    /// The host, without its port.
    pub host: String,
    /// The path with its query.
    pub path: String,
    /// The status that was sent; 0 if the client got no whole answer.
    pub status: u16,
    /// Whether the request carried a validator.
    pub is_conditional: bool,
    /// When its head had been read.
    pub began: Duration,
    /// When its last bytes were about to be sent.
    pub ended: Duration,
}

/// The log of one web.
pub struct Log {
    start: Instant,
    file: Option<Mutex<File>>,
    state: Mutex<LogState>,
    changed: Condvar,
}

#[derive(Default)]
struct LogState {
    began: u64,
    ended: u64,
    visits: VecDeque<Visit>,
}

/// A visit that has begun. Dropped before its end, it ended without an answer.
pub struct OpenVisit<'a> {
    log: &'a Log,
    visit: Option<Visit>,
}

impl Log {
    /// Begins a log; the file is appended to.
    pub fn open(file: Option<&Path>) -> io::Result<Log> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = file.map(open).transpose()?.map(Mutex::new);
        Ok(Log { start: Instant::now(), file, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Notes that a request has come.
    pub fn begin(&self, request: &Request) -> io::Result<OpenVisit<'_>> {
        let id = {
            let mut state = self.state();
            state.began += 1;
            state.began
        };
        let began = self.start.elapsed();
        let is_conditional = request.is_conditional();
        let visit = Visit {
            id,
            host: request.host.clone(),
            path: request.path.clone(),
            status: 0,
            is_conditional,
            began,
            ended: began,
        };
        if self.file.is_some() {
            let mark = if is_conditional { 'c' } else { 'u' };
            let (micros, host, path) = (began.as_micros(), &request.host, &request.path);
            self.write(&format!("begin {id} {micros} {host} {path} {mark}\n"))?;
        }
        Ok(OpenVisit { log: self, visit: Some(visit) })
    }

    pub fn visits(&self) -> Vec<Visit> {
        self.state().visits.iter().cloned().collect()
    }

    /// What is remembered, which is then forgotten.
    pub fn take_visits(&self) -> Vec<Visit> {
        std::mem::take(&mut self.state().visits).into()
    }

    /// How many visits have ended.
    pub fn ended(&self) -> u64 {
        self.state().ended
    }

    /// Waits until so many visits have ended; false if it took too long.
    pub fn wait_for(&self, count: u64, at_most: Duration) -> bool {
        let too_few = |state: &mut LogState| state.ended < count;
        let waited = self.changed.wait_timeout_while(self.state(), at_most, too_few);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended >= count
    }

    fn end(&self, mut visit: Visit, status: u16) -> io::Result<()> {
        visit.status = status;
        visit.ended = self.start.elapsed();
        let line = format!("end {} {} {status}\n", visit.id, visit.ended.as_micros());
        let mut state = self.state();
        if state.visits.len() >= VISITS_MAX {
            state.visits.pop_front();
        }
        state.visits.push_back(visit);
        state.ended += 1;
        drop(state);
        self.changed.notify_all();
        self.write(&line)
    }

    /// One call of the system for each line, so that lines are whole and a reader sees
    /// them at once.
    fn write(&self, line: &str) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenVisit<'_> {
    /// Notes the end; call it just before the last bytes are sent.
    pub fn end(mut self, status: u16) -> io::Result<()> {
        match self.visit.take() {
            Some(visit) => self.log.end(visit, status),
            None => Ok(()),
        }
    }
}

impl Drop for OpenVisit<'_> {
    fn drop(&mut self) {
        if let Some(visit) = self.visit.take() {
            let _ = self.log.end(visit, 0);
        }
    }
}
