//! The most linked pages, of all or of one domain.
//!
//! By in-links, or by score: in-links and one more if the page was crawled. Invariant: the
//! order is whole, pages with equal figures by their rows, so a cursor shows none twice.

use super::find;
use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::paging::LinkListPage;
use crate::verbs::{Opens, Verb};
use outputs::links::paging::Listing;
use outputs::links::rankings::{self, By, RankedUri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most linked pages.
pub struct Top;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopRequest {
    /// Rank by in-links, or by in-links plus one if the page was crawled
    #[serde(default)]
    pub by: By,
    /// Only pages of this domain, given as a domain, a host or a URL
    pub domain: Option<String>,
    #[serde(flatten)]
    pub page: LinkListPage,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TopResponse {
    pub by: By,
    /// The domain as it is known, if one was asked for.
    pub domain: Option<String>,
    /// How many pages it has that are crawled or linked to; `null` if it is not known.
    pub pages: Option<u64>,
    #[serde(flatten)]
    pub listing: Listing<RankedUri>,
}

impl TopResponse {
    /// The name of a domain that was asked for and is not known.
    pub fn unknown_domain(&self) -> Option<&str> {
        self.domain.as_deref().filter(|_| self.pages.is_none())
    }
}

impl Verb for Top {
    const NAME: &'static str = "top";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Links));
    const OPENS: Opens = Opens::LinkIndex;
    type Request = TopRequest;
    type Response = TopResponse;

    fn answer(context: &VerbContext, request: TopRequest) -> anyhow::Result<TopResponse> {
        let index = context.link_index.open()?;
        let paging = request.page.paging()?;
        let (domain, pages) = match &request.domain {
            Some(asked) => {
                let (name, pages) = find::domain(context, asked)?;
                (Some(name), pages)
            }
            None => (None, None),
        };
        let (by, parts, of) = (request.by, index.parts(), domain.clone());
        let listing = index.read(move |view| match &of {
            Some(domain) => rankings::top_of_domain(view, parts, domain, by, &paging),
            None => rankings::top(view, parts, by, &paging),
        })?;
        Ok(TopResponse { by, domain, pages, listing })
    }
}
