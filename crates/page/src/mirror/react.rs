//! The reactor's passes over a page: clean-up by rules, texts for images, sentences.
//!
//! They come before [`super::rewrite`] and are all optional: without rules for the reactor a
//! page stays as it is. Relies on lol_html to change a page while it is read. Invariant: one
//! pass for the elements and one for the sentences, each in linear time; a page that the parser
//! gives up on stays as it was.

mod elements;
mod sentences;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use lol_html::html_content::Element;
use lol_html::{ElementContentHandlers, MemorySettings, Selector, Settings};
use url::Url;

pub use self::sentences::{SENTENCE_CHARS_MAX, Sentence, sentences};
use super::rules::{Leads, Reactor, ReactorRule};

/// What lol_html may hold for open elements, attributes and an unfinished tag.
const PARSER_BYTES_MAX: usize = 8 << 20;

/// A page as it is cleaned.
pub struct Context<'a> {
    /// Where it is, or its base, if it names one.
    pub base: &'a Url,
    /// Whether a URL belongs to the site.
    pub is_inside: &'a dyn Fn(&Url) -> bool,
    /// The SHA-256 of an image's bytes in hexadecimal digits, where it is known.
    pub image_digest: &'a dyn Fn(&Url) -> Option<String>,
}

/// A page after the passes that the rules ask for.
pub fn react<'h>(html: &'h str, reactor: &Reactor, context: &Context<'_>) -> Cow<'h, str> {
    let mut html = Cow::Borrowed(html);
    if changes_elements(reactor)
        && let Some(changed) = elements::change(&html, reactor, context)
    {
        html = Cow::Owned(changed);
    }
    if reactor.split_sentences
        && let Some(changed) = sentences::split(&html)
    {
        html = Cow::Owned(changed);
    }
    html
}

fn changes_elements(reactor: &Reactor) -> bool {
    reactor.accessible
        || reactor.standard_markup
        || reactor.semantic_tags
        || !reactor.alt.is_empty()
        || !reactor.rule.is_empty()
}

type Handlers<'h> = (Cow<'h, Selector>, ElementContentHandlers<'h>);

fn settings<'h>() -> Settings<'h, 'static> {
    let memory = MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX);
    Settings::new().with_strict(false).with_memory_settings(memory)
}

/// Feeds a page through; `None` when the parser gave up.
fn rewritten(settings: Settings<'_, '_>, html: &str) -> Option<String> {
    let mut out = Vec::with_capacity(html.len());
    let mut parser =
        lol_html::HtmlRewriter::new(settings, |piece: &[u8]| out.extend_from_slice(piece));
    parser.write(html.as_bytes()).ok()?;
    parser.end().ok()?;
    String::from_utf8(out).ok()
}

/// A handler for each element that a constant selector matches.
fn each<'h>(selector: &str, mut change: impl FnMut(&mut Element<'_, '_>) + 'h) -> Handlers<'h> {
    let selector = selector.parse().expect("this selector is a constant and tested");
    let handler = move |element: &mut Element<'_, '_>| {
        change(element);
        Ok(())
    };
    (Cow::Owned(selector), ElementContentHandlers::default().element(handler))
}
