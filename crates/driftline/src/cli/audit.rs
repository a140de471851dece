//! `driftline audit`: who changed what, and when.
//!
//! Invariant: nothing that is completed is changed or taken back; what is kept has no secrets.

use super::answers::Answers;
use super::place::Place;
use super::words::quoted;
use super::{say, shown};
use crate::definitions::{self, Definitions};
use crate::refusal::OrRefuse;
use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use data_encoding::BASE64URL_NOPAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use store::clock;
use store::socket::Question;
use store::tables::audit::chain::{self, Checked, Head};
use store::tables::audit::{self, Entry};

/// The newest event of the log that this process has added, until somebody writes it down.
static NEWS: Mutex<Option<Head>> = Mutex::new(None);

/// Notes an event that was committed.
pub fn tell_head(head: Option<Head>) {
    if head.is_some() {
        *NEWS.lock().unwrap_or_else(PoisonError::into_inner) = head;
    }
}

/// The newest event since this was last asked, for a log: whoever rewrites the database cannot
/// rewrite that, too.
pub fn take_head() -> Option<String> {
    NEWS.lock().unwrap_or_else(PoisonError::into_inner).take().map(|head| head.to_string())
}

/// Who it was if it was nobody with a token.
pub const COMMAND_LINE: &str = "command line";

/// Tell who changed what, the newest first
#[derive(ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Example: driftline audit --limit 20
Example: driftline audit verify"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    place: Place,
    /// Changes to list
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(audit::LIMIT_MAX)))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

#[derive(Subcommand)]
enum Action {
    /// Check that nobody has rewritten the log
    ///
    /// Every event has the hash of the one before it. The head, which is the newest one, is told: it
    /// must be that, or a later one, of the last `audit` line in the log of `driftline serve`.
    #[command(after_help = "Example: driftline audit verify")]
    Verify(VerifyArgs),
}

#[derive(ClapArgs)]
struct VerifyArgs {
    #[command(flatten)]
    place: Place,
}

/// The question, as it goes through a socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    limit: u32,
    cursor: Option<String>,
    /// Whether the chain is checked, instead of entries being listed.
    #[serde(default)]
    checks: bool,
}

/// Checks the chain.
fn verify(place: &Place) -> anyhow::Result<ExitCode> {
    let json = place.ask("audit", &Ask { limit: 1, cursor: None, checks: true })?;
    let checked: Checked = serde_json::from_value(json.clone())
        .context("the process that holds the directory is of another version")?;
    if place.json() {
        say(&json.to_string());
    } else {
        for problem in &checked.problems {
            say(&format!("the audit log: {}", shown(problem)));
        }
        let head = checked.head.as_deref().unwrap_or("none");
        let verdict = match checked.problems.is_empty() {
            true => "nobody has rewritten it",
            false => "somebody has written to it; compare with a backup, and with logged heads",
        };
        say(&format!("{} events, {verdict}; head: {head}", checked.events));
    }
    let is_whole = checked.problems.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The answer.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Changes, the newest first.
    entries: Vec<Entry>,
    /// To go on with; `null` at the end.
    cursor: Option<String>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(Action::Verify(args)) = args.action {
        return verify(&args.place);
    }
    let ask = Ask { limit: args.limit, cursor: args.cursor, checks: false };
    let json = args.place.ask("audit", &ask)?;
    if args.place.json() {
        say(&json.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let answer: Answer = serde_json::from_value(json)
        .context("the process that holds the directory is of another version")?;
    if answer.entries.is_empty() {
        say("nothing was changed");
    }
    for it in &answer.entries {
        let time = jiff::Timestamp::from_millisecond(it.at_ms).unwrap_or_default();
        let (who, verb) = (shown(&it.who), shown(&it.verb));
        say(&format!("{time:.0} {who}: {verb}, {}", it.outcome));
        it.changes.lines().for_each(|line| say(&format!("    {}", shown(line))));
    }
    if let Some(cursor) = &answer.cursor {
        let (limit, place) = (args.limit, args.place.flags());
        say(&format!(
            "go on with: driftline audit --limit {limit}{place} --cursor {}",
            quoted(cursor)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The entries, by the process that has the rows.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    if ask.checks {
        return Ok(serde_json::to_value(chain::check(&answers.db)?)?);
    }
    let (before_ms, before_id) = match ask.cursor {
        None => (i64::MAX, i64::MAX),
        Some(cursor) => parse(&cursor).or_refuse(|| "this is no cursor of such a list")?,
    };
    let limit = ask.limit.clamp(1, audit::LIMIT_MAX);
    let entries = answers.db.read(move |tx| audit::list(tx, before_ms, before_id, limit))?;
    let last = entries.last().filter(|_| entries.len() == limit as usize);
    let cursor =
        last.map(|it| BASE64URL_NOPAD.encode(format!("{}.{}", it.at_ms, it.id).as_bytes()));
    Ok(serde_json::to_value(Answer { entries, cursor })?)
}

fn parse(cursor: &str) -> Option<(i64, i64)> {
    let text = String::from_utf8(BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?).ok()?;
    let (at_ms, id) = text.split_once('.')?;
    Some((at_ms.parse().ok()?, id.parse().ok()?))
}

/// A number that nobody else has.
pub fn new_id() -> anyhow::Result<i64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(i64::from_le_bytes(bytes) & i64::MAX)
}

/// A change that is begun.
pub fn begun(who: &str, question: &Question) -> anyhow::Result<Entry> {
    let (who, verb, outcome) = (who.to_owned(), question.verb.clone(), String::new());
    let changes = named(&question.args);
    Ok(Entry { id: new_id()?, at_ms: clock::now_ms(), who, verb, outcome, changes })
}

/// What is asked for, and of what: names alone, since the rest may have secrets.
fn named(args: &Json) -> String {
    let Some((what, of)) = args.as_object().and_then(|it| it.iter().next()) else {
        return String::new();
    };
    let name = [&of["name"], &of["one"]["name"]].into_iter().find_map(Json::as_str);
    let deed = of["deed"].as_str().unwrap_or(what);
    name.map_or(deed.to_owned(), |name| format!("{deed} {name}"))
}

/// Whether a change may take definitions away: then what they were must be looked at before.
pub fn takes_away(question: &Question) -> bool {
    named(&question.args).starts_with("delete ")
}

/// What came of a change, with what is new or gone as a whole: later nobody could tell.
pub fn whole(
    told: String,
    before: Option<&Definitions>,
    after: impl FnOnce() -> Option<Definitions>,
) -> String {
    let is_new = |line: &&str| line.ends_with(": new");
    let after = told.lines().any(|line| is_new(&line)).then(after).flatten();
    let mut out = String::new();
    for line in told.lines() {
        out.push_str(line);
        out.push('\n');
        let label = line.rsplit_once(": ").map_or(line, |(label, _)| label);
        let (word, found) = match (is_new(&line), &after, before) {
            (true, Some(after), _) => ("is", definitions::one_line(after, label)),
            (false, _, Some(before)) => ("was", definitions::one_line(before, label)),
            _ => continue,
        };
        if let Some(found) = found {
            out.push_str(&format!("{label} {word} {found}\n"));
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// What came of a change.
pub fn outcome(outcome: &anyhow::Result<Json>) -> (&'static str, String) {
    match outcome {
        Err(error) => ("refused", format!("{error:#}")),
        Ok(answer) => ("done", summary(answer)),
    }
}

/// What a change says of itself. A token that was made is not among it.
fn summary(answer: &Json) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    if let Some(lines) = answer["changes"].as_array() {
        return lines.iter().filter_map(Json::as_str).collect::<Vec<_>>().join("\n");
    }
    if answer["before"].is_string() {
        return format!("job {}: {} -> {}", text("job"), text("before"), text("state"));
    }
    match answer["retried"].as_u64() {
        Some(retried) => format!("job {}: {retried} documents are tried again", text("job")),
        None => String::new(),
    }
}
