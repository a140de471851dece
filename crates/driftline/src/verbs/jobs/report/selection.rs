//! One page of an ordered list, chosen from rows that come in any order; and the cursors
//! that lead to the pages beside it.
//!
//! Invariants: no more rows are kept than a page has; pages that follow each other by
//! their cursors, forwards or back, have every row once, as long as the rows stay the same.

use crate::refusal::{refuse, require};
use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A row of an answer, by the names of its columns.
pub type Row = serde_json::Map<String, Json>;

/// Bytes of a cursor: an identifier or a description may be in it.
const CURSOR_BYTES_MAX: usize = 16_384;

/// A value that rows are ordered by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SortValue {
    None,
    Int(i64),
    Text(String),
}

impl From<&Json> for SortValue {
    fn from(value: &Json) -> SortValue {
        match value {
            Json::String(text) => SortValue::Text(text.clone()),
            value => value.as_i64().map_or(SortValue::None, SortValue::Int),
        }
    }
}

/// A place in the order: the column that it is ordered by, and what tells rows apart.
pub type Key = Vec<SortValue>;

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// What was asked: a cursor of another question would skip rows.
    pub question: String,
    /// Behind this row, or before it.
    pub key: Key,
    /// Whether it goes back.
    pub backward: bool,
    /// The time that is covered, which stays the same from page to page.
    pub since_ms: i64,
    pub until_ms: i64,
}

impl Cursor {
    /// As people copy it.
    pub fn write(&self) -> anyhow::Result<String> {
        Ok(BASE64URL_NOPAD.encode(serde_json::to_string(self)?.as_bytes()))
    }

    /// Reads a cursor of this question.
    pub fn read(text: &str, question: &str) -> anyhow::Result<Cursor> {
        const AGAIN: &str = "copy all of it, or start again without --cursor";
        require!(text.len() <= CURSOR_BYTES_MAX, "the cursor is too long; {AGAIN}");
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        match bytes.and_then(|bytes| serde_json::from_slice::<Cursor>(&bytes).ok()) {
            Some(cursor) if cursor.question == question => Ok(cursor),
            Some(_) => {
                refuse!("the cursor belongs to a report with other flags; use the same flags")
            }
            None => refuse!("the cursor cannot be read; {AGAIN}"),
        }
    }
}

/// A page that is being chosen.
#[derive(Debug)]
pub struct Selection {
    limit: usize,
    descending: bool,
    /// Behind, or before, this row.
    from: Option<(Key, bool)>,
    kept: BTreeMap<Key, Row>,
    /// There are rows behind the page.
    more: bool,
}

/// A page that was chosen.
#[derive(Debug, Default, PartialEq)]
pub struct RowPage {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// What the next page is behind, if there is one.
    pub next: Option<Key>,
    /// What the page before is before, if there is one.
    pub previous: Option<Key>,
}

impl RowPage {
    /// A page that a walk along an index has come by, in the order in which it was walked.
    /// `from` is where it began, `near` its first row, and `ahead` how far it has come, if
    /// there may be more.
    pub fn walked(
        mut rows: Vec<Row>,
        from: Option<(Key, bool)>,
        near: Option<Key>,
        ahead: Option<Key>,
    ) -> RowPage {
        let backward = from.as_ref().is_some_and(|(_, backward)| *backward);
        let behind = from.map(|(key, _)| near.unwrap_or(key));
        if backward {
            rows.reverse();
            return RowPage { rows, next: behind, previous: ahead };
        }
        RowPage { rows, next: ahead, previous: behind }
    }
}

impl Selection {
    /// A page of at most `limit` rows, from a cursor's row on.
    pub fn new(limit: usize, descending: bool, from: Option<(Key, bool)>) -> Selection {
        Selection { limit, descending, from, kept: BTreeMap::new(), more: false }
    }

    fn is_backward(&self) -> bool {
        self.from.as_ref().is_some_and(|(_, backward)| *backward)
    }

    /// Whether larger keys are nearer to the row that the page begins at.
    fn falls(&self) -> bool {
        self.descending != self.is_backward()
    }

    /// Whether a row of this key can be in the page, as far as is known.
    pub fn wants(&self, key: &[SortValue]) -> bool {
        let falls = self.falls();
        let is_beyond = match &self.from {
            Some((from, _)) if falls => key < from.as_slice(),
            Some((from, _)) => key > from.as_slice(),
            None => true,
        };
        let farthest = if falls { self.kept.first_key_value() } else { self.kept.last_key_value() };
        let is_nearer = |farthest: &Key| match falls {
            true => key > farthest.as_slice(),
            false => key < farthest.as_slice(),
        };
        let is_near = self.kept.len() < self.limit
            || farthest.is_none_or(|(farthest, _)| is_nearer(farthest));
        is_beyond && (is_near || !self.more)
    }

    /// Takes a row in, if it belongs to the page.
    pub fn offer(&mut self, key: Key, row: Row) {
        if !self.wants(&key) {
            return;
        }
        self.kept.insert(key, row);
        if self.kept.len() > self.limit {
            self.more = true;
            if self.falls() {
                self.kept.pop_first()
            } else {
                self.kept.pop_last()
            };
        }
    }

    pub fn page(self) -> RowPage {
        let (backward, more) = (self.is_backward(), self.more);
        let from = self.from.map(|(key, _)| key);
        let mut kept: Vec<(Key, Row)> = self.kept.into_iter().collect();
        if self.descending {
            kept.reverse();
        }
        let first = kept.first().map(|(key, _)| key.clone()).or_else(|| from.clone());
        let last = kept.last().map(|(key, _)| key.clone()).or_else(|| from.clone());
        let has_next = if backward { true } else { more };
        let has_previous = if backward { more } else { from.is_some() };
        RowPage {
            rows: kept.into_iter().map(|(_, row)| row).collect(),
            next: last.filter(|_| has_next),
            previous: first.filter(|_| has_previous),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: i64) -> Row {
        Row::from_iter([("number".to_owned(), number.into())])
    }

    fn page(descending: bool, from: Option<(Key, bool)>) -> RowPage {
        let mut selection = Selection::new(3, descending, from);
        // In an order that is none.
        for number in [4, 9, 1, 7, 0, 3, 8, 2, 6, 5] {
            selection.offer(vec![SortValue::Int(number)], row(number));
        }
        selection.page()
    }

    fn numbers(page: &RowPage) -> Vec<i64> {
        page.rows.iter().filter_map(|row| row["number"].as_i64()).collect()
    }

    #[test]
    fn pages_follow_each_other_forwards_and_back() {
        for descending in [false, true] {
            let (mut all, mut pages, mut from) = (Vec::new(), Vec::new(), None);
            loop {
                let page = page(descending, from);
                all.extend(numbers(&page));
                from = page.next.clone().map(|key| (key, false));
                pages.push(page);
                if from.is_none() {
                    break;
                }
            }
            let mut expected: Vec<i64> = (0..10).collect();
            if descending {
                expected.reverse();
            }
            assert_eq!(all, expected);
            assert_eq!(pages[0].previous, None);
            for at in (1..pages.len()).rev() {
                let back = page(descending, pages[at].previous.clone().map(|key| (key, true)));
                assert_eq!(back.rows, pages[at - 1].rows, "back from page {at}");
                assert_eq!(back.previous, pages[at - 1].previous);
                assert_eq!(back.next, pages[at - 1].next);
            }
        }
    }

    #[test]
    fn a_cursor_is_read_back_and_belongs_to_its_question() {
        let key = vec![SortValue::None, SortValue::Int(-5), SortValue::Text("é".into())];
        let cursor =
            Cursor { question: "q".into(), key, backward: true, since_ms: i64::MIN, until_ms: 7 };
        let text = cursor.write().unwrap();
        assert_eq!(Cursor::read(&text, "q").unwrap(), cursor);
        let cases = [
            (text.as_str(), "p", "other flags"),
            (&text[1..], "q", "cannot be read"),
            ("?", "q", "cannot be read"),
        ];
        for (text, question, word) in cases {
            let error = Cursor::read(text, question).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let long = "A".repeat(CURSOR_BYTES_MAX + 1);
        assert!(Cursor::read(&long, "q").unwrap_err().to_string().contains("too long"));
    }
}
