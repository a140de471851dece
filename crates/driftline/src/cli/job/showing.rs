//! Jobs listed and shown. Nothing here writes, and no secret is shown.

use super::super::answers::Answers;
use super::super::place::Place;
use super::super::words::{self, count, exact_span, span, when};
use super::super::{outages, say, shown};
use super::removals::{self, Held};
use super::standing::{self, Line};
use super::{Ask, find};
use crate::catalog::typed;
use crate::definitions::{self, CONTINUOUS, JobForm};
use anyhow::Context;
use crawl::schedule::{self, Since};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::ids::Run;
use store::tables::job_states::Phase;
use store::tables::job_states::runs::{self, RunRow};
use store::tables::jobs::{self, StartMethod};
use store::tables::schedules;
use store::{Tx, clock};

/// Runs that are shown, of the past.
const RUNS: u32 = 5;
/// Runs that are foretold.
const NEXT_RUNS: usize = 5;

/// A job, as it is shown.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    line: Line,
    /// How often it has been changed, its making counted.
    version: i64,
    /// When its current or last run began.
    begun_ms: Option<i64>,
    /// When that run ended well.
    ended_ms: Option<i64>,
    /// When its window ends.
    window_end_ms: Option<i64>,
    /// Its documents by state, and what else is counted.
    counters: BTreeMap<String, i64>,
    definition: JobForm,
    /// Removals that are held, if any are.
    #[serde(default)]
    removals: Option<Held>,
    /// Its last runs, the newest first.
    runs: Vec<RunRow>,
    /// When its schedules start it next.
    next_runs_ms: Vec<i64>,
}

/// Everything of a job.
pub fn answer(answers: &Answers, name: String) -> anyhow::Result<Json> {
    let (doing, now_ms) = (answers.doing.clone(), clock::now_ms());
    let found = answers.db.read(move |tx| look(tx, doing.as_deref(), &name, now_ms))?;
    Ok(serde_json::to_value(found)?)
}

fn look(tx: &mut Tx<'_>, doing: Option<&str>, name: &str, now_ms: i64) -> store::Result<Shown> {
    let job = find(tx, name)?;
    let (line, state, counters) = standing::one(tx, doing, name, now_ms)?;
    let records = schedules::load(tx, job.id)?;
    // Starts are looked for from the end of the last run on, while there is none.
    let last_ms = match state.phase {
        Phase::Inactive => state.last_ms.unwrap_or(now_ms),
        _ => now_ms,
    };
    let runs = runs::last(tx, job.id, Run(i64::MAX), RUNS)?;
    let since = Since { last_ms, ran_ms: runs.first().and_then(|run| run.ended_ms) };
    Ok(Shown {
        line,
        version: jobs::version(tx, job.id)?.unwrap_or(0),
        begun_ms: state.start_ms,
        ended_ms: state.end_ms,
        window_end_ms: state.window_end_ms,
        counters,
        definition: definition(tx, name)?,
        removals: removals::held(tx, job.id, &state)?,
        runs,
        next_runs_ms: schedule::next_runs(job.start, &records, since, now_ms, NEXT_RUNS),
    })
}

/// A job's definition without its secrets.
fn definition(tx: &mut Tx<'_>, name: &str) -> store::Result<JobForm> {
    let stored = definitions::collect(tx)?;
    let broken =
        |reason: String| store::Error::corrupt(format!("the definition of {name}"), reason);
    let form = stored.jobs.get(name).ok_or_else(|| broken("it is not there".to_owned()))?;
    let secrets = definitions::secrets_of_job(&stored, form);
    let mut json = serde_json::to_value(form).map_err(|error| broken(error.to_string()))?;
    typed::hide(&mut json, &secrets);
    serde_json::from_value(json).map_err(|error| broken(error.to_string()))
}

/// Lists all jobs.
pub fn list(place: &Place) -> anyhow::Result<ExitCode> {
    let answer = place.ask("jobs", Ask::List { name: None })?;
    if place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<Line> = read(answer)?;
    if lines.is_empty() {
        say("there is none; make one: driftline job create NAME --connection CONNECTION");
        return Ok(ExitCode::SUCCESS);
    }
    table(&lines, clock::now_ms()).iter().for_each(|line| say(line));
    let idle = |line: &Line| !line.attended && line.state != "INACTIVE";
    if let Some(line) = lines.iter().find(|line| idle(line)) {
        let (name, place) = (shown(&line.name), place.flags());
        say(&format!("nobody works on job {name} now; work on all: driftline work{place}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(lines: &[Line], now_ms: i64) -> Vec<String> {
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
    for (at, line) in words::table(&rows, |column| column >= 4).into_iter().enumerate() {
        out.push(line);
        let Some(it) = at.checked_sub(1).map(|at| &lines[at]) else { continue };
        out.extend(it.error.as_ref().map(|error| format!("    error: {}", shown(error))));
        out.extend(it.outages.iter().map(|it| format!("    {}", outages::line(it, now_ms))));
    }
    out
}

/// Shows one.
pub fn show(place: &Place, name: String) -> anyhow::Result<ExitCode> {
    let answer = place.ask("jobs", Ask::Show { name })?;
    if place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let it: Shown = read(answer)?;
    let now_ms = clock::now_ms();
    let parts = [standing_lines(&it, now_ms), defined(&it), fetched(&it), past(&it, now_ms)];
    parts.iter().flatten().for_each(|line| say(line));
    if !it.line.attended && it.line.state != "INACTIVE" {
        say(&format!("nobody works on it now; start with: driftline work{}", place.flags()));
    }
    Ok(ExitCode::SUCCESS)
}

fn standing_lines(it: &Shown, now_ms: i64) -> Vec<String> {
    let line = &it.line;
    let run = match (line.run, it.begun_ms) {
        (0, _) => String::new(),
        (run, None) => format!(", run {run}"),
        (run, Some(begun_ms)) => format!(", run {run}, begun {}", when(begun_ms, now_ms)),
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
        out.push(format!("    its outputs must still hear of {many}"));
    }
    if line.undeliverable > 0 {
        let many = count(line.undeliverable, "document");
        out.push(format!("    {many} could not be taken by an output (see: driftline job failed)"));
    }
    out.extend(it.removals.as_ref().map(|it| format!("    {}", it.line(&line.name, now_ms))));
    out.extend(it.window_end_ms.map(|ms| format!("    its window ends {}", when(ms, now_ms))));
    out
}

/// What is said of when and how it runs.
fn defined(it: &Shown) -> Vec<String> {
    let form = &it.definition;
    let mut out = vec![
        format!("    connection {}, version {}", shown(&form.connection), it.version),
        format!("    {}, priority {}", form.kind, form.priority),
    ];
    if form.kind == CONTINUOUS {
        let every = |ms: Option<i64>| ms.map_or("never".to_owned(), exact_span);
        let most = form.recrawl_max_ms.map(|ms| format!(", at most {}", exact_span(ms)));
        out.push(format!(
            "    documents are looked at again after: {}{}",
            every(form.recrawl_ms),
            most.unwrap_or_default()
        ));
        out.push(format!("    seeds are asked for again after: {}", every(form.reseed_ms)));
        out.push(format!("    documents expire after: {}", every(form.expiration_ms)));
        out.push(format!("    refetch {}", form.refetch));
    }
    out.extend(form.fetches_per_day.map(|most| format!("    at most {most} fetches a day")));
    let limits = [(&form.removal_limit, "unasked"), (&form.proven_removal_limit, "at once")];
    for (limit, how) in limits {
        out.extend(limit.as_ref().map(|it| format!("    it loses {how} at most: {}", shown(it))));
    }
    out.push(format!("    a document that cannot be fetched: {}", form.on_failure));
    out.push(format!("    start method {}", form.start));
    out.extend(form.schedules.iter().map(|text| format!("    schedule {}", shown(text))));
    match form.schedules.is_empty() {
        _ if form.start == StartMethod::Manual.name() => {}
        true => out.push("    it has no schedule, so nothing starts it by itself".to_owned()),
        false => out.extend(foretold(it)),
    }
    out
}

/// The next runs, in the zone of the schedules if they share one.
fn foretold(it: &Shown) -> Vec<String> {
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
        true => vec!["    its schedules name no more times".to_owned()],
        false => it.next_runs_ms.iter().map(|ms| format!("    next run {}", time(*ms))).collect(),
    }
}

/// What is fetched, and where it goes.
fn fetched(it: &Shown) -> Vec<String> {
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

fn past(it: &Shown, now_ms: i64) -> Vec<String> {
    let line = |run: &RunRow| {
        let outcome = run.outcome.as_deref().unwrap_or("under way");
        let took = run.ended_ms.map_or(String::new(), |ended_ms| {
            format!(" after {}", span(ended_ms.saturating_sub(run.started_ms)))
        });
        let error = run.error.as_deref().map_or(String::new(), |error| format!(": {error}"));
        format!(
            "    run {} ({}), begun {}: {}{took}{}",
            run.run,
            shown(&run.kind),
            when(run.started_ms, now_ms),
            shown(outcome),
            shown(&error)
        )
    };
    it.runs.iter().map(line).collect()
}

fn read<T: serde::de::DeserializeOwned>(answer: Json) -> anyhow::Result<T> {
    serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")
}
