//! The files connector: the files under some directories, changes told by time and size
//! or by hash.
//!
//! Invariant: whatever is stored as a specification has passed [`FilesSpec::check`].

pub mod work;

use super::roots::{self, AllowedRoots};
use super::{read, written};
use crate::repository::Repository;
use regex::RegexSetBuilder;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::catalog::{ConfigField, Connector, Searchable, SettingKind};
use store::tables::connections::ConnectionKind;

/// Directories of one job.
pub const ROOTS_MAX: usize = 1_000;
/// Expressions of one kind.
const PATTERNS_MAX: usize = 1_000;
/// Bytes a compiled set of expressions may take.
const PATTERNS_BYTES_MAX: usize = 1 << 20;
/// The largest file that a job may ask for: 1 GB.
pub const MAX_BYTES_MOST: i64 = 1 << 30;

/// A files connection's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Where its jobs may read.
    #[serde(skip_serializing_if = "AllowedRoots::is_anywhere")]
    pub roots: AllowedRoots,
}

/// How a change is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// Another time of change or another size; nothing is read for it.
    #[default]
    #[serde(rename = "time and size")]
    TimeAndSize,
    /// Another hash; every file is read.
    #[serde(rename = "hash")]
    Hash,
}

/// A files job's document specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesSpec {
    /// Absolute directories; everything under them belongs.
    pub roots: Vec<String>,
    /// If there are any, a file's path must match one of these.
    pub include: Vec<String>,
    /// A file or directory whose path matches one of these is left out.
    pub exclude: Vec<String>,
    /// How a change is told.
    pub by: By,
    /// Whether symbolic links are followed.
    pub follow_links: bool,
    /// A larger file is known by its name only.
    pub max_bytes: i64,
    /// Whether its documents can be searched.
    #[serde(skip_serializing_if = "Searchable::is_usual")]
    pub search: Searchable,
}

impl Default for FilesSpec {
    fn default() -> FilesSpec {
        FilesSpec {
            roots: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            by: By::default(),
            follow_links: false,
            max_bytes: 10 << 20,
            search: Searchable::default(),
        }
    }
}

impl FilesSpec {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(mut self) -> Result<FilesSpec, String> {
        if self.roots.is_empty() {
            return Err("roots: a job needs at least one directory".to_owned());
        }
        if self.roots.len() > ROOTS_MAX {
            return Err(format!("roots: at most {ROOTS_MAX} directories can be named"));
        }
        for root in &mut self.roots {
            *root = roots::plain("roots", root)?;
        }
        self.roots.sort();
        self.roots.dedup();
        for (name, patterns) in [("include", &self.include), ("exclude", &self.exclude)] {
            if patterns.len() > PATTERNS_MAX {
                return Err(format!("{name}: at most {PATTERNS_MAX} expressions can be given"));
            }
            RegexSetBuilder::new(patterns)
                .size_limit(PATTERNS_BYTES_MAX)
                .build()
                .map_err(|error| format!("{name}: {error}"))?;
        }
        if !(1..=MAX_BYTES_MOST).contains(&self.max_bytes) {
            return Err(format!(
                "max_bytes is {}, but must be from 1 to {MAX_BYTES_MOST}",
                self.max_bytes
            ));
        }
        Ok(self)
    }
}

/// A repository of a job's specification.
pub fn repository(config: &str, docspec: &str) -> Result<Arc<dyn Repository>, String> {
    let allowed = read::<FilesConfig>(config)?.roots;
    let spec = read::<FilesSpec>(docspec)?.check()?;
    allowed.check_job("roots", &spec.roots)?;
    Ok(Arc::new(work::FilesRepository::new(spec, allowed)?))
}

/// What the program knows of this connector.
pub const CONNECTOR: Connector = Connector {
    kind: ConnectionKind::Repository,
    name: "files",
    about: "files in directories of this machine",
    settings: &[AllowedRoots::SETTING],
    not_destination: &[],
    spec: &[
        ConfigField {
            name: "roots",
            about: "absolute paths of directories; everything below them is included",
            example: "/srv/docs",
            default: None,
            kind: SettingKind::List,
        },
        ConfigField {
            name: "include",
            about: "only files whose path matches one of these regular expressions",
            example: r"\.(html|txt)$",
            default: Some(""),
            kind: SettingKind::List,
        },
        ConfigField {
            name: "exclude",
            about: "skip files and directories whose path matches one of these regular expressions",
            example: r"/\.git/",
            default: Some(""),
            kind: SettingKind::List,
        },
        ConfigField {
            name: "by",
            about: "how changes are detected; a hash requires reading every file",
            example: "hash",
            default: Some("time and size"),
            kind: SettingKind::Choice(&["time and size", "hash"]),
        },
        ConfigField {
            name: "follow_links",
            about: "whether symbolic links are followed",
            example: "no",
            default: Some("no"),
            kind: SettingKind::Flag,
        },
        ConfigField {
            name: "max_bytes",
            about: "of larger files only the name is indexed",
            example: "1000000",
            default: Some("10485760"),
            kind: SettingKind::Number { least: 1, most: MAX_BYTES_MOST },
        },
        Searchable::SETTING,
    ],
    link_types: &["child"],
    takes_bodies: false,
    takes_requisites: false,
    check_config: |text| {
        let config = read::<FilesConfig>(text)?;
        written(&FilesConfig { roots: config.roots.check()? })
    },
    check_spec: |text| written(&read::<FilesSpec>(text)?.check()?),
    check_job: Some(|config, docspec| {
        let spec: FilesSpec = read(docspec)?;
        read::<FilesConfig>(config)?.roots.check_job("roots", &spec.roots)
    }),
    install: None,
    deinstall: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_made_plain_and_what_cannot_be_used_names_its_field() {
        let check = CONNECTOR.check_spec;
        let made = check(r#"{"roots": ["/b/", "/a", "/b"], "by": "hash"}"#).unwrap();
        let spec: FilesSpec = serde_json::from_str(&made).unwrap();
        assert_eq!((spec.roots, spec.by), (vec!["/a".to_owned(), "/b".to_owned()], By::Hash));
        for (text, field) in [
            ("{}", "roots"),
            (r#"{"roots": ["docs"]}"#, "docs"),
            (r#"{"roots": ["/"], "include": ["("]}"#, "include"),
            (r#"{"roots": ["/"], "by": "mood"}"#, "mood"),
            (r#"{"roots": ["/"], "max_bytes": 0}"#, "max_bytes"),
            (r#"{"rots": ["/"]}"#, "rots"),
        ] {
            let refused = check(text).unwrap_err();
            assert!(refused.contains(field), "{text}: {refused}");
        }
    }
}
