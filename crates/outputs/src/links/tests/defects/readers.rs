//! D8 and D9: what readers see while the index changes, and where their cursors lead.
//!
//! Of D9, which is about a web page, this is what lists and cursors have to do with; how a
//! domain is written that somebody asks for (case, `www.`) is the command line's to settle.

use super::super::seeds::{sample, told};
use super::super::{PARTS, each_engine};
use super::{A, B, C, apply, everything, gone, node, page, pages_of};
use crate::links::index::LinkIndex;
use crate::links::keys;
use crate::links::node::Node;
use crate::links::paging::{Listing, Paging};
use crate::links::parts::{of_domain, turned};
use crate::links::queries::{self, Filter};
use crate::links::rankings::{self, By, RankedUri};
use page::outlinks::domain_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use store::Result;
use store::ids::Part;
use store::sorted::{Span, View};

/// What a reader sees at one moment must fit together.
fn check_moment(view: &dyn View, parts: &BTreeMap<&'static str, Part>) -> Result<()> {
    for (target, part) in parts {
        let Some(known) = queries::find(view, *part, target)? else { continue };
        let list = queries::inlinks(view, &known, &Filter::default(), &everything())?.items;
        assert_eq!(list.len() as u64, known.node.incount, "of {target}");
    }
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    let mut domains: BTreeMap<String, u64> = BTreeMap::new();
    for part in (0..PARTS).map(|part| Part(part.into())) {
        for (_, value) in view.scan(part, &Span::prefix(&[keys::NODES.byte]), 1_000_000)? {
            let node = Node::decode(&value)?;
            if node.counts() {
                *domains.entry(turned(domain_of(&node.uri))).or_default() += 1;
                assert!(counted.insert(node.uri.clone(), node.incount).is_none(), "{node:?}");
            }
        }
    }
    for by in [By::Incount, By::Score] {
        let list = rankings::top(view, PARTS, by, &everything())?.items;
        let listed = |it: &RankedUri| (it.uri.clone(), it.incount);
        assert_eq!(list.len(), counted.len(), "no URI is listed twice, and none is missing");
        assert_eq!(list.iter().map(listed).collect::<BTreeMap<_, _>>(), counted);
    }
    let list = rankings::domains(view, PARTS, &everything())?.items;
    assert_eq!(list.len(), domains.len());
    let listed: BTreeMap<String, u64> = list.into_iter().map(|it| (it.domain, it.pages)).collect();
    assert_eq!(listed, domains);
    Ok(())
}

#[test]
fn d8_whoever_looks_while_the_index_changes_sees_counts_that_fit_lists() {
    const READERS: usize = 2;
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        let batches = if index.map().spans_parts() { 150 } else { 60 };
        let targets = [A, B, C, "uk.co.d>>o>/"];
        let parts: BTreeMap<&'static str, _> =
            targets.iter().map(|target| (*target, index.part_of(target))).collect();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let read = || {
                let mut looks = 0;
                while looks == 0 || !done.load(Ordering::SeqCst) {
                    let parts = parts.clone();
                    index.read(move |view| check_moment(view, &parts)).unwrap();
                    looks += 1;
                }
                looks
            };
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
            for number in 0..batches {
                // Every page comes, goes and links elsewhere in turn.
                let change = |it: i64| {
                    let uri = format!("{}{it}", targets[(it % 4) as usize]);
                    let to = [targets[((it + number) % 4) as usize], targets[(it % 3) as usize]];
                    let to: BTreeSet<&str> = to.into_iter().collect();
                    let to: Vec<&str> = to.into_iter().collect();
                    match (it + number) % 5 {
                        0 => gone(number, &uri, "gone"),
                        _ => page(number, &uri, &to, "x"),
                    }
                };
                apply(&index, (0..20).map(change).collect());
            }
            done.store(true, Ordering::SeqCst);
            assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
        });
    });
}

#[test]
fn d9_a_cursor_past_the_end_gives_an_empty_page_and_what_is_no_cursor_is_refused() {
    type List = fn(&dyn View, &Paging) -> Result<Listing<String>>;
    let lists: [List; 4] = [
        |view, paging| names(rankings::top(view, PARTS, By::Incount, paging)?, |it| it.uri),
        |view, paging| {
            let list = rankings::top_of_domain(view, PARTS, "c.com", By::Incount, paging)?;
            names(list, |it| it.uri)
        },
        |view, paging| names(rankings::domains(view, PARTS, paging)?, |it| it.domain),
        |view, paging| {
            let part = of_domain("com.c", PARTS);
            match queries::find(view, part, "com.c>>o>/")? {
                Some(known) => {
                    let list = queries::inlinks(view, &known, &Filter::default(), paging)?;
                    names(list, |it| it.uri)
                }
                None => Ok(Listing { items: vec![], next: None, previous: None }),
            }
        },
    ];
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        told(&index, sample());
        let ask = |list: List, cursor: Option<String>| {
            let paging = Paging::new(1, cursor.as_deref()).unwrap();
            index.read(move |view| list(view, &paging)).unwrap()
        };
        // The cursor behind the last entry but one, when it is the last.
        let cursors = lists.map(|list| {
            let mut listing = ask(list, None);
            let mut cursor = listing.next.clone();
            while let Some(next) = listing.next {
                cursor = Some(next.clone());
                listing = ask(list, Some(next));
            }
            cursor.expect("it has two entries")
        });
        let gone = |uri: &str| gone(1_000, uri, "gone");
        apply(&index, ["com.a>>o>/page1", "com.b>>o>/", "com.d>>o>/"].map(gone).to_vec());
        for (list, cursor) in lists.into_iter().zip(cursors) {
            assert_eq!(ask(list, Some(cursor)).items, [""; 0]);
            assert_eq!(ask(list, None).items, [""; 0]);
        }
        for cursor in ["", "7", "n!", "nächste"] {
            let error = Paging::new(25, Some(cursor)).unwrap_err().to_string();
            assert!(error.contains("is not a cursor"), "{error}");
        }
        assert_eq!(node(&index, "com.unheard>>o>/of"), None);
        assert_eq!(pages_of(&index, "unheard.com"), None);
    });
}

fn names<T>(list: Listing<T>, name: fn(T) -> String) -> Result<Listing<String>> {
    let Listing { items, next, previous } = list;
    Ok(Listing { items: items.into_iter().map(name).collect(), next, previous })
}
