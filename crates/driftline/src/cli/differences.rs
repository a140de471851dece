//! Differences between an index and what it was made from, as `verify` finds them: printed one
//! by one for people, collected for programs.
//!
//! Invariant: no more than [`SHOWN_MAX`] are printed or kept; whoever compares counts them all.

use crate::cli::say;
use crate::text::shown;

/// Differences that are shown one by one.
const SHOWN_MAX: usize = 1_000;

/// The differences of one comparison.
pub struct Differences {
    is_json: bool,
    count: usize,
    named: Vec<String>,
}

impl Differences {
    /// None yet; with `is_json` they are collected, otherwise printed.
    pub fn new(is_json: bool) -> Differences {
        Differences { is_json, count: 0, named: Vec::new() }
    }

    /// Counts a difference and prints or collects it; beyond `SHOWN_MAX` it is only counted.
    pub fn push(&mut self, difference: &str) {
        self.count += 1;
        match self.is_json {
            true if self.count <= SHOWN_MAX => self.named.push(difference.to_owned()),
            false if self.count <= SHOWN_MAX => say(&shown(difference)),
            _ => {}
        }
    }

    /// Those that were collected.
    pub fn into_named(self) -> Vec<String> {
        self.named
    }
}
