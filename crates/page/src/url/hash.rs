//! A quick hash for short texts, for tables in memory only.
//!
//! It resists nobody, so it may be used only where a collision costs nothing that
//! an attacker could multiply. Its values are never stored.

/// Hashes eight bytes at a time.
pub(crate) fn quick_hash(bytes: &[u8]) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = bytes.len() as u64;
    let (words, tail) = bytes.as_chunks::<8>();
    let mut mix = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    for word in words {
        mix(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    mix(u64::from_le_bytes(last));
    // A multiplication carries upwards only, so the upper half is folded back once.
    ((hash ^ hash >> 32).wrapping_mul(MULTIPLIER) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_links_spread_over_the_table() {
        for prefix in ["/", "#sec-", "/articles/2024/some-title-", "../ref/chapter"] {
            let hashes = (0..256).map(|number| quick_hash(format!("{prefix}{number}").as_bytes()));
            let places: std::collections::BTreeSet<u32> = hashes.map(|hash| hash % 512).collect();
            // Thrown at random, 256 texts take about 201 of 512 places.
            assert!(places.len() > 180, "{prefix}: {}", places.len());
        }
    }
}
