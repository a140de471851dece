//! What a person sees of a crawl: a line that lives while it runs, and a summary.
//!
//! The line goes to standard error and only to a terminal; the summary is the answer
//! and goes to standard output. Invariant: numbers come from counters, never from
//! counting rows, so watching costs the same for ten documents and ten million.

use super::whole_run::{StoppedAt, WholeRun};
use super::work::Worked;
use crate::cli::endless::{self, Endless};
use crate::cli::place::Held;
use crate::cli::words::count;
use crate::cli::{say, shown};
use ::crawl::fetch::sentences;
use ::crawl::worker::Ended;
use ::crawl::worker::progress::{Counted, ErrorGroup, Progress};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use outputs::delays::Delays;
use std::collections::{BTreeMap, VecDeque};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::ids::JobId;
use store::tables::counters;
use store::tables::cursors::{self, LINKS};
use store::{Db, clock};

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(250);
/// The rate is that of so many drawings back.
const RATE_OVER: usize = 40;
/// Errors and hosts that a summary names.
const EXAMPLES_MAX: usize = 10;
/// A link index that is no more chunks behind than this follows as it should.
const BEHIND_SHOWN: i64 = 20;

/// Draws until it is stopped.
pub struct Watching {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Watches a crawl. Without a terminal, only notices are written.
pub fn watch(
    held: &Held,
    progress: &Arc<Progress>,
    job: JobId,
    json: bool,
) -> anyhow::Result<Watching> {
    let (stop, stopped) = sync_channel(0);
    let (db, progress) = (held.db.clone(), progress.clone());
    let live = !json && std::io::stderr().is_terminal();
    let thread = std::thread::Builder::new().name("progress".into()).spawn(move || {
        let mut line = Line::new(live);
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
            let counted = progress.snapshot();
            for notice in progress.take_notices() {
                line.note(&notice);
            }
            if live {
                line.draw(&counted, &Standing::read(&db, job));
            }
        }
        line.bar.finish_and_clear();
    })?;
    Ok(Watching { stop: Some(stop), thread: Some(thread) })
}

impl Watching {
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
struct Standing {
    /// Documents that are still to be done.
    open: Option<i64>,
    /// Chunks that the link index is behind by.
    behind: i64,
}

impl Standing {
    fn read(db: &Db, job: JobId) -> Standing {
        let now_ms = clock::now_ms();
        let read = db.read(move |tx| {
            Ok((counters::of_job(tx, job)?, cursors::lag(tx, LINKS, now_ms)?.behind_chunks))
        });
        let Ok((counted, behind)) = read else { return Standing::default() };
        let counted: BTreeMap<String, i64> = counted.into_iter().collect();
        let count = |name: &str| counted.get(name).copied().unwrap_or(0);
        let open = count("ready") + count("waiting") + count("active");
        Standing { open: Some(open), behind }
    }
}

struct Line {
    bar: ProgressBar,
    since: Instant,
    recent: VecDeque<(Instant, u64)>,
}

impl Line {
    fn new(live: bool) -> Line {
        let target = if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{spinner} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.set_draw_target(target);
        Line { bar, since: Instant::now(), recent: VecDeque::new() }
    }

    fn note(&self, notice: &str) {
        let notice = format!("driftline: {}", shown(notice));
        if self.bar.is_hidden() {
            eprintln!("{notice}");
        } else {
            self.bar.println(notice);
        }
    }

    fn draw(&mut self, counted: &Counted, standing: &Standing) {
        let (now, documents) = (Instant::now(), counted.documents());
        self.recent.push_back((now, documents));
        if self.recent.len() > RATE_OVER {
            self.recent.pop_front();
        }
        let (then, before) = self.recent[0];
        let seconds = now.duration_since(then).as_secs_f64();
        #[allow(clippy::cast_precision_loss)] // A rate for people.
        let rate = if seconds > 0.0 { (documents - before) as f64 / seconds } else { 0.0 };
        let mut text = format!(
            "{documents} documents, {rate:.0}/s, {} errors, {}",
            counted.failed(),
            HumanBytes(counted.bytes)
        );
        if let Some(open) = standing.open {
            text += &format!(", {open} to do");
            #[allow(clippy::cast_precision_loss)] // A guess for people.
            if rate >= 0.5 && open > 0 {
                let left = Duration::from_secs_f64(open as f64 / rate);
                text += &format!(", about {} left", HumanDuration(left));
            }
        }
        if standing.behind > BEHIND_SHOWN {
            text += &format!(", the link index {} chunks behind", standing.behind);
        }
        if let Some(what) = &counted.waiting_for {
            text += &format!("; waiting: {}", shown(what));
        }
        let spent = self.since.elapsed();
        self.bar.set_message(format!("{text} [{}]", HumanDuration(spent)));
        self.bar.tick();
    }
}

/// What came of a crawl.
#[derive(serde::Serialize)]
pub struct Summary {
    job: String,
    run: i64,
    ended: &'static str,
    /// Documents left for the next run, because their hosts cannot be reached.
    left: i64,
    /// What all processes did in the run.
    whole_run: WholeRun,
    /// What this process did.
    did: Counted,
    failed: u64,
    slowest_hosts: Vec<Slow>,
    /// All documents of the job, by state.
    documents: BTreeMap<String, i64>,
    /// Patterns of pages that look endless and are followed no further.
    endless: Vec<Endless>,
    /// From the commits of chunks until their links were visible.
    links_visible: Delay,
    /// The same until their documents were found.
    search_visible: Delay,
}

#[derive(serde::Serialize)]
struct Delay {
    chunks: u64,
    median_ms: u64,
    p99_ms: u64,
    longest_ms: u64,
}

impl Delay {
    fn of(delays: &Delays) -> Delay {
        Delay {
            chunks: delays.counted(),
            median_ms: delays.percentile_ms(50),
            p99_ms: delays.percentile_ms(99),
            longest_ms: delays.longest_ms(),
        }
    }
}

#[derive(serde::Serialize)]
struct Slow {
    host: String,
    requests: u64,
    mean_ms: u64,
}

impl Summary {
    /// Reads what there is to say.
    pub fn read(held: &Held, name: &str, worked: &Worked) -> anyhow::Result<Summary> {
        let Worked { begun, did, ended, visible } = worked;
        let job = begun.job;
        let of = name.to_owned();
        let run = begun.run;
        let (documents, endless, whole_run) = held.db.read(move |tx| {
            let endless = endless::of_job(tx, (job, &of))?;
            Ok((counters::of_job(tx, job)?, endless, WholeRun::read(tx, job, run)?))
        })?;
        let (ended, left) = match ended {
            Ended::Finished { left } => ("finished", *left),
            Ended::Stopped => ("stopped", 0),
            Ended::Aborted => ("aborted", 0),
            Ended::Replaced => ("replaced", 0),
        };
        let slowest_hosts = did
            .slowest(EXAMPLES_MAX)
            .into_iter()
            .map(|(host, time)| Slow {
                host,
                requests: time.requests,
                mean_ms: time.busy_ms / time.requests.max(1),
            })
            .collect();
        Ok(Summary {
            job: name.to_owned(),
            run: begun.run.0,
            ended,
            left,
            whole_run,
            failed: did.failed(),
            slowest_hosts,
            did: did.clone(),
            endless,
            links_visible: Delay::of(&visible.links),
            search_visible: Delay::of(&visible.search),
            documents: documents.into_iter().filter(|(_, count)| *count != 0).collect(),
        })
    }

    /// Whether there was something to do in the run, and nothing at all could be had.
    pub fn is_in_vain(&self) -> bool {
        self.whole_run.is_in_vain(self.failed.max(self.left.unsigned_abs()))
    }

    /// Prints it for people.
    pub fn print(&self) {
        let did = &self.did;
        say(&format!(
            "{}: {} added, {} updated, {} unchanged ({} not sent again), {} removed",
            count(did.documents().cast_signed(), "document"),
            did.added,
            did.updated,
            did.unchanged,
            did.not_modified,
            did.removed.values().sum::<u64>()
        ));
        let others = [
            ("redirects", did.redirected),
            ("links to what is missing", did.missing),
            ("forbidden", did.forbidden.values().sum()),
            ("failed", self.failed),
        ];
        let others: Vec<String> = others
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if !others.is_empty() {
            say(&format!("besides: {}", others.join(", ")));
        }
        say(&format!("{} requests, {} received", did.requests, HumanBytes(did.bytes)));
        self.print_reasons();
        self.print_states();
        match (self.ended, self.left) {
            ("finished", 0) => {}
            ("finished", 1) => {
                say("1 document waits for the next run: its host could not be reached; \
                 `driftline hosts --by errors` shows it")
            }
            ("finished", left) => say(&format!(
                "{left} documents wait for the next run: their hosts could not be reached; \
                 `driftline hosts --by errors` shows them"
            )),
            _ => say("stopped before the end; the same command goes on from here"),
        }
    }

    fn print_states(&self) {
        let left_out = self.whole_run.stopped_at.as_ref().map_or(0, |it| it.left_out);
        let states: Vec<String> = self
            .documents
            .iter()
            .map(|(state, count)| (state, if state == "cut" { count - left_out } else { *count }))
            .filter(|(_, count)| *count > 0)
            .map(|(state, count)| format!("{count} {state}"))
            .collect();
        say(&format!(
            "the job has {}",
            if states.is_empty() { "no documents".into() } else { states.join(", ") }
        ));
        if let Some(StoppedAt { pages, left_out }) = &self.whole_run.stopped_at {
            say(&format!(
                "stopped at {}; {} left out (--max-pages {} takes in more)",
                count(*pages, "page"),
                count(*left_out, "known URL"),
                pages.saturating_mul(2)
            ));
        }
        for seed in self.whole_run.missing_seeds.iter().take(EXAMPLES_MAX) {
            say(&format!("the server says that there is no page at {}, a seed", shown(seed)));
        }
    }

    fn print_reasons(&self) {
        let did = &self.did;
        for (what, counts) in [("removed", &did.removed), ("forbidden", &did.forbidden)] {
            for (reason, count) in counts {
                say(&format!("  {what} ({reason}): {count}"));
            }
        }
        for (what, groups) in [("failed", &did.errors), ("in trouble", &did.troubles)] {
            let mut groups: Vec<_> = groups.iter().collect();
            groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
            for (code, group) in groups.iter().take(EXAMPLES_MAX) {
                say(&format!("  {what}: {}", group_line(code, group)));
            }
        }
        self.endless.iter().for_each(|it| say(&format!("  {}", it.line())));
        if self.slowest_hosts.len() > 1 {
            let hosts: Vec<String> = self
                .slowest_hosts
                .iter()
                .take(3)
                .map(|slow| format!("{} ({} ms)", shown(&slow.host), slow.mean_ms))
                .collect();
            say(&format!("  slowest hosts: {}", hosts.join(", ")));
        }
    }
}

/// How often something went wrong, an example with its words, and the flag that helps.
fn group_line(code: &str, group: &ErrorGroup) -> String {
    let words = group.sentence.clone().or_else(|| sentences::of(code));
    let words = words.map_or_else(|| shown(code), |words| shown(&words));
    let example = match group.example.as_str() {
        "" => String::new(),
        url => format!(", such as {}", shown(url)),
    };
    let hint = if sentences::PRIVATE.contains(&code) { "; add --allow-private" } else { "" };
    format!("{}{example}: {words}{hint} ({})", group.count, shown(code))
}
