//! What `connection create` and `connection edit` take beside a name.
//!
//! Invariant: a flag that is not given changes nothing; an empty one takes back what was
//! said.

use crate::catalog::typed;
use crate::definitions::{ConnectionForm, ThrottleForm};
use crate::refusal::{OrRefuse, OrRefused, refuse};
use clap::Args;
use serde::{Deserialize, Serialize};
use store::catalog::Connector;

/// Bytes of a kilobyte, as network people count.
const KB: i64 = 1_000;

/// The flags, as they are written and as they go through a socket.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionFlags {
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Largest number of open connections [default: 10; 256 for web]
    #[arg(long, value_name = "N")]
    max_connections: Option<i64>,
    /// Authority group
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Authorization domain
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Mapping connection to ask first
    #[arg(long, value_name = "NAME")]
    prerequisite: Option<String>,
    /// How long to keep its history, such as 30d; "" keeps it forever [default: 90 days]
    #[arg(long, value_name = "SPAN")]
    keep_history: Option<String>,
    /// Limit the request rate for hosts that match a regular expression, such as
    /// '^a\.example$=12/min,conns=2,kb=100'; 'REGEX=' removes the limit
    #[arg(long, value_name = "REGEX=LIMITS")]
    throttle: Vec<String>,
    /// Settings of its connector; `driftline connector show NAME` lists them
    #[arg(value_name = "SETTING=VALUE")]
    settings: Vec<String>,
}

impl ConnectionFlags {
    /// Changes a connection by what was given.
    pub fn apply(&self, connector: &Connector, form: &mut ConnectionForm) -> anyhow::Result<()> {
        for (given, field) in [
            (&self.description, &mut form.description),
            (&self.group, &mut form.group),
            (&self.domain, &mut form.domain),
            (&self.prerequisite, &mut form.prerequisite),
        ] {
            if let Some(given) = given {
                *field = (!given.is_empty()).then(|| given.clone());
            }
        }
        form.max_connections = self.max_connections.or(form.max_connections);
        match self.keep_history.as_deref() {
            None => {}
            Some("") => form.history_ms = Some(0),
            Some(span) => {
                let ms = typed::milliseconds(span).or_refuse(|| {
                    format!("--keep-history is a duration such as 30d, not {span:?}")
                })?;
                form.history_ms = Some(ms);
            }
        }
        for text in &self.throttle {
            match throttle(text)? {
                (expression, None) => {
                    form.throttles.remove(&expression);
                }
                (expression, Some(new)) => {
                    let known = form.throttles.get(&expression);
                    let description = known.and_then(|known| known.description.clone());
                    form.throttles.insert(expression, ThrottleForm { description, ..new });
                }
            }
        }
        Ok(typed::assign(connector.settings, &mut form.settings, &self.settings).or_refused()?)
    }
}

/// Reads `REGEX=12/min,conns=2,kb=100`. Where an expression has an `=` of its own, it
/// ends at the first one behind which limits stand. No limits take the throttle back.
fn throttle(text: &str) -> anyhow::Result<(String, Option<ThrottleForm>)> {
    for (at, _) in text.match_indices('=') {
        let (expression, rest) = (&text[..at], &text[at + 1..]);
        if rest.is_empty() {
            return Ok((expression.to_owned(), None));
        }
        if let Some(limits) = limits(rest) {
            return Ok((expression.to_owned(), Some(limits)));
        }
    }
    refuse!(
        "--throttle {text:?} cannot be read; write a regular expression and limits, such as \
         '^a\\.example$=12/min,conns=2,kb=100'"
    )
}

fn limits(text: &str) -> Option<ThrottleForm> {
    let mut form = ThrottleForm::default();
    for limit in text.split(',') {
        if let Some(number) = limit.strip_prefix("conns=") {
            form.connections = Some(number.parse().ok()?);
        } else if let Some(number) = limit.strip_prefix("kb=") {
            form.bytes_per_s = Some(number.parse::<i64>().ok()?.checked_mul(KB)?);
        } else {
            let (number, unit) = limit.split_once('/')?;
            let number: f64 = number.parse().ok()?;
            let rate = match unit {
                "s" => number * 60.0,
                "min" => number,
                "h" => number / 60.0,
                _ => return None,
            };
            form.per_minute = Some(rate).filter(|rate| rate.is_finite() && *rate >= 0.0);
            form.per_minute?;
        }
    }
    Some(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttle_is_an_expression_and_limits() {
        let read = |text: &str| throttle(text).unwrap();
        let (expression, form) = read(r"^a\.example$=12/min,conns=2,kb=100");
        assert_eq!(expression, r"^a\.example$");
        let expected = ThrottleForm {
            description: None,
            per_minute: Some(12.0),
            connections: Some(2),
            bytes_per_s: Some(100_000),
        };
        assert_eq!(form, Some(expected));
        assert_eq!(read("a=b=2/s").0, "a=b");
        assert_eq!(read("=30/h").1.unwrap().per_minute, Some(0.5), "an empty one matches all");
        assert_eq!(read("a="), ("a".to_owned(), None));
        for bad in
            ["a", "a=fast", "a=12/year", "a=-1/s", "a=NaN/s", "a=conns=x", "a=kb=99999999999999999"]
        {
            assert!(throttle(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_given_changes_and_what_is_empty_is_taken_back() {
        let connector = &outputs::connectors::files::CONNECTOR;
        let mut form = ConnectionForm::new("files");
        let said = |text: &str| Some(text.to_owned());
        let first = ConnectionFlags {
            description: said("x"),
            group: said("staff"),
            keep_history: said("2d"),
            throttle: vec!["a=1/s".into(), "b=2/s".into()],
            settings: vec!["directory=/out".into()],
            ..ConnectionFlags::default()
        };
        first.apply(connector, &mut form).unwrap();
        assert_eq!((form.history_ms, form.throttles.len()), (Some(2 * 86_400_000), 2));
        let before = form.clone();
        ConnectionFlags::default().apply(connector, &mut form).unwrap();
        assert_eq!(form, before);
        let second = ConnectionFlags {
            group: said(""),
            keep_history: said(""),
            throttle: vec!["a=".into()],
            ..ConnectionFlags::default()
        };
        second.apply(connector, &mut form).unwrap();
        assert_eq!((form.group.as_ref(), form.history_ms), (None, Some(0)));
        assert_eq!(form.throttles.keys().collect::<Vec<_>>(), ["b"]);
        let bad = ConnectionFlags { keep_history: said("long"), ..ConnectionFlags::default() };
        assert!(bad.apply(connector, &mut form).unwrap_err().to_string().contains("30d"));
    }
}
