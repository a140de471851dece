//! Names for things: 128-bit document keys, bins, and the part a document lives in.
//!
//! Invariant: all of these are pure functions of their input, frozen for ever.
//! A data directory made by one version must find its documents with the next,
//! so a change here is a format change.

/// The 128-bit key of a document: a hash of its identifier that keeps neighbours
/// together.
///
/// Two bytes stand for its host, two for its directory, twelve for the whole of it. So
/// documents that are found together lie together in every index by key, and a commit
/// touches a few pages of it instead of one for each link, however large it is. Nobody
/// can make a key that a page of somebody else has: that takes all 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocHash(pub [u8; 16]);

impl DocHash {
    /// The key of a document identifier (for the web: the canonical URL).
    pub fn of(identifier: &str) -> DocHash {
        let mut key = hash128(identifier.as_bytes());
        let (host, directory) = neighbourhood(identifier);
        let [first, second, ..] = mixed(host).to_be_bytes();
        let [third, fourth, ..] = mixed(directory).to_be_bytes();
        key[..4].copy_from_slice(&[first, second, third, fourth]);
        DocHash(key)
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

/// The host of an identifier, and its directory with the host: all up to its last slash.
fn neighbourhood(identifier: &str) -> (&[u8], &[u8]) {
    let bytes = identifier.as_bytes();
    let path = &bytes[..memchr::memchr(b'?', bytes).unwrap_or(bytes.len())];
    let begin = memchr::memmem::find(path, b"://").map_or(0, |at| at + 3);
    let end = memchr::memchr(b'/', &path[begin..]).map_or(path.len(), |at| begin + at);
    let last = memchr::memrchr(b'/', path).map_or(end, |at| at.max(end));
    (&path[..end], &path[..last])
}

/// A quick hash whose upper bits are good. It decides about places, nothing else, so
/// that whoever crafts collisions gains nothing.
fn mixed(bytes: &[u8]) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum.rotate_left(29) ^ u64::from_le_bytes(word)).wrapping_mul(SPREAD);
    }
    (sum ^ (sum >> 32)).wrapping_mul(SPREAD)
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
            "945194513c227a568d939946496a0d30"
        );
        assert_eq!(bin_of("example.com"), 8399907468945165335);
        assert_eq!(part_of(Some("example.com"), "https://www.example.com/", 16), 9);
    }

    #[test]
    fn neighbours_lie_together_and_keys_differ() {
        let key = |url: &str| DocHash::of(url).0;
        let page = key("https://example.com/docs/guide/a.html");
        for (url, shared) in [
            ("https://example.com/docs/guide/b.html", 4),
            ("https://example.com/docs/guide/a.html?page=2", 4),
            ("https://example.com/docs/guide/", 4),
            ("https://example.com/docs/a.html", 2),
            ("https://example.com/", 2),
            ("https://example.org/docs/guide/a.html", 0),
            ("http://example.com/docs/guide/a.html", 0),
        ] {
            let other = key(url);
            assert_eq!(page[..shared], other[..shared], "{url}");
            assert!(shared == 4 || page[shared..shared + 2] != other[shared..shared + 2], "{url}");
            assert_ne!(page[4..], other[4..], "{url}");
        }
    }

    #[test]
    fn any_identifier_has_a_key_and_hosts_spread_evenly() {
        for odd in ["", "/", "://", "?", "row 7", "a/b/c", "x://y", "://?/", "ä/ö?ü"] {
            assert_eq!(DocHash::of(odd), DocHash::of(odd));
        }
        let mut counts = [0; 16];
        for number in 0..16_000 {
            let key = DocHash::of(&format!("https://host{number}.example/"));
            counts[usize::from(key.0[0] >> 4)] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn pages_of_one_domain_share_a_part() {
        let first = part_of(Some("example.com"), "https://a.example.com/1", 64);
        let second = part_of(Some("example.com"), "https://b.example.com/2", 64);
        assert_eq!(first, second);
    }
}
