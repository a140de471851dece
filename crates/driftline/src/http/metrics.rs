//! Counters and gauges in the text format of Prometheus.
//!
//! Invariant: its size is fixed but for a line for each job and state, and a few for each
//! connection that cannot be reached.

use crate::verbs::status::StatusResponse;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::tables::outages::{Outage, OutageKind};
use store::tables::overview::Overview;
use store::tables::removals;

/// Upper bounds of the times of requests, in milliseconds.
const BOUNDS_MS: [u64; 9] = [1, 5, 10, 25, 50, 100, 250, 1_000, 5_000];

#[derive(Default)]
pub struct Metrics {
    by_class: [AtomicU64; 6],
    by_time: [AtomicU64; 10],
    time_us: AtomicU64,
}

impl Metrics {
    pub fn request(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).min(self.by_class.len() - 1);
        self.by_class[class].fetch_add(1, Ordering::Relaxed);
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let at = BOUNDS_MS.iter().position(|bound| ms < *bound).unwrap_or(BOUNDS_MS.len());
        self.by_time[at].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.time_us.fetch_add(us, Ordering::Relaxed);
    }

    /// All of it, with what the status says.
    pub fn text(&self, status: &StatusResponse, under_way: usize, waiting: usize) -> String {
        let mut out = String::new();
        let name = "driftline_http_requests_total";
        head(&mut out, name, "counter", "Requests by status class");
        for (class, count) in self.by_class.iter().enumerate().skip(1) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}{{class=\"{class}xx\"}} {count}");
        }
        let name = "driftline_http_request_seconds";
        head(&mut out, name, "histogram", "Times of requests");
        let mut sum = 0;
        for (at, count) in self.by_time.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let bound = BOUNDS_MS.get(at).map(|ms| Duration::from_millis(*ms).as_secs_f64());
            let bound = bound.map_or("+Inf".to_owned(), |seconds| seconds.to_string());
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let seconds = Duration::from_micros(self.time_us.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_sum {seconds}\n{name}_count {sum}");
        for (name, about, count) in [
            ("under_way", "Requests in progress or waiting", under_way),
            ("waiting", "Requests waiting for a worker thread", waiting),
        ] {
            let name = format!("driftline_http_requests_{name}");
            head(&mut out, &name, "gauge", about);
            let _ = writeln!(out, "{name} {count}");
        }
        gauges(&mut out, &status.overview);
        outages(&mut out, &status.outages);
        head(&mut out, "driftline_documents", "gauge", "Documents of jobs by state");
        for job in &status.overview.jobs {
            let name = label(job.name.as_deref().unwrap_or_default());
            let counters = job.counters.iter();
            for (state, count) in counters.filter(|(name, _)| !removals::is_counter(name)) {
                let state = label(state);
                let _ = writeln!(
                    out,
                    "driftline_documents{{job=\"{name}\",state=\"{state}\"}} {count}"
                );
            }
        }
        out
    }
}

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

/// Single numbers that the status has.
fn gauges(out: &mut String, overview: &Overview) {
    let links = overview.links.clone().unwrap_or_default();
    let search = overview.search.clone().unwrap_or_default();
    let seconds = |ms: i64| ms as f64 / 1e3;
    for (name, about, value) in [
        ("commits", "Committed chunks", overview.commits as f64),
        ("hosts_blocked", "Hosts that are blocked after errors", overview.hosts_blocked as f64),
        ("links_behind_chunks", "Chunks the link index is behind", links.behind_chunks as f64),
        ("links_behind_seconds", "Age of the oldest of them", seconds(links.behind_ms)),
        ("search_behind_chunks", "Chunks the search index is behind", search.behind_chunks as f64),
        ("search_behind_seconds", "Age of the oldest of them", seconds(search.behind_ms)),
    ] {
        head(out, &format!("driftline_{name}"), "gauge", about);
        let _ = writeln!(out, "driftline_{name} {value}");
    }
}

/// Bytes of a reason that stands in a label.
const WHY_BYTES_MAX: usize = 200;

/// Connections that cannot be reached: since when, how much waits, and why.
fn outages(out: &mut String, found: &[Outage]) {
    let name = "driftline_outages";
    head(out, name, "gauge", "Outputs and repositories that cannot be reached");
    let _ = writeln!(out, "{name} {}", found.len());
    let name = "driftline_outage_since_seconds";
    head(out, name, "gauge", "When the outage began, as a Unix time");
    for it in found {
        let _ = writeln!(out, "{name}{{{}}} {}", labels(it), it.since_ms as f64 / 1e3);
    }
    let name = "driftline_outage_waiting_documents";
    head(out, name, "gauge", "Documents waiting for it");
    for it in found {
        let _ = writeln!(out, "{name}{{{}}} {}", labels(it), it.waiting);
    }
    let name = "driftline_outage_info";
    head(out, name, "gauge", "Why it could not be reached last time");
    for it in found {
        let why = label(&it.why[..it.why.floor_char_boundary(WHY_BYTES_MAX)]);
        let _ = writeln!(out, "{name}{{{},why=\"{why}\"}} 1", labels(it));
    }
}

fn labels(it: &Outage) -> String {
    // Many jobs may wait for an output; a repository is away for one.
    let job = it.jobs.first().filter(|_| it.kind != OutageKind::Output);
    let job = label(job.map_or("", String::as_str));
    let kind = match it.kind {
        OutageKind::Output => "output",
        OutageKind::Repository => "repository",
        OutageKind::RunEnd => "run_end",
    };
    let connection = label(&it.connection);
    format!("kind=\"{kind}\",connection=\"{connection}\",job=\"{job}\"")
}

/// A value of a label, as the format wants it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
