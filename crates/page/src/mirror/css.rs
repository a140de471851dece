//! References in style sheets: found, and written anew.
//!
//! Reads tokens as CSS Syntax level 3 says, as far as it takes to know what is a `url()`, an
//! `@import`, a string of `image-set()`, and what is a comment or an ordinary string. Broken
//! style sheets are read as browsers do. Invariant: linear time, no recursion, a few bytes of
//! state; what is not a reference stays byte for byte.

#[cfg(test)]
mod tests;
mod tokens;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{Encoding, UTF_8};

use self::tokens::{Token, Tokens};
use crate::sniff::ContentType;

/// How a style sheet begins that declares its encoding; nothing else is a declaration.
const CHARSET_RULE: &str = "@charset \"";
/// The longest label of an encoding has 19 bytes.
const LABEL_BYTES_MAX: usize = 64;

/// What a style sheet refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Another style sheet, by `@import`.
    Import,
    /// A `url()` in `@font-face`.
    Font,
    /// Any other: nearly always an image.
    Image,
}

/// A reference of a style sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<'a> {
    /// What is replaced to refer to something else: a string with its quotes, or all between
    /// the parentheses of a `url()` without quotes.
    pub range: Range<usize>,
    /// The URL as it is meant, escapes resolved.
    pub url: Cow<'a, str>,
    /// What it is there for.
    pub kind: Kind,
}

/// The references of a style sheet, in order. Empty ones are passed over.
pub fn references(css: &str) -> References<'_> {
    References { tokens: Tokens::new(css), depth: 0, rule: Rule::None, image_set: None }
}

/// An iterator over the references of a style sheet.
#[derive(Debug)]
pub struct References<'a> {
    tokens: Tokens<'a>,
    /// Open brackets of all kinds.
    depth: usize,
    rule: Rule,
    /// How deep the strings of an `image-set()` stand that is open.
    image_set: Option<usize>,
}

/// The at-rule that decides what a reference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    None,
    /// Until its first string or `url()`.
    Import,
    /// What stands there is a name, not a reference: `@namespace`, `@charset`.
    Names,
    /// Its block is to come.
    FontFaceAhead,
    /// In the block of `@font-face`, until the bracket closes that is this deep.
    FontFace(usize),
}

impl<'a> Iterator for References<'a> {
    type Item = Reference<'a>;

    fn next(&mut self) -> Option<Reference<'a>> {
        loop {
            let (range, url) = match self.tokens.next()? {
                Token::AtKeyword(name) => {
                    self.at_keyword(&name);
                    continue;
                }
                Token::Function(name) => {
                    self.depth += 1;
                    let is_set = name.eq_ignore_ascii_case("image-set")
                        || name.eq_ignore_ascii_case("-webkit-image-set");
                    if is_set && self.image_set.is_none() {
                        self.image_set = Some(self.depth);
                    }
                    continue;
                }
                Token::Open => {
                    self.depth += 1;
                    continue;
                }
                Token::OpenBlock => {
                    if self.rule == Rule::FontFaceAhead {
                        self.rule = Rule::FontFace(self.depth);
                    }
                    self.depth += 1;
                    continue;
                }
                Token::Close => {
                    self.close();
                    continue;
                }
                Token::Semicolon => {
                    if !matches!(self.rule, Rule::FontFace(_)) {
                        self.rule = Rule::None;
                    }
                    continue;
                }
                Token::String { range, value } => {
                    if self.rule != Rule::Import && self.image_set != Some(self.depth) {
                        continue;
                    }
                    (range, value)
                }
                Token::Url { range, value } => (range, value),
            };
            let Some(kind) = self.kind() else { continue };
            if !url.trim_ascii().is_empty() {
                return Some(Reference { range, url, kind });
            }
        }
    }
}

impl References<'_> {
    fn at_keyword(&mut self, name: &str) {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        self.rule = if is("import") {
            Rule::Import
        } else if is("namespace") || is("charset") {
            Rule::Names
        } else if is("font-face") {
            Rule::FontFaceAhead
        } else if matches!(self.rule, Rule::FontFace(depth) if depth < self.depth) {
            self.rule
        } else {
            Rule::None
        };
    }

    fn close(&mut self) {
        if self.image_set == Some(self.depth) {
            self.image_set = None;
        }
        self.depth = self.depth.saturating_sub(1);
        if matches!(self.rule, Rule::FontFace(depth) if depth >= self.depth) {
            self.rule = Rule::None;
        }
    }

    /// What a reference here is; `None` for what only looks like one.
    fn kind(&mut self) -> Option<Kind> {
        match self.rule {
            Rule::None | Rule::FontFaceAhead => Some(Kind::Image),
            Rule::Names => None,
            Rule::FontFace(_) => Some(Kind::Font),
            Rule::Import => {
                self.rule = Rule::None;
                Some(Kind::Import)
            }
        }
    }
}

/// `css` with each reference replaced for which `target` gives another URL.
pub fn rewrite<'a>(
    css: &'a str,
    mut target: impl FnMut(&Reference<'_>) -> Option<String>,
) -> Cow<'a, str> {
    let mut out = String::new();
    let mut written = 0;
    for reference in references(css) {
        let Some(url) = target(&reference) else { continue };
        out.push_str(&css[written..reference.range.start]);
        write_string(&mut out, &url);
        written = reference.range.end;
    }
    if written == 0 {
        return Cow::Borrowed(css);
    }
    out.push_str(&css[written..]);
    Cow::Owned(out)
}

/// Writes a CSS string that also stands in a `<style>` or an attribute without harm.
fn write_string(out: &mut String, value: &str) {
    out.push('"');
    for ch in value.chars() {
        match ch {
            '"' | '\\' => out.extend(['\\', ch]),
            // `</style` would end the style sheet that is part of a page.
            '<' => out.push_str("\\3c "),
            '\0' => out.push('\u{fffd}'),
            ch if ch.is_control() => out.push_str(&format!("\\{:x} ", u32::from(ch))),
            ch => out.push(ch),
        }
    }
    out.push('"');
}

/// The text of a style sheet: by its byte order mark, its header, its `@charset`, or in the
/// encoding of the page that refers to it.
pub fn decode<'a>(
    body: &'a [u8],
    content_type: Option<&str>,
    page_encoding: Option<&'static Encoding>,
) -> Cow<'a, str> {
    let labelled = |label: &str| Encoding::for_label_no_replacement(label.as_bytes());
    let header = || content_type.and_then(ContentType::parse)?.charset.and_then(|it| labelled(&it));
    let declared = || {
        let label = body.strip_prefix(CHARSET_RULE.as_bytes())?;
        let label = &label[..label.len().min(LABEL_BYTES_MAX)];
        let end = memchr::memchr(b'"', label)?;
        let encoding = labelled(std::str::from_utf8(&label[..end]).ok()?)?;
        // Whoever could read this declaration did not write UTF-16.
        Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
    };
    let encoding = header().or_else(declared).or(page_encoding).unwrap_or(UTF_8);
    // With a byte order mark, that decides.
    encoding.decode(body).0
}

/// A style sheet as UTF-8 bytes, its declaration of another encoding made to fit.
pub fn encode(css: &str) -> Vec<u8> {
    let rest = css.strip_prefix(CHARSET_RULE).and_then(|rest| rest.split_once("\";"));
    match rest {
        Some((_, rest)) => format!("@charset \"utf-8\";{rest}").into_bytes(),
        None if css.is_ascii() => css.as_bytes().to_vec(),
        // A server or a file says nothing of the encoding; the page that refers to it is UTF-8
        // too, but a mark is certain.
        None => format!("\u{feff}{css}").into_bytes(),
    }
}
