//! Rankings: URIs from most to least linked, of all or of a domain, and domains by pages.
//!
//! A ranking is merged from sorted lists: two for each part (crawled and not), or those of
//! one domain, which has lists of its own for what is linked to by many, and shares those
//! of all for the rest. By score a crawled URI counts one more, which is an order of the
//! same lists.
//! Invariant: an entry's place is its value and its URI alone, so that a cursor means the
//! same in every list.

use super::counts;
use super::fold::decode_domain;
use super::keys::{self, RankingList};
use super::paging::{Listing, Paging};
use super::parts::{of_domain, turned};
use page::uri::Uri;
use serde::{Deserialize, Serialize};
use store::Result;
use store::ids::Part;
use store::sorted::{Span, View};

/// What a ranking goes by.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The pages that link to it.
    #[default]
    Incount,
    /// The same, and one more if it was crawled.
    Score,
}

/// A URI in a ranking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct RankedUri {
    pub url: String,
    /// The URI in its row form.
    pub uri: String,
    /// How many pages link to it.
    pub incount: u64,
    /// The same, and one more if it was crawled.
    pub score: u64,
    /// Whether it was crawled.
    pub crawled: bool,
}

/// A domain in the ranking of domains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct Domain {
    pub domain: String,
    /// URIs of it that are crawled or linked to.
    pub pages: u64,
}

/// A list that a ranking is merged from: keys that begin so, in order.
struct RankingSource {
    part: Part,
    prefix: Vec<u8>,
    class: RankingList,
    /// The number of in-links of all its entries, if it is the same; else their keys have it.
    incount: Option<u64>,
    /// What the URIs of its entries begin with, which their keys do not have.
    start: String,
}

/// The most linked URIs of all parts.
pub fn top(view: &dyn View, parts: u32, by: By, paging: &Paging) -> Result<Listing<RankedUri>> {
    let list = |part, class| RankingSource {
        part,
        prefix: keys::ranks(class),
        class,
        incount: None,
        start: String::new(),
    };
    let of_part = |part| RankingList::BOTH.map(|class| list(part, class));
    let lists = Part::all(parts).flat_map(of_part).collect();
    merge(view, vec![lists], by, paging)
}

/// The most linked URIs of a domain, which is given by its name.
pub fn top_of_domain(
    view: &dyn View,
    parts: u32,
    domain: &str,
    by: By,
    paging: &Paging,
) -> Result<Listing<RankedUri>> {
    let reversed = turned(domain);
    let part = of_domain(&reversed, parts);
    let many = |class| RankingSource {
        part,
        prefix: keys::domain_ranks(&reversed, class),
        class,
        incount: None,
        start: reversed.clone(),
    };
    // Few in-links: of each number, the URIs of a domain lie together in the ranking of all.
    let few = |class, incount| RankingSource {
        part,
        prefix: keys::rank(class, incount, &format!("{reversed}>")),
        class,
        incount: Some(incount),
        start: format!("{reversed}>"),
    };
    let more = u64::from(by == By::Score);
    let mut tiers = vec![vec![many(RankingList::Linked), many(RankingList::Crawled)]];
    for value in (0..=keys::FEW_MAX + more).rev() {
        let linked = Some(value).filter(|count| *count <= keys::FEW_MAX);
        let crawled = value.checked_sub(more).filter(|count| *count <= keys::FEW_MAX);
        let lists = linked.map(|count| few(RankingList::Linked, count)).into_iter();
        let lists = lists.chain(crawled.map(|count| few(RankingList::Crawled, count)));
        match tiers.last_mut() {
            // By score, the first of few have as much as the last of many.
            Some(first) if linked.is_none() => first.extend(lists),
            _ => tiers.push(lists.collect()),
        }
    }
    merge(view, tiers, by, paging)
}

/// How many URIs of a domain there are; `None` if it is not known.
pub fn pages_of_domain(view: &dyn View, parts: u32, domain: &str) -> Result<Option<u64>> {
    let reversed = turned(domain);
    let part = of_domain(&reversed, parts);
    let row = view.get(part, &keys::domain(&reversed))?;
    row.map(|bytes| decode_domain(&bytes).map(|it| it.0)).transpose()
}

/// Domains from the one with most pages on.
pub fn domains(view: &dyn View, parts: u32, paging: &Paging) -> Result<Listing<Domain>> {
    let prefix = keys::domains_ranked();
    let mut found = Vec::new();
    for part in Part::all(parts) {
        let place = paging.at.as_ref().map(|at| [&prefix[..], &at.key].concat());
        let span = span(&prefix, place.as_deref(), paging.backwards());
        for (key, _) in view.scan(part, &span, paging.wanted())? {
            let Some((pages, reversed)) = keys::read_rank(&prefix, &key) else { continue };
            found.push((key[prefix.len()..].to_vec(), Domain { domain: turned(reversed), pages }));
        }
    }
    Ok(paging.listing(in_order(found, paging)))
}

/// A page of a ranking that consists of tiers, each of which lies before the next; the
/// lists of one are merged.
fn merge(
    view: &dyn View,
    mut tiers: Vec<Vec<RankingSource>>,
    by: By,
    paging: &Paging,
) -> Result<Listing<RankedUri>> {
    if paging.backwards() {
        tiers.reverse();
    }
    let mut found = Vec::new();
    for lists in tiers {
        let mut tier = Vec::new();
        for list in lists {
            list.read(view, by, paging, &mut tier)?;
        }
        found.append(&mut in_order(tier, paging));
        if found.len() >= paging.wanted() {
            break;
        }
    }
    found.truncate(paging.wanted());
    Ok(paging.listing(found))
}

/// What of a list lies behind a place in the ranking, in the direction of reading.
enum Behind {
    All,
    Nothing,
    /// What follows this key.
    Key(Vec<u8>),
}

impl RankingSource {
    fn read(
        &self,
        view: &dyn View,
        by: By,
        paging: &Paging,
        out: &mut Vec<(Vec<u8>, RankedUri)>,
    ) -> Result<()> {
        let more = u64::from(by == By::Score && self.class == RankingList::Crawled);
        let place = match paging.at.as_ref().map(|at| self.behind(&at.key, more, at.backwards)) {
            None | Some(Behind::All) => None,
            Some(Behind::Nothing) => return Ok(()),
            Some(Behind::Key(key)) => Some(key),
        };
        let span = span(&self.prefix, place.as_deref(), paging.backwards());
        for (key, _) in view.scan(self.part, &span, paging.wanted())? {
            let rest = || std::str::from_utf8(&key[self.prefix.len()..]).ok();
            let entry = match self.incount {
                Some(incount) => rest().map(|rest| (incount, rest)),
                None => keys::read_rank(&self.prefix, &key),
            };
            let Some((incount, rest)) = entry else { continue };
            let uri = [&self.start, rest].concat();
            let crawled = self.class == RankingList::Crawled;
            let place = [&counts::descending(incount + more)[..], uri.as_bytes()].concat();
            let (url, score) = (url_of(&uri), incount + u64::from(crawled));
            out.push((place, RankedUri { url, uri, incount, score, crawled }));
        }
        Ok(())
    }

    /// Where a place in the ranking lies in this list, whose entries count so many more.
    fn behind(&self, key: &[u8], more: u64, backwards: bool) -> Behind {
        let none_or_all = |is_before: bool| match is_before == backwards {
            true => Behind::All,
            false => Behind::Nothing,
        };
        let Some((value, uri)) = key.split_at_checked(counts::BYTES) else {
            return Behind::Nothing;
        };
        let Some(value) = counts::read(value) else { return Behind::Nothing };
        // A place of a value that the list cannot have lies behind all of it.
        let Some(count) = value.checked_sub(more) else { return none_or_all(true) };
        let head = match self.incount {
            Some(incount) if incount != count => return none_or_all(incount > count),
            Some(_) => self.prefix.clone(),
            None => [&self.prefix[..], &counts::descending(count)].concat(),
        };
        let start = self.start.as_bytes();
        // URIs of other domains lie before or behind all of this list's of that number.
        let rest = match uri.strip_prefix(start) {
            Some(rest) => rest.to_vec(),
            None if uri < start => Vec::new(),
            None => vec![u8::MAX],
        };
        Behind::Key([head, rest].concat())
    }
}

fn span(prefix: &[u8], place: Option<&[u8]>, backwards: bool) -> Span {
    let all = Span::prefix(prefix);
    let all = if backwards { all.reversed() } else { all };
    match place {
        Some(place) => all.behind(place),
        None => all,
    }
}

/// The first entries of all lists together, in the order they are read.
fn in_order<T>(mut found: Vec<(Vec<u8>, T)>, paging: &Paging) -> Vec<(Vec<u8>, T)> {
    found.sort_by(|one, other| one.0.cmp(&other.0));
    if paging.backwards() {
        found.reverse();
    }
    found.truncate(paging.wanted());
    found
}

/// The URL of a row; what is no row is shown as it is.
pub fn url_of(uri: &str) -> String {
    Uri::from_uri(uri).map_or_else(|_| uri.to_owned(), |it| it.to_url())
}
