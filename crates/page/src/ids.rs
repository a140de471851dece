//! Names for things: 128-bit document keys, bins, and the part a document lives in.
//!
//! Invariant: all of these are pure functions of their input, frozen for ever.
//! A data directory made by one version must find its documents with the next,
//! so a change here is a format change.

/// The 128-bit key of a document: a hash of its identifier.
///
/// 128 bits, because a crafted 64-bit collision would hide a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocHash(pub [u8; 16]);

impl DocHash {
    /// The key of a document identifier (for the web: the canonical URL).
    pub fn of(identifier: &str) -> DocHash {
        DocHash(hash128(identifier.as_bytes()))
    }

    /// Lower-case hex, as tables and messages show it.
    pub fn to_hex(self) -> String {
        use std::fmt::Write;
        self.0.iter().fold(String::with_capacity(32), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
    }
}

/// The first 128 bits of BLAKE3: what documents, contents and values are keyed by.
pub fn hash128(bytes: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    out
}

/// The number a bin (for the web: a host) goes by in tables.
///
/// Two bins that collide share one politeness clock, which is harmless; so 63
/// bits, which fit a signed column, are enough here.
pub fn bin_of(name: &str) -> i64 {
    let hash = hash128(name.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(first) & i64::MAX
}

/// The part a document lives in: by its registered domain, or, when it has none,
/// by its identifier. `parts` is fixed when a data directory is made.
pub fn part_of(registered_domain: Option<&str>, identifier: &str, parts: u32) -> u32 {
    assert!(parts > 0, "a data directory has at least one part");
    let hash = hash128(registered_domain.unwrap_or(identifier).as_bytes());
    let mut last = [0; 8];
    last.copy_from_slice(&hash[8..]);
    let rest = u64::from_be_bytes(last) % u64::from(parts);
    u32::try_from(rest).expect("a remainder is smaller than its u32 divisor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_frozen() {
        // These values are stored in data directories; if this test fails, the format changed.
        assert_eq!(
            DocHash::of("https://example.com/").to_hex(),
            "19f876713c227a568d939946496a0d30"
        );
        assert_eq!(bin_of("example.com"), 8399907468945165335);
        assert_eq!(part_of(Some("example.com"), "https://www.example.com/", 16), 9);
    }

    #[test]
    fn pages_of_one_domain_share_a_part() {
        let first = part_of(Some("example.com"), "https://a.example.com/1", 64);
        let second = part_of(Some("example.com"), "https://b.example.com/2", 64);
        assert_eq!(first, second);
    }
}
