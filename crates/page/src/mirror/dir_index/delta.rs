//! What leads from one directory index to another, as the tree of an x-file.

use std::collections::HashMap;

use super::{DirIndex, IndexNode, PlaceId};
use crate::mirror::names::HashName;
use crate::mirror::xfile::{Node, Operation};

/// The nodes of an x-file that leads from `old` to `new`, with those above them kept; `None` when
/// neither has any. The root alone, kept, says that nothing changed.
///
/// Applying it to `old` gives `new`, whatever the two are.
pub fn delta(old: &DirIndex, new: &DirIndex) -> Option<Node> {
    let mut below = Below::default();
    let new_root = new.root.map(|root| new.places[root].node.hash_name);
    let is_removed = |node: &IndexNode| new.id(node.hash_name).is_none();
    // From the last node to the first: what is below a node is complete when its turn comes.
    for id in preorder(old).into_iter().rev() {
        let place = &old.places[id];
        if !is_removed(&place.node) {
            continue;
        }
        let node = below.take(&place.node, Operation::Remove);
        match place.parent.map(|parent| old.places[parent].node.hash_name).or(new_root) {
            Some(parent) => below.add(parent, node),
            None => return Some(node),
        }
    }
    for id in preorder(new).into_iter().rev() {
        let place = &new.places[id];
        let parent = place.parent.map(|parent| new.places[parent].node.hash_name);
        let operation = match old.id(place.node.hash_name) {
            None => Operation::Add,
            Some(known) => {
                let known = &old.places[known];
                let known_parent = known.parent.map(|parent| old.places[parent].node.hash_name);
                let is_same = known.node == place.node && known_parent == parent;
                if is_same { Operation::Keep } else { Operation::Update }
            }
        };
        let Some(parent) = parent else { return Some(below.take(&place.node, operation)) };
        if operation != Operation::Keep || below.has(place.node.hash_name) {
            let node = below.take(&place.node, operation);
            below.add(parent, node);
        }
    }
    None
}

/// Nodes that wait for the one above them, the last first.
#[derive(Default)]
struct Below(HashMap<HashName, Vec<Node>>);

impl Below {
    fn add(&mut self, parent: HashName, node: Node) {
        self.0.entry(parent).or_default().push(node);
    }

    fn has(&self, parent: HashName) -> bool {
        self.0.contains_key(&parent)
    }

    /// A node, with those that waited for it.
    fn take(&mut self, of: &IndexNode, operation: Operation) -> Node {
        let mut node_list = self.0.remove(&of.hash_name).unwrap_or_default();
        node_list.reverse();
        let node = Node { node_list, ..Node::new(&of.url, &of.name, operation) };
        match operation {
            // Where it is and what it is called is enough.
            Operation::Remove | Operation::Keep => Node { kind: of.kind, ..node },
            Operation::Add | Operation::Update => Node {
                kind: of.kind,
                order: Some(of.order),
                refresh_rate_s: of.refresh_rate_s,
                content: of.content.clone(),
                last_modified_ms: of.last_modified_ms,
                etag: of.etag.clone(),
                ..node
            },
        }
    }
}

fn preorder(index: &DirIndex) -> Vec<PlaceId> {
    let mut all = Vec::with_capacity(index.len());
    let mut open: Vec<PlaceId> = index.root.into_iter().collect();
    while let Some(id) = open.pop() {
        all.push(id);
        open.extend(index.places[id].children.iter().rev().map(|rank| rank.id));
    }
    all
}
