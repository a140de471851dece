//! What is said of a document, by name: the fields that outputs send and transformations
//! change.
//!
//! Invariants: a field has at least one value; the order of fields and values is always
//! the same, so that equal documents are equal bytes; [`OURS`] are no fields, because
//! outputs say them themselves.

use crate::output::Content;
use jiff::Timestamp;
use page::facts::Facts;
use page::ids::hash128;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use store::chunkfile::document::Field;

/// The values of a document's fields, by the name of the field.
pub type Fields = BTreeMap<String, Vec<String>>;

/// What an output says of every document beside its fields.
pub const OURS: [&str; 4] = ["uri", "text", "changed", "authority"];
/// Fields of one document.
pub const FIELDS_MAX: usize = 200;
/// Values of one field.
pub const VALUES_MAX: usize = 1_000;
/// Bytes of a field's name.
pub const NAME_BYTES_MAX: usize = 200;
/// Bytes of an identifier that search engines take.
pub const ID_BYTES_MAX: usize = 512;

/// The fields that facts give, and those that others say of the document: these count more.
pub fn of(facts: &Facts, given: &[Field]) -> Fields {
    let mut fields = Fields::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            fields.insert(name.to_owned(), vec![value.to_owned()]);
        }
    };
    put("title", &facts.title);
    put("description", &facts.description);
    put("media_type", &facts.media_type);
    put("charset", &facts.charset);
    put("lang", facts.language.as_deref().unwrap_or_default());
    put("canonical", facts.canonical.as_deref().unwrap_or_default());
    let headings: Vec<String> = facts.headings.iter().map(|it| it.text.clone()).collect();
    if !headings.is_empty() {
        fields.insert("headings".to_owned(), headings);
    }
    let given = given.iter().filter(|it| !it.values.is_empty() && check_name(&it.name).is_ok());
    fields.extend(given.map(|it| (it.name.clone(), it.values.clone())));
    fields
}

/// Refuses what cannot be a field's name.
pub fn check_name(name: &str) -> Result<(), String> {
    if OURS.contains(&name) {
        return Err(format!("{name:?} is no field: every document has it ({})", OURS.join(", ")));
    }
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!(
            "a field's name has 1 to {NAME_BYTES_MAX} bytes and no control characters, unlike \
             {name:?}"
        ));
    }
    Ok(())
}

/// A document as JSON: its URI, its fields, its text.
pub fn to_json(uri: &str, content: &Content) -> Map<String, Json> {
    let mut json = Map::new();
    for (name, values) in content.fields.iter().take(FIELDS_MAX) {
        let value = match values.as_slice() {
            [one] => Json::from(one.as_str()),
            several => several.iter().take(VALUES_MAX).map(|it| Json::from(it.as_str())).collect(),
        };
        json.insert(name.clone(), value);
    }
    json.insert("uri".to_owned(), uri.into());
    json.insert("text".to_owned(), content.facts.text.as_str().into());
    if let Some(authority) = &content.authority {
        json.insert("authority".to_owned(), authority.as_str().into());
    }
    let changed = content.changed_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    if let Some(changed) = changed {
        json.insert("changed".to_owned(), changed.to_string().into());
    }
    json
}

/// What a search engine knows a document by: its URI, or a hash of one that is too long.
pub fn id_of(uri: &str) -> String {
    match uri.len() <= ID_BYTES_MAX {
        true => uri.to_owned(),
        false => data_encoding::HEXLOWER.encode(&hash128(uri.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::facts::Heading;

    #[test]
    fn a_document_is_its_fields_and_what_every_document_has() {
        let heading = |text: &str| Heading { level: 1, text: text.into() };
        let facts = Facts {
            title: "One".into(),
            language: Some("en".into()),
            headings: vec![heading("a"), heading("b")],
            text: "words".into(),
            ..Facts::default()
        };
        let given = [Field { name: "source".into(), values: vec!["a feed".into()] }];
        let fields = of(&facts, &given);
        assert_eq!(fields["source"], ["a feed"]);
        let (authority, changed_ms) = (Some("staff".to_owned()), Some(86_400_000));
        let content = Content { facts, fields, authority, changed_ms, ..Content::default() };
        let expected = serde_json::json!({
            "uri": "http://a/", "title": "One", "lang": "en", "headings": ["a", "b"],
            "source": "a feed",
            "text": "words", "authority": "staff", "changed": "1970-01-02T00:00:00Z"
        });
        assert_eq!(Json::Object(to_json("http://a/", &content)), expected);
    }

    #[test]
    fn an_identifier_fits_and_stays_itself() {
        let uri = |bytes: usize| "x".repeat(bytes);
        assert_eq!(id_of(&uri(ID_BYTES_MAX)), uri(ID_BYTES_MAX));
        let (long, longer) = (id_of(&uri(ID_BYTES_MAX + 1)), id_of(&uri(ID_BYTES_MAX + 2)));
        assert!(long.len() == 32 && long != longer, "{long} {longer}");
    }

    #[test]
    fn what_every_document_has_is_no_field() {
        assert!(check_name("title").is_ok());
        for name in ["", "uri", "text", "a\nb", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
