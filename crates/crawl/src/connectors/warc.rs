//! The warc connector: the pages that WARC and WAT archives hold.
//!
//! Archives lead to the pages that were captured in them, and hand each of these where its
//! capture is; a page is a document at its URL, and is what its newest capture says.
//! Invariant: whatever is stored as a specification has passed [`WarcSpec::check`].

pub mod archive;
mod work;

use super::roots::{self, AllowedRoots};
use super::{read, written};
use crate::repository::Repository;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::catalog::{ConfigField, Connector, Searchable, SettingKind};
use store::tables::connections::ConnectionKind;

/// Paths of one job.
const PATHS_MAX: usize = 1_000;

/// A warc connection's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WarcConfig {
    /// Where its jobs may read.
    #[serde(skip_serializing_if = "AllowedRoots::is_anywhere")]
    pub roots: AllowedRoots,
}

/// A warc job's document specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WarcSpec {
    /// Absolute paths of archives, or of directories with archives anywhere under them.
    pub paths: Vec<String>,
    /// Whether its documents can be searched.
    #[serde(skip_serializing_if = "Searchable::is_usual")]
    pub search: Searchable,
}

impl WarcSpec {
    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(mut self) -> Result<WarcSpec, String> {
        if self.paths.is_empty() || self.paths.len() > PATHS_MAX {
            return Err(format!("paths: a job has 1 to {PATHS_MAX} archives or directories"));
        }
        for path in &mut self.paths {
            *path = roots::plain("paths", path)?;
        }
        self.paths.sort();
        self.paths.dedup();
        Ok(self)
    }
}

/// A repository of a job's specification.
pub fn repository(config: &str, docspec: &str) -> Result<Arc<dyn Repository>, String> {
    let allowed = read::<WarcConfig>(config)?.roots;
    let spec = read::<WarcSpec>(docspec)?.check()?;
    allowed.check_job("paths", &spec.paths)?;
    Ok(Arc::new(work::Archives::new(spec, allowed)))
}

/// What the program knows of this connector.
pub const CONNECTOR: Connector = Connector {
    kind: ConnectionKind::Repository,
    name: "warc",
    about: "pages in WARC and WAT archives on this machine",
    settings: &[AllowedRoots::SETTING],
    not_destination: &[],
    spec: &[
        ConfigField {
            name: "paths",
            about: "absolute paths of archives (.warc, .warc.gz, .wat, .wat.gz), or of \
                    directories with archives under them",
            example: "/srv/archives",
            default: None,
            kind: SettingKind::List,
        },
        Searchable::SETTING,
    ],
    link_types: &[work::CHILD, work::RECORD],
    takes_bodies: false,
    takes_requisites: false,
    check_config: |text| {
        let config = read::<WarcConfig>(text)?;
        written(&WarcConfig { roots: config.roots.check()? })
    },
    check_spec: |text| written(&read::<WarcSpec>(text)?.check()?),
    check_job: Some(|config, docspec| {
        let spec: WarcSpec = read(docspec)?;
        read::<WarcConfig>(config)?.roots.check_job("paths", &spec.paths)
    }),
    install: None,
    deinstall: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain_and_must_be_absolute() {
        let check = CONNECTOR.check_spec;
        assert_eq!(check(r#"{"paths": ["/b/", "/a", "/b"]}"#).unwrap(), r#"{"paths":["/a","/b"]}"#);
        for (text, word) in [
            ("{}", "paths"),
            (r#"{"paths": ["archives"]}"#, "absolute"),
            (r#"{"path": ["/a"]}"#, "path"),
        ] {
            let refused = check(text).unwrap_err();
            assert!(refused.contains(word), "{text}: {refused}");
        }
    }
}
