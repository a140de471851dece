//! Articles: what the parser finds in a page, and the XML file that it stands in.
//!
//! `article` with `ptitle`, `title`, `url`, `author`, `lastModified` in milliseconds, `bodyData`, and
//! `hashData` with a `hashNode` for each reference of the body (`docs/formats/article.md`). What the
//! rules do not say is found by the elements that pages commonly have. Invariant: reading what
//! was written gives the article back.

mod body;
mod date;
mod extract;
mod file;
#[cfg(test)]
mod tests;

pub use self::date::date_in;
pub use self::extract::{Page, extract};
pub use self::file::{read, write};

/// The version of the format.
pub const FORMAT: u32 = 1;
/// Bytes of an article's body.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// References of one body.
pub const REFERENCES_MAX: usize = 10_000;

/// An article.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Article {
    /// The title of its page, with the site's name and what else stands there.
    pub page_title: String,
    /// Its own title.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// Who wrote it.
    pub author: String,
    /// When it was written or changed, in milliseconds, if anything says so.
    pub last_modified_ms: Option<i64>,
    /// Its text as HTML, without scripts, styles and comments.
    pub body: String,
    /// What its body refers to.
    pub references: Vec<Reference>,
}

/// A link or an image in an article's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Where it leads; its hash name is what it is called in the mirror.
    pub absolute_url: String,
    /// As it is written in the body.
    pub original_url: String,
}
