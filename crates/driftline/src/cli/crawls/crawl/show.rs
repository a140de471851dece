//! What a person sees of a crawl when it is over: a summary.
//!
//! It is the answer and goes to standard output. Invariant: numbers come from counters, never
//! from counting rows.

use super::whole_run::{StoppedAt, WholeRun};
use super::work::CrawlWorkDone;
use crate::cli::say;
use crate::text::{count, shown, size_of};
use crate::verbs::jobs::removals as held_removals;
use crate::verbs::jobs::removals::HeldRemovals;
use crate::verbs::status::endless::{self, Endless};
use ::crawl::fetch::sentences;
use ::crawl::worker::CrawlEnd;
use ::crawl::worker::progress::{ErrorGroup, ProgressCounts};
use outputs::delays::Delays;
use std::collections::BTreeMap;
use store::Db;
use store::clock;
use store::tables::{counters, job_states, removals};

/// Errors and hosts that a summary names.
const EXAMPLES_MAX: usize = 10;

/// What came of a crawl.
#[derive(serde::Serialize)]
pub struct CrawlSummary {
    job: String,
    run: i64,
    ended: &'static str,
    /// Documents left for the next run, because their hosts cannot be reached.
    left: i64,
    /// What all processes did in the run.
    whole_run: WholeRun,
    /// What this process did.
    did: ProgressCounts,
    failed: u64,
    slowest_hosts: Vec<Slow>,
    /// Removals that wait for a person's decision.
    held: Option<HeldRemovals>,
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

impl CrawlSummary {
    /// Reads what there is to say.
    pub fn read(db: &Db, name: &str, worked: &CrawlWorkDone) -> anyhow::Result<CrawlSummary> {
        let CrawlWorkDone { begun, did, ended, visible } = worked;
        let job = begun.job;
        let of = name.to_owned();
        let run = begun.run;
        let (documents, endless, whole_run, held) = db.read(move |tx| {
            let endless = endless::of_job(tx, job, &of)?;
            let state = job_states::state(tx, job)?;
            let held = held_removals::held_removals(tx, job, &state)?;
            Ok((counters::of_job(tx, job)?, endless, WholeRun::read(tx, job, run)?, held))
        })?;
        let (ended, left) = match ended {
            CrawlEnd::Finished { left } => ("finished", *left),
            CrawlEnd::Stopped => ("stopped", 0),
            CrawlEnd::Aborted => ("aborted", 0),
            CrawlEnd::Replaced => ("replaced", 0),
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
        Ok(CrawlSummary {
            job: name.to_owned(),
            run: begun.run.0,
            ended,
            left,
            whole_run,
            held,
            failed: did.failed(),
            slowest_hosts,
            did: did.clone(),
            endless,
            links_visible: Delay::of(&visible.links),
            search_visible: Delay::of(&visible.search),
            documents: documents
                .into_iter()
                .filter(|(name, count)| *count != 0 && !removals::is_counter(name))
                .collect(),
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
            "{}: {} added, {} updated, {} unchanged ({} not modified), {} removed",
            count(did.documents().cast_signed(), "document"),
            did.added,
            did.updated,
            did.unchanged,
            did.not_modified,
            did.removed.values().sum::<u64>()
        ));
        let others = [
            ("redirects", did.redirected),
            ("missing", did.missing),
            ("forbidden", did.forbidden.values().sum()),
            ("failed", self.failed),
        ];
        let others: Vec<String> = others
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if !others.is_empty() {
            say(&format!("also: {}", others.join(", ")));
        }
        say(&format!("{} requests, {} received", did.requests, size_of(did.bytes)));
        self.print_reasons();
        self.print_states();
        if let Some(held) = &self.held {
            say(&held.line(&self.job, clock::now_ms()));
        }
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
            _ => say("stopped before the end; run the same command to continue"),
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
                "stopped at {}; {} skipped (--max-pages {} takes more)",
                count(*pages, "page"),
                count(*left_out, "known URL"),
                pages.saturating_mul(2)
            ));
        }
        for seed in self.whole_run.missing_seeds.iter().take(EXAMPLES_MAX) {
            say(&format!("the server has no page at the seed {}", shown(seed)));
        }
    }

    fn print_reasons(&self) {
        let did = &self.did;
        for (what, counts) in [("removed", &did.removed), ("forbidden", &did.forbidden)] {
            for (reason, count) in counts {
                say(&format!("  {what} ({reason}): {count}"));
            }
        }
        for (what, groups) in [("failed", &did.errors), ("temporary errors", &did.troubles)] {
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
