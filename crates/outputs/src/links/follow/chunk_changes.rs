//! What committed chunks say of pages, as changes of the index.
//!
//! Invariants: only web jobs that want a link index are taken; what a job that is gone has
//! removed is taken all the same, so that nothing of it stays. Facts that can say nothing of
//! what is wanted are not read: the row of their chunk tells.

use crate::follow::LeftOut;
use crate::links::changes::{PageChange, PageContent, What};
use crate::perjob::PerJob;
use page::domain::SuffixList;
use page::facts::{Link, LinkKind, Rel};
use page::ids::DocHash;
use page::outlinks::{self, LinkPolicy};
use page::uri::Uri;
use serde::Deserialize;
use std::sync::Arc;
use store::chunkfile::document::{self, DocumentRecord, Fetch};
use store::ids::{CommitNumber, JobId, Part};
use store::objects::Objects;
use store::panics::{FaultPoint, Faults, caught};
use store::tables::chunks::{self, ChunkHead, CommittedChunk};
use store::tables::{connections, settings};
use store::{Db, Error, Result, pack};

/// Connectors whose jobs have pages of the web, and say which of their links count.
const OF_THE_WEB: [&str; 2] = ["web", "feed"];

/// Why a page is gone that redirected once, and which no job asks for any more.
const LEFT_OUT: &str = "left out";
/// Why a page is gone that pages only need to be shown.
const REQUISITE: &str = "requisite";

/// Turns committed chunks into changes of pages.
pub struct Chunks {
    db: Db,
    objects: Objects,
    list: Arc<SuffixList>,
    /// Which jobs feed the index, by their definitions.
    policies: PerJob<JobUse>,
    /// Faults that tests inject.
    pub faults: Faults,
}

/// What was read of a chunk.
#[derive(Debug, Default)]
pub struct ChunkRead {
    /// Whether its facts were read, and not left alone.
    pub is_read: bool,
    /// How many links it has.
    pub links: usize,
    /// Documents that cannot be read because of a bug of this program.
    pub left_out: Vec<LeftOut>,
}

/// What is wanted of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobUse {
    Links(LinkPolicy),
    /// Only what it removes: it may have wanted links once.
    Removals,
    /// Nothing: it never wanted links.
    Nothing,
}

/// What a job says of links, of all that it says.
#[derive(Deserialize)]
struct LinksSetting {
    #[serde(default = "usual", with = "outlinks::setting")]
    links: Option<LinkPolicy>,
}

fn usual() -> Option<LinkPolicy> {
    Some(LinkPolicy::default())
}

impl Chunks {
    pub fn new(db: Db, objects: Objects) -> Result<Chunks> {
        let list = db.read(settings::suffix_list)?;
        let (policies, faults) = (PerJob::default(), Faults::default());
        Ok(Chunks { db, objects, list, policies, faults })
    }

    /// The database that chunks are read from.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// A batch begins: jobs may have changed what they want.
    pub fn begin(&mut self) {
        self.policies.begin();
    }

    /// Committed chunks behind a number.
    pub fn after(&self, part: Part, seq: CommitNumber, limit: u32) -> Result<Vec<ChunkHead>> {
        self.db.read(move |tx| chunks::heads_after(tx, part, seq, limit))
    }

    /// Adds what a chunk says to changes. `has_pages` says whether the index has, or has had,
    /// pages of this part.
    pub fn read(
        &mut self,
        part: Part,
        has_pages: bool,
        chunk: &ChunkHead,
        changes: &mut Vec<PageChange>,
    ) -> Result<ChunkRead> {
        let mut read = ChunkRead::default();
        let wanted = self.wanted(chunk.job)?;
        if !concerns(chunk, wanted, has_pages) {
            return Ok(read);
        }
        read.is_read = true;
        let (id, committed_ms) = (chunk.id, chunk.committed_ms);
        let Some(facts) = self.db.read(move |tx| chunks::facts_of(tx, part, id))? else {
            return Ok(read);
        };
        let Some(bytes) = pack::read_facts(&self.db, &self.objects, part, facts)? else {
            return Ok(read);
        };
        for record in pack::stream(part, id, bytes)? {
            let record = record?;
            let change = caught(|| {
                self.faults.at(FaultPoint::IndexDocument, &record.docid);
                self.change(&record, wanted, committed_ms)
            });
            match change {
                Ok(None) => {}
                Ok(Some(change)) => {
                    if let What::Page(content) = &change.what {
                        read.links += content.links.len();
                    }
                    changes.push(change);
                }
                Err(error) => {
                    read.left_out.push(LeftOut { docid: record.docid, why: error.to_string() });
                }
            }
        }
        Ok(read)
    }

    /// What a chunk says, by document.
    pub fn changes(
        &mut self,
        part: Part,
        chunk: CommittedChunk,
    ) -> Result<Vec<(DocHash, PageChange)>> {
        let mut changes = Vec::new();
        let (id, committed_ms, wanted) = (chunk.id, chunk.committed_ms, self.wanted(chunk.job)?);
        let read = pack::read_facts(&self.db, &self.objects, part, chunk.facts)?;
        let Some(bytes) = read else { return Ok(changes) };
        for record in pack::stream(part, id, bytes)? {
            let record = record?;
            let change = self.change(&record, wanted, committed_ms);
            changes.extend(change.map(|change| (record.dochash, change)));
        }
        Ok(changes)
    }

    fn wanted(&mut self, job: JobId) -> Result<JobUse> {
        let db = &self.db;
        self.policies.of(db, job, |found| {
            let Some(found) = found else { return Ok(JobUse::Removals) };
            let none = if found.is_first { JobUse::Nothing } else { JobUse::Removals };
            let connection = found.job.connection;
            let connector = db.read(move |tx| connections::connector_of(tx, connection))?;
            if !connector.is_some_and(|it| OF_THE_WEB.contains(&it.as_str())) {
                return Ok(none);
            }
            // Its pages wait in their chunks until somebody can read what is wanted of them.
            let setting: LinksSetting = serde_json::from_str(&found.job.docspec)
                .map_err(|error| Error::corrupt(format!("job {job}"), error.to_string()))?;
            Ok(setting.links.map_or(none, JobUse::Links))
        })
    }

    fn change(
        &self,
        record: &DocumentRecord,
        wanted: JobUse,
        committed_ms: i64,
    ) -> Option<PageChange> {
        let url = Some(&*record.docid).filter(|it| it.starts_with("http"))?;
        let date_ms = record.fetch.as_ref().map_or(committed_ms, |fetch| fetch.fetched_ms);
        let policy = match wanted {
            JobUse::Links(policy) => policy,
            JobUse::Removals | JobUse::Nothing => LinkPolicy::default(),
        };
        let (uri, what) = match (&record.change, &record.facts) {
            // Looked at again, it is what it was: no page.
            (document::Change::Keep, None) if record.role.is_requisite() => return None,
            _ if record.role.is_requisite() => {
                (self.uri(url, policy)?, What::Gone(REQUISITE.to_owned()))
            }
            (document::Change::Remove(_) | document::Change::NoContent, _) => {
                self.without_content(record, wanted, policy)?
            }
            _ if !matches!(wanted, JobUse::Links(_)) => return None,
            // With facts it says what it said, in the chunk that its row names from then on.
            (document::Change::Keep, None) => (self.uri(url, policy)?, What::Seen),
            (_, None) => return None,
            (_, Some(facts)) => {
                let page = outlinks::of(url, &facts.links, policy, &self.list)?;
                if policy == LinkPolicy::Webindex && page.links.is_empty() {
                    // Webindex had no such pages, but kept the links they used to have.
                    let what = What::Gone("no links".to_owned());
                    return Some(PageChange {
                        uri: page.uri,
                        date_ms,
                        job: record.job,
                        in_order: true,
                        what,
                    });
                }
                let status = record.fetch.as_ref().map_or(0, |fetch| fetch.status);
                let content = PageContent {
                    status,
                    title: facts.title.clone(),
                    server: String::new(),
                    links: page.links,
                };
                (page.uri, What::Page(Box::new(content)))
            }
        };
        Some(PageChange { uri, date_ms, job: record.job, in_order: true, what })
    }

    /// What a record says of a page that has no content: it redirects, or it is not there.
    fn without_content(
        &self,
        record: &DocumentRecord,
        wanted: JobUse,
        policy: LinkPolicy,
    ) -> Option<(String, What)> {
        // Webindex knew no redirects, and no pages without links.
        let shows_answers = matches!(wanted, JobUse::Links(_)) && policy != LinkPolicy::Webindex;
        let fetch = record.fetch.as_ref().filter(|_| shows_answers);
        if let Some(fetch) = fetch
            && let Some(to) = &fetch.final_url
        {
            let page = outlinks::of(&record.docid, &[redirect_to(to)], policy, &self.list)?;
            let content =
                PageContent { status: fetch.status, links: page.links, ..PageContent::default() };
            return Some((page.uri, What::Page(Box::new(content))));
        }
        let what = match (record.change, &record.fetch) {
            (document::Change::Remove(reason), _) => What::Gone(reason.name().to_owned()),
            (_, Some(Fetch { status: status @ (404 | 410), .. })) if shows_answers => {
                What::Missing { status: *status }
            }
            (_, Some(_)) if !shows_answers => return None,
            _ => What::Gone(LEFT_OUT.to_owned()),
        };
        Some((self.uri(&record.docid, policy)?, what))
    }

    fn uri(&self, url: &str, policy: LinkPolicy) -> Option<String> {
        let uri = match policy {
            LinkPolicy::Webindex => Uri::webindex(url, &self.list),
            LinkPolicy::All | LinkPolicy::External => Uri::canonical(url, &self.list),
        };
        uri.ok().map(|uri| uri.to_uri())
    }
}

/// Whether the facts of a chunk may say something of what is wanted of its job. An index that
/// never had a page has nothing to lose.
fn concerns(chunk: &ChunkHead, wanted: JobUse, has_pages: bool) -> bool {
    let counted = chunk.adds + chunk.updates + chunk.keeps + chunk.errors;
    // What redirected once is not counted when it is left out.
    let may_remove = chunk.removes > 0 || chunk.documents != counted;
    match wanted {
        JobUse::Links(_) => true,
        JobUse::Removals => may_remove && has_pages,
        JobUse::Nothing => false,
    }
}

/// The link that a redirect is.
fn redirect_to(url: &str) -> Link {
    let (url, anchor) = (url.to_owned(), String::new());
    Link { url, anchor, kind: LinkKind::Redirect, rel: Rel::default() }
}
