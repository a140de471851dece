//! Pieces of rules that are checked as they are read: URLs, patterns, selectors.

use std::fmt;

use lol_html::Selector;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

/// Bytes that one compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// Bytes of a selector as it is written.
const SELECTOR_BYTES_MAX: usize = 4_096;

/// A whole URL.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Address(String);

impl Address {
    /// It as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Address, String> {
        match Url::parse(&text) {
            Ok(url) if !url.cannot_be_a_base() => Ok(Address(text)),
            _ => Err(format!("{text:?} is not a whole URL")),
        }
    }
}

/// A regular expression over URLs.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// Whether it is found in a URL.
    pub fn is_match(&self, url: &str) -> bool {
        self.0.is_match(url)
    }

    /// It as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Pattern, String> {
        let built = RegexBuilder::new(&text).size_limit(PATTERN_BYTES_MAX).build();
        built.map(Pattern).map_err(|error| format!("{text:?} is not a pattern: {error}"))
    }
}

/// A CSS selector.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Css {
    text: String,
    selector: Selector,
}

impl Css {
    /// It as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(in crate::mirror) fn selector(&self) -> &Selector {
        &self.selector
    }
}

impl TryFrom<String> for Css {
    type Error = String;

    fn try_from(text: String) -> Result<Css, String> {
        if text.len() > SELECTOR_BYTES_MAX {
            return Err(format!("a selector of more than {SELECTOR_BYTES_MAX} bytes"));
        }
        match text.parse() {
            Ok(selector) => Ok(Css { text, selector }),
            Err(error) => Err(format!("{text:?} is not a selector that can be used here: {error}")),
        }
    }
}

impl fmt::Debug for Css {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for Css {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
