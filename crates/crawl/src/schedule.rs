//! Schedules of jobs: when a job starts by itself, and how long its run may take.
//!
//! Pure: no clock, no database. A [`Schedule`] is a record as people wrote it; [`rule`]
//! finds the instants that it names, [`text`] is its form for people, and here is what
//! follows from all records of a job together. The caller keeps for each job up to when
//! starts have been looked for, and when its last run ended ([`Since`]).
//!
//! Invariants: a start is never missed and never answered twice, whenever one asks,
//! because what counts is the time after `last_ms` up to now, now included. (ManifoldCF
//! left now out and began the next search one later, so a start at just that instant was
//! lost.) A window that is over is never answered, and one in which a run has ended only
//! if its record asks for more. (ManifoldCF starts a job that may start inside a window
//! again as soon as it ends, until the window closes.)

mod rule;
mod text;

#[cfg(test)]
mod tests;

use rule::ScheduleRule;
pub use store::tables::jobs::StartMethod;
pub use store::tables::schedules::{Schedule, TimeField};
pub use text::{TEXT_BYTES_MAX, parse, print};

/// The longest window: ten years. A longer one says that there is none.
pub const WINDOW_MS_MAX: i64 = 3_660 * 24 * 60 * 60 * 1_000;
/// Runs that are foretold at most.
pub const RUNS_MAX: usize = 1_000;

/// Why a schedule cannot be used. The text says what to change; it counts as people do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadSchedule {
    /// A value is out of its range.
    #[error("{field} has {value}, but must be from {least} to {most}")]
    Range {
        /// The field as the text form calls it.
        field: &'static str,
        value: i64,
        least: i64,
        most: i64,
    },
    /// A list without values.
    #[error("{0} has no value; omit it, or write {0}=* for any")]
    Empty(&'static str),
    /// No such time zone.
    #[error("there is no time zone {0:?}; a name is such as Europe/Berlin or UTC")]
    Zone(String),
    /// A window of no length, or of a senseless one.
    #[error("a window must be longer than zero and at most 3660d, not {0} ms")]
    Window(i64),
    /// Runs that are repeated in a window that there is not.
    #[error(
        "repeat is the time after a run until another one starts in the same window; give window \
         too"
    )]
    Repeat,
    /// No year has such a day.
    #[error("it names a day that does not exist, as 30 February would")]
    Never,
    /// The text says nothing.
    #[error("a schedule must say when, such as {example:?}", example = text::EXAMPLE)]
    Nothing,
    /// The text is too long.
    #[error("a schedule of {0} bytes is longer than the {max} allowed", max = TEXT_BYTES_MAX)]
    TooLong(usize),
    /// A word of the text that is none of ours.
    #[error("{0:?} is not understood; a schedule is such as {example:?}", example = text::EXAMPLE)]
    Word(String),
    /// Something is said twice.
    #[error("{0} is given twice; write all values separated by commas")]
    Twice(&'static str),
    /// A value that is none.
    #[error("{field} has {value:?}, which is not {expected}")]
    Value {
        /// The field as the text form calls it.
        field: &'static str,
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// Refuses a schedule that cannot be used: a value out of its range, a zone that does not
/// exist (ManifoldCF took GMT without a word), a window of no length, a day that no
/// year has. What is refused here never matches below.
pub fn check(schedule: &Schedule) -> Result<(), BadSchedule> {
    ScheduleRule::new(schedule).map(|_| ())
}

/// The first instant after a time that a schedule names; `None` when there is no more.
///
/// A local time that the clocks skip is taken at the instant at which they skip it, so a
/// nightly job runs in that night too; one that they show twice counts the first time.
/// A schedule without a zone is read in UTC. (ManifoldCF's documents say the server's
/// zone, its code takes UTC; a job that moves between servers needs the latter.)
pub fn next_match(schedule: &Schedule, after_ms: i64) -> Option<i64> {
    ScheduleRule::new(schedule).ok()?.next_match(after_ms)
}

/// What of a job's schedule was answered already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// Up to when starts have been looked for: the end of the last run, or the time when
    /// the schedule was defined.
    pub last_ms: i64,
    /// When the last run ended; `None` if the job has had none, or one is under way.
    pub ran_ms: Option<i64>,
}

/// That a job should run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The instant that its schedule names; now or earlier.
    pub at_ms: i64,
    /// When the run must wait for the next window; later than now. `None` lets it end.
    pub window_end_ms: Option<i64>,
    /// Whether it does only what must be done.
    pub minimal: bool,
}

impl Start {
    /// Whether this start, of a later record, takes the place of one found before. A run
    /// that may take longer serves both.
    fn overrides(&self, before: &Start) -> bool {
        match (self.window_end_ms, before.window_end_ms) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(end), Some(end_before)) => end > end_before,
        }
    }
}

/// Whether a job should start now, or, when it waits for its window, go on.
pub fn decide(
    method: StartMethod,
    schedules: &[Schedule],
    since: Since,
    now_ms: i64,
) -> Option<Start> {
    let check = StartCheck { method, since, now_ms };
    let mut winner: Option<Start> = None;
    for rule in check.rules(schedules) {
        let Some(at_ms) = check.due(&rule) else { continue };
        let window_end_ms = rule.window_ms.map(|window_ms| at_ms + window_ms);
        let found = Start { at_ms, window_end_ms, minimal: rule.minimal };
        if winner.is_none_or(|before| found.overrides(&before)) {
            winner = Some(found);
        }
    }
    winner
}

/// The next instant after now at which [`decide`] may answer differently while `since`
/// stays, so that nobody has to ask in between. `None` when it never will.
pub fn next_event(
    method: StartMethod,
    schedules: &[Schedule],
    since: Since,
    now_ms: i64,
) -> Option<i64> {
    let check = StartCheck { method, since, now_ms };
    let of_rule = |rule: ScheduleRule| match check.due(&rule) {
        Some(at_ms) => rule.window_ms.map(|window_ms| at_ms + window_ms),
        None => check.opens(&rule),
    };
    check.rules(schedules).into_iter().filter_map(of_rule).min()
}

/// When a job's next runs begin, each once and in order: at most `count` and [`RUNS_MAX`]
/// of them. A run that is due already begins now. Each is taken to end before the next
/// one begins; those that a record repeats inside its window are not foretold.
pub fn next_runs(
    method: StartMethod,
    schedules: &[Schedule],
    since: Since,
    now_ms: i64,
    count: usize,
) -> Vec<i64> {
    let check = StartCheck { method, since, now_ms };
    let rules = check.rules(schedules);
    let count = count.min(RUNS_MAX);
    let mut runs = Vec::new();
    if count > 0 && rules.iter().any(|rule| check.due(rule).is_some()) {
        runs.push(now_ms);
    }
    let mut openings: Vec<(i64, &ScheduleRule)> =
        rules.iter().filter_map(|rule| Some((check.opens(rule)?, rule))).collect();
    while runs.len() < count {
        let Some(at_ms) = openings.iter().map(|(at_ms, _)| *at_ms).min() else { break };
        runs.push(at_ms);
        openings.retain_mut(|(next_ms, rule)| {
            if *next_ms > at_ms {
                return true;
            }
            let following = rule.next_match(at_ms);
            *next_ms = following.unwrap_or(at_ms);
            following.is_some()
        });
    }
    runs
}

/// One question about a job.
#[derive(Clone, Copy)]
struct StartCheck {
    method: StartMethod,
    since: Since,
    now_ms: i64,
}

impl StartCheck {
    /// The records that can start it.
    fn rules(self, schedules: &[Schedule]) -> Vec<ScheduleRule> {
        if self.method == StartMethod::Manual {
            return Vec::new();
        }
        schedules.iter().filter_map(|schedule| ScheduleRule::new(schedule).ok()).collect()
    }

    /// Whether a record counts what came before `last_ms`: one whose window may be
    /// entered in its middle does, unless a run has ended in that window.
    fn looks_back(self, rule: &ScheduleRule) -> bool {
        self.method == StartMethod::WindowInside && rule.window_ms.is_some()
    }

    /// The first instant up to now that a record names and whose window is not over.
    fn due(self, rule: &ScheduleRule) -> Option<i64> {
        let over_ms = rule.window_ms.map_or(i64::MIN, |it| self.now_ms.saturating_sub(it));
        let answered_ms = match self.looks_back(rule) {
            true if self.repeats(rule).is_some_and(|again_ms| again_ms <= self.now_ms) => i64::MIN,
            true => self.since.ran_ms.unwrap_or(i64::MIN),
            false => self.since.last_ms,
        };
        let after_ms = answered_ms.max(over_ms);
        rule.next_match(after_ms).filter(|at_ms| *at_ms <= self.now_ms)
    }

    /// When a record starts the job again in a window in which a run has ended.
    fn repeats(self, rule: &ScheduleRule) -> Option<i64> {
        Some(self.since.ran_ms?.saturating_add(rule.repeat_ms?))
    }

    /// The first instant after now at which a record that is not due becomes due.
    fn opens(self, rule: &ScheduleRule) -> Option<i64> {
        let known_ms = if self.looks_back(rule) { i64::MIN } else { self.since.last_ms };
        let opens_ms = rule.next_match(self.now_ms.max(known_ms));
        let again_ms = self.repeats(rule).filter(|again_ms| {
            let is_open = || StartCheck { now_ms: *again_ms, ..self }.due(rule).is_some();
            self.looks_back(rule) && *again_ms > self.now_ms && is_open()
        });
        opens_ms.into_iter().chain(again_ms).min()
    }
}
