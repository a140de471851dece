//! What a server writes down: one line for each event, for people or as JSON for programs.
//!
//! Invariants: a line is one write, so that lines of several threads are not mixed; no token
//! and no question is in it.

use crate::cli::shown;
use crate::cli::stderr::Stderr;
use serde_json::{Map, Value as Json, json};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use store::clock;

/// Where lines go, and how they look.
pub struct Log {
    is_json: bool,
    out: Mutex<Box<dyn Write + Send>>,
}

impl Log {
    /// To standard error, without waiting for whoever reads it.
    pub fn to_stderr(is_json: bool) -> Log {
        Log::to(Box::new(Stderr), is_json)
    }

    /// To anything.
    pub fn to(out: Box<dyn Write + Send>, is_json: bool) -> Log {
        Log { is_json, out: Mutex::new(out) }
    }

    /// Writes an event with its facts, which are an object.
    pub fn event(&self, level: &str, event: &str, facts: Json) {
        let now = jiff::Timestamp::from_millisecond(clock::now_ms()).unwrap_or_default();
        let facts = match facts {
            Json::Object(facts) => facts,
            _ => Map::new(),
        };
        let mut line = match self.is_json {
            true => {
                let mut all = Map::new();
                all.insert("time".into(), json!(now.to_string()));
                all.insert("level".into(), json!(level));
                all.insert("event".into(), json!(event));
                all.extend(facts);
                Json::Object(all).to_string()
            }
            false => {
                let facts = facts.iter().map(|(name, value)| match value {
                    Json::String(text) => format!(" {name}={}", shown(text)),
                    value => format!(" {name}={value}"),
                });
                format!("{now:.3} {level} {event}{}", facts.collect::<String>())
            }
        };
        line.push('\n');
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody reads it: no reason to stop.
        let _ = out.write_all(line.as_bytes());
    }
}
