//! What a chunk says about one document: the record that every output consumes.
//!
//! Relies on `page::facts` for what was parsed. The fields below, in this order,
//! are format 2 of the facts file: postcard writes no names, so adding, removing
//! or moving a field (here or in `page::facts`) is a new format. Variants may be
//! added at the end of an enum: old files have none of them.
//!
//! Invariant: an output that applies the records of a part's chunks in order
//! needs nothing else to be up to date.

use crate::names::names;
use page::facts::Facts;
use page::ids::DocHash;
use serde::{Deserialize, Serialize};

/// One document of a chunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentRecord {
    /// The 128-bit key of the document: the hash of `docid`.
    #[serde(with = "hash_bytes")]
    pub dochash: DocHash,
    /// The document's identifier; for the web, its canonical URL.
    pub docid: String,
    /// The job that did the work.
    pub job: i64,
    /// What outputs have to do.
    pub change: Change,
    /// How it was learned; `None` when no request was made (an operator's removal).
    pub fetch: Option<Fetch>,
    /// What was parsed. Present for `Add` and `Update`, absent for the others. An `Update`
    /// without says that a page is only a requisite now: what was parsed stays where it was.
    pub facts: Option<Facts>,
    /// Further named values: from the connector, or set by a transformation.
    pub fields: Vec<Field>,
    /// Who may see the document.
    pub access: Access,
    /// Where its bytes are.
    pub body: Body,
    /// What it is to those who read it.
    pub role: DocumentRole,
}

/// What a document is to those who read it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum DocumentRole {
    /// A document of its own: a seed, or one that a link inside the scope leads to.
    #[default]
    Page,
    /// Only needed to show pages: a style sheet, an image, a font. It is not searched, and no
    /// page of the link index.
    Requisite,
}

names!(DocumentRole of "a document's role" {
    Page = "page",
    Requisite = "requisite",
});

impl DocumentRole {
    /// Whether it is only needed by pages, as rows say it.
    pub fn is_requisite(self) -> bool {
        self == DocumentRole::Requisite
    }

    /// The role of a row that says whether its document is a requisite.
    pub fn of_requisite(is_requisite: bool) -> DocumentRole {
        if is_requisite { DocumentRole::Requisite } else { DocumentRole::Page }
    }
}

/// What happened to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// It is new to us.
    Add,
    /// We had it, and it is different now.
    Update,
    /// It must disappear, and why. A failure to fetch is not a reason.
    Remove(RemoveReason),
    /// It was looked at, and is the same.
    Keep,
    /// It was asked for and has no content: [`Fetch`] says with which status it was answered,
    /// and where it leads if that was a redirect. Outputs never had it; the link index shows
    /// what it answered. Without such an answer, what it once answered counts no more.
    NoContent,
}

/// Why a document is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RemoveReason {
    /// 404 or 410, confirmed.
    Gone,
    /// The job's rules no longer take it in.
    OutOfScope,
    /// robots.txt, or the page itself, asks us not to keep it.
    Robots,
    /// Its time to live is over.
    Expired,
    /// It is more hops from the seeds than the job allows.
    HopLimit,
    /// No page of a complete run leads to it any more.
    Unreachable,
    /// It now leads to another document; `Fetch::final_url` says which.
    Redirected,
    /// Its job was deleted.
    JobDeleted,
    /// An operator removed it.
    Operator,
}

impl RemoveReason {
    /// All reasons, by their numbers in files.
    pub const ALL: [RemoveReason; 9] = [
        RemoveReason::Gone,
        RemoveReason::OutOfScope,
        RemoveReason::Robots,
        RemoveReason::Expired,
        RemoveReason::HopLimit,
        RemoveReason::Unreachable,
        RemoveReason::Redirected,
        RemoveReason::JobDeleted,
        RemoveReason::Operator,
    ];

    /// The reason of a name; `None` if there is none.
    pub fn named(name: &str) -> Option<RemoveReason> {
        RemoveReason::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Whether the document itself was looked at, and what it answered is why it goes.
    pub fn is_proven(self) -> bool {
        matches!(self, RemoveReason::Gone | RemoveReason::Robots | RemoveReason::Redirected)
    }

    /// Whether a person wants it: by deleting the job or the document, or by saying how long
    /// documents live.
    pub fn is_by_person(self) -> bool {
        matches!(self, RemoveReason::JobDeleted | RemoveReason::Operator | RemoveReason::Expired)
    }

    /// The reason as tables and messages name it.
    pub fn name(self) -> &'static str {
        match self {
            RemoveReason::Gone => "gone",
            RemoveReason::OutOfScope => "out of scope",
            RemoveReason::Robots => "robots",
            RemoveReason::Expired => "expired",
            RemoveReason::HopLimit => "hop limit",
            RemoveReason::Unreachable => "unreachable",
            RemoveReason::Redirected => "redirected",
            RemoveReason::JobDeleted => "job deleted",
            RemoveReason::Operator => "operator",
        }
    }
}

/// One exchange with the document's source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Fetch {
    /// HTTP status of the last answer, or the connector's equivalent.
    pub status: u16,
    /// When the last answer began.
    pub fetched_ms: i64,
    /// The address that answered, when redirects made it differ from `docid`.
    pub final_url: Option<String>,
    /// The answers that redirected, in order.
    pub redirects: Vec<Hop>,
    /// `ETag`, as received: the validator of the next conditional request.
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

/// A redirect that was followed on the way to the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Hop {
    /// The address that redirected.
    pub url: String,
    pub status: u16,
}

/// A named value of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Field {
    pub name: String,
    /// Its values, in order.
    pub values: Vec<String>,
}

/// Access tokens, as the authorities of a repository name them. A reader must pass every
/// level: hold one of its `allow` tokens, if it has any, and none of its `deny` tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Any of these lets a reader in, on its level.
    pub allow: Vec<Token>,
    /// Any of these keeps a reader out.
    pub deny: Vec<Token>,
}

/// An access token of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Token {
    /// Where it is asked for.
    pub level: Level,
    pub name: String,
}

impl Token {
    /// A token of a level.
    pub fn new(level: Level, name: impl Into<String>) -> Token {
        Token { level, name: name.into() }
    }
}

/// Where access is asked for, from the outermost in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Level {
    Share,
    Parent,
    Document,
}

/// Where a document's bytes are kept: one record of a bodies file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Body {
    /// Nowhere: there are none, or the job keeps none.
    None,
    /// In the bodies of this chunk.
    Here {
        /// The record's first byte in the file.
        offset: u64,
        /// The record's bytes in the file.
        len: u64,
    },
    /// In the bodies of an earlier chunk of the same part: they did not change.
    Earlier {
        chunk: i64,
        /// The record's first byte in that file.
        offset: u64,
        /// The record's bytes in that file.
        len: u64,
    },
}

impl DocumentRecord {
    /// A record of a change, to be completed field by field.
    pub fn new(docid: impl Into<String>, job: i64, change: Change) -> DocumentRecord {
        let docid = docid.into();
        DocumentRecord {
            dochash: DocHash::of(&docid),
            docid,
            job,
            change,
            fetch: None,
            facts: None,
            fields: Vec::new(),
            access: Access::default(),
            body: Body::None,
            role: DocumentRole::Page,
        }
    }

    /// What stands in the place of a record that nothing needs any more, so that those behind
    /// it keep their numbers; every output passes over it. The last record of a file that was
    /// rewritten is one, too, and says how many records with facts were left then.
    pub fn dropped(left: i64) -> DocumentRecord {
        DocumentRecord {
            dochash: DocHash([0; 16]),
            docid: String::new(),
            job: left,
            change: Change::Keep,
            fetch: None,
            facts: None,
            fields: Vec::new(),
            access: Access::default(),
            body: Body::None,
            role: DocumentRole::Page,
        }
    }

    /// Whether it only stands in the place of another.
    pub fn is_dropped(&self) -> bool {
        self.docid.is_empty()
    }

    /// The address whose content this is: where redirects led, or the identifier.
    pub fn final_url(&self) -> &str {
        self.fetch.as_ref().and_then(|fetch| fetch.final_url.as_deref()).unwrap_or(&self.docid)
    }
}

/// Serde for the key, which is plain bytes to a file.
mod hash_bytes {
    use super::DocHash;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &DocHash, out: S) -> Result<S::Ok, S::Error> {
        hash.0.serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<DocHash, D::Error> {
        <[u8; 16]>::deserialize(input).map(DocHash)
    }
}
