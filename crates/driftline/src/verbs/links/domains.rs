//! The domains of the link index, from the one with most pages on.
//!
//! A page counts when it was crawled or a page that was links to it. Invariant: domains with
//! equal figures come by name, so a cursor shows none twice.

use crate::verbs::access::{Area, Needs};
use crate::verbs::context::VerbContext;
use crate::verbs::paging::LinkListPage;
use crate::verbs::{Opens, Verb};
use outputs::links::paging::Listing;
use outputs::links::rankings::{self, Domain};

/// The domains of which pages are known, the largest first.
pub struct Domains;

impl Verb for Domains {
    const NAME: &'static str = "domains";
    const NEEDS: Option<Needs> = Some(Needs::viewer(Area::Links));
    const OPENS: Opens = Opens::LinkIndex;
    type Request = LinkListPage;
    type Response = Listing<Domain>;

    fn answer(context: &VerbContext, page: LinkListPage) -> anyhow::Result<Listing<Domain>> {
        let index = context.link_index.open()?;
        let (paging, parts) = (page.paging()?, index.parts());
        Ok(index.read(move |view| rankings::domains(view, parts, &paging))?)
    }
}
