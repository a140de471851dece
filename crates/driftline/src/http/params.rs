//! What a request gives for a route's parameters, checked.
//!
//! Invariant: whatever comes out is named in the route, of its kind, and within its bounds.

use super::problem::Problem;
use super::routes::{Kind, Param, Route, TEXT_CHARS_MAX, TEXTS_MAX, Values};
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value as Json;

/// Reads what was given in the path and behind the question mark.
pub fn read(route: &Route, given: &[(String, String)]) -> Result<Values, Problem> {
    let mut values = Values::new();
    for (name, value) in given {
        let Some(param) = route.params.iter().find(|it| it.name == name) else {
            let known: Vec<&str> = route.params.iter().map(|it| it.name).collect();
            return Err(Problem::bad(format!(
                "there is no parameter {name:?}; there is {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        };
        let value = checked(param, value)?;
        match (values.get_mut(param.name), param.kind) {
            (None, Kind::Texts) => {
                values.insert(param.name.to_owned(), Json::Array(vec![value]));
            }
            (Some(Json::Array(all)), Kind::Texts) if all.len() < TEXTS_MAX => all.push(value),
            (None, _) => {
                values.insert(param.name.to_owned(), value);
            }
            (Some(_), _) => {
                return Err(Problem::bad(format!("{} is given too often", param.name)));
            }
        }
    }
    match route.params.iter().find(|it| it.is_required && !values.contains_key(it.name)) {
        Some(it) => Err(Problem::bad(format!("{} is missing: {}", it.name, it.about))),
        None => Ok(values),
    }
}

fn checked(param: &Param, value: &str) -> Result<Json, Problem> {
    let name = param.name;
    if value.chars().count() > TEXT_CHARS_MAX {
        return Err(Problem::bad(format!("{name} is longer than {TEXT_CHARS_MAX} characters")));
    }
    match param.kind {
        Kind::Text | Kind::Texts if value.is_empty() => {
            Err(Problem::bad(format!("{name} is empty: {}", param.about)))
        }
        // No database takes it, and nothing that we know of has it.
        Kind::Text | Kind::Texts if value.contains('\0') => {
            Err(Problem::bad(format!("{name} has a zero byte in it")))
        }
        Kind::Text | Kind::Texts => Ok(value.into()),
        Kind::Number { least, most } => match value.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number.into()),
            _ => Err(Problem::bad(format!("{name} must be a number from {least} to {most}"))),
        },
        Kind::Choice(of) if of.contains(&value) => Ok(value.into()),
        Kind::Choice(of) => Err(Problem::bad(format!("{name} must be one of {}", of.join(", ")))),
        Kind::Flag => match value {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err(Problem::bad(format!("{name} must be true or false"))),
        },
    }
}

/// Reads a body. It says that it is JSON, so that no form of another site's page can send it.
pub fn body(headers: &HeaderMap, bytes: &[u8]) -> Result<Json, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let why = "the body must be JSON: Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let read: Json = serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad(format!("the body is no JSON: {error}")))?;
    match has_zero(&read) {
        true => Err(Problem::bad("the body has a zero byte in a text")),
        false => Ok(read),
    }
}

/// Whether a text in it has a zero byte, which no database takes.
fn has_zero(json: &Json) -> bool {
    match json {
        Json::String(text) => text.contains('\0'),
        Json::Array(items) => items.iter().any(has_zero),
        Json::Object(items) => items.iter().any(|(name, it)| name.contains('\0') || has_zero(it)),
        _ => false,
    }
}

/// Whether somebody who takes these encodings takes gzip.
pub fn takes_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|it| {
        let (name, weight) = it.split_once(';').unwrap_or((it, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|it| it.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|it| it > 0.0)
    })
}
