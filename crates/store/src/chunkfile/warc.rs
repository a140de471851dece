//! WARC 1.1 records (ISO 28500:2017): the model, how ours are made, and their bytes.
//!
//! Relies on no clock and no randomness: times and ids are handed in.
//! Invariants: a record is written with the length its block has, whatever its
//! headers say; no header value holds a line break, so nothing that came from
//! a server can forge one; every block we make carries its digest.

use std::fmt::Write as _;
use std::net::IpAddr;

use sha1::{Digest as _, Sha1};

use crate::objects::ChunkKey;

/// The version we write.
pub const VERSION: &str = "1.1";
/// Profile of a revisit whose payload has the digest of an earlier one.
pub const PROFILE_SAME_PAYLOAD: &str =
    "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// Profile of a revisit that the server answered with 304.
pub const PROFILE_NOT_MODIFIED: &str =
    "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// One record of an archive, ours or foreign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The version of its first line, such as `1.1`.
    pub version: String,
    /// Named fields in order, without `Content-Length`: that is the block's.
    pub headers: Vec<(String, String)>,
    /// The block, as stored.
    pub block: Vec<u8>,
}

impl Record {
    /// The first field of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The record's type: `response`, `revisit`, and so on.
    pub fn kind(&self) -> &str {
        self.header("WARC-Type").unwrap_or_default()
    }

    /// The record's id, without angle brackets.
    pub fn id(&self) -> Option<&str> {
        self.header("WARC-Record-ID").map(unbracketed)
    }

    /// The address it is about. WARC 1.0 writers put it in angle brackets at times.
    pub fn target_uri(&self) -> Option<&str> {
        self.header("WARC-Target-URI").map(unbracketed)
    }

    /// Its `WARC-Date` in milliseconds since 1970, if that is a full date and time.
    pub fn date_ms(&self) -> Option<i64> {
        let date: jiff::Timestamp = self.header("WARC-Date")?.parse().ok()?;
        Some(date.as_millisecond())
    }

    /// Appends the record as an uncompressed archive holds it.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.block.len() + 64 + 64 * self.headers.len());
        out.extend_from_slice(b"WARC/");
        out.extend_from_slice(self.version.as_bytes());
        out.extend_from_slice(b"\r\n");
        for (name, value) in &self.headers {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        let _ = std::io::Write::write_fmt(
            out,
            format_args!("Content-Length: {}\r\n\r\n", self.block.len()),
        );
        out.extend_from_slice(&self.block);
        out.extend_from_slice(b"\r\n\r\n");
    }

    fn new(kind: &str, id: &RecordId, date_ms: i64) -> Record {
        let mut record =
            Record { version: VERSION.to_owned(), headers: Vec::new(), block: Vec::new() };
        record.set("WARC-Type", kind);
        record.set("WARC-Record-ID", &format!("<{}>", id.0));
        record.set("WARC-Date", &date(date_ms));
        record
    }

    fn set(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), one_line(value)));
    }

    fn set_block(&mut self, content_type: &str, block: Vec<u8>) {
        self.set("Content-Type", content_type);
        self.set("WARC-Block-Digest", &digest(&block));
        self.block = block;
    }
}

/// A `urn:uuid` that names one record for ever, in every archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordId(pub String);

impl RecordId {
    /// The id of record number `ordinal` of a chunk's bodies. `installation` is
    /// the random name of the data directory: two of them number alike.
    pub fn of(installation: [u8; 16], chunk: ChunkKey, ordinal: u64) -> RecordId {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"driftline warc record\n");
        hasher.update(&installation);
        hasher.update(&chunk.part.to_le_bytes());
        hasher.update(&chunk.id.to_le_bytes());
        hasher.update(&ordinal.to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        // RFC 9562: version 8 (made by a rule of ours), variant 10.
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = "urn:uuid:".to_owned();
        for (at, byte) in bytes.iter().enumerate() {
            let _ =
                write!(text, "{}{byte:02x}", if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" });
        }
        RecordId(text)
    }
}

/// One answer of a server.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Capture<'a> {
    /// The address that answered.
    pub target_uri: &'a str,
    /// When the answer began.
    pub date_ms: i64,
    pub ip: Option<IpAddr>,
    pub status: u16,
    /// Header fields as received, in order.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, decoded: transfer and content encodings removed.
    pub body: &'a [u8],
    /// Whether a limit cut the body.
    pub truncated: bool,
}

/// The earlier record that a revisit stands for.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Original<'a> {
    /// Its id, as [`RecordId`] gave it.
    pub record_id: &'a str,
    pub target_uri: &'a str,
    pub date_ms: i64,
    pub payload_digest: &'a str,
}

/// The first record of a file: who wrote it, and how.
pub fn warcinfo(id: &RecordId, date_ms: i64, fields: &[(&str, &str)]) -> Record {
    let mut record = Record::new("warcinfo", id, date_ms);
    record.set_block("application/warc-fields", warc_fields(fields));
    record
}

/// An answer with its body.
pub fn response(id: &RecordId, capture: &Capture<'_>) -> Record {
    let mut record = capture_record("response", id, capture);
    let mut block = http_head(capture, Some(capture.body.len()));
    block.extend_from_slice(capture.body);
    record.set("WARC-Payload-Digest", &digest(capture.body));
    if capture.truncated {
        record.set("WARC-Truncated", "length");
    }
    record.set_block("application/http; msgtype=response", block);
    record
}

/// A document that did not come as an answer of the web, as it is.
pub fn resource(
    id: &RecordId,
    target_uri: &str,
    date_ms: i64,
    media_type: &str,
    body: &[u8],
) -> Record {
    let mut record = Record::new("resource", id, date_ms);
    record.set("WARC-Target-URI", &uri(target_uri));
    record.set("WARC-Payload-Digest", &digest(body));
    let media_type = if media_type.is_empty() { "application/octet-stream" } else { media_type };
    record.set_block(media_type, body.to_vec());
    record
}

/// An answer without its body, because an earlier record has it: a 304, or the
/// same bytes again. Keeps the head of this answer.
pub fn revisit(id: &RecordId, capture: &Capture<'_>, original: &Original<'_>) -> Record {
    let mut record = capture_record("revisit", id, capture);
    let not_modified = capture.status == 304;
    let profile = if not_modified { PROFILE_NOT_MODIFIED } else { PROFILE_SAME_PAYLOAD };
    record.set("WARC-Profile", profile);
    record.set("WARC-Refers-To", &format!("<{}>", unbracketed(original.record_id)));
    record.set("WARC-Refers-To-Target-URI", &uri(original.target_uri));
    record.set("WARC-Refers-To-Date", &date(original.date_ms));
    record.set("WARC-Payload-Digest", original.payload_digest);
    if !not_modified {
        record.set("WARC-Truncated", "length");
    }
    record.set_block("application/http; msgtype=response", http_head(capture, None));
    record
}

/// The request that led to the record `concurrent_to`, as it was sent.
pub fn request(
    id: &RecordId,
    concurrent_to: &RecordId,
    capture: &Capture<'_>,
    message: Vec<u8>,
) -> Record {
    let mut record = capture_record("request", id, capture);
    record.set("WARC-Concurrent-To", &format!("<{}>", concurrent_to.0));
    record.set_block("application/http; msgtype=request", message);
    record
}

/// What else is known of the record `about`, as named values.
pub fn metadata(
    id: &RecordId,
    about: &RecordId,
    capture: &Capture<'_>,
    fields: &[(&str, &str)],
) -> Record {
    let mut record = Record::new("metadata", id, capture.date_ms);
    record.set("WARC-Target-URI", &uri(capture.target_uri));
    record.set("WARC-Concurrent-To", &format!("<{}>", about.0));
    record.set_block("application/warc-fields", warc_fields(fields));
    record
}

/// A digest as WARC names it: SHA-1 in base 32.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha1:{}", data_encoding::BASE32.encode(&Sha1::digest(bytes)))
}

fn capture_record(kind: &str, id: &RecordId, capture: &Capture<'_>) -> Record {
    let mut record = Record::new(kind, id, capture.date_ms);
    record.set("WARC-Target-URI", &uri(capture.target_uri));
    if let Some(ip) = capture.ip {
        record.set("WARC-IP-Address", &ip.to_string());
    }
    record
}

/// The head of the answer. The body was decoded, so fields that describe it as
/// sent are kept under other names, as archives do. `body_bytes` is `None` for a
/// revisit: its fields still describe the body that is stored elsewhere.
fn http_head(capture: &Capture<'_>, body_bytes: Option<usize>) -> Vec<u8> {
    let reason = reason_phrase(capture.status);
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", capture.status).into_bytes();
    let length = body_bytes.map(|bytes| bytes.to_string());
    for (name, value) in capture.headers {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("content-length") && length.as_ref().is_some_and(|len| len.as_bytes() == *value) {
            continue;
        }
        let describes_what_was_sent =
            is("content-length") || is("content-encoding") || is("transfer-encoding");
        if describes_what_was_sent {
            head.extend_from_slice(b"X-Archive-Orig-");
        }
        head.extend(name.bytes().map(|byte| if is_token(byte) { byte } else { b'_' }));
        head.extend_from_slice(b": ");
        head.extend(value.iter().map(|byte| match byte {
            b'\r' | b'\n' | 0 => b' ',
            other => *other,
        }));
        head.extend_from_slice(b"\r\n");
    }
    if let Some(length) = length {
        head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// HTTP/2 sends no phrase, so it is always ours.
fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        // RFC 9112 lets the phrase be empty.
        _ => "",
    }
}

/// RFC 9110 token characters: what a field name is made of.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn warc_fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let lines = fields.iter().map(|(name, value)| format!("{name}: {}\r\n", one_line(value)));
    lines.collect::<String>().into_bytes()
}

/// Times beyond the calendar (year 9999) become its end: they are nobody's clock.
fn date(ms: i64) -> String {
    let bounded = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    format!("{bounded:.3}")
}

/// An address as a header holds it: what would end or split the line is escaped.
fn uri(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            ' ' | '<' | '>' => {
                let _ = write!(out, "%{:02X}", u32::from(letter));
            }
            control if control.is_ascii_control() => {
                let _ = write!(out, "%{:02X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out
}

/// A value without line breaks, and without the white space that readers trim.
fn one_line(text: &str) -> String {
    let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.trim().chars().map(clean).collect()
}

fn unbracketed(text: &str) -> &str {
    text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(text)
}
