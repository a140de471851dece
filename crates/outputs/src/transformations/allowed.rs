//! Allowed documents: what kinds of documents are sent, by type, name, size and address.
//!
//! A document that is not allowed is removed from the output, and the history says why
//! with ManifoldCF's words. Invariant: an expression is matched in linear time.

use super::{Refusal, Transformation};
use crate::connectors::{base, read, written};
use crate::output::Content;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// Entries of one list.
const ENTRIES_MAX: usize = 1_000;
/// Bytes that a compiled expression may take.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Its configuration. Empty lists allow everything, 0 is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct AllowedConfig {
    pub types: Vec<String>,
    pub extensions: Vec<String>,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub min_bytes: i64,
    pub max_bytes: i64,
}

struct AllowedTransformation {
    config: AllowedConfig,
    include: Vec<Regex>,
    exclude: Vec<Regex>,
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Transformation>, String> {
    Ok(Box::new(AllowedTransformation::read(read(config)?)?))
}

impl AllowedTransformation {
    fn read(mut config: AllowedConfig) -> Result<AllowedTransformation, String> {
        for (field, list) in [
            ("types", &mut config.types),
            ("extensions", &mut config.extensions),
            ("include", &mut config.include),
            ("exclude", &mut config.exclude),
        ] {
            if list.len() > ENTRIES_MAX || list.iter().any(String::is_empty) {
                return Err(format!("{field}: at most {ENTRIES_MAX} entries, none of them empty"));
            }
            if matches!(field, "types" | "extensions") {
                list.iter_mut().for_each(|it| *it = it.to_ascii_lowercase());
            }
        }
        for it in &mut config.extensions {
            *it = it.trim_start_matches('.').to_owned();
        }
        let (least, most) = (config.min_bytes, config.max_bytes);
        if least < 0 || most < 0 || (most > 0 && least > most) {
            return Err("min_bytes: at most max_bytes, and neither below 0".to_owned());
        }
        let include = expressions("include", &config.include)?;
        let exclude = expressions("exclude", &config.exclude)?;
        Ok(AllowedTransformation { config, include, exclude })
    }
}

fn expressions(field: &str, texts: &[String]) -> Result<Vec<Regex>, String> {
    let one = |text: &String| {
        let built = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
        built.map_err(|_| format!("{field}: {text:?} is not a valid regular expression"))
    };
    texts.iter().map(one).collect()
}

impl Transformation for AllowedTransformation {
    fn change(&self, uri: &str, content: &mut Content) -> Result<(), Refusal> {
        let refuse = |code, detail: String| Err(Refusal { code, detail });
        let config = &self.config;
        if let Some(it) = self.exclude.iter().find(|it| it.is_match(uri)) {
            return refuse("EXCLUDEDURL", format!("its address matches {:?}", it.as_str()));
        }
        if !self.include.is_empty() && !self.include.iter().any(|it| it.is_match(uri)) {
            return refuse("EXCLUDEDURL", "its URL matches no allowed expression".to_owned());
        }
        let extension = extension(uri);
        if !config.extensions.is_empty() && !config.extensions.contains(&extension) {
            let detail = format!("the extension {extension:?} is not allowed");
            return refuse("EXCLUDEDURL", detail);
        }
        let media_type = content.facts.media_type.to_ascii_lowercase();
        let is_it = |pattern: &String| match pattern.strip_suffix('*') {
            Some(begin) => media_type.starts_with(begin),
            None => *pattern == media_type,
        };
        if !config.types.is_empty() && !config.types.iter().any(is_it) {
            let detail = format!("the type {media_type:?} is not allowed");
            return refuse("EXCLUDEDMIMETYPE", detail);
        }
        let text_bytes = || i64::try_from(content.facts.text.len()).unwrap_or(i64::MAX);
        let length = content.length.unwrap_or_else(text_bytes);
        let is_too_long = config.max_bytes > 0 && length > config.max_bytes;
        if is_too_long || length < config.min_bytes {
            return refuse("EXCLUDEDLENGTH", format!("{length} bytes are not allowed"));
        }
        Ok(())
    }
}

/// What follows the last dot of a name, in small letters.
fn extension(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |it| it.1);
    let name = path.split_once('/').map_or("", |it| it.1.rsplit('/').next().unwrap_or_default());
    name.rsplit_once('.').map_or(String::new(), |it| it.1.to_ascii_lowercase())
}

const fn list(name: &'static str, about: &'static str, example: &'static str) -> ConfigField {
    ConfigField { name, about, example, default: Some(""), kind: SettingKind::List }
}

const fn bytes(name: &'static str, about: &'static str, example: &'static str) -> ConfigField {
    let kind = SettingKind::Number { least: 0, most: i64::MAX };
    ConfigField { name, about, example, default: Some("0"), kind }
}

/// Registers the filter with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: &[
        list("types", "a media type that is allowed, such as text/html or text/*", "text/*"),
        list("extensions", "an extension that is allowed", "html"),
        list("include", "a regular expression; a URL must match at least one of them", "^https://"),
        list("exclude", "a regular expression; URLs that match it are rejected", "/private/"),
        bytes("min_bytes", "the smallest size of a document", "10"),
        bytes("max_bytes", "the largest size of a document; 0 is no limit", "1000000"),
    ],
    check_config: |text| written(&AllowedTransformation::read(read(text)?)?.config),
    ..base(
        ConnectionKind::Transformation,
        "allowed",
        "passes only documents with allowed types, names, sizes and URLs",
    )
};

#[cfg(test)]
mod tests {
    use super::*;
    use page::facts::Facts;
    use serde_json::json;

    fn verdict(config: serde_json::Value, uri: &str) -> &'static str {
        let facts = Facts { media_type: "text/html".into(), ..Facts::default() };
        let mut content = Content { facts, length: Some(100), ..Content::default() };
        let outcome = open(&config.to_string()).unwrap().change(uri, &mut content);
        outcome.err().map_or("OK", |it| it.code)
    }

    #[test]
    fn a_document_is_judged_by_type_name_size_and_address() {
        let uri = "https://a.example/x/Page.HTML?q=1.pdf";
        for (config, expected) in [
            (json!({}), "OK"),
            (json!({"types": ["TEXT/html"]}), "OK"),
            (json!({"types": ["application/pdf", "text/*"]}), "OK"),
            (json!({"types": ["application/pdf"]}), "EXCLUDEDMIMETYPE"),
            (json!({"extensions": [".html"]}), "OK"),
            (json!({"extensions": ["pdf"]}), "EXCLUDEDURL"),
            (json!({"include": ["^http:", "/x/"]}), "OK"),
            (json!({"include": ["^http:"]}), "EXCLUDEDURL"),
            (json!({"exclude": ["/x/"]}), "EXCLUDEDURL"),
            (json!({"min_bytes": 100, "max_bytes": 100}), "OK"),
            (json!({"max_bytes": 99}), "EXCLUDEDLENGTH"),
            (json!({"min_bytes": 101}), "EXCLUDEDLENGTH"),
        ] {
            assert_eq!(verdict(config.clone(), uri), expected, "{config}");
        }
    }

    #[test]
    fn an_extension_is_that_of_the_name_alone() {
        for (uri, expected) in [
            ("https://a.example/", ""),
            ("https://a.example", ""),
            ("https://a.example/b.c/d", ""),
            ("https://a.example/b.TAR.Gz", "gz"),
            ("file:///srv/x.txt", "txt"),
            ("urn:x.y", ""),
        ] {
            assert_eq!(extension(uri), expected, "{uri}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for (config, word) in [
            (json!({"include": ["("]}), "include"),
            (json!({"exclude": ["(a{1000}){1000}"]}), "exclude"),
            (json!({"min_bytes": 2, "max_bytes": 1}), "min_bytes"),
            (json!({"types": [""]}), "types"),
            (json!({"mime": []}), "mime"),
        ] {
            let refused = (CONNECTOR.check_config)(&config.to_string()).unwrap_err();
            assert!(refused.contains(word), "{config}: {refused}");
        }
    }
}
