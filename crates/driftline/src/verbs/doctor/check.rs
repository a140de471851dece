//! One finding of the doctor: how it stands, what was seen, and for what is not well,
//! why that matters and what to do.

use serde::{Deserialize, Serialize};

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// It works, but may not for long or not well.
    Warn,
    /// It does not work.
    Fail,
    /// It was not looked at.
    Skip,
}

impl CheckStatus {
    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            CheckStatus::Ok => "ok",
            CheckStatus::Warn => "warn",
            CheckStatus::Fail => "FAIL",
            CheckStatus::Skip => "skip",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at, in a word or two that never change.
    pub name: String,
    pub verdict: CheckStatus,
    pub what: String,
    pub why: Option<String>,
    pub next: Option<String>,
}

/// What goes with a finding that is not well.
#[derive(Clone, Copy)]
pub struct Advice<'a> {
    pub why: &'a str,
    pub next: &'a str,
}

/// A measure of something, and what it should be.
#[derive(Clone, Copy)]
pub struct Measure {
    pub found: u64,
    /// From here on it is well.
    pub well: u64,
    /// Below this it is a failure.
    pub least: u64,
}

impl Check {
    fn new(name: &str, verdict: CheckStatus, what: impl Into<String>) -> Check {
        Check { name: name.to_owned(), verdict, what: what.into(), why: None, next: None }
    }

    /// It is as it should be.
    pub fn ok(name: &str, what: impl Into<String>) -> Check {
        Check::new(name, CheckStatus::Ok, what)
    }

    /// It works, but; with why that matters and what to do.
    pub fn warn(name: &str, what: impl Into<String>, help: Advice<'_>) -> Check {
        Check::new(name, CheckStatus::Warn, what).help(help)
    }

    /// It does not work; with why that matters and what to do.
    pub fn fail(name: &str, what: impl Into<String>, help: Advice<'_>) -> Check {
        Check::new(name, CheckStatus::Fail, what).help(help)
    }

    /// It was not looked at; with what to do to have it looked at.
    pub fn skip(name: &str, what: impl Into<String>) -> Check {
        Check::new(name, CheckStatus::Skip, what)
    }

    /// By a measure: well from `well` on, a failure below `least`.
    pub fn at_least(
        name: &str,
        measure: Measure,
        what: impl Into<String>,
        help: Advice<'_>,
    ) -> Check {
        let Measure { found, well, least } = measure;
        match found {
            _ if found >= well => Check::ok(name, what),
            _ if found >= least => Check::warn(name, what, help),
            _ => Check::fail(name, what, help),
        }
    }

    fn help(self, help: Advice<'_>) -> Check {
        Check { why: Some(help.why.to_owned()), next: Some(help.next.to_owned()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_has_three_ranges() {
        let of = |found| {
            let measure = Measure { found, well: 10, least: 5 };
            Check::at_least("x", measure, "y", Advice { why: "w", next: "n" })
        };
        assert_eq!((of(10).verdict, of(10).why), (CheckStatus::Ok, None));
        assert_eq!((of(9).verdict, of(5).verdict), (CheckStatus::Warn, CheckStatus::Warn));
        assert_eq!((of(4).verdict, of(4).next), (CheckStatus::Fail, Some("n".to_owned())));
    }
}
