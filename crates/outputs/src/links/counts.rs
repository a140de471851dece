//! Numbers that sort from the largest to the smallest.
//!
//! Our own rows have the complement in five bytes. [`encoded`] is how Webindex wrote
//! the same, for `links dump`: a length and the minimal bytes, escaped, ended, complemented,
//! in hex. Invariant: a larger number sorts first, in both.

/// Bytes of a number in our rows.
pub const BYTES: usize = 5;
/// The largest number that fits.
pub const MAX: u64 = (1 << (8 * BYTES)) - 1;

/// A number in our rows. What is larger than fits sorts as the largest.
pub fn descending(count: u64) -> [u8; BYTES] {
    let bytes = (MAX - count.min(MAX)).to_be_bytes();
    let mut out = [0; BYTES];
    out.copy_from_slice(&bytes[8 - BYTES..]);
    out
}

/// The number that was written so.
pub fn read(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; BYTES] = bytes.try_into().ok()?;
    let mut wide = [0; 8];
    wide[8 - BYTES..].copy_from_slice(&bytes);
    Some(MAX - u64::from_be_bytes(wide))
}

/// A number as Webindex wrote it into its rows (spec 2.5).
pub fn encoded(count: u64) -> String {
    use std::fmt::Write;
    let bytes = count.to_be_bytes();
    let minimal = &bytes[(count.leading_zeros() / 8) as usize..];
    let mut plain = vec![minimal.len() as u8];
    plain.extend_from_slice(minimal);
    let mut out = String::new();
    let mut put = |byte: u8| {
        let _ = write!(out, "{:02x}", !byte);
    };
    for byte in plain {
        match byte {
            0 | 1 => {
                put(1);
                put(byte + 1);
            }
            _ => put(byte),
        }
    }
    put(0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_wrote_these() {
        for (count, text) in [
            (0, "fefeff"),
            (1, "fefdfefdff"),
            (2, "fefdfdff"),
            (3, "fefdfcff"),
            (255, "fefd00ff"),
            (256, "fdfefdfefeff"),
            (65_535, "fd0000ff"),
            (1_000_000, "fcf0bdbfff"),
        ] {
            assert_eq!(encoded(count), text, "{count}");
        }
    }

    #[test]
    fn larger_numbers_sort_first() {
        for count in 0..70_000 {
            assert!(encoded(count) > encoded(count + 1), "{count}");
            assert!(descending(count) > descending(count + 1), "{count}");
            assert_eq!(read(&descending(count)), Some(count));
        }
        assert_eq!(read(&descending(u64::MAX)), Some(MAX));
        assert_eq!(read(&[0; 4]), None);
    }
}
