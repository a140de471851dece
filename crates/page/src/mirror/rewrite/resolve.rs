//! Where the references of one document lead, as text to be written.
//!
//! Invariant: what stays as it is (`data:`, `mailto:`, `#place`, what is no URL) is `None`; all
//! together adds at most [`ADDED_BYTES_MAX`] bytes.

use std::borrow::Cow;

use url::Url;

use super::{ADDED_BYTES_MAX, Target, TargetOf};
use crate::mirror::css;
use crate::mirror::references::{self, ReferenceKind};

/// Resolves the references of one document.
pub(super) struct References<'t, 'f> {
    base: Url,
    /// Whether `#place` leads to the base rather than into the document.
    has_base: bool,
    target: &'t mut TargetOf<'f>,
    added_bytes: usize,
}

/// What becomes of a reference.
pub(super) struct Resolved {
    /// What is written in its place; `None` leaves it.
    pub(super) text: Option<String>,
    /// Whether it leads to a file of the mirror.
    pub(super) is_member: bool,
    /// Whether it leads to another site.
    pub(super) is_outside: bool,
}

impl Resolved {
    const LEFT: Resolved = Resolved { text: None, is_member: false, is_outside: false };
}

impl<'t, 'f> References<'t, 'f> {
    pub(super) fn new(base: &Url, has_base: bool, target: &'t mut TargetOf<'f>) -> Self {
        References { base: base.clone(), has_base, target, added_bytes: 0 }
    }

    /// Resolves a URL, free of character references.
    pub(super) fn resolve(&mut self, href: &str, kind: ReferenceKind) -> Resolved {
        let href = href.trim_matches(|c| c <= ' ');
        let is_place = href.starts_with('#') && !self.has_base;
        if href.is_empty() || is_place || self.added_bytes > ADDED_BYTES_MAX {
            return Resolved::LEFT;
        }
        let Some(mut url) = crate::url::join(&self.base, href) else { return Resolved::LEFT };
        if url.cannot_be_a_base() {
            return Resolved::LEFT;
        }
        let mut target = match kind {
            ReferenceKind::Identity => Target::Missing,
            _ => (self.target)(&url, kind),
        };
        let is_asked_again = url.fragment().is_some() && !matches!(target, Target::Member(_));
        let mut fragment = None;
        if is_asked_again && kind != ReferenceKind::Identity {
            fragment = url.fragment().map(str::to_owned);
            url.set_fragment(None);
            target = (self.target)(&url, kind);
            if !matches!(target, Target::Member(_)) {
                url.set_fragment(fragment.as_deref());
            }
        }
        let is_outside = target == Target::Outside && matches!(url.scheme(), "http" | "https");
        let (text, is_member) = match target {
            Target::Member(mut path) => {
                if let Some(fragment) = fragment {
                    path.push('#');
                    path.push_str(&fragment);
                }
                (Some(path), true)
            }
            // What is absolute already keeps its spelling.
            _ => (Url::parse(href).is_err().then(|| url.into()), false),
        };
        self.added_bytes += text.as_ref().map_or(0, String::len);
        Resolved { text, is_member, is_outside }
    }

    /// A style sheet or declarations with their references resolved.
    pub(super) fn style<'a>(&mut self, style: &'a str) -> Cow<'a, str> {
        css::rewrite(style, |reference| self.resolve(&reference.url, reference.kind.into()).text)
    }

    /// The value of a `srcset`, or `None` to leave it.
    pub(super) fn candidates(&mut self, list: &str) -> Option<String> {
        let mut out = String::new();
        let mut done = 0;
        for range in references::candidates(list) {
            let Some(url) = self.resolve(&list[range.clone()], ReferenceKind::Image).text else {
                continue;
            };
            out.push_str(&list[done..range.start]);
            out.push_str(&in_list(&url));
            done = range.end;
        }
        if done == 0 {
            return None;
        }
        out.push_str(&list[done..]);
        Some(out)
    }

    /// The content of a `<meta http-equiv=refresh>`, or `None` to leave it.
    pub(super) fn refresh(&mut self, content: &str) -> Option<String> {
        let (seconds, url) = references::refresh_parts(content)?;
        let url = self.resolve(&url, ReferenceKind::Refresh).text?;
        Some(format!("{seconds};url={url}"))
    }
}

/// A URL that can stand in a list: no blanks, and no comma where one would end it.
fn in_list(url: &str) -> String {
    let blank = |ch: char| ch.is_ascii_whitespace();
    let mut url = url.replace(blank, "%20");
    while url.ends_with(',') {
        url.truncate(url.len() - 1);
        url.push_str("%2C");
    }
    match url.strip_prefix(',') {
        Some(rest) => format!("%2C{rest}"),
        None => url,
    }
}
