//! The columns of a site, from what its pages say of them.
//!
//! Without rules a page names the columns that it is in, from the site down. Pages may disagree;
//! then the shortest way to a column counts, and of those the first in the order of text. With
//! rules, columns and lists name what they lead to; there, too, the shortest way from the site
//! counts. So columns follow from the set of members alone, in whatever order they came, and no
//! column is below itself: what is above it has a shorter way.

use super::member::{ColumnName, Member, Section};
use page::mirror::names::HashName;
use std::collections::BTreeMap;

/// The order of a column among its siblings: before all articles.
pub(super) const COLUMN_ORDER: i64 = i64::MIN;
/// The order of a requisite: behind all else.
pub(super) const REQUISITE_ORDER: i64 = i64::MAX;
/// The order of an article that does not say when it changed.
const UNDATED_ORDER: i64 = i64::MAX - 1;

/// The depth of a column that no way leads to.
const UNREACHED: usize = usize::MAX;

/// A place among siblings: by order, then by hash name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) order: i64,
    pub(super) hash: HashName,
}

impl Rank {
    const BYTES: usize = 24;

    fn key(self) -> [u8; Rank::BYTES] {
        let mut key = [0; Rank::BYTES];
        // So that numbers below 0 sort before the others.
        let order = self.order.cast_unsigned() ^ (1 << 63);
        key[..8].copy_from_slice(&order.to_be_bytes());
        key[8..].copy_from_slice(self.hash.as_bytes());
        key
    }
}

/// The order of an article: the newest first.
pub(super) fn article_order(last_modified_ms: Option<i64>) -> i64 {
    last_modified_ms.map_or(UNDATED_ORDER, |it| -it.clamp(-i64::MAX / 2, i64::MAX / 2))
}

/// A column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) url: String,
    pub(super) name: String,
    depth: usize,
    /// `None` for the site.
    pub(super) parent: Option<HashName>,
    parent_url: String,
    /// The first of its articles.
    pub(super) newest: Option<Newest>,
    /// Whether the x-file has one of its articles.
    pub(super) is_marked: bool,
}

/// The article that marks how far a column has come.
#[derive(Debug, Clone)]
pub(super) struct Newest {
    pub(super) rank: Rank,
    pub(super) url: String,
    pub(super) title: String,
}

/// All columns of a state of the site.
#[derive(Debug, Default)]
pub(super) struct Columns {
    by_hash: BTreeMap<HashName, Column>,
    root: Option<HashName>,
    /// What columns lead to by the rules, sorted.
    claims: Vec<Claim>,
}

/// That a column or list leads to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    item: HashName,
    column: HashName,
}

impl Columns {
    /// Takes in what a page says of its columns.
    pub(super) fn observe(&mut self, member: &Member) {
        if let Some(section) = &member.section {
            self.observe_section(member, section);
        }
        for (depth, column) in member.columns.iter().enumerate() {
            let parent_url = match depth {
                0 => "",
                _ => &member.columns[depth - 1].url,
            };
            self.observe_column(depth, parent_url, column);
        }
    }

    /// Takes in a column or list by the rules.
    fn observe_section(&mut self, member: &Member, section: &Section) {
        let column = member.hash();
        let name = match section.name.is_empty() {
            true => &member.title,
            false => &section.name,
        };
        let items = section.items.iter().map(HashName::from_bytes);
        self.claims.extend(items.map(|item| Claim { item, column }));
        self.by_hash.insert(
            column,
            Column {
                url: member.url.clone(),
                name: name.clone(),
                depth: UNREACHED,
                parent: None,
                parent_url: String::new(),
                newest: None,
                is_marked: false,
            },
        );
    }

    fn observe_column(&mut self, depth: usize, parent_url: &str, column: &ColumnName) {
        let hash = HashName::of(&column.url);
        if let Some(known) = self.by_hash.get(&hash) {
            let known = (known.depth, &*known.parent_url, &*known.name);
            if known <= (depth, parent_url, &*column.name) {
                return;
            }
        }
        self.by_hash.insert(
            hash,
            Column {
                url: column.url.clone(),
                name: column.name.clone(),
                depth,
                parent: (depth > 0).then(|| HashName::of(parent_url)),
                parent_url: parent_url.to_owned(),
                newest: None,
                is_marked: false,
            },
        );
    }

    /// Puts all below one root, when every page was observed: the first in the order of URLs.
    pub(super) fn finish(&mut self) {
        self.claims.sort_unstable();
        self.claims.dedup();
        self.reach_sections();
        let tops = self.by_hash.iter().filter(|(_, column)| column.parent.is_none());
        let root = tops.min_by(|(_, a), (_, b)| a.url.cmp(&b.url)).map(|(hash, _)| *hash);
        for (hash, column) in &mut self.by_hash {
            if column.parent.is_none() && Some(*hash) != root {
                column.parent = root;
            }
        }
        self.root = root;
    }

    /// Finds the shortest way to each column that the rules know, from those that no other leads
    /// to, or from the first in the order of URLs.
    fn reach_sections(&mut self) {
        let is_open = |column: &&Column| column.depth == UNREACHED;
        let Some(first) = self.by_hash.values().filter(is_open).min_by(|a, b| a.url.cmp(&b.url))
        else {
            return;
        };
        let mut reached = vec![HashName::of(&first.url)];
        let is_led_to = |hash: &HashName| {
            let claims = self.claims_of(*hash);
            claims.iter().any(|it| it.column != *hash)
        };
        let open = self.by_hash.iter().filter(|(_, column)| column.depth == UNREACHED);
        reached.extend(open.map(|(hash, _)| *hash).filter(|hash| !is_led_to(hash)));
        let mut depth = 0;
        while !reached.is_empty() {
            for hash in reached {
                if let Some(column) = self.by_hash.get_mut(&hash) {
                    column.depth = column.depth.min(depth);
                }
            }
            depth += 1;
            let led_to = self.by_hash.iter().filter_map(|(hash, column)| {
                let parent = self.claimed(*hash).filter(|_| column.depth == UNREACHED)?;
                Some((*hash, parent))
            });
            let next: Vec<(HashName, HashName)> = led_to.collect();
            for (hash, parent) in &next {
                if let Some(column) = self.by_hash.get_mut(hash) {
                    column.parent = Some(*parent);
                }
            }
            reached = next.into_iter().map(|(hash, _)| hash).collect();
        }
    }

    fn claims_of(&self, item: HashName) -> &[Claim] {
        let begin = self.claims.partition_point(|claim| claim.item < item);
        let end = self.claims.partition_point(|claim| claim.item <= item);
        &self.claims[begin..end]
    }

    /// The column that leads to a page by the rules: the one nearest to the site.
    fn claimed(&self, item: HashName) -> Option<HashName> {
        let columns = self.claims_of(item).iter().map(|claim| claim.column);
        let known = columns.filter_map(|hash| Some((self.by_hash.get(&hash)?.depth, hash)));
        known.filter(|(depth, hash)| *depth != UNREACHED && *hash != item).min().map(|it| it.1)
    }

    /// What an article stands below.
    pub(super) fn parent_of(&self, member: &Member) -> Option<HashName> {
        let claimed = || self.claimed(member.hash());
        let named = || member.columns.last().map(|column| HashName::of(&column.url));
        claimed().or_else(named).filter(|hash| self.by_hash.contains_key(hash)).or(self.root)
    }

    /// A site of which no page is left keeps its root.
    pub(super) fn keep_root_of(&mut self, old: &Columns) {
        let Some(root) = old.root.filter(|_| self.root.is_none()) else { return };
        let column = Column { newest: None, is_marked: false, ..old.by_hash[&root].clone() };
        self.by_hash.insert(root, column);
        self.root = Some(root);
    }

    /// A site that has requisites only: its root is where the first of them is.
    pub(super) fn root_at(&mut self, url: &str) {
        self.observe_column(0, "", &ColumnName { url: url.to_owned(), name: String::new() });
        self.finish();
    }

    pub(super) fn root(&self) -> Option<HashName> {
        self.root
    }

    pub(super) fn get(&self, hash: HashName) -> Option<&Column> {
        self.by_hash.get(&hash)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HashName, &Column)> {
        self.by_hash.iter().map(|(hash, column)| (*hash, column))
    }

    /// Takes in an article of a column, which may be its newest.
    pub(super) fn observe_article(&mut self, parent: HashName, rank: Rank, member: &Member) {
        let Some(column) = self.by_hash.get_mut(&parent) else { return };
        if column.newest.as_ref().is_none_or(|newest| rank < newest.rank) {
            let (url, title) = (member.url.clone(), member.title.clone());
            column.newest = Some(Newest { rank, url, title });
        }
    }

    /// Notes that the x-file has an article of this column.
    pub(super) fn mark(&mut self, parent: HashName) {
        if let Some(column) = self.by_hash.get_mut(&parent) {
            column.is_marked = true;
        }
    }

    /// Where a node below `parent` stands in the tree: the ranks of all above it and its own.
    pub(super) fn key(&self, parent: Option<HashName>, rank: Rank) -> Vec<u8> {
        let above = std::iter::successors(parent, |hash| self.by_hash.get(hash)?.parent);
        let mut ranks: Vec<Rank> = above.map(|hash| Rank { order: COLUMN_ORDER, hash }).collect();
        ranks.reverse();
        ranks.push(rank);
        ranks.into_iter().flat_map(Rank::key).collect()
    }
}

/// Whether the node at `key` stands below the one at `above`.
pub(super) fn is_below(key: &[u8], above: &[u8]) -> bool {
    key.len() > above.len() && key.starts_with(above)
}
