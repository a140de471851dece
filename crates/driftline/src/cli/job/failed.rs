//! `driftline job failed` and `driftline job retry`: the dead letters of a job.
//!
//! A document that a run has given up stays with its reason; the next run looks at it
//! again, and somebody who does not want to wait for that says so. Invariants: a request
//! looks at a bounded number of rows, and whoever asked comes back for the rest; no
//! transaction spans two parts.

use super::super::answers::Answers;
use super::super::place::Place;
use super::super::urls::{Filter, walk};
use super::super::words::{count, quoted, when};
use super::super::{say, shown};
use super::{Change, find, undelivered};
use anyhow::{Context, ensure};
use clap::Args as ClapArgs;
use page::ids::DocHash;
use page::url::{Policy, canonical};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::process::ExitCode;
use store::ids::{JobId, Part, QueueId, Run};
use store::tables::job_states::{self, Phase, State};
use store::tables::queue::list::Listed;
use store::tables::queue::{self, retry};
use store::tables::{counters, settings};
use store::{Db, Error, Tx, clock};

/// Documents of one answer at most: with the longest names it fits through a socket.
const LIMIT_MAX: u32 = 5_000;
/// Rows that one transaction looks at.
const STEP: u32 = 500;
/// Transactions of one request.
const STEPS_MAX: u32 = 20;
/// Documents that can be named in one command.
const NAMED_MAX: usize = 1_000;

#[derive(ClapArgs)]
pub struct Args {
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
    /// Only those that failed for this reason, such as dns or http-503; `output` for what an
    /// output could not take
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// Documents to list
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIMIT_MAX)))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

#[derive(ClapArgs)]
pub struct RetryArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// Only what failed for this reason, such as dns or http-503
    #[arg(long, value_name = "CODE", conflicts_with = "documents")]
    reason: Option<String>,
    /// Only these documents
    #[arg(value_name = "URL")]
    documents: Vec<String>,
}

/// What is to be tried again, as it goes through a socket.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    name: String,
    reason: Option<String>,
    documents: Vec<String>,
    /// Where an earlier request ended: a part, and a row in it.
    after: Option<(i64, i64)>,
}

/// What has failed.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failed {
    job: String,
    /// How many documents have failed, for whatever reason.
    failed: i64,
    /// How many documents an output could not take.
    undeliverable: i64,
    documents: Vec<Letter>,
    /// To go on with; `null` when all was seen.
    cursor: Option<String>,
}

/// One document that has failed.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Letter {
    pub document: String,
    pub reason: Option<String>,
    pub detail: Option<String>,
    pub status: Option<i64>,
    /// When it was last looked at.
    pub checked_ms: Option<i64>,
    /// How often it was looked at, in all runs.
    pub tries: Option<i64>,
    /// The run that gave it up.
    pub run: Option<i64>,
}

impl From<Listed> for Letter {
    fn from(row: Listed) -> Letter {
        Letter {
            document: row.docid,
            reason: row.reason,
            detail: row.detail,
            status: row.status,
            checked_ms: row.checked_ms,
            tries: row.checks,
            run: row.done_run.map(|run| run.0),
        }
    }
}

/// What a request has done.
#[derive(Serialize, Deserialize)]
struct Retried {
    job: String,
    /// Documents that are ready again.
    retried: u64,
    /// Documents that were named and have not failed.
    unknown: Vec<String>,
    /// To go on with; `null` when all was done.
    after: Option<(i64, i64)>,
}

/// Lists what has failed.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let answer = args.place.ask("jobs", super::Ask::Failed(args.ask.clone()))?;
    if args.place.json() {
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let found: Failed = read(answer)?;
    let now_ms = clock::now_ms();
    for it in &found.documents {
        lines(it, now_ms).iter().for_each(|line| say(line));
    }
    let name = quoted(&found.job);
    if let Some(cursor) = &found.cursor {
        let reason = args
            .ask
            .reason
            .as_ref()
            .map_or(String::new(), |it| format!(" --reason {}", quoted(it)));
        let (limit, place, cursor) = (args.ask.limit, args.place.flags(), quoted(cursor));
        say(&format!(
            "go on with: driftline job failed {name}{reason} --limit {limit}{place} --cursor {cursor}"
        ));
    } else if found.documents.is_empty() && args.ask.cursor.is_none() {
        let word = if found.failed == 0 { "document" } else { "such document" };
        say(&format!("no {word} of job {} has failed", shown(&found.job)));
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(it: &Letter, now_ms: i64) -> Vec<String> {
    let reason = shown(it.reason.as_deref().unwrap_or("-"));
    let checked = it.checked_ms.map_or("-".to_owned(), |checked_ms| when(checked_ms, now_ms));
    // The date that goes with an old moment is left to `why`.
    let checked = checked.split(" (").next().unwrap_or_default().to_owned();
    let tries = it
        .tries
        .map_or("-".to_owned(), |tries| super::super::words::counted(tries, "try", "tries"));
    let mut out = vec![format!("{reason:<16}  {tries:<8}  {checked:<10}  {}", shown(&it.document))];
    out.extend(it.detail.as_ref().map(|detail| format!("    {}", shown(detail))));
    out
}

/// What has failed, by the process that has the rows.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    let name = ask.name.clone();
    let (job, failed) = answers.db.read(move |tx| {
        let job = find(tx, &name)?;
        let failed = counters::total(tx, job.id, "failed")?;
        Ok((job, failed))
    })?;
    let limit = ask.limit.clamp(1, LIMIT_MAX) as usize;
    let is_meant = ask.reason.as_deref().is_none_or(|reason| reason == undelivered::REASON);
    // They come first, before what is listed page by page.
    let first = if is_meant && ask.cursor.is_none() { limit } else { 0 };
    let (undeliverable, mut documents) = undelivered::letters(&answers.db, job.id, first)?;
    let filter = Filter::failed(ask.reason);
    let found = walk(&answers.db, &job, (&filter, ask.cursor.as_deref()), limit)?;
    documents.extend(found.rows.into_iter().map(Letter::from));
    let (job, cursor) = (job.name, found.cursor);
    Ok(serde_json::to_value(Failed { job, failed, undeliverable, documents, cursor })?)
}

/// Runs the verb that tries again.
pub fn retry(args: RetryArgs) -> anyhow::Result<ExitCode> {
    let RetryArgs { place, name, reason, documents } = args;
    ensure!(
        documents.len() <= NAMED_MAX,
        "{} documents are more than the {NAMED_MAX} that can be named at once; retry all with \
         --reason, or in several commands",
        documents.len()
    );
    let mut total = Retried { job: name.clone(), retried: 0, unknown: Vec::new(), after: None };
    loop {
        let (name, reason, documents) = (name.clone(), reason.clone(), documents.clone());
        let change = Change::Retry(Retry { name, reason, documents, after: total.after });
        let done: Retried = read(place.change("job", &change)?)?;
        total.retried += done.retried;
        total.unknown.extend(done.unknown);
        total.after = done.after;
        if total.after.is_none() {
            break;
        }
    }
    let is_whole = total.unknown.is_empty();
    if place.json() {
        let answer = serde_json::json!(
            {"job": total.job, "retried": total.retried, "unknown": total.unknown}
        );
        say(&answer.to_string());
    } else {
        let many = count(i64::try_from(total.retried).unwrap_or(i64::MAX), "document");
        let verb = if total.retried == 1 { "is" } else { "are" };
        say(&format!("job {}: {many} {verb} ready again", shown(&total.job)));
        for it in &total.unknown {
            say(&format!("    not among what has failed: {}", shown(it)));
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes documents ready again, for as many as a request may.
pub fn carry_out(db: &Db, it: Retry) -> anyhow::Result<Json> {
    let name = it.name.clone();
    let job = db.read(move |tx| find(tx, &name))?;
    let mut done = Retried { job: job.name.clone(), retried: 0, unknown: Vec::new(), after: None };
    let keys: Vec<DocHash> = it.documents.iter().flat_map(keys_of).collect();
    let is_meant = it.reason.as_deref().is_none_or(|reason| reason == undelivered::REASON);
    let mut taken = Vec::new();
    if is_meant && it.after.is_none() {
        // No run is needed for it: what they say is there.
        (done.retried, taken) = undelivered::retry(db, job.id, &keys)?;
    }
    let from = Part(it.after.map_or(0, |(part, _)| part));
    let only_outputs = done.retried > 0 || it.reason.as_deref() == Some(undelivered::REASON);
    let parts = db.read(move |tx| {
        // What is refused is refused although nothing has failed.
        match running(tx, job.id, &job.name, false) {
            Err(Error::Refused(_)) if only_outputs => return Ok(Vec::new()),
            outcome => outcome?,
        };
        counters::parts_with(tx, job.id, "failed", from, settings::PARTS_MAX)
    })?;
    let work = Work { db, job: job.id, name: it.name };
    if it.documents.is_empty() {
        work.all(&mut done, (it.reason, it.after), &parts)?;
    } else {
        work.named(&mut done, (&it.documents, taken), &parts)?;
    }
    Ok(serde_json::to_value(done)?)
}

struct Work<'a> {
    db: &'a Db,
    job: JobId,
    name: String,
}

impl Work<'_> {
    fn all(
        &self,
        done: &mut Retried,
        (reason, after): (Option<String>, Option<(i64, i64)>),
        parts: &[Part],
    ) -> anyhow::Result<()> {
        let mut steps = 0;
        for part in parts {
            let row = after.filter(|it| it.0 == part.0).map_or(i64::MIN, |it| it.1);
            let mut at = Some(QueueId(row));
            while let Some(row) = at {
                if steps == STEPS_MAX {
                    done.after = Some((part.0, row.0));
                    return Ok(());
                }
                steps += 1;
                let (job, name, reason) = (self.job, self.name.clone(), reason.clone());
                let place = queue::Place { part: *part, job };
                let step = self.db.write(move |tx| {
                    let run = running(tx, job, &name, true)?;
                    retry::retry(tx, place, run, reason.as_deref(), row, STEP)
                })?;
                done.retried += step.count;
                at = step.next;
            }
        }
        Ok(())
    }

    fn named(
        &self,
        done: &mut Retried,
        (texts, taken): (&[String], Vec<DocHash>),
        parts: &[Part],
    ) -> anyhow::Result<()> {
        let keys: Vec<DocHash> = texts.iter().flat_map(keys_of).collect();
        let mut found: HashSet<DocHash> = taken.into_iter().collect();
        for part in parts {
            let (job, name, keys) = (self.job, self.name.clone(), keys.clone());
            let place = queue::Place { part: *part, job };
            let (count, these) = self.db.write(move |tx| {
                let run = running(tx, job, &name, true)?;
                let these = retry::failed(tx, place, &keys)?;
                Ok((retry::retry_these(tx, place, run, &these)?, these))
            })?;
            done.retried += count;
            found.extend(these);
        }
        let is_unknown = |text: &&String| !keys_of(text).iter().any(|key| found.contains(key));
        done.unknown = texts.iter().filter(is_unknown).cloned().collect();
        Ok(())
    }
}

/// What a document may be known by: its identifier, or a URL that means it.
fn keys_of(text: &String) -> Vec<DocHash> {
    let canonical = canonical(text, &Policy::default()).ok();
    canonical.iter().chain([text]).map(|it| DocHash::of(it)).collect()
}

/// The run of a job that can try again what it has given up. With `keeps`, nobody ends
/// the run before this transaction is over.
fn running(tx: &mut Tx<'_>, job: JobId, name: &str, keeps: bool) -> store::Result<Run> {
    let state = match keeps {
        true => job_states::lock(tx, job)?.ok_or_else(|| super::unknown(name))?,
        false => job_states::state(tx, job)?,
    };
    match state.phase {
        Phase::Active => Ok(state.run),
        _ => Err(refused(&state, name)),
    }
}

fn refused(state: &State, name: &str) -> Error {
    let command = quoted(name);
    let why = match state.phase {
        Phase::Inactive => format!(
            "its next run looks at what has failed anyway (next: driftline job start {command})"
        ),
        Phase::ReadyForStartup | Phase::StartingUp => {
            "its run is about to begin; try again in a moment".to_owned()
        }
        _ => format!(
            "its run is ending, and the next one looks at what has failed anyway (next: driftline \
             job wait {command} && driftline job start {command})"
        ),
    };
    let (name, state) = (shown(name), state.name());
    Error::Refused(format!("job {name} cannot retry anything now: the job is {state}; {why}"))
}

fn read<T: serde::de::DeserializeOwned>(answer: Json) -> anyhow::Result<T> {
    serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")
}
