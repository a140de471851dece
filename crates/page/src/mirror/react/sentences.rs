//! Sentences: where they end in any script, and a `span` around each.
//!
//! A sentence ends behind punctuation that ends one, in a script without blanks at once, in others
//! before a blank; one that is too long ends behind a comma, or is cut. Invariant: the pieces
//! put together are the text; none has more than [`SENTENCE_CHARS_MAX`] characters.

use std::cell::RefCell;
use std::rc::Rc;

use lol_html::html_content::{ContentType, TextChunk, TextType};
use lol_html::{DocumentContentHandlers, ElementContentHandlers};

use super::{rewritten, settings};
use crate::mirror::names::HashName;

/// Characters of a sentence; what reads it aloud takes no more at a time.
pub const SENTENCE_CHARS_MAX: usize = 100;

/// A sentence of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentence<'t> {
    /// It, with the blanks around it.
    pub text: &'t str,
}

impl Sentence<'_> {
    /// The name of what is said: the hash of the text without blanks around it.
    pub fn id(&self) -> String {
        format!("s{}", HashName::of(self.text.trim()))
    }

    /// Whether it says anything.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// The sentences of a text, in order.
pub fn sentences(text: &str) -> impl Iterator<Item = Sentence<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, behind) = rest.split_at(end_of_first(rest));
        rest = behind;
        Some(Sentence { text: sentence })
    })
}

fn end_of_first(text: &str) -> usize {
    let mut comma = None;
    let mut chars = text.char_indices().peekable();
    let mut count = 0;
    while let Some((at, ch)) = chars.next() {
        let end = at + ch.len_utf8();
        count += 1;
        let next = chars.peek().map(|(_, next)| *next);
        if ends_sentence(ch) && next.is_none_or(|next| is_apart(ch, next)) {
            // Closing quotes and then blanks belong to it, as far as there is room.
            let mut more = chars.map(|(_, ch)| ch).take(SENTENCE_CHARS_MAX - count).peekable();
            let mut end = end;
            while let Some(ch) = more.next_if(|ch| is_closing(*ch)) {
                end += ch.len_utf8();
            }
            while let Some(ch) = more.next_if(|ch| ch.is_whitespace()) {
                end += ch.len_utf8();
            }
            return end;
        }
        if is_comma(ch) {
            comma = Some(end);
        }
        if count == SENTENCE_CHARS_MAX {
            return comma.unwrap_or(end);
        }
    }
    text.len()
}

/// Punctuation that ends a sentence, in the scripts that have their own.
fn ends_sentence(ch: char) -> bool {
    matches!(
        ch,
        '.' | '!'
            | '?'
            | '…'
            | '‼'
            | '⁇'
            | '⁈'
            | '⁉'
            | '。'
            | '！'
            | '？'
            | '｡'
            | '．'
            | '։'
            | '؟'
            | '۔'
            | '।'
            | '॥'
            | '။'
            | '።'
            | '፧'
            | '᙮'
            | '។'
            | '៕'
            | '᠃'
            | '᱾'
            | '꓿'
            | '꩝'
    )
}

fn is_comma(ch: char) -> bool {
    matches!(
        ch,
        ',' | ';' | ':' | '，' | '、' | '；' | '：' | '､' | '،' | '؛' | '՝' | '፣' | '፤' | '၊'
    )
}

fn is_closing(ch: char) -> bool {
    matches!(ch, '"' | '\'' | ')' | ']' | '»' | '”' | '’' | '」' | '』' | '）' | '】' | '》' | '〉')
}

/// Whether a sentence ends between its punctuation and this character. In `3.14` and `a.b` it does
/// not; behind punctuation of scripts without blanks it always does, unless there is more of it.
fn is_apart(end: char, next: char) -> bool {
    if ends_sentence(next) {
        return false;
    }
    !end.is_ascii() || next.is_whitespace() || is_closing(next)
}

/// The texts that are not split: they are code, or names, or not shown.
const NOT_SPLIT: &str = "script, style, title, textarea, pre, code, option, button, svg, math, \
    noscript, template, select, ruby";

/// A page with each sentence in a `span`; `None` when the parser gave up.
pub(super) fn split(html: &str) -> Option<String> {
    let skipped: Rc<RefCell<Option<usize>>> = Rc::default();
    let note = Rc::clone(&skipped);
    let selector: lol_html::Selector =
        NOT_SPLIT.parse().expect("this selector is a constant and tested");
    // Handlers of elements see a text before those of the document do.
    let skip = ElementContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
        note.replace(Some(chunk.source_location().bytes().start));
        Ok(())
    });
    let mut text = String::new();
    let document = DocumentContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
        let is_skipped = *skipped.borrow() == Some(chunk.source_location().bytes().start);
        if is_skipped || chunk.text_type() != TextType::Data {
            return Ok(());
        }
        text.push_str(chunk.as_str());
        if !chunk.last_in_text_node() {
            chunk.remove();
            return Ok(());
        }
        let spans = in_spans(&std::mem::take(&mut text));
        chunk.replace(&spans, ContentType::Html);
        Ok(())
    });
    let settings = settings()
        .append_element_content_handler((std::borrow::Cow::Borrowed(&selector), skip))
        .append_document_content_handler(document);
    rewritten(settings, html)
}

/// A text of HTML with each sentence in a `span`.
fn in_spans(raw: &str) -> String {
    let text = htmlize::unescape(raw);
    if text.trim().is_empty() {
        return raw.to_owned();
    }
    let mut out = String::with_capacity(raw.len() + 64);
    for sentence in sentences(&text) {
        let escaped = htmlize::escape_text(sentence.text);
        if sentence.is_blank() {
            out.push_str(&escaped);
        } else {
            out.push_str(&format!("<span id=\"{}\">{escaped}</span>", sentence.id()));
        }
    }
    out
}
