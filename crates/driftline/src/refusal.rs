//! Refusals: what was asked cannot be done as it was asked, and the text says what to change.
//!
//! Verbs are answered for the command line, for a socket and over HTTP. Whoever asked reads
//! the text of a refusal; every other error is ours, and over HTTP only the log has it
//! ([`crate::http::problem`]). Invariant: a refusal is made where the request is judged, by
//! what is in this file, as [`store::Error::Refused`]; nobody guesses from a text what it is.

use std::fmt::Display;
use store::Error;

/// A refusal with this text.
pub fn refusal(why: impl Display) -> Error {
    Error::Refused(why.to_string())
}

/// The text of a refusal, with what it is about; `None` if the error is something else.
pub fn message(error: &anyhow::Error) -> Option<String> {
    let found = error.chain().find_map(|it| it.downcast_ref::<Error>());
    matches!(found, Some(Error::Refused(_))).then(|| format!("{error:#}"))
}

/// Ends a function with a refusal, as `anyhow::bail!` does with an error that is ours.
macro_rules! refuse {
    ($($why:tt)*) => {
        return Err($crate::refusal::refusal(format!($($why)*)).into())
    };
}
pub(crate) use refuse;

/// Refuses unless something holds, as `anyhow::ensure!` does with an error that is ours.
macro_rules! require {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            $crate::refusal::refuse!($($why)*);
        }
    };
}
pub(crate) use require;

/// What must be there, or can be used, if the request is a good one.
pub trait OrRefuse<T> {
    /// The value, or a refusal with this text.
    fn or_refuse<W: Display>(self, why: impl FnOnce() -> W) -> store::Result<T>;
}

impl<T> OrRefuse<T> for Option<T> {
    fn or_refuse<W: Display>(self, why: impl FnOnce() -> W) -> store::Result<T> {
        self.ok_or_else(|| refusal(why()))
    }
}

/// What judged the request, and says in its error what is wrong with that.
pub trait OrRefused<T> {
    /// The value, or the error as a refusal.
    fn or_refused(self) -> store::Result<T>;
}

impl<T, E: Display> OrRefused<T> for Result<T, E> {
    fn or_refused(self) -> store::Result<T> {
        self.map_err(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn even(number: i64) -> anyhow::Result<i64> {
        require!(number % 2 == 0, "{number} is odd");
        Ok(number / 2)
    }

    #[test]
    fn a_refusal_is_told_with_what_it_is_about_and_an_error_of_ours_is_not() {
        assert_eq!(even(4).unwrap(), 2);
        let refused = even(3).context("halving").unwrap_err();
        assert_eq!(message(&refused).as_deref(), Some("halving: 3 is odd"));
        let missing = None::<i64>.or_refuse(|| "there is none").unwrap_err();
        assert_eq!(message(&missing.into()).as_deref(), Some("there is none"));
        let judged = "x".parse::<i64>().or_refused().context("--limit").unwrap_err();
        assert_eq!(message(&judged).as_deref(), Some("--limit: invalid digit found in string"));
        assert_eq!(message(&anyhow::anyhow!("a bug")), None);
        let stored = anyhow::Error::new(Error::corrupt("it", "broken")).context("reading");
        assert_eq!(message(&stored), None);
    }
}
