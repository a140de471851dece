//! How much a job may lose before somebody is asked.
//!
//! Pure. Written as `20% or 50`: so many of a hundred documents, or so many documents,
//! whichever is more; `off` is no limit.

use crate::tables::jobs::Job;
use std::fmt;

/// A share of what a job has, and a number that it may always lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalLimit {
    /// There is no limit.
    Off,
    /// So much, and no more.
    AtMost {
        /// Of a hundred documents.
        percent: i64,
        /// Documents that may always go.
        least: i64,
    },
}

impl RemovalLimit {
    /// How many documents may go, of so many.
    pub fn documents(self, of: i64) -> i64 {
        match self {
            RemovalLimit::Off => i64::MAX,
            RemovalLimit::AtMost { percent, least } => {
                let share = i128::from(of.max(0)) * i128::from(percent) / 100;
                i64::try_from(share).unwrap_or(i64::MAX).max(least)
            }
        }
    }

    /// Reads `20% or 50`, `20%` (with the usual number) or `off`.
    pub fn parse(text: &str, usual: RemovalLimit) -> Result<RemovalLimit, String> {
        let wrong = || {
            format!(
                "{text:?} is no limit for removals; write a share and a number of documents, \
                 such as {usual:?}, or off",
                usual = usual.to_string()
            )
        };
        if text.trim() == "off" {
            return Ok(RemovalLimit::Off);
        }
        let (share, least) = match text.split_once(" or ") {
            Some((share, least)) => (share, least.trim().parse().map_err(|_| wrong())?),
            None => (text, usual.least()),
        };
        let percent = share.trim().strip_suffix('%').ok_or_else(wrong)?.trim();
        let percent: i64 = percent.parse().map_err(|_| wrong())?;
        if !(0..=100).contains(&percent) || least < 0 {
            return Err(wrong());
        }
        Ok(RemovalLimit::AtMost { percent, least })
    }

    fn least(self) -> i64 {
        match self {
            RemovalLimit::Off => 0,
            RemovalLimit::AtMost { least, .. } => least,
        }
    }
}

impl fmt::Display for RemovalLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemovalLimit::Off => f.write_str("off"),
            RemovalLimit::AtMost { percent, least } => write!(f, "{percent}% or {least}"),
        }
    }
}

/// The two limits of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalLimits {
    /// What it may lose in a run, or a continuous one in a day, without an approval.
    pub all: RemovalLimit,
    /// How much of that goes at once, where the document itself was proof.
    pub proven: RemovalLimit,
}

impl RemovalLimits {
    /// Those of a job that says nothing.
    pub const USUAL: RemovalLimits = RemovalLimits {
        all: RemovalLimit::AtMost { percent: 20, least: 50 },
        proven: RemovalLimit::AtMost { percent: 2, least: 20 },
    };

    /// Those of a job. A text that cannot be read is the usual limit: it was checked when it
    /// was written.
    pub fn of(job: &Job) -> RemovalLimits {
        let read = |text: &Option<String>, usual| {
            let read = text.as_deref().map(|text| RemovalLimit::parse(text, usual));
            read.and_then(Result::ok).unwrap_or(usual)
        };
        RemovalLimits {
            all: read(&job.removal_limit, RemovalLimits::USUAL.all),
            proven: read(&job.proven_removal_limit, RemovalLimits::USUAL.proven),
        }
    }

    /// Documents that may go at once, of so many: never more than half of what may go at all,
    /// so that something is left for what has no proof.
    pub fn at_once(self, of: i64) -> i64 {
        self.proven.documents(of).min(self.all.documents(of) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_share_or_a_number_whichever_is_more() {
        let usual = RemovalLimits::USUAL;
        assert_eq!([0, 100, 250, 1_000].map(|of| usual.all.documents(of)), [50, 50, 50, 200]);
        assert_eq!([0, 999, 5_000].map(|of| usual.at_once(of)), [20, 20, 100]);
        let tight = RemovalLimit::parse("5% or 0", usual.all).unwrap();
        assert_eq!(tight.documents(100), 5);
        let limits = RemovalLimits { all: tight, ..usual };
        assert_eq!(limits.at_once(100), 2, "no more than half of the whole limit");
        assert_eq!(RemovalLimit::parse("off", usual.all).unwrap().documents(7), i64::MAX);
    }

    #[test]
    fn a_limit_is_written_as_it_is_read() {
        let usual = RemovalLimits::USUAL.all;
        for (text, written) in [("20% or 50", "20% or 50"), ("7 %", "7% or 50"), ("off", "off")] {
            assert_eq!(RemovalLimit::parse(text, usual).unwrap().to_string(), written);
        }
        for text in ["", "20", "101%", "-1%", "20% or -3", "20% and 5", "many"] {
            let refused = RemovalLimit::parse(text, usual).unwrap_err();
            assert!(refused.contains("20% or 50"), "{text}: {refused}");
        }
    }
}
