//! The two documents that the index goes back to, and what an independent computation gives
//! for their sample and for pages of a real crawl.
//!
//! `tables/seed003.txt` and `tables/seed000.txt` are the documents' own example tables, with
//! their mistakes; beside each stands a file with the cells that had to be corrected and why.

use super::{PARTS, each_engine};
use crate::links::changes::{ChangeBatch, PageChange, PageContent, What};
use crate::links::counts::encoded;
use crate::links::dump::{Dump, Layout};
use crate::links::index::LinkIndex;
use crate::links::pages::LOADED;
use crate::links::paging::Paging;
use crate::links::rankings::{self, By};
use page::domain::SuffixList;
use page::facts::{Link, LinkKind, Rel};
use page::outlinks::{self, LinkPolicy};
use page::webindex::{self, WebindexPage};
use std::collections::{BTreeMap, BTreeSet};
use store::sorted::SortedMap;
use store::testing::skipped;

/// What all links of the sample say.
const ANCHOR: &str = "anchorText";

/// `a.com/page1 links to c.com, b.com`, as the documents put it.
pub(super) fn page_of_sample(date_ms: i64, url: &str, targets: &[&str]) -> PageChange {
    let link = |target: &&str| Link {
        url: format!("http://{target}"),
        anchor: ANCHOR.to_owned(),
        kind: LinkKind::A,
        rel: Rel::default(),
    };
    let links: Vec<Link> = targets.iter().map(link).collect();
    let list = SuffixList::bundled();
    let url = format!("http://{url}");
    let page = outlinks::of(&url, &links, LinkPolicy::Webindex, list).unwrap();
    let content = PageContent { links: page.links, ..PageContent::default() };
    let what = What::Page(Box::new(content));
    PageChange { uri: page.uri, date_ms, job: LOADED, in_order: false, what }
}

/// The sample of both documents.
pub(super) fn sample() -> Vec<PageChange> {
    vec![
        page_of_sample(0, "a.com/page1", &["c.com", "b.com"]),
        page_of_sample(0, "b.com", &["c.com/page1", "c.com"]),
        page_of_sample(0, "d.com", &["c.com"]),
    ]
}

pub(super) fn told(index: &LinkIndex, changes: Vec<PageChange>) {
    index.apply(ChangeBatch { changes, marks: vec![] }, &[]).unwrap();
}

pub(super) fn lines(index: &LinkIndex, dump: Dump) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    let mut take = |line: &str| {
        lines.push(line.to_owned());
        Ok(())
    };
    dump.write(index, scratch.path(), &mut take).unwrap();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    let keys: Vec<Vec<&str>> = lines.iter().map(|it| it.splitn(4, '|').take(3).collect()).collect();
    assert!(keys.is_sorted_by(|one, other| one < other), "each cell once, and in order");
    lines
}

/// What the oracle has where we have the page itself.
fn without_json(lines: &[String]) -> Vec<String> {
    let without = |line: &String| match line.split_once("|page|cur|") {
        Some((row, json)) => {
            assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{json}");
            format!("{row}|page|cur|{{json}}")
        }
        None => line.clone(),
    };
    lines.iter().map(without).collect()
}

/// A file that the project has beside its checkout, if it is there.
fn beside(path: &str) -> Option<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/");
    let text = std::fs::read_to_string([root, path].concat()).ok();
    if text.is_none() {
        skipped(&format!("{path}: it is missing"));
    }
    text
}

fn assert_same(found: &[String], expected: &[String]) {
    let (found, expected): (BTreeSet<_>, BTreeSet<_>) =
        (found.iter().collect(), expected.iter().collect());
    let more: Vec<_> = found.difference(&expected).collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(more.is_empty() && missing.is_empty(), "more: {more:#?}\nmissing: {missing:#?}");
}

#[test]
fn the_sample_of_the_seeds_yields_the_cells_of_the_original() {
    let Some(expected) = beside("oracles/linkindex/sample-expected.txt") else { return };
    let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    assert_eq!(expected.len(), 27);
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        told(&index, sample());
        assert_eq!(without_json(&lines(&index, Dump::default())), expected);
    });
}

#[test]
fn five_pages_of_a_real_crawl_yield_the_cells_that_others_computed() {
    let Some(expected) = beside("oracles/linkindex/5-pages-expected.txt") else { return };
    let Some(stored) = beside("oracles/linkindex/5-pages.txt") else { return };
    let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    assert_eq!(expected.len(), 174);
    let list = SuffixList::bundled();
    let pages = || stored.lines().map(|it| webindex::from_json(it.as_bytes(), list).unwrap());
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        told(&index, pages().map(change).collect());
        let found = lines(&index, Dump::default());
        assert_eq!(without_json(&found), expected);
        // Pages come out as they went in.
        let printed = found.iter().filter_map(|line| line.split_once("|page|cur|"));
        let printed: BTreeMap<&str, serde_json::Value> =
            printed.map(|(row, json)| (row, serde_json::from_str(json).unwrap())).collect();
        assert_eq!(printed.len(), 5);
        for (page, line) in pages().zip(stored.lines()) {
            let stored: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(printed[&*format!("p:{}", page.uri)], stored);
        }
    });
}

fn change(page: WebindexPage) -> PageChange {
    let date_ms = page.crawl_date.as_deref().and_then(webindex::date_ms).unwrap_or(0);
    let content = PageContent {
        status: 0,
        title: page.title.unwrap_or_default(),
        server: page.server.unwrap_or_default(),
        links: page.links,
    };
    let what = What::Page(Box::new(content));
    PageChange { uri: page.uri, date_ms, job: LOADED, in_order: false, what }
}

#[test]
fn rankings_have_the_order_of_the_query_table() {
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        told(&index, sample());
        let paging = Paging::new(100, None).unwrap();
        let ranked =
            index.read(move |view| rankings::top(view, PARTS, By::Incount, &paging)).unwrap();
        let ranked: Vec<String> = ranked
            .items
            .iter()
            .map(|it| format!("t:{}:{}|||{}", encoded(it.incount), it.uri, it.incount))
            .collect();
        let mut printed = lines(&index, Dump::default());
        printed.retain(|line| line.starts_with("t:"));
        assert_eq!(printed, ranked);
    });
}

#[test]
fn the_table_of_seed_003_is_ours_but_for_its_mistakes() {
    compare_with_seed(
        Layout::Seed003,
        &Seed {
            text: "seeds/003_050921ba54037d39.txt",
            table: include_str!("tables/seed003.txt"),
            corrections: include_str!("tables/seed003-corrections.txt"),
        },
    );
}

#[test]
fn the_table_of_seed_000_is_ours_but_for_its_mistakes() {
    compare_with_seed(
        Layout::Seed000,
        &Seed {
            text: "seeds/000_488dfddb2ce7d45f.txt",
            table: include_str!("tables/seed000.txt"),
            corrections: include_str!("tables/seed000-corrections.txt"),
        },
    );
}

/// A document, its table as it prints it, and what is wrong with that.
struct Seed {
    text: &'static str,
    table: &'static str,
    corrections: &'static str,
}

fn compare_with_seed(layout: Layout, seed: &Seed) {
    let table: Vec<String> = seed.table.lines().map(str::to_owned).collect();
    if let Some(text) = beside(seed.text) {
        assert_eq!(table, table_of(&text), "the table is the document's");
    }
    let expected: Vec<String> =
        corrected(&table, seed.corrections).iter().map(|line| with_sorted_links(line)).collect();
    each_engine(|map| {
        let index = LinkIndex::new(map, PARTS);
        told(&index, sample());
        let found = lines(&index, Dump { layout, with_seq: false });
        let found: Vec<String> = found.iter().map(|line| as_seeds_write(line)).collect();
        assert_eq!(found.len(), expected.len());
        assert_same(&found, &expected);
    });
}

/// The query table of a document, whose columns have fixed widths; a row or a family that
/// is left out is that of the line before.
fn table_of(text: &str) -> Vec<String> {
    let (_, rest) = text.split_once("Resulting Accumulo Table").unwrap();
    let body = rest.lines().skip_while(|line| !line.contains("-----")).skip(1);
    let (mut row, mut family) = (String::new(), String::new());
    let mut cells = Vec::new();
    for line in body.take_while(|line| !line.trim().is_empty()) {
        let column = |from: usize, to: usize| {
            let end = to.min(line.len());
            line.get(from..end).unwrap_or_default().trim().to_owned()
        };
        if !column(4, 22).is_empty() {
            (row, family) = (column(4, 22), String::new());
        }
        if !column(22, 32).is_empty() {
            family = column(22, 32);
        }
        cells.push(format!("{row}|{family}|{}|{}", column(32, 48), column(48, usize::MAX)));
    }
    cells
}

/// The table with its corrections, each of which has a reason and changes something.
fn corrected(table: &[String], corrections: &str) -> Vec<String> {
    let mut cells: BTreeSet<String> = table.iter().cloned().collect();
    let mut reason = "";
    let (mut count, mut before) = (0, "");
    for line in corrections.lines() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("#", why) => reason = why,
            ("-", cell) => {
                assert!(!reason.is_empty() && cells.remove(cell), "{cell} is not in the table");
                count += 1;
            }
            ("+", cell) => {
                let is_new = !table.iter().any(|it| it == cell) && cells.insert(cell.to_owned());
                assert!(!reason.is_empty() && is_new, "{cell} is in the table");
                count += usize::from(!before.starts_with('-'));
            }
            ("", _) => reason = "",
            other => panic!("{other:?} is no correction"),
        }
        before = line;
    }
    assert!(count >= 4, "{count} corrections were found");
    cells.into_iter().collect()
}

/// A line of ours as the documents write it: `com.c` for `com.c>>o>/`, counts as numbers,
/// and links of pages by their names.
fn as_seeds_write(line: &str) -> String {
    if let Some((row, json)) = line.split_once("|page|cur|") {
        #[derive(serde::Deserialize)]
        struct Json {
            outlinkcount: usize,
            outlinks: Vec<String>,
        }
        let json: Json = serde_json::from_str(json).unwrap();
        let name = |url: &String| url.strip_prefix("http://").unwrap().trim_end_matches('/').into();
        let names: Vec<String> = json.outlinks.iter().map(name).collect();
        let (row, count) = (as_seeds_write(row), json.outlinkcount);
        return with_sorted_links(&format!(
            "{row}|page|cur|{{\"outlinkcount\": {count}, \"outlinks\":[{}]}}",
            names.join(", ")
        ));
    }
    let mut line = line.replace(">>o>/page1", "/page1").replace(">>o>/", "");
    for count in 0..=3 {
        line = line.replace(&format!("{}:", encoded(count)), &format!("{count}:"));
    }
    line
}

/// The documents list the links of a page as it has them, the index by URI.
fn with_sorted_links(line: &str) -> String {
    let Some((head, names)) = line.split_once("\"outlinks\":[") else { return line.to_owned() };
    let mut names: Vec<&str> = names.strip_suffix("]}").unwrap().split(", ").collect();
    names.sort_unstable();
    format!("{head}\"outlinks\":[{}]}}", names.join(", "))
}

#[test]
fn a_sequence_number_grows_with_a_change_of_its_cell_and_stays_without_one() {
    each_engine(|map| {
        for layout in Layout::ALL {
            let dump = Dump { layout, with_seq: true };
            numbers_follow_changes(&fresh(&map), dump);
        }
    });
}

/// The index in a map, where no page of the sample is any more.
fn fresh(map: &std::sync::Arc<dyn SortedMap>) -> LinkIndex {
    let index = LinkIndex::new(map.clone(), PARTS);
    let gone = |change: PageChange| PageChange {
        in_order: true,
        what: What::Gone("the next test begins".into()),
        ..change
    };
    told(&index, sample().into_iter().map(gone).collect());
    assert_eq!(lines(&index, Dump::default()), [""; 0]);
    index
}

fn numbers_follow_changes(index: &LinkIndex, dump: Dump) {
    told(index, sample());
    let cells = |index: &LinkIndex| -> BTreeMap<String, (String, u64)> {
        let cell = |line: &String| {
            let (line, seq) = line.rsplit_once('|').unwrap();
            let mut fields: Vec<&str> = line.splitn(4, '|').collect();
            let value = fields.pop().unwrap().to_owned();
            (fields.join("|"), (value, seq.parse().unwrap()))
        };
        lines(index, dump).iter().map(cell).collect()
    };
    let mut before = cells(index);
    let mut other = page_of_sample(0, "b.com", &["c.com/page1", "c.com"]);
    let What::Page(content) = &mut other.what else { unreachable!("it is a page") };
    content.links[0].anchor = "other words".into();
    for (change, changed_min) in [
        (page_of_sample(0, "a.com/page1", &["c.com", "e.com"]), 3),
        (other, 1),
        (page_of_sample(0, "d.com", &["c.com"]), 0),
    ] {
        told(index, vec![change]);
        let after = cells(index);
        let mut changed = 0;
        for (key, (value, seq)) in &after {
            let Some((old, old_seq)) = before.get(key) else { continue };
            // Pages of the documents show no anchors, and so not every change.
            let shows_all = dump.layout == Layout::Webindex || !key.ends_with("|page|cur");
            let grows = if shows_all { value != old } else { seq > old_seq };
            assert!(grows || value == old, "{key}: {old} {old_seq}, {value} {seq}");
            assert_eq!(grows, seq > old_seq, "{key}: {old} {old_seq}, {value} {seq}");
            changed += usize::from(grows);
        }
        let keys = |cells: &BTreeMap<String, _>| cells.keys().cloned().collect::<BTreeSet<_>>();
        changed += keys(&before).symmetric_difference(&keys(&after)).count();
        assert!(changed >= changed_min && (changed == 0) == (changed_min == 0), "{changed}");
        before = after;
    }
}
