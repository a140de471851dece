//! A mirror of a map's directory, for a map that cannot be written where it is.
//!
//! The library writes when it opens a map: a lock, a journal, the files that nobody needs any
//! more. Relies on its tables being written once. Invariant: nothing of the original is changed,
//! and the mirror holds what the original did, at the cost of its journals and small files.

use crate::{Error, Result};
use std::path::Path;

/// The folder whose files are written once and never changed.
const TABLES: &str = "tables";
/// Folders within folders of a map.
const DEPTH_MAX: usize = 8;

/// Fills a directory with links to the files that never change, and copies of the others.
pub(super) fn fill(from: &Path, to: &Path) -> Result<()> {
    let mut folders = vec![(from.to_owned(), to.to_owned(), 0)];
    while let Some((from, to, depth)) = folders.pop() {
        let failed = |error| Error::io(&from, error);
        std::fs::create_dir_all(&to).map_err(|error| Error::io(&to, error))?;
        let is_unchanging = from.file_name().is_some_and(|name| name == TABLES);
        for entry in std::fs::read_dir(&from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            if path.is_dir() && depth < DEPTH_MAX {
                folders.push((path, target, depth + 1));
                continue;
            }
            let made = match is_unchanging {
                true => path.canonicalize().and_then(|it| std::os::unix::fs::symlink(it, &target)),
                false => std::fs::copy(&path, &target).map(|_| ()),
            };
            made.map_err(|error| Error::io(&target, error))?;
        }
    }
    Ok(())
}
