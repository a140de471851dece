//! Classes of identifiers and of results: what an expression finds in them.
//!
//! Invariant: an expression is bounded in size and matches in linear time.

use crate::refusal::OrRefused;
use anyhow::Context;
use regex::{Regex, RegexBuilder};

/// Bytes of a compiled expression.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// Compiles an expression that a flag gave.
pub fn expression(flag: &str, text: &str) -> anyhow::Result<Regex> {
    RegexBuilder::new(text)
        .size_limit(EXPRESSION_BYTES_MAX)
        .dfa_size_limit(EXPRESSION_BYTES_MAX)
        .build()
        .or_refused()
        .with_context(|| format!("{flag} {text:?} is not a valid regular expression"))
}

/// What tells classes apart.
#[derive(Debug, Default)]
pub struct Classes(Option<Regex>);

impl Classes {
    /// Without an expression all are of one class, whose name is empty.
    pub fn new(flag: &str, text: Option<&str>) -> anyhow::Result<Classes> {
        Ok(Classes(text.map(|text| expression(flag, text)).transpose()?))
    }

    /// Whether there is an expression.
    pub fn are_told_apart(&self) -> bool {
        self.0.is_some()
    }

    /// The class of a text: what the first group that took part has matched, or all of the
    /// match where there is no group. What does not match is of the class without a name.
    pub fn of<'t>(&self, text: &'t str) -> &'t str {
        let Some(expression) = &self.0 else { return "" };
        if expression.captures_len() == 1 {
            return expression.find(text).map_or("", |found| found.as_str());
        }
        let Some(found) = expression.captures(text) else { return "" };
        found.iter().skip(1).flatten().next().map_or("", |group| group.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_what_the_first_group_has_matched() {
        let class = |text: &str| Classes::new("--class", Some(text)).unwrap();
        let url = "http://a.example/docs/7";
        assert_eq!(class("^https?://([^/]+)").of(url), "a.example");
        assert_eq!(class("docs|blog").of(url), "docs");
        assert_eq!(class("(blog)|(docs)").of(url), "docs");
        assert_eq!(class("^ftp:(.*)").of(url), "");
        assert_eq!(Classes::default().of(url), "");
        assert_eq!(class("(?i)A\\.EXAMPLE").of(url), "a.example");
    }

    #[test]
    fn an_expression_that_is_broken_or_too_large_is_refused() {
        for text in ["(", "(a{1000}){1000}"] {
            let error = Classes::new("--class", Some(text)).unwrap_err();
            assert!(error.to_string().contains("--class"), "{error}");
        }
    }

    #[test]
    fn an_expression_that_takes_others_for_ever_is_matched() {
        // An engine that goes back on its steps has two to the power of 3,000 of them to take.
        let nested = Classes::new("--class", Some("^(a+)+$")).unwrap();
        let (long, other) = ("a".repeat(3_000), format!("{}b", "a".repeat(3_000)));
        assert_eq!((nested.of(&other), nested.of(&long)), ("", long.as_str()));
    }
}
