//! Counters and gauges in the text format of Prometheus.
//!
//! Invariant: its size is fixed but for a line for each job and state, and a few for each
//! connection that cannot be reached.

use serde_json::Value as Json;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::tables::removals;

/// Upper bounds of the times of requests, in milliseconds.
const BOUNDS_MS: [u64; 9] = [1, 5, 10, 25, 50, 100, 250, 1_000, 5_000];

/// What was counted.
#[derive(Default)]
pub struct Metrics {
    by_class: [AtomicU64; 6],
    by_time: [AtomicU64; 10],
    time_us: AtomicU64,
}

impl Metrics {
    /// Counts a request.
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
    pub fn text(&self, status: &Json, (under_way, waiting): (usize, usize)) -> String {
        let mut out = String::new();
        let name = "driftline_http_requests_total";
        head(&mut out, name, "counter", "Requests by the class of their status");
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
            ("under_way", "Requests that are being answered, or wait for it", under_way),
            ("waiting", "Requests that wait for their answer to be computed", waiting),
        ] {
            let name = format!("driftline_http_requests_{name}");
            head(&mut out, &name, "gauge", about);
            let _ = writeln!(out, "{name} {count}");
        }
        gauges(&mut out, status);
        outages(&mut out, &status["outages"]);
        head(&mut out, "driftline_documents", "gauge", "Documents of jobs by where they stand");
        for job in status["overview"]["jobs"].as_array().into_iter().flatten() {
            let name = label(job["name"].as_str().unwrap_or_default());
            let counters = job["counters"].as_object().into_iter().flatten();
            for (state, count) in counters.filter(|(name, _)| !removals::is_counter(name)) {
                let (state, count) = (label(state), number(count));
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

fn number(value: &Json) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// Single numbers that the status has.
fn gauges(out: &mut String, status: &Json) {
    let overview = &status["overview"];
    let (links, search) = (&overview["links"], &overview["search"]);
    let seconds = |ms: &Json| number(ms) / 1e3;
    for (name, about, value) in [
        ("commits", "Chunks that are committed", number(&overview["commits"])),
        (
            "hosts_blocked",
            "Hosts that are left alone after trouble",
            number(&overview["hosts_blocked"]),
        ),
        ("links_behind_chunks", "Chunks the link index is behind", number(&links["behind_chunks"])),
        ("links_behind_seconds", "Age of the first of them", seconds(&links["behind_ms"])),
        (
            "search_behind_chunks",
            "Chunks the search index is behind",
            number(&search["behind_chunks"]),
        ),
        ("search_behind_seconds", "Age of the first of them", seconds(&search["behind_ms"])),
    ] {
        head(out, &format!("driftline_{name}"), "gauge", about);
        let _ = writeln!(out, "driftline_{name} {value}");
    }
}

/// Bytes of a reason that stands in a label.
const WHY_BYTES_MAX: usize = 200;

/// Connections that cannot be reached: since when, how much waits, and why.
fn outages(out: &mut String, found: &Json) {
    let found: Vec<&Json> = found.as_array().into_iter().flatten().collect();
    let name = "driftline_outages";
    head(out, name, "gauge", "Outputs and repositories that cannot be reached");
    let _ = writeln!(out, "{name} {}", found.len());
    let text = |it: &Json, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    let labels = |it: &Json| {
        // Many jobs may wait for an output; a repository is away for one.
        let job = it["jobs"][0].as_str().filter(|_| it["kind"] != "output");
        let job = job.unwrap_or_default().to_owned();
        let (kind, connection) = (text(it, "kind"), text(it, "connection"));
        let [kind, connection, job] = [kind, connection, job].map(|it| label(&it));
        format!("kind=\"{kind}\",connection=\"{connection}\",job=\"{job}\"")
    };
    let name = "driftline_outage_since_seconds";
    head(out, name, "gauge", "When it was first found to be away, as a Unix time");
    for it in &found {
        let _ = writeln!(out, "{name}{{{}}} {}", labels(it), number(&it["since_ms"]) / 1e3);
    }
    let name = "driftline_outage_waiting_documents";
    head(out, name, "gauge", "Documents that wait for it");
    for it in &found {
        let _ = writeln!(out, "{name}{{{}}} {}", labels(it), number(&it["waiting"]));
    }
    let name = "driftline_outage_info";
    head(out, name, "gauge", "Why it could not be reached the last time");
    for it in &found {
        let why = text(it, "why");
        let why = label(&why[..why.floor_char_boundary(WHY_BYTES_MAX)]);
        let _ = writeln!(out, "{name}{{{},why=\"{why}\"}} 1", labels(it));
    }
}

/// A value of a label, as the format wants it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
