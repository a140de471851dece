//! One thread that runs the async library for synchronous callers.
//!
//! Invariant: a call returns, whatever its work does: with the answer, or with
//! nothing once its deadline has passed or its work has panicked.

use std::future::Future;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::{Error, Result};

/// Threads for file system calls, which block.
const FILE_THREADS_MAX: usize = 4;
/// How much later than its deadline a call gives up waiting for its own runtime.
const GRACE: Duration = Duration::from_secs(5);

/// A running thread with its runtime; dropping it ends both.
pub(super) struct Runtime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    pub(super) fn start() -> Result<Runtime> {
        let refused =
            |source| Error::Io { path: "the thread for objects".to_owned(), error: source };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(FILE_THREADS_MAX)
            .build()
            .map_err(refused)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        };
        let thread =
            std::thread::Builder::new().name("objects".to_owned()).spawn(run).map_err(refused)?;
        Ok(Runtime { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs `work` on the thread and waits. `None`: it did not end in time.
    pub(super) fn run<T: Send + 'static>(
        &self,
        deadline: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            if let Ok(value) = tokio::time::timeout(deadline, work).await {
                let _ = answer.send(value);
            }
        });
        answered.recv_timeout(deadline + GRACE).ok()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_hangs_or_panics_still_returns() {
        let runtime = Runtime::start().unwrap();
        let hung = runtime.run(Duration::from_millis(1), std::future::pending::<()>());
        assert_eq!(hung, None);
        let panicked = runtime.run(CALL, async { panic!("expected by the test") });
        assert_eq!(panicked, None::<()>);
        assert_eq!(runtime.run(CALL, async { 7 }), Some(7));
    }

    const CALL: Duration = Duration::from_secs(60);
}
