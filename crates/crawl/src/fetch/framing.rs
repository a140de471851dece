//! Whether an answer's head can be trusted with where its body ends.
//!
//! hyper refuses what is plainly wrong; this looks at what it lets pass. Invariant:
//! an answer that two readers could cut differently is refused.

use hyper::HeaderMap;
use hyper::header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use hyper::http::response::Parts;

use super::limits::Limits;
use super::outcome::Reason;

/// Checks the head. True if the connection may be used again after the body.
pub(super) fn check(head: &Parts, is_h2: bool, limits: &Limits) -> Result<bool, Reason> {
    if head.headers.len() > limits.headers_max
        || header_bytes(&head.headers) > limits.header_bytes_max
    {
        return Err(Reason::HeadersTooLarge);
    }
    // Nobody asked to switch protocols, and other 1xx do not end here.
    if head.status.is_informational() {
        return Err(Reason::Protocol);
    }
    if is_h2 { Ok(true) } else { check_h1(&head.headers) }
}

fn check_h1(headers: &HeaderMap) -> Result<bool, Reason> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else {
        // hyper has seen to it that all lengths are the same number; that there are
        // several is odd enough not to ask here again.
        let is_plain = length.is_none_or(|value| value.as_bytes().iter().all(u8::is_ascii_digit));
        return Ok(is_plain && lengths.next().is_none());
    };
    let is_only_chunked =
        coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
    if length.is_some() || !is_only_chunked {
        return Err(Reason::AmbiguousLength);
    }
    Ok(true)
}

/// Names and values with what HTTP/1 puts between them.
fn header_bytes(headers: &HeaderMap) -> usize {
    const BETWEEN: usize = ": \r\n".len();
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + BETWEEN).sum()
}

/// How much is kept of a body of this type. One without a type is likely a page.
pub(super) fn body_bytes_max(content_type: Option<&HeaderValue>, limits: &Limits) -> usize {
    let Some(value) = content_type.and_then(|value| value.to_str().ok()) else {
        return limits.page_bytes_max;
    };
    let essence = value.split(';').next().unwrap_or("").trim();
    let begins = |with: &str| {
        essence.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    let is_page = essence.is_empty() || begins("text/") || begins("application/xhtml+xml");
    if is_page { limits.page_bytes_max } else { limits.other_bytes_max }
}
