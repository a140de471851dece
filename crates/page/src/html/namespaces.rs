//! Whether a tag belongs to HTML, or to a drawing (SVG) or a formula (MathML) in it.
//!
//! This decides what is raw text and where CDATA sections may stand. It takes a tree
//! to know it for certain; as in lol_html, from which the rules are taken, the names
//! of the tags in order stand for it. Invariant: holds one byte for each level of
//! drawings and formulas, at most [`LEVELS_MAX`].

use super::attributes::Attributes;
use super::elements::Tag;

/// Levels of drawings and formulas in each other that are followed; no honest page has ten.
const LEVELS_MAX: usize = 1 << 16;

/// Longest name compared here.
const NAME_BYTES_MAX: usize = 14;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Html,
    Svg,
    MathMl,
}

/// The namespaces that are open.
pub(super) struct Namespaces {
    current: Namespace,
    /// The namespaces of the elements around it.
    outer: Vec<Namespace>,
}

impl Namespaces {
    pub(super) fn new() -> Namespaces {
        Namespaces { current: Namespace::Html, outer: Vec::new() }
    }

    pub(super) fn are_html(&self) -> bool {
        self.current == Namespace::Html
    }

    pub(super) fn are_too_deep(&self) -> bool {
        self.outer.len() > LEVELS_MAX
    }

    pub(super) fn allow_cdata(&self) -> bool {
        !self.are_html()
    }

    /// Whether attributes may decide which namespace a start tag belongs to.
    pub(super) fn look_at_attributes(&self) -> bool {
        !self.are_html()
    }

    fn enter(&mut self, namespace: Namespace) {
        self.outer.push(self.current);
        self.current = namespace;
    }

    fn leave(&mut self) {
        self.current = self.outer.pop().unwrap_or(Namespace::Html);
    }

    /// Takes a start tag; says whether the element's content is raw text.
    pub(super) fn start_tag(
        &mut self,
        tag: Tag,
        name: &[u8],
        attributes: Attributes<'_, '_>,
        self_closing: bool,
    ) -> bool {
        match tag {
            Tag::Svg => self.enter(Namespace::Svg),
            Tag::Math => self.enter(Namespace::MathMl),
            _ if self.are_html() => return tag.is_raw(),
            _ => self.foreign_start_tag(&lower_case(name), attributes, self_closing),
        }
        false
    }

    fn foreign_start_tag(&mut self, name: &Name, attributes: Attributes<'_, '_>, closed: bool) {
        let name = name.as_slice();
        let is_set = |name: &&str| attributes.raw(name).is_some();
        let leaves =
            is_html_only(name) || (name == b"font" && ["color", "size", "face"].iter().any(is_set));
        if leaves {
            self.leave();
            return;
        }
        let is_annotation = self.current == Namespace::MathMl && name == b"annotation-xml";
        let holds_html = is_integration_point(self.current, name)
            || (is_annotation && attributes.0.iter().any(|(name, value)| says_html(name, value)));
        if holds_html && !closed {
            self.enter(Namespace::Html);
        }
    }

    /// Takes an end tag.
    pub(super) fn end_tag(&mut self, name: &[u8]) {
        let Some(&outer) = self.outer.last() else { return };
        let name = lower_case(name);
        let name = name.as_slice();
        let leaves = match self.current {
            Namespace::Html => {
                is_integration_point(outer, name)
                    || (outer == Namespace::MathMl && name == b"annotation-xml")
            }
            Namespace::Svg => matches!(name, b"svg" | b"p" | b"br"),
            Namespace::MathMl => matches!(name, b"math" | b"p" | b"br"),
        };
        if leaves {
            self.leave();
        }
    }
}

/// A name in lower case; empty when it is longer than any compared here.
struct Name([u8; NAME_BYTES_MAX], usize);

impl Name {
    fn as_slice(&self) -> &[u8] {
        self.0.get(..self.1).unwrap_or_default()
    }
}

fn lower_case(name: &[u8]) -> Name {
    let mut lower = [0; NAME_BYTES_MAX];
    let Some(room) = lower.get_mut(..name.len()) else { return Name(lower, 0) };
    room.copy_from_slice(name);
    room.make_ascii_lowercase();
    Name(lower, name.len())
}

/// Whether an attribute of `<annotation-xml>` says that HTML is in it.
fn says_html(name: &str, value: &str) -> bool {
    name.eq_ignore_ascii_case("encoding")
        && ["text/html", "application/xhtml+xml"]
            .iter()
            .any(|html| value.eq_ignore_ascii_case(html))
}

/// Whether an element of this name has HTML in it though it belongs to `namespace`.
fn is_integration_point(namespace: Namespace, name: &[u8]) -> bool {
    match namespace {
        Namespace::Html => false,
        Namespace::Svg => matches!(name, b"desc" | b"title" | b"foreignobject"),
        Namespace::MathMl => matches!(name, b"mi" | b"mo" | b"mn" | b"ms" | b"mtext"),
    }
}

/// Whether a start tag of this name ends the drawing or formula it stands in.
#[rustfmt::skip]
fn is_html_only(name: &[u8]) -> bool {
    matches!(name,
        b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd" | b"div"
        | b"dl" | b"dt" | b"em" | b"embed" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6"
        | b"head" | b"hr" | b"i" | b"img" | b"li" | b"listing" | b"menu" | b"meta" | b"nobr"
        | b"ol" | b"p" | b"pre" | b"ruby" | b"s" | b"small" | b"span" | b"strong" | b"strike"
        | b"sub" | b"sup" | b"table" | b"tt" | b"u" | b"ul" | b"var")
}
