//! The short way for ordinary links: no character in them needs encoding, so
//! joining is splitting and copying.
//!
//! Relies on `clean` for every rule of the canonical form; it replaces nothing but
//! `url::Url::join`. Invariant: what it writes is what the long way would write
//! (a property test and the WPT cases compare them), and where it is not sure it
//! writes nothing and says so.

use super::{Policy, UrlRefusal, clean};

/// May stand in a path as it is.
const PATH: u8 = 1;
/// May stand in a query as it is.
const QUERY: u8 = 2;
/// In a path: an escape, so segments must be looked at.
const CARE: u8 = 4;
/// The same if a segment begins with it: a dot segment or a session, perhaps.
const CARE_FIRST: u8 = 8;

const CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut class = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        class[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'~' => PATH | QUERY,
            b'!' | b'$' | b'&' | b')' | b'*' | b'+' | b',' | b'=' | b'@' | b':' => PATH | QUERY,
            b'%' => PATH | QUERY | CARE,
            b'.' | b'(' => PATH | QUERY | CARE_FIRST,
            // `;` may begin a session id; in a path the long way looks into it.
            b'?' | b';' => QUERY,
            _ => 0,
        };
        byte += 1;
    }
    class
}

/// A reference without scheme and host, split where it is plain.
struct Reference<'h> {
    path: &'h str,
    query: &'h str,
    /// Whether its segments must be looked at one by one.
    needs_care: bool,
}

/// None if a character occurs that is not plain where it stands.
fn split<'h>(href: &'h str, policy: &Policy) -> Option<Reference<'h>> {
    let bytes = href.as_bytes();
    let mut needs_care = false;
    let mut end = bytes.len();
    for (at, byte) in bytes.iter().enumerate() {
        let class = CLASS[usize::from(*byte)];
        if class & PATH == 0 {
            end = at;
            break;
        }
        if class & (CARE | CARE_FIRST) != 0 {
            let is_first = at == 0 || bytes[at - 1] == b'/';
            needs_care |= is_first || class & CARE != 0;
        }
    }
    let path = &href[..end];
    let is_query = |byte: &u8| CLASS[usize::from(*byte)] & QUERY != 0;
    let (query, stop) = if bytes.get(end) == Some(&b'?') {
        let start = end + 1;
        let after = bytes[start..].iter().position(|byte| !is_query(byte));
        let stop = after.map_or(bytes.len(), |length| start + length);
        (&href[start..stop], stop)
    } else {
        ("", end)
    };
    match bytes.get(stop) {
        None => {}
        Some(b'#') if !policy.keep_fragment => {}
        _ => return None,
    }
    Some(Reference { path, query, needs_care })
}

/// What relative links of a page begin with, in canonical form.
#[derive(Debug)]
pub(super) struct Base {
    /// The whole canonical URL of the base.
    whole: String,
    /// Where its path begins.
    origin_end: usize,
    /// Where its path ends.
    path_end: usize,
    /// Where the last segment of its path begins, with its slash.
    directory_end: usize,
    /// Whether relative paths may be appended. Not if the policy takes something
    /// from the path: `..` would then climb over the wrong segment.
    has_directory: bool,
}

impl Base {
    pub(super) fn new(base: &::url::Url, policy: &Policy) -> Result<Base, UrlRefusal> {
        let mut whole = String::with_capacity(base.as_str().len());
        clean::write(&mut whole, base, policy)?;
        super::within_limit(&whole)?;
        let origin_end = super::origin_of(&whole).len();
        let path_end = whole.find(['?', '#']).unwrap_or(whole.len());
        let directory_end = whole[..path_end].rfind('/').unwrap_or(origin_end);
        let takes_segments = base.path().contains([';', '(']);
        let has_directory = !(policy.drop_session_ids && takes_segments);
        Ok(Base { whole, origin_end, path_end, directory_end, has_directory })
    }

    /// Appends what `href` leads to, or nothing if it is not plain.
    pub(super) fn resolve(&self, out: &mut String, href: &str, policy: &Policy) -> bool {
        match href.as_bytes() {
            [] | [b'#', ..] => self.same_document(out, policy),
            [b'?', ..] => self.same_path(out, href, policy),
            // `//host` names another host; the long way knows what is one.
            [b'/', b'/', ..] => false,
            [b'/', ..] => self.below(out, self.origin_end, href, policy),
            _ => match href.strip_prefix(&self.whole[..self.origin_end]) {
                Some(rest) if rest.starts_with('/') => {
                    self.below(out, self.origin_end, rest, policy)
                }
                _ => self.relative(out, href, policy) || absolute(out, href, policy),
            },
        }
    }

    fn same_document(&self, out: &mut String, policy: &Policy) -> bool {
        if !policy.keep_fragment {
            out.push_str(&self.whole);
        }
        !policy.keep_fragment
    }

    fn same_path(&self, out: &mut String, href: &str, policy: &Policy) -> bool {
        let Some(reference) = split(href, policy) else { return false };
        out.push_str(&self.whole[..self.path_end]);
        clean::push_query(out, reference.query, policy);
        true
    }

    fn relative(&self, out: &mut String, href: &str, policy: &Policy) -> bool {
        // With a colon before any slash it may have a scheme, as `http:x` has.
        let first = href.bytes().find(|byte| matches!(byte, b':' | b'/' | b'?' | b'#'));
        let may_have_scheme = first == Some(b':');
        self.has_directory && !may_have_scheme && self.below(out, self.directory_end, href, policy)
    }

    fn below(&self, out: &mut String, prefix_end: usize, href: &str, policy: &Policy) -> bool {
        let Some(reference) = split(href, policy) else { return false };
        let start = out.len();
        out.push_str(&self.whole[..prefix_end]);
        let written = write(out, start + self.origin_end, &reference, policy);
        if !written {
            out.truncate(start);
        }
        written
    }
}

/// Appends an absolute URL with a plain host name, or nothing.
pub(super) fn absolute(out: &mut String, url: &str, policy: &Policy) -> bool {
    let after_scheme = match url.as_bytes() {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => "https://".len(),
        [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => "http://".len(),
        _ => return false,
    };
    let Some(host_bytes) = plain_host(&url[after_scheme..]) else { return false };
    let (origin, rest) = url.split_at(after_scheme + host_bytes);
    let Some(reference) = split(rest, policy) else { return false };
    let start = out.len();
    out.push_str(origin);
    let written = write(out, start + origin.len(), &reference, policy);
    if !written {
        out.truncate(start);
    }
    written
}

/// The length of a host name that IDNA leaves alone and that is no number; what
/// follows it begins a path, a query or a fragment.
fn plain_host(text: &str) -> Option<usize> {
    let is_host = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let end = text.bytes().position(|byte| !is_host(&byte)).unwrap_or(text.len());
    let fits = |label: &str| {
        !label.is_empty() && label.len() <= clean::LABEL_BYTES_MAX && !label.starts_with("xn--")
    };
    let host = &text[..end];
    let last = host.rfind('.').map_or(0, |dot| dot + 1);
    let is_name = host[last..].starts_with(|first: char| first.is_ascii_lowercase());
    let ended = matches!(text.as_bytes().get(end), None | Some(b'/' | b'?' | b'#'));
    let plain = is_name && ended && end <= clean::HOST_BYTES_MAX && host.split('.').all(fits);
    plain.then_some(end)
}

/// `C:`, which means a place in addresses of files.
fn is_drive_letter(segment: &str) -> bool {
    matches!(segment.as_bytes(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

/// Appends path and query after what `out` has; `root` is where the path begins in it.
/// False if the long way must decide; `out` is then to be cut back.
fn write(out: &mut String, root: usize, reference: &Reference, policy: &Policy) -> bool {
    let path = reference.path;
    if !reference.needs_care && !policy.lower_case_path {
        if !path.starts_with('/') {
            out.push('/');
        }
        out.push_str(path);
    } else {
        let looks_like_session = |segment: &str| clean::is_aspnet_session(segment);
        if policy.drop_session_ids && path.split('/').any(looks_like_session) {
            return false;
        }
        // The `url` crate lets `..` stop at a drive letter, in web addresses too.
        if path.split('/').chain(out[root..].split('/')).any(is_drive_letter) {
            return false;
        }
        clean::push_segments(out, root, path, |out, segment| {
            clean::push_escapes(out, segment, policy.lower_case_path);
        });
    }
    clean::push_query(out, reference.query, policy);
    true
}
