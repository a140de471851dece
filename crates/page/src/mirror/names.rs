//! Names of a mirror's files: hash names, as in the seed's format, and path names for people.
//!
//! Both are functions of the URL alone, so that a file's name never depends on which other
//! pages there are or came first. Relies on the `url` crate for what a URL means.
//! Invariant: a path name is relative, lies below its directory on every common file system,
//! and differs from that of every other URL, with capitals or without; a file never has the
//! name that another one needs for a directory.

mod path;
#[cfg(test)]
mod tests;

use std::fmt;

use md5::{Digest, Md5};

pub use self::path::{COMPONENT_BYTES_MAX, PATH_BYTES_MAX, path_name};

/// The MD5 of a URL with its fragment: what a document is called in x-files and folders.
///
/// It makes names only; what a file holds is known by its SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HashName([u8; 16]);

impl HashName {
    /// Bytes of a hash name as text.
    pub const TEXT_BYTES: usize = 32;

    /// The name of `url`, byte for byte: with its fragment, and without any clean-up.
    pub fn of(url: &str) -> HashName {
        HashName(Md5::digest(url.as_bytes()).into())
    }

    /// Reads 32 hexadecimal digits, in small letters as they are written.
    pub fn parse(text: &str) -> Option<HashName> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != Self::TEXT_BYTES || !text.bytes().all(is_digit) {
            return None;
        }
        Some(HashName(u128::from_str_radix(text, 16).ok()?.to_be_bytes()))
    }

    /// The folder that its files lie in: the first two digits.
    pub fn directory(&self) -> String {
        format!("{:02x}", self.0[0])
    }

    /// The path of its file below a module's directory: `xx/<hash><suffix>`.
    pub fn path(&self, suffix: &str) -> String {
        format!("{:02x}/{self}{suffix}", self.0[0])
    }

    /// A name as it was stored.
    pub fn from_bytes(bytes: &[u8; 16]) -> HashName {
        HashName(*bytes)
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for HashName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// What a page at `from` writes to refer to the file at `to`, both paths below one directory.
///
/// Percent-encoded as a URL asks; only `?`, `#` and the like need it besides what is no ASCII.
pub fn relative_reference(from: &str, to: &str) -> String {
    let (from_dirs, _) = from.rsplit_once('/').unwrap_or(("", from));
    let from_dirs: Vec<&str> = from_dirs.split('/').filter(|dir| !dir.is_empty()).collect();
    let to_parts: Vec<&str> = to.split('/').collect();
    let dirs = from_dirs.iter().zip(&to_parts[..to_parts.len() - 1]);
    let shared = dirs.take_while(|(from, to)| from == to).count();
    let mut reference = "../".repeat(from_dirs.len() - shared);
    for (at, part) in to_parts[shared..].iter().enumerate() {
        if at > 0 {
            reference.push('/');
        }
        reference.extend(percent_encoding::utf8_percent_encode(part, path::REFERENCE_ESCAPES));
    }
    reference
}
