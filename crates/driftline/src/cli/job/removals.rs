//! `driftline job removals`: what a job is to lose, and the decision of a person about what is
//! held.
//!
//! Approving is one event of the life cycle; whoever works on the job sweeps then. Rejecting
//! takes the marks off, part by part, and says so at the end. Invariants: a request looks at a
//! bounded number of rows, and whoever asked comes back for the rest; no transaction spans two
//! parts; only what was held when somebody was told is decided.

use super::super::answers::Answers;
use super::super::place::Place;
use super::super::words::{count, quoted, when};
use super::super::{say, shown};
use super::{Change, find};
use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use crawl::conduct::{self, removals::weigh};
use crawl::lifecycle::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::ids::{JobId, Part, QueueId};
use store::tables::job_states::{self, State};
use store::tables::queue::Place as QueuePlace;
use store::tables::{removals, settings};
use store::{Db, Error, Tx, clock};

/// Documents of one answer at most: with the longest names it fits through a socket.
const LIMIT_MAX: u32 = 5_000;
/// Marks that one transaction takes off.
const STEP: u32 = 1_000;
/// Transactions of one request.
const STEPS_MAX: u32 = 20;

#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show what a job is to lose and why, and whether that is held
    #[command(after_help = "Example: driftline job removals show docs --limit 20")]
    Show(ShowArgs),
    /// Let a job lose what is held
    #[command(after_help = "Example: driftline job removals approve docs")]
    Approve(DecideArgs),
    /// Keep what is held; the next run judges it anew
    #[command(after_help = "Example: driftline job removals reject docs")]
    Reject(DecideArgs),
}

#[derive(ClapArgs)]
struct ShowArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    ask: Ask,
}

/// The question, as it is written and as it goes through a socket.
#[derive(ClapArgs, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// Documents to list
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIMIT_MAX)))]
    limit: u32,
}

#[derive(ClapArgs)]
struct DecideArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Decision {
    Approve,
    Reject,
}

/// What a job has, has lost and is to lose.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Removals {
    job: String,
    /// Since when removals are held; `null` when none is.
    held_since_ms: Option<i64>,
    /// Documents that the job has now.
    documents: i64,
    /// Documents that it had when its run began, or its day.
    had: i64,
    /// What it may lose without an approval.
    limit: i64,
    /// What it has lost since without an approval.
    lost: i64,
    /// Documents that are to leave, by cause.
    leaving: BTreeMap<String, i64>,
    /// Some of them.
    listed: Vec<Leaving>,
}

/// A document that is to leave.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Leaving {
    document: String,
    cause: String,
}

/// What came of a decision.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decided {
    job: String,
    /// Documents that it concerns.
    documents: u64,
    /// The name of the job's state now.
    state: String,
    /// Whether all of it is done; otherwise the same request goes on with it.
    is_done: bool,
}

/// Removals that are held, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Held {
    /// Since when.
    pub since_ms: i64,
    /// How many documents, by cause.
    pub leaving: BTreeMap<String, i64>,
}

impl Held {
    /// In a line, with what can be done about it.
    pub fn line(&self, job: &str, now_ms: i64) -> String {
        let many = count(self.leaving.values().sum(), "removal");
        let (causes, job) = (causes(&self.leaving), quoted(&shown(job)));
        format!(
            "{many} held since {} ({causes}); decide: driftline job removals show {job}",
            when(self.since_ms, now_ms)
        )
    }
}

fn causes(leaving: &BTreeMap<String, i64>) -> String {
    let words: Vec<String> =
        leaving.iter().map(|(cause, number)| format!("{number} {}", shown(cause))).collect();
    words.join(", ")
}

/// What is held of a job, if anything is.
pub fn held(tx: &mut Tx<'_>, job: JobId, state: &State) -> store::Result<Option<Held>> {
    let Some(since_ms) = state.removals.held_ms else { return Ok(None) };
    Ok(Some(Held { since_ms, leaving: removals::marked(tx, job)? }))
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Show(args) => show(&args.place, args.ask),
        Action::Approve(args) => decide(&args.place, args.name, Decision::Approve),
        Action::Reject(args) => decide(&args.place, args.name, Decision::Reject),
    }
}

fn show(place: &Place, ask: Ask) -> anyhow::Result<ExitCode> {
    let answer = place.ask("jobs", super::Ask::Removals(ask))?;
    if place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let found: Removals = read(answer)?;
    lines(&found, &place.flags(), clock::now_ms()).iter().for_each(|line| say(line));
    Ok(ExitCode::SUCCESS)
}

fn lines(found: &Removals, place: &str, now_ms: i64) -> Vec<String> {
    let job = shown(&found.job);
    let total: i64 = found.leaving.values().sum();
    if total == 0 {
        return vec![format!("job {job}: no document is to be removed")];
    }
    let causes = causes(&found.leaving);
    let mut out = vec![format!("job {job}: {} to be removed ({causes})", count(total, "document"))];
    out.push(format!(
        "    it had {} and has lost {}; unasked it may lose {}",
        count(found.had, "document"),
        found.lost,
        found.limit
    ));
    for it in &found.listed {
        out.push(format!("    {:<14}  {}", shown(&it.cause), shown(&it.document)));
    }
    if (found.listed.len() as i64) < total {
        out.push(format!("    and {} more", total - found.listed.len() as i64));
    }
    match found.held_since_ms {
        Some(held_ms) => {
            let name = quoted(&job);
            out.push(format!("held since {}; decide:", when(held_ms, now_ms)));
            out.push(format!("    driftline job removals approve {name}{place}"));
            out.push(format!("    driftline job removals reject {name}{place}"));
        }
        None => out.push("nothing is held; they are judged when the run ends".to_owned()),
    }
    out
}

/// What a job is to lose, by the process that has the rows.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let limit = ask.limit.clamp(1, LIMIT_MAX);
    let now_ms = clock::now_ms();
    let found = answers.db.read(move |tx| {
        let job = find(tx, &ask.name)?;
        let state = job_states::state(tx, job.id)?;
        let weighed = weigh(tx, &job, &state, now_ms)?;
        let leaving = removals::marked(tx, job.id)?;
        let mut listed = Vec::new();
        for part in (0..i64::from(settings::parts(tx)?)).map(Part) {
            let left = limit - u32::try_from(listed.len()).unwrap_or(limit);
            if left == 0 || leaving.is_empty() {
                break;
            }
            let place = QueuePlace { part, job: job.id };
            let rows = removals::list(tx, place, i64::MIN, QueueId(i64::MIN), left)?;
            let row = |it: removals::Leaving| Leaving { document: it.docid, cause: it.cause };
            listed.extend(rows.into_iter().map(row));
        }
        Ok(Removals {
            held_since_ms: state.removals.held_ms,
            documents: removals::documents(tx, job.id)?,
            had: weighed.base,
            limit: weighed.limit,
            lost: weighed.lost,
            leaving,
            listed,
            job: job.name,
        })
    })?;
    Ok(serde_json::to_value(found)?)
}

fn decide(place: &Place, name: String, decision: Decision) -> anyhow::Result<ExitCode> {
    let mut documents = 0;
    let done = loop {
        let change = Change::Removals { name: name.clone(), decision };
        let step: Decided = read(place.change("job", &change)?)?;
        documents += step.documents;
        if step.is_done {
            break Decided { documents, ..step };
        }
    };
    if place.json() {
        say(&serde_json::to_value(&done)?.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let many = count(i64::try_from(done.documents).unwrap_or(i64::MAX), "document");
    let job = shown(&done.job);
    say(&match decision {
        Decision::Approve => format!("job {job}: {many} will be removed ({})", shown(&done.state)),
        Decision::Reject => format!("job {job}: {many} stay"),
    });
    if decision == Decision::Approve {
        say(&format!(
            "a process that works on the job removes them, such as: driftline work{}",
            place.flags()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Carries out a decision, for as much as a request may.
pub fn carry_out(db: &Db, name: String, decision: Decision) -> anyhow::Result<Json> {
    let decided = match decision {
        Decision::Approve => approve(db, name)?,
        Decision::Reject => reject(db, name)?,
    };
    Ok(serde_json::to_value(decided)?)
}

fn approve(db: &Db, name: String) -> anyhow::Result<Decided> {
    let now_ms = clock::now_ms();
    Ok(db.write(move |tx| {
        let job = find(tx, &name)?;
        let documents = removals::marked(tx, job.id)?.values().sum::<i64>();
        let state = conduct::change(tx, job.id, &Event::ApproveRemovals, now_ms)
            .map_err(|error| explained(error, &name))?;
        let (job, documents) = (job.name, u64::try_from(documents).unwrap_or(0));
        Ok(Decided { job, documents, state: state.name(), is_done: true })
    })?)
}

fn reject(db: &Db, name: String) -> anyhow::Result<Decided> {
    let now_ms = clock::now_ms();
    let wanted = name.clone();
    let (job, round, parts) = db.read(move |tx| {
        let job = find(tx, &wanted)?;
        let state = job_states::state(tx, job.id)?;
        if state.removals.held_ms.is_none() {
            let none = format!("the job is {}; none of its removals are held", state.name());
            return Err(explained(Error::Refused(none), &wanted));
        }
        Ok((job.id, state.removals.held, settings::parts(tx)?))
    })?;
    let (mut steps, mut documents) = (0, 0);
    for part in (0..i64::from(parts)).map(Part) {
        let place = QueuePlace { part, job };
        loop {
            let count = db.write(move |tx| removals::unmark(tx, place, round, STEP))?;
            documents += count;
            steps += u32::from(count > 0);
            if count < u64::from(STEP) {
                break;
            }
            if steps >= STEPS_MAX {
                let state = db.read(move |tx| job_states::state(tx, job))?.name();
                return Ok(Decided { job: name, documents, state, is_done: false });
            }
        }
    }
    let state = db.write(move |tx| {
        // What was held meanwhile has not been seen by whoever rejects.
        let before = job_states::lock(tx, job)?.ok_or_else(|| super::unknown(&name))?;
        if before.removals.held > round {
            return Ok((name.clone(), before));
        }
        let state = conduct::change(tx, job, &Event::RemovalsRejected, now_ms)
            .map_err(|error| explained(error, &name))?;
        Ok((name.clone(), state))
    })?;
    Ok(Decided { job: state.0, documents, state: state.1.name(), is_done: true })
}

/// A refusal that names the job and what can be done.
fn explained(error: Error, name: &str) -> Error {
    let Error::Refused(reason) = error else { return error };
    let (name, command) = (shown(name), quoted(name));
    Error::Refused(format!(
        "nothing is decided about removals of job {name}: {reason} (next: driftline job removals \
         show {command})"
    ))
}

fn read<T: serde::de::DeserializeOwned>(answer: Json) -> anyhow::Result<T> {
    serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")
}
