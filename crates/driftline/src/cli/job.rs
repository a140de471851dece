//! `driftline job`: jobs, from their definition to their end.

mod acting;
mod failed;
mod removals;
mod showing;
mod waiting;

use super::report_change;
use crate::place::Place;
use crate::verbs::jobs::acting::JobAction;
use crate::verbs::jobs::defining::{DefineJob, DefineRequest, JobEdit};
use crate::verbs::jobs::flags::JobFlags;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

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
    flags: JobFlags,
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
    flags: JobFlags,
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

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let act = |args: OneArgs, action| acting::run(&args.place, args.name, action);
    match args.action {
        Action::List(args) => showing::list(&args.place),
        Action::Show(args) => showing::show(&args.place, args.name),
        Action::Create(CreateArgs { place, name, connection, flags }) => {
            define(&place, DefineRequest::Create { name, connection, flags })
        }
        Action::Edit(EditArgs { place, name, rename, connection, flags }) => {
            let edit = JobEdit { rename, connection, flags };
            define(&place, DefineRequest::Edit { name, edit })
        }
        Action::Delete(args) => acting::delete(&args.place, args.name, args.yes),
        Action::Start(args) => act(args, JobAction::Start),
        Action::StartMinimal(args) => act(args, JobAction::StartMinimal),
        Action::Pause(args) => act(args, JobAction::Pause),
        Action::Resume(args) => act(args, JobAction::Resume),
        Action::Abort(args) => act(args, JobAction::Abort),
        Action::Restart(args) => act(args, JobAction::Restart),
        Action::RestartMinimal(args) => act(args, JobAction::RestartMinimal),
        Action::Wait(args) => waiting::run(args),
        Action::ResetSeeding(OneArgs { place, name }) => {
            define(&place, DefineRequest::ResetSeeding { name })
        }
        Action::Failed(args) => failed::run(args),
        Action::Retry(args) => failed::retry(args),
        Action::Removals(args) => removals::run(args),
    }
}

/// Changes a definition, and tells what is different.
fn define(place: &Place, request: DefineRequest) -> anyhow::Result<ExitCode> {
    let changed = place.change::<DefineJob>(request)?;
    report_change(place, &changed, "nothing has changed: it was so already")
}
