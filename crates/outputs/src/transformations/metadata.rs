//! The metadata adjuster: fields are set, added, renamed and removed.
//!
//! In this order, so that a field can be made of others that are removed afterwards.
//! Invariant: no document gets more fields, or longer ones, than the limits say.

use super::{Refusal, Transformation};
use crate::connectors::{base, read, written};
use crate::fields::{FIELDS_MAX, Fields, VALUES_MAX, check_name};
use crate::output::Content;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// Rules of one kind.
const RULES_MAX: usize = 200;
/// Bytes of a value that a template makes.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// The settings of the metadata adjuster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct MetadataConfig {
    pub set: Vec<String>,
    pub add: Vec<String>,
    pub rename: Vec<String>,
    pub remove: Vec<String>,
}

/// The metadata adjuster with its templates parsed.
struct Metadata {
    set: Vec<(String, Vec<TemplatePart>)>,
    add: Vec<(String, Vec<TemplatePart>)>,
    rename: Vec<(String, String)>,
    remove: Vec<String>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Uri,
    Field(String),
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Transformation>, String> {
    Ok(Box::new(Metadata::read(&read(config)?)?))
}

impl Metadata {
    fn read(config: &MetadataConfig) -> Result<Metadata, String> {
        for (field, rules) in [
            ("set", &config.set),
            ("add", &config.add),
            ("rename", &config.rename),
            ("remove", &config.remove),
        ] {
            if rules.len() > RULES_MAX {
                return Err(format!("{field}: at most {RULES_MAX}, not {}", rules.len()));
            }
        }
        let made = |field: &str, rules: &[String]| -> Result<Vec<_>, String> {
            let one = |rule: &String| {
                let (name, text) = parted(field, rule, "title={title} at {uri}")?;
                Ok((name, template(field, &text)?))
            };
            rules.iter().map(one).collect()
        };
        let renamed = |rule: &String| {
            let (old, new) = parted("rename", rule, "title=headline")?;
            check_name(&new).map_err(|why| format!("rename: {why}"))?;
            Ok((old, new))
        };
        for name in &config.remove {
            check_name(name).map_err(|why| format!("remove: {why}"))?;
        }
        Ok(Metadata {
            set: made("set", &config.set)?,
            add: made("add", &config.add)?,
            rename: config.rename.iter().map(renamed).collect::<Result<_, String>>()?,
            remove: config.remove.clone(),
        })
    }
}

impl Transformation for Metadata {
    fn change(&self, uri: &str, content: &mut Content) -> Result<(), Refusal> {
        let fields = &mut content.fields;
        // Templates see the document as it came, whatever the order of the rules.
        let filled = |rules: &[(String, Vec<TemplatePart>)],
                      fields: &Fields|
         -> Vec<(String, String)> {
            rules.iter().map(|(name, pieces)| (name.clone(), fill(pieces, uri, fields))).collect()
        };
        let (set, add) = (filled(&self.set, fields), filled(&self.add, fields));
        for (name, value) in set {
            fields.remove(&name);
            put(fields, name, value);
        }
        for (name, value) in add {
            put(fields, name, value);
        }
        for (old, new) in &self.rename {
            if let Some(values) = fields.remove(old) {
                let into = fields.entry(new.clone()).or_default();
                into.extend(values);
                into.truncate(VALUES_MAX);
            }
        }
        for name in &self.remove {
            fields.remove(name);
        }
        Ok(())
    }
}

/// Adds a value to a field; an empty one is none.
fn put(fields: &mut Fields, name: String, value: String) {
    let has_room = fields.len() < FIELDS_MAX || fields.contains_key(&name);
    if value.is_empty() || !has_room {
        return;
    }
    let values = fields.entry(name).or_default();
    if values.len() < VALUES_MAX {
        values.push(value);
    }
}

/// `name=value`, both of them.
fn parted(field: &str, rule: &str, example: &str) -> Result<(String, String), String> {
    let Some((name, value)) = rule.split_once('=') else {
        return Err(format!(
            "{field}: {rule:?} cannot be read; write a name and a value, {example}"
        ));
    };
    check_name(name).map_err(|why| format!("{field}: {why}"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads a template: `{uri}` and `{field}` stand for values, `{{` and `}}` for braces.
fn template(field: &str, text: &str) -> Result<Vec<TemplatePart>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix(brace) {
            plain.push_str(brace);
            rest = after;
            continue;
        }
        let name = after.split_once('}').filter(|_| brace == "{");
        let Some((name, after)) = name else {
            return Err(format!(
                "{field}: {text:?} has an unmatched brace; write {{{{ or }}}} for a literal one"
            ));
        };
        if !plain.is_empty() {
            pieces.push(TemplatePart::Text(std::mem::take(&mut plain)));
        }
        pieces.push(match name {
            "uri" => TemplatePart::Uri,
            name => {
                check_name(name).map_err(|why| format!("{field}: {why}"))?;
                TemplatePart::Field(name.to_owned())
            }
        });
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(TemplatePart::Text(plain));
    }
    Ok(pieces)
}

fn fill(pieces: &[TemplatePart], uri: &str, fields: &Fields) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            TemplatePart::Text(text) => out.push_str(text),
            TemplatePart::Uri => out.push_str(uri),
            TemplatePart::Field(name) => {
                let values = fields.get(name).map(Vec::as_slice).unwrap_or_default();
                out.push_str(&values.join(", "));
            }
        }
    }
    out.truncate(out.floor_char_boundary(VALUE_BYTES_MAX));
    out
}

const fn rules(name: &'static str, about: &'static str, example: &'static str) -> ConfigField {
    ConfigField { name, about, example, default: Some(""), kind: SettingKind::List }
}

/// Registers the adjuster with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: &[
        rules(
            "set",
            "a field and a template for its only value; {uri} and {field} stand for values",
            "source=crawled from {uri}",
        ),
        rules("add", "a field and a template for another value of it", "tag=public"),
        rules("rename", "a field and its new name", "title=headline"),
        rules("remove", "a field that is left out", "charset"),
    ],
    check_config: |text| {
        let config: MetadataConfig = read(text)?;
        Metadata::read(&config)?;
        written(&config)
    },
    ..base(
        ConnectionKind::Transformation,
        "metadata",
        "sets, adds, renames and removes fields of documents",
    )
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn changed(config: serde_json::Value, fields: serde_json::Value) -> serde_json::Value {
        let fields: Fields = serde_json::from_value(fields).unwrap();
        let mut content = Content { fields, ..Content::default() };
        open(&config.to_string()).unwrap().change("http://a/", &mut content).unwrap();
        json!(content.fields)
    }

    #[test]
    fn fields_are_set_added_renamed_and_removed_in_this_order() {
        let config = json!({
            "set": ["source={title} at {uri}", "title={{new}}", "none={nothing}"],
            "add": ["tag=a", "tag=b", "list={tag}"], "rename": ["title=headline", "x=y"],
            "remove": ["charset", "absent"]
        });
        let before = json!({"title": ["One"], "charset": ["utf-8"], "tag": ["0", "1"]});
        let expected = json!({"headline": ["{new}"], "source": ["One at http://a/"],
                              "tag": ["0", "1", "a", "b"], "list": ["0, 1"]});
        assert_eq!(changed(config, before), expected);
    }

    #[test]
    fn a_field_that_is_renamed_joins_one_that_is_there() {
        let config = json!({"rename": ["a=b"]});
        assert_eq!(changed(config, json!({"a": ["1"], "b": ["2"]})), json!({"b": ["2", "1"]}));
    }

    #[test]
    fn rules_that_cannot_be_read_are_refused_with_their_field() {
        for (config, word) in [
            (json!({"set": ["title"]}), "set"),
            (json!({"set": ["title={a"]}), "brace"),
            (json!({"set": ["title=a}"]}), "brace"),
            (json!({"add": ["uri=x"]}), "uri"),
            (json!({"add": ["x={text}"]}), "text"),
            (json!({"rename": ["a=uri"]}), "rename"),
            (json!({"remove": ["text"]}), "remove"),
            (json!({"add": vec!["a=b"; RULES_MAX + 1]}), "at most"),
        ] {
            let refused = (CONNECTOR.check_config)(&config.to_string()).unwrap_err();
            assert!(refused.contains(word), "{config}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn a_template_without_braces_is_itself(text in "[^{}]{0,40}", value in "\\PC{0,20}") {
            let pieces = template("set", &text).unwrap();
            prop_assert_eq!(fill(&pieces, "", &Fields::new()), text.clone());
            let fields = Fields::from([("a".to_owned(), vec![value.clone()])]);
            let pieces = template("set", &format!("{text}{{a}}")).unwrap();
            prop_assert_eq!(fill(&pieces, "", &fields), format!("{text}{value}"));
        }

        #[test]
        fn no_template_panics(text in "[{}a]{0,20}") {
            let _ = template("set", &text);
        }
    }
}
