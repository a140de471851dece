//! A job's fetches, spent where changes are.
//!
//! A look has a price, the same for all documents: the least gain in freshness that is worth
//! a fetch. Where each document is looked at when it is worth just that, no fetch could be
//! moved to another document and gain (Cho and Garcia-Molina, "Effective page refresh
//! policies for web crawlers", 2003; Azar and others, "Tractable near-optimal policies for
//! crawling", 2018). What is left is to find the price at which the fetches last, and it is
//! found as looks are handed out: if all documents get their next look after a round on the
//! average, which is the time that the fetches of N documents take, the fetches suffice.
//! What was really spent corrects it.
//!
//! The same state learns the prior of the job: what share of documents had changed when they
//! were looked at for the second time. Everything is counted in rounds, so that each of
//! several processes can keep its own for the documents it holds, and one can go on with
//! what another saved. Invariants: a few numbers whatever the size of the job; an allowance
//! that was saved and restored gives the same times; no number is ever infinite.

use super::estimate::{Belief, Prior};
use super::{Action, ChangeHistory, Next};

const DAY_MS: f64 = 86_400_000.0;
/// How wide rates of change are spread, as the shape of a Gamma distribution: most documents
/// change far less often than the mean.
const SPREAD: f64 = 0.5;
/// How far one round of looks over all documents may move the logarithm of the price, if
/// each is planned for twice the time there is.
const GAIN: f64 = 4.0;
/// The most by which one look moves it.
const STEP_MAX: f64 = 0.1;
/// A price beyond this is above or below any gain: a bound that keeps numbers finite.
const PRICE_LN_MAX: f64 = 60.0;
/// Fetches too many or too few that are remembered, in rounds.
const ROUNDS_MAX: f64 = 2.0;
/// Second looks that are supposed before there are any, and how many found a change.
const SUPPOSED: (f64, f64) = (8.0, 2.0);
/// Second looks that are remembered: old ones give way to new ones after so many.
const SECONDS_MAX: f64 = 10_000.0;
/// The share of second looks that found a change is never taken for none, or for all.
const SHARE_MIN: f64 = 0.001;
/// Rounds for which a document that changes too fast to be followed is left alone.
const REST_ROUNDS: f64 = 4.0;
/// The saved text's version.
const VERSION: &str = "1";

/// Fetches a day for so many documents, and the price that makes them last.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    /// The time in which the fetches suffice for all documents once.
    round_ms: f64,
    /// Those that are looked at here.
    documents: f64,
    price_ln: f64,
    /// Rounds spent beyond what was there until `last_ms`.
    debt: f64,
    last_ms: Option<i64>,
    /// Second looks at documents: how many, how many found a change, after how long.
    seconds: f64,
    seconds_changed: f64,
    seconds_ms: f64,
}

impl Allowance {
    /// An allowance of which nothing is spent, for a job with so many documents.
    pub fn new(fetches_per_day: i64, documents: i64) -> Allowance {
        let round_ms = documents.max(1) as f64 / fetches_per_day.max(1) as f64 * DAY_MS;
        let mut allowance = Allowance {
            round_ms,
            documents: documents.max(1) as f64,
            price_ln: 0.0,
            debt: 0.0,
            last_ms: None,
            seconds: SUPPOSED.0,
            seconds_changed: SUPPOSED.1,
            seconds_ms: SUPPOSED.0 * round_ms,
        };
        let Prior { shape, time_ms } = allowance.prior();
        let unknown = Belief { shape, time_ms };
        allowance.price_ln = unknown.worth_ms(round_ms).max(f64::MIN_POSITIVE).ln();
        allowance
    }

    /// The allowance that [`Allowance::save`] wrote, for what the job has and may spend now.
    /// A text that it did not write is as none.
    pub fn restore(text: &str, fetches_per_day: i64, documents: i64) -> Allowance {
        let fresh = Allowance::new(fetches_per_day, documents);
        fresh.clone().read(text).unwrap_or(fresh)
    }

    /// A short line from which it can be restored.
    pub fn save(&self) -> String {
        let last = self.last_ms.map_or("-".to_owned(), |last_ms| last_ms.to_string());
        let Allowance { price_ln, debt, seconds, seconds_changed, seconds_ms, .. } = self;
        format!("{VERSION} {price_ln} {debt} {last} {seconds} {seconds_changed} {seconds_ms}")
    }

    fn read(mut self, text: &str) -> Option<Allowance> {
        let words: Vec<&str> = text.split(' ').collect();
        let [VERSION, price, debt, last, seconds, changed, time] = words[..] else { return None };
        let number = |word: &str, least: f64, most: f64| {
            word.parse::<f64>().ok().filter(|number| (least..=most).contains(number))
        };
        self.price_ln = number(price, -PRICE_LN_MAX, PRICE_LN_MAX)?;
        self.debt = number(debt, -ROUNDS_MAX, ROUNDS_MAX)?;
        self.last_ms = if last == "-" { None } else { Some(last.parse().ok()?) };
        self.seconds = number(seconds, 1.0, SECONDS_MAX + 1.0)?;
        self.seconds_changed = number(changed, 0.0, self.seconds)?;
        self.seconds_ms = number(time, 1.0, f64::MAX)?;
        Some(self)
    }

    /// Takes in what the job may spend and has now, and how many of its documents are looked
    /// at here. What was learned stays.
    pub fn resize(&mut self, fetches_per_day: i64, documents: i64, here: i64) {
        self.round_ms = documents.max(1) as f64 / fetches_per_day.max(1) as f64 * DAY_MS;
        self.documents = here.max(1) as f64;
    }

    /// Takes in that a document was looked at, and when it will be again. The first look at
    /// a document is not paid for: the allowance is for looking again.
    pub fn spend(&mut self, known: &ChangeHistory, next: &Next, now_ms: i64) {
        if next.action == Action::Fetch {
            let rounds = next.at_ms.map_or(f64::INFINITY, |at_ms| {
                at_ms.saturating_sub(now_ms).max(0) as f64 / self.round_ms
            });
            let step = (GAIN / self.documents * (1.0 - rounds)).clamp(-STEP_MAX, STEP_MAX);
            self.price_ln = (self.price_ln + step).clamp(-PRICE_LN_MAX, PRICE_LN_MAX);
        }
        let last_ms = self.last_ms.unwrap_or(now_ms);
        let earned = now_ms.saturating_sub(last_ms).max(0) as f64 / self.round_ms;
        let spent = if known.checks > 1 { 1.0 / self.documents } else { 0.0 };
        self.debt = (self.debt + spent - earned).clamp(-ROUNDS_MAX, ROUNDS_MAX);
        self.last_ms = Some(last_ms.max(now_ms));
        if known.checks == 2 {
            self.learn(known);
        }
    }

    /// What is believed of a document before it is watched.
    pub(super) fn prior(&self) -> Prior {
        // The share that had changed, and the time after which, give the one unknown of the
        // mean over all documents: 1 - (time / (time + after))^shape.
        let after_ms = self.seconds_ms / self.seconds;
        let changed = (self.seconds_changed / self.seconds).clamp(SHARE_MIN, 1.0 - SHARE_MIN);
        let time_ms = after_ms / (-(-changed).ln_1p() / SPREAD).exp_m1();
        Prior { shape: SPREAD, time_ms: time_ms.max(1.0) }
    }

    /// The least gain in time for which a look is worth while. What was spent too much makes
    /// it dearer, until it is saved again.
    pub(super) fn price_ms(&self) -> f64 {
        (self.price_ln + self.debt).exp()
    }

    /// The most time for which a document is left as it surely is not any more.
    pub(super) fn rest_ms(&self) -> f64 {
        REST_ROUNDS * self.round_ms
    }

    fn learn(&mut self, known: &ChangeHistory) {
        let watched_ms = known.quiet_ms.max(0).saturating_add(known.restless_ms.max(0));
        if watched_ms == 0 {
            return;
        }
        if self.seconds >= SECONDS_MAX {
            let keep = 1.0 - 1.0 / SECONDS_MAX;
            self.seconds *= keep;
            self.seconds_changed *= keep;
            self.seconds_ms *= keep;
        }
        self.seconds += 1.0;
        self.seconds_changed += if known.changes > 0 { 1.0 } else { 0.0 };
        self.seconds_ms += watched_ms as f64;
    }
}
