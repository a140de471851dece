//! What a person who starts a job asks for at once, although it was left alone: hosts that
//! nobody answered for, and documents of an interrupted run that failed for that, or for
//! a refusal that the job's present settings lift.
//!
//! A schedule is more patient: it keeps to the breaker of each host. Needs no lease: it
//! touches only what nobody works on. Invariants: a host that did answer is left alone for
//! as long as it asked for; a host is asked no sooner than after its delay from now;
//! repeating it changes nothing more.

use crate::definitions::WebSpec;
use crate::fetch::sentences;
use store::ids::{JobId, Part, QueueId, Run};
use store::tables::bins;
use store::tables::job_states::{self, Phase};
use store::tables::jobs::Job;
use store::tables::queue::{self, Place, ReasonCode, retry};
use store::tables::settings;
use store::{Db, Result};

/// Documents that are changed in one transaction.
const STEP: u32 = 500;

/// Closes the breakers of the job's hosts that nobody answered for.
pub fn unblock_hosts(db: &Db, job: &Job, now_ms: i64) -> Result<()> {
    let Ok(spec) = WebSpec::from_json(&job.docspec) else { return Ok(()) };
    let (id, delay_ms) = (job.id, spec.delay_ms);
    for part in parts(db)? {
        let codes: Vec<String> = sentences::no_answer().collect();
        db.write(move |tx| bins::unblock(tx, part, id, &codes, now_ms, delay_ms))?;
    }
    Ok(())
}

/// Makes documents of a run that goes on ready again: those that nobody answered for, and
/// those that were refused for a reason that the job's settings lift.
pub fn retry_documents(db: &Db, job: JobId, run: Run, spec: &WebSpec, now_ms: i64) -> Result<()> {
    let named = |code: ReasonCode| code.name().to_owned();
    let waiting: Vec<String> =
        sentences::no_answer().chain([named(ReasonCode::RobotsUnreachable)]).collect();
    let lifted = sentences::PRIVATE.iter().filter(|_| spec.allow_private);
    let lifted = lifted.map(|code| (*code).to_owned()).chain([named(ReasonCode::HostLeftAlone)]);
    let failed: Vec<String> = waiting.iter().cloned().chain(lifted).collect();
    for part in parts(db)? {
        let place = Place { part, job };
        loop {
            let reasons = waiting.clone();
            let count = db.write(move |tx| queue::hasten(tx, place, &reasons, now_ms, STEP))?;
            if count == 0 {
                break;
            }
        }
        let mut after = Some(QueueId(i64::MIN));
        while let Some(row) = after {
            let reasons = failed.clone();
            after = db.write(move |tx| {
                // Nobody ends the run before this transaction is over.
                let state = job_states::lock(tx, job)?;
                if !state.is_some_and(|it| it.phase == Phase::Active && it.run == run) {
                    return Ok(None);
                }
                Ok(retry::retry_any_of(tx, place, run, &reasons, row, STEP)?.next)
            })?;
        }
    }
    Ok(())
}

fn parts(db: &Db) -> Result<impl Iterator<Item = Part>> {
    Ok((0..i64::from(db.read(settings::parts)?)).map(Part))
}
