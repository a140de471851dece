//! A map whose making was cut off by a kill or a power loss.
//!
//! The library makes its first journal, then a marker with its version, and refuses to make
//! a journal that is there already. Invariant: a directory without a marker that says
//! something has never held a row, so that it can be made anew; one with a marker is left
//! as it is.

use crate::{Error, Result};
use std::path::Path;

/// What the library writes last when it makes a map.
const MARKER: &str = "version";
/// What it makes before: files and directories.
const MADE_BEFORE: [&str; 2] = ["0.jnl", "keyspaces"];

/// Takes away what is left of a map that was not made to its end.
pub fn clear(path: &Path) -> Result<()> {
    let marker = path.join(MARKER);
    let io = |error| Error::io(path.display().to_string(), error);
    match std::fs::metadata(&marker) {
        Ok(found) if found.len() > 0 => return Ok(()),
        Ok(_) => std::fs::remove_file(&marker).map_err(io)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(error)),
    }
    for name in MADE_BEFORE {
        let made = path.join(name);
        let removed = match made.is_dir() {
            true => std::fs::remove_dir_all(&made),
            false => std::fs::remove_file(&made),
        };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{EmbeddedMap, MapLocation};
    use super::*;

    #[test]
    fn a_map_that_was_killed_while_it_was_made_is_made_anew() {
        for (files, marker) in [(vec!["0.jnl"], None), (vec!["0.jnl"], Some("")), (vec![], None)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("links");
            std::fs::create_dir_all(path.join("keyspaces")).unwrap();
            for name in &files {
                std::fs::write(path.join(name), b"\0\0\0\0").unwrap();
            }
            if let Some(text) = marker {
                std::fs::write(path.join(MARKER), text).unwrap();
            }
            let place = MapLocation { path: path.clone(), families: &[] };
            drop(EmbeddedMap::open(&place).unwrap());
            // And one that is whole stays as it is.
            let before = std::fs::read(path.join(MARKER)).unwrap();
            clear(&path).unwrap();
            assert_eq!(std::fs::read(path.join(MARKER)).unwrap(), before);
            assert!(path.join("keyspaces").is_dir());
            drop(EmbeddedMap::open(&place).unwrap());
        }
    }
}
