//! The links of a page as people read them: what is known of it, a table a list, and how to
//! go on.

use super::flags::LinksQueryArgs;
use super::unknown;
use crate::text::{count, counted, date, shown, table, when};
use crate::verbs::links::{LinkLine, LinkList, LinksResponse, PageHead};
use outputs::links::paging::Listing;

/// Characters of a link's words that are shown; JSON and CSV have all of them.
const ANCHOR_CHARS_MAX: usize = 40;
/// What a table says of a page that is not in the index yet: the batch that brings it is
/// under way.
const COMING: &str = "(not yet known)";

/// The lines of an answer.
pub fn lines(looking: &LinksQueryArgs, response: &LinksResponse, now_ms: i64) -> Vec<String> {
    let Some(head) = &response.page else {
        return vec![unknown(&looking.place, &response.asked)];
    };
    let mut out = head_lines(head, now_ms);
    let lists = [
        (LinkList::In, &response.inward),
        (LinkList::Lost, &response.lost),
        (LinkList::Out, &response.out),
    ];
    for (list, listing) in lists {
        if let Some(listing) = listing {
            out.push(String::new());
            if list == LinkList::Out && !head.crawled {
                out.push("out-links: unknown, because the page was not crawled".to_owned());
                continue;
            }
            out.extend(section(title(list, response.since_ms), list, listing));
            out.extend(looking.flags.ways(&looking.command(list), listing));
        }
    }
    out
}

/// What is said first of a page.
pub fn head_lines(head: &PageHead, now_ms: i64) -> Vec<String> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let incount = count(number(head.incount), "in-link");
    let counts = match head.crawled {
        true => format!("{incount}, {}", count(number(head.outcount), "out-link")),
        false => incount,
    };
    vec![shown(&head.url), format!("    {counts}, {}", standing(head, now_ms))]
}

/// Whether a page is there.
pub fn standing(head: &PageHead, now_ms: i64) -> String {
    match (head.last_seen_ms, head.gone_ms) {
        (Some(seen_ms), _) => format!("crawled {}", when(seen_ms, now_ms)),
        (None, Some(gone_ms)) => {
            let reason = head.gone.as_deref().filter(|reason| !reason.is_empty());
            let reason = reason.map_or(String::new(), |reason| format!(" ({})", shown(reason)));
            format!("gone{reason} {}", when(gone_ms, now_ms))
        }
        (None, None) => "not crawled".to_owned(),
    }
}

fn title(list: LinkList, since_ms: Option<i64>) -> String {
    let since = since_ms.map_or(String::new(), |since_ms| format!(" since {}", date(since_ms)));
    let new = if since_ms.is_some() { "new " } else { "" };
    match list {
        LinkList::In => format!("{new}in-links{since}"),
        LinkList::Lost => format!("lost in-links{since}"),
        LinkList::Out => format!("{new}out-links{since}"),
    }
}

fn section(title: String, list: LinkList, listing: &Listing<LinkLine>) -> Vec<String> {
    if listing.items.is_empty() {
        // A page of a filtered list may end before anything is found.
        let none = if listing.next.is_some() { "none so far" } else { "none" };
        return vec![format!("{title}: {none}")];
    }
    let (other, first) = match list {
        LinkList::In => ("source", ["first seen (UTC)", "last seen (UTC)"]),
        LinkList::Out => ("target", ["first seen (UTC)", "last seen (UTC)"]),
        LinkList::Lost => ("source", ["lost (UTC)", "first seen (UTC)"]),
    };
    let mut head: Vec<&str> = first.to_vec();
    if list == LinkList::Lost {
        head.push("reason");
    }
    head.extend(["kind", "nofollow", "anchor", other]);
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    rows.extend(listing.items.iter().map(|it| row(list, it)));
    [vec![format!("{title}:")], table(&rows, |_| false)].concat()
}

fn row(list: LinkList, it: &LinkLine) -> Vec<String> {
    let mut row = match list {
        LinkList::Lost => vec![
            it.lost_ms.map_or("-".to_owned(), minute),
            minute(it.first_seen_ms),
            it.reason.clone().unwrap_or_default(),
        ],
        LinkList::In | LinkList::Out => vec![minute(it.first_seen_ms), minute(it.last_seen_ms)],
    };
    let nofollow = if it.nofollow { "yes" } else { "no" };
    let url = if it.url.is_empty() { COMING.to_owned() } else { shown(&it.url) };
    row.extend([it.kind.clone(), nofollow.to_owned(), anchor(&it.anchor), url]);
    row
}

/// A moment to the minute, in UTC, for a column that says so.
fn minute(moment_ms: i64) -> String {
    date(moment_ms).trim_end_matches(" UTC").to_owned()
}

fn anchor(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    let text = shown(text);
    match text.char_indices().nth(ANCHOR_CHARS_MAX) {
        Some(_) => text.chars().take(ANCHOR_CHARS_MAX - 1).chain(['…']).collect(),
        None => text,
    }
}

/// `1 page`, `2 pages`, of a number of the index.
pub fn pages(number: u64) -> String {
    counted(i64::try_from(number).unwrap_or(i64::MAX), "page", "pages")
}
