//! What documents say that are neither HTML nor plain text: PDF, Office (docx, xlsx, pptx),
//! OpenDocument, EPUB.
//!
//! PDF is read by a library that was not made for hostile input: it panics, recurses and
//! unpacks without end. Whoever calls [`extract`] therefore does it in a process of its own
//! with limits of the system. What can be kept from within is kept here. Invariants:
//! what leaves [`extract`] and [`reply`] is within the limits below, white space collapsed;
//! a panic of a library is an answer and not a panic of ours.

mod about;
mod archive;
mod book;
mod parts;
mod pdf;
mod sheets;
mod xml;

use crate::bytesize::human_bytes_of;
use crate::facts::{LINKS_MAX, SHORT_TEXT_BYTES_MAX, TEXT_BYTES_MAX};
use crate::sniff::ContentKind;
use crate::text::{CollapsedText, collapse};
use crate::url::URL_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of a document that is read.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// Authors that are kept.
pub const AUTHORS_MAX: usize = 20;
/// Bytes of all links of a document together.
pub const LINK_BYTES_MAX: usize = 4 << 20;
/// Bytes of an answer as JSON: each of the long texts escaped, and the short ones.
pub const REPLY_BYTES_MAX: usize = 2 * (TEXT_BYTES_MAX + LINK_BYTES_MAX) + (1 << 20);
/// How far into a PDF its mark may stand.
const PDF_MARK_WITHIN: usize = 1_024;

/// What a document says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Extract {
    /// Its title, if it names one.
    pub title: String,
    /// What it says it is about.
    pub description: String,
    /// Its running text, a line for each paragraph.
    pub text: String,
    /// Its language, as it says.
    pub language: Option<String>,
    pub authors: Vec<String>,
    /// When it was written.
    pub created_ms: Option<i64>,
    /// When it was changed last.
    pub modified_ms: Option<i64>,
    /// Addresses of the web that it leads to, as written, each once.
    pub links: Vec<String>,
    /// Some of its text is missing: a limit cut it off, or the document is damaged.
    pub truncated: bool,
    /// There are more links than are kept.
    pub more_links: bool,
}

/// Why nothing can be said of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Unreadable {
    /// It is of a kind that is not read.
    #[error("documents of its type are not supported")]
    Kind,
    /// A compound file, which is what Office wrote before 2007 and what locks newer ones.
    #[error(
        "it is in the format of Office before 2007, or protected by a password; neither is supported"
    )]
    Old,
    /// It needs a password.
    #[error("it is protected by a password")]
    Locked,
    /// It has more bytes than are read.
    #[error("it is longer than {}", human_bytes_of(DOCUMENT_BYTES_MAX as u64))]
    Long,
    /// It is damaged, or not what it says.
    #[error("it is damaged, or not what it is said to be: {0}")]
    Broken(String),
}

impl Unreadable {
    /// A word for the tables.
    pub fn code(&self) -> &'static str {
        match self {
            Unreadable::Kind | Unreadable::Old => "unread-kind",
            Unreadable::Locked => "unread-locked",
            Unreadable::Long => "unread-long",
            Unreadable::Broken(_) => "unread-broken",
        }
    }

    fn broken(reason: impl std::fmt::Display) -> Unreadable {
        Unreadable::Broken(collapse(&reason.to_string(), SHORT_TEXT_BYTES_MAX))
    }
}

/// What came of a document.
pub type Reply = Result<Extract, Unreadable>;

/// How a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Format {
    Pdf,
    /// As an archive of XML.
    Archive,
}

/// Whether documents of a kind are read here, and not by another parser.
pub fn reads(kind: ContentKind) -> bool {
    matches!(kind, ContentKind::Pdf | ContentKind::Office)
}

/// How a document is read, by its kind, its length and its first bytes; cheap.
pub fn format_of(kind: ContentKind, bytes: &[u8]) -> Result<Format, Unreadable> {
    let head = &bytes[..bytes.len().min(PDF_MARK_WITHIN)];
    let is_pdf = memchr::memmem::find(head, b"%PDF-").is_some();
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(Unreadable::Long);
    }
    match kind {
        ContentKind::Pdf if is_pdf => Ok(Format::Pdf),
        ContentKind::Pdf => Err(Unreadable::broken("it does not begin as a PDF does")),
        ContentKind::Office if bytes.starts_with(b"PK\x03\x04") => Ok(Format::Archive),
        ContentKind::Office if bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") => {
            Err(Unreadable::Old)
        }
        _ => Err(Unreadable::Kind),
    }
}

/// Takes text, metadata and links out of a document that is not HTML.
pub fn extract(kind: ContentKind, bytes: &[u8]) -> Reply {
    let read = match format_of(kind, bytes)? {
        Format::Pdf => pdf::read,
        Format::Archive => parts::read,
    };
    caught(|| read(bytes))?.map(Extract::bounded)
}

/// What was answered by a process that has read a document, which may have been taken over by
/// it: as far from being trusted as the document. `None` if it is no answer.
pub fn reply(json: &[u8]) -> Option<Reply> {
    let reply: Reply = serde_json::from_slice(json).ok()?;
    Some(match reply {
        Ok(read) => Ok(read.bounded()),
        Err(Unreadable::Broken(reason)) => Err(Unreadable::broken(reason)),
        Err(reason) => Err(reason),
    })
}

impl Extract {
    /// The same within the limits.
    #[must_use]
    fn bounded(self) -> Extract {
        let short = |text: &str| collapse(text, SHORT_TEXT_BYTES_MAX);
        let mut text = CollapsedText::with_room(TEXT_BYTES_MAX, self.text.len());
        say(&mut text, &self.text);
        let mut bounded = Extract {
            title: short(&self.title),
            description: short(&self.description),
            language: self.language.filter(|it| is_language(it)),
            authors: self.authors.iter().map(|it| short(it)).collect(),
            truncated: self.truncated || text.is_cut(),
            text: text.into_string(),
            links: Vec::new(),
            ..self
        };
        bounded.authors.retain(|it| !it.is_empty());
        bounded.authors.truncate(AUTHORS_MAX);
        let mut links = ExtractedLinks::default();
        self.links.iter().for_each(|link| links.add(link));
        (bounded.links, bounded.more_links) = (links.kept, self.more_links || links.more);
        bounded
    }
}

/// Takes a text in, line for line.
fn say(message: &mut CollapsedText, text: &str) {
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            message.line();
        }
        message.push(line);
    }
}

/// Whether a text looks like a language tag.
fn is_language(tag: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (2..=35).contains(&tag.len()) && tag.bytes().all(is_letter)
}

/// Links within their limits.
#[derive(Default)]
struct ExtractedLinks {
    kept: Vec<String>,
    seen: HashSet<String>,
    bytes: usize,
    more: bool,
}

impl ExtractedLinks {
    /// Takes an address of the web; others lead to parts of the document itself.
    fn add(&mut self, link: &str) {
        let link = link.trim();
        let begins = |scheme: &str| {
            link.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme))
        };
        let is_web = begins("http://") || begins("https://");
        if !is_web || link.len() > URL_BYTES_MAX || self.seen.contains(link) {
            return;
        }
        if self.kept.len() == LINKS_MAX || self.bytes + link.len() > LINK_BYTES_MAX {
            self.more = true;
            return;
        }
        self.bytes += link.len();
        self.seen.insert(link.to_owned());
        self.kept.push(link.to_owned());
    }
}

/// Runs a library that may panic.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Unreadable> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        Unreadable::broken(format!("its reader gave up ({message})"))
    })
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
