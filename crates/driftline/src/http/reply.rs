//! An answer as it is sent: with its tag, and compressed for who takes it so.
//!
//! Invariant: who has the answer already, by its tag, is sent none of it.

use super::params;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Answers shorter than this are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 1_024;

/// An answer with its tag, compressed for who takes it so; without its body for who has it
/// already.
pub fn finished(asked: &HeaderMap, kind: &'static str, text: String) -> Response {
    let header = |name| asked.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
    // Weak: what it says is the same, compressed or not.
    let tag = format!("W/\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]);
    let is_known = header(header::IF_NONE_MATCH)
        .is_some_and(|it| it.split(',').map(str::trim).any(|it| it == "*" || it == tag));
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding, authorization"));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let takes_gzip = header(header::ACCEPT_ENCODING).is_some_and(params::takes_gzip);
    let packed = if takes_gzip { compressed(&text) } else { None };
    let bytes = match packed {
        Some(bytes) => {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            bytes
        }
        None => text.into_bytes(),
    };
    *response.body_mut() = Body::from(bytes);
    response
}

fn compressed(text: &str) -> Option<Vec<u8>> {
    if text.len() < COMPRESSED_BYTES_MIN {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).ok()?;
    encoder.finish().ok()
}
