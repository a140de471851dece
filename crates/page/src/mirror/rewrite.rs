//! Pages and style sheets whose references lead into a mirror.
//!
//! A page is read by the tokenizer that reads it for its facts; what changes is cut out of its
//! text and written anew, and every other byte stays as it is, but for the encoding: what
//! comes out is UTF-8. Relies on [`super::references`] for what a tag refers to. A caller says
//! where each reference leads ([`Target`]). Invariant: one pass in linear time, no tree; what
//! is added is bounded by [`ADDED_BYTES_MAX`].

mod edits;
mod page;
mod resolve;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use self::page::PageRewriter;
use self::resolve::References;
use super::css;
use super::references::ReferenceKind;
use crate::charset;
use crate::html::attributes::{Attributes, decode};
use crate::html::elements::Tag;
use crate::html::scan::{Sink, scan};
use crate::url::HREF_BYTES_MAX;

/// Bytes that references may add to one document. A page of many short references and a long
/// base would grow to any size.
pub const ADDED_BYTES_MAX: usize = 16 << 20;

/// Where a reference leads in the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file of the mirror, as a relative reference from this document, without a fragment.
    Member(String),
    /// Nothing that the mirror has, though it is of this site: the original's URL.
    Missing,
    /// Another site: the original's URL, marked as leading outside.
    Outside,
}

/// A document of the original.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The bytes as they came.
    pub body: &'a [u8],
    /// Its URL after redirects.
    pub url: &'a str,
    /// Its header `Content-Type`.
    pub content_type: Option<&'a str>,
}

/// Says where a URL leads that a document refers to. It is asked with the fragment first, and
/// if that is no member, without.
pub type TargetOf<'t> = dyn FnMut(&Url, ReferenceKind) -> Target + 't;

/// A page as UTF-8, its references leading where `target` says.
///
/// Links to other sites get `rel=external` and, with a `notice`, a title that says so, unless
/// they have one. `<base>` goes, as do policies and digests that would keep a browser from
/// what is in the mirror.
pub fn page(document: &Document<'_>, notice: Option<&str>, target: &mut TargetOf<'_>) -> Vec<u8> {
    let encoding = charset::decide(document.body, document.content_type).encoding;
    let text = charset::decode(document.body, encoding);
    let Ok(url) = Url::parse(document.url) else { return text.into_owned().into_bytes() };
    let base = base_of(&text).and_then(|href| base_url(&url, &href));
    let mut references = References::new(base.as_ref().unwrap_or(&url), base.is_some(), target);
    let mut rewriter = PageRewriter::new(&text, notice, &mut references);
    scan(&text, &mut rewriter);
    let html = rewriter.finish();
    if reads_as_utf_8(&html) { html.into_bytes() } else { format!("\u{feff}{html}").into_bytes() }
}

/// Whether a browser reads the page as it is meant. If not, it gets a byte order mark, which is
/// believed before everything else.
fn reads_as_utf_8(html: &str) -> bool {
    // What a browser takes for the declaration may stand where no tag is.
    let decision = charset::decide(html.as_bytes(), None);
    let is_declared =
        decision.encoding == UTF_8 && decision.source == charset::EncodingSource::Meta;
    let is_same = || charset::decode(html.as_bytes(), decision.encoding) == html;
    (html.is_ascii() || is_declared) && !html.starts_with('\u{feff}') && is_same()
}

/// A style sheet as UTF-8, its references leading where `target` says.
///
/// `page_encoding` is that of the page which refers to it, the last thing to go by.
pub fn style_sheet(
    document: &Document<'_>,
    page_encoding: Option<&'static Encoding>,
    target: &mut TargetOf<'_>,
) -> Vec<u8> {
    let text = css::decode(document.body, document.content_type, page_encoding);
    let Ok(url) = Url::parse(document.url) else { return css::encode(&text) };
    let mut references = References::new(&url, false, target);
    css::encode(&references.style(&text))
}

/// The `href` of the first `<base>` that has one.
fn base_of(document: &str) -> Option<String> {
    /// Looks for it, but not in templates, which are no part of the document.
    struct FirstBase {
        href: Option<String>,
        template_depth: u32,
    }
    impl<'d> Sink<'d> for FirstBase {
        fn start(&mut self, tag: Tag, _: bool, attributes: Attributes<'_, 'd>) {
            match tag {
                Tag::Template => self.template_depth += 1,
                Tag::Base if self.template_depth == 0 && self.href.is_none() => {
                    self.href = attributes.raw("href").map(|raw| decode(raw).into_owned());
                }
                _ => {}
            }
        }

        fn end(&mut self, tag: Tag) {
            if tag == Tag::Template {
                self.template_depth = self.template_depth.saturating_sub(1);
            }
        }
    }
    let mut starts = memchr::memchr_iter(b'<', document.as_bytes());
    let is_base = |at: usize| {
        document
            .as_bytes()
            .get(at + 1..at + 5)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"base"))
    };
    if !starts.any(is_base) {
        return None;
    }
    let mut first = FirstBase { href: None, template_depth: 0 };
    scan(document, &mut first);
    first.href
}

/// What relative references start from; `None` for a base that counts for nothing.
fn base_url(document: &Url, href: &str) -> Option<Url> {
    let base = crate::url::join(document, href)?;
    (!base.cannot_be_a_base() && href.len() <= HREF_BYTES_MAX).then_some(base)
}

/// Text as it stands in an attribute between quotes of either kind.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['&', '"', '\'', '<', '>']) {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len() + 16);
    for ch in value.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            ch => out.push(ch),
        }
    }
    Cow::Owned(out)
}
