//! What a server writes down: one line for each event, for people or as JSON for programs.
//!
//! Invariants: a line is one write, so that lines of several threads are not mixed; no token
//! and no question is in it.

use crate::stderr::{self, Stderr, json_line};
use crate::text::shown;
use serde_json::{Map, Value as Json};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use store::clock;

/// Where lines go, and how they look.
pub struct Log {
    is_json: bool,
    out: Mutex<Box<dyn Write + Send>>,
}

impl Log {
    /// To standard error, without waiting for whoever reads it. In JSON, so is all else that is
    /// written there from now on.
    pub fn to_stderr(is_json: bool) -> Log {
        if is_json {
            stderr::write_json();
        }
        Log::to(Box::new(Stderr), is_json)
    }

    pub fn to(out: Box<dyn Write + Send>, is_json: bool) -> Log {
        Log { is_json, out: Mutex::new(out) }
    }

    /// Writes an event with its facts, which are an object.
    pub fn event(&self, level: &str, event: &str, facts: Json) {
        let facts = match facts {
            Json::Object(facts) => facts,
            _ => Map::new(),
        };
        let mut line = match self.is_json {
            true => json_line::event(level, event, facts),
            false => {
                let now = jiff::Timestamp::from_millisecond(clock::now_ms()).unwrap_or_default();
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
