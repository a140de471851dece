//! The HTTP message inside a `response` or `request` record.
//!
//! Archives hold what servers sent, so this is lenient: line ends may be bare,
//! fields may be folded, bytes need not be UTF-8. Invariant: a message is read
//! in one pass, and only its first [`HEAD_BYTES_MAX`] bytes may be head.

/// Bytes of start line and fields together.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// A message: start line, fields, and the bytes that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpMessage<'a> {
    /// The request line or the status line.
    pub start_line: String,
    /// Fields in order, values as Latin-1 or UTF-8, folds undone.
    pub headers: Vec<(String, String)>,
    /// What follows the head, as stored: possibly chunked, possibly compressed.
    pub payload: &'a [u8],
}

impl HttpMessage<'_> {
    /// The status of a response.
    pub fn status(&self) -> Option<u16> {
        let rest = self.start_line.strip_prefix("HTTP/")?;
        rest.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// The first field of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The payload without `Transfer-Encoding: chunked`. Many archives name the
    /// encoding but store the bytes without it; those are returned as they are.
    pub fn dechunked(&self) -> std::borrow::Cow<'_, [u8]> {
        let chunked = self
            .header("transfer-encoding")
            .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
        let decoded = if chunked { dechunk(self.payload) } else { None };
        decoded.map_or(std::borrow::Cow::Borrowed(self.payload), std::borrow::Cow::Owned)
    }
}

/// Reads a message. `None`: it has no start line of HTTP, or its head has no end.
pub fn parse(message: &[u8]) -> Option<HttpMessage<'_>> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut start_line = None;
    let mut at = 0;
    loop {
        let window = &message[at..message.len().min(HEAD_BYTES_MAX)];
        let end = window.iter().position(|byte| *byte == b'\n');
        // A response without body may end right behind its last field.
        let Some(end) = end else {
            let ended = at == message.len() && start_line.is_some();
            return ended.then(|| HttpMessage {
                start_line: start_line.unwrap_or_default(),
                headers,
                payload: &[],
            });
        };
        let line = window[..end].strip_suffix(b"\r").unwrap_or(&window[..end]);
        at += end + 1;
        match &start_line {
            None => start_line = Some(start_of(line)?),
            Some(_) if line.is_empty() => break,
            Some(_) => add_field(&mut headers, line),
        }
    }
    Some(HttpMessage {
        start_line: start_line.unwrap_or_default(),
        headers,
        payload: &message[at..],
    })
}

/// A start line names HTTP at its beginning (response) or end (request).
fn start_of(line: &[u8]) -> Option<String> {
    let text = text_of(line);
    let is_http = text.starts_with("HTTP/")
        || text.rsplit(' ').next().is_some_and(|last| last.starts_with("HTTP/"));
    is_http.then_some(text)
}

fn add_field(headers: &mut Vec<(String, String)>, line: &[u8]) {
    let text = text_of(line);
    let folded = text.starts_with([' ', '\t']);
    match headers.last_mut() {
        Some((_, value)) if folded => unfold(value, &text),
        _ => {
            // A line without colon is noise between fields; archives keep it, we skip it.
            if let Some((name, value)) = text.split_once(':') {
                headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
    }
}

/// Appends a folded line. One blank stands for the fold, and only between words, so
/// that a value never begins or ends with one.
pub(super) fn unfold(value: &mut String, line: &str) {
    let more = line.trim();
    if !value.is_empty() && !more.is_empty() {
        value.push(' ');
    }
    value.push_str(more);
}

/// UTF-8 if it is, else every byte as the character of its number.
fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// `None` when the bytes are not chunked. A cut last chunk is kept as far as it goes.
fn dechunk(payload: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(payload.len());
    let mut rest = payload;
    loop {
        let line_end = rest.iter().take(1_024).position(|byte| *byte == b'\n');
        let Some(line_end) = line_end else {
            return rest.is_empty().then_some(out).filter(|out| !out.is_empty());
        };
        let size = std::str::from_utf8(&rest[..line_end]).ok()?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[line_end + 1..];
        if size == 0 {
            return Some(out);
        }
        let Some((data, behind)) = rest.split_at_checked(size) else {
            out.extend_from_slice(rest);
            return Some(out);
        };
        out.extend_from_slice(data);
        rest =
            behind.strip_prefix(b"\r\n").or_else(|| behind.strip_prefix(b"\n")).unwrap_or(behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_split_into_status_fields_and_payload() {
        let message = b"HTTP/1.1 200 OK\r\nContent-Type: text/html;\r\n  charset=utf-8\r\n\
            X-Name: a:b\r\nnoise\r\nX-Latin: \xe9\r\n\r\nbody\r\n\r\n";
        let parsed = parse(message).unwrap();
        assert_eq!(parsed.status(), Some(200));
        assert_eq!(parsed.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(parsed.header("x-name"), Some("a:b"));
        assert_eq!(parsed.header("x-latin"), Some("é"));
        assert_eq!(parsed.payload, b"body\r\n\r\n");
    }

    #[test]
    fn a_fold_of_nothing_adds_nothing() {
        let parsed = parse(b"HTTP/1.1 200 OK\r\nA: b\r\n \r\nC:\r\n\td\r\n\r\n").unwrap();
        assert_eq!((parsed.header("a"), parsed.header("c")), (Some("b"), Some("d")));
    }

    #[test]
    fn requests_bare_line_ends_and_missing_bodies_are_read() {
        let parsed = parse(b"GET / HTTP/1.0\nHost: a\n\n").unwrap();
        assert_eq!((parsed.status(), parsed.header("host")), (None, Some("a")));
        let parsed = parse(b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n").unwrap();
        assert_eq!((parsed.status(), parsed.payload), (Some(304), b"".as_slice()));
    }

    #[test]
    fn what_is_not_http_is_none() {
        let endless = [b"HTTP/1.1 200 OK\r\n".as_slice(), &vec![b'a'; HEAD_BYTES_MAX]].concat();
        for message in [b"".as_slice(), b"\r\n\r\n", b"<html>", b"HTTP/1.1 200", &endless] {
            assert_eq!(parse(message), None);
        }
    }

    #[test]
    fn chunked_payloads_are_joined_and_others_left_alone() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (payload, expected) in [
            ("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", "hello world"),
            ("5\r\nhello\r\n6\r\n wo", "hello wo"),
            ("<html>stored decoded</html>", "<html>stored decoded</html>"),
            ("ffffffffffffffffff\r\nx", "ffffffffffffffffff\r\nx"),
        ] {
            let message = format!("{head}{payload}");
            let parsed = parse(message.as_bytes()).unwrap();
            assert_eq!(parsed.dechunked(), expected.as_bytes(), "{payload}");
        }
    }
}
