//! No state holds a job for ever: whatever people ask for and whenever they do, what the
//! conductor does by itself leads on. ManifoldCF's jobs hang in some of these.
//!
//! Over every state that can be reached, as in the tests beside this one.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

use super::tests::{events, plain};
use super::*;
use std::collections::{HashMap, HashSet, VecDeque};

/// What happens without anybody's asking while all is well.
const BY_ITSELF: [&str; 17] = [
    "startup begins",
    "startup done",
    "startup returns",
    "seeding done",
    "seeding returns",
    "quiet",
    "resumed",
    "queue done",
    "cleaned up",
    "notify begins",
    "notify done",
    "notify returns",
    "delete begins",
    "delete prepared",
    "delete returns",
    "deleted",
    "more found",
];

fn key(state: &JobState) -> String {
    format!("{state:?}")
}

/// Every state that can be reached, by what it is.
fn reachable() -> HashMap<String, JobState> {
    let (mut found, mut left) = (HashMap::new(), VecDeque::from([JobState::default()]));
    while let Some(state) = left.pop_front() {
        if found.insert(key(&state), state.clone()).is_none() {
            let next = events().into_iter().filter_map(|it| after(&state, &it.1, 50).ok());
            left.extend(next.map(plain));
        }
    }
    found
}

/// Where a state leads by itself.
fn leads(state: &JobState) -> Vec<JobState> {
    let by_itself = events().into_iter().filter(|it| BY_ITSELF.contains(&it.0));
    by_itself.filter_map(|it| after(state, &it.1, 50).ok()).map(plain).collect()
}

/// The states from which a job comes by itself to one that is wanted.
fn coming_to(
    all: &HashMap<String, JobState>,
    wanted: impl Fn(&JobState) -> bool,
) -> HashSet<String> {
    let mut coming: HashSet<String> =
        all.iter().filter(|it| wanted(it.1)).map(|it| it.0.clone()).collect();
    loop {
        let more: Vec<String> = all
            .iter()
            .filter(|(name, _)| !coming.contains(*name))
            .filter(|(_, state)| leads(state).iter().any(|next| coming.contains(&key(next))))
            .map(|it| it.0.clone())
            .collect();
        if more.is_empty() {
            return coming;
        }
        coming.extend(more);
    }
}

/// All that a state may come to by itself, itself among them.
fn futures(state: JobState) -> Vec<JobState> {
    let (mut seen, mut left, mut found) = (HashSet::new(), VecDeque::from([state]), Vec::new());
    while let Some(state) = left.pop_front() {
        if seen.insert(key(&state)) {
            left.extend(leads(&state));
            found.push(state);
        }
    }
    found
}

/// Defect 12: an abort that met the clean-up was "unexpected" for ever.
#[test]
fn an_abort_comes_to_an_end_wherever_it_meets_the_job() {
    let all = reachable();
    let ending = coming_to(&all, |state| state.phase == Phase::Inactive);
    let mut met = HashSet::new();
    for state in all.values() {
        let Ok(aborted) = after(state, &JobEvent::Abort, 50) else { continue };
        met.insert(state.name());
        for next in futures(plain(aborted)) {
            assert!(ending.contains(&key(&next)), "{} -> {}", state.name(), next.name());
        }
    }
    for name in ["SHUTTINGDOWN", "ACTIVE", "STARTINGUP", "PAUSED", "ACTIVESEEDING"] {
        assert!(met.contains(name), "{name} can be aborted: {met:?}");
    }
}

/// Defect 5: what was asked for while a job was seeded left it where it was.
#[test]
fn a_job_that_is_paused_resumed_or_aborted_while_it_is_seeded_goes_on() {
    let all = reachable();
    let is_at_work = |state: &JobState| state.name() == "ACTIVE";
    let working = coming_to(&all, is_at_work);
    let ending = coming_to(&all, |state| state.phase == Phase::Inactive);
    let done = JobEvent::SeedingDone { seeding_version: Some("v".to_owned()), reseed_ms: None };
    let mut seeded = 0;
    for state in all.values().filter(|state| state.seeding) {
        for event in [&done, &JobEvent::SeedingReturns] {
            let next = after(state, event, 50);
            let next = next.unwrap_or_else(|why| panic!("{}: {event:?}: {why}", state.name()));
            assert!(!next.seeding, "{} -> {}", state.name(), next.name());
            seeded += 1;
        }
        // Asked for before the seeds are there, it holds when they are.
        for event in [JobEvent::Pause, JobEvent::Resume, JobEvent::Abort] {
            let Ok(asked) = after(state, &event, 50) else { continue };
            let next = plain(after(&asked, &done, 50).unwrap_or(asked));
            let goes_on = match event {
                JobEvent::Abort => ending.contains(&key(&next)),
                // A window that is closed still keeps it.
                JobEvent::Resume => next.waiting || working.contains(&key(&next)),
                _ => next.paused,
            };
            assert!(goes_on, "{event:?} in {} -> {}", state.name(), next.name());
        }
    }
    assert!(seeded >= 2 * 10, "{seeded} ways to be seeded");
}
