//! The rules of a canonical URL, applied to parts that WHATWG parsing has already
//! encoded and freed of dot segments.
//!
//! Invariant: each writer appends ASCII, and writing its own output again appends
//! the same. The policy's removals run after escapes have their one spelling, so a
//! session id cannot hide behind `%53`.

use ::url::{Host, Url};

use super::{Policy, UrlRefusal};

/// DNS allows no longer name (RFC 1035, without the trailing dot).
pub(super) const HOST_BYTES_MAX: usize = 253;
/// DNS allows no longer label.
pub(super) const LABEL_BYTES_MAX: usize = 63;
/// A shorter `sid` is a story's or a shop's number, not a session.
const SID_BYTES_MIN: usize = 16;

/// Appends the canonical form of a parsed URL, or leaves `out` as it was.
pub(super) fn write(out: &mut String, url: &Url, policy: &Policy) -> Result<(), UrlRefusal> {
    let start = out.len();
    push_origin(out, url).inspect_err(|_| out.truncate(start))?;
    push_path(out, url.path(), policy);
    push_query(out, url.query().unwrap_or(""), policy);
    if let (true, Some(fragment)) = (policy.keep_fragment, url.fragment()) {
        out.push('#');
        push_escapes(out, fragment, false);
    }
    Ok(())
}

fn push_origin(out: &mut String, url: &Url) -> Result<(), UrlRefusal> {
    use std::fmt::Write;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlRefusal::Scheme);
    }
    out.push_str(url.scheme());
    out.push_str("://");
    match url.host().ok_or(UrlRefusal::Host)? {
        Host::Domain(name) => out.push_str(dns_name(name)?),
        address => {
            let _ = write!(out, "{address}");
        }
    }
    if let Some(port) = url.port() {
        let _ = write!(out, ":{port}");
    }
    Ok(())
}

/// The name without its trailing dot, if DNS could know it.
fn dns_name(name: &str) -> Result<&str, UrlRefusal> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let fits = |label: &str| !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
    let possible = name.len() <= HOST_BYTES_MAX && name.split('.').all(fits);
    if possible { Ok(name) } else { Err(UrlRefusal::Host) }
}

/// Appends a path. It begins with `/` and has no dot segments.
pub(super) fn push_path(out: &mut String, path: &str, policy: &Policy) {
    let start = out.len();
    push_escapes(out, path, policy.lower_case_path);
    let may_hold_session = out[start..].contains([';', '(']);
    if policy.drop_session_ids && may_hold_session {
        let path = out.split_off(start);
        push_without_sessions(out, &path);
    }
}

/// Taking `;jsessionid=…` from a segment can leave a dot segment (`/a/..;jsessionid=1`),
/// so these are resolved again; only then can a whole segment be a session.
fn push_without_sessions(out: &mut String, path: &str) {
    let start = out.len();
    push_segments(out, start, path, |out, segment| {
        for (index, piece) in segment.split(';').enumerate() {
            if index == 0 || !is_java_session(piece) {
                out.push_str(if index == 0 { "" } else { ";" });
                out.push_str(piece);
            }
        }
    });
    if out[start..].contains("/(") {
        let path = out.split_off(start);
        for segment in path.split('/').skip(1).filter(|segment| !is_aspnet_session(segment)) {
            out.push('/');
            out.push_str(segment);
        }
        if out.len() == start {
            out.push('/');
        }
    }
}

/// Appends `/segment` for each segment of `path`, as `write` spells it, and resolves
/// dot segments, backwards at most to `root`. A leading `/` of `path` is not a segment.
pub(super) fn push_segments(
    out: &mut String,
    root: usize,
    path: &str,
    mut write: impl FnMut(&mut String, &str),
) {
    let mut rest = Some(path.strip_prefix('/').unwrap_or(path));
    while let Some(text) = rest {
        let segment;
        (segment, rest) = cut(text, b'/');
        let before = out.len();
        out.push('/');
        write(out, segment);
        match &out[before + 1..] {
            "." => out.truncate(before),
            ".." => {
                let path = &out.as_bytes()[root..before];
                let parent = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                out.truncate(root + parent);
            }
            _ => continue,
        }
        if rest.is_none() {
            out.push('/');
        }
    }
}

/// Appends `?query`, or nothing if nothing of it is left.
pub(super) fn push_query(out: &mut String, query: &str, policy: &Policy) {
    if query.is_empty() {
        return;
    }
    let start = out.len();
    out.push('?');
    push_escapes(out, query, false);
    let dropped = |parameter: &&str| is_dropped(parameter, policy);
    if policy.sort_query || any_parameter(&out[start + 1..], dropped) {
        let query = out.split_off(start);
        let mut kept: Vec<&str> = query[1..].split('&').filter(|p| !dropped(p)).collect();
        if policy.sort_query {
            kept.sort_by_key(|parameter| name_of(parameter));
        }
        out.push('?');
        out.push_str(&kept.join("&"));
    }
    if out.len() == start + 1 {
        out.truncate(start);
    }
}

fn any_parameter(query: &str, is_wanted: impl Fn(&&str) -> bool) -> bool {
    let mut rest = Some(query);
    while let Some(text) = rest {
        let parameter;
        (parameter, rest) = cut(text, b'&');
        if is_wanted(&parameter) {
            return true;
        }
    }
    false
}

/// Appends text with one spelling of its escapes: capital hex digits, and none where
/// RFC 3986 calls the character unreserved.
pub(super) fn push_escapes(out: &mut String, text: &str, lower_case: bool) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte == b'%') {
        push_run(out, &rest[..at], lower_case);
        if let Some(byte) = escaped_byte(&rest.as_bytes()[at + 1..]) {
            push_escaped(out, byte, lower_case);
            rest = &rest[at + 3..];
        } else {
            out.push('%');
            rest = &rest[at + 1..];
        }
    }
    push_run(out, rest, lower_case);
}

fn push_run(out: &mut String, run: &str, lower_case: bool) {
    let start = out.len();
    out.push_str(run);
    if lower_case {
        out[start..].make_ascii_lowercase();
    }
}

fn escaped_byte(after_percent: &[u8]) -> Option<u8> {
    let [high, low] = *after_percent.first_chunk()?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

fn push_escaped(out: &mut String, byte: u8, lower_case: bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    // `%%34%31` must not become `%41`, which the next round would read as `A`.
    let after_stray_percent = match out.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    };
    let would_make_escape = after_stray_percent && byte.is_ascii_hexdigit();
    if unreserved && !would_make_escape {
        let byte = if lower_case { byte.to_ascii_lowercase() } else { byte };
        out.push(char::from(byte));
    } else {
        out.push('%');
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
}

fn name_of(parameter: &str) -> &str {
    cut(parameter, b'=').0
}

/// Splits at the first such byte. The texts here are a few bytes long, where a plain
/// loop beats the searchers of the standard library several times.
fn cut(text: &str, at: u8) -> (&str, Option<&str>) {
    match text.bytes().position(|byte| byte == at) {
        Some(end) => (&text[..end], Some(&text[end + 1..])),
        None => (text, None),
    }
}

fn is_dropped(parameter: &str, policy: &Policy) -> bool {
    let name = name_of(parameter);
    (policy.drop_session_ids && is_session(name, parameter))
        || (policy.drop_tracking && is_tracking(name))
        || (policy.drop_broadvision && has_prefix(parameter, "BV_"))
}

fn has_prefix(text: &str, prefix: &str) -> bool {
    let start = text.as_bytes().get(..prefix.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

fn is_session(name: &str, parameter: &str) -> bool {
    let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
    match name.as_bytes().first().map(u8::to_ascii_lowercase) {
        Some(b'p') => is("PHPSESSID"),
        Some(b'j') => is("jsessionid"),
        Some(b'a') => has_prefix(name, "ASPSESSIONID"),
        Some(b'c') => is("CFID") || is("CFTOKEN"),
        Some(b's') => is("sid") && looks_random(&parameter[name.len()..]),
        _ => false,
    }
}

/// Many sites number their stories by `sid`; only a long run of letters and digits
/// is taken for a session.
fn looks_random(equals_and_value: &str) -> bool {
    let value = equals_and_value.trim_start_matches('=');
    value.len() >= SID_BYTES_MIN && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_java_session(path_parameter: &str) -> bool {
    name_of(path_parameter).eq_ignore_ascii_case("jsessionid")
}

/// ASP.NET without cookies: `(S(…))`, also with other tickets: `(X(1)F(…)S(…))`.
pub(super) fn is_aspnet_session(segment: &str) -> bool {
    let Some(mut rest) = segment.strip_prefix('(').and_then(|s| s.strip_suffix(')')) else {
        return false;
    };
    let is_ticket_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut tickets = 0;
    while let [b'A' | b'F' | b'S' | b'X' | b'a' | b'f' | b's' | b'x', b'(', ..] = rest.as_bytes() {
        let Some((ticket, after)) = rest[2..].split_once(')') else { return false };
        if !ticket.bytes().all(is_ticket_byte) {
            return false;
        }
        tickets += 1;
        rest = after;
    }
    tickets > 0 && rest.is_empty()
}

/// Parameters that advertisers and mailers add to links of others. Each is specific
/// enough that no site is known to choose content by it.
fn is_tracking(name: &str) -> bool {
    let is = |wanted: &[&str]| wanted.iter().any(|wanted| name.eq_ignore_ascii_case(wanted));
    match name.as_bytes().first().map(u8::to_ascii_lowercase) {
        Some(b'u') => has_prefix(name, "utm_"),
        Some(b'g') => is(&["gclid", "gclsrc", "gbraid", "gad_source", "gad_campaignid"]),
        Some(b'f') => is(&["fbclid"]),
        Some(b'd') => is(&["dclid"]),
        Some(b'i') => is(&["igshid"]),
        Some(b'l') => is(&["li_fat_id"]),
        Some(b'm') => is(&["msclkid", "mc_cid", "mc_eid", "mkt_tok"]) || has_prefix(name, "mtm_"),
        Some(b't') => is(&["ttclid", "twclid"]),
        Some(b'v') => is(&["vero_id"]),
        Some(b'w') => is(&["wbraid"]),
        Some(b'y') => is(&["yclid"]),
        Some(b'_') => is(&["_ga", "_gl", "_hsenc", "_hsmi", "_openstat"]),
        _ => false,
    }
}
