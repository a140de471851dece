//! Finds what a person means in the link index: a page by its URL or its row, a domain by
//! its name or anything that has it.
//!
//! A page is known by the URL that the job or the archive had for it, and jobs differ in
//! what they take away from URLs. So the usual spelling is tried first, then those that
//! keep more. Invariant: a page is found by every URL that the index itself shows.

use crate::refusal::OrRefused;
use crate::text::shown;
use crate::verbs::context::VerbContext;
use crate::verbs::jobs::documents::walk::host_name;
use crate::verbs::jobs::why::lookup;
use anyhow::Context;
use outputs::links::keys;
use outputs::links::node::Node;
use outputs::links::pages::Page;
use outputs::links::paging::Paging;
use outputs::links::queries::{self, Filter, KnownUri};
use outputs::links::{LinkIndex, rankings};
use page::domain::SuffixList;
use page::uri::Uri;
use page::url::Policy;
use store::ids::Part;
use store::sorted::View;
use store::tables::settings;

/// What jobs may have taken away from a URL, the usual first.
const POLICIES: [fn() -> Policy; 3] =
    [Policy::default, || Policy::NOTHING, || Policy { keep_fragment: true, ..Policy::NOTHING }];

/// A page that was found.
#[derive(Debug)]
pub struct FoundPage {
    /// How it is known.
    pub known: KnownUri,
    /// The page and when it was last seen, if it was ever crawled.
    pub page: Option<(Page, i64)>,
}

/// Rows that may be meant, each with its part.
pub type Candidates = Vec<(Part, String)>;

/// The index, and the rows that a text may mean.
pub fn candidates(context: &VerbContext, asked: &str) -> anyhow::Result<(LinkIndex, Candidates)> {
    let list = context.db.read(settings::suffix_list)?;
    let rows = rows(asked, &list)?;
    let index = context.link_index.open()?;
    let candidates = rows.into_iter().map(|row| (index.part_of(&row), row)).collect();
    Ok((index, candidates))
}

/// The first of them that is known. One that nobody links to any more counts, too.
pub fn find(view: &dyn View, candidates: &Candidates) -> store::Result<Option<FoundPage>> {
    for (part, row) in candidates {
        if let Some(known) = queries::find(view, *part, row)? {
            let page = queries::page_of(view, &known)?;
            return Ok(Some(FoundPage { known, page }));
        }
    }
    let one = Paging::new(1, None)?;
    for (part, row) in candidates {
        let node = Node { uri: row.clone(), ..Node::default() };
        let known = KnownUri { part: *part, hash: keys::hash(row), node };
        if !queries::lost(view, &known, &Filter::default(), &one)?.items.is_empty() {
            return Ok(Some(FoundPage { known, page: None }));
        }
    }
    Ok(None)
}

/// The rows that a text may mean, the likeliest first.
fn rows(asked: &str, list: &SuffixList) -> anyhow::Result<Vec<String>> {
    let asked = asked.trim();
    if Uri::from_uri(asked).is_ok() {
        return Ok(vec![asked.to_owned()]);
    }
    let mut rows: Vec<String> = Vec::new();
    let mut add = |row: String| {
        if !rows.contains(&row) {
            rows.push(row);
        }
    };
    let spelled = |policy: &Policy| lookup::spellings(asked, policy);
    for policy in POLICIES {
        let urls = spelled(&policy()).unwrap_or_default();
        urls.iter()
            .filter_map(|url| Uri::canonical(url, list).ok())
            .for_each(|it| add(it.to_uri()));
    }
    // Webindex changed nothing of a URL but the case of its host.
    for scheme in ["", "https://", "http://"] {
        if let Ok(uri) = Uri::webindex(&format!("{scheme}{asked}"), list) {
            add(uri.to_uri());
        }
    }
    if rows.is_empty() {
        spelled(&Policy::default()).map(|_| ()).or_refused().with_context(|| {
            format!(
                "{} is not the URL of a page; write it like https://example.com/page",
                shown(asked)
            )
        })?;
    }
    Ok(rows)
}

/// The domain that a text means, and how many pages of it are known; `None` for the number
/// if there are none.
pub fn domain(context: &VerbContext, asked: &str) -> anyhow::Result<(String, Option<u64>)> {
    let list = context.db.read(settings::suffix_list)?;
    let index = context.link_index.open()?;
    let (names, parts) = (domain_names(asked, &list), index.parts());
    let usual = names.first().cloned().unwrap_or_default();
    let found = index.read(move |view| {
        for name in &names {
            if let Some(pages) = rankings::pages_of_domain(view, parts, name)? {
                return Ok(Some((name.clone(), pages)));
            }
        }
        Ok(None)
    })?;
    Ok(found.map_or((usual, None), |(name, pages)| (name, Some(pages))))
}

/// The names that a domain may have: as canonical URLs spell it, and as it is written.
fn domain_names(asked: &str, list: &SuffixList) -> Vec<String> {
    let written = asked.trim().to_lowercase();
    let written = written.split_once("://").map_or(&*written, |(_, rest)| rest);
    let host = written.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let hosts = [host_name(asked), host.to_owned()];
    let mut names: Vec<String> = hosts
        .iter()
        .map(|host| list.grouping_domain(host.trim_end_matches('.')).to_owned())
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(asked: &str) -> Vec<String> {
        rows(asked, SuffixList::bundled()).unwrap()
    }

    #[test]
    fn a_page_is_looked_for_by_the_rows_it_may_have() {
        let cases: [(&str, &[&str]); 6] = [
            ("https://WWW.Example.com", &["com.example>.www>s>/"]),
            ("com.example>.www>s>/a#b", &["com.example>.www>s>/a#b"]),
            ("example.com/x", &["com.example>>s>/x", "com.example>>o>/x"]),
            (
                "http://example.com/?utm_source=x#top",
                &[
                    "com.example>>o>/",
                    "com.example>>o>/?utm_source=x",
                    "com.example>>o>/?utm_source=x#top",
                ],
            ),
            ("http://127.0.0.1:8080/a", &["127.0.0.1>>o8080>/a"]),
            ("http://localhost/", &["localhost>>o>/"]),
        ];
        for (asked, expected) in cases {
            assert_eq!(rows_of(asked), expected, "{asked}");
        }
        // What Webindex kept as it was written comes last.
        let odd = rows_of("http://example.com/a b/../c");
        assert_eq!(odd.first().map(String::as_str), Some("com.example>>o>/c"));
        assert_eq!(odd.last().map(String::as_str), Some("com.example>>o>/a b/../c"));
    }

    #[test]
    fn what_is_no_url_is_told_so() {
        for asked in ["", "hello", "mailto:me@example.com", "a>b>c"] {
            let error = format!("{:#}", rows(asked, SuffixList::bundled()).unwrap_err());
            assert!(error.contains("https://example.com/page"), "{asked}: {error}");
        }
    }

    #[test]
    fn a_domain_is_meant_by_anything_that_has_it() {
        let list = SuffixList::bundled();
        for asked in [
            "example.com",
            "WWW.Example.com",
            "https://example.com/x",
            "example.com:81",
            " a.example.com. ",
        ] {
            assert_eq!(domain_names(asked, list), ["example.com"], "{asked}");
        }
        assert_eq!(domain_names("www.Bücher.de", list), ["xn--bcher-kva.de", "bücher.de"]);
        assert_eq!(domain_names("http://127.0.0.1:8080/", list), ["127.0.0.1"]);
        assert_eq!(domain_names("http://[::1]:8080/", list)[0], "[::1]");
    }
}
