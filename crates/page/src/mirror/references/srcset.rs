//! `srcset`: images for several widths, read as the HTML standard says.

use std::ops::Range;

/// Where the URLs stand in the value of a `srcset`, in order.
pub(in crate::mirror) fn candidates(value: &str) -> Candidates<'_> {
    Candidates { value, at: 0 }
}

/// An iterator over the URLs of a `srcset`.
pub(in crate::mirror) struct Candidates<'a> {
    value: &'a str,
    at: usize,
}

impl Candidates<'_> {
    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        let rest = &self.value.as_bytes()[self.at..];
        self.at += rest.iter().position(|&byte| !is_skipped(byte)).unwrap_or(rest.len());
    }

    /// Goes behind the comma that ends the widths of a candidate; one in brackets does not.
    fn skip_descriptors(&mut self) {
        let mut in_brackets = false;
        while let Some(&byte) = self.value.as_bytes().get(self.at) {
            self.at += 1;
            match byte {
                b'(' => in_brackets = true,
                b')' => in_brackets = false,
                b',' if !in_brackets => return,
                _ => {}
            }
        }
    }
}

impl Iterator for Candidates<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.skip(|byte| byte.is_ascii_whitespace() || byte == b',');
        let start = self.at;
        self.skip(|byte| !byte.is_ascii_whitespace());
        let url = &self.value[start..self.at];
        if url.is_empty() {
            return None;
        }
        let without_commas = url.trim_end_matches(',');
        if without_commas.len() == url.len() {
            self.skip_descriptors();
        }
        Some(start..start + without_commas.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(value: &str) -> Vec<&str> {
        candidates(value).map(|range| &value[range]).collect()
    }

    #[test]
    fn candidates_are_parted_as_the_standard_parts_them() {
        for (value, expected) in [
            ("a.png 1x, b.png 2x", vec!["a.png", "b.png"]),
            ("a.png,b.png", vec!["a.png,b.png"]),
            ("a.png, b.png,", vec!["a.png", "b.png"]),
            (" ,, a.png 100w\n,\tb,c.png 2x,, ", vec!["a.png", "b,c.png"]),
            ("a.png (x, y) 1x, b.png", vec!["a.png", "b.png"]),
            (
                "data:image/png;base64,AA== 1x, b.png 2x",
                vec!["data:image/png;base64,AA==", "b.png"],
            ),
            ("a.png 1x,b.png 2x", vec!["a.png", "b.png"]),
            ("a.png (never closed, b.png", vec!["a.png"]),
            ("", vec![]),
            (",,,", vec![]),
        ] {
            assert_eq!(urls(value), expected, "{value:?}");
        }
    }
}
