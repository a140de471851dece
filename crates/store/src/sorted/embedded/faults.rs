//! What the library's errors mean for whoever uses a map.

use crate::{Error, disk};
use std::path::Path;

/// A full disk is a reason to wait; a map that another process has open is one to ask it. The
/// library wraps what the system said, or keeps to itself that a write failed.
pub fn fault(path: &Path, error: fjall::Error) -> Error {
    let what = path.display().to_string();
    match error {
        fjall::Error::Io(error) => Error::io(path, error),
        fjall::Error::Locked => Error::InUse { path: what, owner: "unknown".into() },
        fjall::Error::Poisoned => disk::trouble(path).unwrap_or_else(|| {
            let reason = "a write failed before; it is opened again with the next one";
            Error::Io { path: what, error: std::io::Error::other(reason) }
        }),
        error => match inner_io(&error) {
            Some(io) => Error::io(path, io),
            None => disk::trouble(path)
                .unwrap_or_else(|| Error::Corrupt { what, reason: error.to_string() }),
        },
    }
}

/// The error of the system that a library's error is about.
fn inner_io(error: &(dyn std::error::Error + 'static)) -> Option<std::io::Error> {
    let mut sources = std::iter::successors(error.source(), |inner| inner.source());
    let io = sources.find_map(|inner| inner.downcast_ref::<std::io::Error>())?;
    Some(match io.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::new(io.kind(), io.to_string()),
    })
}
