//! Standard error that nobody waits for: logs, notices and live lines.
//!
//! Whoever reads it may be slow, stand still or be gone: a thread of its own writes, from a queue
//! of bounded length. Invariants: writing returns at once and never fails or panics; what the
//! queue has no room for is left out, and how much that was is said once there is room again;
//! lines keep their order; what is said here is JSON for whoever asked for a log in JSON.

pub mod json_line;

use serde_json::{Map, json};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{Result, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Pieces that wait to be written.
const WAITING_MAX: usize = 10_000;
/// How long the end of the process waits for what is still to be written.
const END_MAX: Duration = Duration::from_millis(500);

/// What the thread is told.
enum StderrMessage {
    Bytes(Vec<u8>),
    /// Answers once everything before it has been written.
    End(SyncSender<()>),
}

/// The way to the thread, and the pieces that were left out since the last one that went there.
struct Queue {
    pieces: SyncSender<StderrMessage>,
    left_out: Mutex<u64>,
    writes_json: AtomicBool,
}

impl Queue {
    /// Starts a thread that writes to `out`; without one, nothing is written.
    fn start(out: impl Write + Send + 'static) -> Queue {
        let (pieces, incoming) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("stderr".into());
        let _ = thread.spawn(move || write_all(out, &incoming));
        Queue { pieces, left_out: Mutex::new(0), writes_json: AtomicBool::new(false) }
    }

    fn writes_json(&self) -> bool {
        self.writes_json.load(Ordering::SeqCst)
    }

    /// Says that lines are missing.
    fn gap(&self, left_out: u64) -> String {
        match self.writes_json() {
            true => {
                let facts = Map::from_iter([("lines".to_owned(), json!(left_out))]);
                format!("{}\n", json_line::event("warn", "left-out", facts))
            }
            false => format!("driftline: {left_out} lines omitted\n"),
        }
    }

    fn put(&self, bytes: &[u8]) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut piece = Vec::with_capacity(bytes.len());
        if *left_out > 0 {
            piece.extend(self.gap(*left_out).bytes());
        }
        piece.extend(bytes);
        match self.pieces.try_send(StderrMessage::Bytes(piece)) {
            Ok(()) => *left_out = 0,
            Err(_) => *left_out += 1,
        }
    }

    /// Waits until what was put is written, but not long.
    fn end(&self) {
        let (answer, written) = sync_channel(1);
        if self.pieces.try_send(StderrMessage::End(answer)).is_ok() {
            let _ = written.recv_timeout(END_MAX);
        }
    }
}

fn write_all(mut out: impl Write, incoming: &Receiver<StderrMessage>) {
    while let Ok(piece) = incoming.recv() {
        match piece {
            // Nobody reads it: no reason to stop.
            StderrMessage::Bytes(bytes) => drop(out.write_all(&bytes).and_then(|()| out.flush())),
            StderrMessage::End(answer) => drop(answer.try_send(())),
        }
    }
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

fn queue() -> &'static Queue {
    QUEUE.get_or_init(|| Queue::start(std::io::stderr()))
}

/// From now on, notices are lines of JSON, as those of the log are.
pub fn write_json() {
    queue().writes_json.store(true, Ordering::SeqCst);
}

/// Writes what this program says of itself.
pub fn notice(level: &str, words: &str) {
    match queue().writes_json() {
        true => line(&json_line::message(level, "notice", words)),
        false => line(&format!("driftline: {words}")),
    }
}

/// From now on, panics are told here, too: a unit of work that panics must not wait for whoever
/// reads, nor write lines into a log of JSON that are none.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        notice("error", &words_of(panic));
        if std::thread::current().name() == Some("main") {
            end();
        }
    }));
}

fn words_of(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let place = panic.location().map_or_else(String::new, |at| format!(" at {at}"));
    let why = panic.payload_as_str().unwrap_or("no message");
    let trace = Backtrace::capture();
    let trace = match trace.status() {
        BacktraceStatus::Captured => format!("\n{trace}"),
        _ => String::new(),
    };
    format!("a bug{place}, in thread {}: {why}{trace}", thread.name().unwrap_or("without a name"))
}

/// Whether notices are lines of JSON.
pub fn writes_json() -> bool {
    queue().writes_json()
}

pub fn line(text: &str) {
    queue().put(format!("{text}\n").as_bytes());
}

/// Waits, for a moment at most, until what was written has arrived: before the process ends.
pub fn end() {
    if let Some(queue) = QUEUE.get() {
        queue.end();
    }
}

/// Standard error as something to write to; each write goes out as one piece.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        queue().put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place_and_thread_in_one_notice() {
        let (tell, told) = sync_channel(1);
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match std::thread::current().name() {
            Some("odd one") => drop(tell.try_send(words_of(panic))),
            _ => others(panic),
        }));
        let odd = std::thread::Builder::new().name("odd one".into());
        let odd = odd.spawn(|| panic!("no page {}", 7)).unwrap();
        assert!(odd.join().is_err());
        let words = told.recv().unwrap();
        assert!(words.contains(&format!("{}:", file!())), "{words}");
        assert!(words.contains("in thread odd one: no page 7"), "{words}");
    }

    use std::io::ErrorKind;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    /// Something that is written to, and that waits before each write until it is let.
    struct Slow {
        lets: Receiver<()>,
        written: Arc<Mutex<String>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.lets.recv().map_err(|_| ErrorKind::BrokenPipe)?;
            self.written.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stands_still_holds_nobody_up_and_hears_how_much_it_missed() {
        let (let_one, lets) = channel();
        let written = Arc::new(Mutex::new(String::new()));
        let queue = Queue::start(Slow { lets, written: written.clone() });
        let many = WAITING_MAX + 100;
        for number in 0..many {
            queue.put(format!("{number}\n").as_bytes());
        }
        // Everybody has gone on; now it reads again.
        for _ in 0..2 * many {
            let_one.send(()).unwrap();
        }
        while !written.lock().unwrap().ends_with("again\n") {
            queue.put(b"again\n");
            queue.end();
        }
        let said = written.lock().unwrap().clone();
        let numbers: Vec<usize> = said.lines().filter_map(|line| line.parse().ok()).collect();
        assert!(numbers.is_sorted() && numbers.len() >= WAITING_MAX, "{}", numbers.len());
        let told = said.lines().filter_map(|line| {
            let count = line.strip_prefix("driftline: ")?.strip_suffix(" lines omitted")?;
            count.parse::<usize>().ok()
        });
        assert!(numbers.len() + told.sum::<usize>() >= many, "what was left out is counted");
    }

    #[test]
    fn a_reader_of_a_json_log_hears_of_what_it_missed_in_json() {
        let (let_one, lets) = channel();
        let written = Arc::new(Mutex::new(String::new()));
        let queue = Queue::start(Slow { lets, written: written.clone() });
        queue.writes_json.store(true, Ordering::SeqCst);
        let many = WAITING_MAX + 100;
        for number in 0..many {
            queue.put(format!("{{\"number\":{number}}}\n").as_bytes());
        }
        for _ in 0..2 * many {
            let_one.send(()).unwrap();
        }
        let missed = || {
            let said = written.lock().unwrap().clone();
            let lines = said.lines().map(|line| serde_json::from_str(line).unwrap());
            let missed = lines.filter(|line: &serde_json::Value| line["event"] == "left-out");
            missed.filter_map(|line| line["lines"].as_u64()).sum::<u64>()
        };
        while missed() == 0 {
            queue.put(b"{}\n");
            queue.end();
        }
        assert!(missed() >= 99, "{}", missed());
    }

    #[test]
    fn a_reader_that_is_gone_is_no_trouble() {
        let (_, lets) = channel();
        let queue = Queue::start(Slow { lets, written: Arc::default() });
        (0..3 * WAITING_MAX).for_each(|_| queue.put(b"line\n"));
        queue.end();
    }
}
