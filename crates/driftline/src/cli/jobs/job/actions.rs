//! `driftline job start`, `pause`, `resume`, `abort`, `restart` and `delete`.
//!
//! Invariant: nothing is deleted that nobody has confirmed.

use crate::cli::{say, say_json};
use crate::place::Place;
use crate::text::{count, shown};
use crate::verbs::jobs::actions::{ActOnJob, ActRequest, ActionResult, JobAction};
use crate::verbs::jobs::job_status::{JobLine, Jobs, JobsRequest};
use crate::verbs::jobs::unknown;
use anyhow::{Context, bail};
use serde::Serialize;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

/// Bytes of an answer to a question that are read.
const REPLY_BYTES_MAX: u64 = 100;

/// An action, as it is told to programs.
#[derive(Serialize)]
struct ActedHere {
    #[serde(flatten)]
    acted: ActionResult,
    /// Whether a process works on the job.
    attended: bool,
    /// The command that starts one, if none does.
    next: Option<String>,
}

/// Runs an action, and tells what came of it.
pub fn run(place: &Place, name: String, action: JobAction) -> anyhow::Result<ExitCode> {
    let acted = place.change::<ActOnJob>(ActRequest { name, action })?;
    // One that is gone already has had somebody who worked on it.
    let attended = standing(place, &acted.job)?.is_none_or(|line| line.attended);
    let next = (!attended).then(|| format!("driftline work{}", place.flags()));
    if place.json() {
        say_json(&ActedHere { acted, attended, next })?;
        return Ok(ExitCode::SUCCESS);
    }
    let (job, word) = (shown(&acted.job), shown(&acted.word));
    say(&format!("job {job}: {} -> {} ({word})", shown(&acted.before), shown(&acted.state)));
    if let Some(next) = next {
        let what = match action {
            JobAction::Delete => ", and one is needed to remove its documents",
            _ => "",
        };
        say(&format!("no process is working on this job{what}; start one: {next}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// How a job stands; `None` if it is gone.
fn standing(place: &Place, name: &str) -> anyhow::Result<Option<JobLine>> {
    Ok(place.ask::<Jobs>(JobsRequest { name: Some(name.to_owned()) })?.pop())
}

/// Deletes a job, when somebody has said that it is meant.
pub fn delete(place: &Place, name: String, yes: bool) -> anyhow::Result<ExitCode> {
    let line = standing(place, &name)?.ok_or_else(|| unknown(&name))?;
    // One that cannot be deleted is refused, and nobody has to think about it.
    let may_go = line.state == "INACTIVE";
    if may_go && !yes {
        let question = format!(
            "delete job {} and its {}, also from its outputs?",
            shown(&name),
            count(line.documents, "document")
        );
        if !std::io::stdin().is_terminal() {
            bail!("{question} add --yes to confirm: standard input is not a terminal");
        }
        let input = std::io::stdin().lock();
        if !confirmed(&question, input, std::io::stderr())? {
            say(&format!("job {} was not deleted", shown(&name)));
            return Ok(ExitCode::FAILURE);
        }
    }
    run(place, name, JobAction::Delete)
}

/// Whether somebody says yes.
fn confirmed(question: &str, input: impl BufRead, mut output: impl Write) -> anyhow::Result<bool> {
    write!(output, "{question} [y/N] ").and_then(|()| output.flush())?;
    let mut reply = String::new();
    input.take(REPLY_BYTES_MAX).read_line(&mut reply).context("cannot read the answer")?;
    Ok(matches!(reply.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (reply, expected) in [
            ("y\n", true),
            ("YES\n", true),
            ("\n", false),
            ("", false),
            ("no\n", false),
            ("yep", false),
        ] {
            let mut asked = Vec::new();
            let said = confirmed("delete job a?", reply.as_bytes(), &mut asked).unwrap();
            assert_eq!(said, expected, "{reply:?}");
            assert_eq!(asked, b"delete job a? [y/N] ");
        }
    }
}
