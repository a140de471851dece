//! What came of the last look at a document, in a word.

use crate::names::names;

/// The outcomes that the program compares. A document may also have the code of what excluded
/// it ([`ReasonCode`](crate::tables::queue::ReasonCode)), of why it was removed, or of what went
/// wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookOutcome {
    /// It was read.
    Ok,
    /// It is as it was.
    NotModified,
    /// It is elsewhere now.
    Redirect,
    /// It is missing.
    Gone,
}

names!(LookOutcome of "the outcome of a document" {
    Ok = "ok",
    NotModified = "not modified",
    Redirect = "redirect",
    Gone = "gone",
});
