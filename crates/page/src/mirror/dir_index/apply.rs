//! Bringing a directory index up to date by an x-file.
//!
//! Where a node stands follows from where it is in the x-file's tree. Invariants: applying an
//! x-file that has been applied changes nothing; one that does not fit is an error, and the
//! index it was to change is gone with it.

use std::collections::HashSet;
use std::io::BufRead;

use super::{DirIndex, IndexNode, PlaceId, Position};
use crate::mirror::Error;
use crate::mirror::digest::ContentDigest;
use crate::mirror::names::HashName;
use crate::mirror::xfile::{Content, Event, Node, NodeKind, Operation, Publication, Reader, Stage};

impl DirIndex {
    /// The index after a published x-file, whose bytes have this digest. One that is not newer
    /// changes nothing; one that does not follow the last is an error.
    pub fn apply<R: BufRead>(
        mut self,
        mut xfile: Reader<R>,
        sha256: ContentDigest,
    ) -> Result<DirIndex, Error> {
        let header = xfile.header().clone();
        if let Some(publication) = &header.publication {
            match self.follows(publication)? {
                Follows::IsOld => return Ok(self),
                Follows::IsNext => {}
            }
        }
        let mut changes = Changes::new(&self);
        while let Some(event) = xfile.next()? {
            match event {
                Event::Open(node) => changes.open(&mut self, &node)?,
                Event::Close => {
                    changes.open.pop();
                }
            }
        }
        changes.remove(&mut self)?;
        self.header.editor = header.editor;
        self.header.info = header.info;
        if let Some(Publication { epoch, number, .. }) = header.publication {
            self.header.position = Some(Position { epoch, number, sha256 });
        }
        Ok(self)
    }

    fn follows(&self, publication: &Publication) -> Result<Follows, Error> {
        let contradiction = |what| {
            Err(Error::Contradiction { url: format!("x-file {}", publication.number), what })
        };
        if publication.stage == Stage::Announced {
            return contradiction("it is announced, not published");
        }
        let found = publication.number;
        let Some(position) = &self.header.position else {
            return match publication.previous {
                None => Ok(Follows::IsNext),
                Some(_) => Err(Error::Gap { last: 0, found }),
            };
        };
        if position.epoch != publication.epoch {
            let (known, found) = (position.epoch.clone(), publication.epoch.clone());
            return Err(Error::OtherEpoch { known, found });
        }
        if found <= position.number {
            return Ok(Follows::IsOld);
        }
        match publication.previous {
            Some(previous) if previous.number == position.number => {
                if previous.sha256 != position.sha256 {
                    return contradiction("it follows another x-file of the same number");
                }
                Ok(Follows::IsNext)
            }
            _ => Err(Error::Gap { last: position.number, found }),
        }
    }
}

/// How an x-file stands to an index.
enum Follows {
    IsNext,
    IsOld,
}

/// A node of the x-file that is open.
#[derive(Clone, Copy)]
enum Open {
    At(PlaceId),
    Removed,
    /// No part of the structure.
    Requisite,
}

/// An x-file as it is applied.
struct Changes {
    open: Vec<Open>,
    /// The root before.
    root: Option<PlaceId>,
    seen: HashSet<HashName>,
    removed: Vec<HashName>,
}

impl Changes {
    fn new(index: &DirIndex) -> Changes {
        Changes { open: Vec::new(), root: index.root, seen: HashSet::new(), removed: Vec::new() }
    }

    fn open(&mut self, index: &mut DirIndex, node: &Node) -> Result<(), Error> {
        let contradiction = |what| Err(Error::Contradiction { url: node.url.clone(), what });
        if node.kind == Some(NodeKind::Requisite) {
            self.open.push(Open::Requisite);
            return Ok(());
        }
        if !self.seen.insert(node.hash_name) {
            return contradiction("twice in one x-file");
        }
        if node.operation == Operation::Remove {
            self.removed.push(node.hash_name);
            self.open.push(Open::Removed);
            return Ok(());
        }
        let parent = match self.open.last() {
            None => None,
            Some(Open::At(parent)) => Some(*parent),
            Some(Open::Removed) => return contradiction("below something that is removed"),
            Some(Open::Requisite) => return contradiction("below something that is no page"),
        };
        if node.operation != Operation::Keep {
            if node.content == Content::Pending {
                return contradiction("its content is pending");
            }
            self.open.push(Open::At(self.put(index, node, parent)));
            return Ok(());
        }
        match index.id(node.hash_name) {
            Some(id) if index.places[id].parent == parent => self.open.push(Open::At(id)),
            Some(_) => return contradiction("kept, but it stands elsewhere"),
            None => return contradiction("kept, but it is not there"),
        }
        Ok(())
    }

    /// Adds a node, or changes it, wherever it was.
    fn put(&self, index: &mut DirIndex, node: &Node, parent: Option<PlaceId>) -> PlaceId {
        let previous = node.previous_url.as_deref().map(HashName::of);
        let previous = previous.filter(|it| !self.seen.contains(it)).and_then(|it| index.id(it));
        let known = index.id(node.hash_name).or(previous);
        let order = node.order.unwrap_or_else(|| match known {
            Some(id) => index.places[id].node.order,
            None => index.order_behind(parent),
        });
        let changed = IndexNode::of(node, order);
        match known {
            None => index.insert(changed, parent),
            Some(id) => {
                // Every node above it in the x-file has found its place, and is another one.
                index.replace(id, changed, parent);
                id
            }
        }
    }

    /// Takes away what was removed, when everything else has found its place.
    fn remove(self, index: &mut DirIndex) -> Result<(), Error> {
        // What stands deepest goes first; what is moved below another goes with it.
        let mut removed: Vec<(usize, PlaceId)> = Vec::new();
        for hash_name in self.removed {
            let Some(id) = index.id(hash_name) else { continue };
            let above = std::iter::successors(Some(id), |&id| index.places[id].parent);
            removed.push((above.count(), id));
        }
        removed.sort_unstable();
        for (_, id) in removed.into_iter().rev() {
            if !index.places[id].children.is_empty() {
                let url = index.places[id].node.url.clone();
                return Err(Error::Contradiction {
                    url,
                    what: "removed, but not what is below it",
                });
            }
            index.remove(id);
        }
        // Another root has come, and what was one has neither moved nor gone.
        let left = self.root.filter(|&id| index.root != Some(id)).map(|id| &index.places[id]);
        match left {
            Some(place) if place.parent.is_none() && index.id(place.node.hash_name).is_some() => {
                let url = place.node.url.clone();
                Err(Error::Contradiction { url, what: "a second root" })
            }
            _ => Ok(()),
        }
    }
}
