//! Which encoding a body is in, and its text.
//!
//! Order: byte order mark, then the answer's `Content-Type`, then a `<meta>` or
//! XML declaration in the first 1,024 bytes, then a guess. UTF-7 is never chosen:
//! it is no encoding of the WHATWG standard. Relies on encoding_rs for labels and
//! decoding and on chardetng for guessing. Invariant: every body decodes, and a
//! body of valid UTF-8 is borrowed, not copied.

mod prescan;

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

use crate::sniff::ContentType;

/// Bytes the guess looks at. More do not make it better, only slower.
const GUESS_BYTES_MAX: usize = 256 << 10;

/// The encoding chosen for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct EncodingDecision {
    pub encoding: &'static Encoding,
    /// What it was learnt from.
    pub source: EncodingSource,
}

/// Where the name of an encoding came from, the most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodingSource {
    /// A byte order mark.
    Bom,
    /// The `charset` of the `Content-Type` header.
    Header,
    /// A declaration in the first bytes of the document.
    Meta,
    /// Guessed from the body's bytes, as nothing names it.
    Guess,
}

/// Chooses the encoding of `body`, which came with this `Content-Type`.
pub fn decide(body: &[u8], content_type: Option<&str>) -> EncodingDecision {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return EncodingDecision { encoding, source: EncodingSource::Bom };
    }
    // Labels of the "replacement" encoding (ISO-2022-KR and kin) would turn the page into one
    // U+FFFD. Browsers do that against script injection; we run no scripts, so we look on.
    let header = content_type
        .and_then(ContentType::parse)
        .and_then(|parsed| parsed.charset)
        .and_then(|label| Encoding::for_label_no_replacement(label.as_bytes()));
    if let Some(encoding) = header {
        return EncodingDecision { encoding, source: EncodingSource::Header };
    }
    if let Some(encoding) = prescan::declared(body) {
        return EncodingDecision { encoding, source: EncodingSource::Meta };
    }
    EncodingDecision { encoding: guess(body), source: EncodingSource::Guess }
}

/// The text of `body` in the encoding decided on, without its byte order mark.
/// What is malformed becomes U+FFFD.
pub fn decode<'a>(body: &'a [u8], encoding: &'static Encoding) -> Cow<'a, str> {
    encoding.decode_with_bom_removal(body).0
}

fn guess(body: &[u8]) -> &'static Encoding {
    // Valid UTF-8 (which ASCII is too) is hardly ever anything else, except where escape
    // sequences say ISO-2022-JP.
    if !body.contains(&0x1b) && std::str::from_utf8(body).is_ok() {
        return UTF_8;
    }
    let seen = &body[..body.len().min(GUESS_BYTES_MAX)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(seen, seen.len() == body.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests;
