//! Everything that is known of one page in the link index.
//!
//! Invariant: a page of which nothing is known is told as such, and never shown as an empty one.

use super::PageHead;
use super::find::{self, FoundPage};
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::{Opens, Verb};
use outputs::links::pages::LOADED;
use page::uri::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Db;
use store::ids::JobId;
use store::tables::jobs;

/// Jobs of a page that are named.
const JOBS_MAX: usize = 100;

/// Everything that is known of one page.
pub struct Page;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageRequest {
    /// The page's URL
    pub url: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PageResponse {
    pub asked: String,
    /// The page; `null` if nothing is known of it.
    pub page: Option<KnownPage>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnownPage {
    #[serde(flatten)]
    pub head: PageHead,
    pub domain: String,
    /// In-links, and one more if it is there.
    pub score: u64,
    pub title: Option<String>,
    /// The status that the page last came with.
    pub status: Option<u16>,
    /// The `Server` header that it came with.
    pub server: Option<String>,
    /// When it was first crawled.
    pub first_seen_ms: Option<i64>,
    /// When the version that is known was fetched; it may have been seen unchanged since.
    pub version_ms: Option<i64>,
    /// The jobs that have it.
    pub jobs: Vec<PageJob>,
}

/// A job that has a page.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PageJob {
    /// `null` for what was loaded from archives.
    pub id: Option<i64>,
    /// `null` if the job is deleted.
    pub name: Option<String>,
}

impl Verb for Page {
    const NAME: &'static str = "page";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Links));
    const OPENS: Opens = Opens::LinkIndex;
    type Request = PageRequest;
    type Response = PageResponse;

    fn answer(context: &VerbContext, request: PageRequest) -> anyhow::Result<PageResponse> {
        let (index, candidates) = find::candidates(context, &request.url)?;
        let found = index.read(move |view| find::find(view, &candidates))?;
        let page = found.map(|found| known_page(&context.db, &found)).transpose()?;
        Ok(PageResponse { asked: request.url, page })
    }
}

fn known_page(db: &Db, found: &FoundPage) -> store::Result<KnownPage> {
    let head = PageHead::of(found);
    let page = found.page.as_ref().map(|(page, _)| page);
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let owners = page.map_or_else(Vec::new, |page| page.owners.clone());
    Ok(KnownPage {
        domain: Uri::from_uri(&head.uri).map_or(String::new(), |uri| uri.domain().to_owned()),
        score: head.incount + u64::from(head.crawled),
        title: page.and_then(|page| text(&page.title)),
        status: page.map(|page| page.status).filter(|status| *status != 0),
        server: page.and_then(|page| text(&page.server)),
        first_seen_ms: page.map(|page| page.first_ms),
        version_ms: page.filter(|page| page.is_there()).map(|page| page.date_ms),
        jobs: owners_of(db, owners)?,
        head,
    })
}

fn owners_of(db: &Db, owners: Vec<i64>) -> store::Result<Vec<PageJob>> {
    db.read(move |tx| {
        let mut named = Vec::new();
        for owner in owners.iter().copied().take(JOBS_MAX) {
            named.push(match owner {
                LOADED => PageJob { id: None, name: Some("loaded".to_owned()) },
                id => {
                    let name = jobs::load(tx, JobId(id))?.map(|job| job.name);
                    PageJob { id: Some(id), name }
                }
            });
        }
        Ok(named)
    })
}
