//! The pieces of a canonical URL, found without parsing it.
//!
//! Relies on the canonical form: `scheme://host[:port]/path[?query]`, no userinfo.
//! Given anything else the answers are empty or odd, but never a panic.

/// Splits into scheme, authority and the rest.
fn split(url: &str) -> (&str, &str, &str) {
    let Some((scheme, after)) = url.split_once("://") else { return ("", "", "") };
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    (scheme, authority, rest)
}

/// Where the port's colon is, if there is one; an IPv6 address has colons of its own.
fn port_colon(authority: &str) -> Option<usize> {
    authority.rfind(':').filter(|colon| !authority[*colon..].contains(']'))
}

/// The scheme of a canonical URL, `http` or `https`.
pub fn scheme_of(url: &str) -> &str {
    split(url).0
}

/// The host: a name in punycode, `1.2.3.4`, or `[::1]` with its brackets.
pub fn host_of(url: &str) -> &str {
    let authority = split(url).1;
    port_colon(authority).map_or(authority, |colon| &authority[..colon])
}

/// The port to connect to: the one written, else the scheme's own.
pub fn port_of(url: &str) -> u16 {
    let (scheme, authority, _) = split(url);
    let written = port_colon(authority).and_then(|colon| authority[colon + 1..].parse().ok());
    written.unwrap_or(if scheme == "https" { 443 } else { 80 })
}

/// `scheme://host[:port]`, without a slash at the end.
pub fn origin_of(url: &str) -> &str {
    &url[..url.len() - split(url).2.len()]
}

/// Path and query (and fragment, where a policy keeps it), beginning with `/`.
pub fn path_of(url: &str) -> &str {
    split(url).2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_canonical_urls_are_found() {
        let cases = [
            ("http://a.com/", ("http", "a.com", 80, "http://a.com", "/")),
            ("https://a.com/?q=:1", ("https", "a.com", 443, "https://a.com", "/?q=:1")),
            ("http://a.com:81/x:2", ("http", "a.com", 81, "http://a.com:81", "/x:2")),
            ("http://[::1]/x", ("http", "[::1]", 80, "http://[::1]", "/x")),
            ("https://[::1]:8/x#f", ("https", "[::1]", 8, "https://[::1]:8", "/x#f")),
        ];
        for (url, expected) in cases {
            let found = (scheme_of(url), host_of(url), port_of(url), origin_of(url), path_of(url));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_no_url_gives_nothing_and_no_panic() {
        for odd in ["", "a", "://", "http://", "http://:", "http://]:", "é://é:é/é", "mailto:a@b"]
        {
            let _ = (scheme_of(odd), host_of(odd), port_of(odd), path_of(odd));
            assert!(odd.starts_with(origin_of(odd)));
        }
        assert_eq!(host_of("no url"), "");
    }
}
