//! The parameters of routes: what they can be, from the schema of the type that they are read
//! into, and what a request gives for them, checked.
//!
//! Invariants: every number is bounded; whatever comes out is named in the route, of its kind,
//! and within its bounds.

use super::problem::Problem;
use super::routes::{Route, Values};
use crate::verbs::registry::Shape;
use axum::http::{HeaderMap, StatusCode, header};
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

/// Characters of a parameter.
pub const TEXT_CHARS_MAX: usize = 4_096;
/// How often a parameter may be given that may be given several times.
pub const TEXTS_MAX: usize = 100;

#[derive(Debug, PartialEq)]
pub struct Param {
    pub name: String,
    /// What it is for.
    pub about: String,
    pub kind: ParamKind,
    pub is_required: bool,
    /// What it is if it is not given.
    pub default: Option<Json>,
}

/// What a parameter can be.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamKind {
    Text,
    Number {
        least: i64,
        most: i64,
    },
    Choice(Vec<String>),
    Flag,
    /// Texts, given several times.
    Texts,
}

/// The parameters that a type is read from. A type that no parameters can be is a mistake of
/// the program, found by its first test.
pub fn of(shape: Shape) -> Vec<Param> {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let schema = shape(&mut settings.into_generator()).to_value();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let param = |(name, schema): (String, Json)| Param {
        about: schema["description"].as_str().unwrap_or_default().to_owned(),
        kind: kind(&name, &schema),
        is_required: required.iter().any(|it| *it == name),
        default: schema.get("default").filter(|it| !it.is_null()).cloned(),
        name,
    };
    properties.into_iter().map(param).collect()
}

fn kind(name: &str, schema: &Json) -> ParamKind {
    let schema = present(schema);
    let choices = choices(schema);
    if !choices.is_empty() {
        return ParamKind::Choice(choices);
    }
    let kinds = match &schema["type"] {
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect(),
        kind => kind.as_str().into_iter().collect::<Vec<_>>(),
    };
    match kinds.iter().find(|kind| **kind != "null") {
        Some(&"string") => ParamKind::Text,
        Some(&"boolean") => ParamKind::Flag,
        Some(&"array") => ParamKind::Texts,
        Some(&"integer") => {
            let bound = |name| schema[name].as_i64();
            match (bound("minimum"), bound("maximum")) {
                (Some(least), Some(most)) => ParamKind::Number { least, most },
                _ => panic!("parameter {name} is a number without bounds"),
            }
        }
        _ => panic!("no parameter can be {name}: {schema}"),
    }
}

/// The schema of what is there, where something may be missing.
fn present(schema: &Json) -> &Json {
    let any = schema["anyOf"].as_array().into_iter().flatten();
    any.into_iter().find(|it| it["type"] != "null").unwrap_or(schema)
}

/// The names of an enumeration, as schemas of enumerations list them.
fn choices(schema: &Json) -> Vec<String> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let told = schema["oneOf"].as_array().into_iter().flatten();
    let told = told.flat_map(|it| {
        let several = it["enum"].as_array().into_iter().flatten();
        it.get("const").into_iter().chain(several)
    });
    plain.chain(told).filter_map(Json::as_str).map(str::to_owned).collect()
}

/// Reads what was given in the path and behind the question mark.
pub fn read(route: &Route, given: &[(String, String)]) -> Result<Values, Problem> {
    let mut values = Values::new();
    for (name, value) in given {
        let Some(param) = route.params.iter().find(|it| it.name == *name) else {
            let known: Vec<&str> = route.params.iter().map(|it| it.name.as_str()).collect();
            return Err(Problem::bad(format!(
                "there is no parameter {name:?}; there is {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        };
        let value = checked(param, value)?;
        match (values.get_mut(&param.name), &param.kind) {
            (None, ParamKind::Texts) => {
                values.insert(param.name.clone(), Json::Array(vec![value]));
            }
            (Some(Json::Array(all)), ParamKind::Texts) if all.len() < TEXTS_MAX => all.push(value),
            (None, _) => {
                values.insert(param.name.clone(), value);
            }
            (Some(_), _) => {
                return Err(Problem::bad(format!("{} is given too often", param.name)));
            }
        }
    }
    match route.params.iter().find(|it| it.is_required && !values.contains_key(&it.name)) {
        Some(it) => Err(Problem::bad(format!("{} is missing: {}", it.name, it.about))),
        None => Ok(values),
    }
}

fn checked(param: &Param, value: &str) -> Result<Json, Problem> {
    let name = &param.name;
    if value.chars().count() > TEXT_CHARS_MAX {
        return Err(Problem::bad(format!("{name} is longer than {TEXT_CHARS_MAX} characters")));
    }
    match &param.kind {
        ParamKind::Text | ParamKind::Texts if value.is_empty() => {
            Err(Problem::bad(format!("{name} is empty: {}", param.about)))
        }
        // No database takes it, and nothing that we know of has it.
        ParamKind::Text | ParamKind::Texts if value.contains('\0') => {
            Err(Problem::bad(format!("{name} contains a NUL byte")))
        }
        ParamKind::Text | ParamKind::Texts => Ok(value.into()),
        ParamKind::Number { least, most } => match value.parse::<i64>() {
            Ok(number) if (least..=most).contains(&&number) => Ok(number.into()),
            _ => Err(Problem::bad(format!("{name} must be a number from {least} to {most}"))),
        },
        ParamKind::Choice(of) if of.iter().any(|it| it == value) => Ok(value.into()),
        ParamKind::Choice(of) => {
            Err(Problem::bad(format!("{name} must be one of {}", of.join(", "))))
        }
        ParamKind::Flag => match value {
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
        .map_err(|error| Problem::bad(format!("the body is not valid JSON: {error}")))?;
    match has_zero(&read) {
        true => Err(Problem::bad("a text in the body contains a NUL byte")),
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

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde_json::json;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Params {
        /// What is looked for
        text: String,
        #[schemars(range(min = 1, max = TEXTS_MAX))]
        limit: Option<u32>,
        order: Option<SortDirection>,
        #[serde(default)]
        deep: bool,
        #[serde(default)]
        areas: Vec<String>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum SortDirection {
        /// The first comes first
        Up,
        /// The last comes first
        Down,
    }

    #[test]
    fn parameters_come_from_the_schema_of_their_type() {
        let found = of(|it| it.subschema_for::<Params>());
        let find = |name: &str| found.iter().find(|it| it.name == name).unwrap();
        assert_eq!(find("text").about, "What is looked for");
        assert!(find("text").is_required && find("text").kind == ParamKind::Text);
        assert_eq!(find("limit").kind, ParamKind::Number { least: 1, most: 100 });
        assert_eq!(find("order").kind, ParamKind::Choice(vec!["up".into(), "down".into()]));
        assert_eq!(
            (&find("deep").kind, &find("deep").default),
            (&ParamKind::Flag, &Some(json!(false)))
        );
        assert_eq!(find("areas").kind, ParamKind::Texts);
        assert!(found.iter().filter(|it| it.is_required).count() == 1);
    }
}
