//! Where one job stands, for who waits for it.

use super::JobRequest;
use super::job_status::word;
use crate::verbs::Verb;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use serde::{Deserialize, Serialize};
use store::Tx;
use store::ids::JobId;
use store::tables::job_states::{self, JobState, Phase};
use store::tables::jobs;

/// Where one job stands; nothing when it is not there.
pub struct JobStateOf;

impl Verb for JobStateOf {
    const NAME: &'static str = "job-state";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Jobs));
    type Request = JobRequest;
    type Response = Option<SeenState>;

    fn answer(context: &VerbContext, request: JobRequest) -> anyhow::Result<Option<SeenState>> {
        Ok(context.db.read(move |tx| match jobs::find(tx, &request.name)? {
            Some(job) => look(tx, job.id),
            None => Ok(None),
        })?)
    }
}

/// What is seen of a job that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenState {
    /// The name of its state.
    pub state: String,
    /// The same in a word for people.
    pub word: String,
    /// Why its last run was aborted.
    pub error: Option<String>,
    pub is_inactive: bool,
    /// It is being deleted.
    pub is_going: bool,
    /// It is paused, and nothing of it is under way.
    pub rests: bool,
}

impl From<&JobState> for SeenState {
    fn from(state: &JobState) -> SeenState {
        let is_going = matches!(
            state.phase,
            Phase::ReadyForDelete
                | Phase::DeleteStartingUp
                | Phase::Deleting
                | Phase::ReadyForDeleteNotify
                | Phase::NotifyingOfDeletion
        );
        SeenState {
            state: state.name(),
            word: word(state).to_owned(),
            error: state.error.clone(),
            is_inactive: state.phase == Phase::Inactive,
            is_going,
            rests: state.phase == Phase::Active && state.paused && !state.stopping,
        }
    }
}

/// Where a job stands; `None` when it is gone.
pub fn look(tx: &mut Tx<'_>, job: JobId) -> store::Result<Option<SeenState>> {
    match jobs::load(tx, job)? {
        Some(_) => Ok(Some(SeenState::from(&job_states::state(tx, job)?))),
        None => Ok(None),
    }
}
