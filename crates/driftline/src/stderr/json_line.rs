//! Lines of a log that programs read: each one JSON object.
//!
//! Invariant: a line has no control character and none that turns the direction of writing;
//! both are escapes in it, so that it reads the same wherever it is shown.

use crate::text::is_harmless;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;
use store::clock;

/// An event with its facts, without the end of the line.
pub fn event(level: &str, event: &str, facts: Map<String, Json>) -> String {
    let now = jiff::Timestamp::from_millisecond(clock::now_ms()).unwrap_or_default();
    let mut all = Map::new();
    all.insert("time".into(), json!(now.to_string()));
    all.insert("level".into(), json!(level));
    all.insert("event".into(), json!(event));
    all.extend(facts);
    escaped(&Json::Object(all).to_string())
}

/// An event that is a sentence.
pub fn message(level: &str, name: &str, words: &str) -> String {
    event(level, name, Map::from_iter([("message".to_owned(), json!(words))]))
}

/// JSON that says the same without characters that do harm where it is shown. These are in
/// texts only, and none is beyond four hexadecimal digits.
fn escaped(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        if is_harmless(c) {
            out.push(c);
        } else {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_log_gets_no_control_characters_and_no_marks_that_turn_the_direction() {
        let nasty = "a\u{1b}[2J\u{7f}\u{9b}b\u{202e}c\u{2066}\u{200f}\u{61c}\nd \\u202e é 🦀 \"x\"";
        let line = message("info", "work", nasty);
        assert!(line.chars().all(is_harmless), "{line}");
        assert!(
            line.contains("\\u202e") && line.contains("\\u009b") && line.contains("é 🦀"),
            "{line}"
        );
        let read: Json = serde_json::from_str(&line).unwrap();
        assert_eq!(read["message"], nasty, "and says the same");
    }
}
