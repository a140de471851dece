//! The HTML extractor: the main text of a page, without what surrounds it on every page.
//!
//! Without `main` the text stays as it was read. With it the page's bytes are read again
//! by a library that builds a tree, on a thread of its own with a large stack, and only if
//! the page is neither too large nor too deep. Invariant: whatever the page, there
//! is a text afterwards; where no main text is found, it is the one there was.

use super::{Refusal, Transformation};
use crate::connectors::{base, read, written};
use crate::output::{Content, Wants};
use dom_query::Document;
use page::charset;
use page::facts::TEXT_BYTES_MAX;
use rs_trafilatura::{Options, extract_with_options};
use serde::{Deserialize, Serialize};
use store::catalog::{ConfigField, Connector, SettingKind};
use store::tables::connections::ConnectionKind;

/// Bytes of a page that a tree is built of; a larger one keeps its text.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Tags of such a page. A tree builder looks at all that is open for many of them, so the
/// worst page costs the square of this.
const TAGS_MAX: usize = 40_000;
/// Elements in each other; the library walks its tree by recursion.
const DEPTH_MAX: usize = 500;
/// Enough for a tree of that depth, whatever a step of the recursion takes.
const STACK_BYTES: usize = 64 << 20;

/// The settings of the extractor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HtmlConfig {
    /// Whether only the main text of a page is wanted.
    pub main: bool,
}

/// Reads the configuration; the error says which setting is wrong.
pub fn open(config: &str) -> Result<Box<dyn Transformation>, String> {
    Ok(Box::new(read::<HtmlConfig>(config)?))
}

impl Transformation for HtmlConfig {
    fn wants(&self) -> Wants {
        if self.main { Wants::Bytes } else { Wants::Facts }
    }

    fn change(&self, _uri: &str, content: &mut Content) -> Result<(), Refusal> {
        let is_html =
            matches!(content.facts.media_type.as_str(), "text/html" | "application/xhtml+xml");
        let bytes = content.bytes.as_ref().filter(|it| it.len() <= PAGE_BYTES_MAX);
        let Some(bytes) = bytes.filter(|_| self.main && is_html) else { return Ok(()) };
        let label = format!("text/html; charset={}", content.facts.charset);
        let encoding = charset::decide(bytes, Some(&label)).encoding;
        let page = charset::decode(bytes, encoding);
        if let Some(text) = main_text(&page) {
            content.facts.text = text;
        }
        Ok(())
    }
}

/// The main text of a page, if there is one.
fn main_text(page: &str) -> Option<String> {
    std::thread::scope(|scope| {
        let reading = std::thread::Builder::new()
            .name("main text".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || {
                let tags = page.bytes().filter(|byte| *byte == b'<').count();
                if tags > TAGS_MAX || is_too_deep(page) {
                    return None;
                }
                let options = Options { include_tables: true, ..Options::default() };
                extract_with_options(page, &options).ok().map(|it| it.content_text)
            });
        // A page that the library trips over keeps its text.
        let text = reading.ok()?.join().ok().flatten()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        (!text.is_empty()).then(|| text[..end].to_owned())
    })
}

/// Whether elements lie in each other too deeply. Only a tree tells: what a tag closes
/// depends on all that is open. This one is walked without recursion.
fn is_too_deep(page: &str) -> bool {
    let tree = Document::from(page);
    let (mut at, mut depth) = (tree.root(), 0);
    loop {
        if let Some(child) = at.first_child() {
            at = child;
            depth += 1;
            if depth > DEPTH_MAX {
                return true;
            }
            continue;
        }
        loop {
            if let Some(next) = at.next_sibling() {
                at = next;
                break;
            }
            let Some(parent) = at.parent() else { return false };
            at = parent;
            depth -= 1;
        }
    }
}

/// Registers the extractor with its settings and their checks.
pub const CONNECTOR: Connector = Connector {
    settings: &[ConfigField {
        name: "main",
        about: "only the main text of a page, without menus and the like; without, all of its text",
        example: "yes",
        default: Some("no"),
        kind: SettingKind::Flag,
    }],
    takes_bodies: true,
    takes_requisites: false,
    check_config: |text| written(&read::<HtmlConfig>(text)?),
    ..base(ConnectionKind::Transformation, "html", "extracts the main text of pages")
};

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use page::facts::Facts;

    fn text_of(page: &str, main: bool) -> String {
        let facts = Facts {
            media_type: "text/html".into(),
            charset: "UTF-8".into(),
            text: "as it was".into(),
            ..Facts::default()
        };
        let bytes = Some(Bytes::copy_from_slice(page.as_bytes()));
        let mut content = Content { facts, bytes, ..Content::default() };
        HtmlConfig { main }.change("", &mut content).unwrap();
        content.facts.text
    }

    fn article() -> String {
        let sentence = "The lighthouse keeper wrote down what he saw of the sea each morning. ";
        format!(
            "<html><head><title>Log</title></head><body><nav><ul><li><a href=/>Home</a></li>\
             <li><a href=/shop>Shop</a></li></ul></nav><article><h1>Log</h1><p>{}</p><p>{}</p>\
             </article><footer>Imprint, cookies, all rights reserved</footer></body></html>",
            sentence.repeat(8),
            sentence.repeat(6)
        )
    }

    #[test]
    fn the_main_text_is_taken_on_request_and_is_always_the_same() {
        assert_eq!(text_of(&article(), false), "as it was");
        let text = text_of(&article(), true);
        assert!(text.contains("lighthouse keeper"), "{text}");
        assert!(!text.contains("cookies") && !text.contains("Shop"), "{text}");
        assert_eq!(text_of(&article(), true), text);
    }

    #[test]
    fn a_page_that_is_too_deep_or_too_large_or_empty_keeps_its_text() {
        for page in [
            "<div>".repeat(TAGS_MAX + 1),
            "<div>".repeat(2 * DEPTH_MAX),
            format!("{}{}", article(), "<i x=1>".repeat(DEPTH_MAX + 1)),
            " ".repeat(PAGE_BYTES_MAX + 1),
            String::new(),
        ] {
            assert_eq!(text_of(&page, true), "as it was", "{}", &page[..page.len().min(40)]);
        }
    }

    #[test]
    fn a_page_as_deep_as_allowed_is_read() {
        let deep = format!("{}{}", "<div>".repeat(DEPTH_MAX - 20), article());
        assert!(!is_too_deep(&deep));
        text_of(&deep, true);
    }

    /// End tags that close nothing do not hide how deep a page is.
    #[test]
    fn depth_is_that_of_the_tree() {
        assert!(is_too_deep(&"<div></x>".repeat(DEPTH_MAX)));
        assert!(is_too_deep(&"<div><object></div></object>".repeat(DEPTH_MAX)));
        assert!(!is_too_deep(&"<div></div><p>".repeat(10_000)));
    }
}
