//! The spider: takes in what was fetched, and publishes it as x-files.
//!
//! What is delivered goes into blobs and the journal ([`journal`]). Publishing folds the journal
//! into the next x-file ([`publish()`]). Invariant: what was taken is on the disk, and the last
//! operation for a URL wins.

mod announce;
mod columns;
mod fold;
mod journal;
mod member;
mod nodes;
mod place;
mod publish;
mod snapshot;

pub use self::announce::{Announced, announce};
pub(super) use self::member::{content_type, members};
pub(super) use self::publish::cursor;
pub use self::publish::publish;
pub(super) use self::snapshot::snapshot;

use self::member::Member;
use super::Mirror;
use super::digest::Digest;
use super::threads::spread;
use super::versions::{BUCKETS, Versions};
use crate::output::Outcome;
use bytes::Bytes;
use page::mirror::VALUE_BYTES_MAX;
use page::sniff::ContentType;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use store::Result;

/// The directory of the spider's results.
pub(super) const DIR: &str = "worker/spider";
pub(super) const MEMBERS: &str = "worker/spider/members";
/// Bytes of a title that are kept.
const TITLE_BYTES_MAX: usize = 1_000;
/// Bytes of a media type or a validator; longer ones mean nothing.
const HEADER_BYTES_MAX: usize = 200;
/// What a document is taken for whose media type is not known.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// A document, or that there is none any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Where it is, with its fragment.
    pub url: String,
    /// What is there now; `None` removes it.
    pub content: Option<DeliveredContent>,
}

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredContent {
    /// The bytes as they came.
    pub bytes: Bytes,
    /// The header `Content-Type`.
    pub content_type: Option<String>,
    /// Its title, if somebody knows it; otherwise it is read from the bytes.
    pub title: Option<String>,
    /// When it changed by its own account.
    pub last_modified_ms: Option<i64>,
    /// Its validator.
    pub etag: Option<String>,
    /// The status that it came with.
    pub status: Option<u16>,
    /// What it is to the mirror.
    pub role: Role,
}

/// What a document is to a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A page in its own right.
    Page,
    /// What pages need to be shown.
    Requisite,
}

/// Takes in documents. One outcome for each, in order; when it returns, they are on the disk.
pub fn deliver(mirror: &Mirror, delivered: &[Delivered]) -> Result<Vec<Outcome>> {
    let _working = mirror.begin_delivery();
    let mut outcomes = vec![Outcome::Taken; delivered.len()];
    for (item, outcome) in delivered.iter().zip(&mut outcomes) {
        if let Some(detail) = refusal(&item.url) {
            *outcome = Outcome::Rejected { code: "BADURL", detail };
        }
    }
    let taken = Mutex::new(BTreeMap::new());
    spread(
        mirror.settings.threads,
        |items| {
            let taken = outcomes.iter().enumerate().filter(|(_, it)| **it == Outcome::Taken);
            taken.map(|(at, _)| at).try_for_each(|at| items.send(at))
        },
        |at| {
            let Delivered { url, content } = &delivered[at];
            let content = content.as_ref().map(|content| take(mirror, url, content)).transpose()?;
            let entry = journal::Entry { url: url.clone(), content };
            taken.lock().unwrap_or_else(PoisonError::into_inner).insert(at, entry);
            Ok(())
        },
    )?;
    let entries = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
    let entries: Vec<journal::Entry> = entries.into_values().collect();
    if !entries.is_empty() {
        journal::append(mirror, &entries)?;
    }
    Ok(outcomes)
}

/// Why a URL can be no member.
fn refusal(url: &str) -> Option<String> {
    if url.is_empty() || url.len() > VALUE_BYTES_MAX {
        return Some(format!("a URL of {} bytes; 1 to {VALUE_BYTES_MAX} are taken", url.len()));
    }
    url.chars().any(char::is_control).then(|| "a URL with control characters".to_owned())
}

/// Keeps the bytes and says what is known of them.
fn take(mirror: &Mirror, url: &str, content: &DeliveredContent) -> Result<Member> {
    let header = content.content_type.as_deref().and_then(ContentType::parse);
    let bounded = |text: &str| text.len() <= HEADER_BYTES_MAX && !text.contains(char::is_control);
    let media_type = header.as_ref().map(|it| it.essence.to_ascii_lowercase());
    let media_type = media_type.filter(|it| bounded(it)).unwrap_or_else(|| UNKNOWN_TYPE.to_owned());
    let charset = header.and_then(|it| it.charset).filter(|it| bounded(it));
    let mut member = Member {
        url: url.to_owned(),
        title: String::new(),
        sha256: mirror.disk.keep(&content.bytes)?,
        length: content.bytes.len() as u64,
        media_type,
        charset,
        status: content.status,
        is_requisite: content.role == Role::Requisite,
        last_modified_ms: content.last_modified_ms,
        etag: content.etag.clone().filter(|it| bounded(it)),
        columns: Vec::new(),
        section: None,
        given_title: content.title.clone().map(|title| cut(&title)),
    };
    member.place(mirror, &content.bytes);
    Ok(member)
}

/// A title as far as it is kept.
fn cut(title: &str) -> String {
    title[..title.floor_char_boundary(TITLE_BYTES_MAX)].to_owned()
}

/// The digests of the original bytes of all members and of the journal.
pub(super) fn digests(mirror: &Mirror, found: &mut dyn FnMut(&Digest)) -> Result<()> {
    let versions = Versions::open(&mirror.disk, MEMBERS, cursor(mirror)?.number)?;
    for bucket in 0..BUCKETS {
        members(&versions, bucket)?.iter().for_each(|member| found(&member.sha256));
    }
    journal::digests(&mirror.disk, found)
}
