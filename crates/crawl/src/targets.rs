//! The links of a page that a crawl follows.
//!
//! Pure. Invariant: a target is canonical and inside the reach of its job; one that is known but
//! not to be fetched carries the code that says why.

use crate::job::WebJob;
use crate::scope::Cut;
use page::facts::{Facts, Link, LinkKind, Rel};
use page::ids::DocHash;
use store::tables::carrydown::Data;
use store::tables::queue::ReasonCode;

/// A link that belongs to the crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub url: String,
    /// The key of that URL.
    pub dochash: DocHash,
    /// Why it is not to be fetched, if it is not.
    pub cut: Option<ReasonCode>,
    /// What it is handed.
    pub data: Data,
    /// Lists that lead to it, if it is a list that an index names; 0 if it is none.
    pub list_depth: u8,
}

/// Links of a page that the crawl may follow, each target once. `more` are those that its facts
/// have no room for.
pub fn targets_of(
    web: &WebJob,
    docid: &str,
    hops: i64,
    facts: &Facts,
    more: &[Link],
) -> Vec<Target> {
    let polite = web.spec.meta_robots;
    let is_article = web.feeds && hops > 0;
    if is_article || (polite && facts.directives.nofollow) {
        return Vec::new();
    }
    let mut targets = Vec::with_capacity(facts.links.len().min(128));
    let mut last: Option<&str> = None;
    for link in facts.links.iter().chain(more) {
        let skipped = link.kind == LinkKind::Image || (polite && link.rel.has(Rel::NOFOLLOW));
        if skipped || last == Some(link.url.as_str()) || link.url == docid {
            continue;
        }
        last = Some(&link.url);
        let cut = match web.scope.judge(&link.url, hops + 1) {
            Ok(()) => None,
            Err(Cut::Reach | Cut::NotIncluded | Cut::Excluded(_)) => continue,
            Err(cut) => Some(cut.code()),
        };
        let dochash = DocHash::of(&link.url);
        targets.push(Target {
            url: link.url.clone(),
            dochash,
            cut,
            data: Data::new(),
            list_depth: 0,
        });
    }
    targets
}
