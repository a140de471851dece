//! SHA-256 of what a mirror holds: the name of its blobs, listings and requisites.

use page::mirror::ContentDigest;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, Write};

/// A SHA-256.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Reads 64 hexadecimal digits, in small letters as they are written.
    pub fn parse(text: &str) -> Option<Digest> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?;
        Some(Digest(bytes.try_into().ok()?))
    }

    /// The path of its file below a directory: `xx/<digest>`.
    pub fn path(&self) -> String {
        format!("{:02x}/{self}", self.0[0])
    }

    /// The first eight bytes, by which sweeping knows it.
    pub(super) fn short(&self) -> u64 {
        u64::from_be_bytes(self.0[..8].try_into().expect("it has 32 bytes"))
    }
}

impl From<Digest> for ContentDigest {
    fn from(digest: Digest) -> ContentDigest {
        ContentDigest::from_bytes(digest.0)
    }
}

impl From<ContentDigest> for Digest {
    fn from(digest: ContentDigest) -> Digest {
        Digest(*digest.as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Passes on what is written, and knows its digest and length.
pub(super) struct Digesting<W> {
    inner: W,
    hash: Sha256,
    length: u64,
}

impl<W: Write> Digesting<W> {
    pub(super) fn new(inner: W) -> Digesting<W> {
        Digesting { inner, hash: Sha256::new(), length: 0 }
    }

    /// What was written to, its digest and its length.
    pub(super) fn finish(self) -> Digested<W> {
        Digested {
            inner: self.inner,
            digest: Digest(self.hash.finalize().into()),
            length: self.length,
        }
    }
}

/// What has been written.
pub(super) struct Digested<W> {
    pub(super) inner: W,
    pub(super) digest: Digest,
    pub(super) length: u64,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
