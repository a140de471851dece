//! What Webindex did wrong, one test each: D1 to D12 of the specification,
//! of which D8 and D9 stand in [`readers`].

mod readers;

use super::faults::{Failing, recovered};
use super::model::Cells;
use super::seeds::{lines, page_of_sample, sample, told};
use super::{PARTS, each_engine};
use crate::links::changes::{ChangeBatch, Mark, PageChange, PageContent, What};
use crate::links::dump::{Dump, Layout};
use crate::links::index::{AppliedChanges, LinkIndex};
use crate::links::node::Node;
use crate::links::pages::LOADED;
use crate::links::paging::Paging;
use crate::links::queries::{self, Filter, ShownInlink};
use crate::links::rankings;
use crate::links::{keys, rebuild};
use page::facts::{LinkKind, Rel};
use page::outlinks::OutLink;
use std::sync::Arc;
use store::ids::Part;
use store::sorted::{EmbeddedMap, InRows, MapLocation, Row, SortedMap, Span, View};
use store::tables::settings;
use store::testing::both_databases;

const A: &str = "com.a>>o>/";
const B: &str = "com.b>>o>/";
const C: &str = "org.c>>o>/";

/// A page whose links say `words`.
fn page(date_ms: i64, uri: &str, targets: &[&str], words: &str) -> PageChange {
    let link = |uri: &&str| OutLink {
        uri: (*uri).to_owned(),
        anchor: words.to_owned(),
        kind: LinkKind::A,
        rel: Rel::default(),
    };
    let mut links: Vec<OutLink> = targets.iter().map(link).collect();
    links.sort_by(|one, other| one.uri.cmp(&other.uri));
    let what = What::Page(Box::new(PageContent { status: 200, links, ..PageContent::default() }));
    PageChange { uri: uri.to_owned(), date_ms, job: LOADED, in_order: false, what }
}

fn gone(date_ms: i64, uri: &str, why: &str) -> PageChange {
    let what = What::Gone(why.to_owned());
    PageChange { uri: uri.to_owned(), date_ms, job: LOADED, in_order: false, what }
}

fn apply(index: &LinkIndex, changes: Vec<PageChange>) -> AppliedChanges {
    index.apply(ChangeBatch { changes, marks: vec![] }, &[]).unwrap()
}

fn node(index: &LinkIndex, uri: &str) -> Option<Node> {
    let (part, uri) = (index.part_of(uri), uri.to_owned());
    index.read(move |view| Ok(queries::find(view, part, &uri)?.map(|known| known.node))).unwrap()
}

fn everything() -> Paging {
    Paging::new(10_000, None).unwrap()
}

/// Who links to a URI, and with which words.
fn inlinks(index: &LinkIndex, uri: &str) -> Vec<(String, String)> {
    let (part, uri) = (index.part_of(uri), uri.to_owned());
    let list = index.read(move |view| {
        let Some(known) = queries::find(view, part, &uri)? else { return Ok(vec![]) };
        Ok(queries::inlinks(view, &known, &Filter::default(), &everything())?.items)
    });
    list.unwrap().into_iter().map(|it| (it.uri, it.anchor)).collect()
}

fn pages_of(index: &LinkIndex, domain: &'static str) -> Option<u64> {
    index.read(move |view| rankings::pages_of_domain(view, PARTS, domain)).unwrap()
}

#[test]
fn d1_a_page_that_was_never_there_is_deleted_twice_and_leaves_nothing() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        for date_ms in [1_000, 2_000] {
            apply(&index, vec![gone(date_ms, A, "gone"), gone(date_ms, A, "gone")]);
            assert_eq!(Cells::of(&index), Cells::default());
            assert!(node(&index, A).is_none_or(|it| !it.counts()));
            assert_eq!(pages_of(&index, "a.com"), None);
        }
        // One that was there goes once.
        apply(&index, vec![page(3_000, A, &[B], "x")]);
        assert_eq!((pages_of(&index, "a.com"), pages_of(&index, "b.com")), (Some(1), Some(1)));
        for date_ms in [4_000, 5_000] {
            apply(&index, vec![gone(date_ms, A, "gone")]);
            assert_eq!(Cells::of(&index), Cells::default());
            for layout in Layout::ALL {
                assert_eq!(lines(&index, Dump { layout, with_seq: false }), [""; 0]);
            }
        }
    });
}

#[test]
fn d2_a_page_that_links_to_itself_is_crawled_and_linked_to() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        apply(&index, vec![page(1_000, A, &[A, B], "home")]);
        let own = node(&index, A).unwrap();
        assert_eq!((own.incount, own.crawled, pages_of(&index, "a.com")), (1, true, Some(1)));
        assert_eq!(inlinks(&index, A), [(A.into(), "home".into())]);
        // Without the link it is crawled still, and then it is not.
        apply(&index, vec![page(2_000, A, &[B], "home")]);
        let own = node(&index, A).unwrap();
        assert_eq!((own.incount, own.crawled, pages_of(&index, "a.com")), (0, true, Some(1)));
        apply(&index, vec![page(3_000, A, &[A], "home"), gone(4_000, A, "gone")]);
        assert_eq!(Cells::of(&index), Cells::default());
    });
}

#[test]
fn d3_other_words_of_a_link_reach_its_target() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        apply(&index, vec![page(1_000, A, &[B, C], "old words")]);
        let applied = apply(&index, vec![page(2_000, A, &[B, C], "new words")]);
        assert_eq!((applied.added, applied.altered, applied.lost), (0, 2, 0));
        for target in [B, C] {
            assert_eq!(inlinks(&index, target), [(A.into(), "new words".into())]);
            assert_eq!(node(&index, target).unwrap().incount, 1);
        }
    });
}

#[test]
fn d4_a_page_that_says_the_same_again_changes_no_cell() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        apply(&index, vec![page(1_000, A, &[B], "x"), page(1_000, B, &[A, C], "y")]);
        let dump = Dump { layout: Layout::Webindex, with_seq: true };
        let before = lines(&index, dump);
        for date_ms in [1_000, 2_000, 3_000] {
            let applied = apply(&index, vec![page(date_ms, A, &[B], "x")]);
            assert_eq!(applied, AppliedChanges { told: 1, ..AppliedChanges::default() });
            assert_eq!(lines(&index, dump), before, "not even the sequence number of one");
        }
    });
}

#[test]
fn d5_a_page_that_loses_all_its_links_loses_them_in_the_index() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        // By Webindex's policy a page without links is none, and whoever loads it says so.
        apply(&index, vec![page(1_000, A, &[B, C], "x"), gone(2_000, A, "no links")]);
        assert_eq!(Cells::of(&index), Cells::default());
        // By the others it is a page, which links to nothing.
        apply(&index, vec![page(3_000, A, &[B, C], "x")]);
        apply(&index, vec![page(4_000, A, &[], "x")]);
        let own = node(&index, A).unwrap();
        assert_eq!((own.incount, own.crawled), (0, true));
        assert_eq!((node(&index, B), node(&index, C)), (None, None));
        let dump = Dump { layout: Layout::Seed000, with_seq: false };
        // However often it comes back, it counts as one page and adds one to its score.
        for date_ms in [5_000, 6_000] {
            apply(&index, vec![page(date_ms, A, &[B], "x"), page(date_ms + 1, A, &[], "x")]);
            assert_eq!(pages_of(&index, "a.com"), Some(1));
            assert!(lines(&index, dump).contains(&format!("p:{A}|page|score|1")));
        }
    });
}

#[test]
fn d6_an_older_archive_changes_nothing_whenever_it_is_loaded() {
    let captures = [
        page(1_000, A, &[B], "first"),
        page(2_000, A, &[B, C], "second"),
        gone(3_000, A, "no links"),
        page(4_000, A, &[C], "last"),
    ];
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        apply(&index, vec![captures[3].clone()]);
        let newest = Cells::of(&index);
        assert_eq!(inlinks(&index, C), [(A.into(), "last".into())]);
        for older in &captures[..3] {
            assert_eq!(apply(&index, vec![older.clone()]).changed, 0);
            assert_eq!(Cells::of(&index), newest);
        }
        apply(&index, captures.to_vec());
        assert_eq!(Cells::of(&index), newest);
        // And nothing older than its end brings a page back.
        apply(&index, vec![gone(5_000, A, "gone"), captures[3].clone()]);
        assert_eq!(Cells::of(&index), Cells::default());
    });
}

#[test]
fn d7_a_page_that_is_gone_or_leads_elsewhere_takes_its_links_along() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        for (round, why) in (1..).zip(["gone", "redirected", "robots"]) {
            let date_ms = round * 10_000;
            apply(&index, vec![page(date_ms, A, &[B], "x"), page(date_ms, C, &[B], "y")]);
            assert_eq!(node(&index, B).unwrap().incount, 2);
            apply(&index, vec![gone(date_ms + 5_000, A, why)]);
            assert_eq!(inlinks(&index, B), [(C.into(), "y".into())]);
            assert_eq!((node(&index, B).unwrap().incount, pages_of(&index, "a.com")), (1, None));
            let part = index.part_of(B);
            let lost = index.read(move |view| {
                let known = queries::find(view, part, B)?.expect("it is linked to");
                Ok(queries::lost(view, &known, &Filter::default(), &everything())?.items)
            });
            let lost = lost.unwrap();
            let times = |it: &ShownInlink| (it.lost_ms, it.reason.clone());
            assert_eq!(times(&lost[0]), (Some(date_ms + 5_000), Some("page gone".into())));
            assert_eq!(lost.len(), round as usize, "all that were");
        }
    });
}

#[test]
fn d10_a_batch_that_fails_half_way_is_finished_and_a_file_is_loaded_once_it_is_in() {
    each_engine(|map| {
        for is_written in [false, true] {
            for fail_at in 1.. {
                let begun = recovered(&map);
                let date_ms = fail_at as i64 * 10_000 + i64::from(is_written) * 1_000_000;
                let file = [u8::from(is_written), fail_at as u8].to_vec();
                apply(&begun, [A, B, C].map(|uri| gone(date_ms, uri, "gone")).to_vec());
                assert_eq!(Cells::of(&begun), Cells::default());
                let batch = ChangeBatch {
                    changes: vec![
                        page(date_ms + 1, A, &[A, B, C], "a"),
                        page(date_ms + 1, B, &[A, C], "b"),
                        page(date_ms + 1, C, &[B], "c"),
                    ],
                    marks: vec![Mark::File { key: file.clone(), value: b"all".to_vec() }],
                };
                let failing = Failing::new(map.clone(), fail_at);
                let failing = if is_written { failing.unheard() } else { failing };
                let outcome = LinkIndex::new(Arc::new(failing), PARTS).apply(batch.clone(), &[]);
                let index = recovered(&map);
                let cells = Cells::of(&index).0;
                let is_whole = cells.iter().filter(|it| it.starts_with("in ")).count() == 6;
                let is_marked = index.file_mark(&file).unwrap().is_some();
                assert!(is_whole || !is_marked, "what a mark stands for is applied");
                if outcome.is_ok() {
                    assert!(is_whole && is_marked);
                    break;
                }
                index.apply(batch, &[]).unwrap();
                let counts = [A, B, C].map(|uri| node(&index, uri).unwrap().incount);
                assert_eq!((counts, index.file_mark(&file).unwrap().is_some()), ([2, 2, 2], true));
            }
        }
    });
}

#[test]
fn d11_what_keys_were_made_with_is_kept_with_them_and_the_index_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = MapLocation { path: folder.path().join("links"), families: keys::FAMILIES };
    let open = || LinkIndex::new(Arc::new(EmbeddedMap::open(&place).unwrap()), PARTS);
    let index = open();
    told(&index, sample());
    let before = (Cells::of(&index), lines(&index, Dump { with_seq: true, ..Dump::default() }));
    drop(index);
    let index = open();
    let after = (Cells::of(&index), lines(&index, Dump { with_seq: true, ..Dump::default() }));
    assert_eq!(after, before);
    // It goes on where it was: pages keep their numbers, and a new one gets its own.
    told(&index, vec![page_of_sample(1_000, "e.com", &["c.com"])]);
    assert_eq!(node(&index, "com.c>>o>/").unwrap().incount, 4);
    both_databases(|db| {
        // Later programs may have other defaults and another list; the database keeps its own.
        let parts = db.write(|tx| settings::freeze(tx, PARTS))?;
        let index = LinkIndex::new(Arc::new(InRows::new(db)), parts);
        told(&index, sample());
        let parts = db.write(|tx| settings::freeze(tx, PARTS + 13))?;
        let again = LinkIndex::new(Arc::new(InRows::new(db)), parts);
        assert_eq!((again.parts(), Cells::of(&again)), (PARTS, Cells::of(&index)));
        let list = db.read(settings::suffix_list)?;
        assert_eq!(list.listed_domain("www.a.co.uk"), Some("a.co.uk"));
        Ok(())
    });
}

#[test]
fn d12_an_index_that_lost_what_can_be_computed_is_made_again_from_its_pages() {
    each_engine(|map| {
        let index = LinkIndex::new(map.clone(), PARTS);
        told(&index, sample());
        let (cells, printed) = (Cells::of(&index), lines(&index, Dump::default()));
        wipe(&map);
        assert_eq!(node(&index, "com.c>>o>/"), None);
        let scratch = tempfile::tempdir().unwrap();
        rebuild::rebuild(&index, scratch.path(), &[]).unwrap();
        assert_eq!(Cells::of(&index), cells);
        assert_eq!(lines(&index, Dump::default()), printed);
    });
}

/// Removes every row that can be computed.
fn wipe(map: &Arc<dyn SortedMap>) {
    for part in (0..PARTS).map(|part| Part(part.into())) {
        let work = move |view: &dyn View| {
            let mut rows = Vec::new();
            for family in keys::DERIVED {
                for (key, _) in view.scan(part, &Span::prefix(&[family.byte]), 1_000_000)? {
                    rows.push(Row { part, key, value: None });
                }
            }
            Ok(rows)
        };
        map.change(part, None, Arc::new(work)).unwrap();
    }
}
