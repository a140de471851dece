//! The content limiter: text that is too long is cut.
//!
//! Invariant: a cut lies between characters, and where one is made a field says so.

use super::{Refusal, Transformation};
use crate::connectors::{base, read, written};
use crate::output::Content;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// The field that says that text was cut.
pub const TRUNCATED: &str = "truncated";

/// Its configuration. 0 is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct LimiterConfig {
    pub max_bytes: u64,
    pub max_chars: u64,
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Transformation>, String> {
    Ok(Box::new(read::<LimiterConfig>(config)?))
}

impl Transformation for LimiterConfig {
    fn change(&self, _uri: &str, content: &mut Content) -> Result<(), Refusal> {
        let text = &mut content.facts.text;
        let limit = |most: u64| {
            if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) }
        };
        let by_chars = text.char_indices().nth(limit(self.max_chars)).map_or(text.len(), |it| it.0);
        let by_bytes = text.floor_char_boundary(limit(self.max_bytes));
        let end = by_chars.min(by_bytes);
        if end < text.len() {
            text.truncate(end);
            content.fields.insert(TRUNCATED.to_owned(), vec!["yes".to_owned()]);
        }
        Ok(())
    }
}

/// Registers the limiter with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: &[
        ConfigField {
            name: "max_bytes",
            about: "bytes of text, in UTF-8; 0 is no limit",
            example: "100000",
            default: Some("0"),
            kind: SettingKind::Number { least: 0, most: i64::MAX },
        },
        ConfigField {
            name: "max_chars",
            about: "characters of text; 0 is no limit",
            example: "30000",
            default: Some("0"),
            kind: SettingKind::Number { least: 0, most: i64::MAX },
        },
    ],
    check_config: |text| written(&read::<LimiterConfig>(text)?),
    ..base(ConnectionKind::Transformation, "limiter", "cuts text that is too long")
};

#[cfg(test)]
mod tests {
    use super::*;
    use page::facts::Facts;
    use proptest::prelude::*;

    fn cut(text: &str, max_bytes: u64, max_chars: u64) -> (String, bool) {
        let facts = Facts { text: text.to_owned(), ..Facts::default() };
        let mut content = Content { facts, ..Content::default() };
        LimiterConfig { max_bytes, max_chars }.change("", &mut content).unwrap();
        (content.facts.text, content.fields.contains_key(TRUNCATED))
    }

    #[test]
    fn text_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("aéb", 0, 0), ("aéb".into(), false));
        assert_eq!(cut("aéb", 2, 0), ("a".into(), true));
        assert_eq!(cut("aéb", 4, 3), ("aéb".into(), false));
        assert_eq!(cut("aéb", 0, 2), ("aé".into(), true));
        assert_eq!(cut("aéb", 3, 1), ("a".into(), true));
    }

    proptest! {
        #[test]
        fn what_is_left_is_the_longest_beginning_that_fits(
            text in "\\PC{0,30}", bytes in 1_u64..40, chars in 1_u64..40
        ) {
            let (left, was_cut) = cut(&text, bytes, chars);
            prop_assert!(text.starts_with(&left));
            let fits = |it: &str| it.len() as u64 <= bytes && it.chars().count() as u64 <= chars;
            prop_assert!(fits(&left));
            prop_assert_eq!(was_cut, left.len() < text.len());
            if let Some(next) = text[left.len()..].chars().next() {
                let longer = format!("{left}{next}");
                prop_assert!(!fits(&longer));
            }
        }
    }
}
