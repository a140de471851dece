//! Names of objects, and the keys of chunks they are made from.
//!
//! Invariant: an [`ObjectPath`] holds only lower-case letters, digits, `.`, `_`,
//! `-` and `/`, and no segment begins with a dot. So it means the same on every
//! file system and in every bucket, and cannot leave its root.

use std::fmt;

use crate::ids::{ChunkId, ObjectId, Part};
use crate::{Error, Result};

/// Bytes of a whole path. S3 allows 1024; ours are far shorter.
const PATH_BYTES_MAX: usize = 256;
/// Segments of a path.
const SEGMENTS_MAX: usize = 8;

/// A chunk: the part it belongs to, and its number in that part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct ChunkKey {
    pub part: u32,
    /// The chunk's id, unique in its part.
    pub id: i64,
}

impl ChunkKey {
    /// The key of a chunk as the rows name it.
    pub fn new(part: Part, chunk: ChunkId) -> Result<ChunkKey> {
        let part = u32::try_from(part.0)
            .map_err(|_| Error::corrupt("a chunk's key", format!("there is no part {part}")))?;
        Ok(ChunkKey { part, id: chunk.0 })
    }
}

impl fmt::Display for ChunkKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.part, self.id)
    }
}

/// Where an object lives, relative to the root of its store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectPath(String);

impl ObjectPath {
    /// What the paths below begin with; the part's number follows.
    pub const ROOTS: [&'static str; 3] = ["chunks", "packs", "shards"];

    /// The facts of one chunk.
    pub fn facts(chunk: ChunkKey) -> ObjectPath {
        ObjectPath(format!("chunks/{}/{}.facts", chunk.part, non_negative(chunk.id)))
    }

    /// The bodies of one chunk.
    pub fn bodies(chunk: ChunkKey) -> ObjectPath {
        ObjectPath(format!("chunks/{}/{}.warc.zst", chunk.part, non_negative(chunk.id)))
    }

    /// The bodies of one chunk after they were rewritten, as another object.
    pub fn rewritten_bodies(chunk: ChunkKey, object: ObjectId) -> ObjectPath {
        let (id, object) = (non_negative(chunk.id), non_negative(object.0));
        ObjectPath(format!("chunks/{}/{id}-{object}.warc.zst", chunk.part))
    }

    /// The facts of many small chunks, packed.
    pub fn pack(part: u32, id: i64) -> ObjectPath {
        ObjectPath(format!("packs/{part}/{}.facts", non_negative(id)))
    }

    /// A file of a search shard, which is named as the index names it.
    pub fn shard(part: Part, object: ObjectId, name: &str) -> Result<ObjectPath> {
        ObjectPath::parse(&format!("shards/{part}/{}-{name}", non_negative(object.0)))
    }

    /// A path from text, as a row or another module holds it.
    pub fn parse(text: &str) -> Result<ObjectPath> {
        match fault_of(text) {
            None => Ok(ObjectPath(text.to_owned())),
            Some(fault) => {
                let path = text.chars().take(PATH_BYTES_MAX).collect();
                Err(Error::Object { path, reason: format!("not a path of ours: {fault}") })
            }
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A minus sign is a legal byte, but an id below zero is a bug of ours.
fn non_negative(id: i64) -> i64 {
    assert!(id >= 0, "ids of chunks and objects begin at 0, not {id}");
    id
}

fn fault_of(text: &str) -> Option<&'static str> {
    let allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-')
    };
    if text.is_empty() || text.len() > PATH_BYTES_MAX {
        return Some("it is empty or too long");
    }
    if text.split('/').count() > SEGMENTS_MAX {
        return Some("it has too many segments");
    }
    for segment in text.split('/') {
        if segment.is_empty() || segment.starts_with('.') {
            return Some("a segment is empty or begins with a dot");
        }
        if !segment.bytes().all(allowed) {
            return Some("a byte is not a lower-case letter, digit, '.', '_' or '-'");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_chunks_are_frozen() {
        let chunk = ChunkKey { part: 7, id: 4_000_000_000 };
        assert_eq!(ObjectPath::facts(chunk).as_str(), "chunks/7/4000000000.facts");
        assert_eq!(ObjectPath::bodies(chunk).as_str(), "chunks/7/4000000000.warc.zst");
        assert_eq!(ObjectPath::pack(7, 12).as_str(), "packs/7/12.facts");
        let rewritten = ObjectPath::rewritten_bodies(chunk, ObjectId(9));
        assert_eq!(rewritten.as_str(), "chunks/7/4000000000-9.warc.zst");
    }

    #[test]
    fn what_we_make_we_accept() {
        for path in [ObjectPath::facts(ChunkKey { part: 0, id: 0 }), ObjectPath::pack(1, 2)] {
            assert_eq!(ObjectPath::parse(path.as_str()).unwrap(), path);
            let root = path.as_str().split('/').next().unwrap();
            assert!(ObjectPath::ROOTS.contains(&root), "{path}");
        }
    }

    #[test]
    fn paths_that_could_leave_the_root_or_differ_by_file_system_are_refused() {
        let long = "a".repeat(257);
        let deep = "a/".repeat(8) + "a";
        for text in [
            "",
            "/",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "a/./b",
            ".hidden",
            "a/.b",
            "A",
            "a b",
            "a\\b",
            "a\0b",
            "a#1",
            "a%2e",
            "c:/x",
            "ü",
            &long,
            &deep,
        ] {
            assert!(ObjectPath::parse(text).is_err(), "{text:?} must be refused");
        }
    }
}
