//! What a request came to: an answer, a redirect, or a reason in one word.
//!
//! Trouble on the other side is the normal life of a crawler, so it is a value and
//! never an error. Invariant: every reason has a short code that never changes
//! (tables and reports keep it) and a sentence for people.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::borrow::Cow;
use std::net::SocketAddr;
use thiserror::Error;

/// What came of asking for one URL.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Outcome {
    /// The document has come, or the beginning of it.
    Body(Box<Fetched>),
    /// What we know is still true (304).
    NotModified(Box<NotModified>),
    /// The document is said to be elsewhere.
    Redirect(Redirect),
    /// There is no such document: 404 or 410.
    Gone {
        /// Which of the two.
        status: u16,
    },
    /// We did not ask, or did not listen: the rules or safety forbid it.
    Refused { reason: Reason },
    /// Not now. Asking again later may help.
    Retry {
        /// How long the server asked us to wait, if it did.
        after_ms: Option<u64>,
        reason: Reason,
    },
    /// Asking again soon would give the same.
    Failed { reason: Reason },
}

/// A document as it was delivered, with its encodings taken off.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Fetched {
    /// The HTTP status, always 2xx.
    pub status: u16,
    /// Every header of the answer.
    pub headers: HeaderMap,
    /// The decoded body, or its beginning when `truncated`.
    pub body: Bytes,
    /// The body was longer than allowed; the rest was not read.
    pub truncated: bool,
    pub peer: SocketAddr,
    /// How many body bytes came over the wire, before decoding.
    pub wire_bytes: u64,
}

impl Fetched {
    /// A header as text, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The answer to a conditional request that found nothing new.
#[derive(Debug, Clone, PartialEq)]
pub struct NotModified {
    /// The headers; they may carry new validators.
    pub headers: HeaderMap,
}

/// Where a document is said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// The target in canonical form.
    pub to: String,
    /// What the answer wants to be reminded of.
    pub cookies: Vec<HeaderValue>,
}

impl Redirect {
    /// The document moved for good: 301 or 308.
    pub fn is_permanent(&self) -> bool {
        matches!(self.status, 301 | 308)
    }
}

impl Outcome {
    /// The HTTP status, where there was one. `page::robots::answer` asks for it.
    pub fn status(&self) -> Option<u16> {
        match self {
            Outcome::Body(fetched) => Some(fetched.status),
            Outcome::NotModified(_) => Some(304),
            Outcome::Redirect(redirect) => Some(redirect.status),
            Outcome::Gone { status } => Some(*status),
            Outcome::Refused { reason }
            | Outcome::Retry { reason, .. }
            | Outcome::Failed { reason } => match reason {
                Reason::Status(status) => Some(*status),
                _ => None,
            },
        }
    }

    /// Whether we refused to ask: nothing was requested.
    pub fn is_unasked(&self) -> bool {
        matches!(self, Outcome::Refused { reason } if *reason != Reason::MediaType)
    }

    /// Whether the document could not be had. One of a type that nobody wants was refused
    /// by choice, and one that is gone is an answer.
    pub fn is_failure(&self) -> bool {
        matches!(self, Outcome::Retry { .. } | Outcome::Failed { .. }) || self.is_unasked()
    }

    /// Why there is no document, where there is a reason.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Outcome::Refused { reason }
            | Outcome::Retry { reason, .. }
            | Outcome::Failed { reason } => Some(*reason),
            Outcome::Gone { status } => Some(Reason::Status(*status)),
            Outcome::Body(_) | Outcome::NotModified(_) | Outcome::Redirect(_) => None,
        }
    }
}

/// Why there is no document. The text of the variant is the sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[allow(missing_docs)]
pub enum Reason {
    /// Not a canonical http(s) URL.
    #[error("the URL is not one that can be fetched")]
    Url,
    /// A port where no web server is expected.
    #[error("port {0} is not allowed for web pages")]
    Port(u16),
    /// An address that is not on the public internet; the range's name.
    #[error("the address is not on the public internet: {0}")]
    Address(&'static str),
    /// `localhost` and what is under it.
    #[error("the host name means this computer itself")]
    Localhost,
    /// The service that gives a cloud machine its credentials.
    #[error("the host is a cloud's metadata service")]
    Metadata,
    /// Our own console, database or object store.
    #[error("the address belongs to this program itself")]
    OwnAddress,
    /// A hop leads out of what the job may visit.
    #[error("a redirect leads out of the job's scope")]
    HopScope,
    /// The robots.txt of a hop forbids it.
    #[error("robots.txt forbids the target of a redirect")]
    HopRobots,
    /// More redirects than are followed.
    #[error("there were too many redirects")]
    RedirectLimit,
    /// A redirect leads back to where the chain has been.
    #[error("the redirects form a loop")]
    RedirectLoop,
    /// A redirect without a target, or to something that is no web address.
    #[error("a redirect has no valid target URL")]
    RedirectTarget,
    /// A type that the job does not take.
    #[error("the job does not keep documents of its type")]
    MediaType,
    /// The certificate is too old.
    #[error("the server's certificate has expired")]
    TlsExpired,
    /// The certificate is not valid yet.
    #[error("the server's certificate is not valid yet")]
    TlsNotYetValid,
    /// The certificate is for other names.
    #[error("the server's certificate is for another host name")]
    TlsWrongHost,
    /// The server vouches for itself.
    #[error("the server's certificate is self-signed")]
    TlsSelfSigned,
    /// The chain leads to no trusted root, or is not whole.
    #[error("the server's certificate was issued by an authority that is not trusted")]
    TlsUnknownIssuer,
    /// The certificate was withdrawn.
    #[error("the server's certificate has been revoked")]
    TlsRevoked,
    /// A signature is wrong, or of a kind that is no longer safe.
    #[error("the server's certificate has a wrong or unsafe signature")]
    TlsSignature,
    /// A certificate that cannot be used for another reason.
    #[error("the server's certificate cannot be used")]
    TlsCertificate,
    /// No common version or cipher, an alert, or bytes that are no TLS.
    #[error("the TLS handshake failed")]
    TlsProtocol,
    /// This process has no room for another connection.
    #[error("too many open files; raise the limit (ulimit -n), or lower --concurrency")]
    OpenFiles,
    /// The name has no address.
    #[error("the host name could not be resolved")]
    Dns,
    #[error("the server refused the connection")]
    ConnectRefused,
    /// The server cannot be reached.
    #[error("the server could not be reached")]
    Connect,
    /// Resolving, connecting and TLS took too long.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The connection ended before the answer did.
    #[error("the connection broke before the answer was complete")]
    ConnectionLost,
    /// The head of the answer did not come in time.
    #[error("the server did not answer in time")]
    FirstByteTimeout,
    /// Nothing came for too long.
    #[error("the server stopped sending")]
    IdleTimeout,
    /// The whole took too long.
    #[error("the answer was not complete in time")]
    TotalTimeout,
    /// Bytes came, but too few.
    #[error("the server sends too slowly")]
    TooSlow,
    /// More or larger headers than are read.
    #[error("the answer's headers are too many or too large")]
    HeadersTooLarge,
    /// Where the answer ends can be read in two ways.
    #[error("the length of the response is ambiguous")]
    AmbiguousLength,
    /// Not HTTP as we speak it.
    #[error("the answer is not valid HTTP")]
    Protocol,
    /// An encoding nobody asked for.
    #[error("the response has an unknown content encoding")]
    UnknownEncoding,
    #[error("the response has too many content encodings")]
    TooManyEncodings,
    /// The encoding is broken.
    #[error("the answer could not be decompressed")]
    CorruptEncoding,
    #[error("the response is too large when decompressed")]
    TooLarge,
    /// A status that is no document.
    #[error("the server answered with status {0}")]
    Status(u16),
    /// A bug of this program, met while the document was fetched or read.
    #[error("an internal error occurred")]
    Internal,
}

impl Reason {
    /// A short word that never changes, for tables, reports and questions of why.
    pub fn code(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Reason::Url => "url",
            Reason::Port(_) => "port",
            Reason::Address(_) => "address",
            Reason::Localhost => "localhost",
            Reason::Metadata => "metadata",
            Reason::OwnAddress => "own-address",
            Reason::HopScope => "hop-scope",
            Reason::HopRobots => "hop-robots",
            Reason::RedirectLimit => "redirect-limit",
            Reason::RedirectLoop => "redirect-loop",
            Reason::RedirectTarget => "redirect-target",
            Reason::MediaType => "media-type",
            Reason::TlsExpired => "tls-expired",
            Reason::TlsNotYetValid => "tls-not-yet-valid",
            Reason::TlsWrongHost => "tls-wrong-host",
            Reason::TlsSelfSigned => "tls-self-signed",
            Reason::TlsUnknownIssuer => "tls-unknown-issuer",
            Reason::TlsRevoked => "tls-revoked",
            Reason::TlsSignature => "tls-signature",
            Reason::TlsCertificate => "tls-certificate",
            Reason::TlsProtocol => "tls-protocol",
            Reason::OpenFiles => "open-files",
            Reason::Dns => "dns",
            Reason::ConnectRefused => "connect-refused",
            Reason::Connect => "connect",
            Reason::ConnectTimeout => "connect-timeout",
            Reason::ConnectionLost => "connection-lost",
            Reason::FirstByteTimeout => "first-byte-timeout",
            Reason::IdleTimeout => "idle-timeout",
            Reason::TotalTimeout => "total-timeout",
            Reason::TooSlow => "too-slow",
            Reason::HeadersTooLarge => "headers-too-large",
            Reason::AmbiguousLength => "ambiguous-length",
            Reason::Protocol => "protocol",
            Reason::UnknownEncoding => "unknown-encoding",
            Reason::TooManyEncodings => "too-many-encodings",
            Reason::CorruptEncoding => "corrupt-encoding",
            Reason::TooLarge => "too-large",
            Reason::Internal => "internal-error",
            Reason::Status(status) => return Cow::Owned(format!("http-{status}")),
        })
    }

    /// Whether nobody answered: nothing is known of the server but that it was not there.
    pub fn is_no_answer(self) -> bool {
        matches!(
            self,
            Reason::TlsProtocol
                | Reason::OpenFiles
                | Reason::Dns
                | Reason::ConnectRefused
                | Reason::Connect
                | Reason::ConnectTimeout
                | Reason::ConnectionLost
                | Reason::FirstByteTimeout
        )
    }

    /// The sentence for people, with the name of the host that it is about.
    pub fn sentence(self, host: &str) -> String {
        match self {
            Reason::Address(range) => {
                let is_address =
                    host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
                let verb = if is_address { "is" } else { "has" };
                match range {
                    "private network" | "loopback" | "unspecified or loopback" | "unique local" => {
                        format!("{host} {verb} a private address")
                    }
                    range => format!("{host} {verb} no address of the public internet ({range})"),
                }
            }
            Reason::Localhost => format!("{host} is this computer itself"),
            reason => reason.to_string(),
        }
    }

    /// The outcome that a reason leads to when it ends a request.
    pub fn outcome(self) -> Outcome {
        match self {
            Reason::Url
            | Reason::Port(_)
            | Reason::Address(_)
            | Reason::Localhost
            | Reason::Metadata
            | Reason::OwnAddress
            | Reason::HopScope
            | Reason::HopRobots
            | Reason::MediaType
            | Reason::TlsExpired
            | Reason::TlsNotYetValid
            | Reason::TlsWrongHost
            | Reason::TlsSelfSigned
            | Reason::TlsUnknownIssuer
            | Reason::TlsRevoked
            | Reason::TlsSignature
            | Reason::TlsCertificate => Outcome::Refused { reason: self },
            Reason::TlsProtocol
            | Reason::OpenFiles
            | Reason::Dns
            | Reason::ConnectRefused
            | Reason::Connect
            | Reason::ConnectTimeout
            | Reason::ConnectionLost
            | Reason::FirstByteTimeout
            | Reason::IdleTimeout
            | Reason::TotalTimeout
            | Reason::TooSlow => Outcome::Retry { after_ms: None, reason: self },
            Reason::RedirectLimit
            | Reason::RedirectLoop
            | Reason::RedirectTarget
            | Reason::HeadersTooLarge
            | Reason::AmbiguousLength
            | Reason::Protocol
            | Reason::UnknownEncoding
            | Reason::TooManyEncodings
            | Reason::CorruptEncoding
            | Reason::TooLarge
            | Reason::Internal => Outcome::Failed { reason: self },
            Reason::Status(status) => on_status(status, None),
        }
    }
}

/// What a status means when it brings no document of its own. 2xx, 304 and the
/// redirects do, so they come here only when their answer was unusable.
pub fn on_status(status: u16, after_ms: Option<u64>) -> Outcome {
    match status {
        404 | 410 => Outcome::Gone { status },
        408 | 425 | 429 | 500..=599 => Outcome::Retry { after_ms, reason: Reason::Status(status) },
        _ => Outcome::Failed { reason: Reason::Status(status) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_becomes_the_outcome_it_means() {
        for status in [404, 410] {
            assert_eq!(on_status(status, None), Outcome::Gone { status });
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            let reason = Reason::Status(status);
            assert_eq!(on_status(status, Some(5)), Outcome::Retry { after_ms: Some(5), reason });
        }
        for status in [100, 206, 300, 400, 401, 403, 451, 600, 999] {
            let reason = Reason::Status(status);
            assert_eq!(on_status(status, Some(5)), Outcome::Failed { reason });
        }
    }

    #[test]
    fn a_refused_address_is_named() {
        let sentence = |range, host| Reason::Address(range).sentence(host);
        assert_eq!(sentence("loopback", "127.0.0.3"), "127.0.0.3 is a private address");
        assert_eq!(sentence("private network", "wiki.lan"), "wiki.lan has a private address");
        let other = "192.0.2.1 is no address of the public internet (documentation)";
        assert_eq!(sentence("documentation", "192.0.2.1"), other);
        assert_eq!(Reason::Dns.sentence("a.example"), Reason::Dns.to_string());
    }

    #[test]
    fn robots_decisions_find_the_status_in_every_outcome() {
        assert_eq!(Reason::Status(503).outcome().status(), Some(503));
        assert_eq!(Reason::Status(403).outcome().status(), Some(403));
        assert_eq!(Reason::Status(404).outcome().status(), Some(404));
        assert_eq!(Reason::Dns.outcome().status(), None);
    }

    #[test]
    fn codes_are_words_of_lower_case_letters_digits_and_hyphens() {
        let all = [Reason::Url, Reason::TlsSelfSigned, Reason::Status(418), Reason::TooLarge];
        for reason in all {
            let code = reason.code();
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            assert!(code.bytes().all(plain), "{code}");
        }
        assert_eq!(Reason::Status(418).code(), "http-418");
    }
}
