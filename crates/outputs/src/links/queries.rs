//! What is known of one URI: its page, who links to it, what it links to, what it lost.
//!
//! Invariant: whatever the number of in-links, an answer reads as many rows as it shows,
//! and with a filter at most [`LOOKED_MAX`]; where that ends it before the list does, its
//! cursor goes on from there.

use super::fold::{LostLink, decode_lost};
use super::inlinks::{self, Edit, Inlink};
use super::keys::{self, InlinkForm, PageRef};
use super::node::{Inlinks, Node};
use super::pages::{Page, PageLink};
use super::paging::{Listing, Paging};
use super::plan::read_seen;
use super::rankings::url_of;
use page::facts::{LinkKind, Rel};
use page::ids::DocHash;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use store::Result;
use store::ids::Part;
use store::sorted::{Span, View};

/// In-links that are looked at for one answer when it is filtered.
pub const LOOKED_MAX: usize = 100_000;

/// A URI, as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct KnownUri {
    pub part: Part,
    pub hash: DocHash,
    /// What is counted of it.
    pub node: Node,
}

/// Finds a URI; `None` if nobody links to it and it was never crawled.
pub fn find(view: &dyn View, part: Part, uri: &str) -> Result<Option<KnownUri>> {
    let hash = keys::hash(uri);
    let node = view.get(part, &keys::node(hash))?;
    let node = node.map(|bytes| Node::decode(&bytes)).transpose()?;
    Ok(node.map(|node| KnownUri { part, hash, node }))
}

/// The page of a URI, if it was ever crawled, and when it was last seen.
pub fn page_of(view: &dyn View, known: &KnownUri) -> Result<Option<(Page, i64)>> {
    let Some(number) = known.node.page else { return Ok(None) };
    let rows = view.get_many(known.part, &[keys::page(number), keys::seen(number)])?;
    let Some(bytes) = rows.first().cloned().flatten() else { return Ok(None) };
    let page = Page::decode(&bytes)?;
    let seen_ms = rows.get(1).and_then(Option::as_deref).and_then(read_seen);
    let seen_ms = seen_ms.map_or(page.date_ms, |seen_ms| seen_ms.max(page.date_ms));
    Ok(Some((page, seen_ms)))
}

/// An in-link, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownInlink {
    /// The page at its other end.
    pub url: String,
    /// The same in row form.
    pub uri: String,
    /// The words of the link.
    pub anchor: String,
    /// How the page names it.
    pub kind: LinkKind,
    /// Whether it asks not to be followed.
    pub nofollow: bool,
    /// The bits of its `nofollow`, `ugc` and `sponsored`.
    pub rel: u8,
    /// When it was first seen, in milliseconds.
    pub first_seen_ms: i64,
    /// When it was last seen, in milliseconds.
    pub last_seen_ms: i64,
    /// The number of the change that wrote it.
    pub seq: u64,
    /// When it was lost, in milliseconds, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ms: Option<i64>,
    #[allow(missing_docs)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which in-links are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// First seen, or lost, at this time or later.
    pub since_ms: Option<i64>,
    /// Only those that ask not to be followed, or only the others.
    pub nofollow: Option<bool>,
    /// Only of this kind.
    pub kind: Option<LinkKind>,
}

impl Filter {
    /// Rows to read at a time.
    fn step(&self, paging: &Paging) -> usize {
        let takes_all = *self == Filter::default();
        if takes_all { paging.wanted() } else { inlinks::ROWS_STEP }
    }

    fn takes(&self, link: &Inlink) -> bool {
        let since = self.since_ms.is_none_or(|since_ms| milliseconds(link.first_s) >= since_ms);
        since && self.takes_kind(link)
    }

    fn takes_kind(&self, link: &Inlink) -> bool {
        let nofollow = self.nofollow.is_none_or(|it| it == link.rel.has(Rel::NOFOLLOW));
        nofollow && self.kind.is_none_or(|kind| kind == link.kind)
    }
}

fn milliseconds(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// Who links to a URI, in the order in which the pages were first crawled.
pub fn inlinks(
    view: &dyn View,
    known: &KnownUri,
    filter: &Filter,
    paging: &Paging,
) -> Result<Listing<ShownInlink>> {
    let ScannedPage { found, stopped } = match known.node.inlinks {
        Inlinks::Wide => wide(view, known, filter, &ListScan { paging, looked_max: LOOKED_MAX })?,
        _ => ScannedPage { found: narrow(view, known, filter, paging)?, stopped: None },
    };
    let Listing { items, next, previous } = paging.listing_up_to(found, stopped);
    Ok(Listing { items: show(view, items)?, next, previous })
}

/// The words of the first in-links of a URI, as many as are asked for, and of whichever
/// more are read with them.
pub fn anchors(view: &dyn View, known: &KnownUri, limit: usize) -> Result<Vec<String>> {
    if known.node.inlinks == Inlinks::Wide {
        let span = Span::prefix(&keys::inlinks_in(known.hash, InlinkForm::Wide));
        let rows = view.scan(known.part, &span, limit)?;
        return rows.iter().map(|(_, value)| Ok(inlinks::decode_wide(value)?.anchor)).collect();
    }
    let all = inlinks::list(view, known.part, known.hash, &known.node)?;
    Ok(all.into_iter().filter_map(|edit| edit.link).map(|link| link.anchor).collect())
}

type FoundInlinks = Vec<(Vec<u8>, (PageRef, Inlink))>;

fn narrow(
    view: &dyn View,
    known: &KnownUri,
    filter: &Filter,
    paging: &Paging,
) -> Result<FoundInlinks> {
    let mut all = inlinks::list(view, known.part, known.hash, &known.node)?;
    if paging.backwards() {
        all.reverse();
    }
    let is_behind = |source: PageRef| match &paging.at {
        None => true,
        Some(at) if at.backwards => source.bytes()[..] < at.key[..],
        Some(at) => source.bytes()[..] > at.key[..],
    };
    let takes = |edit: Edit| {
        let link = edit.link.filter(|link| is_behind(edit.source) && filter.takes(link))?;
        Some((edit.source.bytes().to_vec(), (edit.source, link)))
    };
    Ok(all.into_iter().filter_map(takes).take(paging.wanted()).collect())
}

fn wide(
    view: &dyn View,
    known: &KnownUri,
    filter: &Filter,
    walk: &ListScan<'_>,
) -> Result<ScannedPage<(PageRef, Inlink)>> {
    let rows =
        ListRows { view, part: known.part, prefix: keys::inlinks_in(known.hash, InlinkForm::Wide) };
    walk.over(&rows, filter.step(walk.paging), |place, value| {
        let link = inlinks::decode_wide(value)?;
        let source = PageRef::read(place).filter(|_| filter.takes(&link));
        Ok(source.map_or(RowChoice::No, |source| RowChoice::Yes((source, link))))
    })
}

/// In-links that were, from the last one lost on.
pub fn lost(
    view: &dyn View,
    known: &KnownUri,
    filter: &Filter,
    paging: &Paging,
) -> Result<Listing<ShownInlink>> {
    let walked = walk_lost(view, known, filter, &ListScan { paging, looked_max: LOOKED_MAX })?;
    let Listing { items, next, previous } = paging.listing_up_to(walked.found, walked.stopped);
    let plain = items.iter().map(|(source, _, it)| (*source, it.link.clone())).collect();
    let mut shown = show(view, plain)?;
    for (line, (_, lost_ms, LostLink { reason, .. })) in shown.iter_mut().zip(&items) {
        line.lost_ms = Some(*lost_ms);
        // A page that lost a link may have been seen since; the link was not.
        line.last_seen_ms = line.last_seen_ms.min(*lost_ms);
        line.reason = Some(reason.name().to_owned());
    }
    Ok(Listing { items: shown, next, previous })
}

fn walk_lost(
    view: &dyn View,
    known: &KnownUri,
    filter: &Filter,
    walk: &ListScan<'_>,
) -> Result<ScannedPage<(PageRef, i64, LostLink)>> {
    let rows = ListRows { view, part: known.part, prefix: keys::lost_of(known.hash) };
    walk.over(&rows, filter.step(walk.paging), |place, value| {
        let key = [&rows.prefix[..], place].concat();
        let Some((lost_s, source)) = keys::read_lost(&key) else { return Ok(RowChoice::No) };
        let lost_ms = milliseconds(lost_s);
        if filter.since_ms.is_some_and(|since_ms| lost_ms < since_ms) {
            // The latest come first, so all that follow are older still.
            return Ok(if walk.paging.backwards() { RowChoice::No } else { RowChoice::End });
        }
        let it = decode_lost(value)?;
        let takes = filter.takes_kind(&it.link);
        Ok(if takes { RowChoice::Yes((source, lost_ms, it)) } else { RowChoice::No })
    })
}

/// The rows of one list.
struct ListRows<'a> {
    view: &'a dyn View,
    part: Part,
    prefix: Vec<u8>,
}

/// A walk along a list for one page of it.
struct ListScan<'a> {
    paging: &'a Paging,
    /// Rows that are looked at.
    looked_max: usize,
}

/// What a walk brings: entries with their keys, and the last key it looked at if it stopped
/// before the end of the list.
struct ScannedPage<T> {
    found: Vec<(Vec<u8>, T)>,
    stopped: Option<Vec<u8>>,
}

/// What becomes of a row.
enum RowChoice<T> {
    Yes(T),
    No,
    /// Nothing behind it is wanted either.
    End,
}

impl ListScan<'_> {
    /// Looks at rows, so many at a time. `take` gets their keys without the list's prefix.
    fn over<T>(
        &self,
        rows: &ListRows<'_>,
        step: usize,
        take: impl Fn(&[u8], &[u8]) -> Result<RowChoice<T>>,
    ) -> Result<ScannedPage<T>> {
        let mut span = Span::prefix(&rows.prefix);
        if self.paging.backwards() {
            span = span.reversed();
        }
        if let Some(at) = &self.paging.at {
            span = span.behind(&[&rows.prefix[..], &at.key].concat());
        }
        let mut walked = ScannedPage { found: Vec::new(), stopped: None };
        let mut looked = 0;
        while looked < self.looked_max {
            let step = step.min(self.looked_max - looked);
            let pairs = rows.view.scan(rows.part, &span, step)?;
            looked += pairs.len();
            let is_end = pairs.len() < step;
            for (key, value) in pairs {
                let place = key[rows.prefix.len()..].to_vec();
                match take(&place, &value)? {
                    RowChoice::Yes(entry) => walked.found.push((place.clone(), entry)),
                    RowChoice::No => {}
                    RowChoice::End => return Ok(ScannedPage { stopped: None, ..walked }),
                }
                if walked.found.len() >= self.paging.wanted() {
                    return Ok(walked);
                }
                walked.stopped = Some(place);
                span = span.behind(&key);
            }
            if is_end {
                return Ok(ScannedPage { stopped: None, ..walked });
            }
        }
        Ok(walked)
    }
}

/// What pages in-links come from.
fn show(view: &dyn View, links: Vec<(PageRef, Inlink)>) -> Result<Vec<ShownInlink>> {
    let mut by_part: BTreeMap<Part, Vec<u64>> = BTreeMap::new();
    for (source, _) in &links {
        by_part.entry(source.part).or_default().push(source.number);
    }
    let mut pages: HashMap<PageRef, (String, i64)> = HashMap::new();
    for (part, numbers) in by_part {
        let get = |key: fn(u64) -> Vec<u8>| {
            let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(*number)).collect();
            view.get_many(part, &keys)
        };
        for ((number, page), seen) in numbers.iter().zip(get(keys::page)?).zip(get(keys::seen)?) {
            let Some(bytes) = page else { continue };
            let (page, _) = Page::decode_head(&bytes)?;
            let seen_ms = seen.as_deref().and_then(read_seen).unwrap_or(i64::MIN);
            let source = PageRef { part, number: *number };
            pages.insert(source, (page.uri, page.date_ms.max(seen_ms)));
        }
    }
    let line = |(source, link): (PageRef, Inlink)| {
        // A page whose own row has not come yet: another part's batch is under way.
        let (uri, seen_ms) = pages.get(&source).cloned().unwrap_or_default();
        ShownInlink {
            url: url_of(&uri),
            uri,
            nofollow: link.rel.has(Rel::NOFOLLOW),
            rel: link.rel.0,
            kind: link.kind,
            first_seen_ms: milliseconds(link.first_s),
            last_seen_ms: seen_ms.max(milliseconds(link.first_s)),
            seq: link.seq,
            anchor: link.anchor,
            lost_ms: None,
            reason: None,
        }
    };
    Ok(links.into_iter().map(line).collect())
}

/// What a page links to, by URI.
pub fn outlinks(page: &Page, seen_ms: i64, paging: &Paging) -> Listing<ShownInlink> {
    let is_behind = |link: &&PageLink| match &paging.at {
        None => true,
        Some(at) if at.backwards => link.uri.as_bytes() < &at.key[..],
        Some(at) => link.uri.as_bytes() > &at.key[..],
    };
    let shown = |link: &PageLink| {
        let line = ShownInlink {
            url: url_of(&link.uri),
            uri: link.uri.clone(),
            anchor: link.anchor.clone(),
            kind: link.kind,
            nofollow: link.rel.has(Rel::NOFOLLOW),
            rel: link.rel.0,
            first_seen_ms: milliseconds(link.first_s),
            last_seen_ms: seen_ms,
            seq: page.seq,
            lost_ms: None,
            reason: None,
        };
        (link.uri.as_bytes().to_vec(), line)
    };
    let behind = page.links.iter().filter(is_behind);
    let wanted = paging.wanted();
    let found = match paging.backwards() {
        false => behind.take(wanted).map(shown).collect(),
        true => behind.rev().take(wanted).map(shown).collect(),
    };
    paging.listing(found)
}

#[cfg(test)]
mod tests;
