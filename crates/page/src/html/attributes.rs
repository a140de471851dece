//! The attributes of one start tag, read in place.
//!
//! Invariant: values are decoded from character references, bounded by the caller's
//! limit, and the first of two attributes of one name counts, as in the standard.

use std::borrow::Cow;

use crate::text;

/// Attributes of one tag that are looked at; no honest tag has more.
pub(crate) const ATTRIBUTES_MAX: usize = 256;

/// Name and value as they stand in the document.
pub(crate) type Attribute<'d> = (&'d str, &'d str);

/// The attributes of one element.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'l, 'd>(pub(crate) &'l [Attribute<'d>]);

impl<'d> Attributes<'_, 'd> {
    /// The value as it stands in the document, references and all.
    pub(crate) fn raw(&self, name: &str) -> Option<&'d str> {
        let found = self.0.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }

    /// The decoded value, or `None` also when it is longer than `bytes_max`.
    pub(crate) fn value(&self, name: &str, bytes_max: usize) -> Option<Cow<'d, str>> {
        let raw = self.raw(name)?;
        (raw.len() <= bytes_max).then(|| decode(raw))
    }
}

/// A raw value as a short text: decoded, collapsed, cut.
pub(super) fn words(raw: &str, bytes_max: usize) -> String {
    // A reference of several bytes may stand for one, but hardly in all of a long text.
    let raw = &raw[..raw.floor_char_boundary(4 * bytes_max)];
    text::collapse(&decode(raw), bytes_max)
}

pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    if memchr::memchr(b'&', raw.as_bytes()).is_some() {
        htmlize::unescape_attribute(raw)
    } else {
        Cow::Borrowed(raw)
    }
}
