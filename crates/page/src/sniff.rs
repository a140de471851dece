//! What kind of document an answer holds: its `Content-Type`, checked against its
//! first bytes.
//!
//! A subset of the WHATWG MIME Sniffing standard: a header that says something
//! definite is believed, a missing or meaningless one is replaced by what the bytes
//! show, and `nosniff` is honoured. Relies on nothing else. Invariant: pure, reads
//! at most [`SNIFF_BYTES`] bytes of the body and [`HEADER_BYTES_MAX`] of the header.

mod signature;

use std::borrow::Cow;

/// The standard's length of a resource header.
const SNIFF_BYTES: usize = 1_445;
/// A longer `Content-Type` is cut here before parsing.
const HEADER_BYTES_MAX: usize = 1_024;

/// A parsed `Content-Type` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentType {
    /// `type/subtype` in lower case.
    pub essence: String,
    /// The value of the first `charset` parameter, as written.
    pub charset: Option<String>,
}

impl ContentType {
    /// Parses a header by the standard's "parse a MIME type"; `None` when it is none.
    pub fn parse(header: &str) -> Option<ContentType> {
        let header = &header[..header.floor_char_boundary(HEADER_BYTES_MAX)];
        let header = header.trim_matches(is_http_space);
        let (essence, parameters) = header.split_once(';').unwrap_or((header, ""));
        let essence = essence.trim_end_matches(is_http_space);
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        Some(ContentType { essence: essence.to_ascii_lowercase(), charset: charset_of(parameters) })
    }
}

/// The first usable `charset` among the parameters.
fn charset_of(parameters: &str) -> Option<String> {
    let mut rest = parameters;
    while !rest.is_empty() {
        rest = rest.trim_start_matches(is_http_space);
        let name_end = rest.find([';', '=']).unwrap_or(rest.len());
        let name = &rest[..name_end];
        rest = &rest[name_end..];
        let Some(after) = rest.strip_prefix('=') else {
            rest = rest.strip_prefix(';').unwrap_or("");
            continue;
        };
        let value = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, behind) = quoted_string(quoted);
                rest = behind.find(';').map_or("", |at| &behind[at + 1..]);
                value
            }
            None => {
                let end = after.find(';').unwrap_or(after.len());
                rest = after.get(end + 1..).unwrap_or("");
                after[..end].trim_end_matches(is_http_space).to_owned()
            }
        };
        if name.eq_ignore_ascii_case("charset") && !value.is_empty() {
            return Some(value);
        }
    }
    None
}

/// The value of a quoted string without its quotes, and what stands behind it.
fn quoted_string(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, ch)) = chars.next() {
        match ch {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.push(chars.next().map_or('\\', |(_, escaped)| escaped)),
            _ => value.push(ch),
        }
    }
    (value, "")
}

fn is_http_space(ch: char) -> bool {
    matches!(ch, '\t' | '\n' | '\r' | ' ')
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// What can be done with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ContentKind {
    Html,
    /// RSS, Atom or JSON Feed.
    Feed,
    /// XML of another kind.
    Xml,
    Json,
    /// Text of another kind.
    Text,
    Pdf,
    /// An office document or e-book.
    Office,
    /// A compressed file or archive.
    Archive,
    Image,
    Audio,
    Video,
    Font,
    /// Anything else, which is not parsed.
    Binary,
}

/// The media type of a document and what it means to us.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Media {
    /// `type/subtype` in lower case.
    pub essence: Cow<'static, str>,
    pub kind: ContentKind,
}

impl Media {
    fn known(essence: &'static str) -> Media {
        Media { kind: kind_of(essence), essence: Cow::Borrowed(essence) }
    }
}

/// Names the document that came with these headers and begins with these bytes.
///
/// `nosniff` says that the answer had `X-Content-Type-Options: nosniff`.
pub fn media_of(content_type: Option<&str>, nosniff: bool, body: &[u8]) -> Media {
    let head = &body[..body.len().min(SNIFF_BYTES)];
    let header = content_type.map(|value| value.trim_matches(is_http_space)).unwrap_or_default();
    let supplied = ContentType::parse(header).map(|parsed| parsed.essence);
    match supplied.as_deref() {
        None | Some("unknown/unknown" | "application/unknown" | "*/*") => unknown(head, nosniff),
        Some(essence) if nosniff => as_supplied(essence),
        Some("text/plain") if is_default_of_old_servers(header) => text_or_binary(head),
        Some("text/html") => {
            signature::feed_root(head).map_or(Media::known("text/html"), Media::known)
        }
        Some("text/xml" | "application/xml") => match signature::feed_root(head) {
            Some(feed) => Media::known(feed),
            None => as_supplied(supplied.as_deref().unwrap_or_default()),
        },
        Some(essence) => match kind_of(essence) {
            kind @ (ContentKind::Image | ContentKind::Audio | ContentKind::Video) => {
                signature::binary(head)
                    .map(Media::known)
                    .filter(|seen| seen.kind == kind && !essence.ends_with("+xml"))
                    .unwrap_or_else(|| as_supplied(essence))
            }
            // These two say "some bytes" and nothing more.
            ContentKind::Binary
                if matches!(essence, "application/octet-stream" | "binary/octet-stream") =>
            {
                signature::binary(head).map_or_else(|| as_supplied(essence), Media::known)
            }
            _ => as_supplied(essence),
        },
    }
}

fn as_supplied(essence: &str) -> Media {
    Media { kind: kind_of(essence), essence: Cow::Owned(essence.to_owned()) }
}

/// The four values that old Apache versions sent for files they knew nothing about.
fn is_default_of_old_servers(header: &str) -> bool {
    matches!(
        header,
        "text/plain"
            | "text/plain; charset=ISO-8859-1"
            | "text/plain; charset=iso-8859-1"
            | "text/plain; charset=UTF-8"
    )
}

fn unknown(head: &[u8], nosniff: bool) -> Media {
    // Markup can carry scripts, so it is not guessed where guessing is forbidden.
    let markup = if nosniff { None } else { signature::markup(head) };
    if let Some(found) = markup.or_else(|| signature::binary(head)) {
        return Media::known(found);
    }
    if !nosniff && signature::looks_like_json(head) {
        return Media::known("application/json");
    }
    text_or_binary(head)
}

fn text_or_binary(head: &[u8]) -> Media {
    let marked = head.starts_with(b"\xef\xbb\xbf")
        || head.starts_with(b"\xfe\xff")
        || head.starts_with(b"\xff\xfe");
    if marked || !head.iter().any(|&byte| is_binary_byte(byte)) {
        return Media::known("text/plain");
    }
    Media::known(signature::binary(head).unwrap_or("application/octet-stream"))
}

/// The standard's "binary data byte".
fn is_binary_byte(byte: u8) -> bool {
    matches!(byte, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}

/// What a media type means to us.
pub fn kind_of(essence: &str) -> ContentKind {
    match essence {
        "text/html" | "application/xhtml+xml" => return ContentKind::Html,
        "application/rss+xml"
        | "application/atom+xml"
        | "application/rdf+xml"
        | "application/feed+json" => return ContentKind::Feed,
        "text/xml" | "application/xml" => return ContentKind::Xml,
        "application/json" | "text/json" => return ContentKind::Json,
        "application/pdf" | "application/x-pdf" => return ContentKind::Pdf,
        "application/msword"
        | "application/rtf"
        | "text/rtf"
        | "application/epub+zip"
        | "application/x-ole-storage" => return ContentKind::Office,
        "application/zip"
        | "application/gzip"
        | "application/x-gzip"
        | "application/x-tar"
        | "application/x-bzip2"
        | "application/x-xz"
        | "application/zstd"
        | "application/x-7z-compressed"
        | "application/vnd.rar"
        | "application/x-rar-compressed"
        | "application/x-compressed-tar" => return ContentKind::Archive,
        "application/javascript" | "application/x-javascript" | "application/ecmascript" => {
            return ContentKind::Text;
        }
        "application/ogg" => return ContentKind::Audio,
        "application/vnd.ms-fontobject" | "application/font-woff" => return ContentKind::Font,
        _ => {}
    }
    let (class, subtype) = essence.split_once('/').unwrap_or((essence, ""));
    match class {
        "image" => ContentKind::Image,
        "audio" => ContentKind::Audio,
        "video" => ContentKind::Video,
        "font" => ContentKind::Font,
        _ if subtype.ends_with("+xml") => ContentKind::Xml,
        _ if subtype.ends_with("+json") => ContentKind::Json,
        "text" => ContentKind::Text,
        _ if subtype.starts_with("vnd.openxmlformats-officedocument")
            || subtype.starts_with("vnd.oasis.opendocument")
            || subtype.starts_with("vnd.ms-") =>
        {
            ContentKind::Office
        }
        _ => ContentKind::Binary,
    }
}

#[cfg(test)]
mod tests;
