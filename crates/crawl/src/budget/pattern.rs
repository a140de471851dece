//! The pattern of a URL: what is left of it when numbers, dates and ids are taken out.
//!
//! Pages that a program makes by the thousand differ in these, so they share a
//! pattern, and what is counted by pattern tells a trap from a shop. The pattern is
//! the host, the path with such pieces as `#`, and the names of the parameters in
//! order. Relies on canonical URLs (ASCII); given anything else it is odd, never a
//! panic. Invariants: a pure function, since patterns are stored; linear in the URL;
//! its length is bounded, because it is part of a database key.

use page::url::{origin_of, path_of};

/// Bytes of a pattern's path. What is longer is cut, and shares its pattern.
const PATH_BYTES_MAX: usize = 160;
/// Bytes of the names of parameters.
const NAMES_BYTES_MAX: usize = 96;
/// Stands for what was cut; a canonical URL is ASCII, so it cannot hold one.
const CUT: char = '…';
/// Stands for a number, a date or an id.
const ANY: char = '#';

/// A run of hex digits from here on, with letters and digits, is an id. Seven are a
/// colour or a short commit that may as well be a word; eight hold 32 bits.
const HEX_BYTES_MIN: usize = 8;
/// Letters and digits in turns from here on are an id: video ids have eleven.
const MIXED_BYTES_MIN: usize = 10;
/// Letters and a digit without a break from here on are an id whatever they look like.
const LONG_BYTES_MIN: usize = 24;
/// An id in base64 for URLs may hold `-` and `_`; from here on it is looked for.
const BASE64_BYTES_MIN: usize = 20;
/// More breaks than this make a title, not an id.
const BASE64_BREAKS_MAX: usize = 3;
/// Changes between small letters, capitals and digits in a base64 id of that length.
const BASE64_CHANGES_MIN: usize = 8;

/// The pattern of a canonical URL.
pub fn pattern(url: &str) -> String {
    let mut shape = Shape::default();
    shape.read(url);
    shape.pattern
}

/// The pattern of one URL, in buffers that serve for the next one too.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub pattern: String,
    /// What it shares with others that a program may make with it: all queries of its
    /// path (`a.example/list?*`), or else all that is under its first id
    /// (`a.example/s/#/*`). Empty if there is neither.
    pub family: String,
    /// Parameters that the query has.
    pub parameters: usize,
    /// Names as they come, one after the other, and where each is.
    names: String,
    places: Vec<(usize, usize)>,
}

impl Shape {
    /// Takes the pattern of a canonical URL.
    pub fn read(&mut self, url: &str) {
        let origin = origin_of(url);
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        let path_and_query = path_of(url);
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        self.pattern.clear();
        self.pattern.push_str(authority);
        let bytes_max = self.pattern.len() + PATH_BYTES_MAX;
        push_shape(&mut self.pattern, path, bytes_max);
        self.family.clear();
        self.parameters = 0;
        if !query.is_empty() {
            self.family.push_str(&self.pattern);
            self.family.push_str("?*");
            self.read_names(query);
        } else if let Some(end) = end_of_first_id(&self.pattern) {
            self.family.push_str(&self.pattern[..end]);
            self.family.push_str("/*");
        }
    }

    /// Appends the names of a query's parameters: in order, each once.
    fn read_names(&mut self, query: &str) {
        self.names.clear();
        self.places.clear();
        for (name, _) in parameters(query) {
            self.parameters += 1;
            let start = self.names.len();
            if start <= NAMES_BYTES_MAX {
                push_shape(&mut self.names, name, NAMES_BYTES_MAX);
                self.places.push((start, self.names.len()));
            }
        }
        let Shape { names, places, pattern, .. } = self;
        places.sort_unstable_by_key(|(start, end)| &names[*start..*end]);
        let mut before = None;
        for (start, end) in places.drain(..) {
            let name = &names[start..end];
            if before != Some(name) {
                pattern.push(if before.is_none() { '?' } else { '&' });
                pattern.push_str(name);
                before = Some(name);
            }
        }
    }
}

/// Where the first step of a path with an id in it ends, if more steps follow.
fn end_of_first_id(pattern: &str) -> Option<usize> {
    let id = pattern.bytes().position(|byte| byte == b'#')?;
    let end = id + pattern[id..].bytes().position(|byte| byte == b'/')?;
    (end + 1 < pattern.len()).then_some(end)
}

/// Names and values of a query, without what has neither.
pub(super) fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pieces = query.split('&').filter(|piece| !piece.is_empty());
    pieces.map(|piece| piece.split_once('=').unwrap_or((piece, "")))
}

/// Appends a text with its numbers, dates and ids as `#`, until `out` is so long.
fn push_shape(out: &mut String, text: &str, bytes_max: usize) {
    let start = out.len();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() && out.len() < bytes_max {
        if is_run_byte(bytes[at]) {
            let end = at + length_of(&bytes[at..], is_run_byte);
            push_run(out, start, &text[at..end]);
            at = end;
        } else {
            let end = at + other_length(&bytes[at..]);
            match text.get(at..end) {
                // A star stands for more than itself in the names of tallies.
                None | Some("*") => out.push(ANY),
                Some(other) => out.push_str(other),
            }
            at = end;
        }
    }
    if at < bytes.len() || out.len() > bytes_max {
        out.truncate(out.floor_char_boundary(bytes_max));
        out.push(CUT);
    }
}

fn is_run_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn length_of(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(*byte)).unwrap_or(bytes.len())
}

/// How many bytes the character at the start takes; an escape is one character, and
/// the digits in it are no numbers.
fn other_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => 3,
        _ => 1,
    }
}

/// Appends letters, digits and breaks (`-`, `_`), of which pieces may be ids.
fn push_run(out: &mut String, start: usize, run: &str) {
    if !run.bytes().any(|byte| byte.is_ascii_digit()) && !is_uuid(run) {
        return out.push_str(run);
    }
    if is_uuid(run) || is_base64(run) {
        return push_any(out, start);
    }
    let mut rest = run;
    while let Some(first) = rest.as_bytes().first() {
        if !first.is_ascii_alphanumeric() {
            out.push(char::from(*first));
            rest = &rest[1..];
            continue;
        }
        let (word, after) =
            rest.split_at(length_of(rest.as_bytes(), |b| b.is_ascii_alphanumeric()));
        push_word(out, start, word);
        rest = after;
    }
}

/// Appends `#`, once for numbers that only a break keeps apart: `2024-05-06`, `1.2.3`.
fn push_any(out: &mut String, start: usize) {
    match out.as_bytes()[start..] {
        [.., b'#'] => {}
        [.., b'#', b'-' | b'_' | b'.' | b':'] => {
            out.pop();
        }
        _ => out.push(ANY),
    }
}

/// Appends letters and digits: as they are, with numbers as `#`, or all of it as `#`.
fn push_word(out: &mut String, start: usize, word: &str) {
    if !word.bytes().any(|byte| byte.is_ascii_digit()) {
        return out.push_str(word);
    }
    if is_id(word) {
        return push_any(out, start);
    }
    for byte in word.bytes() {
        if byte.is_ascii_digit() {
            push_any(out, start);
        } else {
            out.push(char::from(byte));
        }
    }
}

/// Whether a word with a digit in it looks made up by a program.
fn is_id(word: &str) -> bool {
    let is_hex = word.len() >= HEX_BYTES_MIN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Words with a number or two change rarely, ids with every second character.
    let is_mixed = word.len() >= MIXED_BYTES_MIN && changes(word) * 4 >= word.len();
    is_hex || is_mixed || word.len() >= LONG_BYTES_MIN
}

/// How often a small letter, a capital or a digit follows one of another kind.
fn changes(run: &str) -> usize {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        _ => 0,
    };
    let differ = |pair: &&[u8]| {
        let (first, second) = (kind(pair[0]), kind(pair[1]));
        first != second && first != 0 && second != 0
    };
    run.as_bytes().windows(2).filter(differ).count()
}

/// Eight, four, four, four and twelve hex digits.
fn is_uuid(run: &str) -> bool {
    run.len() == 36
        && run.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether letters, digits and a few breaks look like base64 for URLs.
fn is_base64(run: &str) -> bool {
    let has = |belongs: fn(&u8) -> bool| run.as_bytes().iter().any(belongs);
    run.len() >= BASE64_BYTES_MIN
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && run.bytes().filter(|byte| matches!(byte, b'-' | b'_')).count() <= BASE64_BREAKS_MAX
        && changes(run) >= BASE64_CHANGES_MIN
}

#[cfg(test)]
mod tests;
