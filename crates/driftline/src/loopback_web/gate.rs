//! Who is inside: the connections that are open, how many there may be, and the end.
//!
//! Invariants: never more than [`CONNECTIONS_MAX`] are open; when one more knocks, an
//! idle one is closed for it, as servers do, or it waits; every wait of a web ends when
//! the web stops.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// As many as a crawler keeps busy at once; with both ends in one process they stay
/// within the usual limit of 1024 open files.
pub const CONNECTIONS_MAX: usize = 256;

/// The gate of one web.
#[derive(Default)]
pub struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_stopping: bool,
    entered: u64,
    open: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    stream: Arc<TcpStream>,
    is_idle: bool,
}

impl Gate {
    /// Lets a connection in, when there is room. `None` at the end.
    pub fn enter(&self, stream: TcpStream) -> Option<u64> {
        let mut state = self.state();
        while !state.is_stopping && state.open.len() >= CONNECTIONS_MAX {
            if let Some(idle) = state.open.values_mut().find(|open| open.is_idle) {
                // Its thread sees the end of the stream and leaves.
                idle.is_idle = false;
                let _ = idle.stream.shutdown(Shutdown::Both);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_stopping {
            return None;
        }
        state.entered += 1;
        let number = state.entered;
        state.open.insert(number, OpenConnection { stream: Arc::new(stream), is_idle: false });
        Some(number)
    }

    /// The stream of a connection that is inside.
    pub fn stream(&self, number: u64) -> Option<Arc<TcpStream>> {
        self.state().open.get(&number).map(|open| open.stream.clone())
    }

    /// Says whether a connection waits for its next request. Whoever waits at the gate
    /// hears of a connection that has become idle.
    pub fn set_idle(&self, number: u64, is_idle: bool) {
        let mut state = self.state();
        let is_full = state.open.len() >= CONNECTIONS_MAX;
        if let Some(open) = state.open.get_mut(&number) {
            open.is_idle = is_idle;
        }
        drop(state);
        if is_idle && is_full {
            self.changed.notify_all();
        }
    }

    pub fn leave(&self, number: u64) {
        self.state().open.remove(&number);
        self.changed.notify_all();
    }

    /// Waits; false if the web stops meanwhile.
    pub fn pause(&self, duration: Duration) -> bool {
        let state = self.state();
        if duration.is_zero() {
            return !state.is_stopping;
        }
        let waited = self.changed.wait_timeout_while(state, duration, |state| !state.is_stopping);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_stopping
    }

    /// Whether the end has come.
    pub fn is_stopping(&self) -> bool {
        self.state().is_stopping
    }

    /// Ends every connection and every wait.
    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopping = true;
        for open in state.open.values() {
            let _ = open.stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until everybody has left.
    pub fn wait_empty(&self, at_most: Duration) {
        let left =
            self.changed.wait_timeout_while(self.state(), at_most, |state| !state.open.is_empty());
        drop(left);
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
