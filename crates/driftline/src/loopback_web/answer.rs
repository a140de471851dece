//! One answer: status, headers, body, and what goes wrong on the way.
//!
//! Invariant: what is written is a well-formed message with its length, whatever the
//! answering function put into it; only a [`Fault`] breaks it, and on purpose.

use std::io::Write;
use std::time::Duration;

use super::request::Request;

/// What the answering function says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Further headers. Length and connection are not among them.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// How long the client waits for the first byte.
    pub delay: Duration,
    pub fault: Fault,
    /// Whether the body is compressed for a client that accepts that.
    pub gzip: bool,
}

/// What goes wrong while an answer is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// The connection is closed without a byte.
    Drop,
    /// The connection is closed after so many bytes of the message.
    Cut(usize),
    /// So many bytes at a time, with a wait before each.
    Drip {
        /// Bytes at a time.
        bytes: usize,
        every: Duration,
    },
}

impl Answer {
    /// A status without a body to speak of.
    pub fn status(status: u16) -> Answer {
        let body = if has_no_body(status) { String::new() } else { format!("{status}\n") };
        Answer {
            status,
            headers: vec![("content-type", "text/plain; charset=utf-8".to_owned())],
            body: body.into_bytes(),
            delay: Duration::ZERO,
            fault: Fault::None,
            gzip: false,
        }
    }

    pub fn html(body: impl Into<Vec<u8>>) -> Answer {
        Answer::of("text/html; charset=utf-8", body)
    }

    pub fn text(body: impl Into<Vec<u8>>) -> Answer {
        Answer::of("text/plain; charset=utf-8", body)
    }

    /// A document of a media type.
    pub fn of(media_type: &str, body: impl Into<Vec<u8>>) -> Answer {
        let headers = vec![("content-type", media_type.to_owned())];
        Answer { headers, body: body.into(), ..Answer::status(200) }
    }

    /// The document is elsewhere.
    pub fn redirect(status: u16, to: &str) -> Answer {
        Answer::status(status).header("location", to)
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds an ETag, given without its quotes. Whoever knows it gets a 304.
    #[must_use]
    pub fn etag(self, tag: &str) -> Answer {
        self.header("etag", format!("\"{tag}\""))
    }

    /// Adds a Last-Modified. Whoever sends back that very date gets a 304.
    #[must_use]
    pub fn last_modified(self, date: &str) -> Answer {
        self.header("last-modified", date)
    }

    /// Lets the client wait.
    #[must_use]
    pub fn after(self, delay: Duration) -> Answer {
        Answer { delay, ..self }
    }

    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Answer {
        Answer { fault, ..self }
    }

    /// Compresses the body for a client that accepts that.
    #[must_use]
    pub fn gzipped(self) -> Answer {
        Answer { gzip: true, ..self }
    }

    /// The answer that this request gets, given what it knows already: a 304 for a
    /// document that has not changed. An ETag counts before a date (RFC 9110, 13.2.2);
    /// dates are compared as they are written, as nginx does.
    pub(super) fn with_conditions(mut self, request: &Request) -> Answer {
        let is_known = match (request.header("if-none-match"), self.find("etag")) {
            (Some(known), Some(tag)) => known.split(',').any(|one| is_same_tag(one, tag)),
            (Some(known), None) => known.trim() == "*",
            (None, _) => {
                let since = request.header("if-modified-since");
                since.is_some() && since == self.find("last-modified")
            }
        };
        if self.status == 200 && is_known {
            self.status = 304;
            self.body.clear();
            self.headers.retain(|(name, _)| *name != "content-type");
        }
        self
    }

    /// The message, as it goes over the wire.
    pub(super) fn encode(mut self, request: &Request, closes: bool) -> Vec<u8> {
        if self.gzip && !self.body.is_empty() && request.accepts_gzip() {
            self.body = compressed(&self.body);
            self.headers.push(("content-encoding", "gzip".to_owned()));
            self.headers.push(("vary", "accept-encoding".to_owned()));
        }
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, words(self.status));
        for (name, value) in &self.headers {
            let value: String = value.chars().filter(|c| !c.is_control()).collect();
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !has_no_body(self.status) {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        if closes {
            head.push_str("connection: close\r\n");
        }
        head.push_str("\r\n");
        let mut message = head.into_bytes();
        if request.method != "HEAD" && !has_no_body(self.status) {
            message.append(&mut self.body);
        }
        message
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Weak comparison: `W/"x"` and `"x"` name the same document.
fn is_same_tag(one: &str, other: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    one.trim() == "*" || bare(one) == bare(other)
}

fn has_no_body(status: u16) -> bool {
    matches!(status, 100..=199 | 204 | 304)
}

fn compressed(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.expect("memory takes every write")
}

fn words(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Status",
    }
}
