//! What people do to a job: start it, let it rest or go on, stop it, delete it.
//!
//! Each is one event of the life cycle in one transaction; what follows a process that
//! works does. Invariants: what is refused changes nothing, and is told with its reason
//! and what can be done instead; nothing is deleted that nobody has confirmed.

use super::super::changes::Changed;
use super::super::place::Place;
use super::super::words::{count, quoted};
use super::super::{say, shown};
use super::standing::{Line, word};
use super::{Ask, Change, find};
use anyhow::{Context, bail};
use crawl::lifecycle::Event;
use crawl::{ask_again, conduct};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use store::tables::job_states::{self, Phase, State};
use store::tables::jobs;
use store::{Db, Error, clock};

/// Bytes of an answer to a question that are read.
const REPLY_BYTES_MAX: u64 = 100;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Deed {
    Start,
    StartMinimal,
    Pause,
    Resume,
    Abort,
    Restart,
    RestartMinimal,
    Delete,
}

impl Deed {
    /// All of them.
    #[cfg(test)]
    pub const ALL: [Deed; 8] = [
        Deed::Start,
        Deed::StartMinimal,
        Deed::Pause,
        Deed::Resume,
        Deed::Abort,
        Deed::Restart,
        Deed::RestartMinimal,
        Deed::Delete,
    ];

    fn event(self) -> Event {
        match self {
            Deed::Start => Event::Start { minimal: false },
            Deed::StartMinimal => Event::Start { minimal: true },
            Deed::Pause => Event::Pause,
            Deed::Resume => Event::Resume,
            Deed::Abort => Event::Abort,
            Deed::Restart => Event::Restart { minimal: false },
            Deed::RestartMinimal => Event::Restart { minimal: true },
            Deed::Delete => Event::Delete,
        }
    }

    /// What has not happened when it is refused.
    fn done(self) -> &'static str {
        match self {
            Deed::Start | Deed::StartMinimal => "started",
            Deed::Pause => "paused",
            Deed::Resume => "resumed",
            Deed::Abort => "aborted",
            Deed::Restart | Deed::RestartMinimal => "restarted",
            Deed::Delete => "deleted",
        }
    }
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Acted {
    /// The job.
    pub job: String,
    /// The name of its state before.
    pub before: String,
    /// The name of its state now.
    pub state: String,
    /// The same in a word for people.
    pub word: String,
}

/// Does it, in one transaction.
pub fn act(db: &Db, name: String, deed: Deed) -> anyhow::Result<Acted> {
    let now_ms = clock::now_ms();
    if matches!(deed, Deed::Start | Deed::StartMinimal | Deed::Restart | Deed::RestartMinimal) {
        let name = name.clone();
        let job = db.read(move |tx| find(tx, &name))?;
        ask_again::unblock_hosts(db, &job, now_ms)?;
    }
    Ok(db.write(move |tx| {
        let job = find(tx, &name)?;
        let before = job_states::lock(tx, job.id)?.ok_or_else(|| super::unknown(&name))?;
        let after = conduct::change(tx, job.id, &deed.event(), now_ms).map_err(|error| {
            let Error::Refused(reason) = error else { return error };
            let (name, done) = (shown(&name), deed.done());
            let next = instead(deed, &before, &name);
            Error::Refused(format!("job {name} cannot be {done}: {reason} (next: {next})"))
        })?;
        let (before, state, word) = (before.name(), after.name(), word(&after).to_owned());
        Ok(Acted { job: name.clone(), before, state, word })
    })?)
}

/// The command that helps when a deed is refused.
fn instead(deed: Deed, state: &State, name: &str) -> String {
    let name = quoted(name);
    match (deed, state.phase) {
        (_, Phase::Inactive) => format!("driftline job start {name}"),
        (
            _,
            Phase::ReadyForDelete
            | Phase::DeleteStartingUp
            | Phase::Deleting
            | Phase::ReadyForDeleteNotify
            | Phase::NotifyingOfDeletion,
        ) => format!("it is being deleted: driftline job wait {name} --for gone"),
        (_, Phase::Active) if state.resuming => {
            format!("try again when it goes on, in a moment: driftline job show {name}")
        }
        (_, Phase::ReadyForNotify | Phase::Notifying) => {
            format!("its run is over in a moment: driftline job wait {name}")
        }
        (Deed::Start | Deed::StartMinimal, Phase::Aborting | Phase::ShuttingDown) => {
            format!("driftline job wait {name}")
        }
        (Deed::Start | Deed::StartMinimal, Phase::Active) if state.paused && !state.stopping => {
            format!("driftline job resume {name}")
        }
        (Deed::Start | Deed::StartMinimal, _) => format!("driftline job restart {name}"),
        (Deed::Delete, Phase::Aborting) => format!("driftline job wait {name}"),
        (Deed::Delete, _) => format!("driftline job abort {name} && driftline job wait {name}"),
        (Deed::Restart | Deed::RestartMinimal, Phase::ShuttingDown) => {
            format!("driftline job abort {name} && driftline job wait {name}")
        }
        (Deed::Pause, Phase::Active) if state.paused && !state.stopping => {
            format!("driftline job resume {name}")
        }
        (Deed::Resume, Phase::Active) if state.paused => {
            format!("driftline job wait {name} --for paused")
        }
        _ => format!("see how it stands: driftline job show {name}"),
    }
}

/// Forgets how far a job's seeding has come.
pub fn reset_seeding(db: &Db, name: String) -> anyhow::Result<Changed> {
    let line = db.write(move |tx| {
        let job = find(tx, &name)?;
        let state = job_states::lock(tx, job.id)?.ok_or_else(|| super::unknown(&name))?;
        let name = shown(&job.name);
        if state.phase == Phase::StartingUp || state.seeding {
            return Err(Error::Refused(format!(
                "the seeding of job {name} cannot be reset: the job is {}, and when its seeding \
                 is done it says how far it has come; try again in a moment",
                state.name()
            )));
        }
        jobs::reseed(tx, job.id)?;
        Ok(format!("job {name}: its seeding begins anew, so the next run looks at everything"))
    })?;
    Ok(Changed::done(vec![line]))
}

/// Runs an action, and tells what came of it.
pub fn run(place: &Place, name: String, deed: Deed) -> anyhow::Result<ExitCode> {
    let answer = place.change("job", &Change::Act { name, deed })?;
    let acted: Acted = serde_json::from_value(answer.clone())
        .context("the process that holds the directory is of another version")?;
    // One that is gone already has had somebody who worked on it.
    let attended = standing(place, &acted.job)?.is_none_or(|line| line.attended);
    let next = (!attended).then(|| format!("driftline work{}", place.flags()));
    if place.json() {
        let mut answer = answer;
        answer["attended"] = attended.into();
        answer["next"] = next.into();
        say(&answer.to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let (job, word) = (shown(&acted.job), shown(&acted.word));
    say(&format!("job {job}: {} -> {} ({word})", shown(&acted.before), shown(&acted.state)));
    if let Some(next) = next {
        let what = match deed {
            Deed::Delete => "; its documents are removed by a process that works on it",
            _ => "",
        };
        say(&format!("nobody works on this job now{what}; start with: {next}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// How a job stands; `None` if it is gone.
fn standing(place: &Place, name: &str) -> anyhow::Result<Option<Line>> {
    let answer = place.ask("jobs", Ask::List { name: Some(name.to_owned()) })?;
    let mut lines: Vec<Line> = serde_json::from_value(answer)
        .context("the process that holds the directory is of another version")?;
    Ok(lines.pop())
}

/// Deletes a job, when somebody has said that it is meant.
pub fn delete(place: &Place, name: String, yes: bool) -> anyhow::Result<ExitCode> {
    let line = standing(place, &name)?.ok_or_else(|| super::unknown(&name))?;
    // One that cannot be deleted is refused, and nobody has to think about it.
    let may_go = line.state == "INACTIVE";
    if may_go && !yes {
        let question = format!(
            "delete job {} with its {}, also from its outputs?",
            shown(&name),
            count(line.documents, "document")
        );
        if !std::io::stdin().is_terminal() {
            bail!("{question} add --yes if that is meant: nobody can be asked here");
        }
        let input = std::io::stdin().lock();
        if !confirmed(&question, input, std::io::stderr())? {
            say(&format!("job {} was not deleted", shown(&name)));
            return Ok(ExitCode::FAILURE);
        }
    }
    run(place, name, Deed::Delete)
}

/// Whether somebody says yes.
fn confirmed(question: &str, input: impl BufRead, mut output: impl Write) -> anyhow::Result<bool> {
    write!(output, "{question} [y/N] ").and_then(|()| output.flush())?;
    let mut reply = String::new();
    input.take(REPLY_BYTES_MAX).read_line(&mut reply).context("the answer cannot be read")?;
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
