//! XML sitemaps: `<urlset>` and `<sitemapindex>`.
//!
//! Known by the local name of the root, because namespaces are wrong or missing
//! on many sites. Only elements directly inside an entry, with the prefix of the
//! root or none, are read; extensions for images, news or videos have elements
//! of the same names, but with their own prefix or deeper down.
//!
//! Invariant: the state is one entry and one text, both bounded; depth is a
//! number, not a stack.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};
use quick_xml::name::QName;

use super::{ChangeFreq, LOC_BYTES_MAX, Sitemap, SitemapEntry, SitemapKind, datetime};
use crate::feed::source::DecodedText;

pub(super) enum SitemapOrFeed {
    Sitemap(Sitemap),
    /// The root is that of a feed.
    Feed,
}

pub(super) fn read(source: DecodedText) -> SitemapOrFeed {
    let mut reader = Reader::from_reader(source);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.allow_dangling_amp = true;
    config.trim_markup_names_in_closing_tags = true;
    let mut state = SitemapParser::new();
    let mut buffer = Vec::new();
    while !state.done {
        buffer.clear();
        reader.get_mut().next_piece();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) if state.depth == 0 => match root_kind(start.name()) {
                Some(kind) => state.root(kind, start.name()),
                None if is_feed(start.name()) => return SitemapOrFeed::Feed,
                None => break,
            },
            Ok(Event::Start(start)) => state.start(start.name()),
            Ok(Event::End(_)) => state.end(),
            Ok(Event::Text(text)) => state.text(&text),
            Ok(Event::CData(text)) => state.text(&text),
            Ok(Event::GeneralRef(reference)) => state.reference(&reference),
            Ok(Event::Eof) => {
                state.sitemap.malformed |= state.depth > 0;
                break;
            }
            Ok(_) => {}
            Err(_) => {
                state.sitemap.malformed = true;
                break;
            }
        }
    }
    let mut sitemap = state.sitemap;
    sitemap.cut = reader.get_ref().cut;
    sitemap.bytes = reader.get_ref().taken();
    SitemapOrFeed::Sitemap(sitemap)
}

fn root_kind(name: QName) -> Option<SitemapKind> {
    match name.local_name().as_ref() {
        "urlset" => Some(SitemapKind::UrlSet),
        "sitemapindex" => Some(SitemapKind::Index),
        _ => None,
    }
}

fn is_feed(name: QName) -> bool {
    matches!(name.local_name().as_ref(), "rss" | "feed" | "RDF")
}

/// The parts of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryField {
    Loc,
    LastMod,
    ChangeFreq,
    Priority,
}

#[derive(Default)]
struct Draft {
    loc: String,
    loc_overlong: bool,
    lastmod_ms: Option<i64>,
    changefreq: Option<ChangeFreq>,
    priority: Option<f32>,
    /// Text that stands in the entry itself: some sites leave `<loc>` out.
    bare: Text,
}

#[derive(Default)]
struct Text {
    kept: String,
    overlong: bool,
}

impl Text {
    fn push(&mut self, text: &str) {
        // White space around an address must not use up its room.
        let text = if self.kept.is_empty() { text.trim_start() } else { text };
        if self.kept.len() + text.len() <= LOC_BYTES_MAX {
            self.kept.push_str(text);
            return;
        }
        let room = LOC_BYTES_MAX - self.kept.len();
        self.overlong |= text.trim_end().len() > room;
        self.kept.push_str(&text[..text.floor_char_boundary(room)]);
    }
}

struct SitemapParser {
    sitemap: Sitemap,
    root_prefix: Option<String>,
    depth: usize,
    entry: Option<Draft>,
    field: Option<(EntryField, Text)>,
    done: bool,
}

/// Depths, counted in open elements.
const IN_ROOT: usize = 1;
const IN_ENTRY: usize = 2;
const IN_FIELD: usize = 3;

impl SitemapParser {
    fn new() -> SitemapParser {
        SitemapParser {
            sitemap: Sitemap::empty(SitemapKind::Unknown),
            root_prefix: None,
            depth: 0,
            entry: None,
            field: None,
            done: false,
        }
    }

    fn root(&mut self, kind: SitemapKind, name: QName) {
        self.sitemap.kind = kind;
        self.root_prefix = name.prefix().map(|prefix| prefix.as_ref().to_owned());
        self.depth = IN_ROOT;
    }

    fn start(&mut self, name: QName) {
        self.depth += 1;
        let prefix = name.prefix();
        let prefix = prefix.as_ref().map(AsRef::as_ref);
        let is_ours = prefix.is_none() || prefix == self.root_prefix.as_deref();
        if !is_ours {
            return;
        }
        match (self.depth, name.local_name().as_ref()) {
            (IN_ENTRY, "url" | "sitemap") => self.entry = Some(Draft::default()),
            (IN_FIELD, local) if self.entry.is_some() => {
                self.field = field(local).map(|field| (field, Text::default()));
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        match self.depth {
            IN_FIELD => self.end_field(),
            IN_ENTRY => self.end_entry(),
            IN_ROOT => self.done = true,
            _ => {}
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn end_field(&mut self) {
        let (Some(entry), Some((field, text))) = (&mut self.entry, self.field.take()) else {
            return;
        };
        match field {
            EntryField::Loc => {
                entry.loc_overlong = text.overlong;
                entry.loc = text.kept;
            }
            EntryField::LastMod => entry.lastmod_ms = datetime::parse(&text.kept),
            EntryField::ChangeFreq => entry.changefreq = ChangeFreq::parse(&text.kept),
            EntryField::Priority => entry.priority = priority(&text.kept),
        }
    }

    fn end_entry(&mut self) {
        let Some(draft) = self.entry.take() else { return };
        let go_on = self.sitemap.add(draft.finish());
        self.done = !go_on;
    }

    fn text(&mut self, text: &str) {
        match (self.depth, &mut self.entry, &mut self.field) {
            (IN_FIELD, _, Some((_, kept))) => kept.push(text),
            (IN_ENTRY, Some(entry), _) => entry.bare.push(text),
            _ => {}
        }
    }

    /// Only numbers and the five names that XML itself knows are resolved; what
    /// a DOCTYPE may have declared stays the characters that were written.
    fn reference(&mut self, reference: &BytesRef) {
        match reference.resolve_char_ref() {
            Ok(Some(character)) => self.text(character.encode_utf8(&mut [0; 4])),
            Ok(None) => match resolve_predefined_entity(reference) {
                Some(text) => self.text(text),
                None => self.text(&format!("&{};", &**reference)),
            },
            Err(_) => self.sitemap.malformed = true,
        }
    }
}

impl Draft {
    fn finish(self) -> Option<SitemapEntry> {
        let (loc, overlong) = if self.loc.is_empty() && !self.loc_overlong {
            (self.bare.kept, self.bare.overlong)
        } else {
            (self.loc, self.loc_overlong)
        };
        let loc = loc.trim();
        let usable = !overlong && !loc.is_empty();
        usable.then(|| SitemapEntry {
            loc: loc.to_owned(),
            lastmod_ms: self.lastmod_ms,
            changefreq: self.changefreq,
            priority: self.priority,
        })
    }
}

fn field(local: &str) -> Option<EntryField> {
    match local {
        "loc" => Some(EntryField::Loc),
        "lastmod" => Some(EntryField::LastMod),
        "changefreq" => Some(EntryField::ChangeFreq),
        "priority" => Some(EntryField::Priority),
        _ => None,
    }
}

fn priority(text: &str) -> Option<f32> {
    let value: f32 = text.trim().parse().ok()?;
    (0.0..=1.0).contains(&value).then_some(value)
}
