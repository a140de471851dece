//! The tokens of a style sheet, as far as references need them (CSS Syntax level 3, section 4).
//!
//! Invariant: every step moves on by at least one byte and looks at none again but the few of
//! an escape, so that reading is linear.

use std::borrow::Cow;
use std::ops::Range;

/// A token that matters; all others are passed over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `@name`.
    AtKeyword(Cow<'a, str>),
    /// `name(`, but for a `url(` without quotes.
    Function(Cow<'a, str>),
    /// `(` or `[`.
    Open,
    /// `{`.
    OpenBlock,
    /// `)`, `]` or `}`.
    Close,
    Semicolon,
    /// A string; the range has its quotes.
    String {
        range: Range<usize>,
        value: Cow<'a, str>,
    },
    /// What stands in `url(…)`: a string with its quotes, or all that is there.
    Url {
        range: Range<usize>,
        value: Cow<'a, str>,
    },
}

#[derive(Debug)]
pub(super) struct Tokens<'a> {
    css: &'a str,
    at: usize,
    /// Behind `url(`, where a string is to come.
    in_url: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(css: &'a str) -> Tokens<'a> {
        Tokens { css, at: 0, in_url: false }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.css.as_bytes().get(self.at + ahead).copied()
    }

    fn skip_white_space(&mut self) {
        while self.byte(0).is_some_and(is_white_space) {
            self.at += 1;
        }
    }

    /// Behind `/*`.
    fn skip_comment(&mut self) {
        let rest = &self.css.as_bytes()[self.at..];
        self.at += memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
    }

    fn is_name_here(&self) -> bool {
        match self.byte(0) {
            Some(b'\\') => self.byte(1).is_some_and(|next| !is_line_end(next)),
            Some(byte) => is_name_byte(byte),
            None => false,
        }
    }

    /// A name; empty when none begins here.
    fn name(&mut self) -> Cow<'a, str> {
        let start = self.at;
        let mut has_escape = false;
        while self.is_name_here() {
            if self.byte(0) == Some(b'\\') {
                has_escape = true;
                self.at = escape_end(self.css, self.at);
            } else {
                self.at += 1;
            }
        }
        let raw = &self.css[start..self.at];
        if has_escape { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) }
    }

    /// A string whose opening quote is here; `None` for one that a line end breaks.
    fn string(&mut self, quote: u8) -> Option<(Range<usize>, Cow<'a, str>)> {
        let start = self.at;
        self.at += 1;
        let mut has_escape = false;
        loop {
            let rest = &self.css.as_bytes()[self.at..];
            let stop =
                rest.iter().position(|&byte| byte == quote || byte == b'\\' || is_line_end(byte));
            self.at += stop.unwrap_or(rest.len());
            let inside = start + 1..self.at;
            match self.byte(0) {
                Some(b'\\') => {
                    has_escape = true;
                    self.at = escape_end(self.css, self.at);
                    continue;
                }
                Some(byte) if is_line_end(byte) => return None,
                Some(_) => self.at += 1,
                None => {}
            }
            let raw = &self.css[inside];
            let value = if has_escape { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) };
            return Some((start..self.at, value));
        }
    }

    /// The rest of `url(` without quotes; `None` for one that is broken. Ends before `)`.
    fn unquoted_url(&mut self) -> Option<Token<'a>> {
        let start = self.at;
        self.skip_white_space();
        let first = self.at;
        let mut has_escape = false;
        let mut is_broken = false;
        let mut end = None;
        while let Some(byte) = self.byte(0).filter(|&byte| byte != b')') {
            match byte {
                b'\\' if self.byte(1).is_none_or(|next| !is_line_end(next)) => {
                    has_escape = true;
                    is_broken |= end.is_some();
                    self.at = escape_end(self.css, self.at);
                    continue;
                }
                b'"' | b'\'' | b'(' | b'\\' | 0..=8 | 0x0b | 0x0e..=0x1f | 0x7f => is_broken = true,
                byte if is_white_space(byte) => {
                    end.get_or_insert(self.at);
                }
                // White space stands at the end only.
                _ => is_broken |= end.is_some(),
            }
            self.at += 1;
        }
        let range = start..self.at;
        // The closing bracket belongs to this token.
        self.at += usize::from(self.byte(0).is_some());
        let raw = &self.css[first..end.unwrap_or(range.end)];
        let value = if has_escape { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) };
        (!is_broken).then_some(Token::Url { range, value })
    }

    /// A name, and what it begins.
    fn name_like(&mut self) -> Option<Token<'a>> {
        let name = self.name();
        if self.byte(0) != Some(b'(') {
            return None;
        }
        self.at += 1;
        let is_url = name.eq_ignore_ascii_case("url");
        if is_url || name.eq_ignore_ascii_case("src") {
            let behind = self.at;
            self.skip_white_space();
            let is_quoted = matches!(self.byte(0), Some(b'"' | b'\''));
            self.in_url = is_quoted;
            if is_url && !is_quoted {
                self.at = behind;
                return self.unquoted_url();
            }
        }
        Some(Token::Function(name))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = self.byte(0)?;
            let in_url = std::mem::take(&mut self.in_url);
            let token = match byte {
                b'"' | b'\'' => self.string(byte).map(|(range, value)| match in_url {
                    true => Token::Url { range, value },
                    false => Token::String { range, value },
                }),
                b'/' if self.byte(1) == Some(b'*') => {
                    self.at += 2;
                    self.skip_comment();
                    None
                }
                b'@' => {
                    self.at += 1;
                    let name = self.name();
                    (!name.is_empty()).then_some(Token::AtKeyword(name))
                }
                // What follows is a hash or a unit, whatever it is called.
                b'#' | b'0'..=b'9' => {
                    self.at += 1;
                    self.name();
                    None
                }
                _ if self.is_name_here() => self.name_like(),
                _ => {
                    self.at += 1;
                    match byte {
                        b'(' | b'[' => Some(Token::Open),
                        b'{' => Some(Token::OpenBlock),
                        b')' | b']' | b'}' => Some(Token::Close),
                        b';' => Some(Token::Semicolon),
                        _ => None,
                    }
                }
            };
            if token.is_some() {
                return token;
            }
        }
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | 0x80..)
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | 0x0c)
}

fn is_white_space(byte: u8) -> bool {
    is_line_end(byte) || matches!(byte, b' ' | b'\t')
}

/// Where the escape ends whose backslash is at `at`.
fn escape_end(css: &str, at: usize) -> usize {
    let rest = &css[at + 1..];
    let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
    let behind = &rest[digits..];
    let more = match behind.as_bytes() {
        [b'\r', b'\n', ..] => 2,
        [_, ..] if digits == 0 => behind.chars().next().map_or(0, char::len_utf8),
        [byte, ..] if is_white_space(*byte) => 1,
        _ => 0,
    };
    at + 1 + digits + more
}

/// The text that is meant by one with escapes.
fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', &raw.as_bytes()[at..]) {
        out.push_str(&raw[at..at + offset]);
        let start = at + offset;
        at = escape_end(raw, start);
        let escape = &raw[start + 1..at];
        let digits = escape.trim_end_matches([' ', '\t', '\n', '\r', '\x0c']);
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex {
            let code = u32::from_str_radix(digits, 16).ok().filter(|&code| code != 0);
            out.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
        } else if !escape.starts_with(['\n', '\r', '\x0c']) {
            // A line end behind a backslash goes on with the string.
            out.push_str(escape);
        }
    }
    out.push_str(&raw[at..]);
    out
}
