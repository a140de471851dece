//! The example connector: notes that stand in the job itself, one leading to others.
//!
//! A note is written `name | text | the names it leads to`. It hands every note that it
//! leads to its own name, as `mentioned_by`. Invariant: a note's version is its text, so
//! whoever changes the text has it read again.

use super::{content, read, written};
use crate::lifecycle::Model;
use crate::repository::{KnownVersion, LookResult, Read, Reference, Repository};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::carrydown::Data;
use store::tables::connections::ConnectionKind;

/// How a note leads to another.
const MENTION: &str = "mention";

/// What a connection says.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    author: String,
}

/// What a job says.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Spec {
    notes: Vec<String>,
}

impl Spec {
    /// Refuses what cannot be used, with a sentence that names the field.
    fn check(self) -> Result<Spec, String> {
        match self.notes.iter().find(|note| note.split('|').count() != 3) {
            Some(odd) => Err(format!("notes: {odd:?} is not written `name | text | names`")),
            None if self.notes.is_empty() => Err("notes: there must be one".to_owned()),
            None => Ok(self),
        }
    }
}

/// A job at work: its notes by name, each with its text and what it leads to.
struct Notes {
    author: String,
    first: String,
    by_name: BTreeMap<String, (String, Vec<String>)>,
}

impl Repository for Notes {
    fn model(&self) -> Model {
        Model::ChainedAddChange
    }

    fn seed(
        &self,
        _since: Option<&str>,
        _now_ms: i64,
        name: &mut dyn FnMut(String),
    ) -> store::Result<Option<String>> {
        name(self.first.clone());
        Ok(None)
    }

    fn uri(&self, docid: &str) -> String {
        format!("note:{docid}")
    }

    fn carries(&self) -> bool {
        true
    }

    fn look(&self, docid: &str, known: KnownVersion<'_>) -> LookResult {
        let Some((text, names)) = self.by_name.get(docid) else { return LookResult::Missing };
        let version = format!("{text} by {}", self.author);
        if known.version == Some(version.as_str()) && names.is_empty() {
            // What leads to others names them again, so that they are found in every run.
            return LookResult::Same;
        }
        let mut facts = content::facts(&self.uri(docid), Some("text/plain"), version.as_bytes());
        facts.title = docid.to_owned();
        let reference = |name: &String| Reference {
            docid: name.clone(),
            link: MENTION,
            data: Data::from([("mentioned_by".to_owned(), [docid.to_owned()].into())]),
        };
        LookResult::Read(Box::new(Read {
            body: Bytes::from(version.clone()),
            version,
            facts,
            fields: Data::new(),
            modified_ms: None,
            references: names.iter().map(reference).collect(),
        }))
    }
}

/// A repository of a connection's configuration and a job's specification.
pub fn repository(config: &str, docspec: &str) -> Result<Arc<dyn Repository>, String> {
    let Config { author } = read(config)?;
    let mut notes = Notes { author, first: String::new(), by_name: BTreeMap::new() };
    for note in read::<Spec>(docspec)?.check()?.notes {
        let mut pieces = note.split('|').map(|piece| piece.trim().to_owned());
        let mut next = || pieces.next().unwrap_or_default();
        let (name, text, names) = (next(), next(), next());
        let names = names.split_whitespace().map(str::to_owned).collect();
        if notes.by_name.is_empty() {
            notes.first = name.clone();
        }
        notes.by_name.insert(name, (text, names));
    }
    Ok(Arc::new(notes))
}

/// Registers the example with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    kind: ConnectionKind::Repository,
    name: "example",
    about: "notes that stand in the job itself",
    settings: &[ConfigField {
        name: "author",
        about: "who writes the notes",
        example: "Ada",
        default: Some(""),
        kind: SettingKind::Text,
    }],
    not_destination: &[],
    spec: &[ConfigField {
        name: "notes",
        about: "notes, each written `name | text | the names it leads to`; the first is the seed",
        example: "home | Welcome | garden shed",
        default: None,
        kind: SettingKind::List,
    }],
    link_types: &[MENTION],
    takes_bodies: false,
    takes_requisites: false,
    check_config: |text| written(&read::<Config>(text)?),
    check_spec: |text| written(&read::<Spec>(text)?.check()?),
    check_job: None,
    install: None,
    deinstall: None,
};
