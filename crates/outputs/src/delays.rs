//! How long it took from commits until a consumer had them, counted.
//!
//! Invariant: its size is fixed, whatever is counted; what it says of a rank is at most a
//! quarter more than the truth, and never less.

/// Steps between a power of two and the next.
const STEPS: u32 = 4;
/// Counters: the last one is for everything from nine hours on.
const COUNTERS: usize = 100;

/// Delays, counted by their size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delays {
    counts: [u64; COUNTERS],
    longest_ms: u64,
}

impl Default for Delays {
    fn default() -> Delays {
        Delays { counts: [0; COUNTERS], longest_ms: 0 }
    }
}

impl Delays {
    /// Counts one. A clock that was put back makes none.
    pub fn count(&mut self, ms: i64) {
        let ms = u64::try_from(ms).unwrap_or(0);
        self.counts[counter(ms)] += 1;
        self.longest_ms = self.longest_ms.max(ms);
    }

    /// How many there are.
    pub fn counted(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest delay since the start, in milliseconds.
    pub fn longest_ms(&self) -> u64 {
        self.longest_ms
    }

    /// What so many of a hundred were not longer than.
    pub fn percentile_ms(&self, percent: u64) -> u64 {
        let rank = (self.counted() * percent).div_ceil(100);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return ends_ms(at).min(self.longest_ms);
            }
        }
        self.longest_ms
    }
}

fn counter(ms: u64) -> usize {
    let Some(power) = ms.checked_ilog2().filter(|_| ms >= u64::from(STEPS)) else {
        return usize::try_from(ms).unwrap_or(0);
    };
    let within = (ms >> (power - 2)) & 3;
    let at = u64::from((power - 1) * STEPS) + within;
    usize::try_from(at).map_or(COUNTERS - 1, |at| at.min(COUNTERS - 1))
}

/// The longest delay of a counter.
fn ends_ms(at: usize) -> u64 {
    let at = at as u64;
    if at < u64::from(STEPS) {
        return at;
    }
    let (power, within) = (at / 4 + 1, at % 4);
    ((within + 5) << (power - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delay_has_a_counter_that_says_little_more_than_the_truth() {
        for ms in (0..5_000).chain((5_000..30_000_000).step_by(997)) {
            let said = ends_ms(counter(ms));
            assert!(said >= ms && said - ms <= ms / 4, "{ms} is said to be {said}");
        }
    }

    #[test]
    fn ranks_are_those_of_what_was_counted() {
        let mut delays = Delays::default();
        assert_eq!((delays.percentile_ms(99), delays.counted()), (0, 0));
        (1..=1_000).for_each(|ms| delays.count(ms));
        delays.count(-5);
        assert_eq!((delays.counted(), delays.longest_ms()), (1_001, 1_000));
        assert!((500..=600).contains(&delays.percentile_ms(50)), "{}", delays.percentile_ms(50));
        assert!((990..=1_000).contains(&delays.percentile_ms(99)));
        delays.count(i64::MAX);
        assert_eq!(delays.longest_ms(), i64::MAX.unsigned_abs());
    }
}
