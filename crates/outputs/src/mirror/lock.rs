//! The lock of a mirror: one process works on it.
//!
//! Invariant: an operating-system lock, which ends with the process however it ends; the number
//! in the file is a help for people.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use store::{Error, Result};

const LOCK: &str = "lock";
/// Bytes of the owner's name that are shown.
const OWNER_BYTES_MAX: u64 = 64;
const MODE: u32 = 0o666;

pub(super) struct Lock {
    file: File,
}

impl Lock {
    pub(super) fn take(dir: &Path) -> Result<Lock> {
        let path = dir.join(LOCK);
        let failed = |error| Error::io(&path, error);
        let mut file = store::beneath::open_or_make(&path, MODE).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(dir, &path)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(Lock { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that another thread is just starting has the file open too.
        let _ = self.file.unlock();
    }
}

fn in_use(dir: &Path, path: &Path) -> Error {
    let mut owner = String::new();
    let _ = File::open(path).and_then(|file| file.take(OWNER_BYTES_MAX).read_to_string(&mut owner));
    let owner = match owner.trim() {
        "" => "another process".to_owned(),
        number => format!("process {number}"),
    };
    Error::Refused(format!(
        "{owner} is working on the mirror in {}; wait until it has finished, or stop it",
        dir.display()
    ))
}
