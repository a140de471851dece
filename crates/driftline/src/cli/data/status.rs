//! `driftline status`: what there is, who works on it, and how each job stands.

use crate::cli::say;
use crate::place::Place;
use crate::text::{count, shown, size, span, when};
use crate::verbs::status::{Status, StatusResponse, outages};
use clap::Args as ClapArgs;
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::clock;
use store::tables::cursors::{self, LINKS, SEARCH};
use store::tables::overview::{JobOverview, RunState};
use store::tables::queue::{REQUISITES, State};

/// Show the state of the data, of the processes that use it, and of every job
#[derive(ClapArgs)]
#[command(after_help = "Example: driftline status --json")]
pub struct Args {
    #[command(flatten)]
    place: Place,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.place.json() {
        say(&args.place.ask_json::<Status>(())?.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let response = args.place.ask::<Status>(())?;
    let lines = lines(&response, &args.place.name(), clock::now_ms());
    lines.iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

fn lines(found: &StatusResponse, place: &str, now_ms: i64) -> Vec<String> {
    let overview = &found.overview;
    let mut out = vec![format!("{place}: {} parts, schema {}", overview.parts, overview.schema)];
    match &found.holder {
        Some(holder) => {
            out.push(format!("held by process {} ({})", holder.process, shown(&holder.doing)));
        }
        None if overview.nodes.is_empty() => out.push("not in use".to_owned()),
        None => {}
    }
    if found.holder.is_none() {
        out.extend(overview.nodes.iter().map(|node| {
            let heard = when(node.heartbeat_ms, now_ms);
            format!(
                "in use by {} ({}), last heartbeat {heard}",
                shown(&node.name),
                shown(&node.roles)
            )
        }));
    }
    out.push(format!("{} chunks committed", overview.commits));
    for (consumer, lag) in [(LINKS, &overview.links), (SEARCH, &overview.search)] {
        let Some(lag) = lag else { continue };
        let title = cursors::title(consumer);
        out.push(match lag.behind_chunks {
            0 => format!("{title} is up to date"),
            chunks => {
                let (chunks, since) = (count(chunks, "chunk"), span(lag.behind_ms));
                format!("{title} is {chunks} behind, for {since}")
            }
        });
    }
    if let Some(loaded) = &overview.loaded {
        let number = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        let (files, pages) =
            (count(number(loaded.files), "file"), count(number(loaded.pages), "page"));
        let last = when(loaded.last_ms, now_ms);
        out.push(format!("loaded into the link index: {files}, {pages}, the last {last}"));
    }
    if overview.hosts_blocked > 0 {
        let hosts = count(overview.hosts_blocked, "host");
        out.push(format!("{hosts} blocked after errors; see: driftline hosts --by errors"));
    }
    out.extend(found.outages.iter().map(|it| outages::line(it, now_ms)));
    for job in &overview.jobs {
        out.push(String::new());
        out.extend(job_lines(job, now_ms));
        let own = found.endless.iter().filter(|it| Some(&it.job) == job.name.as_ref());
        out.extend(own.map(|it| format!("    {}", it.line())));
        let held = job.name.as_ref().and_then(|name| Some((name, found.held.get(name)?)));
        out.extend(held.map(|(name, it)| format!("    {}", it.line(name, now_ms))));
    }
    out
}

fn job_lines(job: &JobOverview, now_ms: i64) -> Vec<String> {
    let name = job.name.as_deref().map_or(format!("job {}", job.id), shown);
    let run = job.run;
    let started = |word: &str| match job.start_ms {
        Some(start_ms) => format!("run {run} {word}, started {}", when(start_ms, now_ms)),
        None => format!("run {run} {word}"),
    };
    let standing = match (job.standing, job.end_ms) {
        (RunState::New, _) => "not yet run".to_owned(),
        (RunState::Running, _) => started("is running"),
        (RunState::Interrupted, _) => {
            format!("{}; the next crawl continues it", started("was interrupted"))
        }
        (RunState::Ended, Some(end_ms)) => {
            let took = job.start_ms.map_or(String::new(), |start_ms| {
                format!(" after {}", span(end_ms.saturating_sub(start_ms)))
            });
            format!("run {run} ended {}{took}", when(end_ms, now_ms))
        }
        (RunState::Ended, None) => format!("run {run} ended"),
    };
    let mut out = vec![format!("{name}: {standing}")];
    if let Some(error) = &job.error {
        out.push(format!("    stopped by an error: {}", shown(error)));
    }
    out.push(format!("    {}", documents(&job.counters)));
    let totals = &job.last_run;
    if totals.chunks > 0 {
        let least = if totals.more { "at least " } else { "" };
        out.push(format!(
            "    run {run}: {least}{} added, {} updated, {} removed, {} unchanged, {}, {}",
            totals.adds,
            totals.updates,
            totals.removes,
            totals.keeps,
            count(totals.errors, "error"),
            size(totals.bytes),
        ));
    }
    out
}

/// `7 documents: 4 done, 2 ready …`, in the order of a document's life.
fn documents(counters: &BTreeMap<String, i64>) -> String {
    let states: Vec<(&str, i64)> = State::ALL
        .iter()
        .filter_map(|state| Some((state.name(), *counters.get(state.name())?)))
        .collect();
    let total = count(states.iter().map(|(_, number)| number).sum(), "document");
    if states.is_empty() {
        return total;
    }
    let states: Vec<String> =
        states.iter().map(|(name, number)| format!("{number} {name}")).collect();
    let requisites = counters.get(REQUISITES).map_or(String::new(), |requisites| {
        format!(" ({} of pages)", count(*requisites, "requisite"))
    });
    format!("{total}{requisites}: {}", states.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::tables::cursors::Lag;
    use store::tables::overview::{JobOverview, NodeOverview, Overview, RunTotals};
    use store::tables::settings::LoadedArchives;

    const NOW_MS: i64 = 1_000_000;

    fn shown_lines(holder: Option<&str>, overview: Overview) -> Vec<String> {
        let holder = holder.map(|doing| serde_json::json!({"process": 7, "doing": doing}));
        let json = serde_json::json!({"holder": holder, "overview": overview});
        lines(&serde_json::from_value(json).unwrap(), "x", NOW_MS)
    }

    fn job(standing: RunState) -> JobOverview {
        JobOverview {
            id: 1,
            name: Some("a".into()),
            standing,
            run: 2,
            start_ms: Some(NOW_MS - 180_000),
            end_ms: (standing == RunState::Ended).then_some(NOW_MS - 60_000),
            counters: [("done".to_owned(), 4), ("ready".to_owned(), 1)].into(),
            last_run: RunTotals {
                chunks: 1,
                adds: 3,
                errors: 1,
                bytes: 2_500,
                ..RunTotals::default()
            },
            ..JobOverview::default()
        }
    }

    #[test]
    fn every_standing_is_a_sentence() {
        let first = |standing| {
            let overview = Overview { jobs: vec![job(standing)], ..Overview::default() };
            shown_lines(None, overview).split_off(4)
        };
        assert_eq!(first(RunState::New)[0], "a: not yet run");
        assert_eq!(first(RunState::Running)[0], "a: run 2 is running, started 3 min ago");
        assert!(
            first(RunState::Interrupted)[0]
                .contains("was interrupted, started 3 min ago; the next")
        );
        let ended = first(RunState::Ended);
        assert_eq!(ended[0], "a: run 2 ended 1 min ago after 2 min");
        assert_eq!(ended[1], "    5 documents: 1 ready, 4 done");
        assert_eq!(
            ended[2],
            "    run 2: 3 added, 0 updated, 0 removed, 0 unchanged, 1 error, 2.5 kB"
        );
    }

    #[test]
    fn how_far_the_link_index_is_behind_is_told() {
        let third = |behind_chunks, behind_ms| {
            let links = Some(Lag { behind_chunks, behind_ms });
            shown_lines(None, Overview { links, ..Overview::default() }).remove(3)
        };
        assert_eq!(third(0, 0), "the link index is up to date");
        assert_eq!(third(1, 900), "the link index is 1 chunk behind, for 900 ms");
        assert_eq!(third(213, 120_000), "the link index is 213 chunks behind, for 2 min");
        let without = shown_lines(None, Overview::default());
        assert!(!without.iter().any(|line| line.contains("link")), "{without:?}");
    }

    #[test]
    fn what_was_loaded_from_archives_is_told() {
        let loaded =
            Some(LoadedArchives { files: 1, pages: 20, links: 300, last_ms: NOW_MS - 60_000 });
        let lines = shown_lines(None, Overview { loaded, ..Overview::default() });
        assert_eq!(lines[3], "loaded into the link index: 1 file, 20 pages, the last 1 min ago");
    }

    #[test]
    fn who_works_on_it_is_told_safely() {
        let held = shown_lines(Some("crawl\u{1b}[2J"), Overview::default());
        assert_eq!(held[1], "held by process 7 (crawl\\u{1b}[2J)");
        let (name, roles) = ("a-1".to_owned(), "crawl".to_owned());
        let nodes = vec![NodeOverview { id: 1, name, roles, heartbeat_ms: NOW_MS - 3_000 }];
        let shared = shown_lines(None, Overview { nodes, hosts_blocked: 2, ..Overview::default() });
        assert_eq!(shared[1], "in use by a-1 (crawl), last heartbeat 3 s ago");
        assert!(shared[3].contains("2 hosts blocked"), "{shared:?}");
        assert_eq!(shown_lines(None, Overview::default())[1], "not in use");
    }
}
