//! Cuts an XML feed down to the few elements we read, before feed-rs sees it.
//!
//! feed-rs fails on the first mistake and copies freely: the text of a media
//! group goes into each of its contents, a base address into each element; a
//! small hostile feed would fill the memory. What leaves here is a well-formed
//! document without declaration, DOCTYPE or entities, in one of two shapes (RSS
//! 2.0 or Atom), at most four elements deep, with every text bounded.
//!
//! Invariant: a document that breaks off in the middle leaves as the part that
//! was whole, closed properly; nothing is lost but what follows the break.

use quick_xml::NsReader;
use quick_xml::escape::{escape, resolve_predefined_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{QName, ResolveResult};

use super::source::{Cut, DecodedText};
use super::{ENTRIES_MAX, URL_BYTES_MAX};

/// Attributes looked at in one element.
const ATTRIBUTES_MAX: usize = 64;
/// Bytes of a base address.
const BASE_BYTES_MAX: usize = 1_024;
/// Elements kept; ten for each of the entries.
const ELEMENTS_MAX: usize = ENTRIES_MAX * 10;

const ATOM: &str = "http://www.w3.org/2005/Atom";
const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
/// Namespaces that mean plain RSS or Atom, as their elements without any do.
const OWN: &[&str] = &[
    "http://purl.org/rss/1.0/",
    "http://my.netscape.com/rdf/simple/0.9/",
    "http://channel.netscape.com/rdf/simple/0.9/",
    "http://backend.userland.com/rss2",
    "http://purl.org/atom/ns#",
];
const RSS_OPEN: &str = "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\" \
     xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><channel>";

/// What is left of a feed.
pub(super) struct Slim {
    pub(super) xml: String,
    pub(super) family: FeedDialect,
    /// There were more entries than are kept.
    pub(super) truncated: bool,
    /// The document broke off, or was not well-formed.
    pub(super) malformed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FeedDialect {
    Rss,
    Atom,
}

/// Reads the document; none if its first element is not that of a feed.
pub(super) fn slim(source: DecodedText) -> Option<Slim> {
    let mut reader = NsReader::from_reader(source);
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().allow_dangling_amp = true;
    reader.config_mut().trim_markup_names_in_closing_tags = true;
    let mut slimmer = Slimmer::default();
    let mut buffer = Vec::new();
    while !slimmer.done {
        buffer.clear();
        reader.get_mut().next_piece();
        match reader.read_resolved_event_into(&mut buffer) {
            Ok((space, Event::Start(start))) => {
                slimmer.start(Space::of(&space, start.name()), &start)
            }
            Ok((_, Event::End(_))) => slimmer.end(),
            Ok((_, Event::Text(text))) => slimmer.text(&text),
            Ok((_, Event::CData(text))) => slimmer.text(&text),
            Ok((_, Event::GeneralRef(reference))) => slimmer.reference(&reference),
            Ok((_, Event::Eof)) => break,
            Ok(_) => {}
            Err(_) => slimmer.stop(),
        }
        if slimmer.root_is_foreign {
            return None;
        }
    }
    slimmer.note(reader.get_ref().cut);
    slimmer.finish()
}

/// Whose vocabulary an element belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Own,
    Atom,
    DublinCore,
    Foreign,
}

impl Space {
    fn of(resolved: &ResolveResult, name: QName) -> Space {
        match resolved {
            ResolveResult::Unbound => Space::Own,
            ResolveResult::Bound(space) => match space.as_ref() {
                ATOM => Space::Atom,
                DUBLIN_CORE => Space::DublinCore,
                other if OWN.contains(&other) => Space::Own,
                _ => Space::Foreign,
            },
            // A prefix that was never declared still says what it means.
            ResolveResult::Unknown(_) => match name.prefix().as_ref().map(AsRef::as_ref) {
                Some("atom") => Space::Atom,
                Some("dc") => Space::DublinCore,
                _ => Space::Foreign,
            },
        }
    }
}

/// Where the reader stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedLevel {
    Root,
    Channel,
    Entry,
}

#[derive(Default)]
struct Slimmer {
    out: String,
    family: Option<FeedDialect>,
    places: Vec<FeedLevel>,
    /// Open elements, of no interest or inside a leaf, below the last place.
    skipped: usize,
    leaf: Option<Leaf>,
    entries: usize,
    elements: usize,
    truncated: bool,
    malformed: bool,
    done: bool,
    root_is_foreign: bool,
}

/// An element that carries text or a link.
struct Leaf {
    tag: &'static str,
    attributes: String,
    text: String,
    overlong: bool,
}

impl Slimmer {
    fn start(&mut self, space: Space, start: &BytesStart) {
        if self.skipped > 0 || self.leaf.is_some() {
            self.skipped += 1;
            return;
        }
        let local = start.local_name();
        let Some(family) = self.family else { return self.root(local.as_ref(), start) };
        let place = self.places.last().copied().unwrap_or(FeedLevel::Root);
        match (place, local.as_ref()) {
            (FeedLevel::Root, "channel") if family == FeedDialect::Rss => {
                self.places.push(FeedLevel::Channel)
            }
            (FeedLevel::Root | FeedLevel::Channel, "item" | "entry") if space != Space::Foreign => {
                self.entry(family, start);
            }
            (place, local) => match leaf_tag(family, space, place, local) {
                Some(tag) => self.leaf = Some(Leaf::new(tag, start)),
                None => self.skipped = 1,
            },
        }
    }

    fn root(&mut self, local: &str, start: &BytesStart) {
        let (family, place) = match local {
            "rss" | "RDF" => (FeedDialect::Rss, FeedLevel::Root),
            "feed" => (FeedDialect::Atom, FeedLevel::Root),
            "entry" => (FeedDialect::Atom, FeedLevel::Entry),
            _ => {
                self.root_is_foreign = true;
                return;
            }
        };
        self.family = Some(family);
        self.places.push(place);
        match family {
            FeedDialect::Rss => self.out.push_str(RSS_OPEN),
            FeedDialect::Atom => {
                let base = base_attribute(start);
                self.out.push_str(&format!("<feed xmlns=\"{ATOM}\"{base}>"));
            }
        }
        if place == FeedLevel::Entry {
            self.out.push_str("<entry>");
        }
    }

    fn entry(&mut self, family: FeedDialect, start: &BytesStart) {
        if self.entries == ENTRIES_MAX {
            self.truncated = true;
            self.done = true;
            return;
        }
        self.entries += 1;
        self.places.push(FeedLevel::Entry);
        let base = base_attribute(start);
        self.out.push_str(&format!("<{}{base}>", entry_tag(family)));
    }

    fn end(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else if let Some(leaf) = self.leaf.take() {
            self.keep(&leaf);
        } else if let Some(place) = self.places.pop() {
            self.close(place);
            self.done = self.places.is_empty();
        }
    }

    fn keep(&mut self, leaf: &Leaf) {
        let empty = leaf.text.is_empty() && leaf.attributes.is_empty();
        if leaf.overlong || empty {
            return;
        }
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            self.truncated = true;
            self.done = true;
            return;
        }
        let Leaf { tag, attributes, text, .. } = leaf;
        self.out.push_str(&format!("<{tag}{attributes}>{}</{tag}>", escape(text.trim())));
    }

    fn close(&mut self, place: FeedLevel) {
        let (FeedLevel::Entry, Some(family)) = (place, self.family) else { return };
        self.out.push_str(&format!("</{}>", entry_tag(family)));
    }

    fn text(&mut self, text: &str) {
        if let Some(leaf) = &mut self.leaf {
            leaf.push(text);
        }
    }

    /// Only numbers and the five names that XML itself knows are resolved; what
    /// a DOCTYPE may have declared stays the characters that were written.
    fn reference(&mut self, reference: &BytesRef) {
        let Some(leaf) = &mut self.leaf else { return };
        match reference.resolve_char_ref() {
            Ok(Some(character)) => leaf.push(character.encode_utf8(&mut [0; 4])),
            Ok(None) => match resolve_predefined_entity(reference) {
                Some(text) => leaf.push(text),
                None => leaf.push(&format!("&{};", &**reference)),
            },
            Err(_) => {}
        }
    }

    fn note(&mut self, cut: Option<Cut>) {
        match cut {
            Some(Cut::TooLarge | Cut::Bomb | Cut::LongPiece) => self.truncated = true,
            Some(Cut::Damaged) => self.malformed = true,
            None => {}
        }
    }

    fn stop(&mut self) {
        self.malformed = true;
        self.done = true;
    }

    fn finish(mut self) -> Option<Slim> {
        let family = self.family?;
        // A leaf that is still open is cut in the middle: not kept.
        self.malformed |= !self.places.is_empty() && !self.truncated;
        while let Some(place) = self.places.pop() {
            self.close(place);
        }
        self.out.push_str(match family {
            FeedDialect::Rss => "</channel></rss>",
            FeedDialect::Atom => "</feed>",
        });
        Some(Slim { xml: self.out, family, truncated: self.truncated, malformed: self.malformed })
    }
}

impl Leaf {
    fn new(tag: &'static str, start: &BytesStart) -> Leaf {
        let mut attributes = String::new();
        let wanted: &[&str] = match tag {
            "link" | "atom:link" => &["href", "rel"],
            _ => &[],
        };
        for name in wanted {
            if let Some(value) = attribute(start, name) {
                attributes.push_str(&format!(" {name}=\"{}\"", escape(value.as_str())));
            }
        }
        if !wanted.is_empty() {
            attributes.push_str(&base_attribute(start));
        }
        Leaf { tag, attributes, text: String::new(), overlong: false }
    }

    fn push(&mut self, text: &str) {
        // Leading white space says nothing and must not use up the room.
        let text = if self.text.is_empty() { text.trim_start() } else { text };
        if self.text.len() + text.len() <= URL_BYTES_MAX {
            self.text.push_str(text);
        } else if self.tag == "title" {
            let room = URL_BYTES_MAX - self.text.len();
            self.text.push_str(&text[..text.floor_char_boundary(room)]);
        } else {
            self.overlong = !text.trim().is_empty() || self.overlong;
        }
    }
}

fn entry_tag(family: FeedDialect) -> &'static str {
    match family {
        FeedDialect::Rss => "item",
        FeedDialect::Atom => "entry",
    }
}

/// The name under which feed-rs expects an element, if we want it at all.
fn leaf_tag(
    family: FeedDialect,
    space: Space,
    place: FeedLevel,
    local: &str,
) -> Option<&'static str> {
    match (family, space, local) {
        (_, Space::Foreign, _) => None,
        (FeedDialect::Rss, Space::DublinCore, "date") => Some("dc:date"),
        (_, Space::DublinCore, _) => None,
        (FeedDialect::Rss, Space::Atom, "link") => {
            (place != FeedLevel::Entry).then_some("atom:link")
        }
        (FeedDialect::Rss, Space::Atom, "updated") => Some("atom:updated"),
        (FeedDialect::Rss, Space::Atom, _) => None,
        (FeedDialect::Rss, _, "guid") => Some("guid"),
        (FeedDialect::Rss, _, "pubDate") => Some("pubDate"),
        (FeedDialect::Atom, _, "id") => Some("id"),
        (FeedDialect::Atom, _, "modified") => Some("updated"),
        (FeedDialect::Atom, _, "published" | "issued") => Some("published"),
        (_, _, "title") => Some("title"),
        (_, _, "link") => Some("link"),
        (_, _, "updated") => Some("updated"),
        _ => None,
    }
}

fn attribute(start: &BytesStart, name: &str) -> Option<String> {
    let mut attributes = start.attributes();
    // The check for duplicates is quadratic.
    let found = attributes
        .with_checks(false)
        .take(ATTRIBUTES_MAX)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name)?;
    if found.value.len() > URL_BYTES_MAX {
        return None;
    }
    // An entity that nobody knows stays as it was written.
    let value = unescape(&found.value).map_or_else(|_| found.value.to_string(), String::from);
    Some(value)
}

/// `xml:base`, unless feed-rs would refuse the feed for it.
fn base_attribute(start: &BytesStart) -> String {
    let usable = |base: &String| {
        base.len() <= BASE_BYTES_MAX
            && matches!(
                ::url::Url::parse(base),
                Ok(_) | Err(::url::ParseError::RelativeUrlWithoutBase)
            )
    };
    match attribute(start, "xml:base").filter(usable) {
        Some(base) => format!(" xml:base=\"{}\"", escape(base.as_str())),
        None => String::new(),
    }
}
