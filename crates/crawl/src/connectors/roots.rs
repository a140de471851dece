//! Whether the directories and files that a job names are there, and whether it may read them.
//!
//! A share that is not mounted looks like a directory that is missing or empty. Invariants:
//! neither is taken for a repository whose documents are gone, it is trouble that passes; a path
//! is judged by where it really leads, whatever symbolic links it has.

use crate::repository::LookResult;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path};
use store::catalog::{ConfigField, SettingKind};
use store::{Error, ours};

/// Directories that one connection may name.
const ALLOWED_MAX: usize = 1_000;

/// Directories under which the jobs of a connection may read; without any, they may read
/// wherever this program may.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AllowedRoots(Vec<String>);

impl AllowedRoots {
    /// As a person says it.
    pub const SETTING: ConfigField = ConfigField {
        name: "roots",
        about: "absolute paths of directories; jobs of this connection can read only what is \
             below them. Without any, they can read every file that the program can",
        example: "/srv/docs",
        default: Some(""),
        kind: SettingKind::List,
    };

    /// Whether nothing is said.
    pub fn is_anywhere(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses what cannot be used, with a sentence that names the field.
    pub fn check(mut self) -> Result<AllowedRoots, String> {
        if self.0.len() > ALLOWED_MAX {
            return Err(format!("roots: at most {ALLOWED_MAX} directories can be named"));
        }
        for root in &mut self.0 {
            *root = plain("roots", root)?;
        }
        self.0.sort();
        self.0.dedup();
        Ok(self)
    }

    /// Refuses a job that names other directories in a field. Where these really lead is looked
    /// at when they are read.
    pub fn check_job(&self, field: &str, paths: &[String]) -> Result<(), String> {
        let is_up = |path: &Path| path.components().any(|it| it == Component::ParentDir);
        let is_under = |path: &Path| self.0.iter().any(|root| path.starts_with(root));
        match paths.iter().map(Path::new).find(|it| is_up(it) || !is_under(it)) {
            Some(path) if !self.is_anywhere() => Err(format!(
                "{field}: {} is not under a directory that the connection allows ({}); an \
                 administrator can add it to the connection's roots",
                path.display(),
                self.0.join(", ")
            )),
            _ => Ok(()),
        }
    }

    /// What is said of a path that leads to this program's own data, or out of what is allowed;
    /// `None` of every other.
    pub fn refused(&self, path: &Path) -> Option<LookResult> {
        let trouble = |code, detail: &str| {
            Some(LookResult::Trouble { code, detail: detail.to_owned(), passes: false })
        };
        if ours::is_within(path) {
            return trouble("own-data", ours::REFUSED);
        }
        // What is not there is found to be missing by whoever reads it.
        let real = std::fs::canonicalize(path).ok().filter(|_| !self.is_anywhere())?;
        let mut roots = self.0.iter().filter_map(|root| std::fs::canonicalize(root).ok());
        match roots.any(|root| real.starts_with(root)) {
            true => None,
            false => trouble("outside-roots", "it is under none of the connection's roots"),
        }
    }
}

/// A path as it is stored; it must be absolute.
pub fn plain(field: &str, path: &str) -> Result<String, String> {
    if !path.starts_with('/') {
        return Err(format!(
            "{field}: {path:?} is not absolute; write it from the root on, such as /srv/docs"
        ));
    }
    let plain = path.trim_end_matches('/');
    Ok(if plain.is_empty() { "/" } else { plain }.to_owned())
}

/// Fails while one of the paths cannot be listed or read, or while all of them are empty
/// although documents were found there.
pub fn check_available(paths: &[String], has_documents: bool) -> store::Result<()> {
    let mut is_empty = true;
    for path in paths {
        is_empty &= is_empty_directory(Path::new(path)).map_err(|error| Error::Unavailable {
            what: path.clone(),
            reason: format!("{error} (is a share not mounted?)"),
        })?;
    }
    match is_empty && has_documents {
        false => Ok(()),
        true => Err(Error::Unavailable {
            what: paths.join(", "),
            reason: "it is empty, but the job has documents from it (is a share not mounted? if \
                 all of them are really gone, delete the job)"
                .to_owned(),
        }),
    }
}

/// What it means that a document is missing: that it is gone, or that its repository is.
pub fn missing(paths: &[String]) -> LookResult {
    match check_available(paths, true) {
        Ok(()) => LookResult::Missing,
        Err(error) => {
            LookResult::Trouble { code: "repository", detail: error.to_string(), passes: true }
        }
    }
}

fn is_empty_directory(path: &Path) -> std::io::Result<bool> {
    match std::fs::metadata(path)?.is_dir() {
        true => Ok(std::fs::read_dir(path)?.next().transpose()?.is_none()),
        false => Ok(false),
    }
}
