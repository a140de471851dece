//! JSON Feed, read with serde_json alone.
//!
//! feed-rs reads it too, but copies the feed's authors into each item without
//! authors, so that a few megabytes become terabytes. Here only what is asked
//! for is kept. Relies on serde_json's own limit of nesting (128). Invariant: a
//! list keeps at most `ENTRIES_MAX` of its members.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{ENTRIES_MAX, Feed, FeedEntry, FeedKind, datetime, entry, http_url, plain_text};

const VERSION_PREFIX: &str = "https://jsonfeed.org/version/";

#[derive(Deserialize)]
struct JsonFeed {
    #[serde(default)]
    version: Loose,
    #[serde(default)]
    title: Loose,
    #[serde(default)]
    home_page_url: Loose,
    #[serde(default)]
    hubs: CappedList<Hub>,
    #[serde(default)]
    items: CappedList<JsonItem>,
}

#[derive(Deserialize)]
struct Hub {
    #[serde(default)]
    url: Loose,
}

#[derive(Deserialize)]
struct JsonItem {
    #[serde(default)]
    id: Loose,
    #[serde(default)]
    url: Loose,
    #[serde(default)]
    external_url: Loose,
    #[serde(default)]
    title: Loose,
    #[serde(default)]
    date_published: Loose,
    #[serde(default)]
    date_modified: Loose,
}

pub(super) fn read(text: &[u8]) -> Option<Feed> {
    let read: JsonFeed = serde_json::from_slice(text).ok()?;
    if !read.version.0?.trim_start().replace("http:", "https:").starts_with(VERSION_PREFIX) {
        return None;
    }
    Some(Feed {
        kind: FeedKind::Json,
        title: plain_text(&read.title.0.unwrap_or_default()),
        site: read.home_page_url.0.and_then(|url| http_url(&url)),
        hub: read.hubs.kept.into_iter().find_map(|hub| http_url(&hub.url.0?)),
        entries: read.items.kept.into_iter().filter_map(entry_of).collect(),
        truncated: read.items.more,
        malformed: false,
    })
}

fn entry_of(item: JsonItem) -> Option<FeedEntry> {
    let date = item.date_modified.0.or(item.date_published.0);
    let id = item.id.0.unwrap_or_default();
    let url = item.url.0.or(item.external_url.0);
    let updated_ms = date.and_then(|date| datetime::parse(&date));
    entry(url.as_deref(), &item.title.0.unwrap_or_default(), updated_ms, &id)
}

/// A string, or a number written as one; anything else counts as absent.
#[derive(Default)]
struct Loose(Option<String>);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Loose, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose(Some(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Loose, E> {
        Ok(Loose(Some(number.to_string())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Loose, E> {
        Ok(Loose(Some(number.to_string())))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Loose, E> {
        Ok(Loose(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
        Ok(Loose(None))
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose(None))
    }
}

/// The first members of a list.
struct CappedList<T> {
    kept: Vec<T>,
    more: bool,
}

impl<T> Default for CappedList<T> {
    fn default() -> CappedList<T> {
        CappedList { kept: Vec::new(), more: false }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CappedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CappedList<T>, D::Error> {
        deserializer.deserialize_seq(CappedVisitor(PhantomData))
    }
}

struct CappedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for CappedVisitor<T> {
    type Value = CappedList<T>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CappedList<T>, A::Error> {
        let mut capped = CappedList::default();
        while capped.kept.len() < ENTRIES_MAX {
            match list.next_element()? {
                Some(member) => capped.kept.push(member),
                None => return Ok(capped),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            capped.more = true;
        }
        Ok(capped)
    }
}
