//! A panic in a unit of work becomes a value where the work is started.
//!
//! Whoever starts a page, a commit, a batch or a delivery runs it through [`caught`] (or
//! [`caught_async`]) and treats [`Error::Internal`] as the failure of that one unit.
//! Invariant: no thread of the program ends, and nobody waits for ever, because one unit of
//! work met a bug.
//!
//! [`Faults`] are how tests cause such panics in the middle of a real run. A program that
//! nobody tests has none, and asking costs one comparison.

use crate::{Error, Result};
use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

/// Characters of a panic's message that are kept.
const MESSAGE_CHARS_MAX: usize = 500;

/// Runs a unit of work; a panic inside is [`Error::Internal`]. The caller must not go on
/// with what the work may have left half changed.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| internal(&*panic))
}

/// As [`caught`], for work that waits.
pub async fn caught_async<T>(work: impl Future<Output = T>) -> Result<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(internal(&*panic))),
        }
    })
    .await
}

/// What a panic says.
fn internal(panic: &(dyn Any + Send)) -> Error {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "a panic without a message",
    };
    let reason = message.chars().filter(|it| *it != '\0').take(MESSAGE_CHARS_MAX).collect();
    Error::Internal { reason }
}

/// Where a test can make a unit of work panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPoint {
    /// A page was fetched and is being read; the subject is its URL.
    ReadPage,
    /// A document of a connector is being looked at; the subject is its identifier.
    LookAtDocument,
    /// robots.txt is being asked for; the subject is its origin.
    AskRobots,
    /// A chunk is being committed; called with the URL of each of its documents.
    CommitDocument,
    /// Documents are being claimed; the subject is the job's name.
    Claim,
    /// A job is being started; the subject is its number.
    StartJob,
    /// A document goes into an index; the subject is its URL.
    IndexDocument,
    /// Documents are handed to an output; the subject is its name.
    Deliver,
}

/// What is called at a fault point with its subject.
type Cause = dyn Fn(FaultPoint, &str) + Send + Sync;

/// Faults that a test injects; the default injects none.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Cause>>);

impl Faults {
    /// Calls `cause` at every fault point; it panics where it wants to.
    pub fn new(cause: impl Fn(FaultPoint, &str) + Send + Sync + 'static) -> Faults {
        Faults(Some(Arc::new(cause)))
    }

    /// A unit of work has come to a fault point.
    pub fn at(&self, point: FaultPoint, subject: &str) {
        if let Some(cause) = &self.0 {
            cause(point, subject);
        }
    }

    /// Whether there are none, so that subjects need not be listed.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_keeps_its_message() {
        assert_eq!(caught(|| 1).unwrap(), 1);
        let number = 7;
        let error = caught(|| panic!("page {number} broke")).map(|()| 0).unwrap_err();
        assert_eq!(error.to_string(), "internal error: page 7 broke");
        let error = caught(|| panic!("{}", "x".repeat(10_000))).map(|()| 0).unwrap_err();
        assert!(error.to_string().len() < 600);
        let odd = caught(|| std::panic::panic_any(5)).map(|()| 0).unwrap_err();
        assert!(odd.to_string().contains("without a message"));
    }

    #[test]
    fn a_panic_behind_an_await_is_caught_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(caught_async(async {
            tokio::task::yield_now().await;
            panic!("late");
        }));
        assert!(matches!(outcome, Err(Error::Internal { reason }) if reason == "late"));
        assert_eq!(runtime.block_on(caught_async(async { 3 })).unwrap(), 3);
    }
}
