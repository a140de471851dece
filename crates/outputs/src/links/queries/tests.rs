//! A filtered list is walked whole, both ways, in steps that look at few rows each.

use super::*;
use crate::links::inlinks::WIDE_MIN;
use crate::links::{ChangeBatch, LinkIndex, PageChange, PageContent, What};
use page::outlinks::OutLink;
use std::sync::Arc;
use store::sorted::{EmbeddedMap, MapLocation};

const TARGET: &str = "example.b>>s>/";
/// So many pages link to the target that each link has a row.
const SOURCES: u64 = WIDE_MIN + 500;
/// One link in so many asks not to be followed.
const RARE: u64 = 700;
/// Far fewer rows than lie between two rare links.
const LOOKED: usize = 64;

fn change(number: u64, date_ms: i64, has_link: bool) -> PageChange {
    let rel = if number.is_multiple_of(RARE) { Rel::NOFOLLOW } else { Rel::default() };
    let link =
        OutLink { uri: TARGET.to_owned(), anchor: number.to_string(), kind: LinkKind::A, rel };
    let links = if has_link { vec![link] } else { Vec::new() };
    let content = PageContent { status: 200, links, ..PageContent::default() };
    let uri = format!("example.a>>s>/{number:06}");
    PageChange { uri, date_ms, job: 1, in_order: true, what: What::Page(Box::new(content)) }
}

fn told(index: &LinkIndex, date_ms: i64, has_link: bool) {
    let changes = (0..SOURCES).map(|number| change(number, date_ms, has_link)).collect();
    index.apply(ChangeBatch { changes, marks: Vec::new() }, &[]).unwrap();
}

/// The anchors of all pages of a list, and in how many pages they came.
type Pages = (Vec<String>, usize);

/// Follows a list to its end, and from there back to its beginning.
fn followed(page: impl Fn(&Paging) -> Result<Listing<String>>) -> Result<(Pages, Pages)> {
    let mut listing = page(&Paging::new(2, None)?)?;
    let (mut there, mut back) = ((Vec::new(), 0), (Vec::new(), 0));
    loop {
        there = ([there.0, listing.items.clone()].concat(), there.1 + 1);
        let Some(next) = &listing.next else { break };
        listing = page(&Paging::new(2, Some(next))?)?;
    }
    loop {
        back = ([listing.items.clone(), back.0].concat(), back.1 + 1);
        let Some(previous) = &listing.previous else { break };
        listing = page(&Paging::new(2, Some(previous))?)?;
    }
    Ok((there, back))
}

#[test]
fn a_filtered_list_goes_on_where_a_page_stopped_looking() {
    let folder = tempfile::tempdir().unwrap();
    let place = MapLocation { path: folder.path().join("links"), families: keys::FAMILIES };
    let index = LinkIndex::new(Arc::new(EmbeddedMap::open(&place).unwrap()), 4);
    told(&index, 1_000, true);
    let part = index.part_of(TARGET);
    let filter = Filter { nofollow: Some(true), ..Filter::default() };
    let check = |(there, back): (Pages, Pages)| {
        let mut anchors = there.0.clone();
        anchors.sort_by_key(|anchor| anchor.parse::<u64>().unwrap());
        assert_eq!(anchors, ["0", "700", "1400", "2100"]);
        assert_eq!(there.0, back.0);
        let pages_min = SOURCES as usize / LOOKED / 2;
        assert!(there.1 > pages_min && back.1 > pages_min, "{} and {} pages", there.1, back.1);
    };
    let by = filter.clone();
    let inlinks = index.read(move |view| {
        let known = find(view, part, TARGET)?.expect("it is linked to");
        assert_eq!(known.node.inlinks, Inlinks::Wide);
        followed(|paging| {
            let walked = wide(view, &known, &by, &ListScan { paging, looked_max: LOOKED })?;
            let found = walked.found.into_iter().map(|(key, (_, link))| (key, link.anchor));
            Ok(paging.listing_up_to(found.collect(), walked.stopped))
        })
    });
    check(inlinks.unwrap());
    told(&index, 2_000, false);
    let lost = index.read(move |view| {
        let known = KnownUri { part, hash: keys::hash(TARGET), node: Node::default() };
        followed(|paging| {
            let walked =
                walk_lost(view, &known, &filter, &ListScan { paging, looked_max: LOOKED })?;
            let found = walked.found.into_iter().map(|(key, (_, _, it))| (key, it.link.anchor));
            Ok(paging.listing_up_to(found.collect(), walked.stopped))
        })
    });
    check(lost.unwrap());
}
