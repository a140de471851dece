//! The links of a page that a crawl follows, and what pages and style sheets need.
//!
//! Pure. Invariant: a target is canonical, and inside the reach of its job unless it is a
//! requisite; one that is known but not to be fetched carries the code that says why. A
//! requisite leads to requisites only, and to none beyond [`LEVELS_MAX`].

use crate::job::WebJob;
use crate::scope::Cut;
use page::facts::{Facts, Link, LinkKind, Rel};
use page::ids::DocHash;
use page::mirror::references::ReferenceKind;
use store::chunkfile::document::DocumentRole;
use store::tables::carrydown::Data;
use store::tables::queue::{LEVELS_MAX, ReasonCode, Standing};

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
    /// As what it is named.
    pub role: DocumentRole,
    /// Requisites in a row that lead to it, if it is one.
    pub levels: i64,
}

impl Target {
    fn new(url: &str, role: DocumentRole, cut: Option<ReasonCode>) -> Target {
        Target {
            url: url.to_owned(),
            dochash: DocHash::of(url),
            cut,
            data: Data::new(),
            list_depth: 0,
            role,
            levels: 0,
        }
    }
}

/// Links of a document that the crawl may follow, each target once, and what it needs. `more` are
/// those that its facts have no room for.
pub fn targets_of(
    web: &WebJob,
    docid: &str,
    from: Standing,
    facts: &Facts,
    more: &[Link],
) -> Vec<Target> {
    let mut targets = match from.role {
        DocumentRole::Page => links_of(web, docid, from.hops, facts, more),
        DocumentRole::Requisite => Vec::new(),
    };
    if web.requisites {
        add_requisites(web, docid, from, facts, &mut targets);
    }
    targets
}

fn links_of(web: &WebJob, docid: &str, hops: i64, facts: &Facts, more: &[Link]) -> Vec<Target> {
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
        targets.push(Target::new(&link.url, DocumentRole::Page, cut));
    }
    targets
}

/// What a document needs: neither the reach nor a `nofollow` counts for that.
fn add_requisites(
    web: &WebJob,
    docid: &str,
    from: Standing,
    facts: &Facts,
    targets: &mut Vec<Target>,
) {
    let levels = if from.role.is_requisite() { from.levels } else { 0 };
    if levels >= LEVELS_MAX {
        return;
    }
    for requisite in facts.requisites.iter().filter(|it| it.url != docid) {
        let cut = match web.scope.judge_requisite(&requisite.url) {
            Ok(()) => None,
            Err(Cut::Excluded(_)) => continue,
            Err(cut) => Some(cut.code()),
        };
        let levels = if leads_on(requisite.kind) { levels + 1 } else { LEVELS_MAX };
        let target = Target::new(&requisite.url, DocumentRole::Requisite, cut);
        targets.push(Target { levels, ..target });
    }
}

/// Whether what is needed for this needs others itself.
fn leads_on(kind: ReferenceKind) -> bool {
    use ReferenceKind::{Frame, Object, Stylesheet};
    matches!(kind, Stylesheet | Frame | Object)
}

#[cfg(test)]
mod tests;
