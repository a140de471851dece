//! URLs of the web: one spelling for each, and links resolved into it.
//!
//! Relies on the `url` crate for what WHATWG says (parsing, IDNA, addresses) and
//! adds what a crawler wants: no userinfo, no fragment, no session ids, one
//! spelling of escapes. `clean` holds those rules, `plain` the short way for
//! ordinary links, `resolver` the links of a page, `parts` cheap access to the
//! pieces of a canonical URL.
//!
//! Invariant: `canonical(canonical(x)) == canonical(x)` for every input and policy,
//! a canonical URL is ASCII without `>`, blanks or controls, and it is never longer
//! than [`URL_BYTES_MAX`].

mod clean;
pub(crate) mod hash;
mod parts;
mod plain;
mod resolver;

pub use parts::{host_of, origin_of, path_of, port_of, scheme_of};
pub use resolver::Resolver;

use std::borrow::Cow;

use ::url::{ParseError, Url};
use serde::{Deserialize, Serialize};

/// A canonical URL is at most this long; a longer one is refused.
pub const URL_BYTES_MAX: usize = 4_096;

/// What a page wrote is not even parsed beyond this: four times the limit leaves
/// room for what canonicalisation takes away (fragments, tracking parameters).
pub const HREF_BYTES_MAX: usize = 4 * URL_BYTES_MAX;

/// What is taken away from a URL, beyond what is always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // Independent switches, each a field of a job's form.
pub struct Policy {
    /// Drop session ids: `PHPSESSID`, `jsessionid` (also as `;jsessionid=` in the
    /// path), `ASPSESSIONID…`, ASP.NET's `/(S(…))/`, `CFID`, `CFTOKEN`, and `sid` when
    /// its value looks like one.
    pub drop_session_ids: bool,
    /// Drop BroadVision's `BV_…` session parameters.
    pub drop_broadvision: bool,
    /// Drop parameters that only tell where a visitor came from: `utm_…`, `gclid`, `fbclid`, …
    pub drop_tracking: bool,
    /// Sort query parameters by name; those of one name keep their order.
    pub sort_query: bool,
    /// Lower-case the path, for servers that do not tell capitals apart.
    pub lower_case_path: bool,
    /// Keep the fragment: `/a` and `/a#x` are then two documents.
    pub keep_fragment: bool,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { drop_session_ids: true, drop_tracking: true, ..Policy::NOTHING }
    }
}

impl Policy {
    /// Nothing is dropped but what always is (userinfo, fragment, default port).
    pub const NOTHING: Policy = Policy {
        drop_session_ids: false,
        drop_broadvision: false,
        drop_tracking: false,
        sort_query: false,
        lower_case_path: false,
        keep_fragment: false,
    };
}

/// Why a text is not a URL that can be crawled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[allow(missing_docs)]
pub enum UrlRefusal {
    /// Not a URL, or a relative one with nothing to resolve it against.
    #[error("not a URL")]
    Syntax,
    /// Something else than `http` or `https`.
    #[error("scheme is neither http nor https")]
    Scheme,
    /// No host, or one that neither DNS nor IP could know.
    #[error("host is not a name or an address")]
    Host,
    #[error("URL is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
}

/// The one spelling of an absolute URL under a policy.
pub fn canonical(input: &str, policy: &Policy) -> Result<String, UrlRefusal> {
    let input = trim(input);
    let mut out = String::with_capacity(input.len().min(HREF_BYTES_MAX));
    if !plain::absolute(&mut out, input, policy) {
        check_before_parsing(input)?;
        clean::write(&mut out, &parse(None, input)?, policy)?;
    }
    within_limit(&out)?;
    Ok(out)
}

/// What WHATWG strips from both ends before it looks: blanks and C0 controls.
fn trim(input: &str) -> &str {
    input.trim_matches(|c| c <= ' ')
}

/// Refuses cheaply what parsing would only refuse later: most hrefs that are no
/// plain links are `javascript:`, `mailto:`, or a `data:` of any size.
fn check_before_parsing(trimmed: &str) -> Result<(), UrlRefusal> {
    if has_other_scheme(trimmed) {
        return Err(UrlRefusal::Scheme);
    }
    if trimmed.len() > HREF_BYTES_MAX { Err(UrlRefusal::TooLong) } else { Ok(()) }
}

fn has_other_scheme(trimmed: &str) -> bool {
    let is_scheme_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let Some(end) = trimmed.bytes().position(|byte| !is_scheme_byte(byte)) else { return false };
    let scheme = &trimmed[..end];
    trimmed.as_bytes()[end] == b':'
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && !scheme.eq_ignore_ascii_case("http")
        && !scheme.eq_ignore_ascii_case("https")
}

/// Parses as WHATWG does, against an http(s) base if there is one.
fn parse(base: Option<&Url>, trimmed: &str) -> Result<Url, UrlRefusal> {
    let parsed = match base {
        Some(base) => base.join(&two_slashes(trimmed)),
        None => Url::parse(trimmed),
    };
    parsed.map_err(|error| match error {
        ParseError::EmptyHost
        | ParseError::IdnaError
        | ParseError::InvalidIpv4Address
        | ParseError::InvalidIpv6Address
        | ParseError::InvalidDomainCharacter => UrlRefusal::Host,
        _ => UrlRefusal::Syntax,
    })
}

/// What `href` leads to from `base`, without any clean-up; `None` for what is no URL or is too long.
pub(crate) fn join(base: &Url, href: &str) -> Option<Url> {
    let href = trim(href);
    if href.len() > HREF_BYTES_MAX {
        return None;
    }
    base.join(&two_slashes(href)).ok()
}

/// `///host` leads to `//host` (WHATWG: a special scheme ignores further slashes),
/// which the `url` crate does for absolute URLs only. Tabs and line ends count as
/// nothing wherever they are.
fn two_slashes(href: &str) -> Cow<'_, str> {
    let mut slashes = 0;
    let mut end = href.len();
    for (at, c) in href.char_indices() {
        match c {
            '/' | '\\' => slashes += 1,
            '\t' | '\n' | '\r' => {}
            _ => {
                end = at;
                break;
            }
        }
    }
    if slashes > 2 { Cow::Owned(format!("//{}", &href[end..])) } else { Cow::Borrowed(href) }
}

fn within_limit(url: &str) -> Result<(), UrlRefusal> {
    if url.len() > URL_BYTES_MAX { Err(UrlRefusal::TooLong) } else { Ok(()) }
}

/// The long way to resolve a link, and nothing else: what `plain` must agree with.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn long_way(base: &str, href: &str, policy: &Policy) -> Result<String, UrlRefusal> {
    let base = parse(None, trim(base))?;
    let mut out = String::new();
    clean::write(&mut out, &parse(Some(&base), trim(href))?, policy)?;
    within_limit(&out)?;
    Ok(out)
}

#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod tests;
