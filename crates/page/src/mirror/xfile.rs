//! X-files: what a run of a mirror added, updated and removed, as a tree of nodes.
//!
//! The elements are the seed's (`website`, `editor`, `info`, `node` with `url`, `name`,
//! `hashName`, `type`, `nodeList`), so that its own example is one; all that is ours stands in
//! attributes. `docs/formats/x-file.md` describes both. Written and read node by node
//! ([`Writer`], [`Reader`]), or as a whole ([`write`], [`read`]). Invariants: the same value is
//! always written as the same bytes, and reading them gives the value back; an operation that
//! is not known stops a reader.

mod publication;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use self::publication::{Outcome, PartCommit, Previous, Publication, Stage};
pub use self::read::{Event, Reader, read};
pub use self::write::{Writer, write};
use super::digest::ContentDigest;
use super::names::HashName;
use super::words::words;

/// The version of the format; a reader refuses a later one.
pub const FORMAT: u32 = 1;

/// An x-file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSite {
    /// What is said of the site and of the file.
    pub header: Header,
    /// The site itself, with its columns in its list.
    pub node: Node,
}

/// What an x-file says before its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Who is responsible for the rules of this site.
    pub editor: String,
    /// What the site is.
    pub info: String,
    /// What this file is; absent in files of others.
    pub publication: Option<Publication>,
}

/// A page, a column, a list, or what a page needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where it is, with its fragment.
    pub url: String,
    /// Its title.
    pub name: String,
    /// The hash of its URL.
    pub hash_name: HashName,
    /// What happened to it.
    pub operation: Operation,
    /// What it is; without, that follows from what is below it ([`Node::kind`]).
    pub kind: Option<NodeKind>,
    /// Its place among its siblings: these are sorted by it.
    pub order: Option<i64>,
    /// Whether a column was read to its end in this run, so that what is absent is gone.
    pub is_covered: bool,
    /// How often it is asked again, in seconds, if the rules say so.
    pub refresh_rate_s: Option<u64>,
    /// What is in it.
    pub content: Content,
    /// When it changed by its own account, in milliseconds.
    pub last_modified_ms: Option<i64>,
    /// Its validator.
    pub etag: Option<String>,
    /// Why it was removed.
    pub removal: Option<Removal>,
    /// Where it was before, if it moved.
    pub previous_url: Option<String>,
    /// What is below it.
    pub node_list: Vec<Node>,
}

/// What happened to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operation {
    Add,
    Update,
    Remove,
    /// Nothing: it shows where others stand, or is the newest of its column.
    Keep,
}

words!(Operation { Add = "add", Update = "update", Remove = "remove", Keep = "keep" });

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum NodeKind {
    /// Has lists or columns below it.
    Column,
    /// Has articles below it.
    List,
    Article,
    /// What pages need to be shown; no part of the site's structure.
    Requisite,
}

words!(NodeKind { Column = "column", List = "list", Article = "article", Requisite = "requisite" });

/// What is known of a node's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Content {
    /// Nothing, or it is of no interest.
    #[default]
    Unknown,
    /// It is being fetched.
    Pending,
    /// They are stored.
    Stored(Box<Stored>),
}

/// Bytes that are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What they are.
    pub sha256: ContentDigest,
    /// How many.
    pub length: u64,
    /// Their media type, such as `text/html`.
    pub media_type: String,
    /// The encoding of their text.
    pub charset: Option<String>,
    /// The status that they came with.
    pub status: Option<u16>,
    /// When they came, in milliseconds.
    pub fetched_ms: Option<i64>,
}

/// How a removal was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// Why.
    pub reason: RemovalReason,
    /// When it was first missed, in milliseconds.
    pub first_missing_ms: i64,
    /// How often that was found again.
    pub confirmations: u32,
}

/// Why a node was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// 404 or 410.
    Gone,
    /// Absent from a column that was covered.
    Absent,
    /// `robots.txt` forbids it now.
    Robots,
    /// The rules do not reach it any more.
    OutOfScope,
    /// It was forgotten on request.
    Forgotten,
}

words!(RemovalReason {
    Gone = "gone",
    Absent = "absent",
    Robots = "robots",
    OutOfScope = "out-of-scope",
    Forgotten = "forgotten",
});

impl Node {
    /// A node of which no more is known than where it is and what happened.
    pub fn new(url: &str, name: &str, operation: Operation) -> Node {
        Node {
            url: url.to_owned(),
            name: name.to_owned(),
            hash_name: HashName::of(url),
            operation,
            kind: None,
            order: None,
            is_covered: false,
            refresh_rate_s: None,
            content: Content::Unknown,
            last_modified_ms: None,
            etag: None,
            removal: None,
            previous_url: None,
            node_list: Vec::new(),
        }
    }

    /// What it is: as it says, or by what is below it. One without anything is an article, one
    /// whose first has nothing a list, any other a column.
    pub fn kind(&self) -> NodeKind {
        if let Some(kind) = self.kind {
            return kind;
        }
        match self.node_list.first() {
            None => NodeKind::Article,
            Some(first) if first.node_list.is_empty() => NodeKind::List,
            Some(_) => NodeKind::Column,
        }
    }
}
