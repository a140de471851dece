//! What people do to a job: start it, pause or resume it, stop it, delete it.
//!
//! Each is one event of the life cycle in one transaction; what follows is done by a process that
//! works on the job. Invariant: what is refused changes nothing, and is told with its reason
//! and what can be done instead.

use super::job_status::word;
use super::{find, unknown};
use crate::text::{quoted, shown};
use crate::verbs::Change;
use crate::verbs::access::{Area, Needs};
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::ChangeContext;
use crawl::lifecycle::JobEvent;
use crawl::{ask_again, conduct};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::tables::job_states::{self, JobState, Phase};
use store::{Db, Error, clock};

/// Starts, pauses, resumes, aborts, restarts or deletes a job.
pub struct ActOnJob;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActRequest {
    pub name: String,
    pub action: JobAction,
}

impl Change for ActOnJob {
    const NAME: &'static str = "job-act";
    const NEEDS: Option<Needs> = Some(Needs::operator(Area::Jobs));
    type Request = ActRequest;
    type Response = ActionResult;

    fn carry_out(context: &ChangeContext, request: ActRequest) -> anyhow::Result<ActionResult> {
        act(&context.db, request.name, request.action)
    }

    fn subject(request: &ActRequest) -> AuditSubject {
        AuditSubject::of("job", request.action.name(), &request.name)
    }

    fn outcome(acted: &ActionResult) -> String {
        format!("job {}: {} -> {}", acted.job, acted.before, acted.state)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobAction {
    Start,
    StartMinimal,
    Pause,
    Resume,
    Abort,
    Restart,
    RestartMinimal,
    Delete,
}

impl JobAction {
    #[cfg(test)]
    pub const ALL: [JobAction; 8] = [
        JobAction::Start,
        JobAction::StartMinimal,
        JobAction::Pause,
        JobAction::Resume,
        JobAction::Abort,
        JobAction::Restart,
        JobAction::RestartMinimal,
        JobAction::Delete,
    ];

    /// The name that the audit log has.
    fn name(self) -> &'static str {
        match self {
            JobAction::Start => "start",
            JobAction::StartMinimal => "start_minimal",
            JobAction::Pause => "pause",
            JobAction::Resume => "resume",
            JobAction::Abort => "abort",
            JobAction::Restart => "restart",
            JobAction::RestartMinimal => "restart_minimal",
            JobAction::Delete => "delete",
        }
    }

    fn event(self) -> JobEvent {
        match self {
            JobAction::Start => JobEvent::Start { minimal: false },
            JobAction::StartMinimal => JobEvent::Start { minimal: true },
            JobAction::Pause => JobEvent::Pause,
            JobAction::Resume => JobEvent::Resume,
            JobAction::Abort => JobEvent::Abort,
            JobAction::Restart => JobEvent::Restart { minimal: false },
            JobAction::RestartMinimal => JobEvent::Restart { minimal: true },
            JobAction::Delete => JobEvent::Delete,
        }
    }

    /// What has not happened when it is refused.
    fn done(self) -> &'static str {
        match self {
            JobAction::Start | JobAction::StartMinimal => "started",
            JobAction::Pause => "paused",
            JobAction::Resume => "resumed",
            JobAction::Abort => "aborted",
            JobAction::Restart | JobAction::RestartMinimal => "restarted",
            JobAction::Delete => "deleted",
        }
    }
}

/// What an action came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ActionResult {
    pub job: String,
    /// The name of its state before.
    pub before: String,
    /// The name of its state now.
    pub state: String,
    /// The same in a word for people.
    pub word: String,
}

fn act(db: &Db, name: String, action: JobAction) -> anyhow::Result<ActionResult> {
    let now_ms = clock::now_ms();
    if matches!(
        action,
        JobAction::Start | JobAction::StartMinimal | JobAction::Restart | JobAction::RestartMinimal
    ) {
        let name = name.clone();
        let job = db.read(move |tx| find(tx, &name))?;
        ask_again::unblock_hosts(db, &job, now_ms)?;
    }
    Ok(db.write(move |tx| {
        let job = find(tx, &name)?;
        let before = job_states::lock(tx, job.id)?.ok_or_else(|| unknown(&name))?;
        let after = conduct::change(tx, job.id, &action.event(), now_ms).map_err(|error| {
            let Error::Refused(reason) = error else { return error };
            let (name, done) = (shown(&name), action.done());
            let next = instead(action, &before, &name);
            Error::Refused(format!("job {name} cannot be {done}: {reason} (next: {next})"))
        })?;
        let (before, state, word) = (before.name(), after.name(), word(&after).to_owned());
        Ok(ActionResult { job: name.clone(), before, state, word })
    })?)
}

/// The command that helps when a action is refused.
fn instead(action: JobAction, state: &JobState, name: &str) -> String {
    let name = quoted(name);
    match (action, state.phase) {
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
            format!("try again in a moment: driftline job show {name}")
        }
        (_, Phase::ReadyForNotify | Phase::Notifying) => {
            format!("its run is over in a moment: driftline job wait {name}")
        }
        (JobAction::Start | JobAction::StartMinimal, Phase::Aborting | Phase::ShuttingDown) => {
            format!("driftline job wait {name}")
        }
        (JobAction::Start | JobAction::StartMinimal, Phase::Active)
            if state.paused && !state.stopping =>
        {
            format!("driftline job resume {name}")
        }
        (JobAction::Start | JobAction::StartMinimal, _) => format!("driftline job restart {name}"),
        (JobAction::Delete, Phase::Aborting) => format!("driftline job wait {name}"),
        (JobAction::Delete, _) => {
            format!("driftline job abort {name} && driftline job wait {name}")
        }
        (JobAction::Restart | JobAction::RestartMinimal, Phase::ShuttingDown) => {
            format!("driftline job abort {name} && driftline job wait {name}")
        }
        (JobAction::Pause, Phase::Active) if state.paused && !state.stopping => {
            format!("driftline job resume {name}")
        }
        (JobAction::Resume, Phase::Active) if state.paused => {
            format!("driftline job wait {name} --for paused")
        }
        _ => format!("check its state: driftline job show {name}"),
    }
}
