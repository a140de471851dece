//! What is asked, and the headers it is asked with.
//!
//! Invariant: a Referer is sent only within an origin, and nothing that
//! frames a message or names its host can be set from outside.

use std::fmt;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName,
    HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, REFERER, TE, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT,
};
use hyper::{HeaderMap, Method, Request, Uri};

use super::bandwidth::Bandwidth;
use super::guard::Guard;
use super::outcome::Reason;
use super::wire::RequestBody;

const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, br, zstd, deflate");
/// Headers that belong to the connection and not to whoever asks.
const OUR_OWN: [HeaderName; 7] =
    [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, TE, UPGRADE, ACCEPT_ENCODING];

/// One thing to ask for.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct FetchRequest<'a> {
    pub url: &'a str,
    /// What may be reached.
    pub guard: &'a Guard,
    /// What we have was sent with this ETag.
    pub etag: Option<&'a str>,
    /// What we have was sent with this Last-Modified.
    pub last_modified: Option<&'a str>,
    /// The page that the link was found on.
    pub referer: Option<&'a str>,
    /// Headers of this request: credentials, cookies, languages. On a redirect they
    /// go no further than the origin.
    pub headers: &'a [(HeaderName, HeaderValue)],
    /// A form to be posted, as `application/x-www-form-urlencoded`. A redirect is never
    /// followed with it.
    pub form: Option<&'a Bytes>,
    /// If there are any, only documents of these types are wanted: `text/html`, `text/*`.
    pub media_types: &'a [String],
    /// How much is kept of the body, instead of the general limits.
    pub body_bytes_max: Option<usize>,
    /// How fast the body may be read, together with all others that share this.
    pub bandwidth: Option<&'a Bandwidth>,
    /// The User-Agent of this request, instead of the fetcher's own.
    pub user_agent: Option<&'a HeaderValue>,
}

impl<'a> FetchRequest<'a> {
    /// Asks for the URL and nothing special.
    pub fn new(url: &'a str, guard: &'a Guard) -> FetchRequest<'a> {
        FetchRequest {
            url,
            guard,
            etag: None,
            last_modified: None,
            referer: None,
            headers: &[],
            form: None,
            media_types: &[],
            body_bytes_max: None,
            bandwidth: None,
            user_agent: None,
        }
    }

    /// Whether a document is of a type that is wanted. One that does not say what it is may
    /// be.
    pub fn wants(&self, content_type: Option<&HeaderValue>) -> bool {
        let Some(given) = content_type.and_then(|value| value.to_str().ok()) else { return true };
        let essence = given.split(';').next().unwrap_or(given).trim();
        let is_of = |wanted: &String| match wanted.strip_suffix('*') {
            Some(kind) => {
                essence.get(..kind.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(kind))
            }
            None => essence.eq_ignore_ascii_case(wanted),
        };
        self.media_types.is_empty() || self.media_types.iter().any(is_of)
    }

    /// Whether "nothing new" is an answer that helps us.
    pub fn is_conditional(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// Values of headers may be secrets, so only their names are shown.
impl fmt::Debug for FetchRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&HeaderName> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Ask").field("url", &self.url).field("headers", &names).finish()
    }
}

/// Builds the request for a connection. HTTP/2 carries the whole URL, HTTP/1 the
/// path and a Host header.
pub(super) fn build(
    ask: &FetchRequest<'_>,
    user_agent: &HeaderValue,
    is_h2: bool,
) -> Result<Request<RequestBody>, Reason> {
    let origin = page::url::origin_of(ask.url);
    let path = page::url::path_of(ask.url);
    let path = path.split_once('#').map_or(path, |(before, _)| before);
    let path = if path.is_empty() { "/" } else { path };
    let mut headers = HeaderMap::with_capacity(8 + ask.headers.len());
    let uri = if is_h2 {
        let whole = [origin, path].concat();
        Uri::try_from(whole).map_err(|_| Reason::Url)?
    } else {
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        let host = HeaderValue::from_str(authority).map_err(|_| Reason::Url)?;
        headers.insert(HOST, host);
        Uri::try_from(path).map_err(|_| Reason::Url)?
    };
    headers.insert(USER_AGENT, ask.user_agent.unwrap_or(user_agent).clone());
    headers.insert(ACCEPT, ACCEPTED);
    headers.insert(ACCEPT_ENCODING, ENCODINGS);
    let referer = ask.referer.filter(|referer| page::url::origin_of(referer) == origin);
    let texts =
        [(IF_NONE_MATCH, ask.etag), (IF_MODIFIED_SINCE, ask.last_modified), (REFERER, referer)];
    for (name, text) in texts {
        // A validator that cannot be sent back is as good as none.
        if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    for (name, value) in ask.headers {
        if !OUR_OWN.contains(name) {
            headers.insert(name.clone(), value.clone());
        }
    }
    let mut request = Request::new(RequestBody(ask.form.cloned()));
    if ask.form.is_some() {
        *request.method_mut() = Method::POST;
        headers.insert(CONTENT_TYPE, FORM);
    }
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}
