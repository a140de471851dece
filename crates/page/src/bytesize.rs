//! A number of bytes as people read it: one unit for every message, table and progress line.
//!
//! Invariant: units are decimal (1 kB is 1,000 bytes), as disks and networks are sold, so two
//! figures of the program can always be compared.

const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];

/// A number of bytes, such as `1.2 MB`.
pub fn human_bytes(bytes: i64) -> String {
    if bytes.unsigned_abs() < 1_000 {
        return format!("{bytes} bytes");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths.unsigned_abs() >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1_000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, (tenths % 10).abs(), UNITS[unit])
}

/// The same for a count that cannot be negative.
pub fn human_bytes_of(bytes: u64) -> String {
    human_bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_digit_behind_the_point() {
        let cases = [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (1_024, "1.0 kB"),
            (1_250_000, "1.2 MB"),
            (i64::MAX, "9223.3 PB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(human_bytes(bytes), expected);
        }
        assert_eq!(human_bytes_of(u64::MAX), "9223.3 PB");
    }
}
