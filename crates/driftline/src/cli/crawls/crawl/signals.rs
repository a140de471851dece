//! Ctrl-C and SIGTERM: once to stop in good order, twice to stop at once.
//!
//! Either way nothing that was committed is lost; at once only means that documents
//! under way are fetched again next time.

use crate::cli::terminal::ERASE_ROW;
use crate::stderr;
use ::crawl::worker::Stopper;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::io::IsTerminal;
use std::thread::JoinHandle;

/// Listens until it is dropped.
pub struct StopSignals {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Stops the worker at the first signal and the process at the second.
pub fn listen(stopper: Stopper) -> anyhow::Result<StopSignals> {
    heed("crawl", move || stopper.stop())
}

/// The same for a verb that stops when it is told.
pub fn heed(verb: &'static str, stop: impl Fn() + Send + 'static) -> anyhow::Result<StopSignals> {
    let first =
        "stopping after work in progress is committed; interrupt again to stop at once".to_owned();
    let second = format!("stopped at once; the next {verb} continues from the last commit");
    heed_saying(Words { first, second }, stop)
}

/// What is said at the first signal and at the second.
pub struct Words {
    pub first: String,
    pub second: String,
}

/// The same for a verb with words of its own.
pub fn heed_saying(words: Words, stop: impl Fn() + Send + 'static) -> anyhow::Result<StopSignals> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    let thread = std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut asked = false;
        for signal in signals.forever() {
            if asked {
                print(&words.second);
                stderr::end();
                #[allow(clippy::disallowed_methods, reason = "at once is what was asked for")]
                std::process::exit(128 + signal);
            }
            asked = true;
            // First of all, whatever becomes of the words.
            stop();
            print(&words.first);
        }
    })?;
    Ok(StopSignals { handle, thread: Some(thread) })
}

/// Says something, in the place of a line that lives there.
fn print(words: &str) {
    let shows_live_line = std::io::stderr().is_terminal() && !stderr::writes_json();
    match shows_live_line {
        true => stderr::line(&format!("{ERASE_ROW}driftline: {words}")),
        false => stderr::notice("info", words),
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
