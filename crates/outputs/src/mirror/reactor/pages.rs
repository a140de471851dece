//! Pages: rewritten where they or what they refer to changed, bucket by bucket, on a few threads.
//!
//! Invariant: every page's list of references is as of the bytes that it has.

use super::members::{ReactorMember, members};
use super::names::NameTable;
use super::targets::Targets;
use super::{DIR, MEMBERS, REFERENCES, Renamed, Step};
use crate::mirror::kind::Kind;
use crate::mirror::sealed::{self, open, seal};
use crate::mirror::threads::spread;
use crate::mirror::versions::{BUCKETS, Versions};
use page::charset;
use page::mirror::names::HashName;
use page::mirror::react::{Context, react};
use page::mirror::rewrite::{Document, page};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use store::Result;
use url::Url;

/// The media type of a page that was cleaned.
const CLEANED: &str = "text/html; charset=utf-8";

/// What a page refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PageReferences {
    hash: [u8; 16],
    urls: Vec<[u8; 8]>,
}

/// Makes all pages anew that need it.
pub(super) fn make(
    step: &Step<'_>,
    names: &NameTable,
    renamed: &Renamed,
    changed: &[HashName],
) -> Result<()> {
    let disk = &step.mirror.disk;
    let making = Making {
        step,
        names,
        renamed,
        changed,
        members: Versions::open(disk, MEMBERS, step.after.step)?,
        references: Versions::open(disk, REFERENCES, step.before.step)?,
    };
    spread(
        step.mirror.settings.threads,
        |buckets| (0..BUCKETS).try_for_each(|bucket| buckets.send(bucket)),
        |bucket| making.bucket(bucket),
    )
}

struct Making<'s, 'm> {
    step: &'s Step<'m>,
    names: &'s NameTable,
    renamed: &'s Renamed,
    /// Sorted.
    changed: &'s [HashName],
    members: Versions<'m>,
    references: Versions<'m>,
}

impl Making<'_, '_> {
    fn bucket(&self, bucket: usize) -> Result<()> {
        let before = self.references_of(bucket)?;
        let changed = self.changed_in(bucket);
        let is_left = |page: &PageReferences| !page.urls.iter().any(|url| self.is_renamed(url));
        let is_settled = changed.is_empty() && !self.step.all && before.iter().all(is_left);
        if is_settled && self.renamed.is_empty() {
            return Ok(());
        }
        let members = members(&self.members, bucket)?;
        let mut known: HashMap<[u8; 16], PageReferences> =
            before.iter().map(|page| (page.hash, page.clone())).collect();
        let mut after = Vec::with_capacity(before.len());
        for member in members.iter().filter(|member| member.kind == Kind::Page) {
            let hash = member.hash();
            let known = known.remove(hash.as_bytes());
            let is_current = known.as_ref().is_some_and(is_left)
                && !self.step.all
                && changed.binary_search(&hash).is_err();
            after.push(match known {
                Some(known) if is_current => known,
                _ => self.page(&hash, member)?,
            });
        }
        if after == before {
            return Ok(());
        }
        let bytes = seal(sealed::Kind::References, &after);
        self.references.write(bucket, self.step.after.step, &bytes)
    }

    fn references_of(&self, bucket: usize) -> Result<Vec<PageReferences>> {
        match self.references.read(bucket)? {
            Some(file) => open(sealed::Kind::References, &file.bytes, &file.path),
            None => Ok(Vec::new()),
        }
    }

    /// The changed pages of a bucket.
    fn changed_in(&self, bucket: usize) -> &[HashName] {
        let begin = self.changed.partition_point(|hash| usize::from(hash.as_bytes()[0]) < bucket);
        let end = self.changed.partition_point(|hash| usize::from(hash.as_bytes()[0]) <= bucket);
        &self.changed[begin..end]
    }

    fn is_renamed(&self, url: &[u8; 8]) -> bool {
        !self.renamed.is_empty() && self.renamed.contains(&u64::from_be_bytes(*url))
    }

    /// Makes a page anew.
    fn page(&self, hash: &HashName, member: &ReactorMember) -> Result<PageReferences> {
        let disk = &self.step.mirror.disk;
        let names = self.step.after.by.names;
        let body = disk.blob(&member.sha256)?;
        let content_type = member.content_type();
        let document =
            Document { body: &body, url: &member.url, content_type: Some(&content_type) };
        let path = member.path(names).unwrap_or_default();
        let mut targets = Targets::new(self.names, names, &member.url, path.clone());
        let notice = self.step.after.by.outside_notice.as_deref();
        let cleaned = self.cleaned(&document);
        let document = match &cleaned {
            Some(html) => {
                Document { body: html.as_bytes(), content_type: Some(CLEANED), ..document }
            }
            None => document,
        };
        let bytes = page(&document, notice, &mut |url, _| targets.of(url));
        let output = disk.keep(&bytes)?;
        disk.link_blob(&output, format!("{DIR}/{}", hash.path("")))?;
        self.step.shows(&path, &output)?;
        Ok(PageReferences { hash: *hash.as_bytes(), urls: targets.into_references() })
    }
    /// A page after the passes that the rules ask for; `None` if they ask for none.
    fn cleaned(&self, document: &Document<'_>) -> Option<String> {
        let reactor = &self.step.mirror.rules()?.reactor;
        let encoding = charset::decide(document.body, document.content_type).encoding;
        let html = charset::decode(document.body, encoding);
        let base = Url::parse(document.url).ok()?;
        let context = Context {
            base: &base,
            is_inside: &|url| url.host_str() == base.host_str(),
            image_digest: &|url| {
                self.names.requisite(&HashName::of(url.as_str())).map(ToString::to_string)
            },
        };
        match react(&html, reactor, &context) {
            Cow::Owned(cleaned) => Some(cleaned),
            Cow::Borrowed(_) => None,
        }
    }
}
