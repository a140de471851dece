//! Jobs listed and shown.

use crate::catalog::typed;
use crate::cli::{say, say_json};
use crate::definitions::CONTINUOUS;
use crate::place::Place;
use crate::text::{self, count, exact_span, shown, span, when};
use crate::verbs::jobs::JobRequest;
use crate::verbs::jobs::job_status::{JobLine, Jobs, JobsRequest};
use crate::verbs::jobs::show::{ShowJob, ShownJob};
use crate::verbs::status::outages;
use crawl::schedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::process::ExitCode;
use store::clock;
use store::tables::job_states::runs::RunRow;
use store::tables::jobs::StartMethod;

pub fn list(place: &Place) -> anyhow::Result<ExitCode> {
    let lines = place.ask::<Jobs>(JobsRequest { name: None })?;
    if place.json() {
        say_json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    if lines.is_empty() {
        say("no job defined; create one: driftline job create NAME --connection CONNECTION");
        return Ok(ExitCode::SUCCESS);
    }
    table(&lines, clock::now_ms()).iter().for_each(|line| say(line));
    let idle = |line: &JobLine| !line.attended && line.state != "INACTIVE";
    if let Some(line) = lines.iter().find(|line| idle(line)) {
        let (name, place) = (shown(&line.name), place.flags());
        say(&format!("no process is working on job {name}; start one: driftline work{place}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(lines: &[JobLine], now_ms: i64) -> Vec<String> {
    let heads = ["name", "connection", "state", "", "run", "documents", "outstanding", "processed"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(lines.iter().map(|it| {
        vec![
            shown(&it.name),
            shown(&it.connection),
            shown(&it.state),
            shown(&it.word),
            it.run.to_string(),
            it.documents.to_string(),
            it.outstanding.to_string(),
            it.processed.to_string(),
        ]
    }));
    let mut out = Vec::new();
    for (at, line) in text::table(&rows, |column| column >= 4).into_iter().enumerate() {
        out.push(line);
        let Some(it) = at.checked_sub(1).map(|at| &lines[at]) else { continue };
        out.extend(it.error.as_ref().map(|error| format!("    error: {}", shown(error))));
        out.extend(it.outages.iter().map(|it| format!("    {}", outages::line(it, now_ms))));
    }
    out
}

pub fn show(place: &Place, name: String) -> anyhow::Result<ExitCode> {
    let it = place.ask::<ShowJob>(JobRequest { name })?;
    if place.json() {
        say_json(&it)?;
        return Ok(ExitCode::SUCCESS);
    }
    let now_ms = clock::now_ms();
    let parts = [standing_lines(&it, now_ms), defined(&it), fetched(&it), past(&it, now_ms)];
    parts.iter().flatten().for_each(|line| say(line));
    if !it.line.attended && it.line.state != "INACTIVE" {
        say(&format!("no process is working on it; start one: driftline work{}", place.flags()));
    }
    Ok(ExitCode::SUCCESS)
}

fn standing_lines(it: &ShownJob, now_ms: i64) -> Vec<String> {
    let line = &it.line;
    let run = match (line.run, it.begun_ms) {
        (0, _) => String::new(),
        (run, None) => format!(", run {run}"),
        (run, Some(begun_ms)) => format!(", run {run}, started {}", when(begun_ms, now_ms)),
    };
    let mut out = vec![format!(
        "job {}: {} ({}){run}",
        shown(&line.name),
        shown(&line.word),
        shown(&line.state)
    )];
    out.extend(line.error.as_ref().map(|error| format!("    error: {}", shown(error))));
    out.extend(line.outages.iter().map(|it| format!("    {}", outages::line(it, now_ms))));
    if !it.definition.description.is_empty() {
        out.push(format!("    {}", shown(&it.definition.description)));
    }
    let documents = count(line.documents, "document");
    let (processed, outstanding) = (line.processed, line.outstanding);
    let mut counts = format!("    {documents}: {processed} processed, {outstanding} outstanding");
    if line.failed > 0 {
        counts.push_str(&format!(", {} failed (see: driftline job failed)", line.failed));
    }
    out.push(counts);
    if line.undelivered > 0 {
        let many = count(line.undelivered, "document");
        out.push(format!("    {many} not yet delivered to its outputs"));
    }
    if line.undeliverable > 0 {
        let many = count(line.undeliverable, "document");
        out.push(format!("    {many} rejected by an output (see: driftline job failed)"));
    }
    out.extend(it.removals.as_ref().map(|it| format!("    {}", it.line(&line.name, now_ms))));
    out.extend(it.window_end_ms.map(|ms| format!("    its time window ends {}", when(ms, now_ms))));
    out
}

/// What is said of when and how it runs.
fn defined(it: &ShownJob) -> Vec<String> {
    let form = &it.definition;
    let mut out = vec![
        format!("    connection {}, version {}", shown(&form.connection), it.version),
        format!("    {}, priority {}", form.kind, form.priority),
    ];
    if form.kind == CONTINUOUS {
        let every = |ms: Option<i64>| ms.map_or("never".to_owned(), exact_span);
        let most = form.recrawl_max_ms.map(|ms| format!(", at most {}", exact_span(ms)));
        out.push(format!(
            "    revisit interval: {}{}",
            every(form.recrawl_ms),
            most.unwrap_or_default()
        ));
        out.push(format!("    reseed interval: {}", every(form.reseed_ms)));
        out.push(format!("    documents expire after: {}", every(form.expiration_ms)));
        out.push(format!("    refetch policy: {}", form.refetch));
    }
    out.extend(form.fetches_per_day.map(|most| format!("    at most {most} fetches per day")));
    let limits = [
        (&form.removal_limit, "removals without approval"),
        (&form.proven_removal_limit, "confirmed removals at once"),
    ];
    for (limit, how) in limits {
        out.extend(limit.as_ref().map(|it| format!("    {how}: at most {}", shown(it))));
    }
    out.push(format!("    if a document cannot be fetched: {}", form.on_failure));
    out.push(format!("    start method: {}", form.start));
    out.extend(form.schedules.iter().map(|text| format!("    schedule {}", shown(text))));
    match form.schedules.is_empty() {
        _ if form.start == StartMethod::Manual.name() => {}
        true => out.push("    it has no schedule, so it never starts by itself".to_owned()),
        false => out.extend(foretold(it)),
    }
    out
}

/// The next runs, in the zone of the schedules if they share one.
fn foretold(it: &ShownJob) -> Vec<String> {
    let zone = |text: &String| {
        let record = schedule::parse(text).ok()?;
        Some(record.timezone.unwrap_or_else(|| "UTC".to_owned()))
    };
    let zones: Vec<Option<String>> = it.definition.schedules.iter().map(zone).collect();
    let shared = zones.first().cloned().flatten();
    let shared = shared.filter(|zone| zones.iter().all(|it| it.as_ref() == Some(zone)));
    let zone = shared.and_then(|name| TimeZone::get(&name).ok()).unwrap_or(TimeZone::UTC);
    let time = |ms: i64| match Timestamp::from_millisecond(ms) {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%a %Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => format!("{ms} ms"),
    };
    match it.next_runs_ms.is_empty() {
        true => vec!["    its schedules contain no further start times".to_owned()],
        false => it.next_runs_ms.iter().map(|ms| format!("    next run {}", time(*ms))).collect(),
    }
}

/// What is fetched, and where it goes.
fn fetched(it: &ShownJob) -> Vec<String> {
    let form = &it.definition;
    let mut out = Vec::new();
    for (link, most) in &form.hops {
        out.push(format!("    at most {} of type {}", count(*most, "hop"), shown(link)));
    }
    out.push(format!("    hopcount {}", form.hopcount));
    for (name, value) in typed::fields(&form.spec).iter().filter(|(name, _)| !name.is_empty()) {
        out.push(format!("    {} = {}", shown(name), shown(&value.to_string())));
    }
    for (number, stage) in form.pipeline.iter().enumerate() {
        let (kind, name) = match &stage.transformation {
            Some(name) => ("transformation", name.as_str()),
            None => ("output", stage.output.as_deref().unwrap_or_default()),
        };
        let after = stage.after.map_or(String::new(), |after| format!(" after stage {after}"));
        let about = stage.description.as_deref().map_or(String::new(), |it| format!(" ({it})"));
        out.push(format!("    stage {number}: {kind} {}{after}{}", shown(name), shown(&about)));
    }
    for told in &form.notifications {
        out.push(format!("    tells {}", shown(&told.connection)));
    }
    out
}

fn past(it: &ShownJob, now_ms: i64) -> Vec<String> {
    let line = |run: &RunRow| {
        let outcome = run.outcome.as_deref().unwrap_or("running");
        let took = run.ended_ms.map_or(String::new(), |ended_ms| {
            format!(" after {}", span(ended_ms.saturating_sub(run.started_ms)))
        });
        let error = run.error.as_deref().map_or(String::new(), |error| format!(": {error}"));
        format!(
            "    run {} ({}), started {}: {}{took}{}",
            run.run,
            shown(&run.kind),
            when(run.started_ms, now_ms),
            shown(outcome),
            shown(&error)
        )
    };
    it.runs.iter().map(line).collect()
}
