//! Brings the differences of a batch to the targets of one part: in-links, counts, ranks
//! and domains, all from what is there at this moment.
//!
//! Invariant: a count changes by as much as its list; a URI has one place in each ranking
//! while it counts, and none otherwise; a domain has as many pages as URIs that count.

use super::codec;
use super::inlinks::{self, HERE_BYTES_MAX, Inlink, WIDE_MIN, blocks_max};
use super::keys::{self, InlinkForm};
use super::node::{Inlinks, Node};
use super::pages::{PageLink, attributes, seconds};
use super::plan::{BatchPlan, Differs, Edit, LossReason, PlannedPage};
use page::ids::DocHash;
use page::outlinks::domain_of;
use std::collections::BTreeMap;
use store::ids::Part;
use store::sorted::{Row, View};
use store::{Error, Result};

/// What is folded into a part, and with which number.
#[allow(missing_docs)]
pub struct Fold<'a> {
    pub plan: &'a BatchPlan,
    pub part: Part,
    /// The number of this change of the part.
    pub seq: u64,
}

/// What differs for one URI.
struct TouchedUri<'a> {
    hash: DocHash,
    edits: &'a [Edit],
    /// Its page, if that is in the batch and has come or gone.
    page: Option<&'a PlannedPage>,
}

impl Fold<'_> {
    /// The rows to write.
    pub fn rows(&self, view: &dyn View) -> Result<Vec<Row>> {
        let touched = self.touched();
        let node_keys: Vec<Vec<u8>> = touched.iter().map(|it| keys::node(it.hash)).collect();
        let nodes = view.get_many(self.part, &node_keys)?;
        let mut out = PartRows { part: self.part, rows: Vec::with_capacity(touched.len() * 6) };
        let mut domains: BTreeMap<String, i64> = BTreeMap::new();
        for (it, node) in touched.iter().zip(nodes) {
            let before = node.map(|bytes| Node::decode(&bytes)).transpose()?;
            let before = before.unwrap_or_else(|| self.unknown(it));
            let mut after = before.clone();
            self.count(it, &mut after)?;
            self.write_inlinks(view, it, &mut after, &mut out)?;
            let change = i64::from(after.counts()) - i64::from(before.counts());
            if change != 0 {
                *domains.entry(domain_of(&after.uri).to_owned()).or_default() += change;
            }
            self.write_node(it, &before, after, &mut out);
        }
        self.write_domains(view, &domains, &mut out)?;
        Ok(out.rows)
    }

    /// Every URI of the part that the batch touches, in order.
    fn touched(&self) -> Vec<TouchedUri<'_>> {
        let edits = &self.plan.edits;
        let from = edits.partition_point(|edit| edit.part < self.part);
        let to = edits.partition_point(|edit| edit.part <= self.part);
        let mut pages: Vec<&PlannedPage> = self
            .plan
            .pages
            .iter()
            .filter(|page| page.source.part == self.part && page.is_changed())
            .filter(|page| {
                page.before.is_none()
                    || PlannedPage::is_there(&page.before) != PlannedPage::is_there(&page.after)
            })
            .collect();
        pages.sort_unstable_by_key(|page| page.hash);
        let mut pages = pages.into_iter().peekable();
        let mut touched = Vec::new();
        for edits in edits[from..to].chunk_by(|one, other| one.target == other.target) {
            let hash = edits[0].target;
            while let Some(page) = pages.next_if(|page| page.hash < hash) {
                touched.push(TouchedUri { hash: page.hash, edits: &[], page: Some(page) });
            }
            touched.push(TouchedUri { hash, edits, page: pages.next_if(|page| page.hash == hash) });
        }
        touched.extend(pages.map(|page| TouchedUri {
            hash: page.hash,
            edits: &[],
            page: Some(page),
        }));
        touched
    }

    fn link(&self, edit: &Edit) -> Option<&PageLink> {
        let page = self.plan.pages.get(edit.page as usize)?;
        let version = match edit.what {
            Differs::Lost(_) => &page.before,
            _ => &page.after,
        };
        version.as_ref()?.links.get(edit.link as usize)
    }

    /// When the version of a page was fetched that an edit comes from.
    fn date_ms(&self, edit: &Edit) -> i64 {
        let page = self.plan.pages.get(edit.page as usize);
        page.and_then(|page| page.after.as_ref()).map_or(0, |page| page.date_ms)
    }

    /// A URI that nobody has heard of.
    fn unknown(&self, it: &TouchedUri<'_>) -> Node {
        let page = it.page.and_then(|page| page.after.as_ref()).map(|page| &page.uri);
        let linked = || it.edits.first().and_then(|edit| self.link(edit)).map(|link| &link.uri);
        let uri = page.or_else(linked).cloned().unwrap_or_default();
        Node { uri, ..Node::default() }
    }

    fn count(&self, it: &TouchedUri<'_>, node: &mut Node) -> Result<()> {
        for edit in it.edits {
            let count = match edit.what {
                Differs::Added => node.incount.checked_add(1),
                Differs::Changed => Some(node.incount),
                Differs::Lost(_) => node.incount.checked_sub(1),
            };
            node.incount = count.ok_or_else(|| {
                let reason = "a link is lost that was never counted; run `driftline links rebuild`";
                Error::corrupt(format!("the link index ({})", node.uri), reason)
            })?;
        }
        if let Some(page) = it.page {
            node.page = Some(page.source.number);
            node.crawled = PlannedPage::is_there(&page.after);
        }
        Ok(())
    }

    fn write_inlinks(
        &self,
        view: &dyn View,
        it: &TouchedUri<'_>,
        node: &mut Node,
        out: &mut PartRows,
    ) -> Result<()> {
        if it.edits.is_empty() {
            return Ok(());
        }
        let mut edits = Vec::with_capacity(it.edits.len());
        for edit in it.edits {
            let link = self.link(edit);
            if let (Differs::Lost(reason), Some(link)) = (edit.what, link) {
                let lost_s = seconds(self.date_ms(edit));
                out.put(keys::lost(it.hash, lost_s, edit.source), encode_lost(link, reason));
            }
            let is_lost = matches!(edit.what, Differs::Lost(_));
            let link = link.filter(|_| !is_lost).map(|link| Inlink {
                anchor: link.anchor.clone(),
                kind: link.kind,
                rel: link.rel,
                first_s: link.first_s,
                seq: self.seq,
            });
            edits.push(inlinks::Edit { source: edit.source, link });
        }
        match &node.inlinks {
            Inlinks::Wide => {
                self.write_wide(it, &edits, out);
                if node.incount == 0 {
                    node.inlinks = Inlinks::default();
                }
            }
            Inlinks::Here(block) => {
                let mut all = if block.is_empty() { Vec::new() } else { inlinks::decode(block)? };
                all.append(&mut edits);
                self.write_list(it, inlinks::merged(all), node, out);
            }
            Inlinks::Blocks(blocks)
                if (1..=WIDE_MIN).contains(&node.incount) && *blocks < blocks_max(node.incount) =>
            {
                out.put(keys::edits(it.hash, self.seq), inlinks::encode(&edits));
                node.inlinks = Inlinks::Blocks(blocks + 1);
            }
            Inlinks::Blocks(_) => {
                let (old, mut all) = inlinks::blocks(view, self.part, it.hash, &node.uri)?;
                old.into_iter().for_each(|key| out.remove(key));
                all.append(&mut edits);
                self.write_list(it, inlinks::merged(all), node, out);
            }
        }
        Ok(())
    }

    /// A whole list, where it has room.
    fn write_list(
        &self,
        it: &TouchedUri<'_>,
        all: Vec<inlinks::Edit>,
        node: &mut Node,
        out: &mut PartRows,
    ) {
        if node.incount > WIDE_MIN {
            self.write_wide(it, &all, out);
            node.inlinks = Inlinks::Wide;
            return;
        }
        let block = if all.is_empty() { Vec::new() } else { inlinks::encode(&all) };
        node.inlinks = if block.len() <= HERE_BYTES_MAX {
            Inlinks::Here(block)
        } else {
            out.put(keys::inlinks_in(it.hash, InlinkForm::Base), block);
            Inlinks::Blocks(0)
        };
    }

    fn write_wide(&self, it: &TouchedUri<'_>, edits: &[inlinks::Edit], out: &mut PartRows) {
        for edit in edits {
            let key = keys::wide(it.hash, edit.source);
            match &edit.link {
                Some(link) => out.put(key, inlinks::encode_wide(link)),
                None => out.remove(key),
            }
        }
    }

    fn write_node(&self, it: &TouchedUri<'_>, before: &Node, mut after: Node, out: &mut PartRows) {
        let moves = (before.incount, before.crawled, before.counts())
            != (after.incount, after.crawled, after.counts());
        if moves {
            after.seq = self.seq;
            before.ranks().for_each(|key| out.remove(key));
            after.ranks().for_each(|key| out.put(key, Vec::new()));
        }
        if *before != after {
            match after.counts() || after.page.is_some() {
                true => out.put(keys::node(it.hash), after.encode()),
                false => out.remove(keys::node(it.hash)),
            }
        }
    }

    fn write_domains(
        &self,
        view: &dyn View,
        domains: &BTreeMap<String, i64>,
        out: &mut PartRows,
    ) -> Result<()> {
        let domain_keys: Vec<Vec<u8>> = domains.keys().map(|it| keys::domain(it)).collect();
        let known = view.get_many(self.part, &domain_keys)?;
        for ((domain, change), known) in domains.iter().zip(known) {
            let before = known.map_or(Ok(0), |bytes| decode_domain(&bytes).map(|it| it.0))?;
            let after = before.checked_add_signed(*change).ok_or_else(|| {
                let reason = "it loses pages it never had; run `driftline links rebuild`";
                Error::corrupt(format!("the link index (domain {domain})"), reason)
            })?;
            if before == after {
                continue;
            }
            if before > 0 {
                out.remove(keys::domain_place(before, domain));
            }
            if after > 0 {
                out.put(keys::domain_place(after, domain), Vec::new());
                out.put(keys::domain(domain), encode_domain(after, self.seq));
            } else {
                out.remove(keys::domain(domain));
            }
        }
        Ok(())
    }
}

/// The row of a domain: its pages, and the change that counted them.
pub fn encode_domain(pages: u64, seq: u64) -> Vec<u8> {
    let mut out = Vec::new();
    codec::put_number(&mut out, pages);
    codec::put_number(&mut out, seq);
    out
}

/// Reads the row of a domain: its pages, and the change that counted them.
pub fn decode_domain(bytes: &[u8]) -> Result<(u64, u64)> {
    let mut reader = codec::ByteReader::new("domains", bytes);
    Ok((reader.number()?, reader.number()?))
}

/// A link that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostLink {
    /// How it was written, without its source.
    pub link: Inlink,
    /// Why it was lost.
    pub reason: LossReason,
}

fn encode_lost(link: &PageLink, reason: LossReason) -> Vec<u8> {
    let place = LossReason::ALL.iter().position(|it| *it == reason).unwrap_or(0);
    let mut out = vec![place as u8, attributes(link.kind, link.rel)];
    codec::put_number(&mut out, link.first_s);
    out.extend_from_slice(link.anchor.as_bytes());
    out
}

/// Reads the row of a lost link.
pub fn decode_lost(bytes: &[u8]) -> Result<LostLink> {
    let mut reader = codec::ByteReader::new("lost", bytes);
    let reason = LossReason::ALL.get(usize::from(reader.byte()?)).copied();
    let reason = reason.ok_or_else(|| reader.broken("no such reason"))?;
    let (kind, rel) = super::pages::read_attributes(reader.byte()?)
        .ok_or_else(|| reader.broken("a link is of no known kind"))?;
    let first_s = reader.number()?;
    let anchor = reader.rest()?.to_owned();
    Ok(LostLink { link: Inlink { anchor, kind, rel, first_s, seq: 0 }, reason })
}

/// Rows of one part.
#[allow(missing_docs)]
pub struct PartRows {
    pub part: Part,
    pub rows: Vec<Row>,
}

impl PartRows {
    /// A row that is written.
    pub fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.rows.push(Row { part: self.part, key, value: Some(value) });
    }

    /// A row that goes.
    pub fn remove(&mut self, key: Vec<u8>) {
        self.rows.push(Row { part: self.part, key, value: None });
    }
}
