//! Matching: one pattern against the path and query of one URL.
//!
//! Relies on `memchr` for substring search that stays linear on hostile input.
//! Invariant: a match costs at most pattern plus path; a part between two `*`
//! is looked for once, leftmost, and never again further right, because a later
//! place can only leave less path for the parts that follow.

use std::borrow::Cow;

use memchr::memmem;

/// Longer paths are compared up to here. Four times the longest line, so that
/// no pattern could tell the difference except by `$`, which then fails.
const PATH_BYTES_MAX: usize = 64 << 10;

/// The part of a URL that patterns are compared with. Begins with `/`.
pub(super) struct Path<'a> {
    bytes: Cow<'a, [u8]>,
    whole: bool,
}

impl<'a> Path<'a> {
    /// Path, parameters and query of a URL: no scheme, authority or fragment.
    /// What has no path, or is no URL at all, is `/`.
    pub(super) fn of(url: &'a str) -> Path<'a> {
        let found = path_and_query(url.as_bytes());
        let whole = found.len() <= PATH_BYTES_MAX;
        let kept = &found[..found.len().min(PATH_BYTES_MAX)];
        // Escapes are compared as written, as Google does: a canonical URL has its
        // digits in upper case, which is how patterns are normalised.
        let bytes = match kept.first() {
            Some(b'/') => Cow::Borrowed(kept),
            _ => Cow::Owned([b"/", kept].concat()),
        };
        Path { bytes, whole }
    }

    /// The same without needless escapes, as `Disallow` is compared.
    pub(super) fn plain(&self) -> Path<'_> {
        Path { bytes: unescape(&self.bytes), whole: self.whole }
    }

    #[cfg(test)]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Google's `GetPathParamsQuery`, less the slash that it puts in front.
fn path_and_query(url: &[u8]) -> &[u8] {
    let find = |from: usize, set: &[u8]| {
        url[from..].iter().position(|b| set.contains(b)).map(|at| from + at)
    };
    let start = if url.starts_with(b"//") { 2 } else { 0 };
    let early = find(start, b"/?;").unwrap_or(url.len());
    let authority = match memmem::find(&url[start..], b"://") {
        // A path that begins before `://` merely contains it.
        Some(at) if start + at <= early => start + at + 3,
        _ => start,
    };
    let Some(path) = find(authority, b"/?;") else { return b"" };
    let end = find(start, b"#").unwrap_or(url.len());
    url.get(path..end).unwrap_or_default()
}

fn is_escape(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 3),
        Some([b'%', high, low]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

fn has_lower_case_escape(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'%', bytes)
        .any(|at| is_escape(bytes, at) && bytes[at + 1..at + 3].iter().any(u8::is_ascii_lowercase))
}

/// `%e3` and `%E3` are the same octet; patterns are written in upper case too.
fn escapes_to_upper_case(bytes: &mut [u8]) {
    let mut at = 0;
    while at < bytes.len() {
        if is_escape(bytes, at) {
            bytes[at + 1..at + 3].make_ascii_uppercase();
            at += 3;
        } else {
            at += 1;
        }
    }
}

/// Text without escapes of characters that need none: `%73` is an `s` (RFC 9309, section 2.2.2).
///
/// Google's matcher compares escapes as they are written. We follow the RFC where that forbids more,
/// in `Disallow`, and Google where it allows less, in `Allow`: whoever writes `Disallow: /%73ecret`
/// means `/secret`, and nobody is crawled who did not say so.
pub(super) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let meant = |at: usize| -> Option<u8> {
        if !is_escape(text, at) {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        let byte = digit(text[at + 1]) * 16 + digit(text[at + 2]);
        (byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)).then_some(byte)
    };
    if !memchr::memchr_iter(b'%', text).any(|at| meant(at).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match meant(at) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    Cow::Owned(out)
}

/// A pattern as it is compared: octets above 127 percent-encoded, the digits of
/// escapes in upper case, everything else as written.
pub(super) fn normalise(pattern: &[u8]) -> Cow<'_, [u8]> {
    let plain = pattern.is_ascii() && !has_lower_case_escape(pattern);
    if plain {
        return Cow::Borrowed(pattern);
    }
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(pattern.len() * 3);
    for &byte in pattern {
        if byte.is_ascii() {
            out.push(byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend([b'%', DIGITS[high], DIGITS[low]]);
        }
    }
    escapes_to_upper_case(&mut out);
    Cow::Owned(out)
}

/// A normalised pattern: `*` stands for any run of octets, a last `$` for the end.
pub(super) struct Pattern<'a> {
    body: &'a [u8],
    to_the_end: bool,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(pattern: &'a [u8]) -> Pattern<'a> {
        match pattern.strip_suffix(b"$") {
            Some(body) => Pattern { body, to_the_end: true },
            None => Pattern { body: pattern, to_the_end: false },
        }
    }

    /// The length of the pattern, if it matches: the longest one has its way.
    pub(super) fn matches(&self, path: &Path) -> Option<usize> {
        let possible = path.whole || !self.to_the_end;
        let matched = possible && matches(self.body, self.to_the_end, &path.bytes);
        matched.then_some(self.body.len() + usize::from(self.to_the_end))
    }

    /// As `matches`, for `Allow`: a rule that allows `…/index.html` means the
    /// directory itself too.
    pub(super) fn allows(&self, path: &Path) -> Option<usize> {
        self.matches(path).or_else(|| {
            let slash = memchr::memrchr(b'/', self.body)?;
            let is_index = self.body[slash..].starts_with(b"/index.htm");
            let directory = Pattern { body: &self.body[..=slash], to_the_end: true };
            is_index.then(|| directory.matches(path)).flatten()
        })
    }
}

fn matches(pattern: &[u8], to_the_end: bool, path: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let Some(mut part) = parts.next() else { return !to_the_end || rest.is_empty() };
    for next in parts {
        let Some(at) = memmem::find(rest, part) else { return false };
        rest = &rest[at + part.len()..];
        part = next;
    }
    if to_the_end { rest.ends_with(part) } else { memmem::find(rest, part).is_some() }
}
