//! The line that lives while a crawl runs.
//!
//! It goes to standard error and only to a terminal; without one, only notices are written.
//! Invariants: numbers come from counters, never from counting rows, so watching costs the
//! same for ten documents and ten million; the line takes one row of the terminal.

use crate::cli::terminal::{self, LiveLine, Part};
use crate::stderr;
use crate::text::{count, shown, size_of, span};
use ::crawl::worker::progress::{Progress, ProgressCounts};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::ids::JobId;
use store::tables::cursors::{self, LINKS};
use store::tables::{counters, job_states};
use store::{Db, clock};

/// How often the line is drawn.
pub const EVERY: Duration = Duration::from_millis(250);
/// The rate is that of so many drawings back.
const RATE_OVER: usize = 40;
/// A link index that is no more chunks behind than this follows as it should.
const BEHIND_SHOWN: i64 = 20;
/// Documents in these states are still to be done.
const OPEN: [&str; 3] = ["ready", "waiting", "active"];
/// Jobs whose documents are summed.
const BUSY_MAX: u32 = 100;

/// Draws until it is stopped.
pub struct LiveDisplay {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Watches a crawl of this process.
pub fn watch(
    db: &Db,
    progress: &Arc<Progress>,
    job: JobId,
    json: bool,
) -> anyhow::Result<LiveDisplay> {
    let (stop, stopped) = sync_channel(0);
    let (db, progress) = (db.clone(), progress.clone());
    let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
        let mut line = ProgressLine::new(json);
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
            for notice in progress.take_notices() {
                line.note(&notice);
            }
            if line.is_live() {
                line.draw(&progress.snapshot(), &LiveStatus::of_job(&db, job));
            }
        }
        line.clear();
    })?;
    Ok(LiveDisplay { stop: Some(stop), thread: Some(thread) })
}

impl LiveDisplay {
    /// Takes the line away.
    pub fn stop(mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the tables tell; nothing while the database is busy or away.
#[derive(Default)]
pub struct LiveStatus {
    /// Documents that are still to be done.
    pub open: Option<i64>,
    /// Chunks that the link index is behind by.
    pub behind: i64,
}

impl LiveStatus {
    /// How one job stands.
    pub fn of_job(db: &Db, job: JobId) -> LiveStatus {
        let now_ms = clock::now_ms();
        let read = db.read(move |tx| {
            Ok((counters::of_job(tx, job)?, cursors::lag(tx, LINKS, now_ms)?.behind_chunks))
        });
        let Ok((counted, behind)) = read else { return LiveStatus::default() };
        let is_open = |it: &&(String, i64)| OPEN.contains(&it.0.as_str());
        let open = counted.iter().filter(is_open).map(|it| it.1).sum();
        LiveStatus { open: Some(open), behind }
    }
}

impl LiveStatus {
    /// How all jobs stand that are about something, and are not paused.
    pub fn of_all(db: &Db) -> LiveStatus {
        let now_ms = clock::now_ms();
        let read = db.read(move |tx| {
            let mut open = 0;
            let busy = job_states::busy(tx, JobId(i64::MIN), BUSY_MAX)?;
            for (job, _) in busy.into_iter().filter(|(_, it)| !it.paused && !it.waiting) {
                let counted = counters::of_job(tx, job)?;
                let is_open = |it: &&(String, i64)| OPEN.contains(&it.0.as_str());
                open += counted.iter().filter(is_open).map(|it| it.1).sum::<i64>();
            }
            Ok((open, cursors::lag(tx, LINKS, now_ms)?.behind_chunks))
        });
        let Ok((open, behind)) = read else { return LiveStatus::default() };
        LiveStatus { open: Some(open), behind }
    }
}

/// The line, and how fast things go.
pub struct ProgressLine {
    live: Option<LiveLine<stderr::Stderr>>,
    since: Instant,
    recent: VecDeque<(Instant, u64)>,
}

impl ProgressLine {
    /// A line on a terminal; a quiet one shows nothing but notices.
    pub fn new(quiet: bool) -> ProgressLine {
        let live = if quiet { None } else { terminal::live_line() };
        ProgressLine { live, since: Instant::now(), recent: VecDeque::new() }
    }

    /// Whether somebody sees it.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Writes something that is worth a line of its own.
    pub fn note(&mut self, notice: &str) {
        self.aside(|| stderr::line(&format!("driftline: {}", shown(notice))));
    }

    /// Writes something else to the terminal.
    pub fn aside(&mut self, write: impl FnOnce()) {
        self.clear();
        write();
    }

    pub fn clear(&mut self) {
        if let Some(live) = &mut self.live {
            live.clear(terminal::error_columns());
        }
    }

    pub fn draw(&mut self, counted: &ProgressCounts, standing: &LiveStatus) {
        let rate = self.rate(counted.documents());
        let spent = self.since.elapsed();
        let Some(live) = &mut self.live else { return };
        let parts = parts(counted, standing, rate, spent);
        live.draw(terminal::error_columns(), |columns| terminal::fitted(&parts, columns));
    }

    /// Documents a second, over the last drawings.
    fn rate(&mut self, documents: u64) -> f64 {
        let now = Instant::now();
        self.recent.push_back((now, documents));
        if self.recent.len() > RATE_OVER {
            self.recent.pop_front();
        }
        let (then, before) = self.recent[0];
        let seconds = now.duration_since(then).as_secs_f64();
        #[allow(clippy::cast_precision_loss)] // A rate for people.
        let done = documents.saturating_sub(before) as f64;
        if seconds > 0.0 { done / seconds } else { 0.0 }
    }
}

/// What the line tells, the more important first.
fn parts(counted: &ProgressCounts, standing: &LiveStatus, rate: f64, spent: Duration) -> Vec<Part> {
    let span_of = |time: Duration| span(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    let mut parts = vec![Part::whole(count(counted.documents().cast_signed(), "document"))];
    if let Some(open) = standing.open {
        parts.push(Part::whole(format!("{open} to do")));
    }
    if counted.failed() > 0 {
        parts.push(Part::whole(format!("{} failed", counted.failed())));
    }
    if let Some(what) = &counted.waiting_for {
        parts.push(Part::cuttable(format!("waiting: {}", shown(what))));
    }
    parts.push(Part::whole(format!("{rate:.0}/s")));
    if let Some(open) = standing.open.filter(|open| rate >= 0.5 && *open > 0) {
        #[allow(clippy::cast_precision_loss)] // A guess for people.
        let left = Duration::from_secs_f64(open as f64 / rate);
        parts.push(Part::whole(format!("about {} left", span_of(left))));
    }
    parts.push(Part::whole(size_of(counted.bytes)));
    parts.push(Part::whole(format!("[{}]", span_of(spent))));
    if standing.behind > BEHIND_SHOWN {
        parts.push(Part::whole(format!("the link index is {} chunks behind", standing.behind)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_in(columns: usize, waiting_for: Option<&str>) -> String {
        let waiting_for = waiting_for.map(str::to_owned);
        let counted = ProgressCounts {
            added: 123_456,
            bytes: 9_876_543_210,
            waiting_for,
            ..ProgressCounts::default()
        };
        let standing = LiveStatus { open: Some(7_654_321), behind: 1_234 };
        let parts = parts(&counted, &standing, 123.4, Duration::from_secs(7_200));
        terminal::fitted(&parts, columns)
    }

    #[test]
    fn the_figures_of_a_large_crawl_fit_80_columns() {
        let line = shown_in(77, None);
        assert_eq!(line, "123456 documents, 7654321 to do, 123/s, about 17 h left, 9.8 GB, [2 h]");
        let wide = shown_in(200, None);
        assert!(wide.ends_with(", the link index is 1234 chunks behind"), "{wide}");
    }

    #[test]
    fn what_is_waited_for_is_cut_and_has_no_control_characters() {
        let waits = "\u{1b}[2Jwaiting for 日本語.example (its delay)";
        let line = shown_in(77, Some(waits));
        assert!(
            line.starts_with(
                "123456 documents, 7654321 to do, waiting: \\u{1b}[2Jwaiting for 日本語"
            )
        );
        assert!(line.ends_with('…') && crate::text::width(&line) <= 77, "{line}");
    }
}
