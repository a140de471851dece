//! Language detection: a field says which language a text is in.
//!
//! By trigrams and scripts, on the beginning of the text. Invariant: where the text does
//! not tell, nothing is said that was not said before.

use super::{Refusal, Transformation};
use crate::connectors::{base, read, written};
use crate::fields::check_name;
use crate::output::Content;
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;
use whatlang::detect;

/// Bytes of text that are looked at: more changes nothing.
const LOOKED_AT_BYTES: usize = 8 << 10;

/// The settings of the language detection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)]
pub struct LanguageConfig {
    pub field: String,
    pub overwrite: bool,
    pub min_chars: u64,
}

impl Default for LanguageConfig {
    fn default() -> LanguageConfig {
        LanguageConfig { field: "lang".to_owned(), overwrite: true, min_chars: 40 }
    }
}

impl LanguageConfig {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(self) -> Result<LanguageConfig, String> {
        check_name(&self.field).map_err(|why| format!("field: {why}"))?;
        Ok(self)
    }
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Transformation>, String> {
    Ok(Box::new(read::<LanguageConfig>(config)?.check()?))
}

impl Transformation for LanguageConfig {
    fn change(&self, _uri: &str, content: &mut Content) -> Result<(), Refusal> {
        if !self.overwrite && content.fields.contains_key(&self.field) {
            return Ok(());
        }
        let text = &content.facts.text;
        let text = &text[..text.floor_char_boundary(LOOKED_AT_BYTES)];
        if (text.chars().count() as u64) < self.min_chars {
            return Ok(());
        }
        if let Some(found) = detect(text).filter(|it| it.is_reliable()) {
            let code = short(found.lang().code()).to_owned();
            content.fields.insert(self.field.clone(), vec![code]);
        }
        Ok(())
    }
}

/// The two letters of ISO 639-1 for the three of 639-3, as pages declare their language.
fn short(code: &'static str) -> &'static str {
    let found = CODES.iter().find(|it| it.0 == code);
    found.map_or(code, |it| it.1)
}

/// What is not here has no two letters.
const CODES: &[(&str, &str)] = &[
    ("afr", "af"),
    ("aka", "ak"),
    ("amh", "am"),
    ("ara", "ar"),
    ("aze", "az"),
    ("bel", "be"),
    ("ben", "bn"),
    ("bul", "bg"),
    ("cat", "ca"),
    ("ces", "cs"),
    ("cmn", "zh"),
    ("cym", "cy"),
    ("dan", "da"),
    ("deu", "de"),
    ("ell", "el"),
    ("eng", "en"),
    ("epo", "eo"),
    ("est", "et"),
    ("fin", "fi"),
    ("fra", "fr"),
    ("guj", "gu"),
    ("heb", "he"),
    ("hin", "hi"),
    ("hrv", "hr"),
    ("hun", "hu"),
    ("hye", "hy"),
    ("ind", "id"),
    ("ita", "it"),
    ("jav", "jv"),
    ("jpn", "ja"),
    ("kan", "kn"),
    ("kat", "ka"),
    ("khm", "km"),
    ("kor", "ko"),
    ("lat", "la"),
    ("lav", "lv"),
    ("lit", "lt"),
    ("mal", "ml"),
    ("mar", "mr"),
    ("mkd", "mk"),
    ("mya", "my"),
    ("nep", "ne"),
    ("nld", "nl"),
    ("nob", "nb"),
    ("ori", "or"),
    ("pan", "pa"),
    ("pes", "fa"),
    ("pol", "pl"),
    ("por", "pt"),
    ("ron", "ro"),
    ("rus", "ru"),
    ("sin", "si"),
    ("slk", "sk"),
    ("slv", "sl"),
    ("sna", "sn"),
    ("spa", "es"),
    ("srp", "sr"),
    ("swe", "sv"),
    ("tam", "ta"),
    ("tel", "te"),
    ("tgl", "tl"),
    ("tha", "th"),
    ("tuk", "tk"),
    ("tur", "tr"),
    ("ukr", "uk"),
    ("urd", "ur"),
    ("uzb", "uz"),
    ("vie", "vi"),
    ("yid", "yi"),
    ("zul", "zu"),
];

/// Registers the detection with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: &[
        ConfigField {
            name: "field",
            about: "the field that says it, with the two letters of ISO 639-1",
            example: "language",
            default: Some("lang"),
            kind: SettingKind::Text,
        },
        ConfigField {
            name: "overwrite",
            about: "whether it overrides the language that the page declares",
            example: "no",
            default: Some("yes"),
            kind: SettingKind::Flag,
        },
        ConfigField {
            name: "min_chars",
            about: "shorter texts are not examined",
            example: "100",
            default: Some("40"),
            kind: SettingKind::Number { least: 0, most: i64::MAX },
        },
    ],
    check_config: |text| written(&read::<LanguageConfig>(text)?.check()?),
    ..base(ConnectionKind::Transformation, "language", "detects the language of a text")
};

#[cfg(test)]
mod tests {
    use super::*;
    use page::facts::Facts;

    fn lang(config: &LanguageConfig, text: &str, declared: Option<&str>) -> Option<String> {
        let facts = Facts { text: text.to_owned(), ..Facts::default() };
        let mut content = Content { facts, ..Content::default() };
        if let Some(declared) = declared {
            content.fields.insert("lang".into(), vec![declared.into()]);
        }
        config.change("", &mut content).unwrap();
        content.fields.remove(&config.field).map(|mut it| it.remove(0))
    }

    #[test]
    fn the_language_of_a_text_is_told() {
        for (text, expected) in [
            ("The ferry leaves the harbour every morning at eight and comes back at night.", "en"),
            ("Die Fähre verlässt den Hafen jeden Morgen um acht und kommt abends zurück.", "de"),
            ("Le bac quitte le port tous les matins à huit heures et revient le soir.", "fr"),
            ("Паром покидает гавань каждое утро в восемь и возвращается поздно вечером.", "ru"),
            (
                "フェリーは毎朝八時に港を出て、夜になると戻ってきます。天気が悪い日は休みです。",
                "ja",
            ),
        ] {
            let told = lang(&LanguageConfig { min_chars: 20, ..Default::default() }, text, None);
            assert_eq!(told.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_declared_stays_where_the_text_does_not_tell_or_shall_not() {
        let usual = LanguageConfig::default();
        assert_eq!(lang(&usual, "12345 67890", Some("pt")).as_deref(), Some("pt"));
        assert_eq!(lang(&usual, &"1234567890 ".repeat(20), None), None);
        let english =
            "The ferry leaves the harbour every morning at eight and comes back at night.";
        assert_eq!(lang(&usual, english, Some("pt")).as_deref(), Some("en"));
        let kind = LanguageConfig { overwrite: false, ..usual };
        assert_eq!(lang(&kind, english, Some("pt")).as_deref(), Some("pt"));
    }

    #[test]
    fn every_language_has_a_short_code() {
        for lang in whatlang::Lang::all() {
            assert_eq!(short(lang.code()).len(), 2, "{}", lang.code());
        }
    }
}
