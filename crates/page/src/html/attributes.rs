//! The attributes of one start tag, read in place.
//!
//! lol_html copies every name and value it is asked for; it also says where they
//! stand, so we read them from the document instead. Invariant: values are decoded
//! from character references, bounded by the caller's limit, and the first of two
//! attributes of one name counts, as in the standard.

use std::borrow::Cow;
use std::ops::Range;

use lol_html::html_content::Element;

use crate::text;

/// The attributes of an element of `document`.
pub(super) struct Attributes<'e, 'd> {
    list: &'e [lol_html::html_content::Attribute<'e>],
    document: &'d str,
}

impl<'e, 'd> Attributes<'e, 'd> {
    pub(super) fn of(element: &'e Element<'_, '_>, document: &'d str) -> Attributes<'e, 'd> {
        Attributes { list: element.attributes(), document }
    }

    /// The value as it stands in the document, references and all.
    pub(super) fn raw(&self, name: &str) -> Option<&'d str> {
        let found = self.list.iter().find(|attribute| {
            let at = attribute.name_source_location().map(|location| location.bytes());
            at.is_some_and(|at| self.slice(at).eq_ignore_ascii_case(name))
        })?;
        Some(found.value_source_location().map_or("", |location| self.slice(location.bytes())))
    }

    /// The decoded value, or `None` also when it is longer than `bytes_max`.
    pub(super) fn value(&self, name: &str, bytes_max: usize) -> Option<Cow<'d, str>> {
        let raw = self.raw(name)?;
        (raw.len() <= bytes_max).then(|| decode(raw))
    }

    /// The value as a short text: decoded, collapsed, cut.
    pub(super) fn words(&self, name: &str, bytes_max: usize) -> String {
        // A reference of several bytes may stand for one, but hardly in all of a long text.
        let raw = self.raw(name).unwrap_or("");
        let raw = &raw[..raw.floor_char_boundary(4 * bytes_max)];
        text::collapse(&decode(raw), bytes_max)
    }

    fn slice(&self, at: Range<usize>) -> &'d str {
        self.document.get(at).unwrap_or("")
    }
}

fn decode(raw: &str) -> Cow<'_, str> {
    if memchr::memchr(b'&', raw.as_bytes()).is_some() {
        htmlize::unescape_attribute(raw)
    } else {
        Cow::Borrowed(raw)
    }
}
