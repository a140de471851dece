//! Signs requests, so that a receiver knows whom they are from.
//!
//! HMAC-SHA-256 over the time, the method, the target and the body, each on a line of its
//! own but for the body: a request cannot be used for another document, nor much later.
//! Invariant: what a receiver needs for its check is what these two headers and the
//! request itself say.

use crate::http::ServerRequest;
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Says when a request was signed, in seconds since 1970.
pub const TIMESTAMP: &str = "x-driftline-timestamp";
/// Says `sha256=` and the signature in hex.
pub const SIGNATURE: &str = "x-driftline-signature";

/// Adds the time and the signature of time, method, target and body to the headers.
pub fn sign(request: &mut ServerRequest<'_>, secret: &str, now_ms: i64) {
    let seconds = (now_ms / 1_000).to_string();
    let target = match request.url.query() {
        Some(query) => format!("{}?{query}", request.url.path()),
        None => request.url.path().to_owned(),
    };
    let signature = signature(secret, [&seconds, request.method.as_str(), &target], &request.body);
    request.headers.push((TIMESTAMP, seconds));
    request.headers.push((SIGNATURE, format!("sha256={signature}")));
}

/// The signature of a request's time, method, target and body.
pub fn signature(secret: &str, lines: [&str; 3], body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of every length");
    for line in lines {
        mac.update(line.as_bytes());
        mac.update(b"\n");
    }
    mac.update(body);
    HEXLOWER.encode(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Method;
    use url::Url;

    #[test]
    fn a_signature_is_what_others_compute() {
        // printf '1\nPOST\n/in?a=1\n{}' | openssl dgst -sha256 -hmac secret
        let mut request = ServerRequest::json(
            Method::POST,
            Url::parse("http://a/in?a=1").unwrap(),
            b"{}".to_vec(),
        );
        sign(&mut request, "secret", 1_999);
        let expected = "sha256=95b7d02c68dac199499887f933ea030d7aed67cfc98aec4925829f297e15e497";
        assert_eq!(
            request.headers,
            [(TIMESTAMP, "1".to_owned()), (SIGNATURE, expected.to_owned())]
        );
    }
}
