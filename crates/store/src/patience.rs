//! How often and for how long something that fails is tried again: documents, decisions
//! for outputs, jobs themselves.
//!
//! Pure. The first failure of a row says when trying ends; each further one takes a try
//! and doubles the wait. Invariant: whatever is stored, trying ends, unless whoever asks
//! goes on although it [`Again::is_over`].

/// The longest wait before another try, where no longer one is asked for.
const WAIT_MS_MAX: i64 = 3_600_000;

/// How a job deals with what fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often something is tried again.
    pub retries: i64,
    /// The wait before the first such try; it doubles with each.
    pub retry_ms: i64,
    /// How long it is tried at most.
    pub most_ms: i64,
}

/// When to try again, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Again {
    pub check_ms: i64,
    /// Tries that are left after it.
    pub failcount: i64,
    /// After this time it is given up.
    pub failtime: i64,
    /// No tries are left, or the next would come too late.
    pub is_over: bool,
}

impl Patience {
    /// The longest wait before any of its tries.
    pub fn wait_max_ms(self) -> i64 {
        let doublings = u32::try_from(self.retries - 1).unwrap_or(0).min(20);
        let wait_ms = self.retry_ms.saturating_mul(1 << doublings);
        wait_ms.clamp(1, self.retry_ms.max(WAIT_MS_MAX))
    }

    /// What follows from a failure; `failcount` and `failtime` are what is stored of those
    /// before it: tries that are left, and when trying ends.
    pub fn again(self, failcount: Option<i64>, failtime: Option<i64>, now_ms: i64) -> Again {
        let left = failcount.unwrap_or(self.retries).min(self.retries);
        let ends_ms = failtime.unwrap_or(now_ms.saturating_add(self.most_ms));
        let tried = u32::try_from(self.retries - left).unwrap_or(0).min(20);
        let wait_ms = self.retry_ms.saturating_mul(1 << tried);
        let wait_ms = wait_ms.clamp(1, self.retry_ms.max(WAIT_MS_MAX));
        let check_ms = now_ms.saturating_add(wait_ms);
        // What fails for the first time is tried again, however short the patience is.
        let is_late = failtime.is_some_and(|ms| check_ms > ms);
        let is_over = left <= 0 || is_late;
        Again { check_ms, failcount: (left - 1).max(0), failtime: ends_ms, is_over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of the tries after failures in a row, until it is over.
    fn times(patience: Patience) -> Vec<i64> {
        let (mut failing, mut now_ms, mut times) = ((None, None), 100, Vec::new());
        loop {
            let (failcount, failtime) = failing;
            let again = patience.again(failcount, failtime, now_ms);
            if again.is_over {
                return times;
            }
            times.push(again.check_ms);
            failing = (Some(again.failcount), Some(again.failtime));
            now_ms = again.check_ms;
        }
    }

    #[test]
    fn trying_ends_by_count_or_by_time_and_waits_double() {
        let patience = Patience { retries: 3, retry_ms: 10, most_ms: 1_000 };
        assert_eq!(times(patience), [110, 130, 170]);
        assert_eq!(times(Patience { retries: 99, most_ms: 100, ..patience }), [110, 130, 170]);
        assert_eq!(times(Patience { most_ms: 9, ..patience }), [110]);
        assert!(times(Patience { retries: 0, ..patience }).is_empty());
    }

    #[test]
    fn odd_settings_and_rows_are_borne() {
        let long = Patience { retries: 100, retry_ms: 2 * WAIT_MS_MAX, most_ms: i64::MAX };
        assert_eq!(long.again(Some(90), None, 0).check_ms, 2 * WAIT_MS_MAX, "as it was asked for");
        let short = Patience { retry_ms: 1_000, ..long };
        assert_eq!(short.again(Some(50), None, 0).check_ms, WAIT_MS_MAX);
        let fewer = Patience { retries: 1, ..short };
        assert_eq!(fewer.again(Some(50), None, 0).failcount, 0, "fewer tries count at once");
        assert!(fewer.again(Some(-3), Some(i64::MIN), i64::MAX).is_over);
        assert_eq!(Patience { retry_ms: 0, ..fewer }.again(None, None, 5).check_ms, 6);
    }
}
