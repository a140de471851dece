//! The encoding a document declares in its first 1,024 bytes.
//!
//! This is the WHATWG algorithm "prescan a byte stream to determine its encoding"
//! followed by "get an XML encoding". It is its own small scanner because it works
//! on bytes of unknown encoding, before any HTML parser can. Invariant: it reads at
//! most [`PRESCAN_BYTES`] bytes, once.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// The standard's own number.
const PRESCAN_BYTES: usize = 1_024;

/// The declared encoding, if there is one that is known.
pub(super) fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    meta(head).or_else(|| xml(head))
}

fn meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut scan = Scan { head, at: 0 };
    while scan.at < head.len() {
        let rest = &head[scan.at..];
        if rest.starts_with(b"<!--") {
            // The end may overlap the start: `<!-->` is a whole comment.
            scan.at += 2;
            scan.skip_past(b"-->");
        } else if is_meta(rest) {
            scan.at += 5;
            if let Some(encoding) = scan.meta_attributes() {
                return Some(encoding);
            }
            scan.at += 1;
        } else if is_tag(rest) {
            scan.skip_until(|byte| is_space(byte) || byte == b'>');
            while scan.attribute().is_some() {}
            scan.at += 1;
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            scan.skip_past(b">");
        } else {
            scan.at += 1;
        }
    }
    None
}

fn is_meta(rest: &[u8]) -> bool {
    rest.len() > 5
        && rest[..5].eq_ignore_ascii_case(b"<meta")
        && (is_space(rest[5]) || rest[5] == b'/')
}

fn is_tag(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'/', letter, ..] | [b'<', letter, ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

struct Scan<'a> {
    head: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.head.get(self.at).copied()
    }

    fn skip_until(&mut self, stop: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(|byte| !stop(byte)) {
            self.at += 1;
        }
    }

    /// Goes behind the next `end`, or behind everything.
    fn skip_past(&mut self, end: &[u8]) {
        let found = self.head[self.at..].windows(end.len()).position(|window| window == end);
        self.at = found.map_or(self.head.len(), |offset| self.at + offset + end.len());
    }

    /// The encoding that the attributes of one `<meta` give.
    fn meta_attributes(&mut self) -> Option<&'static Encoding> {
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut pragma = false;
        let mut need_pragma = None;
        let mut found = None;
        while let Some((name, value)) = self.attribute() {
            if seen.contains(&name) {
                continue;
            }
            match name.as_slice() {
                b"http-equiv" if value == b"content-type" => pragma = true,
                b"content" if found.is_none() => {
                    if let Some(encoding) = charset_in_content(&value) {
                        found = Some(encoding);
                        need_pragma = Some(true);
                    }
                }
                b"charset" => {
                    // A known or unknown label here settles the matter for this tag.
                    found = Encoding::for_label_no_replacement(&value);
                    need_pragma = Some(false);
                }
                _ => {}
            }
            seen.push(name);
        }
        if need_pragma? && !pragma {
            return None;
        }
        found.map(as_meta_means)
    }

    /// The standard's "get an attribute": name and value in lower case.
    fn attribute(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.skip_until(|byte| !is_space(byte) && byte != b'/');
        if matches!(self.peek()?, b'>') {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.peek()? {
                b'=' if !name.is_empty() => break,
                byte if is_space(byte) => {
                    self.skip_until(|byte| !is_space(byte));
                    if self.peek()? != b'=' {
                        return Some((name, Vec::new()));
                    }
                    break;
                }
                b'/' | b'>' => return Some((name, Vec::new())),
                byte => name.push(byte.to_ascii_lowercase()),
            }
            self.at += 1;
        }
        self.at += 1;
        self.skip_until(|byte| !is_space(byte));
        self.value().map(|value| (name, value))
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let first = self.peek()?;
        let quoted = matches!(first, b'"' | b'\'');
        if quoted {
            self.at += 1;
        }
        let start = self.at;
        let ends = |byte| if quoted { byte == first } else { is_space(byte) || byte == b'>' };
        self.skip_until(ends);
        self.peek()?;
        let value = self.head[start..self.at].to_ascii_lowercase();
        if quoted {
            self.at += 1;
        }
        Some(value)
    }
}

/// The standard's "extracting a character encoding from a meta element".
fn charset_in_content(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        let at = rest.windows(7).position(|window| window == b"charset")?;
        rest = rest[at + 7..].trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b"=") {
            rest = after.trim_ascii_start();
            break;
        }
    }
    let label = match rest {
        [quote @ (b'"' | b'\''), inner @ ..] => {
            &inner[..inner.iter().position(|byte| byte == quote)?]
        }
        _ => {
            let end = rest.iter().position(|&byte| is_space(byte) || byte == b';');
            &rest[..end.unwrap_or(rest.len())]
        }
    };
    Encoding::for_label_no_replacement(label)
}

/// A declaration we could read cannot be in UTF-16, whatever it says.
fn as_meta_means(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

/// The standard's "get an XML encoding".
fn xml(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..declaration.iter().position(|&byte| byte == b'>')?];
    let at = declaration.windows(8).position(|window| window == b"encoding")?;
    let rest = declaration[at + 8..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, inner) = rest.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let label = &inner[..inner.iter().position(|byte| byte == quote)?];
    Encoding::for_label_no_replacement(label).map(as_meta_means)
}
