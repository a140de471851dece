//! Folding the journal into an x-file, bucket by bucket.
//!
//! First the journal is merged into the index of members; then every member is compared with
//! what it was, in the light of the columns before and after; what differs is written in the
//! order of the tree. Invariants: the last operation for a URL wins; a bucket and the columns are
//! in memory, never all members; doing it again gives the same bytes.

use super::MEMBERS;
use super::columns::{Columns, Rank, is_below};
use super::journal::{self, Entry};
use super::member::{Member, members};
use super::nodes::{Placed, Site, Waiting, operation};
use super::publish::Plan;
use crate::mirror::Mirror;
use crate::mirror::disk::Written;
use crate::mirror::sealed::{Kind, read_record, seal, write_record};
use crate::mirror::sorter::{Record, Sorted, Sorter};
use crate::mirror::versions::{BUCKETS, Versions};
use crate::mirror::x_files;
use page::mirror::names::HashName;
use page::mirror::xfile::{Header, NodeKind, Operation, Writer};
use std::collections::{BTreeMap, BTreeSet};
use store::{Error, Result};

/// Folds what a plan covers; `None` if that says nothing new.
pub(super) fn fold<'m>(
    mirror: &'m Mirror,
    plan: &Plan,
    header: &Header,
    is_due: bool,
) -> Result<Option<Written<'m>>> {
    let old = Versions::open(&mirror.disk, MEMBERS, plan.number - 1)?;
    // Nothing of an attempt that broke off may be left among what is written now.
    old.tidy()?;
    let (mut before, mut after) = (Columns::default(), Columns::default());
    let is_changed =
        merge(mirror, plan, &old, Observed { before: &mut before, after: &mut after })?;
    if !is_changed && !is_due {
        return Ok(None);
    }
    let new = Versions::open(&mirror.disk, MEMBERS, plan.number)?;
    before.finish();
    after.finish();
    after.keep_root_of(&before);
    if after.root().is_none() {
        after.root_at(&first_origin(&new)?);
    }
    let nodes = nodes(mirror, &before, &mut after, &States { old: Some(&old), new: &new })?;
    write(mirror, plan.number, header, nodes).map(Some)
}

/// The members before and after.
pub(super) struct States<'v, 'm> {
    /// `None` for nothing.
    pub(super) old: Option<&'v Versions<'m>>,
    pub(super) new: &'v Versions<'m>,
}

/// What differs between two states, in the order of the tree.
pub(super) fn nodes(
    mirror: &Mirror,
    before: &Columns,
    after: &mut Columns,
    states: &States<'_, '_>,
) -> Result<Sorted> {
    let sorter = Sorter::new(&mirror.disk);
    let mut difference = Difference { before, after, sorter, columns_seen: BTreeSet::new() };
    for bucket in 0..BUCKETS {
        let old = states.old.map(|old| members(old, bucket)).transpose()?;
        difference.bucket(old.unwrap_or_default(), members(states.new, bucket)?)?;
    }
    difference.columns()?;
    difference.marks()?;
    difference.sorter.finish()
}

/// The columns that are observed while members are merged.
struct Observed<'c> {
    before: &'c mut Columns,
    after: &'c mut Columns,
}

/// Merges the journal into the index of members; whether anything changes.
fn merge(mirror: &Mirror, plan: &Plan, old: &Versions<'_>, observed: Observed<'_>) -> Result<bool> {
    let mut operations = Operations::new(journal::sorted(mirror, plan.through)?)?;
    let mut is_changed = false;
    for bucket in 0..BUCKETS {
        let members_before = members(old, bucket)?;
        members_before.iter().for_each(|member| observed.before.observe(member));
        let changes = operations.of_bucket(bucket)?;
        if changes.is_empty() && !plan.has_new_rules {
            members_before.iter().for_each(|member| observed.after.observe(member));
            continue;
        }
        let members_after = apply(mirror, plan, &members_before, changes)?;
        members_after.iter().for_each(|member| observed.after.observe(member));
        if members_after != members_before {
            is_changed = true;
            old.write(bucket, plan.number, &seal(Kind::SpiderMembers, &members_after))?;
        }
    }
    Ok(is_changed)
}

/// The members of a bucket after operations, by hash name.
fn apply(
    mirror: &Mirror,
    plan: &Plan,
    before: &[Member],
    changes: Vec<Entry>,
) -> Result<Vec<Member>> {
    let mut after: BTreeMap<HashName, Member> =
        before.iter().map(|member| (member.hash(), member.clone())).collect();
    for change in changes {
        let hash = HashName::of(&change.url);
        match change.content {
            None => {
                after.remove(&hash);
            }
            Some(member) => match after.get(&hash) {
                // Other validators alone are no news.
                Some(known) if known.is_same(&member) => {}
                _ => {
                    after.insert(hash, member);
                }
            },
        }
    }
    if plan.has_new_rules {
        for member in after.values_mut().filter(|member| !member.is_requisite) {
            let bytes = mirror.disk.blob(&member.sha256)?;
            member.place(mirror, &bytes);
        }
    }
    Ok(after.into_values().collect())
}

/// The operations of the journal, by bucket.
struct Operations {
    sorted: Sorted,
    next: Option<Record>,
}

impl Operations {
    fn new(mut sorted: Sorted) -> Result<Operations> {
        let next = sorted.next()?;
        Ok(Operations { sorted, next })
    }

    /// Those of a bucket, which are asked for in order.
    fn of_bucket(&mut self, bucket: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        while let Some(record) = self.next.take_if(|it| usize::from(it.key[0]) == bucket) {
            entries.push(read_record(&record.value, "an entry of the journal")?);
            self.next = self.sorted.next()?;
        }
        Ok(entries)
    }
}

/// Where the root of a site is that has requisites only.
fn first_origin(new: &Versions<'_>) -> Result<String> {
    for bucket in 0..BUCKETS {
        if let Some(member) = members(new, bucket)?.first() {
            let origin = url::Url::parse(&member.url).ok().and_then(|it| it.join("/").ok());
            return Ok(origin.map_or_else(|| member.url.clone(), Into::into));
        }
    }
    Err(Error::invariant("an x-file is asked for of a mirror that never had a document"))
}

/// What differs between two states of the site.
struct Difference<'m, 'c> {
    before: &'c Columns,
    after: &'c mut Columns,
    sorter: Sorter<'m>,
    /// Columns that were compared already: they are documents too.
    columns_seen: BTreeSet<HashName>,
}

impl Difference<'_, '_> {
    /// Compares the members of a bucket, both by hash name.
    fn bucket(&mut self, before: Vec<Member>, after: Vec<Member>) -> Result<()> {
        let mut all: BTreeMap<HashName, Pair> = BTreeMap::new();
        for member in before {
            let hash = member.hash();
            all.entry(hash).or_default().before = Some(member);
        }
        for member in after {
            let hash = member.hash();
            all.entry(hash).or_default().after = Some(member);
        }
        all.into_iter().try_for_each(|(hash, pair)| self.compare(hash, &pair))
    }

    /// Compares one URL before and after.
    fn compare(&mut self, hash: HashName, pair: &Pair) -> Result<()> {
        if self.before.get(hash).is_some() || self.after.get(hash).is_some() {
            self.columns_seen.insert(hash);
        }
        let before = Site { columns: self.before };
        let before = before.node(hash, pair.before.as_ref());
        let columns = &*self.after;
        let site = Site { columns };
        let after = site.node(hash, pair.after.as_ref());
        let is_column = after.as_ref().is_some_and(Placed::is_column);
        let found = operation(before.as_ref(), after.as_ref());
        let (Some(shown), operation) = (after.as_ref(), found.unwrap_or(Operation::Keep)) else {
            // A column that has become an article is still there; this one is gone.
            return self.removed(hash, pair);
        };
        let is_written = found.is_some() || is_column;
        let column = columns.get(hash);
        let waiting = Waiting::new(shown, operation, pair.after.as_ref(), column);
        let key = columns.key(shown.parent, shown.rank);
        let (parent, rank) = (shown.parent, shown.rank);
        let is_article = shown.is_article();
        if is_written {
            self.sorter.push(key, write_record(Vec::new(), &waiting))?;
        }
        if let (Some(parent), true, Some(member)) = (parent, is_article, &pair.after) {
            self.after.observe_article(parent, rank, member);
            if is_written {
                self.after.mark(parent);
            }
        }
        Ok(())
    }

    /// Writes that a URL is gone, where it stood if that is still there.
    fn removed(&mut self, hash: HashName, pair: &Pair) -> Result<()> {
        let before = Site { columns: self.before };
        let Some(placed) = before.node(hash, pair.before.as_ref()) else { return Ok(()) };
        let parent = placed.parent.filter(|it| self.after.get(*it).is_some());
        let parent = parent.or(self.after.root());
        let column = self.before.get(hash);
        let url = pair.before.as_ref().map(|it| &it.url).or(column.map(|it| &it.url));
        let kind = if column.is_some() { NodeKind::Column } else { NodeKind::Article };
        let kind = match &pair.before {
            Some(member) if member.is_requisite && column.is_none() => NodeKind::Requisite,
            _ => kind,
        };
        let url = url.cloned().unwrap_or_default();
        let waiting = Waiting::bare(&url, "", Operation::Remove, kind, placed.rank.order);
        let key = self.after.key(parent, placed.rank);
        self.sorter.push(key, write_record(Vec::new(), &waiting))
    }

    /// Compares the columns that are no documents.
    fn columns(&mut self) -> Result<()> {
        let mut all: Vec<HashName> = self.before.iter().map(|(hash, _)| hash).collect();
        all.extend(self.after.iter().map(|(hash, _)| hash));
        all.sort_unstable();
        all.dedup();
        for hash in all {
            if !self.columns_seen.contains(&hash) {
                self.compare(hash, &Pair::default())?;
            }
        }
        Ok(())
    }

    /// Has every column show how far it has come: its newest article, if nothing else is there.
    fn marks(&mut self) -> Result<()> {
        for (hash, column) in self.after.iter().filter(|(_, column)| !column.is_marked) {
            let Some(newest) = &column.newest else { continue };
            let Rank { order, .. } = newest.rank;
            let waiting = Waiting::bare(
                &newest.url,
                &newest.title,
                Operation::Keep,
                NodeKind::Article,
                order,
            );
            let key = self.after.key(Some(hash), newest.rank);
            self.sorter.push(key, write_record(Vec::new(), &waiting))?;
        }
        Ok(())
    }
}

/// A document before and after.
#[derive(Default)]
struct Pair {
    before: Option<Member>,
    after: Option<Member>,
}

/// Writes nodes that come in the order of the tree.
pub(super) fn write<'m>(
    mirror: &'m Mirror,
    number: u64,
    header: &Header,
    mut nodes: Sorted,
) -> Result<Written<'m>> {
    let failed = |error| x_files::failed(&mirror.disk, number, error);
    let mut writer = Writer::new(mirror.disk.begin()?, header).map_err(failed)?;
    let mut open: Vec<Vec<u8>> = Vec::new();
    while let Some(record) = nodes.next()? {
        while open.last().is_some_and(|above| !is_below(&record.key, above)) {
            writer.close().map_err(failed)?;
            open.pop();
        }
        let waiting: Waiting = read_record(&record.value, "a node that waits to be written")?;
        writer.open(&waiting.into_node()).map_err(failed)?;
        open.push(record.key);
    }
    writer.finish().map_err(failed)?.finish()
}
