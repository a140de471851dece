//! `driftline job wait`: until a job is inactive, paused or gone.
//!
//! Looks at the row itself, beside whoever works, so it waits for nobody's answer; only a
//! server is asked.
//! Invariant: it ends as soon as what is waited for is there, cannot come any more
//! without somebody's doing, or the time is up.

use crate::catalog::typed;
use crate::cli::say;
use crate::place::Place;
use crate::text::{quoted, shown, span};
use crate::verbs::jobs::state::{JobStateOf, SeenState, look};
use crate::verbs::jobs::{JobRequest, unknown};
use clap::{Args as ClapArgs, ValueEnum};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::tables::jobs;

/// How often the job is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Until {
    /// Its run is over
    Inactive,
    /// It is paused, and no document is being processed
    Paused,
    /// It is deleted with its documents
    Gone,
}

#[derive(ClapArgs)]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// The job
    #[arg(value_name = "NAME")]
    name: String,
    /// Longest time to wait, in seconds or as a duration such as 10min
    #[arg(long, value_name = "SPAN", default_value = "60", value_parser = timeout)]
    timeout: Duration,
    /// What to wait for
    #[arg(long = "for", value_enum, value_name = "STATE", default_value_t = Until::Inactive)]
    until: Until,
}

fn timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u32>().ok().map(|seconds| u64::from(seconds) * 1_000);
    let ms = seconds.or_else(|| u64::try_from(typed::milliseconds(text)?).ok());
    ms.map(Duration::from_millis)
        .ok_or_else(|| "give a number of seconds, or a duration such as 10min".to_owned())
}

/// How the wait ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    /// It is so, but the run ended with an error.
    Error,
    /// It will not be so unless somebody does something.
    Never,
    /// The time is up.
    TimeUp,
}

/// Runs the verb. The rows are looked at beside whoever holds them; a server is asked.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.place.is_server() {
        return wait(&args, || {
            args.place.ask::<JobStateOf>(JobRequest { name: args.name.clone() })
        });
    }
    let db = args.place.rows()?;
    let name = args.name.clone();
    let job = db.read(move |tx| jobs::find(tx, &name))?.map(|job| job.id);
    wait(&args, || match job {
        Some(job) => Ok(db.read(move |tx| look(tx, job))?),
        None => Ok(None),
    })
}

fn wait(
    args: &Args,
    mut look: impl FnMut() -> anyhow::Result<Option<SeenState>>,
) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let mut is_first = true;
    loop {
        let found = look()?;
        if is_first && found.is_none() && args.until != Until::Gone {
            // What is not there is gone, but nobody can wait for it to be anything else.
            return Err(unknown(&args.name).into());
        }
        is_first = false;
        let end = judge(args.until, found.as_ref())
            .or((begun.elapsed() >= args.timeout).then_some(End::TimeUp));
        match end {
            Some(end) => return Ok(print_end(args, found.as_ref(), end, begun)),
            None => {
                std::thread::park_timeout(GLANCE.min(args.timeout.saturating_sub(begun.elapsed())))
            }
        }
    }
}

/// Whether the wait is over.
fn judge(until: Until, found: Option<&SeenState>) -> Option<End> {
    let Some(seen) = found else {
        return Some(if until == Until::Gone { End::Reached } else { End::Never });
    };
    match until {
        Until::Inactive if seen.is_inactive && seen.error.is_some() => Some(End::Error),
        Until::Inactive if seen.is_inactive => Some(End::Reached),
        Until::Paused if seen.rests => Some(End::Reached),
        Until::Paused | Until::Gone if seen.is_inactive => Some(End::Never),
        Until::Inactive | Until::Paused if seen.is_going => Some(End::Never),
        _ => None,
    }
}

fn print_end(args: &Args, found: Option<&SeenState>, end: End, begun: Instant) -> ExitCode {
    let (state, word, error) = match found {
        None => ("GONE", "gone", None),
        Some(seen) => (seen.state.as_str(), seen.word.as_str(), seen.error.clone()),
    };
    let is_reached = end == End::Reached;
    let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    if args.place.json() {
        let reached = is_reached || end == End::Error;
        let time_up = end == End::TimeUp;
        let answer = serde_json::json!({
            "job": args.name, "state": state, "word": word, "error": error,
            "reached": reached, "time_up": time_up, "waited_ms": waited_ms,
        });
        say(&answer.to_string());
    } else {
        say(&format!("job {}: {state} ({word})", shown(&args.name)));
        error.iter().for_each(|error| say(&format!("    error: {}", shown(error))));
        match end {
            End::TimeUp => {
                let waited = span(i64::try_from(waited_ms).unwrap_or(i64::MAX));
                let (name, place) = (quoted(&args.name), args.place.flags());
                say(&format!(
                    "timed out after {waited}; check whether a process is working on it: \
                     driftline job show {name}{place}"
                ));
            }
            End::Never => say(&format!(
                "it will not become {} by itself",
                args.until.to_possible_value().map_or(String::new(), |it| it.get_name().to_owned())
            )),
            End::Reached | End::Error => {}
        }
    }
    if is_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::tables::job_states::{JobState, Phase};

    fn at(change: impl Fn(&mut JobState)) -> Option<SeenState> {
        let mut state = JobState::default();
        change(&mut state);
        Some(SeenState::from(&state))
    }

    #[test]
    fn a_wait_is_over_when_it_is_so_or_cannot_be() {
        let inactive = at(|_| {});
        let failed = at(|it| it.error = Some("x".into()));
        let active = at(|it| it.phase = Phase::Active);
        let stopping = at(|it| (it.phase, it.paused, it.stopping) = (Phase::Active, true, true));
        let paused = at(|it| (it.phase, it.paused) = (Phase::Active, true));
        let deleting = at(|it| it.phase = Phase::Deleting);
        let aborting = at(|it| it.phase = Phase::Aborting);
        use End::{Error, Never, Reached};
        for (found, ends) in [
            (inactive, [Some(Reached), Some(Never), Some(Never)]),
            (failed, [Some(Error), Some(Never), Some(Never)]),
            (active, [None, None, None]),
            (stopping, [None, None, None]),
            (paused, [None, Some(Reached), None]),
            (deleting, [Some(Never), Some(Never), None]),
            (aborting, [None, None, None]),
            (None, [Some(Never), Some(Never), Some(Reached)]),
        ] {
            let judged =
                [Until::Inactive, Until::Paused, Until::Gone].map(|it| judge(it, found.as_ref()));
            assert_eq!(judged, ends, "{found:?}");
        }
    }

    #[test]
    fn a_timeout_is_seconds_or_a_span() {
        for (text, ms) in [("60", 60_000), ("0", 0), ("500ms", 500), ("10min", 600_000)] {
            assert_eq!(timeout(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "soon", "-1", "1 year"] {
            assert!(timeout(bad).is_err_and(|error| error.contains("10min")), "{bad}");
        }
    }
}
