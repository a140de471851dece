//! Whether the directories and files that a job names are there.
//!
//! A share that is not mounted looks like a directory that is missing or empty. Invariant:
//! neither is taken for a repository whose documents are gone; it is trouble that passes.

use crate::repository::Looked;
use std::path::Path;
use store::{Error, ours};

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
            reason: "it is empty, though the job has documents of it (is a share not mounted? if \
                     all of them are really gone, delete the job)"
                .to_owned(),
        }),
    }
}

/// What is said of a path that leads to this program's own data; `None` of every other.
pub fn refused(path: &Path) -> Option<Looked> {
    ours::is_within(path).then(|| Looked::Trouble {
        code: "own-data",
        detail: ours::REFUSED.to_owned(),
        passes: false,
    })
}

/// What it means that a document is missing: that it is gone, or that its repository is.
pub fn missing(paths: &[String]) -> Looked {
    match check_available(paths, true) {
        Ok(()) => Looked::Missing,
        Err(error) => {
            Looked::Trouble { code: "repository", detail: error.to_string(), passes: true }
        }
    }
}

fn is_empty_directory(path: &Path) -> std::io::Result<bool> {
    match std::fs::metadata(path)?.is_dir() {
        true => Ok(std::fs::read_dir(path)?.next().transpose()?.is_none()),
        false => Ok(false),
    }
}
