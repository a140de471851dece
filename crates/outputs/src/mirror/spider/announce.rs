//! Announcements: what a run is about to bring, so that others can prepare for it.
//!
//! Invariant: an announcement is written once; the x-file of its number answers it.

use super::place::site_of;
use super::publish::{PRODUCER, cursor, epoch};
use super::{cut, refusal};
use crate::mirror::{Mirror, x_files};
use page::mirror::names::HashName;
use page::mirror::xfile::{
    Content, Header, Node, NodeKind, Operation, Outcome, Publication, Reader, Stage, Writer,
};
use std::collections::BTreeSet;
use std::io::BufReader;
use store::{Error, Result};

/// Nodes of an announcement; what is beyond comes unannounced.
const NODES_MAX: usize = 100_000;

/// A page that a run has found and will fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Where it is.
    pub url: String,
    /// What the link to it says.
    pub name: String,
}

/// Says what the next x-file will bring. Returns its number; `None` if there is nothing to say.
///
/// One that is there stays as it is.
pub fn announce(mirror: &Mirror, pages: &[Announced], now_ms: i64) -> Result<Option<u64>> {
    let _working = mirror.begin(&mirror.spider);
    let cursor = cursor(mirror)?;
    let number = cursor.number + 1;
    let path = x_files::announced_path(number);
    if mirror.disk.kind(&path)?.is_some() {
        return Ok(Some(number));
    }
    let pages: Vec<&Announced> = pages.iter().filter(|it| refusal(&it.url).is_none()).collect();
    let Some(first) = pages.first() else { return Ok(None) };
    let header = Header {
        editor: mirror.editor(),
        info: mirror.info(),
        publication: Some(Publication {
            epoch: epoch(mirror, &cursor, now_ms),
            number,
            stage: Stage::Announced,
            previous: None,
            base: 0,
            oldest: 1,
            started_ms: now_ms,
            completed_ms: None,
            producer: PRODUCER.to_owned(),
            rules: mirror.rules_digest().map(Into::into),
            outcome: Outcome::Partial,
            cut: Vec::new(),
        }),
    };
    let failed = |error| x_files::failed(&mirror.disk, number, error);
    let mut writer = Writer::new(mirror.disk.begin()?, &header).map_err(failed)?;
    let site = site_of(&first.url);
    let root = Node::new(&site.url, &site.name, Operation::Keep);
    writer.open(&Node { kind: Some(NodeKind::Column), ..root }).map_err(failed)?;
    let mut seen = BTreeSet::from([HashName::of(&site.url)]);
    for page in pages.into_iter().take(NODES_MAX) {
        if !seen.insert(HashName::of(&page.url)) {
            continue;
        }
        let node = Node::new(&page.url, &cut(&page.name), Operation::Add);
        let kind = Some(NodeKind::Article);
        writer.open(&Node { kind, content: Content::Pending, ..node }).map_err(failed)?;
        writer.close().map_err(failed)?;
    }
    let written = writer.finish().map_err(failed)?.finish()?;
    mirror.disk.sync()?;
    written.name(path)?;
    Ok(Some(number))
}

/// When the run began that announced an x-file.
pub(super) fn time_of(mirror: &Mirror, number: u64) -> Result<i64> {
    let path = x_files::announced_path(number);
    let file = mirror.disk.open_file(&path)?;
    let what = mirror.disk.place(path).display().to_string();
    let damaged = |error: page::mirror::Error| Error::corrupt(&*what, error.to_string());
    let reader = Reader::new(BufReader::new(file)).map_err(damaged)?;
    let publication = reader.header().publication.as_ref();
    let started_ms = publication.map(|it| it.started_ms);
    started_ms.ok_or_else(|| Error::corrupt(&*what, "it does not say when the run began"))
}
