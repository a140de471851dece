//! What differs from run to run, taken out of what the program printed.
//!
//! Invariant: a text keeps its columns. What stands in for a value is as wide as the value, or
//! as the value with the blanks that pad it.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// A moment by the calendar.
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b20\d\d-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?").unwrap()
});
/// A moment beside now, with the blanks that pad it.
static AGO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:just now|\d+ (?:ms|s|min|h) ago|\bin \d+ (?:s|min|h|days))( *)").unwrap()
});
/// A span that was measured.
static TOOK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(after|in|takes) \d+(?:\.\d+)? (?:ms|s|min)\b").unwrap());
static CURSOR: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"--cursor \S+").unwrap());
/// An id: of a chunk, of a job.
static ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\d{11,}\b").unwrap());
/// Numbers in JSON from here on are ids, or moments in milliseconds.
const IDS_FROM: i64 = 1_000_000_000;

/// What is not the same in every run on some screens only.
#[derive(Clone, Copy, Default)]
pub struct Varying {
    /// Expressions, and what stands in for what they match.
    pub texts: &'static [(&'static str, &'static str)],
    /// Names of fields in JSON.
    pub fields: &'static [&'static str],
}

/// What a command printed for people.
pub fn redacted(printed: &str, data: &Path, varying: Varying) -> String {
    let (folder, data) = (data.parent().unwrap().to_str().unwrap(), data.to_str().unwrap());
    let text = printed.replace(data, "DATA").replace(folder, "FOLDER");
    let text = DATE.replace_all(&text, |found: &Captures<'_>| zeros(&found[0]));
    let text = AGO.replace_all(&text, |found: &Captures<'_>| {
        let padding =
            if found[1].len() > 1 { found[0].len() - "[ago]".len() } else { found[1].len() };
        format!("[ago]{}", " ".repeat(padding))
    });
    let text = TOOK.replace_all(&text, "$1 [time]");
    let text = CURSOR.replace_all(&text, "--cursor CURSOR");
    let mut text = ID.replace_all(&text, "[id]").into_owned();
    for (expression, stand_in) in varying.texts {
        text = Regex::new(expression).unwrap().replace_all(&text, *stand_in).into_owned();
    }
    text
}

/// The same text with zeros for its digits.
fn zeros(text: &str) -> String {
    text.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect()
}

/// An answer in JSON, laid out to be read. What is printed besides follows it.
pub fn redacted_json(printed: &str, data: &Path, varying: Varying) -> String {
    let (answer, rest) = printed.split_once('\n').unwrap();
    let answer = serde_json::from_str(answer);
    let answer: Value = answer.unwrap_or_else(|error| panic!("{error}: {printed}"));
    format!("{:#}\n{rest}", without("", answer, data, varying))
}

fn without(name: &str, value: Value, data: &Path, varying: Varying) -> Value {
    let of = |name: &str, value| without(name, value, data, varying);
    match value {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, it)| (name.clone(), of(&name, it))).collect()
        }
        Value::Array(items) => items.into_iter().map(|it| of(name, it)).collect(),
        Value::Number(_) if varying.fields.contains(&name) => format!("[{name}]").into(),
        Value::Number(number) if number.as_i64().is_some_and(|it| it >= IDS_FROM) => {
            if name.ends_with("_ms") { "[time]".into() } else { "[id]".into() }
        }
        Value::String(text) if is_cursor(name, &text) => "[cursor]".into(),
        Value::String(text) => redacted(&text, data, varying).into(),
        other => other,
    }
}

fn is_cursor(name: &str, text: &str) -> bool {
    ["cursor", "next", "previous"].contains(&name) && !text.contains(' ')
}
