//! Page requisites: what a browser fetches to show a page or to use a style sheet.
//!
//! Fed by `html::scan`, together with the facts or alone. Relies on [`super::references`] for
//! what an attribute means and on `url::Resolver` for where it leads. Invariant: at most
//! `REQUISITES_MAX` URLs, absolute and canonical, each once, in the order of the document.

use std::collections::HashSet;

use super::css;
use super::references::{self, ReferenceKind, Value};
use crate::facts::{REQUISITES_MAX, Requisite};
use crate::html::Input;
use crate::html::attributes::{Attributes, decode};
use crate::html::elements::Tag;
use crate::html::scan::{Sink, StartTag, Tags, scan};
use crate::url::{Policy, Resolver};

/// References kept before resolving: many lead to the same, and `data:` URLs nowhere.
const FOUND_MAX: usize = 4 * REQUISITES_MAX;
/// Bytes of such references; images in the text of a page (`data:`) are not kept.
const FOUND_BYTES_MAX: usize = 4 << 20;
/// A `srcset` or `style` longer than this is not read; honest ones have a few hundred bytes.
const VALUE_BYTES_MAX: usize = 256 << 10;

/// What a page or a style sheet needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Requisites {
    pub list: Vec<Requisite>,
    /// Whether there are more than the limits allow.
    pub is_cut: bool,
}

/// The requisites of a page, without anything else of it. With the facts they cost less:
/// `html::Input::requisites`.
pub fn of_page(input: &Input<'_>) -> Requisites {
    let facts = crate::html::extract(&Input { requisites: true, ..*input });
    Requisites { list: facts.requisites, is_cut: facts.truncated.requisites }
}

/// The requisites of a style sheet that was found at `url`.
pub fn of_style_sheet(css: &str, url: &str, policy: &Policy) -> Requisites {
    let mut collector = Collector::new();
    collector.style(css);
    Resolver::new(url, policy)
        .map_or_else(|_| Requisites::default(), |mut it| collector.finish(&mut it))
}

/// Collects requisites while a page is read.
pub(crate) struct Collector {
    found: Vec<(String, ReferenceKind)>,
    found_bytes: usize,
    is_cut: bool,
    /// What the raw text is that comes next.
    content: Content,
    /// Whether this reads what is shown without scripts, inside of another.
    is_nested: bool,
}

/// What the text behind a start tag is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Other,
    Style,
    /// HTML that stands there as raw text: `noscript`.
    Html,
}

impl Collector {
    pub(crate) fn new() -> Collector {
        Collector {
            found: Vec::new(),
            found_bytes: 0,
            is_cut: false,
            content: Content::Other,
            is_nested: false,
        }
    }

    fn add(&mut self, url: &str, kind: ReferenceKind) {
        let url = url.split('#').next().unwrap_or("").trim_matches(|ch| ch <= ' ');
        // Images that stand in the page itself may be as long as the page.
        let leads_nowhere = url.is_empty()
            || url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
        if !kind.is_requisite() || leads_nowhere {
            return;
        }
        self.found_bytes += url.len();
        if self.found.len() < FOUND_MAX && self.found_bytes <= FOUND_BYTES_MAX {
            self.found.push((url.to_owned(), kind));
        } else {
            self.is_cut = true;
        }
    }

    fn style(&mut self, css: &str) {
        // Most declarations have none.
        if !css.contains(['(', '\\', '@']) {
            return;
        }
        for reference in css::references(css) {
            self.add(&reference.url, reference.kind.into());
        }
    }

    /// HTML in a value or in raw text. What is in that again, no browser looks at so soon.
    fn html(&mut self, html: &str) {
        if self.is_nested {
            return;
        }
        let mut nested = Collector { is_nested: true, ..Collector::new() };
        scan(html, &mut nested);
        self.is_cut |= nested.is_cut;
        for (url, kind) in nested.found {
            self.add(&url, kind);
        }
    }

    fn value(&mut self, value: Value, raw: &str) {
        match value {
            Value::Url(kind) if kind.is_requisite() => self.add(&decode(raw), kind),
            Value::Candidates if raw.len() <= VALUE_BYTES_MAX => {
                let list = decode(raw);
                for range in references::candidates(&list) {
                    self.add(&list[range], ReferenceKind::Image);
                }
            }
            Value::Style if raw.len() <= VALUE_BYTES_MAX => self.style(&decode(raw)),
            Value::Document => self.html(&decode(raw)),
            _ => {}
        }
    }

    /// What was found, resolved as the links of the page are.
    pub(crate) fn finish(self, resolver: &mut Resolver) -> Requisites {
        let mut known = HashSet::new();
        let mut requisites = Requisites { list: Vec::new(), is_cut: self.is_cut };
        for (href, kind) in &self.found {
            let Ok(url) = resolver.resolve(href) else { continue };
            if known.contains(url) {
                continue;
            }
            if requisites.list.len() >= REQUISITES_MAX {
                requisites.is_cut = true;
                break;
            }
            known.insert(url.to_owned());
            requisites.list.push(Requisite { url: url.to_owned(), kind: *kind });
        }
        requisites
    }
}

impl<'d> Sink<'d> for Collector {
    const TAGS: Tags = Tags::Requisites;

    fn start_tag(&mut self, tag: &StartTag<'_, 'd>) {
        self.content = match tag.name.len() {
            5 if tag.name.eq_ignore_ascii_case("style") => Content::Style,
            8 if tag.name.eq_ignore_ascii_case("noscript") => Content::Html,
            _ => Content::Other,
        };
        for (name, raw) in tag.attributes.0 {
            if let Some(value) = references::value_of(tag, name) {
                self.value(value, raw);
            }
        }
    }

    fn start(&mut self, _: Tag, _: bool, _: Attributes<'_, 'd>) {}

    fn end(&mut self, _: Tag) {
        self.content = Content::Other;
    }

    fn raw_text(&mut self, _: Tag, content: &str) {
        match self.content {
            Content::Style => self.style(content),
            Content::Html => self.html(content),
            Content::Other => {}
        }
    }

    /// The style sheet of a drawing is no raw text.
    fn text(&mut self, piece: &str, _: bool) {
        if self.content == Content::Style {
            self.style(&htmlize::unescape(piece));
        }
    }

    fn shown(&mut self, piece: &str) {
        if self.content == Content::Style {
            self.style(piece);
        }
    }
}

#[cfg(test)]
mod tests;
