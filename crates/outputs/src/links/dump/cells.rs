//! The cells of a domain, a URI and a page, in each layout.
//!
//! Invariant: a cell's row, family and qualifier are its own; a count in one of them is
//! written so that larger ones come first ([`counts::encoded`]).

use super::Layout;
use crate::links::counts::encoded;
use crate::links::node::Node;
use crate::links::pages::{Page, PageLink};
use crate::links::rankings::url_of;
use jiff::Timestamp;
use page::outlinks::domain_of;
use page::webindex::{self, WebindexPage};
use std::borrow::Cow;
use std::fmt::Write;
use store::{Error, Result};

/// A cell of the query table.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct QueryTableCell<'a> {
    pub row: &'a str,
    pub family: &'a str,
    pub qualifier: &'a str,
    pub value: &'a str,
    /// Whether that is foreign text, which is escaped.
    pub is_text: bool,
    /// The change that wrote it.
    pub seq: u64,
}

/// Receives the cells of the table in the order of its rows.
pub type Put<'a> = dyn FnMut(&QueryTableCell<'_>) -> Result<()> + 'a;

/// A number, and the change that counted it.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Count {
    pub count: u64,
    pub seq: u64,
}

/// A cell that holds a number.
fn put_count(
    put: &mut Put<'_>,
    row: &str,
    family: &str,
    qualifier: &str,
    Count { count, seq }: Count,
) -> Result<()> {
    let value = count.to_string();
    put(&QueryTableCell { row, family, qualifier, value: &value, is_text: false, seq })
}

/// A domain, how many pages it has, and which change counted them.
pub fn of_domain(layout: Layout, domain: &str, pages: Count, put: &mut Put<'_>) -> Result<()> {
    put_count(put, &format!("d:{domain}"), "domain", "pagecount", pages)?;
    match layout {
        Layout::Webindex | Layout::Seed003 => Ok(()),
        Layout::Seed000 => {
            let place = format!("{}:{domain}", encoded(pages.count));
            put_count(put, "t:pagecount", "rank", &place, pages)
        }
    }
}

/// A URI: its counts, and its places in rankings.
pub fn of_node(layout: Layout, node: &Node, put: &mut Put<'_>) -> Result<()> {
    let Node { uri, incount, seq, .. } = node;
    let (domain, row) = (domain_of(uri), format!("p:{uri}"));
    let count = Count { count: *incount, seq: *seq };
    let place = format!("{}:{uri}", encoded(*incount));
    match layout {
        Layout::Webindex => {
            put_count(put, &format!("d:{domain}:{place}"), "rank", "", count)?;
            put_count(put, &row, "page", "incount", count)?;
            put_count(put, &format!("t:{place}"), "", "", count)
        }
        Layout::Seed003 => {
            put_count(put, &format!("d:{domain}"), "rank", &place, count)?;
            put_count(put, &row, "page", "incount", count)?;
            put_count(put, &format!("t:{place}"), "", "", count)
        }
        Layout::Seed000 => {
            let score = Count { count: incount + u64::from(node.crawled), seq: *seq };
            let scored = format!("{}:{uri}", encoded(score.count));
            put_count(put, &format!("d:{domain}"), "rank", &scored, score)?;
            put_count(put, &row, "page", "score", score)?;
            put_count(put, "t:score", "rank", &scored, score)?;
            // That design has no count before somebody links.
            if *incount > 0 {
                put_count(put, &row, "page", "incount", count)?;
                put_count(put, "t:incount", "rank", &place, count)?;
            }
            Ok(())
        }
    }
}

/// A page that is there.
pub fn of_page(layout: Layout, page: Page, put: &mut Put<'_>) -> Result<()> {
    let (row, seq) = (format!("p:{}", page.uri), page.seq);
    let json = match layout {
        Layout::Webindex => original_json(page),
        Layout::Seed003 | Layout::Seed000 => seed_json(&page)?,
    };
    put(&QueryTableCell {
        row: &row,
        family: "page",
        qualifier: "cur",
        value: &json,
        is_text: false,
        seq,
    })
}

/// As Webindex kept pages. The date is that of the version: a page that is seen again
/// and says the same is the same cell.
fn original_json(page: Page) -> String {
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    let crawl_date = Some(page.date_ms)
        .filter(|date_ms| *date_ms != 0)
        .and_then(|date_ms| Timestamp::from_second(date_ms.div_euclid(1_000)).ok())
        .map(|date| date.to_string());
    webindex::to_json(&WebindexPage {
        url: url_of(&page.uri),
        uri: page.uri,
        crawl_date,
        server: text(page.server),
        title: text(page.title),
        links: page.links.into_iter().map(PageLink::into_link).collect(),
    })
}

/// As the seeds' examples have pages.
fn seed_json(page: &Page) -> Result<String> {
    #[derive(serde::Serialize)]
    struct Json {
        outlinkcount: usize,
        outlinks: Vec<String>,
    }
    let outlinks: Vec<String> = page.links.iter().map(|link| url_of(&link.uri)).collect();
    let json = Json { outlinkcount: outlinks.len(), outlinks };
    serde_json::to_string(&json).map_err(|error| Error::corrupt(&page.uri, error.to_string()))
}

/// A text that is one field of one line. In a field that others follow, `|` is escaped too.
pub fn escaped(text: &str, others_follow: bool) -> Cow<'_, str> {
    let is_special =
        |c: char| matches!(c, '\\' | '\n' | '\r' | '\0') || (others_follow && c == '|');
    if !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c if is_special(c) => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The text behind the escapes of `escape`.
    fn plain(text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text.chars());
        while let Some(c) = rest.next() {
            out.push(match c {
                '\\' => match rest.next().unwrap() {
                    'n' => '\n',
                    'r' => '\r',
                    'x' => {
                        let hex: String = rest.by_ref().take(2).collect();
                        char::from(u8::from_str_radix(&hex, 16).unwrap())
                    }
                    c => c,
                },
                c => c,
            });
        }
        out
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_one_field_and_can_be_read_back(
            text in "[a\\\\nrx7c|\n\r\0ä]{0,20}",
        ) {
            for others_follow in [true, false] {
                let field = escaped(&text, others_follow);
                prop_assert!(!field.contains(['\n', '\r', '\0']));
                prop_assert!(!(others_follow && field.contains('|')));
                prop_assert_eq!(plain(&field), text.clone());
            }
        }
    }
}
