//! What the index must be, computed in the simplest way from all pages.

use super::PARTS;
use crate::links::changes::{PageChange, PageContent, What};
use crate::links::fold::decode_domain;
use crate::links::index::LinkIndex;
use crate::links::keys::{self, InlinkForm, PageRef, RankingList};
use crate::links::node::{Inlinks, Node};
use crate::links::pages::{Page, seconds};
use crate::links::{inlinks, plan};
use page::outlinks::domain_of;
use std::collections::{BTreeMap, BTreeSet};
use store::Result;
use store::ids::Part;
use store::sorted::{Span, View};

/// A page, as the model knows it.
#[derive(Debug, Clone, Default)]
struct ModelPage {
    owners: BTreeSet<i64>,
    reported_by: i64,
    date_ms: i64,
    content: PageContent,
    first_s: BTreeMap<String, u64>,
}

/// All pages.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pages: BTreeMap<String, ModelPage>,
}

/// Everything that can be seen, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells(pub BTreeSet<String>);

impl Model {
    pub fn apply(&mut self, change: &PageChange) {
        let known = self.pages.get(&change.uri);
        let (date_ms, reported_by) =
            known.map_or((i64::MIN, None), |it| (it.date_ms, Some(it.reported_by)));
        let follows = change.in_order && reported_by == Some(change.job);
        let is_news = change.date_ms >= date_ms || follows;
        let now_ms = change.date_ms.max(date_ms);
        let is_there = known.is_some_and(|it| !it.owners.is_empty());
        match &change.what {
            What::Seen if is_there && is_news => self.known(&change.uri).date_ms = now_ms,
            What::Seen => {}
            What::Gone(_) | What::Missing { .. } if is_there && (is_news || change.in_order) => {
                let known = self.known(&change.uri);
                known.owners.remove(&change.job);
                if known.owners.is_empty() {
                    known.content = PageContent::default();
                    known.first_s.clear();
                    (known.date_ms, known.reported_by) = (now_ms, change.job);
                }
            }
            What::Gone(_) | What::Missing { .. }
                if !is_there
                    && is_news
                    && (!change.in_order || matches!(change.what, What::Missing { .. })) =>
            {
                let is_new = known.is_none();
                let known = self.known(&change.uri);
                known.date_ms = now_ms;
                if is_new {
                    known.reported_by = change.job;
                }
            }
            What::Gone(_) | What::Missing { .. } => {}
            What::Page(content) if is_news => {
                let known = self.known(&change.uri);
                let says_the_same = is_there && known.content == **content;
                known.owners.insert(change.job);
                known.date_ms = now_ms;
                if says_the_same {
                    return;
                }
                known.reported_by = change.job;
                let first_s = std::mem::take(&mut known.first_s);
                let first = |uri: &String| *first_s.get(uri).unwrap_or(&seconds(now_ms));
                known.first_s =
                    content.links.iter().map(|it| (it.uri.clone(), first(&it.uri))).collect();
                known.content = (**content).clone();
            }
            What::Page(_) if change.in_order && is_there => {
                self.known(&change.uri).owners.insert(change.job);
            }
            What::Page(_) => {}
        }
    }

    fn known(&mut self, uri: &str) -> &mut ModelPage {
        self.pages.entry(uri.to_owned()).or_default()
    }

    /// Everything, computed anew.
    pub fn cells(&self) -> Cells {
        let mut cells = BTreeSet::new();
        let there = || self.pages.iter().filter(|(_, page)| !page.owners.is_empty());
        let mut incount: BTreeMap<&str, u64> = BTreeMap::new();
        for (uri, page) in there() {
            incount.entry(uri).or_default();
            let seen_s = seconds(page.date_ms);
            cells.insert(format!("page {uri} {:?} {seen_s} {}", page.owners, page.content.title));
            for link in &page.content.links {
                *incount.entry(&link.uri).or_default() += 1;
                let first_s = page.first_s[&link.uri];
                let said = format!("{:?} {:?} {first_s} {}", link.kind, link.rel, link.anchor);
                cells.insert(format!("out {uri} {} {said}", link.uri));
                cells.insert(format!("in {} {uri} {said}", link.uri));
            }
        }
        let mut domains: BTreeMap<&str, u64> = BTreeMap::new();
        for (uri, count) in &incount {
            let crawled = there().any(|(it, _)| it == uri);
            *domains.entry(domain_of(uri)).or_default() += 1;
            cells.insert(format!("node {uri} {count} {crawled}"));
            cells.insert(format!("rank {uri} {count} {crawled}"));
            if *count > keys::FEW_MAX {
                cells.insert(format!("domain rank {uri} {count} {crawled}"));
            }
        }
        for (domain, pages) in domains {
            cells.insert(format!("domain {domain} {pages}"));
            cells.insert(format!("place {domain} {pages}"));
        }
        Cells(cells)
    }
}

impl Cells {
    /// Everything that an index has, read row by row.
    pub fn of(index: &LinkIndex) -> Cells {
        index.read(read).unwrap()
    }
}

fn rows(view: &dyn View, part: Part, prefix: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    view.scan(part, &Span::prefix(prefix), 1_000_000)
}

fn read(view: &dyn View) -> Result<Cells> {
    let mut cells = BTreeSet::new();
    let mut sources: BTreeMap<PageRef, String> = BTreeMap::new();
    for part in 0..PARTS {
        let at = Part(part.into());
        for (key, value) in rows(view, at, &[keys::PAGES.byte])? {
            let page = Page::decode(&value)?;
            let number = keys::read_number(&key[1..]).unwrap();
            sources.insert(PageRef { part: at, number }, page.uri.clone());
            let seen = view.get(at, &keys::seen(number))?;
            let seen_ms = seen.as_deref().and_then(plan::read_seen).unwrap_or(i64::MIN);
            if !page.is_there() {
                assert!(page.links.is_empty() && !page.gone.is_empty());
                continue;
            }
            let owners: BTreeSet<i64> = page.owners.iter().copied().collect();
            let (uri, seen_s) = (&page.uri, seconds(page.date_ms.max(seen_ms)));
            cells.insert(format!("page {uri} {owners:?} {seen_s} {}", page.title));
            for link in &page.links {
                let said =
                    format!("{:?} {:?} {} {}", link.kind, link.rel, link.first_s, link.anchor);
                cells.insert(format!("out {uri} {} {said}", link.uri));
            }
        }
    }
    for part in (0..PARTS).map(|part| Part(part.into())) {
        read_part(view, part, &sources, &mut cells)?;
    }
    Ok(Cells(cells))
}

fn read_part(
    view: &dyn View,
    part: Part,
    sources: &BTreeMap<PageRef, String>,
    cells: &mut BTreeSet<String>,
) -> Result<()> {
    let mut with_rows: BTreeSet<Vec<u8>> = BTreeSet::new();
    for (key, _) in rows(view, part, &[keys::INLINKS.byte])? {
        with_rows.insert(key[1..17].to_vec());
    }
    for (key, value) in rows(view, part, &[keys::NODES.byte])? {
        let node = Node::decode(&value)?;
        let hash = keys::hash(&node.uri);
        assert_eq!(key, keys::node(hash));
        let is_elsewhere = !matches!(node.inlinks, Inlinks::Here(_));
        assert_eq!(with_rows.remove(&hash.0[..]), is_elsewhere, "{node:?}");
        let list: Vec<_> = match node.inlinks {
            Inlinks::Wide => rows(view, part, &keys::inlinks_in(hash, InlinkForm::Wide))?
                .into_iter()
                .map(|(key, value)| {
                    let source = PageRef::read(keys::form_of(&key).unwrap().1).unwrap();
                    (source, inlinks::decode_wide(&value).unwrap())
                })
                .collect(),
            _ => inlinks::list(view, part, hash, &node)?
                .into_iter()
                .map(|it| (it.source, it.link.unwrap()))
                .collect(),
        };
        assert_eq!(list.len() as u64, node.incount, "a count is the length of its list: {node:?}");
        for (source, link) in list {
            let said = format!("{:?} {:?} {} {}", link.kind, link.rel, link.first_s, link.anchor);
            cells.insert(format!("in {} {} {said}", node.uri, sources[&source]));
        }
        if node.counts() {
            cells.insert(format!("node {} {} {}", node.uri, node.incount, node.crawled));
        }
    }
    assert!(with_rows.is_empty(), "in-links of nobody");
    for class in RankingList::BOTH {
        let crawled = class == RankingList::Crawled;
        let prefix = keys::ranks(class);
        for (key, _) in rows(view, part, &prefix)? {
            let (count, uri) = keys::read_rank(&prefix, &key).unwrap();
            cells.insert(format!("rank {uri} {count} {crawled}"));
        }
    }
    for (key, value) in rows(view, part, &[keys::DOMAINS.byte, b'c'])? {
        let domain = std::str::from_utf8(&key[2..]).unwrap();
        cells.insert(format!("domain {domain} {}", decode_domain(&value)?.0));
    }
    for (key, _) in rows(view, part, &keys::domains_ranked())? {
        let (pages, domain) = keys::read_rank(&keys::domains_ranked(), &key).unwrap();
        cells.insert(format!("place {domain} {pages}"));
    }
    for (key, _) in rows(view, part, &[keys::RANKS.byte, b'd'])? {
        let at = key.iter().position(|byte| *byte == b'>').unwrap();
        let (prefix, crawled) = (&key[..at + 2], key[at + 1] == RankingList::Crawled as u8);
        let (count, rest) = keys::read_rank(prefix, &key).unwrap();
        let domain = std::str::from_utf8(&key[2..at]).unwrap();
        cells.insert(format!("domain rank {domain}{rest} {count} {crawled}"));
    }
    Ok(())
}
