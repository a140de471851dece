//! What a connector says of itself: plain data, from which help, forms, checks and
//! documents are made.
//!
//! A connector is one file with one [`Connector`] in it and one line in its crate's
//! list; this module knows none of them. Invariant: whatever is stored as a
//! configuration or a specification has passed the connector's own check.

use crate::tables::connections::ConnectionKind;
use crate::{Result, Tx};
use serde::{Deserialize, Serialize};

/// A kind of repository, output, authority …, as the program has it.
#[derive(Debug, Clone, Copy)]
pub struct Connector {
    /// What it connects to.
    pub kind: ConnectionKind,
    /// Its name, unique within its kind: `connections.classname`.
    pub name: &'static str,
    /// What it is for, in a sentence without a full stop.
    pub about: &'static str,
    /// What a connection says: its configuration.
    pub settings: &'static [ConfigField],
    /// Names of those settings that do not say where its secrets go, or how they get there. A
    /// stored secret stays only while all others stay; so one that is forgotten here costs a
    /// password that has to be given again, and never one that is led elsewhere.
    pub not_destination: &'static [&'static str],
    /// What a job says: its document or output specification.
    pub spec: &'static [ConfigField],
    /// The kinds of links between its documents, which hop filters can limit.
    pub link_types: &'static [&'static str],
    /// Whether an output takes the bytes of documents; jobs that have it keep them.
    pub takes_bodies: bool,
    /// Whether an output takes what pages need to be shown (style sheets, images, fonts); jobs that
    /// have it fetch them.
    pub takes_requisites: bool,
    /// Checks a configuration: JSON in, the same with all fields out.
    pub check_config: Check,
    /// Checks a specification, likewise.
    pub check_spec: Check,
    /// Refuses a job that its connection does not allow; `None` allows all.
    pub check_job: Option<CheckJob>,
    /// Makes the connector's own tables, if they are not there.
    pub install: Option<Installation>,
    /// The tables that go when the connector is deregistered.
    pub deinstall: Option<Installation>,
}

/// Checks JSON of a connector and fills in what it leaves out. The error is a sentence
/// that names the field.
pub type Check = fn(&str) -> std::result::Result<String, String>;
/// Checks the JSON of a configuration and, behind it, of a job's specification, each of which has
/// been checked by itself. The error is a sentence that names the field.
pub type CheckJob = fn(&str, &str) -> std::result::Result<(), String>;
/// Makes or drops what a connector keeps for itself.
pub type Installation = fn(&mut Tx<'_>) -> Result<()>;

/// One field of a configuration or a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ConfigField {
    /// Its name; a field within a field is written `scope.reach`.
    pub name: &'static str,
    /// What it does, in a sentence without a full stop.
    pub about: &'static str,
    /// A value as a person types it.
    pub example: &'static str,
    /// What holds when nothing is said, as a person types it; `None` when something must
    /// be said, or nothing is the default.
    pub default: Option<&'static str>,
    pub kind: SettingKind,
}

/// Whether a job's documents can be searched: they can, unless it says no. Every connector
/// of repositories has this among its specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Searchable(pub bool);

impl Searchable {
    /// As a person says it.
    pub const SETTING: ConfigField = ConfigField {
        name: "search",
        about: "whether its documents can be searched",
        example: "no",
        default: Some("yes"),
        kind: SettingKind::Flag,
    };

    /// What a specification says of it, whatever else it says; `None` if it cannot be read.
    pub fn of(spec: &str) -> Option<Searchable> {
        #[derive(Deserialize)]
        struct SearchableSpec {
            #[serde(default)]
            search: Searchable,
        }
        serde_json::from_str::<SearchableSpec>(spec).ok().map(|read| read.search)
    }

    /// Whether nothing has to be said.
    pub fn is_usual(&self) -> bool {
        self.0
    }
}

impl Default for Searchable {
    fn default() -> Searchable {
        Searchable(true)
    }
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SettingKind {
    Text,
    Number {
        least: i64,
        most: i64,
    },
    Flag,
    /// A span of time, typed with its unit (`500ms`, `2s`, `5min`, `1h`), kept in
    /// milliseconds.
    Seconds,
    Choice(&'static [&'static str]),
    /// Texts; each is given by itself.
    List,
    /// A text that is shown to nobody.
    Secret,
}
