//! Elements of a page by CSS selectors: their text, where they lead, where they stand.
//!
//! Relies on lol_html, which matches while it reads: no tree, and of selectors what needs none.
//! Invariant: at most [`SELECTED_MAX`] elements of each selector, each with a short text.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use lol_html::html_content::{Element, EndTag, TextChunk};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};

use crate::facts::SHORT_TEXT_BYTES_MAX;
use crate::html::attributes::decode;
use crate::text::collapse;

/// Elements of one selector; a list of articles has a hundred.
pub const SELECTED_MAX: usize = 2_000;
/// What lol_html may hold for open elements, attributes and an unfinished tag.
const PARSER_BYTES_MAX: usize = 8 << 20;
/// Bytes of a text before its references are resolved.
const RAW_TEXT_BYTES_MAX: usize = 4 * SHORT_TEXT_BYTES_MAX;

/// An element that a selector matched.
#[derive(Debug, Clone, Default)]
pub(super) struct Selected {
    /// Its name.
    pub(super) tag: String,
    /// Where it leads, as written.
    pub(super) href: Option<String>,
    /// What it says to machines: `content`, `datetime`, or `value`.
    pub(super) value: Option<String>,
    /// The text in it, collapsed.
    pub(super) text: String,
    /// Where its content stands in the document; to the end for one that is not closed.
    pub(super) inner: Range<usize>,
}

type Found = Rc<RefCell<Vec<Vec<Selected>>>>;

/// The elements that each of the selectors matches, in the order of the document.
pub(super) fn select(document: &str, selectors: &[&Selector]) -> Vec<Vec<Selected>> {
    let found: Found = Rc::new(RefCell::new(vec![Vec::new(); selectors.len()]));
    let memory = MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX);
    let mut settings = Settings::new().with_strict(false).with_memory_settings(memory);
    for (at, selector) in selectors.iter().enumerate() {
        let (elements, texts) = (Rc::clone(&found), Rc::clone(&found));
        let end = document.len();
        let handlers = ElementContentHandlers::default()
            .element(move |element: &mut Element<'_, '_>| {
                begin(element, &elements, at, end);
                Ok(())
            })
            .text(move |chunk: &mut TextChunk<'_>| {
                add_text(&mut texts.borrow_mut()[at], chunk);
                Ok(())
            });
        settings = settings.append_element_content_handler((Cow::Borrowed(*selector), handlers));
    }
    let mut parser = HtmlRewriter::new(settings, |_: &[u8]| {});
    // Where it gives up, what was found before counts.
    if parser.write(document.as_bytes()).is_ok() {
        let _ = parser.end();
    }
    let mut found = found.take();
    for selected in found.iter_mut().flatten() {
        selected.text = collapse(&htmlize::unescape(&selected.text), SHORT_TEXT_BYTES_MAX);
    }
    found
}

fn begin(element: &mut Element<'_, '_>, found: &Found, at: usize, document_end: usize) {
    let mut all = found.borrow_mut();
    if all[at].len() == SELECTED_MAX {
        return;
    }
    let attribute = |name: &str| element.get_attribute(name).map(|raw| decode(&raw).into_owned());
    let start = element.source_location().bytes().end;
    let number = all[at].len();
    let selected = Selected {
        tag: element.tag_name(),
        href: attribute("href"),
        value: ["content", "datetime", "value"].into_iter().find_map(attribute),
        text: String::new(),
        inner: start..document_end.max(start),
    };
    all[at].push(selected);
    let ended = Rc::clone(found);
    // What has no content has no end, which is an error here and none to us.
    let _ = element.on_end_tag(Box::new(move |tag: &mut EndTag<'_>| {
        if let Some(selected) = ended.borrow_mut()[at].get_mut(number) {
            selected.inner.end = tag.source_location().bytes().start.max(selected.inner.start);
        }
        Ok(())
    }));
}

/// A text belongs to each element that it stands in.
fn add_text(selected: &mut [Selected], chunk: &TextChunk<'_>) {
    let at = chunk.source_location().bytes().start;
    let open = selected.iter_mut().rev().take(NESTED_MAX).filter(|it| at <= it.inner.end);
    for element in open {
        let room = RAW_TEXT_BYTES_MAX.saturating_sub(element.text.len());
        let piece = chunk.as_str();
        element.text.push_str(&piece[..piece.floor_char_boundary(room)]);
        if chunk.last_in_text_node() {
            element.text.push(' ');
        }
    }
}

/// Elements of one selector in each other that get the text of the innermost.
const NESTED_MAX: usize = 4;

/// The beginning of the first of some elements, whose text or value is not empty.
pub(super) fn first_text(selected: &[Selected]) -> Option<String> {
    let said = |it: &Selected| match &it.value {
        Some(value) if it.tag == "meta" => collapse(value, SHORT_TEXT_BYTES_MAX),
        _ => it.text.clone(),
    };
    selected.iter().map(said).find(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(text: &str) -> Selector {
        text.parse().unwrap()
    }

    #[test]
    fn elements_have_their_text_and_place() {
        let html = "<div id=a>x <p class=t>T&amp;<b> u</b></p></div><meta name=d content=' v '>\
            <a href='b?c&amp;d'>L</a><p class=t>never closed";
        let [divs, texts, metas, links] = ["#a", ".t", "meta[name=d]", "a[href]"].map(selector);
        let found = select(html, &[&divs, &texts, &metas, &links]);
        assert_eq!(&html[found[0][0].inner.clone()], "x <p class=t>T&amp;<b> u</b></p>");
        assert_eq!(
            found[1].iter().map(|it| it.text.as_str()).collect::<Vec<_>>(),
            ["T& u", "never closed"]
        );
        assert_eq!(first_text(&found[2]), Some("v".to_owned()));
        assert_eq!(found[3][0].href.as_deref(), Some("b?c&d"));
    }

    #[test]
    fn elements_and_texts_are_bounded() {
        let all = selector("p");
        let many = "<p>x</p>".repeat(SELECTED_MAX + 1);
        assert_eq!(select(&many, &[&all])[0].len(), SELECTED_MAX);
        let long = format!("<p>{}", "é ".repeat(SHORT_TEXT_BYTES_MAX));
        assert!(select(&long, &[&all])[0][0].text.len() <= SHORT_TEXT_BYTES_MAX);
    }
}
