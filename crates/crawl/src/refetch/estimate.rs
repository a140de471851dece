//! What is believed of how often a document changes, and what follows for a look at it.
//!
//! Changes are taken for a Poisson process. A look tells only *whether* there was a change
//! since the look before, so counting changes underrates what changes often (Cho and
//! Garcia-Molina, "Estimating frequency of change", 2003). Their estimator for irregular
//! looks is the rate at which the changes in the restless gaps and the silence of the
//! quiet ones are most likely; here it has a prior, so that it is also right, and says how
//! sure it is, for a document that was hardly looked at. The belief is a Gamma
//! distribution around that rate, as wide as the likelihood is there.
//!
//! Invariants: everything is finite and positive for any row; more quiet time never makes
//! a document believed to be faster.

use super::ChangeHistory;

/// Halvings of an interval of a logarithm: to less than a millisecond in a year.
const HALVINGS: u32 = 40;
/// Below this share of its time scale a worth is too small to subtract for.
const TINY: f64 = 1e-6;
/// Times at which a worth is looked for: longer than any job runs.
const TIME_MAX_MS: f64 = 1e15;

/// What is believed of a document before it is watched: as if it had changed `shape`
/// times in `time_ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    pub shape: f64,
    pub time_ms: f64,
}

impl Prior {
    /// One change in the least interval. An unchanging document then waits as long as it
    /// was watched, and the interval: what ManifoldCF's formula gives it.
    pub fn of_interval(min_ms: i64) -> Prior {
        Prior { shape: 1.0, time_ms: (min_ms as f64).max(1.0) }
    }
}

/// A Gamma distribution over the rate of change; its mean is `shape / time_ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Belief {
    pub shape: f64,
    pub time_ms: f64,
}

impl Belief {
    /// What the prior becomes by what was watched.
    pub fn of(known: &ChangeHistory, prior: Prior) -> Belief {
        let changes = known.changes.max(0) as f64;
        let (quiet_ms, restless_ms) = times(known);
        let silence_ms = prior.time_ms + quiet_ms;
        let gap_ms = if changes > 0.0 { restless_ms / changes } else { 0.0 };
        // The likeliest rate solves shape/rate + changes * gap/(e^(rate * gap) - 1) = silence.
        // The left side falls with the rate, and the root lies between these two.
        let (mut low, mut high) =
            ((prior.shape / silence_ms).ln(), ((prior.shape + changes) / silence_ms).ln());
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            let rate = middle.exp();
            let told = (prior.shape + changes * first_share(rate * gap_ms)) / rate;
            if told > silence_ms {
                low = middle;
            } else {
                high = middle;
            }
        }
        let rate = f64::midpoint(low, high).exp();
        let shape = prior.shape + changes * sureness(rate * gap_ms);
        Belief { shape, time_ms: shape / rate }
    }

    /// The time in which a change has come with this chance.
    pub fn likely_ms(&self, chance: f64) -> f64 {
        let quiet = 1.0 - chance;
        self.time_ms * (-quiet.ln() / self.shape).exp_m1()
    }

    /// What a look after this time is worth: the time by which the copy will be current
    /// for longer, for one look more, if it is always looked at after such a time.
    ///
    /// For a known rate r it is (1 - (1 + r t) e^(-r t)) / r, the derivative of freshness by
    /// the frequency of looks; here its mean over the belief. It rises with the time, up
    /// to the mean of 1/r.
    pub fn worth_ms(&self, after_ms: f64) -> f64 {
        let share = after_ms / self.time_ms;
        if share < TINY {
            return 0.5 * self.shape * share * after_ms;
        }
        let log = share.ln_1p();
        let more = self.shape - 1.0;
        let gained = if more.abs() < TINY { log } else { -(-more * log).exp_m1() / more };
        self.time_ms * (gained - share * (-self.shape * log).exp())
    }

    /// The time after which a look is worth its price; `None` if it never is, because the
    /// document changes again too soon.
    pub fn worthwhile_ms(&self, price_ms: f64) -> Option<f64> {
        if self.worth_ms(TIME_MAX_MS) < price_ms {
            return None;
        }
        let (mut low, mut high) = (0.0, TIME_MAX_MS.ln());
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.worth_ms(middle.exp()) < price_ms {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high.exp())
    }
}

/// Time watched. A row that nobody has filled tells at least how long it is known.
fn times(known: &ChangeHistory) -> (f64, f64) {
    let (quiet_ms, restless_ms) = (known.quiet_ms.max(0), known.restless_ms.max(0));
    if quiet_ms == 0 && restless_ms == 0 {
        return (known.checked_ms.saturating_sub(known.first_ms).max(0) as f64, 0.0);
    }
    (quiet_ms as f64, restless_ms as f64)
}

/// x / (e^x - 1): 1 for a gap in which at most one change fits, 0 for a long one.
fn first_share(x: f64) -> f64 {
    if x < TINY { 1.0 - x / 2.0 } else { x / x.exp_m1() }
}

/// How much a change in a gap of x mean times tells, of one that was seen to happen.
fn sureness(x: f64) -> f64 {
    let share = first_share(x);
    // x^2 e^x / (e^x - 1)^2 without the overflow of e^x.
    if x < TINY { 1.0 } else { share * (share + x) }
}
