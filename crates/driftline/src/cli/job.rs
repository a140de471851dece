//! `driftline job`: jobs, from their definition to their end.
//!
//! A job is shown and edited as it stands in the document of all definitions, so it is
//! checked in the same way; where it stands changes by events of the life cycle only.
//! Invariants: an edit and an action are one transaction each; an action that is refused
//! changes nothing and says why, and what can be done instead.

pub mod acting;
mod defining;
pub mod failed;
mod flags;
pub mod removals;
pub mod showing;
pub mod standing;
mod undelivered;
mod waiting;

use super::answers::Answers;
use super::changes::Changes;
use super::place::Place;
use super::{shown, told};
use acting::Deed;
use clap::{Args as ClapArgs, Subcommand};
use flags::Flags;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::process::ExitCode;
use store::Tx;
use store::tables::jobs::{self, Job};

/// Define jobs, start and stop them, and see how they stand
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline job create docs --connection handbook --schedule 'hours=3 zone=Europe/Berlin' roots=/srv/docs
Example: driftline job start docs")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List all jobs and how they stand
    #[command(after_help = "Example: driftline job list --json")]
    List(ListArgs),
    /// Show a job: its definition, how it stands, its last and its next runs
    #[command(after_help = "Example: driftline job show docs")]
    Show(OneArgs),
    /// Make a job
    #[command(after_help = "\
Example: driftline job create docs --connection handbook --hops child=5 --pipeline copy roots=/srv/docs
Example: driftline job create news --connection web --type continuous --interval 15min --max-interval 1d \\
             seeds=https://news.example/")]
    Create(CreateArgs),
    /// Change a job; what is not given stays
    #[command(after_help = "\
Example: driftline job edit docs --priority 3 --schedule 'hours=3 days=mon-fri zone=Europe/Berlin window=2h'")]
    Edit(EditArgs),
    /// Delete a job that is inactive, with its documents
    #[command(after_help = "Example: driftline job delete docs --yes")]
    Delete(DeleteArgs),
    /// Start a job
    #[command(after_help = "Example: driftline job start docs")]
    Start(OneArgs),
    /// Start a job that asks only for what changed, where its connector can tell
    #[command(after_help = "Example: driftline job start-minimal docs")]
    StartMinimal(OneArgs),
    /// Let a job rest; its run goes on when it is resumed
    #[command(after_help = "Example: driftline job pause docs")]
    Pause(OneArgs),
    /// Let a paused job go on
    #[command(after_help = "Example: driftline job resume docs")]
    Resume(OneArgs),
    /// End a job's run before its time
    #[command(after_help = "Example: driftline job abort docs")]
    Abort(OneArgs),
    /// End a job's run before its time, and start another
    #[command(after_help = "Example: driftline job restart docs")]
    Restart(OneArgs),
    /// The same, with a run that asks only for what changed
    #[command(after_help = "Example: driftline job restart-minimal docs")]
    RestartMinimal(OneArgs),
    /// Wait until a job is inactive, paused or gone
    #[command(after_help = "\
Example: driftline job wait docs --timeout 10min

Exit code: 0 it is so, 1 the time is up, it will not be so, or the run ended with an error.")]
    Wait(waiting::Args),
    /// Forget how far a job's seeding has come: the next run looks at everything
    #[command(after_help = "Example: driftline job reset-seeding docs")]
    ResetSeeding(OneArgs),
    /// List the documents that a job has given up, and why
    #[command(after_help = "Example: driftline job failed docs --reason http-503")]
    Failed(failed::Args),
    /// Try again what a job that runs has given up
    #[command(after_help = "\
Example: driftline job retry docs --reason http-503
Example: driftline job retry docs https://example.com/a https://example.com/b")]
    Retry(failed::RetryArgs),
    /// Decide about removals that are held, because a job would lose too much
    #[command(after_help = "\
Example: driftline job removals show docs
Example: driftline job removals approve docs")]
    Removals(removals::Args),
}

#[derive(ClapArgs)]
struct ListArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct OneArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(ClapArgs)]
struct CreateArgs {
    #[command(flatten)]
    place: Place,
    /// The job's name
    #[arg(value_name = "NAME")]
    name: String,
    /// The repository connection that its documents come from
    #[arg(long, value_name = "NAME")]
    connection: String,
    #[command(flatten)]
    flags: Flags,
}

#[derive(ClapArgs)]
struct EditArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// Give it another name
    #[arg(long, value_name = "NAME")]
    rename: Option<String>,
    /// The repository connection that its documents come from
    #[arg(long, value_name = "NAME")]
    connection: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(ClapArgs)]
struct DeleteArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// Do not ask whether it is meant
    #[arg(long)]
    yes: bool,
}

/// A change, as it goes through a socket.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Change {
    /// Makes a job.
    Create {
        /// Its name.
        name: String,
        /// Where its documents come from.
        connection: String,
        /// What else was said.
        flags: Flags,
    },
    /// Changes one.
    Edit {
        /// Which.
        name: String,
        /// Its new name.
        rename: Option<String>,
        /// Where its documents come from now.
        connection: Option<String>,
        /// What else was said.
        flags: Flags,
    },
    /// Makes it start, rest, go on, stop or go.
    Act {
        /// Which.
        name: String,
        /// What.
        deed: Deed,
    },
    /// Forgets how far its seeding has come.
    ResetSeeding {
        /// Which.
        name: String,
    },
    /// Makes ready what it has given up.
    Retry(failed::Retry),
    /// Decides about removals that are held.
    Removals {
        /// Of which job.
        name: String,
        /// What.
        decision: removals::Decision,
    },
}

/// A question, as it goes through a socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Ask {
    /// How all stand, or one.
    List {
        /// Which; all without it.
        name: Option<String>,
    },
    /// Everything of one.
    Show {
        /// Which.
        name: String,
    },
    /// What one has given up.
    Failed(failed::Ask),
    /// What one is to lose.
    Removals(removals::Ask),
    /// Where one stands, for who waits for it.
    Seen {
        /// Which.
        name: String,
    },
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let act = |args: OneArgs, deed| acting::run(&args.place, args.name, deed);
    match args.action {
        Action::List(args) => showing::list(&args.place),
        Action::Show(args) => showing::show(&args.place, args.name),
        Action::Create(CreateArgs { place, name, connection, flags }) => {
            define(&place, &Change::Create { name, connection, flags })
        }
        Action::Edit(EditArgs { place, name, rename, connection, flags }) => {
            define(&place, &Change::Edit { name, rename, connection, flags })
        }
        Action::Delete(args) => acting::delete(&args.place, args.name, args.yes),
        Action::Start(args) => act(args, Deed::Start),
        Action::StartMinimal(args) => act(args, Deed::StartMinimal),
        Action::Pause(args) => act(args, Deed::Pause),
        Action::Resume(args) => act(args, Deed::Resume),
        Action::Abort(args) => act(args, Deed::Abort),
        Action::Restart(args) => act(args, Deed::Restart),
        Action::RestartMinimal(args) => act(args, Deed::RestartMinimal),
        Action::Wait(args) => waiting::run(args),
        Action::ResetSeeding(OneArgs { place, name }) => {
            define(&place, &Change::ResetSeeding { name })
        }
        Action::Failed(args) => failed::run(args),
        Action::Retry(args) => failed::retry(args),
        Action::Removals(args) => removals::run(args),
    }
}

/// Changes a definition, and tells what is different.
fn define(place: &Place, change: &Change) -> anyhow::Result<ExitCode> {
    told(place, place.change("job", change)?, "nothing has changed: it was so already")
}

/// Jobs and how they stand, by the process that has the rows.
pub fn answer(answers: &Answers, ask: Ask) -> anyhow::Result<Json> {
    match ask {
        Ask::List { name } => Ok(serde_json::to_value(standing::lines(answers, name)?)?),
        Ask::Show { name } => showing::answer(answers, name),
        Ask::Failed(ask) => failed::answer(answers, ask),
        Ask::Removals(ask) => removals::answer(answers, ask),
        Ask::Seen { name } => waiting::answer(answers, name),
    }
}

/// Carries out a change.
pub fn change(changes: &Changes, change: Change) -> anyhow::Result<Json> {
    let changed = match change {
        Change::Act { name, deed } => {
            return Ok(serde_json::to_value(acting::act(&changes.db, name, deed)?)?);
        }
        Change::Retry(retry) => return failed::carry_out(&changes.db, retry),
        Change::Removals { name, decision } => {
            return removals::carry_out(&changes.db, name, decision);
        }
        Change::Create { name, connection, flags } => {
            defining::create(changes, name, connection, flags)?
        }
        Change::Edit { name, rename, connection, flags } => {
            defining::edit(changes, name, defining::Edit { rename, connection, flags })?
        }
        Change::ResetSeeding { name } => acting::reset_seeding(&changes.db, name)?,
    };
    Ok(serde_json::to_value(changed)?)
}

/// The job of a name.
fn find(tx: &mut Tx<'_>, name: &str) -> store::Result<Job> {
    jobs::find(tx, name)?.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> store::Error {
    store::Error::Refused(format!(
        "there is no job named {}; `driftline job list` lists them",
        shown(name)
    ))
}

#[cfg(test)]
mod tests;
