//! What belongs to this program itself, and therefore is never a source of documents: its data
//! directory, its database, its objects and its keys.
//!
//! Whoever may define jobs could otherwise have the master key indexed and search for it. Files
//! are known by device and inode, so that no other name leads to them: not a symbolic link, not
//! `..`, not a second mount of the same directory. Databases are known by the random name that
//! every installation has. Invariant: whatever this process has opened is here before any job
//! begins; nothing is ever taken out again.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What is said of something that is ours.
pub const REFUSED: &str = "it belongs to Driftline itself, whose own data is never a source";

/// A file or a directory: its device, its inode, and when it was made, since the number of one that
/// was removed is given out again.
type FileId = (u64, u64, Option<SystemTime>);

#[derive(Default)]
struct Ours {
    files: BTreeSet<FileId>,
    /// Databases, by the name of their installation.
    installations: BTreeSet<[u8; 16]>,
}

static OURS: LazyLock<Mutex<Ours>> = LazyLock::new(Mutex::default);

fn ours() -> MutexGuard<'static, Ours> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino(), metadata.created().ok())
}

/// Notes that a file or a directory, with all that is in it, is ours. What is not there is not.
pub fn claim(path: &Path) {
    if let Ok(metadata) = path.metadata() {
        ours().files.insert(id(&metadata));
    }
}

/// Notes that the database of an installation is ours.
pub fn claim_installation(name: [u8; 16]) {
    ours().installations.insert(name);
}

/// Whether a file or a directory itself is ours.
pub fn is_ours(metadata: &Metadata) -> bool {
    ours().files.contains(&id(metadata))
}

/// Whether a path leads to something of ours, or into it, by whatever name.
pub fn is_within(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    real.ancestors().any(|it| it.metadata().is_ok_and(|found| is_ours(&found)))
}

/// Whether the database of an installation is ours.
pub fn is_installation(name: [u8; 16]) -> bool {
    ours().installations.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_is_known_by_every_name_that_leads_to_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("data/objects")).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("data/secrets.key"), "k").unwrap();
        assert!(!is_within(&at("data")), "nobody has opened it");
        claim(&at("data"));
        claim(&at("nothing"));
        std::os::unix::fs::symlink(at("data"), at("link")).unwrap();
        std::fs::hard_link(at("data/secrets.key"), at("other/hard")).unwrap();
        for name in
            ["data", "data/objects", "data/secrets.key", "link", "link/objects", "other/../data"]
        {
            assert!(is_within(&at(name)), "{name}");
        }
        for name in ["other", "other/hard", "", "nothing"] {
            assert!(!is_within(&at(name)), "{name}");
        }
        claim(&at("data/secrets.key"));
        assert!(is_within(&at("other/hard")), "the file itself is known, too");
    }
}
