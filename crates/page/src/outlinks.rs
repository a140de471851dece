//! Which links of a page count for the link index, and the rows they lead to.
//!
//! Relies on [`crate::uri`] for rows, and on [`crate::facts`] for links that are canonical,
//! bounded, and in document order.
//!
//! Invariant: the links of a page are sorted by their rows, bytewise, and no row is among
//! them twice, so that two versions of a page are compared in one pass.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::domain::SuffixList;
use crate::facts::{LINKS_MAX, Link, LinkKind, Rel};
use crate::uri::{SEPARATOR, Uri, canonical_path};
use crate::url::{URL_BYTES_MAX, origin_of};

/// Which links of a page the link index counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkPolicy {
    /// Every link that leads to a page, also within the site and to the page itself.
    #[default]
    All,
    /// Those that lead to another domain.
    External,
    /// Those that Webindex counted, by its own rules for URLs.
    Webindex,
}

impl LinkPolicy {
    const EVERY: [LinkPolicy; 3] = [LinkPolicy::All, LinkPolicy::External, LinkPolicy::Webindex];

    /// Its name in settings and tables.
    pub fn name(self) -> &'static str {
        match self {
            LinkPolicy::All => "all",
            LinkPolicy::External => "external",
            LinkPolicy::Webindex => "webindex",
        }
    }

    /// The policy of this name.
    pub fn parse(name: &str) -> Option<LinkPolicy> {
        LinkPolicy::EVERY.into_iter().find(|policy| policy.name() == name)
    }
}

/// The word of a job that feeds no link index.
pub const OFF: &str = "off";

/// A job's link policy as it is stored, or none. None is written as a word, because
/// documents of definitions have no `null`, and what is left out of them takes its default.
pub mod setting {
    use super::{LinkPolicy, OFF};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the policy's name, or nothing.
    pub fn serialize<S: Serializer>(links: &Option<LinkPolicy>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(links.map_or(OFF, LinkPolicy::name))
    }

    /// Reads a policy's name; an unknown one is an error.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LinkPolicy>, D::Error> {
        match Option::<String>::deserialize(from)?.as_deref() {
            None | Some(OFF) => Ok(None),
            Some(name) => LinkPolicy::parse(name).map(Some).ok_or_else(|| {
                D::Error::custom(format!(
                    "links is one of all, external, webindex, {OFF}, not {name:?}"
                ))
            }),
        }
    }
}

/// A link as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutLink {
    /// The row it leads to.
    pub uri: String,
    /// The words it is known by.
    pub anchor: String,
    /// How the page names it.
    pub kind: LinkKind,
    /// The link's `nofollow`, `ugc` and `sponsored`.
    pub rel: Rel,
}

/// A page as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Outlinks {
    pub uri: String,
    /// Its links by row, each row once.
    pub links: Vec<OutLink>,
}

/// The links of a page that count. `None` when the page itself has no row.
pub fn of(url: &str, links: &[Link], policy: LinkPolicy, list: &SuffixList) -> Option<Outlinks> {
    match policy {
        LinkPolicy::All | LinkPolicy::External => canonical(url, links, policy, list),
        LinkPolicy::Webindex => {
            let uri = original_row(&Uri::webindex(url, list).ok()?)?;
            let anchors = links.iter().filter(|link| link.kind == LinkKind::A);
            let written = anchors.map(|link| WrittenLink {
                url: &link.url,
                anchor: Cow::Borrowed(&link.anchor),
                rel: link.rel,
            });
            let links = original_links(&uri, written, list);
            Some(Outlinks { uri, links })
        }
    }
}

/// The reversed domain of a row: what stands before the first separator.
pub fn domain_of(uri: &str) -> &str {
    uri.split_once(SEPARATOR).map_or(uri, |(domain, _)| domain)
}

fn canonical(url: &str, links: &[Link], policy: LinkPolicy, list: &SuffixList) -> Option<Outlinks> {
    let uri = Uri::canonical(url, list).ok()?.to_uri();
    // What rows of an origin begin with is found once; `None` where no link to it counts.
    let begin = |url: &str| {
        let row = Uri::canonical(url, list).ok()?.row_of_origin();
        let counts = policy == LinkPolicy::All || domain_of(&row) != domain_of(&uri);
        counts.then_some(row)
    };
    // Most links stay on the page's own origin, which is told without looking for its end.
    let (own, own_row) = (origin_of(url), begin(url));
    let mut others: HashMap<&str, Option<String>> = HashMap::new();
    let mut kept = Vec::with_capacity(links.len());
    for link in links.iter().filter(|link| leads_to_a_page(link.kind)) {
        let (origin, path) = match link.url.strip_prefix(own) {
            Some(path) if path.starts_with('/') => (&own_row, path),
            _ => {
                let origin = origin_of(&link.url);
                let row = others.entry(origin).or_insert_with(|| begin(&link.url));
                (&*row, &link.url[origin.len()..])
            }
        };
        let Some(origin) = origin else { continue };
        let uri = [origin, &*canonical_path(path)].concat();
        kept.push(OutLink { uri, anchor: link.anchor.clone(), kind: link.kind, rel: link.rel });
    }
    sort(&mut kept);
    kept.dedup_by(|later, first| {
        let is_same = later.uri == first.uri;
        if is_same {
            join(first, later);
        }
        is_same
    });
    Some(Outlinks { uri, links: kept })
}

fn leads_to_a_page(kind: LinkKind) -> bool {
    !matches!(kind, LinkKind::Image | LinkKind::Sitemap)
}

/// Two links to one row become one, which promises what both do.
fn join(first: &mut OutLink, later: &mut OutLink) {
    if first.anchor.is_empty() {
        first.anchor = std::mem::take(&mut later.anchor);
    }
    first.rel = Rel(first.rel.0 & later.rel.0);
}

/// A link as a page wrote it, which need not be a URL.
pub(crate) struct WrittenLink<'a> {
    pub(crate) url: &'a str,
    pub(crate) anchor: Cow<'a, str>,
    pub(crate) rel: Rel,
}

/// What Webindex kept of the links of a page: those that have a row, and not in the page's
/// own domain. Of several to one row the first counts, with its anchor even if that is empty.
///
/// Webindex knew no limit; of more than [`LINKS_MAX`] the first by row are kept here.
pub(crate) fn original_links<'a>(
    page: &str,
    links: impl Iterator<Item = WrittenLink<'a>>,
    list: &SuffixList,
) -> Vec<OutLink> {
    let mut kept = Vec::new();
    for link in links {
        let row = Uri::webindex(link.url, list).ok().and_then(|uri| original_row(&uri));
        let Some(uri) = row.filter(|row| domain_of(row) != domain_of(page)) else { continue };
        let anchor = link.anchor.into_owned();
        kept.push(OutLink { uri, anchor, kind: LinkKind::A, rel: link.rel });
    }
    sort(&mut kept);
    kept.dedup_by(|later, first| later.uri == first.uri);
    kept.truncate(LINKS_MAX);
    kept
}

/// The row, unless it is longer than that of any URL of ours, or contains NUL, which no table
/// can hold. Webindex knew neither limit.
pub(crate) fn original_row(uri: &Uri<'_>) -> Option<String> {
    Some(uri.to_uri()).filter(|row| row.len() <= URL_BYTES_MAX && !row.contains('\0'))
}

/// Links to one row stay in the order they came in.
fn sort(links: &mut [OutLink]) {
    links.sort_by(|one, other| one.uri.cmp(&other.uri));
}

#[cfg(test)]
mod tests;
