//! Nodes of an x-file: what stands where in the site before and after, and what that means.
//!
//! Invariant: an operation follows from comparing two states of the site, not from what was
//! delivered.

use super::columns::{COLUMN_ORDER, Column, Columns, REQUISITE_ORDER, Rank, article_order};
use super::member::Member;
use crate::mirror::digest::Digest;
use page::mirror::names::HashName;
use page::mirror::xfile::{Content, Node, NodeKind, Operation, Stored};
use serde::{Deserialize, Serialize};

/// A state of the site, by its columns.
pub(super) struct Site<'c> {
    pub(super) columns: &'c Columns,
}

/// Where a node stands and what it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed<'a> {
    pub(super) parent: Option<HashName>,
    pub(super) rank: Rank,
    name: &'a str,
    kind: NodeKind,
    content: Option<PlacedContent<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlacedContent<'a> {
    sha256: Digest,
    media_type: &'a str,
    charset: Option<&'a str>,
}

impl<'c> Site<'c> {
    /// The node of a URL: a column, a member, both or neither.
    pub(super) fn node<'a>(
        &'a self,
        hash: HashName,
        member: Option<&'a Member>,
    ) -> Option<Placed<'a>> {
        let content = member.map(|member| PlacedContent {
            sha256: member.sha256,
            media_type: &member.media_type,
            charset: member.charset.as_deref(),
        });
        let title = member.map_or("", |member| &*member.title);
        if let Some(column) = self.columns.get(hash) {
            let rank = Rank { order: COLUMN_ORDER, hash };
            let name = if column.name.is_empty() { title } else { &column.name };
            return Some(Placed {
                parent: column.parent,
                rank,
                name,
                kind: NodeKind::Column,
                content,
            });
        }
        let member = member?;
        Some(match member.is_requisite {
            true => Placed {
                parent: self.columns.root(),
                rank: Rank { order: REQUISITE_ORDER, hash },
                name: title,
                kind: NodeKind::Requisite,
                content,
            },
            false => Placed {
                parent: self.columns.parent_of(member),
                rank: Rank { order: article_order(member.last_modified_ms), hash },
                name: title,
                kind: NodeKind::Article,
                content,
            },
        })
    }
}

impl Placed<'_> {
    pub(super) fn is_article(&self) -> bool {
        self.kind == NodeKind::Article
    }

    pub(super) fn is_column(&self) -> bool {
        self.kind == NodeKind::Column
    }
}

/// What happened to a node between two states.
pub(super) fn operation(
    before: Option<&Placed<'_>>,
    after: Option<&Placed<'_>>,
) -> Option<Operation> {
    match (before, after) {
        (None, Some(_)) => Some(Operation::Add),
        (Some(_), None) => Some(Operation::Remove),
        (Some(before), Some(after)) if before != after => Some(Operation::Update),
        _ => None,
    }
}

/// A node as it waits to be written in the order of the tree.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Waiting {
    url: String,
    name: String,
    operation: u8,
    kind: u8,
    order: i64,
    stored: Option<WaitingContent>,
    last_modified_ms: Option<i64>,
    etag: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WaitingContent {
    sha256: Digest,
    length: u64,
    media_type: String,
    charset: Option<String>,
    status: Option<u16>,
}

impl Waiting {
    /// A node that is there after the x-file.
    pub(super) fn new(
        placed: &Placed<'_>,
        operation: Operation,
        member: Option<&Member>,
        column: Option<&Column>,
    ) -> Waiting {
        let url =
            member.map(|it| &it.url).or(column.map(|it| &it.url)).cloned().unwrap_or_default();
        let says_content = operation != Operation::Keep;
        Waiting {
            url,
            name: placed.name.to_owned(),
            operation: index_of(Operation::ALL, operation),
            kind: index_of(NodeKind::ALL, placed.kind),
            order: placed.rank.order,
            stored: member.filter(|_| says_content).map(|member| WaitingContent {
                sha256: member.sha256,
                length: member.length,
                media_type: member.media_type.clone(),
                charset: member.charset.clone(),
                status: member.status,
            }),
            last_modified_ms: member.and_then(|it| it.last_modified_ms),
            etag: member.filter(|_| says_content).and_then(|it| it.etag.clone()),
        }
    }

    /// A node of which no more is said than its name.
    pub(super) fn bare(
        url: &str,
        name: &str,
        operation: Operation,
        placed: NodeKind,
        order: i64,
    ) -> Waiting {
        Waiting {
            url: url.to_owned(),
            name: name.to_owned(),
            operation: index_of(Operation::ALL, operation),
            kind: index_of(NodeKind::ALL, placed),
            order,
            stored: None,
            last_modified_ms: None,
            etag: None,
        }
    }

    pub(super) fn into_node(self) -> Node {
        let operation = Operation::ALL[usize::from(self.operation)];
        let content = self.stored.map(|stored| {
            Content::Stored(Box::new(Stored {
                sha256: stored.sha256.into(),
                length: stored.length,
                media_type: stored.media_type,
                charset: stored.charset,
                status: stored.status,
                fetched_ms: None,
            }))
        });
        Node {
            kind: Some(NodeKind::ALL[usize::from(self.kind)]),
            order: (operation != Operation::Remove).then_some(self.order),
            content: content.unwrap_or_default(),
            last_modified_ms: self.last_modified_ms,
            etag: self.etag,
            ..Node::new(&self.url, &self.name, operation)
        }
    }
}

fn index_of<T: PartialEq>(all: &[T], one: T) -> u8 {
    let at = all.iter().position(|it| *it == one);
    u8::try_from(at.expect("the list has every value")).expect("few values")
}
