//! The directory index `dir.xml`: the structure of a site as a mirror has it.
//!
//! Like an x-file without operations: `website` with `editor`, `info` and `codec`, and a tree
//! of nodes with `title`, `name`, `url`, `refreshRate`, `hashName`, `level` and `nodeList`
//! (`docs/formats/dir.md`). [`DirIndex::apply`] brings it up to date by an x-file; [`delta`]
//! is the way back. Invariants: every URL has one place; siblings are sorted by their order
//! and then by hash name, so that the same structure is the same bytes however it came about.

mod apply;
mod delta;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeSet, HashMap};

pub use self::delta::delta;
use super::digest::ContentDigest;
use super::names::HashName;
use super::xfile::{Content, Node, NodeKind};

/// The version of the format.
pub const FORMAT: u32 = 1;

/// The structure of a site.
#[derive(Debug, Clone, Default)]
pub struct DirIndex {
    /// What is said of the site.
    pub header: IndexHeader,
    places: Vec<Place>,
    by_name: HashMap<HashName, PlaceId>,
    root: Option<PlaceId>,
    free: Vec<PlaceId>,
}

/// What a directory index says before its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexHeader {
    /// Who is responsible for the rules of this site.
    pub editor: String,
    /// What the site is.
    pub info: String,
    /// The encoding of the site's pages.
    pub codec: String,
    /// The x-file that was applied last.
    pub position: Option<Position>,
}

/// How far in the row of x-files an index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The epoch of the x-file that was applied last.
    pub epoch: String,
    /// Its number.
    pub number: u64,
    /// The digest of its bytes.
    pub sha256: ContentDigest,
}

/// A page in the structure of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexNode {
    /// Where it is, with its fragment.
    pub url: String,
    /// Its title.
    pub name: String,
    /// The hash of its URL.
    pub hash_name: HashName,
    /// What it is, if an x-file said so.
    pub kind: Option<NodeKind>,
    /// Its place among its siblings.
    pub order: i64,
    /// How often it is asked again, in seconds.
    pub refresh_rate_s: Option<u64>,
    /// What is in it.
    pub content: Content,
    /// When it changed by its own account, in milliseconds.
    pub last_modified_ms: Option<i64>,
    /// Its validator.
    pub etag: Option<String>,
}

/// An index into `places`.
type PlaceId = usize;

/// A node and where it is in the tree.
#[derive(Debug, Clone)]
struct Place {
    node: IndexNode,
    parent: Option<PlaceId>,
    children: BTreeSet<Rank>,
}

/// What siblings are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    order: i64,
    hash_name: HashName,
    id: PlaceId,
}

/// A node met on a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visited<'a> {
    /// The node.
    pub node: &'a IndexNode,
    /// Nodes above it.
    pub level: usize,
}

impl IndexNode {
    fn of(node: &Node, order: i64) -> IndexNode {
        IndexNode {
            url: node.url.clone(),
            name: node.name.clone(),
            hash_name: node.hash_name,
            kind: node.kind,
            order,
            refresh_rate_s: node.refresh_rate_s,
            content: node.content.clone(),
            last_modified_ms: node.last_modified_ms,
            etag: node.etag.clone(),
        }
    }
}

impl DirIndex {
    /// An index of a site of which nothing is known yet.
    pub fn new(header: IndexHeader) -> DirIndex {
        DirIndex { header, ..DirIndex::default() }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The node of this name.
    pub fn get(&self, hash_name: HashName) -> Option<&IndexNode> {
        Some(&self.places[*self.by_name.get(&hash_name)?].node)
    }

    /// The node above the one of this name.
    pub fn parent(&self, hash_name: HashName) -> Option<&IndexNode> {
        let parent = self.places[*self.by_name.get(&hash_name)?].parent?;
        Some(&self.places[parent].node)
    }

    /// The nodes directly below the one of this name, in order.
    pub fn children(&self, hash_name: HashName) -> impl Iterator<Item = &IndexNode> {
        let id = self.by_name.get(&hash_name);
        let ranks = id.into_iter().flat_map(|&id| &self.places[id].children);
        ranks.map(|rank| &self.places[rank.id].node)
    }

    /// Every node: each before those below it, siblings in order.
    pub fn walk(&self) -> impl Iterator<Item = Visited<'_>> {
        let mut open: Vec<(PlaceId, usize)> = self.root.into_iter().map(|root| (root, 0)).collect();
        std::iter::from_fn(move || {
            let (id, level) = open.pop()?;
            let place = &self.places[id];
            open.extend(place.children.iter().rev().map(|rank| (rank.id, level + 1)));
            Some(Visited { node: &place.node, level })
        })
    }

    fn id(&self, hash_name: HashName) -> Option<PlaceId> {
        self.by_name.get(&hash_name).copied()
    }

    fn rank(&self, id: PlaceId) -> Rank {
        let node = &self.places[id].node;
        Rank { order: node.order, hash_name: node.hash_name, id }
    }

    /// The order of a node behind all others below `parent`.
    fn order_behind(&self, parent: Option<PlaceId>) -> i64 {
        let last = parent.and_then(|parent| self.places[parent].children.last());
        last.map_or(0, |last| last.order.saturating_add(1))
    }

    /// Puts a node that is not there below `parent`; without one it is the root.
    fn insert(&mut self, node: IndexNode, parent: Option<PlaceId>) -> PlaceId {
        let place = Place { node, parent, children: BTreeSet::new() };
        let hash_name = place.node.hash_name;
        let id = match self.free.pop() {
            Some(id) => {
                self.places[id] = place;
                id
            }
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        };
        self.by_name.insert(hash_name, id);
        self.attach(id, parent);
        id
    }

    /// Puts other facts into a node, which may have another name and place now; what is below it
    /// goes with it.
    fn replace(&mut self, id: PlaceId, node: IndexNode, parent: Option<PlaceId>) {
        self.detach(id);
        self.by_name.remove(&self.places[id].node.hash_name);
        self.by_name.insert(node.hash_name, id);
        self.places[id].node = node;
        self.attach(id, parent);
    }

    /// Takes a node away that has none below it.
    fn remove(&mut self, id: PlaceId) {
        self.detach(id);
        self.by_name.remove(&self.places[id].node.hash_name);
        self.free.push(id);
    }

    fn attach(&mut self, id: PlaceId, parent: Option<PlaceId>) {
        self.places[id].parent = parent;
        let rank = self.rank(id);
        match parent {
            Some(parent) => {
                self.places[parent].children.insert(rank);
            }
            None => self.root = Some(id),
        }
    }

    fn detach(&mut self, id: PlaceId) {
        let rank = self.rank(id);
        match self.places[id].parent.take() {
            Some(parent) => {
                self.places[parent].children.remove(&rank);
            }
            None if self.root == Some(id) => self.root = None,
            None => {}
        }
    }
}

/// The same structure and the same facts, however they came about.
impl PartialEq for DirIndex {
    fn eq(&self, other: &DirIndex) -> bool {
        self.header == other.header && self.walk().eq(other.walk())
    }
}

impl Eq for DirIndex {}
