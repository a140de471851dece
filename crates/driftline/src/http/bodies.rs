//! Bodies of requests: read whole, before a request takes its place among those that are
//! answered.
//!
//! A body may come as slowly as its caller likes, and no answer waits for it. Invariants: a
//! body has at most [`BODY_BYTES_MAX`] bytes and [`BODY_TIME_MAX`]; at most [`BODIES_MAX`] are
//! in memory, of one caller at most [`BODIES_OF_CALLER_MAX`].

use super::answer_pool::CallerId;
use super::problem::Problem;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a body.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// The longest a body may take.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(15);
/// Bodies in memory, from the first byte until the request is answered.
pub const BODIES_MAX: usize = 64;
/// Bodies of one caller in memory: a quarter, so that others find room.
pub const BODIES_OF_CALLER_MAX: usize = BODIES_MAX / 4;

/// Bodies that are in memory.
#[derive(Clone, Default)]
pub struct Bodies {
    held: Arc<Mutex<HashMap<CallerId, usize>>>,
}

/// A body, which counts until it is dropped.
pub struct HeldBody {
    pub bytes: Bytes,
    _room: BodyReservation,
}

/// Room for a body of a caller.
struct BodyReservation {
    bodies: Bodies,
    caller: CallerId,
}

impl Bodies {
    /// Reads a body of a caller.
    pub async fn read(&self, caller: CallerId, body: Body) -> Result<HeldBody, Problem> {
        let room = self.room(caller).ok_or_else(|| {
            let full = "too many requests with a body are in progress; try again";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, full)
        })?;
        let read = axum::body::to_bytes(body, BODY_BYTES_MAX);
        match tokio::time::timeout(BODY_TIME_MAX, read).await {
            Ok(Ok(bytes)) => Ok(HeldBody { bytes, _room: room }),
            Ok(Err(_)) => {
                let why =
                    format!("the body has more than {BODY_BYTES_MAX} bytes, or is incomplete");
                Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why))
            }
            Err(_) => {
                let why = format!("the body took more than {} s", BODY_TIME_MAX.as_secs());
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, why))
            }
        }
    }

    /// Bodies that are in memory, of all callers.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn room(&self, caller: CallerId) -> Option<BodyReservation> {
        let mut held = self.lock();
        let own = held.get(&caller).copied().unwrap_or(0);
        if own >= BODIES_OF_CALLER_MAX || held.values().sum::<usize>() >= BODIES_MAX {
            return None;
        }
        held.insert(caller, own + 1);
        Some(BodyReservation { bodies: self.clone(), caller })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallerId, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        let mut held = self.bodies.lock();
        match held.get_mut(&self.caller) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(held.remove(&self.caller)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_share_of_the_bodies_and_gives_it_back() {
        let bodies = Bodies::default();
        let mut held: Vec<BodyReservation> = Vec::new();
        for caller in 0..4 {
            held.extend((0..BODIES_OF_CALLER_MAX).map_while(|_| bodies.room(caller)));
            assert!(bodies.room(caller).is_none(), "the share of {caller}");
        }
        assert_eq!((held.len(), bodies.count()), (BODIES_MAX, BODIES_MAX));
        assert!(bodies.room(4).is_none(), "there is no more room");
        held.truncate(1);
        assert!(bodies.room(4).is_some() && bodies.count() == 1);
        drop(held);
        assert!(bodies.lock().is_empty());
    }
}
