//! The body of an article: the part of a page that holds it, without what is no text.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use lol_html::html_content::{Comment, Doctype, Element};
use lol_html::{
    DocumentContentHandlers, ElementContentHandlers, HtmlRewriter, MemorySettings, Selector,
    Settings,
};
use url::Url;

use super::{BODY_BYTES_MAX, REFERENCES_MAX, Reference};
use crate::html::attributes::decode;
use crate::mirror::names::HashName;

/// What lol_html may hold for open elements, attributes and an unfinished tag.
const PARSER_BYTES_MAX: usize = 8 << 20;

/// What is no text of an article.
const NO_TEXT: &str =
    "script, style, noscript, template, iframe, object, embed, applet, form, link, meta";
/// What is about a page rather than in it; counts where nothing says which part is the text.
const AROUND: &str = "title, nav, header, footer, aside";
/// What says nothing by itself.
const UNWRAPPED: &str = "html, head, body, font";

/// How a body is cleaned.
pub(super) struct Cleaning<'r> {
    /// Where relative references start.
    pub(super) base: &'r Url,
    /// What is dropped beside what is no text.
    pub(super) drop: Vec<&'r Selector>,
    /// Whether this is a whole page.
    pub(super) is_page: bool,
}

/// A body without what is no text of it, and what it refers to.
pub(super) fn clean(html: &str, cleaning: &Cleaning<'_>) -> (String, Vec<Reference>) {
    let html = &html[..html.floor_char_boundary(BODY_BYTES_MAX)];
    let references = Rc::new(RefCell::new(References::default()));
    let memory = MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX);
    let mut settings = Settings::new().with_strict(false).with_memory_settings(memory);
    for handlers in handlers(cleaning, &references) {
        settings = settings.append_element_content_handler(handlers);
    }
    let no_text = DocumentContentHandlers::default()
        .comments(|comment: &mut Comment<'_>| {
            comment.remove();
            Ok(())
        })
        .doctype(|doctype: &mut Doctype<'_>| {
            doctype.remove();
            Ok(())
        });
    settings = settings.append_document_content_handler(no_text);
    let mut out = Vec::new();
    let mut parser = HtmlRewriter::new(settings, |piece: &[u8]| out.extend_from_slice(piece));
    // Where it gives up, what was read before counts.
    if parser.write(html.as_bytes()).is_ok() {
        let _ = parser.end();
    }
    let body = String::from_utf8_lossy(&out);
    let body = body[..body.floor_char_boundary(BODY_BYTES_MAX)].to_owned();
    (body, references.take().list)
}

type Handlers<'r> = (Cow<'r, Selector>, ElementContentHandlers<'r>);

/// What is done with the elements of a body, in this order: what is dropped refers to nothing.
fn handlers<'r>(
    cleaning: &Cleaning<'r>,
    references: &Rc<RefCell<References>>,
) -> Vec<Handlers<'r>> {
    let mut handlers = vec![(Cow::Owned(constant(NO_TEXT)), each(|element| element.remove()))];
    if cleaning.is_page {
        handlers.push((Cow::Owned(constant(AROUND)), each(|element| element.remove())));
    }
    for selector in &cleaning.drop {
        handlers.push((Cow::Borrowed(*selector), each(|element| element.remove())));
    }
    let unwrap = each(|element| element.remove_and_keep_content());
    handlers.push((Cow::Owned(constant(UNWRAPPED)), unwrap));
    let (found, base) = (Rc::clone(references), cleaning.base.clone());
    let note = each(move |element| found.borrow_mut().note(element, &base));
    handlers.push((Cow::Owned(constant("a[href], img[src]")), note));
    handlers
}

fn each<'h>(mut change: impl FnMut(&mut Element<'_, '_>) + 'h) -> ElementContentHandlers<'h> {
    ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
        change(element);
        Ok(())
    })
}

fn constant(selector: &str) -> Selector {
    selector.parse().expect("this selector is a constant and tested")
}

/// References in the order of a body, each as it is written once.
#[derive(Default)]
struct References {
    list: Vec<Reference>,
    known: HashSet<HashName>,
}

impl References {
    fn note(&mut self, element: &Element<'_, '_>, base: &Url) {
        if element.removed() || self.list.len() == REFERENCES_MAX {
            return;
        }
        let name = if element.tag_name() == "img" { "src" } else { "href" };
        let Some(raw) = element.get_attribute(name) else { return };
        let original = decode(&raw).trim_ascii().to_owned();
        let is_place = original.is_empty() || original.starts_with('#');
        let Some(url) = crate::url::join(base, &original).filter(|it| !it.cannot_be_a_base())
        else {
            return;
        };
        if !is_place
            && url.as_str().len() <= crate::url::URL_BYTES_MAX
            && self.known.insert(HashName::of(&original))
        {
            self.list.push(Reference { absolute_url: url.into(), original_url: original });
        }
    }
}
