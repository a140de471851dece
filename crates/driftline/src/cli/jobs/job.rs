//! `driftline job`: jobs, from their definition to their end.

mod actions;
mod failed;
mod removals;
mod show;
mod wait;

use crate::cli::report_change;
use crate::place::Place;
use crate::verbs::jobs::actions::JobAction;
use crate::verbs::jobs::define::{DefineJob, DefineRequest, JobEdit};
use crate::verbs::jobs::flags::JobFlags;
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

/// Define, start, stop and inspect jobs
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline job create docs --connection handbook --schedule 'hours=3 zone=Europe/Berlin' roots=/srv/docs
Example: driftline job start docs")]
pub struct Args {
    #[command(subcommand)]
    action: JobCommand,
}

#[derive(Subcommand)]
enum JobCommand {
    /// List all jobs and their state
    #[command(after_help = "Example: driftline job list --json")]
    List(JobListArgs),
    /// Show a job: its definition, its state, its last and its next runs
    #[command(after_help = "Example: driftline job show docs")]
    Show(JobOneArgs),
    /// Create a job
    #[command(after_help = "\
Example: driftline job create docs --connection handbook --hops child=5 --pipeline copy roots=/srv/docs
Example: driftline job create news --connection web --type continuous --interval 15min --max-interval 1d \\
             seeds=https://news.example/")]
    Create(JobCreateArgs),
    /// Change a job; what is not given stays the same
    #[command(after_help = "\
Example: driftline job edit docs --priority 3 --schedule 'hours=3 days=mon-fri zone=Europe/Berlin window=2h'")]
    Edit(JobEditArgs),
    /// Delete an inactive job and its documents
    #[command(after_help = "Example: driftline job delete docs --yes")]
    Delete(JobDeleteArgs),
    /// Start a job
    #[command(after_help = "Example: driftline job start docs")]
    Start(JobOneArgs),
    /// Start a minimal run, which processes only changed documents if the connector supports it
    #[command(after_help = "Example: driftline job start-minimal docs")]
    StartMinimal(JobOneArgs),
    /// Pause a job; its run continues when it is resumed
    #[command(after_help = "Example: driftline job pause docs")]
    Pause(JobOneArgs),
    /// Resume a paused job
    #[command(after_help = "Example: driftline job resume docs")]
    Resume(JobOneArgs),
    /// Abort a job's run
    #[command(after_help = "Example: driftline job abort docs")]
    Abort(JobOneArgs),
    /// Abort a job's run and start a new one
    #[command(after_help = "Example: driftline job restart docs")]
    Restart(JobOneArgs),
    /// Abort a job's run and start a minimal run, which processes only changed documents
    #[command(after_help = "Example: driftline job restart-minimal docs")]
    RestartMinimal(JobOneArgs),
    /// Wait until a job is inactive, paused or gone
    #[command(after_help = "\
Example: driftline job wait docs --timeout 10min

Exit code: 0 the state is reached, 1 it timed out, cannot be reached, or the run ended with an error, 2 error.")]
    Wait(wait::Args),
    /// Reset a job's seeding: the next run checks every document
    #[command(after_help = "Example: driftline job reset-seeding docs")]
    ResetSeeding(JobOneArgs),
    /// List the documents that a job has given up on, and why
    #[command(after_help = "Example: driftline job failed docs --reason http-503")]
    Failed(failed::Args),
    /// Retry documents that a running job has given up on
    #[command(after_help = "\
Example: driftline job retry docs --reason http-503
Example: driftline job retry docs https://example.com/a https://example.com/b")]
    Retry(failed::RetryArgs),
    /// Show, approve or reject removals that are held because they exceed the job's limit
    #[command(after_help = "\
Example: driftline job removals show docs
Example: driftline job removals approve docs")]
    Removals(removals::Args),
}

#[derive(ClapArgs)]
struct JobListArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct JobOneArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(ClapArgs)]
struct JobCreateArgs {
    #[command(flatten)]
    place: Place,
    /// The job's name
    #[arg(value_name = "NAME")]
    name: String,
    /// Repository connection that its documents come from
    #[arg(long, value_name = "NAME")]
    connection: String,
    #[command(flatten)]
    flags: JobFlags,
}

#[derive(ClapArgs)]
struct JobEditArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// The new name
    #[arg(long, value_name = "NAME")]
    rename: Option<String>,
    /// Repository connection that its documents come from
    #[arg(long, value_name = "NAME")]
    connection: Option<String>,
    #[command(flatten)]
    flags: JobFlags,
}

#[derive(ClapArgs)]
struct JobDeleteArgs {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let act = |args: JobOneArgs, action| actions::run(&args.place, args.name, action);
    match args.action {
        JobCommand::List(args) => show::list(&args.place),
        JobCommand::Show(args) => show::show(&args.place, args.name),
        JobCommand::Create(JobCreateArgs { place, name, connection, flags }) => {
            define(&place, DefineRequest::Create { name, connection, flags })
        }
        JobCommand::Edit(JobEditArgs { place, name, rename, connection, flags }) => {
            let edit = JobEdit { rename, connection, flags };
            define(&place, DefineRequest::Edit { name, edit })
        }
        JobCommand::Delete(args) => actions::delete(&args.place, args.name, args.yes),
        JobCommand::Start(args) => act(args, JobAction::Start),
        JobCommand::StartMinimal(args) => act(args, JobAction::StartMinimal),
        JobCommand::Pause(args) => act(args, JobAction::Pause),
        JobCommand::Resume(args) => act(args, JobAction::Resume),
        JobCommand::Abort(args) => act(args, JobAction::Abort),
        JobCommand::Restart(args) => act(args, JobAction::Restart),
        JobCommand::RestartMinimal(args) => act(args, JobAction::RestartMinimal),
        JobCommand::Wait(args) => wait::run(args),
        JobCommand::ResetSeeding(JobOneArgs { place, name }) => {
            define(&place, DefineRequest::ResetSeeding { name })
        }
        JobCommand::Failed(args) => failed::run(args),
        JobCommand::Retry(args) => failed::retry(args),
        JobCommand::Removals(args) => removals::run(args),
    }
}

/// Changes a definition, and tells what is different.
fn define(place: &Place, request: DefineRequest) -> anyhow::Result<ExitCode> {
    let changed = place.change::<DefineJob>(request)?;
    report_change(place, &changed, "nothing changed: it is already as requested")
}
