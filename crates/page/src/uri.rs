//! The row form of a URL: the reversed domain first, so that a sorted table keeps
//! the pages of a domain together.
//!
//! `<reversed domain>` `>` `<rest of the reversed host>` `>` `o|s[port]` `>` `<path>`:
//! `https://a.b.com:8329/x` is `com.b>.a>s8329>/x`. `o` is http, `s` is https, and a port
//! is written only if it is not the scheme's own. Addresses are not reversed.
//!
//! There are two ways in. [`Uri::webindex`] keeps the rules of Webindex,
//! which are its own and not WHATWG's: it demands a listed public suffix and changes
//! nothing but the case of the host. [`Uri::canonical`] takes URLs made by
//! `url::canonical`, any host. Relies on `domain` for where a host is cut.
//!
//! Invariant: with one suffix list a URL has one row, and both ways back are exact:
//! `from_uri(uri.to_uri()) == uri`, and a row that `to_uri` would write otherwise is
//! refused.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use crate::domain::{SuffixList, is_ip};
use crate::url;

/// Stands between the parts of a row, and so nowhere within one.
pub const SEPARATOR: char = '>';

/// The shortest text Webindex took for a URL: `http://` and a letter.
const WEBINDEX_BYTES_MIN: usize = 8;
/// Limits of a DNS name, and of the labels in it.
const HOST_BYTES_MAX: usize = 253;
const LABELS_MAX: usize = 127;
const LABEL_BYTES_MAX: usize = 63;

/// Why a text has no row form, or is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It contains the separator.
    #[error("URL contains '>'")]
    Separator,
    /// It does not begin with `http://` or `https://` and something after it.
    #[error("not an http or https URL")]
    Scheme,
    /// The port is not a number.
    #[error("port is not a number")]
    Port,
    /// The host is not a name or an address.
    #[error("host is not a name or an address")]
    Host,
    /// The host is not under a listed public suffix.
    #[error("host is not under a public suffix")]
    Suffix,
    /// A row that has not exactly four parts, or one of them is not as rows are written.
    #[error("not a row of four parts")]
    Row,
}

/// A URL, cut as its row is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri<'a> {
    secure: bool,
    host: Cow<'a, str>,
    /// The domain is that many bytes at the end of the host.
    domain_bytes: usize,
    /// Only if it is not the scheme's own. Webindex checked no range.
    port: Option<i32>,
    path: Cow<'a, str>,
}

impl<'a> Uri<'a> {
    /// Reads a URL by the rules of Webindex.
    ///
    /// Two things differ from it on purpose, because a row could not be read back: a
    /// host with a trailing dot is invalid, and a port has ASCII digits.
    pub fn webindex(url: &'a str, list: &SuffixList) -> Result<Uri<'a>, Invalid> {
        if url.contains(SEPARATOR) {
            return Err(Invalid::Separator);
        }
        let url = url.trim_matches(|c| c <= ' ');
        let (secure, after) = after_scheme(url).ok_or(Invalid::Scheme)?;
        if url.len() < WEBINDEX_BYTES_MIN {
            return Err(Invalid::Scheme);
        }
        let (authority, path) = split_authority(after);
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| Invalid::Port)?)),
            None => (authority, None),
        };
        let has_capitals = host.chars().any(char::is_uppercase);
        let host = if has_capitals { Cow::Owned(host.to_lowercase()) } else { Cow::Borrowed(host) };
        let domain_bytes = webindex_domain(&host, list)?.len();
        let port = port.filter(|port| *port != default_port(secure));
        Ok(Uri { secure, host, domain_bytes, port, path: Cow::Borrowed(path) })
    }

    /// Takes apart a URL made by `url::canonical`, whatever its host.
    ///
    /// Such a URL contains no `>`; if one is given all the same it is percent-encoded.
    pub fn canonical(url: &'a str, list: &SuffixList) -> Result<Uri<'a>, Invalid> {
        let secure = match url::scheme_of(url) {
            "http" => false,
            "https" => true,
            _ => return Err(Invalid::Scheme),
        };
        let host = url::host_of(url);
        if !is_reversible(host) {
            return Err(Invalid::Host);
        }
        let port = Some(i32::from(url::port_of(url))).filter(|port| *port != default_port(secure));
        let path = canonical_path(url::path_of(url));
        let domain_bytes = list.grouping_domain(host).len();
        Ok(Uri { secure, host: Cow::Borrowed(host), domain_bytes, port, path })
    }

    /// Reads a URI in its row form.
    pub fn from_uri(row: &'a str) -> Result<Uri<'a>, Invalid> {
        let mut parts = row.split(SEPARATOR);
        let mut part = || parts.next().ok_or(Invalid::Row);
        let (domain, rest, place, path) = (part()?, part()?, part()?, part()?);
        let begins_path = path.starts_with(['/', '?', '#']);
        if parts.next().is_some() || !begins_path || !is_reversible(domain) {
            return Err(Invalid::Row);
        }
        let (secure, port) = read_place(place).ok_or(Invalid::Row)?;
        let host = host_of_row(domain, rest).ok_or(Invalid::Row)?;
        Ok(Uri { secure, host, domain_bytes: domain.len(), port, path: Cow::Borrowed(path) })
    }

    /// The domain: what its pages are counted under.
    pub fn domain(&self) -> &str {
        &self.host[self.host.len() - self.domain_bytes..]
    }

    /// The host in its usual order, with all its labels.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What its row begins with: all of it but the path. URLs of one origin have it in common.
    pub fn row_of_origin(&self) -> String {
        let mut row = self.to_uri();
        row.truncate(row.len() - self.path.len());
        row
    }

    /// The URI in its row form.
    pub fn to_uri(&self) -> String {
        let mut out = String::with_capacity(self.host.len() + self.path.len() + 10);
        self.write_uri(&mut out);
        out
    }

    /// Appends the row form.
    pub fn write_uri(&self, out: &mut String) {
        let domain = self.domain();
        if is_ip(domain) {
            out.push_str(domain);
        } else {
            push_reversed(out, domain);
        }
        out.push(SEPARATOR);
        let rest = &self.host[..self.host.len() - domain.len()];
        if let Some(rest) = rest.strip_suffix('.') {
            out.push('.');
            push_reversed(out, rest);
        }
        out.push(SEPARATOR);
        out.push(if self.secure { 's' } else { 'o' });
        self.push_port(out, "");
        out.push(SEPARATOR);
        out.push_str(&self.path);
    }

    /// The URL that the row stands for.
    pub fn to_url(&self) -> String {
        let mut out = String::with_capacity(self.host.len() + self.path.len() + 14);
        out.push_str(if self.secure { "https://" } else { "http://" });
        out.push_str(&self.host);
        self.push_port(&mut out, ":");
        out.push_str(&self.path);
        out
    }

    fn push_port(&self, out: &mut String, before: &str) {
        use std::fmt::Write;
        if let Some(port) = self.port {
            let _ = write!(out, "{before}{port}");
        }
    }
}

/// The last part of a row, from what stands behind the origin of a canonical URL.
pub(crate) fn canonical_path(path: &str) -> Cow<'_, str> {
    match path {
        "" => Cow::Borrowed("/"),
        path if path.contains(SEPARATOR) => Cow::Owned(path.replace(SEPARATOR, "%3E")),
        path => Cow::Borrowed(path),
    }
}

fn default_port(secure: bool) -> i32 {
    if secure { 443 } else { 80 }
}

fn after_scheme(url: &str) -> Option<(bool, &str)> {
    let strip = |scheme: &str| {
        let start = url.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &url[scheme.len()..])
    };
    strip("http://")
        .map(|rest| (false, rest))
        .or_else(|| strip("https://").map(|rest| (true, rest)))
}

/// The authority, and the rest with its separator; `/` if there is no rest.
fn split_authority(after_scheme: &str) -> (&str, &str) {
    match after_scheme.find(['/', '?', '#']) {
        Some(end) => after_scheme.split_at(end),
        None => (after_scheme, "/"),
    }
}

fn webindex_domain<'h>(host: &'h str, list: &SuffixList) -> Result<&'h str, Invalid> {
    if host.parse::<Ipv4Addr>().is_ok() {
        return Ok(host);
    }
    if !is_dns_name(host) {
        return Err(Invalid::Host);
    }
    list.listed_domain(host).ok_or(Invalid::Suffix)
}

/// As Webindex's library checked it: letters, digits, `-` and `_` (these two not at
/// the ends of a label), anything beyond ASCII, and no digit first in the last label.
fn is_dns_name(host: &str) -> bool {
    let is_dash = |c: char| matches!(c, '-' | '_');
    let is_label = |label: &str| {
        !label.is_empty()
            && label.chars().count() <= LABEL_BYTES_MAX
            && !label.starts_with(is_dash)
            && !label.ends_with(is_dash)
            && label.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric() || is_dash(c))
    };
    let last = host.rsplit('.').next().unwrap_or(host);
    host.chars().count() <= HOST_BYTES_MAX
        && host.split('.').count() <= LABELS_MAX
        && host.split('.').all(is_label)
        && !last.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether reversing it twice gives it back, and no part of it could be taken for
/// another part of a row.
fn is_reversible(host: &str) -> bool {
    let is_name = || !host.contains(':') && host.split('.').all(|label| !label.is_empty());
    // Reversed, it would begin as an address does.
    let ends_as_address = host.rsplit('.').next().is_some_and(|label| label.starts_with('['));
    !host.contains(SEPARATOR) && (is_ip(host) || (is_name() && !ends_as_address))
}

/// The host whose reversed domain and reversed rest these are.
fn host_of_row<'a>(domain: &'a str, rest: &str) -> Option<Cow<'a, str>> {
    if is_ip(domain) {
        return rest.is_empty().then_some(Cow::Borrowed(domain));
    }
    let mut host = String::with_capacity(domain.len() + rest.len());
    if !rest.is_empty() {
        let labels = rest.strip_prefix('.')?;
        if labels.split('.').any(str::is_empty) {
            return None;
        }
        push_reversed(&mut host, labels);
        host.push('.');
    }
    push_reversed(&mut host, domain);
    Some(Cow::Owned(host))
}

/// `o` or `s`, and the port as this module writes it.
fn read_place(place: &str) -> Option<(bool, Option<i32>)> {
    let secure = match place.as_bytes().first()? {
        b'o' => false,
        b's' => true,
        _ => return None,
    };
    if place.len() == 1 {
        return Some((secure, None));
    }
    let port: i32 = place[1..].parse().ok()?;
    let as_written = port.to_string() == place[1..] && port != default_port(secure);
    as_written.then_some((secure, Some(port)))
}

/// Appends the labels in reverse order.
fn push_reversed(out: &mut String, labels: &str) {
    for (index, label) in labels.rsplit('.').enumerate() {
        if index > 0 {
            out.push('.');
        }
        out.push_str(label);
    }
}

#[cfg(test)]
mod tests;
