//! The first bytes by which a format is known.
//!
//! Tables of the WHATWG MIME Sniffing standard, with office documents and XML
//! feeds beside them. Invariant: pure; every look is bounded by `head`'s length.

/// Markup that a browser would take for HTML, XML or PDF, and feeds.
pub(super) fn markup(head: &[u8]) -> Option<&'static str> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = text.trim_ascii_start();
    if text.starts_with(b"%PDF-") {
        return Some("application/pdf");
    }
    if let Some(feed) = feed_root(head) {
        return Some(feed);
    }
    if text.starts_with(b"<?xml") {
        return Some(if xml_root(head).is_some_and(|root| root.eq_ignore_ascii_case(b"html")) {
            "application/xhtml+xml"
        } else {
            "text/xml"
        });
    }
    HTML_STARTS.iter().any(|start| starts_with_tag(text, start)).then_some("text/html")
}

const HTML_STARTS: [&[u8]; 17] = [
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
    b"<!--",
];

/// Whether `text` begins with `start` in any case, followed by a space or `>`
/// (a comment needs neither).
fn starts_with_tag(text: &[u8], start: &[u8]) -> bool {
    let Some(begin) = text.get(..start.len()) else { return false };
    let ended = start == b"<!--" || matches!(text.get(start.len()), Some(b' ' | b'>'));
    begin.eq_ignore_ascii_case(start) && ended
}

/// The feed format that the root element names.
pub(super) fn feed_root(head: &[u8]) -> Option<&'static str> {
    match xml_root(head)? {
        b"rss" => Some("application/rss+xml"),
        b"feed" => Some("application/atom+xml"),
        b"rdf:RDF" if contains(head, b"http://purl.org/rss/1.0/") => Some("application/rss+xml"),
        _ => None,
    }
}

/// The name of the first element, behind declarations, comments and instructions.
fn xml_root(head: &[u8]) -> Option<&[u8]> {
    let mut rest = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    loop {
        rest = rest.trim_ascii_start().strip_prefix(b"<")?;
        let end: &[u8] = match rest {
            [b'!', b'-', b'-', ..] => b"-->",
            [b'!', ..] => b">",
            [b'?', ..] => b"?>",
            _ => {
                let stop = |&byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
                return Some(&rest[..rest.iter().position(stop).unwrap_or(rest.len())]);
            }
        };
        let at = rest.windows(end.len()).position(|window| window == end)?;
        rest = &rest[at + end.len()..];
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether the bytes begin as a JSON object or array does.
pub(super) fn looks_like_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let Some((first, rest)) = text.split_first() else { return false };
    let rest = rest.trim_ascii_start();
    match first {
        b'{' => matches!(rest.first(), Some(b'"' | b'}')),
        b'[' => matches!(rest.first(), Some(b'"' | b'{' | b'[' | b']' | b'0'..=b'9' | b'-')),
        _ => false,
    }
}

/// Fixed beginnings and what they mean, the longer of two first.
const STARTS: [(&[u8], &str); 34] = [
    (b"%PDF-", "application/pdf"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"BM", "image/bmp"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\xff\x0a", "image/jxl"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"ID3", "audio/mpeg"),
    (b"OggS\0", "application/ogg"),
    (b"fLaC", "audio/flac"),
    (b"MThd\0\0\0\x06", "audio/midi"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"\0asm", "application/wasm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"ttcf", "font/collection"),
    (b"\0\x01\0\0", "font/ttf"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ\x90", "application/x-executable"),
];

/// Formats that are no text.
pub(super) fn binary(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"PK\x03\x04") {
        return Some(zip(head));
    }
    if head.len() >= 12 {
        match (&head[..4], &head[8..12]) {
            (b"RIFF", b"WEBP") => return Some("image/webp"),
            (b"RIFF", b"WAVE") => return Some("audio/wave"),
            (b"RIFF", b"AVI ") => return Some("video/avi"),
            (b"FORM", b"AIFF") => return Some("audio/aiff"),
            _ => {}
        }
        if &head[4..8] == b"ftyp" {
            return Some(match &head[8..12] {
                b"avif" | b"avis" => "image/avif",
                b"heic" | b"heix" | b"mif1" => "image/heic",
                b"M4A " | b"M4B " => "audio/mp4",
                _ => "video/mp4",
            });
        }
    }
    STARTS.iter().find(|(start, _)| head.starts_with(start)).map(|(_, name)| *name)
}

/// A ZIP archive by its first entry: office documents and e-books have a fixed one.
fn zip(head: &[u8]) -> &'static str {
    let name_len = match head.get(26..28) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => 0,
    };
    let name = head.get(30..30 + name_len).unwrap_or_default();
    if name == b"mimetype" {
        let stored = head.get(38..).unwrap_or_default();
        return if stored.starts_with(b"application/epub+zip") {
            "application/epub+zip"
        } else if stored.starts_with(b"application/vnd.oasis.opendocument") {
            "application/vnd.oasis.opendocument.text"
        } else {
            "application/zip"
        };
    }
    if name == b"[Content_Types].xml" || name.starts_with(b"_rels/") {
        return "application/vnd.openxmlformats-officedocument";
    }
    "application/zip"
}
