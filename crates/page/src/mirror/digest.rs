//! SHA-256: what a file holds, whatever it is called.

use std::fmt;

use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> ContentDigest {
        ContentDigest(Sha256::digest(bytes).into())
    }

    /// A digest that was computed elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> ContentDigest {
        ContentDigest(bytes)
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 hexadecimal digits, in small letters as they are written.
    pub fn parse(text: &str) -> Option<ContentDigest> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_digit) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(ContentDigest(bytes))
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_in_hex_and_read_again() {
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(ContentDigest::of(b"").to_string(), text);
        assert_eq!(ContentDigest::parse(text), Some(ContentDigest::of(b"")));
        for wrong in ["", &text[1..], &text.to_uppercase(), &text.replace('e', "g")] {
            assert_eq!(ContentDigest::parse(wrong), None, "{wrong}");
        }
    }
}
