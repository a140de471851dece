//! What is written anew in a page, tag by tag.
//!
//! Invariant: an attribute that changes keeps its name, and quotes if it had some; what is in
//! a page as raw text (`noscript`, `srcdoc`) is rewritten too, but not what is in that again.

use std::ops::Range;

use super::edits::Edits;
use super::escaped;
use super::resolve::{References, Resolved};
use crate::html::attributes::{Attributes, decode};
use crate::html::elements::Tag;
use crate::html::scan::{Sink, StartTag, Tags, scan};
use crate::mirror::references::{self, ReferenceKind, Value};

/// A `srcset`, `style` or `rel` longer than this stays as it is.
const VALUE_BYTES_MAX: usize = 256 << 10;

/// Rewrites one page as it is read.
pub(super) struct PageRewriter<'d, 'r, 't, 'f> {
    edits: Edits<'d>,
    references: &'r mut References<'t, 'f>,
    notice: Option<&'r str>,
    content: Content,
    /// Whether this is a document inside of another.
    is_nested: bool,
}

/// What the text behind a start tag is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Other,
    Style,
    /// HTML as raw text.
    Html,
}

/// A piece of a tag, and what is to stand there.
struct Edit {
    range: Range<usize>,
    with: String,
}

impl<'d, 'r, 't, 'f> PageRewriter<'d, 'r, 't, 'f> {
    pub(super) fn new(
        document: &'d str,
        notice: Option<&'r str>,
        references: &'r mut References<'t, 'f>,
    ) -> Self {
        PageRewriter {
            edits: Edits::new(document),
            references,
            notice,
            content: Content::Other,
            is_nested: false,
        }
    }

    pub(super) fn finish(self) -> String {
        self.edits.finish()
    }

    /// HTML that stands in this page as text.
    fn html(&mut self, html: &str) -> Option<String> {
        if self.is_nested {
            return None;
        }
        let mut nested = PageRewriter::new(html, self.notice, self.references);
        nested.is_nested = true;
        scan(html, &mut nested);
        Some(nested.finish())
    }

    fn value(&mut self, value: Value, raw: &str) -> Resolved {
        let left = |text| Resolved { text, is_member: false, is_outside: false };
        match value {
            Value::Url(kind) => self.references.resolve(&decode(raw), kind),
            Value::Document => left(self.html(&decode(raw))),
            Value::Refresh => left(self.references.refresh(&decode(raw))),
            Value::Base => left(None),
            Value::Candidates | Value::Style if raw.len() > VALUE_BYTES_MAX => left(None),
            Value::Candidates => {
                let text = self.references.candidates(&decode(raw));
                Resolved { is_member: text.is_some(), ..left(text) }
            }
            Value::Style => {
                // Most declarations refer to nothing.
                let style = decode(raw);
                let may_refer = style.contains(['(', '\\']);
                let text = may_refer.then(|| self.references.style(&style).into_owned());
                left(text.filter(|text| *text != style))
            }
        }
    }

    /// Puts another value into an attribute.
    fn set(&self, raw: &str, value: &str) -> Option<Edit> {
        let range = self.edits.range_of(raw)?;
        let is_quoted = matches!(self.edits.byte_before(range.start), Some(b'"' | b'\''));
        let value = escaped(value);
        let with = if is_quoted { value.into_owned() } else { format!("\"{value}\"") };
        Some(Edit { range, with })
    }

    /// Takes an attribute away.
    fn removed(&self, name: &str, raw: &str) -> Option<Edit> {
        let name = self.edits.range_of(name)?;
        // An attribute without a value has one that stands nowhere.
        let value = self.edits.range_of(raw).filter(|value| value.start > name.end);
        let end = value.map_or(name.end, |value| {
            let is_quoted = matches!(self.edits.byte_before(value.start), Some(b'"' | b'\''));
            value.end + usize::from(is_quoted)
        });
        Some(Edit { range: name.start..end, with: String::new() })
    }

    /// Says of a link that it leads outside.
    fn mark(&self, tag: &StartTag<'_, '_>, edits: &mut Vec<Edit>) {
        let mut added = String::new();
        match tag.attributes.raw("rel") {
            Some(raw) if !raw.is_empty() && raw.len() <= VALUE_BYTES_MAX => {
                let rel = decode(raw);
                let is_marked =
                    rel.split_ascii_whitespace().any(|it| it.eq_ignore_ascii_case("external"));
                if !is_marked {
                    edits.extend(self.set(raw, &format!("{rel} external")));
                }
            }
            Some(_) => {}
            None => added.push_str(" rel=\"external\""),
        }
        if let Some(notice) = self.notice.filter(|_| tag.attributes.raw("title").is_none()) {
            added.push_str(&format!(" title=\"{}\"", escaped(notice)));
        }
        let behind_name = tag.range.start + "<".len() + tag.name.len();
        edits.push(Edit { range: behind_name..behind_name, with: added });
    }

    /// A `<meta>` that says how the page is to be read; true when it goes.
    fn meta(&mut self, tag: &StartTag<'_, '_>, edits: &mut Vec<Edit>) -> bool {
        let policies = ["content-security-policy", "content-security-policy-report-only"];
        if policies.iter().any(|policy| references::is_equivalent_to(tag, policy)) {
            return true;
        }
        let edit = if let Some(raw) = tag.attributes.raw("charset").filter(|raw| !raw.is_empty()) {
            Some((raw, "utf-8"))
        } else if references::is_equivalent_to(tag, "content-type") {
            let content = tag.attributes.raw("content");
            let content = content.filter(|it| it.to_ascii_lowercase().contains("charset"));
            content.map(|raw| (raw, "text/html; charset=utf-8"))
        } else {
            None
        };
        let (raw, value) = edit.unwrap_or(("utf-8", ""));
        if !raw.to_ascii_lowercase().ends_with("utf-8") {
            edits.extend(self.set(raw, value));
        }
        false
    }

    /// What changes in a tag whose `<base>` or policy does not go as a whole.
    fn attributes(&mut self, tag: &StartTag<'_, 'd>, edits: &mut Vec<Edit>) {
        let (mut is_member, mut is_outside) = (false, false);
        for (name, raw) in tag.attributes.0 {
            let Some(value) = references::value_of(tag, name) else { continue };
            if raw.is_empty() {
                continue;
            }
            if value == Value::Base {
                edits.extend(self.removed(name, raw));
                continue;
            }
            let resolved = self.value(value, raw);
            is_member |= resolved.is_member;
            is_outside |= resolved.is_outside && value == Value::Url(ReferenceKind::Link);
            if let Some(text) = resolved.text {
                edits.extend(self.set(raw, &text));
            }
        }
        let is_link = tag.name.eq_ignore_ascii_case("a") || tag.name.eq_ignore_ascii_case("area");
        if is_outside && is_link {
            self.mark(tag, edits);
        }
        for (name, raw) in tag.attributes.0 {
            let goes = match name.len() {
                // Files have no origin that could allow anything, and other bytes than were signed.
                9 => is_member && name.eq_ignore_ascii_case("integrity"),
                11 => is_member && name.eq_ignore_ascii_case("crossorigin"),
                // Tells the original who follows a link of the copy.
                4 => is_link && name.eq_ignore_ascii_case("ping"),
                _ => false,
            };
            if goes {
                edits.extend(self.removed(name, raw));
            }
        }
    }

    fn replace_text(&mut self, piece: &str, with: &str) {
        if let Some(range) = self.edits.range_of(piece) {
            self.edits.replace(range, with);
        }
    }
}

impl<'d> Sink<'d> for PageRewriter<'d, '_, '_, '_> {
    const TAGS: Tags = Tags::Every;

    fn start_tag(&mut self, tag: &StartTag<'_, 'd>) {
        let is = |name: &str| tag.name.eq_ignore_ascii_case(name);
        self.content = match tag.name.len() {
            5 if is("style") => Content::Style,
            8 if is("noscript") || is("noframes") => Content::Html,
            _ => Content::Other,
        };
        let mut edits = Vec::new();
        let goes = match tag.name.len() {
            4 if is("meta") => self.meta(tag, &mut edits),
            // A base that only names a window stays.
            4 if is("base") => tag.attributes.raw("target").is_none(),
            _ => false,
        };
        if goes {
            // Were there nothing, a `<` before it could begin a tag with what follows.
            self.edits.replace(tag.range.clone(), "<!---->");
            return;
        }
        self.attributes(tag, &mut edits);
        edits.sort_by_key(|edit| edit.range.start);
        for edit in edits {
            self.edits.replace(edit.range, &edit.with);
        }
    }

    fn start(&mut self, _: Tag, _: bool, _: Attributes<'_, 'd>) {}

    fn end(&mut self, _: Tag) {
        self.content = Content::Other;
    }

    fn raw_text(&mut self, _: Tag, content: &str) {
        match self.content {
            Content::Style => {
                let style = self.references.style(content);
                self.replace_text(content, &style);
            }
            Content::Html => {
                if let Some(html) = self.html(content) {
                    self.replace_text(content, &html);
                }
            }
            Content::Other => {}
        }
    }

    /// The style sheet of a drawing is no raw text.
    fn text(&mut self, piece: &str, has_reference: bool) {
        if self.content != Content::Style || piece.is_empty() {
            return;
        }
        let style = htmlize::unescape(piece);
        let rewritten = self.references.style(&style);
        if rewritten != style {
            let with = if has_reference { escaped(&rewritten) } else { rewritten };
            self.replace_text(piece, &with);
        }
    }

    fn shown(&mut self, piece: &str) {
        if self.content == Content::Style {
            let style = self.references.style(piece);
            self.replace_text(piece, &style);
        }
    }
}
