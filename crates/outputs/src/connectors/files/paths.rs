//! The file that a document is kept in: its URI, readable, as a path.
//!
//! `https://a.example/b/c?d` is `https/a.example/b/c?d`. Invariants: different URIs have
//! different paths; a path never leaves its directory, whatever the URI says; no
//! component is longer than a file system takes. A percent sign before two hexadecimal
//! digits stands for a byte, as in the URI; before a letter that is no such digit it is a
//! mark of ours: `%index` is what a URI that ends with a slash says, `%nil` a component
//! that is empty, `%z` stands between the beginning of a component that is too long and a
//! hash of the whole. What has no scheme is below `%none`.

use page::ids::DocHash;
use std::fmt::Write;
use std::path::PathBuf;

/// Bytes of a component, which file systems limit to 255.
const COMPONENT_BYTES_MAX: usize = 200;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 2_000;
/// Components of a path.
const DEPTH_MAX: usize = 100;

/// The component that stands for a URI that ends with a slash.
const INDEX: &str = "%index";

/// Where a URI is kept, below the output's directory.
pub fn path_of(uri: &str) -> PathBuf {
    let (scheme, rest) = match uri.split_once("://") {
        Some((scheme, rest)) => (component(scheme), rest),
        None => ("%none".to_owned(), uri),
    };
    let (place, query) = match rest.find(['?', '#']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let mut components = vec![scheme];
    let mut segments: Vec<&str> = place.split('/').collect();
    let last = segments.pop().unwrap_or_default();
    components.extend(segments.iter().map(|segment| component(segment)));
    components.push(match (last, query) {
        ("", "") => INDEX.to_owned(),
        ("", query) => format!("{INDEX}{}", component(query)),
        (last, query) => component(&format!("{last}{query}")),
    });
    let bytes: usize = components.iter().map(|it| it.len() + 1).sum();
    if bytes > PATH_BYTES_MAX || components.len() > DEPTH_MAX {
        return ["%zlong", &DocHash::of(uri).to_hex()].iter().collect();
    }
    components.iter().collect()
}

/// One component: what a file system or a shell could misread is written as its bytes.
fn component(text: &str) -> String {
    if text.is_empty() {
        return "%nil".to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    for (at, char) in text.char_indices() {
        let is_escape = || bytes.get(at + 1..at + 3).is_some_and(|it| it.iter().all(is_hex));
        let plain = match char {
            '%' => is_escape(),
            '.' => text.len() > 2 || !text.bytes().all(|byte| byte == b'.'),
            _ => !char.is_control() && !matches!(char, '/' | '\\' | '\u{202a}'..='\u{202e}'),
        };
        if plain {
            out.push(char);
        } else {
            for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                // Lower case, so that it is not what the URI itself would say.
                let _ = write!(out, "%x{byte:02x}");
            }
        }
    }
    if out.len() > COMPONENT_BYTES_MAX {
        let mut cut = COMPONENT_BYTES_MAX - 40;
        while !out.is_char_boundary(cut) {
            cut -= 1;
        }
        out = format!("{}%z{}", &out[..cut], DocHash::of(text).to_hex());
    }
    out
}

fn is_hex(byte: &u8) -> bool {
    byte.is_ascii_hexdigit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Component;

    fn shown(uri: &str) -> String {
        path_of(uri).to_string_lossy().into_owned()
    }

    #[test]
    fn paths_can_be_read() {
        assert_eq!(shown("https://a.example/b/c.html"), "https/a.example/b/c.html");
        assert_eq!(shown("https://a.example/"), "https/a.example/%index");
        assert_eq!(shown("https://a.example/b/?q=1/2"), "https/a.example/b/%index?q=1%x2f2");
        assert_eq!(shown("https://a.example:8080/caf%C3%A9"), "https/a.example:8080/caf%C3%A9");
        assert_eq!(shown("file:///srv/two words"), "file/%nil/srv/two words");
        assert_eq!(shown("urn:x:y"), "%none/urn:x:y");
    }

    #[test]
    fn no_uri_leaves_the_directory() {
        for uri in ["https://../..", "file:///../../etc/passwd", "../../x", "/etc/passwd", "", "."]
        {
            let path = path_of(uri);
            let inside = |it: Component<'_>| matches!(it, Component::Normal(_));
            assert!(path.components().all(inside), "{uri}: {}", path.display());
            assert!(path.components().count() > 0, "{uri}");
        }
        assert_eq!(shown("https://a/.."), "https/a/%x2e%x2e");
    }

    #[test]
    fn what_is_too_long_is_cut_and_stays_itself() {
        let long = "x".repeat(10_000);
        let one = path_of(&format!("https://a.example/{long}1"));
        let two = path_of(&format!("https://a.example/{long}2"));
        assert_ne!(one, two);
        assert!(one.to_string_lossy().len() < 300);
        let deep = format!("https://a.example{}", "/d".repeat(5_000));
        assert!(shown(&deep).starts_with("%zlong/"));
    }

    proptest! {
        #[test]
        fn different_uris_have_different_paths(
            one in "(http://)?[a./?#%x25n]{0,12}",
            two in "(http://)?[a./?#%x25n]{0,12}",
        ) {
            let paths = (path_of(&one), path_of(&two));
            prop_assert_eq!(one == two, paths.0 == paths.1, "{:?}", paths);
        }

        #[test]
        fn every_path_is_inside(uri in "\\PC{0,60}") {
            let path = path_of(&uri);
            prop_assert!(path.components().all(|it| matches!(it, Component::Normal(_))));
            let fits = |it: Component<'_>| it.as_os_str().len() <= 255;
            prop_assert!(path.components().all(fits));
        }
    }
}
