//! One request as the answering function sees it, and how its head is read.
//!
//! Invariant: whatever bytes come, the head is at most [`HEAD_BYTES_MAX`] long and has
//! at most [`HEADERS_MAX`] headers, the body at most [`BODY_BYTES_MAX`], the path begins with `/` and holds neither blanks nor
//! controls, and the host is in small letters without its port.

/// The longest head of a request that is read.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The longest body of a request that is read.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// The headers a request may have.
pub const HEADERS_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `HEAD` and so on.
    pub method: String,
    /// The host, in small letters and without its port.
    pub host: String,
    /// The path with its query, as it was sent.
    pub path: String,
    /// Names in small letters, values trimmed.
    pub headers: Vec<(String, String)>,
    /// What was sent with it.
    pub body: Vec<u8>,
    /// Whether the connection is to be closed after the answer.
    pub(super) is_last: bool,
}

/// Why a head is not a request that can be answered: the status that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRequest(pub u16);

impl Request {
    /// A request that nobody sent, to ask an answering function without a socket.
    pub fn get(authority: &str, path: &str) -> Request {
        let host = authority.split_once(':').map_or(authority, |(host, _)| host);
        Request {
            method: "GET".to_owned(),
            host: host.to_ascii_lowercase(),
            path: path.to_owned(),
            headers: vec![("host".to_owned(), authority.to_owned())],
            body: Vec::new(),
            is_last: false,
        }
    }

    /// Reads a head, which ends with its empty line.
    pub fn parse(head: &[u8]) -> Result<Request, BadRequest> {
        let head = std::str::from_utf8(head).map_err(|_| BadRequest(400))?;
        let mut lines = head.split("\r\n").take_while(|line| !line.is_empty());
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(path), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BadRequest(400));
        };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !path.starts_with('/') || !is_plain(path) || !is_plain(method) {
            return Err(BadRequest(400));
        }
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            return Err(BadRequest(505));
        }
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(BadRequest(400))?;
            if headers.len() >= HEADERS_MAX {
                return Err(BadRequest(431));
            }
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Request {
            method: method.to_owned(),
            host: String::new(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
            is_last: version == "HTTP/1.0",
        };
        let authority = request.header("host").ok_or(BadRequest(400))?;
        let host = authority.split_once(':').map_or(authority, |(host, _)| host);
        if host.is_empty() || !is_plain(host) {
            return Err(BadRequest(400));
        }
        request.host = host.to_ascii_lowercase();
        // A body that is not read would be taken for the next request.
        let has_length = request.body_bytes().is_some_and(|bytes| bytes <= BODY_BYTES_MAX);
        if !has_length || request.header("transfer-encoding").is_some() {
            return Err(BadRequest(413));
        }
        let closes = |value: &str| value.eq_ignore_ascii_case("close");
        request.is_last |= request.header("connection").is_some_and(closes);
        Ok(request)
    }

    /// How long its body is; none if it does not say so in a number.
    pub(super) fn body_bytes(&self) -> Option<usize> {
        self.header("content-length").map_or(Some(0), |length| length.parse().ok())
    }

    /// The value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The port of the host, 80 if it names none.
    pub fn port(&self) -> u16 {
        let authority = self.header("host").unwrap_or_default();
        authority.split_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(80)
    }

    /// The path without its query.
    pub fn path_alone(&self) -> &str {
        self.path.split_once('?').map_or(&self.path, |(path, _)| path)
    }

    /// What stands behind the question mark.
    pub fn query(&self) -> Option<&str> {
        self.path.split_once('?').map(|(_, query)| query)
    }

    /// Whether "nothing new" would be an answer.
    pub fn is_conditional(&self) -> bool {
        self.header("if-none-match").is_some() || self.header("if-modified-since").is_some()
    }

    /// Whether an answer may be sent compressed with gzip.
    pub fn accepts_gzip(&self) -> bool {
        let codings = self.header("accept-encoding").unwrap_or_default();
        codings.split(',').any(|coding| coding.trim().eq_ignore_ascii_case("gzip"))
    }
}
