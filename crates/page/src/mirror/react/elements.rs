//! Elements that are dropped, renamed, filled in.

use std::borrow::Cow;

use lol_html::html_content::{Comment, ContentType, Element};
use lol_html::{DocumentContentHandlers, ElementContentHandlers};

use super::{Context, Handlers, Leads, Reactor, ReactorRule, each, rewritten, settings};
use crate::html::attributes::decode;
use crate::mirror::select::{Selected, select};

/// What readers of screens cannot use.
const UNUSABLE: &str = "applet, area, map, iframe, frame, script, style, object, embed, form[action], \
    canvas, noscript, link[rel=\"stylesheet\"]";
/// Sound and film.
const MEDIA: &str = "audio, video";
/// Attributes in which an element leads somewhere.
const LEADING: [&str; 4] = ["href", "src", "action", "data"];

/// The page after all rules for its elements; `None` when the parser gave up.
pub(super) fn change(html: &str, reactor: &Reactor, context: &Context<'_>) -> Option<String> {
    let mut settings = settings();
    // Texts for images come first: with one, an image is not dropped.
    for handlers in texts(reactor, context).into_iter().chain(presets(html, reactor)) {
        settings = settings.append_element_content_handler(handlers);
    }
    for rule in reactor.rule.iter().map(|it| it.get_ref()) {
        let Some(on) = &rule.on else { continue };
        let handler = move |element: &mut Element<'_, '_>| {
            if !element.removed() && leads_so(element, rule.leads, context) {
                apply(element, rule);
            }
            Ok(())
        };
        let handlers = ElementContentHandlers::default().element(handler);
        settings =
            settings.append_element_content_handler((Cow::Borrowed(on.selector()), handlers));
    }
    if reactor.accessible {
        let comments = DocumentContentHandlers::default().comments(|comment: &mut Comment<'_>| {
            comment.remove();
            Ok(())
        });
        settings = settings.append_document_content_handler(comments);
    }
    rewritten(settings, html)
}

fn texts<'h>(reactor: &'h Reactor, context: &'h Context<'h>) -> Option<Handlers<'h>> {
    if reactor.alt.is_empty() {
        return None;
    }
    Some(each("img[src]", move |element| {
        let has_text = element.get_attribute("alt").is_some_and(|alt| !alt.trim().is_empty());
        let Some(src) = element.get_attribute("src").filter(|_| !has_text) else { return };
        let Some(url) = crate::url::join(context.base, &decode(&src)) else { return };
        let by_bytes = || reactor.alt.get(&(context.image_digest)(&url)?);
        if let Some(text) = reactor.alt.get(url.as_str()).or_else(by_bytes) {
            set(element, "alt", text);
        }
    }))
}

fn presets<'h>(html: &str, reactor: &Reactor) -> Vec<Handlers<'h>> {
    let mut handlers = Vec::new();
    if reactor.accessible {
        handlers.push(each(UNUSABLE, |element| element.remove()));
        handlers.push(each("img", |element| {
            let has_text = element.get_attribute("alt").is_some();
            if !has_text {
                element.remove();
            }
        }));
        let mut has_track = media_with_tracks(html).into_iter();
        handlers.push(each(MEDIA, move |element| {
            if !has_track.next().unwrap_or(false) {
                element.remove();
            }
        }));
    }
    if reactor.standard_markup {
        handlers.push(each("font, big, basefont, blink", unwrap));
        for (selector, name) in [
            ("center, marquee", "div"),
            ("dir, menu", "ul"),
            ("tt", "code"),
            ("strike", "s"),
            ("acronym", "abbr"),
        ] {
            handlers.push(each(selector, move |element| rename(element, name)));
        }
    }
    if reactor.semantic_tags {
        handlers.push(each("i", |element| rename(element, "em")));
        handlers.push(each("b", |element| rename(element, "strong")));
    }
    handlers
}

/// For each sound and film of a page, whether it has subtitles. These stand in it, so that a
/// page is read for them first.
fn media_with_tracks(html: &str) -> Vec<bool> {
    let [media, track] = [MEDIA, "track"]
        .map(|selector| selector.parse().expect("this selector is a constant and tested"));
    let found = select(html, &[&media, &track]);
    let [media, tracks] = found.as_slice() else { return Vec::new() };
    let mut tracks = tracks.iter().map(|track| track.inner.start).peekable();
    let has_track = |media: &Selected| {
        while tracks.next_if(|at| *at < media.inner.start).is_some() {}
        tracks.peek().is_some_and(|at| *at <= media.inner.end)
    };
    media.iter().map(has_track).collect()
}

fn apply(element: &mut Element<'_, '_>, rule: &ReactorRule) {
    if rule.drop {
        element.remove();
    } else if rule.unwrap {
        unwrap(element);
    } else if let Some(name) = &rule.replace {
        rename(element, name);
    } else if let Some(html) = &rule.append {
        element.append(html, ContentType::Html);
    }
    for (name, value) in &rule.set {
        if value.is_empty() { element.remove_attribute(name) } else { set(element, name, value) }
    }
}

fn unwrap(element: &mut Element<'_, '_>) {
    element.remove_and_keep_content();
}

fn rename(element: &mut Element<'_, '_>, name: &str) {
    // Names of rules are checked when they are read.
    let _ = element.set_tag_name(name);
}

fn set(element: &mut Element<'_, '_>, name: &str, value: &str) {
    let value = value.replace('&', "&amp;").replace('<', "&lt;");
    let _ = element.set_attribute(name, &value);
}

/// Whether an element leads where a rule asks for.
fn leads_so(element: &Element<'_, '_>, leads: Option<Leads>, context: &Context<'_>) -> bool {
    let Some(leads) = leads else { return true };
    let target = LEADING.into_iter().find_map(|name| element.get_attribute(name));
    let url = target.and_then(|raw| crate::url::join(context.base, &decode(&raw)));
    match url.filter(|url| !url.cannot_be_a_base()) {
        Some(url) => (context.is_inside)(&url) == (leads == Leads::Inside),
        None => false,
    }
}
