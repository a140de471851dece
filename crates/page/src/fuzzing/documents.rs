//! What must hold for documents: pages, feeds, sitemaps, and what names them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;

use super::addresses::is_canonical;
use super::first_line;
use crate::extract::{self, Extract};
use crate::facts::REQUISITES_MAX;
use crate::facts::{Facts, HEADINGS_MAX, LINKS_MAX, SHORT_TEXT_BYTES_MAX, TEXT_BYTES_MAX};
use crate::html::{self, Input};
use crate::mirror::requisites;
use crate::text::{CollapsedText, collapse, for_each_token};
use crate::url::Policy;
use crate::{feed as feeds, fingerprint, sitemap as sitemaps, sniff as media, wat as extracts};

const URL: &str = "http://example.com/dir/page.html?q";
/// A page up to this long is given to lol_html byte by byte, which is slow.
const BYTE_BY_BYTE_MAX: usize = 512;
/// A decoder writes at most this many bytes of UTF-8 for one byte read.
const DECODED_BYTES_MAX: usize = 3;

/// The input is a page.
pub(super) fn html(input: &[u8]) {
    let policy = Policy::default();
    let page = Input { images: true, ..Input::new(input, URL, &policy) };
    let facts = html::extract(&page);
    within_limits(&facts);
    let chunk = if input.len() <= BYTE_BY_BYTE_MAX { 1 } else { 61 };
    if let Some(expected) = html::extract_by_lol_html(&page, chunk) {
        assert_eq!(facts, expected, "by lol_html");
    }
    let links = html::links_only(&page);
    let alone = links.iter().map(|link| (&link.url, link.kind, link.rel));
    let among_facts = facts.links.iter().map(|link| (&link.url, link.kind, link.rel));
    assert!(alone.eq(among_facts), "the links alone: {links:?}");
    let mut again = html::extract(&Input { requisites: true, ..page });
    let needed = std::mem::take(&mut again.requisites);
    let is_cut = std::mem::take(&mut again.truncated.requisites);
    assert_eq!(again, facts, "with requisites");
    let alone = requisites::of_page(&page);
    assert!(needed.len() <= REQUISITES_MAX && needed == alone.list && is_cut == alone.is_cut);
    needed.iter().for_each(|requisite| is_canonical(&requisite.url, &policy));
    let distinct: HashSet<_> = needed.iter().map(|requisite| &requisite.url).collect();
    assert_eq!(distinct.len(), needed.len(), "each once");
}

/// The input is a page with forms.
pub(super) fn forms(input: &[u8]) {
    let found = crate::forms::forms(&String::from_utf8_lossy(input));
    assert!(found.len() <= crate::forms::FORMS_MAX);
    for form in &found {
        assert!(form.fields.len() <= crate::forms::FIELDS_MAX);
        for (name, value) in &form.fields {
            assert!(!name.is_empty() && name.len() <= crate::forms::VALUE_BYTES_MAX);
            assert!(value.len() <= crate::forms::VALUE_BYTES_MAX);
        }
    }
}

/// The input is a record of a WAT archive.
pub(super) fn wat(input: &[u8]) {
    let told = extracts::record_status(input);
    if let Some(extract) = extracts::read(input) {
        assert_eq!(told, extracts::RecordStatus::Answer(200), "a page was there");
        within_limits(&extract.facts(URL));
    }
}

/// The input is an archive of Office, OpenDocument or a book. PDF has no target: its reader is
/// not ours and known to panic, which is why it runs in a process of its own.
pub(super) fn office(input: &[u8]) {
    let read = extract::extract(media::ContentKind::Office, input);
    let json = serde_json::to_vec(&read).expect("an answer is JSON");
    assert!(json.len() <= extract::REPLY_BYTES_MAX);
    assert_eq!(extract::reply(&json).as_ref(), Some(&read), "there and back");
    read.iter().for_each(extract_within_limits);
}

/// The input is what a process has answered that read a document.
pub(super) fn reply(input: &[u8]) {
    let Some(reply) = extract::reply(input) else { return };
    reply.iter().for_each(extract_within_limits);
    let again = serde_json::to_vec(&reply).expect("an answer is JSON");
    assert_eq!(extract::reply(&again), Some(reply), "bounded twice");
}

fn extract_within_limits(read: &Extract) {
    assert!(read.text.len() <= TEXT_BYTES_MAX && read.links.len() <= LINKS_MAX);
    assert_eq!(collapse(&read.text, TEXT_BYTES_MAX), read.text.replace('\n', " "));
    for short in [&read.title, &read.description].into_iter().chain(&read.authors) {
        assert_eq!(collapse(short, SHORT_TEXT_BYTES_MAX), *short, "a short text");
    }
    assert!(read.authors.len() <= extract::AUTHORS_MAX);
    assert!(read.links.iter().map(String::len).sum::<usize>() <= extract::LINK_BYTES_MAX);
}

fn within_limits(facts: &Facts) {
    let policy = Policy::default();
    assert!(facts.links.len() <= LINKS_MAX && facts.headings.len() <= HEADINGS_MAX);
    assert!(facts.text.len() <= TEXT_BYTES_MAX);
    let collapsed = collapse(&facts.text, TEXT_BYTES_MAX);
    assert_eq!(collapsed, facts.text.replace('\n', " "), "white space of the text");
    let headings = facts.headings.iter().map(|heading| &heading.text);
    let anchors = facts.links.iter().map(|link| &link.anchor);
    for short in [&facts.title, &facts.description].into_iter().chain(headings).chain(anchors) {
        assert_eq!(collapse(short, SHORT_TEXT_BYTES_MAX), *short, "a short text");
    }
    assert!(facts.headings.iter().all(|heading| (1..=6).contains(&heading.level)));
    facts.links.iter().for_each(|link| is_canonical(&link.url, &policy));
    facts.canonical.iter().for_each(|url| is_canonical(url, &policy));
    let distinct: HashSet<_> = facts.links.iter().map(|link| (&link.url, link.kind)).collect();
    assert_eq!(distinct.len(), facts.links.len(), "each target once for a kind");
    assert!(facts.language.as_ref().is_none_or(|tag| tag.len() <= SHORT_TEXT_BYTES_MAX));
}

/// The first line is a `Content-Type`, the rest a body.
pub(super) fn charset(input: &[u8]) {
    let (header, body) = first_line(input);
    let header = String::from_utf8_lossy(header);
    for content_type in [None, Some(&*header)] {
        let decision = crate::charset::decide(body, content_type);
        assert!(decision.encoding != encoding_rs::REPLACEMENT, "a page of one character");
        let text = crate::charset::decode(body, decision.encoding);
        assert!(text.len() <= DECODED_BYTES_MAX * body.len() + DECODED_BYTES_MAX);
        let is_utf8 = decision.encoding == encoding_rs::UTF_8 && std::str::from_utf8(body).is_ok();
        assert!(!is_utf8 || matches!(text, Cow::Borrowed(_)), "valid UTF-8 is not copied");
    }
}

/// The first line is a `Content-Type`, the rest a body.
pub(super) fn sniff(input: &[u8]) {
    let (header, body) = first_line(input);
    let header = String::from_utf8_lossy(header);
    for content_type in [None, Some(&*header)] {
        for nosniff in [false, true] {
            let found = media::media_of(content_type, nosniff, body);
            assert_eq!(found.kind, media::kind_of(&found.essence));
            let again = media::ContentType::parse(&found.essence).expect("a media type");
            assert_eq!(again.essence, found.essence);
        }
    }
}

/// The input is the value of an `X-Robots-Tag`.
pub(super) fn directives(input: &[u8]) {
    let value = String::from_utf8_lossy(input);
    let asked = html::header_directives(&value, "driftline");
    let twice = html::header_directives(&format!("{value}, *: {value}"), "driftline");
    assert_eq!(asked.with(twice), twice, "asking more never asks less");
}

/// The input is a date.
pub(super) fn datetime(input: &[u8]) {
    /// The years 0 to 9999, and a day for zones.
    const RANGE_MS: std::ops::RangeInclusive<i64> = -62_167_305_600_000..=253_402_387_200_000;
    let text = String::from_utf8_lossy(input);
    let ms = feeds::datetime::parse(&text);
    assert!(ms.is_none_or(|ms| RANGE_MS.contains(&ms)), "{text:?} is {ms:?}");
}

/// The input is a feed, gzipped or not.
pub(super) fn feed(input: &[u8]) {
    let found = feeds::read(input);
    if let Some(packed) = gzipped(input) {
        assert_eq!(feeds::read(&packed), found, "gzipped");
    }
    let Some(found) = found else { return };
    assert!(found.entries.len() <= feeds::ENTRIES_MAX);
    assert_eq!(collapse(&found.title, SHORT_TEXT_BYTES_MAX), found.title);
    let address = |url: &String| !url.is_empty() && url.len() <= feeds::URL_BYTES_MAX;
    assert!(found.site.iter().chain(&found.hub).all(address));
    for entry in &found.entries {
        assert!(address(&entry.url) && entry.id.len() <= feeds::URL_BYTES_MAX);
        assert_eq!(collapse(&entry.title, SHORT_TEXT_BYTES_MAX), entry.title);
    }
}

/// The input is a sitemap, gzipped or not.
pub(super) fn sitemap(input: &[u8]) {
    let found = sitemaps::read(input);
    if let Some(packed) = gzipped(input) {
        assert_eq!(sitemaps::read(&packed), found, "gzipped");
    }
    assert!(found.entries.len() <= sitemaps::ENTRIES_MAX);
    for entry in &found.entries {
        assert!(!entry.loc.is_empty() && entry.loc.len() <= sitemaps::LOC_BYTES_MAX);
        assert!(entry.loc.trim() == entry.loc);
        assert!(entry.priority.is_none_or(|priority| (0.0..=1.0).contains(&priority)));
    }
    assert!(found.kind != sitemaps::SitemapKind::Unknown || found.entries.is_empty());
}

/// None for what is gzipped already: one layer is unpacked, not two.
fn gzipped(input: &[u8]) -> Option<Vec<u8>> {
    if input.starts_with(&[0x1F, 0x8B]) {
        return None;
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(input).expect("memory takes what is written");
    Some(encoder.finish().expect("memory takes what is written"))
}

/// The first byte is a limit and a place to cut, the rest a text.
pub(super) fn text(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let bytes_max = usize::from(first);
    let whole = collapse(&text, bytes_max);
    assert!(whole.len() <= bytes_max);
    assert_eq!(collapse(&whole, bytes_max), whole, "collapsing twice");
    assert!(!whole.contains("  ") && !whole.chars().any(char::is_control));
    let (front, back) = text.split_at(text.floor_char_boundary(bytes_max));
    let mut pieces = CollapsedText::new(bytes_max);
    pieces.push(front);
    pieces.push(back);
    assert_eq!(pieces.into_string(), whole, "in two pieces");
    let mut tokens = 0;
    for_each_token(&text, |_| tokens += 1);
    assert!(tokens <= text.len());
    assert!(tokens > 0 || fingerprint::simhash(&text) == 0);
    let unspaced = collapse(&text, usize::MAX);
    let lower = unspaced.to_ascii_lowercase();
    assert_eq!(fingerprint::simhash(&lower), fingerprint::simhash(&unspaced));
}
