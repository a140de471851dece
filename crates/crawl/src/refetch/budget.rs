//! A job's fetches, spent where changes are.
//!
//! A look has a price, the same for all documents: the least gain in freshness that is worth
//! a fetch. Where each document is looked at when it is worth just that, no fetch could be
//! moved to another document and gain (Cho and Garcia-Molina, "Effective page refresh
//! policies for web crawlers", 2003; Azar and others, "Tractable near-optimal policies for
//! crawling", 2018). What is left is to find the price at which the fetches last, and it is
//! found as looks are handed out: if all documents get their next look after N / B days on
//! the average, N documents need B fetches a day. What was really spent corrects it.
//!
//! The same state learns the prior of the job: what share of documents had changed when they
//! were looked at for the second time. Invariants: a few numbers whatever the size of the
//! job; a budget that was saved and restored gives the same times; no number is ever
//! infinite.

use super::estimate::{Belief, Prior};
use super::{Action, Known, Next};

const DAY_MS: f64 = 86_400_000.0;
/// How wide rates of change are spread, as the shape of a Gamma distribution: most documents
/// change far less often than the mean.
const SPREAD: f64 = 0.5;
/// How far one round of looks over all documents may move the logarithm of the price, if
/// each is planned for twice the time there is.
const GAIN: f64 = 4.0;
/// The most by which one look moves it.
const STEP_MAX: f64 = 0.1;
/// Fetches too many or too few that are remembered, in rounds over all documents.
const ROUNDS_MAX: f64 = 2.0;
/// Second looks that are supposed before there are any, and how many found a change.
const SUPPOSED: (f64, f64) = (8.0, 2.0);
/// Second looks that are remembered: old ones give way to new ones after so many.
const SECONDS_MAX: f64 = 10_000.0;
/// Rounds for which a document that changes too fast to be followed is left alone.
const REST_ROUNDS: f64 = 4.0;
/// The saved text's version.
const VERSION: &str = "1";

/// Fetches a day for so many documents, and the price that makes them last.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    fetches_per_day: f64,
    documents: f64,
    price_ln: f64,
    /// Fetches spent beyond what was there until `last_ms`.
    debt: f64,
    last_ms: Option<i64>,
    /// Second looks at documents: how many, how many found a change, after how long.
    seconds: f64,
    seconds_changed: f64,
    seconds_ms: f64,
}

impl Budget {
    /// A budget of which nothing is spent.
    pub fn new(fetches_per_day: i64, documents: i64) -> Budget {
        let (fetches_per_day, documents) =
            (fetches_per_day.max(1) as f64, documents.max(1) as f64);
        let round_ms = documents / fetches_per_day * DAY_MS;
        let mut budget = Budget {
            fetches_per_day,
            documents,
            price_ln: 0.0,
            debt: 0.0,
            last_ms: None,
            seconds: SUPPOSED.0,
            seconds_changed: SUPPOSED.1,
            seconds_ms: SUPPOSED.0 * round_ms,
        };
        let prior = budget.prior();
        let unknown = Belief { shape: prior.shape, time_ms: prior.time_ms };
        budget.price_ln = unknown.worth_ms(round_ms).max(f64::MIN_POSITIVE).ln();
        budget
    }

    /// The budget that [`Budget::save`] wrote, for what the job has and may spend now. A
    /// text that it did not write is as none.
    pub fn restore(text: &str, fetches_per_day: i64, documents: i64) -> Budget {
        let fresh = Budget::new(fetches_per_day, documents);
        fresh.clone().read(text).unwrap_or(fresh)
    }

    /// A short line from which the budget can be restored.
    pub fn save(&self) -> String {
        let last = self.last_ms.map_or("-".to_owned(), |last_ms| last_ms.to_string());
        let Budget { price_ln, debt, seconds, seconds_changed, seconds_ms, .. } = self;
        format!("{VERSION} {price_ln} {debt} {last} {seconds} {seconds_changed} {seconds_ms}")
    }

    fn read(mut self, text: &str) -> Option<Budget> {
        let words: Vec<&str> = text.split(' ').collect();
        let [VERSION, price, debt, last, seconds, changed, time] = words[..] else { return None };
        let number = |word: &str| word.parse::<f64>().ok().filter(|number| number.is_finite());
        self.price_ln = number(price)?.clamp(-PRICE_LN_MAX, PRICE_LN_MAX);
        self.debt = number(debt)?;
        self.last_ms = if last == "-" { None } else { Some(last.parse().ok()?) };
        self.seconds = number(seconds).filter(|seconds| *seconds >= 1.0)?;
        self.seconds_changed = number(changed).filter(|changed| (0.0..=self.seconds).contains(changed))?;
        self.seconds_ms = number(time).filter(|time| *time >= 1.0)?;
        Some(self)
    }

    /// Takes in how many documents there are now.
    pub fn set_documents(&mut self, documents: i64) {
        self.documents = documents.max(1) as f64;
    }

    /// Takes in that a document was looked at, and when it will be again. The first look at
    /// a document is not paid for: the budget is for looking again.
    pub fn spend(&mut self, known: &Known, next: &Next, now_ms: i64) {
        let rounds_per_ms = self.fetches_per_day / self.documents / DAY_MS;
        if next.action == Action::Fetch {
            let rounds = next.at_ms.map_or(f64::INFINITY, |at_ms| {
                at_ms.saturating_sub(now_ms).max(0) as f64 * rounds_per_ms
            });
            let step = GAIN / self.documents * (1.0 - rounds);
            self.price_ln += step.clamp(-STEP_MAX, STEP_MAX);
            self.price_ln = self.price_ln.clamp(-PRICE_LN_MAX, PRICE_LN_MAX);
        }
        if known.checks < 2 {
            return;
        }
        let since_ms = now_ms.saturating_sub(self.last_ms.unwrap_or(now_ms)).max(0) as f64;
        self.last_ms = Some(self.last_ms.unwrap_or(now_ms).max(now_ms));
        let most = ROUNDS_MAX * self.documents;
        self.debt = (self.debt + 1.0 - since_ms / DAY_MS * self.fetches_per_day).clamp(-most, most);
        if known.checks == 2 {
            self.learn(known);
        }
    }

    /// What is believed of a document before it is watched.
    pub(super) fn prior(&self) -> Prior {
        // The share that had changed, and the time after which, give the one unknown of the
        // mean over all documents: 1 - (time / (time + after))^shape.
        let after_ms = self.seconds_ms / self.seconds;
        let changed = (self.seconds_changed / self.seconds).clamp(0.001, 0.999);
        let time_ms = after_ms / (-(-changed).ln_1p() / SPREAD).exp_m1();
        Prior { shape: SPREAD, time_ms: time_ms.max(1.0) }
    }

    /// The least gain in time for which a look is worth while. What was spent too much makes
    /// it dearer, until it is saved again.
    pub(super) fn price_ms(&self) -> f64 {
        (self.price_ln + self.debt / self.documents).exp()
    }

    /// The most time for which a document is left as it surely is not any more.
    pub(super) fn rest_ms(&self) -> f64 {
        REST_ROUNDS * self.documents / self.fetches_per_day * DAY_MS
    }

    fn learn(&mut self, known: &Known) {
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
        self.seconds_changed += f64::from(u8::from(known.changes > 0));
        self.seconds_ms += watched_ms as f64;
    }
}

/// A price beyond this is above or below any gain: a bound that keeps numbers finite.
const PRICE_LN_MAX: f64 = 60.0;
