//! What a batch means: pages as they were and as they are, and what differs.
//!
//! Reads nothing but the batch's own pages. Invariant: planning a batch again before any
//! of it is written gives the same, so a batch that is under way can be finished by anyone.

use super::changes::{PageChange, What};
use super::keys::{self, PageRef};
use super::node::Node;
use super::pages::{Page, PageLink, seconds};
use super::parts::Parts;
use super::state::PartState;
use page::ids::DocHash;
use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use store::Result;
use store::ids::Part;
use store::sorted::View;

/// A batch, worked out.
#[derive(Debug, Default)]
pub struct BatchPlan {
    /// Pages that the batch is about.
    pub pages: Vec<PlannedPage>,
    /// What differs for targets, by part, target and source.
    pub edits: Vec<Edit>,
    /// How far the parts of the pages are afterwards.
    pub states: BTreeMap<Part, PartState>,
}

/// A page of the batch.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct PlannedPage {
    /// The hash of its URI.
    pub hash: DocHash,
    pub source: PageRef,
    /// As it was; `None` if it was never known.
    pub before: Option<Page>,
    /// As it is; `None` if nobody knows it still.
    pub after: Option<Page>,
    /// When it was last seen, if that is news, in milliseconds.
    pub seen_ms: Option<i64>,
    /// As it was before.
    known_seen_ms: Option<i64>,
}

/// What differs for one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Edit {
    pub part: Part,
    pub target: DocHash,
    pub source: PageRef,
    /// The page in the plan.
    pub page: u32,
    /// The link: of the page as it is, or as it was if it is removed.
    pub link: u32,
    pub what: Differs,
}

/// How a link of a page differs from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Differs {
    /// The link is new.
    Added,
    /// It says something else.
    Changed,
    Lost(LossReason),
}

/// Why a link was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// The page does not have it any more.
    PageChanged,
    /// The page is gone.
    PageGone,
    /// The page has it still, but it leads elsewhere.
    TargetChanged,
}

impl LossReason {
    /// All of them, by their numbers in rows.
    pub const ALL: [LossReason; 3] =
        [LossReason::PageChanged, LossReason::PageGone, LossReason::TargetChanged];

    /// The reason as answers name it.
    pub fn name(self) -> &'static str {
        match self {
            LossReason::PageChanged => "page changed",
            LossReason::PageGone => "page gone",
            LossReason::TargetChanged => "target changed",
        }
    }
}

impl PlannedPage {
    /// Whether it is or was there.
    pub fn is_there(page: &Option<Page>) -> bool {
        page.as_ref().is_some_and(Page::is_there)
    }

    /// Whether its own row is to be written.
    pub fn is_changed(&self) -> bool {
        self.before != self.after
    }

    /// The moment up to which something is known of it.
    fn known_ms(&self) -> i64 {
        let page = self.after.as_ref().map_or(i64::MIN, |page| page.date_ms);
        page.max(self.seen_ms.or(self.known_seen_ms).unwrap_or(i64::MIN))
    }
}

/// Works out a batch.
pub fn plan(view: &dyn View, changes: &[PageChange], parts: &mut Parts) -> Result<BatchPlan> {
    let mut plan = BatchPlan { pages: load(view, changes, parts)?, ..BatchPlan::default() };
    let places: HashMap<DocHash, usize> =
        plan.pages.iter().enumerate().map(|(place, page)| (page.hash, place)).collect();
    for change in changes {
        let place = places[&keys::hash(&change.uri)];
        apply(&mut plan.pages[place], change);
    }
    plan.pages.retain(|page| page.after.is_some() && (page.is_changed() || page.seen_ms.is_some()));
    number_pages(view, &mut plan)?;
    for (place, page) in (0..).zip(&plan.pages) {
        if page.is_changed() {
            compare(page, place, parts, &mut plan.edits);
        }
    }
    plan.edits.sort_unstable_by_key(|edit| (edit.part, edit.target, edit.source));
    Ok(plan)
}

/// The pages of a batch, each once, as they are known.
fn load(view: &dyn View, changes: &[PageChange], parts: &mut Parts) -> Result<Vec<PlannedPage>> {
    let mut by_part: BTreeMap<Part, Vec<DocHash>> = BTreeMap::new();
    for change in changes {
        by_part.entry(parts.of(&change.uri)).or_default().push(keys::hash(&change.uri));
    }
    let mut pages = Vec::with_capacity(changes.len());
    for (part, mut hashes) in by_part {
        hashes.sort_unstable();
        hashes.dedup();
        let node_keys: Vec<Vec<u8>> = hashes.iter().map(|hash| keys::node(*hash)).collect();
        let nodes = view.get_many(part, &node_keys)?;
        let mut known = Vec::new();
        for (hash, node) in hashes.into_iter().zip(nodes) {
            let node = node.map(|bytes| Node::decode(&bytes)).transpose()?;
            let number = node.and_then(|node| node.page);
            if let Some(number) = number {
                known.push((pages.len(), number));
            }
            let source = PageRef { part, number: number.unwrap_or(u64::MAX) };
            pages.push(PlannedPage {
                hash,
                source,
                before: None,
                after: None,
                seen_ms: None,
                known_seen_ms: None,
            });
        }
        let get = |key: fn(u64) -> Vec<u8>| {
            let keys: Vec<Vec<u8>> = known.iter().map(|(_, number)| key(*number)).collect();
            view.get_many(part, &keys)
        };
        for (((place, _), page), seen) in known.iter().zip(get(keys::page)?).zip(get(keys::seen)?) {
            let page = page.map(|bytes| Page::decode(&bytes)).transpose()?;
            pages[*place].before = page.clone();
            pages[*place].after = page;
            pages[*place].known_seen_ms = seen.as_deref().and_then(read_seen);
        }
    }
    Ok(pages)
}

/// Reads the row of a last sighting.
pub fn read_seen(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}

/// One change of one page.
fn apply(planned: &mut PlannedPage, change: &PageChange) {
    let known_ms = planned.known_ms();
    let reported_by = planned.after.as_ref().map(|page| page.reported_by);
    let follows = change.in_order && reported_by == Some(change.job);
    let is_news = follows || change.date_ms >= known_ms;
    let date_ms = if change.in_order { change.date_ms.max(known_ms) } else { change.date_ms };
    match &change.what {
        What::Seen => {
            if is_news && PlannedPage::is_there(&planned.after) {
                planned.seen_ms = Some(date_ms);
            }
        }
        // Whose page it was is a matter of order; when it was last seen there is not.
        What::Gone(why) if is_news || change.in_order => {
            if PlannedPage::is_there(&planned.after) {
                leave(planned, change, why, date_ms);
            } else if !change.in_order {
                bury(planned, change, why);
            }
        }
        What::Missing { status } if is_news || change.in_order => {
            let why = format!("answered {status}");
            if PlannedPage::is_there(&planned.after) {
                leave(planned, change, &why, date_ms);
            } else if is_news {
                bury(planned, change, &why);
            }
            if let Some(page) = planned.after.as_mut().filter(|page| page.gone == why) {
                page.status = *status;
            }
        }
        What::Gone(_) | What::Missing { .. } => {}
        What::Page(_) if is_news => renew(planned, change, date_ms),
        What::Page(_) => {
            if change.in_order
                && let Some(page) = planned.after.as_mut().filter(|page| page.is_there())
            {
                own(&mut page.owners, change.job);
            }
        }
    }
}

/// A job has a page no more. It is gone when no other job has it.
fn leave(planned: &mut PlannedPage, change: &PageChange, why: &str, date_ms: i64) {
    let Some(page) = planned.after.as_mut() else { return };
    page.owners.retain(|owner| *owner != change.job);
    if page.owners.is_empty() {
        page.gone = why.to_owned();
        page.links.clear();
        (page.date_ms, page.reported_by) = (date_ms, change.job);
    }
}

/// Captures come in any order: that a page was gone counts against older ones also when
/// nothing else is known of it. What a crawl asked for and did not find is known as well.
fn bury(planned: &mut PlannedPage, change: &PageChange, why: &str) {
    let known_ms = planned.known_ms();
    let page = planned.after.get_or_insert_with(|| Page {
        uri: change.uri.clone(),
        first_ms: change.date_ms,
        reported_by: change.job,
        ..Page::default()
    });
    let date_ms = if change.in_order { change.date_ms.max(known_ms) } else { change.date_ms };
    (page.date_ms, page.gone) = (date_ms, why.to_owned());
}

/// Adds an owner, in order.
fn own(owners: &mut Vec<i64>, job: i64) {
    if let Err(place) = owners.binary_search(&job) {
        owners.insert(place, job);
    }
}

/// A page says something. If it says what it said, it was only seen.
fn renew(planned: &mut PlannedPage, change: &PageChange, date_ms: i64) {
    let What::Page(content) = &change.what else { return };
    let old = planned.after.take();
    let was_there = old.as_ref().is_some_and(Page::is_there);
    let old_links = old.as_ref().map_or(&[][..], |page| &page.links);
    let mut before = old_links.iter().peekable();
    let mut links = Vec::with_capacity(content.links.len());
    for link in &content.links {
        while before.next_if(|it| it.uri < link.uri).is_some() {}
        let known = before.next_if(|it| it.uri == link.uri);
        let first_s = known.map_or(seconds(date_ms), |it| it.first_s);
        links.push(PageLink::new(link.clone(), first_s));
    }
    let mut owners = old.as_ref().map_or_else(Vec::new, |page| page.owners.clone());
    own(&mut owners, change.job);
    let page = Page {
        uri: change.uri.clone(),
        date_ms,
        first_ms: old.as_ref().map_or(date_ms, |page| page.first_ms),
        reported_by: change.job,
        owners,
        // Given when it is written.
        seq: old.as_ref().map_or(0, |page| page.seq),
        status: content.status,
        title: content.title.clone(),
        server: content.server.clone(),
        gone: String::new(),
        links,
    };
    planned.after = match old {
        Some(old) if was_there && says_the_same(&old, &page) => {
            planned.seen_ms = Some(date_ms);
            Some(Page { owners: page.owners, ..old })
        }
        _ => Some(page),
    };
}

fn says_the_same(old: &Page, new: &Page) -> bool {
    old.links == new.links
        && (&old.title, &old.server, old.status) == (&new.title, &new.server, new.status)
}

/// New pages get their numbers, in the order of their hashes.
fn number_pages(view: &dyn View, plan: &mut BatchPlan) -> Result<()> {
    for page in &mut plan.pages {
        let part = page.source.part;
        if let Entry::Vacant(vacant) = plan.states.entry(part) {
            let mut state = PartState::load(view, part)?;
            state.batch += 1;
            vacant.insert(state);
        }
        let Some(state) = plan.states.get_mut(&part) else { continue };
        if page.source.number == u64::MAX {
            page.source.number = state.next_page;
            state.next_page += 1;
        }
    }
    Ok(())
}

/// What differs between a page as it was and as it is.
fn compare(page: &PlannedPage, place: u32, parts: &mut Parts, edits: &mut Vec<Edit>) {
    let had_links = page.before.as_ref().is_some_and(|page| !page.links.is_empty());
    let old_link = |at: usize| page.before.as_ref().and_then(|page| page.links.get(at));
    let new_link = |at: usize| page.after.as_ref().and_then(|page| page.links.get(at));
    let is_gone = !PlannedPage::is_there(&page.after);
    let (mut lost, mut added): (Vec<usize>, HashSet<&str>) = (Vec::new(), HashSet::new());
    let mut push = |uri: &str, link: usize, what| {
        let (part, target) = (parts.of(uri), keys::hash(uri));
        let link = u32::try_from(link).unwrap_or(u32::MAX);
        edits.push(Edit { part, target, source: page.source, page: place, link, what });
    };
    let (mut at_old, mut at_new) = (0, 0);
    loop {
        let order = match (old_link(at_old), new_link(at_new)) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.uri.cmp(&new.uri),
        };
        if order == Ordering::Less {
            lost.push(at_old);
        }
        if let Some(new) = new_link(at_new).filter(|_| order == Ordering::Greater) {
            if had_links && !new.anchor.is_empty() {
                added.insert(&new.anchor);
            }
            push(&new.uri, at_new, Differs::Added);
        }
        if let (Ordering::Equal, Some(old), Some(new)) = (order, old_link(at_old), new_link(at_new))
            && old != new
        {
            push(&new.uri, at_new, Differs::Changed);
        }
        at_old += usize::from(order != Ordering::Greater);
        at_new += usize::from(order != Ordering::Less);
    }
    for at in lost {
        let Some(link) = old_link(at) else { continue };
        let reason = match () {
            () if is_gone => LossReason::PageGone,
            () if added.contains(&*link.anchor) => LossReason::TargetChanged,
            () => LossReason::PageChanged,
        };
        push(&link.uri, at, Differs::Lost(reason));
    }
}
