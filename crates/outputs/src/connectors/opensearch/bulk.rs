//! The bulk interface: actions as lines, and what the answer says of each.
//!
//! Invariant: an answer is believed only if it has a word on every action, in order.

use crate::fields::id_of;
use crate::output::{Content, Outcome, Unavailable};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Bytes of a request, beyond one document: servers take 100 MiB, and less is kinder.
const REQUEST_BYTES_MAX: usize = 8 << 20;

/// An action of a bulk request: its lines, and what it does.
pub struct BulkAction {
    /// Its lines, each with its end.
    pub lines: String,
    pub is_delete: bool,
}

impl BulkAction {
    /// The action that indexes a document under its URI.
    pub fn index(uri: &str, content: &Content) -> BulkAction {
        let head = json!({"index": {"_id": id_of(uri)}});
        let document = Json::Object(crate::fields::to_json(uri, content));
        BulkAction { lines: format!("{head}\n{document}\n"), is_delete: false }
    }

    /// The action that deletes the document of a URI.
    pub fn delete(uri: &str) -> BulkAction {
        let head = json!({"delete": {"_id": id_of(uri)}});
        BulkAction { lines: format!("{head}\n"), is_delete: true }
    }
}

/// How many of the actions, from the first on, go into one request.
pub fn fitting(actions: &[BulkAction]) -> usize {
    let mut bytes = 0;
    let fits = |it: &&BulkAction| {
        bytes += it.lines.len();
        bytes <= REQUEST_BYTES_MAX
    };
    actions.iter().take_while(fits).count().max(1).min(actions.len())
}

#[derive(Deserialize)]
struct BulkResponse {
    items: Vec<BTreeMap<String, BulkItem>>,
}

#[derive(Deserialize)]
struct BulkItem {
    #[serde(default)]
    status: u16,
    error: Option<Json>,
}

/// What an answer says of each action of a request.
pub fn outcomes(body: &[u8], actions: &[BulkAction]) -> Result<Vec<Outcome>, String> {
    let answer: BulkResponse = serde_json::from_slice(body)
        .map_err(|error| format!("its answer cannot be read: {error}"))?;
    if answer.items.len() != actions.len() {
        let (answered, asked) = (answer.items.len(), actions.len());
        return Err(format!("it answers to {answered} of {asked} actions"));
    }
    let items = answer.items.into_iter().zip(actions);
    Ok(items.map(|(item, action)| outcome(item.into_values().next(), action)).collect())
}

fn outcome(item: Option<BulkItem>, action: &BulkAction) -> Outcome {
    let Some(item) = item else {
        let detail = "the server says nothing of it".to_owned();
        return Outcome::Trouble { code: "SERVER", detail };
    };
    let (kind, detail) = words(item.error.as_ref(), item.status);
    match item.status {
        200..300 => Outcome::Taken,
        404 if action.is_delete => Outcome::Taken,
        // It may be made, or let itself be written to, at any time.
        403 | 404 | 408 | 429 | 502..=504 => Outcome::Later(Unavailable::because(detail)),
        _ if kind == "cluster_block_exception" => Outcome::Later(Unavailable::because(detail)),
        409 => Outcome::Trouble { code: "CONFLICT", detail },
        413 => Outcome::Rejected { code: "TOOLARGE", detail },
        400..500 => Outcome::Rejected { code: "MAPPING", detail },
        _ => Outcome::Trouble { code: "SERVER", detail },
    }
}

/// The kind of an error, and a sentence on it: with its cause, which says the field.
fn words(error: Option<&Json>, status: u16) -> (String, String) {
    let text_at = |at: &str| error.and_then(|it| it.pointer(at)).and_then(Json::as_str);
    let kind = text_at("/type").unwrap_or_default().to_owned();
    let mut detail = format!("the server answers {status}");
    for (at, before) in [("/type", ": "), ("/reason", ": "), ("/caused_by/reason", "; ")] {
        if let Some(text) = text_at(at) {
            detail.push_str(before);
            detail.push_str(text);
        }
    }
    if let Some(Json::String(text)) = error {
        detail.push_str(&format!(": {text}"));
    }
    (kind, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_at(item: Json, is_delete: bool) -> Outcome {
        let action = BulkAction { lines: String::new(), is_delete };
        let body = json!({"took": 1, "errors": true, "items": [item]}).to_string();
        outcomes(body.as_bytes(), &[action]).unwrap().remove(0)
    }

    #[test]
    fn every_item_is_told_by_its_status() {
        let item = |status: u16, kind: &str| {
            json!({"index": {"_id": "a", "status": status, "error": {
                "type": kind, "reason": "r", "caused_by": {"type": "t", "reason": "cause"}}}})
        };
        assert_eq!(text_at(json!({"index": {"status": 201}}), false), Outcome::Taken);
        assert_eq!(text_at(json!({"delete": {"status": 404}}), true), Outcome::Taken);
        let rejected = text_at(item(400, "mapper_parsing_exception"), false);
        let Outcome::Rejected { code: "MAPPING", detail } = rejected else {
            panic!("{rejected:?}")
        };
        assert!(detail.contains("mapper_parsing_exception: r; cause"), "{detail}");
        for (status, kind) in [
            (429, "es_rejected_execution_exception"),
            (403, "cluster_block_exception"),
            (503, "unavailable_shards_exception"),
            (404, "index_not_found_exception"),
        ] {
            assert!(matches!(text_at(item(status, kind), false), Outcome::Later(_)), "{status}");
        }
        for (status, code) in [(409, "CONFLICT"), (500, "SERVER")] {
            let outcome = text_at(item(status, "x"), false);
            assert!(matches!(&outcome, Outcome::Trouble { code: it, .. } if *it == code));
        }
    }

    #[test]
    fn an_answer_that_does_not_fit_is_not_believed() {
        let action = || BulkAction { lines: String::new(), is_delete: false };
        for body in ["", "{}", "[]", r#"{"items": []}"#, r#"{"items": [{"index": 1}]}"#] {
            assert!(outcomes(body.as_bytes(), &[action()]).is_err(), "{body}");
        }
    }

    #[test]
    fn requests_are_not_too_long_but_never_empty() {
        let action = |bytes: usize| BulkAction { lines: "x".repeat(bytes), is_delete: false };
        let large = REQUEST_BYTES_MAX - 1;
        assert_eq!(fitting(&[action(1), action(large), action(1)]), 2);
        assert_eq!(fitting(&[action(REQUEST_BYTES_MAX + 1), action(1)]), 1);
        assert_eq!(fitting(&[action(1), action(1)]), 2);
        assert_eq!(fitting(&[]), 0);
    }
}
