//! How far a file is loaded, as the index remembers it with the effect.
//!
//! Invariant: a mark counts only for the bytes it was made of: for a file of the same size
//! and time of change, loaded by the same policy. Any other begins anew, which the dates of
//! captures make harmless.

use ::crawl::connectors::warc::archive::stream::Spot;
use page::ids::hash128;
use page::outlinks::LinkPolicy;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Marks of other versions are not read.
const VERSION: u32 = 1;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub size_bytes: u64,
    /// When it was changed.
    pub modified_ns: i64,
}

/// How far a file is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    version: u32,
    stamp: Stamp,
    policy: LinkPolicy,
    /// Records that are done.
    pub records: u64,
    offset: u64,
    passed: u64,
    /// Whether that is all.
    pub finished: bool,
}

impl FileMark {
    /// Of a file of which nothing is loaded.
    pub fn new(stamp: Stamp, policy: LinkPolicy) -> FileMark {
        let finished = false;
        FileMark { version: VERSION, stamp, policy, records: 0, offset: 0, passed: 0, finished }
    }

    /// The mark that was kept, if it is one of this file as it is now.
    pub fn read(kept: &[u8], stamp: Stamp, policy: LinkPolicy) -> Option<FileMark> {
        let mark: FileMark = serde_json::from_slice(kept).ok()?;
        let is_it = (mark.version, mark.stamp, mark.policy) == (VERSION, stamp, policy);
        is_it.then_some(mark)
    }

    /// As it is kept.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and names can be written as JSON")
    }

    /// Where the next record begins.
    pub fn spot(&self) -> Spot {
        Spot { offset: self.offset, passed: self.passed }
    }

    /// One more record is done.
    pub fn step(&mut self, behind: Spot) {
        self.records += 1;
        (self.offset, self.passed) = (behind.offset, behind.passed);
    }
}

/// What the mark of a file is called in the index. Links are resolved before.
pub fn key(path: &Path) -> Vec<u8> {
    hash128(path.as_os_str().as_bytes()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_for_the_file_and_the_policy_it_was_made_of() {
        let stamp = Stamp { size_bytes: 7, modified_ns: -1 };
        let mut mark = FileMark::new(stamp, LinkPolicy::External);
        mark.step(Spot { offset: 5, passed: 0 });
        mark.step(Spot { offset: 5, passed: 1 });
        let kept = mark.encode();
        let read = FileMark::read(&kept, stamp, LinkPolicy::External);
        assert_eq!(read.as_ref(), Some(&mark));
        assert_eq!((mark.records, mark.spot()), (2, Spot { offset: 5, passed: 1 }));
        assert_eq!(FileMark::read(&kept, stamp, LinkPolicy::All), None);
        for other in [Stamp { size_bytes: 8, ..stamp }, Stamp { modified_ns: 0, ..stamp }] {
            assert_eq!(FileMark::read(&kept, other, LinkPolicy::External), None);
        }
        let newer = FileMark { version: VERSION + 1, ..mark };
        assert_eq!(FileMark::read(&newer.encode(), stamp, LinkPolicy::External), None);
        assert_eq!(FileMark::read(b"x", stamp, LinkPolicy::External), None);
    }
}
