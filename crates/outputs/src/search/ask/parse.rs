//! Questions as people write them: words, phrases, operators, filters.
//!
//! Whatever is written means something: a quote that is not closed ends with the text, a
//! parenthesis without its other half is left out. Only what has no sense at all is refused,
//! with what to write instead. Invariant: a question has at most [`CLAUSES_MAX`] clauses and
//! is nested at most [`DEPTH_MAX`] deep.

use super::super::words::{TermMatch, term_match};
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Bytes of a question.
pub const QUESTION_BYTES_MAX: usize = 2_000;
/// Words, phrases and filters of a question.
pub const CLAUSES_MAX: usize = 64;
/// How deep parentheses are nested.
pub const DEPTH_MAX: usize = 16;
/// Letters before a `*`.
pub const BEGINNING_MIN: usize = 2;

/// A parsed question.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum QueryNode {
    All(Vec<QueryNode>),
    /// At least one of these.
    Any(Vec<QueryNode>),
    Not(Box<QueryNode>),
    /// Words that follow each other.
    Words(FieldScope, Vec<String>),
    /// A word that begins like this.
    Beginning(FieldScope, String),
    /// What else is asked of a document.
    Filter(Filter),
}

/// Where words are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FieldScope {
    Anywhere,
    Title,
    Address,
}

/// What is asked of a document beside its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// It is on this host, or on one below it.
    Site(String),
    /// It is of this domain.
    Domain(String),
    /// It is in this language.
    Language(String),
    /// It is of this kind.
    Media(String),
    /// It is older than this.
    Before(i64),
    /// It is of this time or later.
    After(i64),
    /// It has so many in-links.
    Links(u64, u64),
}

/// Why a question cannot be answered. The text says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum QuestionRefusal {
    /// It is too long.
    #[error("a query has at most {QUESTION_BYTES_MAX} bytes")]
    TooLong,
    /// It has too many clauses.
    #[error("a query has at most {CLAUSES_MAX} words, phrases and filters")]
    TooMany,
    /// It is nested too deep.
    #[error("parentheses can be nested at most {DEPTH_MAX} deep")]
    TooDeep,
    /// A beginning is too short.
    #[error("{0}* is too short: write at least {BEGINNING_MIN} letters before the *")]
    TooShort(String),
    /// A filter has a value that it cannot have.
    #[error("{name}:{value} is not understood; write {example}")]
    BadFilter {
        name: String,
        value: String,
        /// What could be written.
        example: &'static str,
    },
    /// There is nothing to look for.
    #[error("the query has no words")]
    Empty,
    /// A cursor that is not of this question.
    #[error("the cursor belongs to another query; start without one")]
    BadCursor,
    #[error("at most {0} hits can be listed; narrow the query down")]
    TooFar(usize),
    #[error("a reader has at most {0} access tokens")]
    TooManyTokens(usize),
}

/// Parses the text of a question within its limits of length, clauses and depth.
pub fn parse(text: &str) -> Result<QueryNode, QuestionRefusal> {
    if text.len() > QUESTION_BYTES_MAX {
        return Err(QuestionRefusal::TooLong);
    }
    let mut parser = Parser { rest: text, clauses: 0 };
    let mut nodes = Vec::new();
    while !parser.at_end() {
        nodes.extend(parser.any(0)?);
        // A parenthesis that was never opened.
        parser.eat(')');
    }
    match nodes.len() {
        0 => Err(QuestionRefusal::Empty),
        1 => Ok(nodes.remove(0)),
        _ => Ok(QueryNode::All(nodes)),
    }
}

struct Parser<'a> {
    rest: &'a str,
    clauses: usize,
}

impl<'a> Parser<'a> {
    fn at_end(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.is_empty()
    }

    fn eat(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes an operator, which is a word of its own in capitals.
    fn operator(&mut self, name: &str) -> bool {
        self.rest = self.rest.trim_start();
        let Some(rest) = self.rest.strip_prefix(name) else { return false };
        let ends = rest.is_empty() || rest.starts_with([' ', '\t', '\n', '(', ')', '"']);
        if ends {
            self.rest = rest;
        }
        ends
    }

    /// Reads clauses joined by `OR`.
    fn any(&mut self, depth: usize) -> Result<Option<QueryNode>, QuestionRefusal> {
        let mut nodes = Vec::new();
        loop {
            nodes.extend(self.all(depth)?);
            if !self.operator("OR") && !self.eat('|') {
                break;
            }
        }
        Ok(joined(nodes, QueryNode::Any))
    }

    /// What is written side by side.
    fn all(&mut self, depth: usize) -> Result<Option<QueryNode>, QuestionRefusal> {
        let mut nodes = Vec::new();
        while !self.at_end() && !self.rest.starts_with([')', '|']) {
            let before = self.rest;
            if self.operator("OR") {
                self.rest = before;
                break;
            }
            if self.operator("AND") {
                continue;
            }
            nodes.extend(self.one(depth)?);
        }
        Ok(joined(nodes, QueryNode::All))
    }

    fn one(&mut self, depth: usize) -> Result<Option<QueryNode>, QuestionRefusal> {
        if depth > DEPTH_MAX {
            return Err(QuestionRefusal::TooDeep);
        }
        let is_minus = self.rest.strip_prefix('-').is_some_and(|rest| !rest.starts_with(' '));
        if is_minus && self.eat('-') || self.operator("NOT") {
            if self.at_end() {
                return Ok(None);
            }
            let node = self.one(depth + 1)?;
            return Ok(node.map(|node| QueryNode::Not(Box::new(node))));
        }
        if self.eat('(') {
            let node = self.any(depth + 1)?;
            self.eat(')');
            return Ok(node);
        }
        self.clauses += 1;
        if self.clauses > CLAUSES_MAX {
            return Err(QuestionRefusal::TooMany);
        }
        if let Some(phrase) = self.phrase() {
            return Ok(of_words(FieldScope::Anywhere, phrase));
        }
        let word = self.word(true);
        if let Some((name, value)) = word.split_once(':')
            && let Some(node) = self.filter(name, value)?
        {
            return Ok(node);
        }
        words_or_beginning(FieldScope::Anywhere, word)
    }

    /// A phrase, if one begins here; one that is not closed ends with the text.
    fn phrase(&mut self) -> Option<&'a str> {
        let rest = self.rest.strip_prefix('"')?;
        let (phrase, rest) = rest.split_once('"').unwrap_or((rest, ""));
        self.rest = rest;
        Some(phrase)
    }

    /// A piece without white space. A quote ends it where a filter's value may begin.
    fn word(&mut self, stops_at_quote: bool) -> &'a str {
        let ends =
            |c: char| c.is_whitespace() || matches!(c, '(' | ')') || stops_at_quote && c == '"';
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        // Whatever it is, it is taken, so that the parser gets on.
        let end = if end == 0 { self.rest.chars().next().map_or(0, char::len_utf8) } else { end };
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// A filter, if the name is one. `Some(None)` says that it asks for nothing.
    fn filter(
        &mut self,
        name: &str,
        value: &str,
    ) -> Result<Option<Option<QueryNode>>, QuestionRefusal> {
        let scope = match name {
            "intitle" | "title" => Some(FieldScope::Title),
            "inurl" | "url" => Some(FieldScope::Address),
            _ => None,
        };
        let phrase = if value.is_empty() { self.phrase() } else { None };
        if let Some(scope) = scope {
            return match phrase {
                Some(phrase) => Ok(Some(of_words(scope, phrase))),
                None => words_or_beginning(scope, value).map(Some),
            };
        }
        let value = phrase.unwrap_or(value).trim();
        let refused = |example| {
            let (name, value) = (name.to_owned(), value.to_owned());
            Err(QuestionRefusal::BadFilter { name, value, example })
        };
        let plain = value.trim_end_matches('/').to_lowercase();
        let filter = match name {
            "site" | "host" | "domain" | "lang" | "language" | "type" if plain.is_empty() => {
                return refused("a name behind the colon, as in site:example.com");
            }
            "site" | "host" => {
                let host = plain.split_once("://").map_or(plain.as_str(), |(_, rest)| rest);
                let (host, path) = host.split_once('/').unwrap_or((host, ""));
                let site = QueryNode::Filter(Filter::Site(host.to_owned()));
                let path = of_words(FieldScope::Address, path);
                return Ok(Some(joined([site].into_iter().chain(path).collect(), QueryNode::All)));
            }
            "domain" => Filter::Domain(plain.trim_start_matches("www.").to_owned()),
            "lang" | "language" => Filter::Language(super::super::schema::short_language(&plain)),
            "type" | "filetype" => {
                Filter::Media(super::super::schema::short_media(&plain).to_owned())
            }
            "before" | "after" => match day_ms(value) {
                None => return refused("a date such as 2024-05-31, 2024-05 or 2024"),
                Some(ms) if name == "before" => Filter::Before(ms),
                Some(ms) => Filter::After(ms),
            },
            "links" | "inlinks" => match bounds(value) {
                None => return refused("a number such as links:>10"),
                Some((least, most)) => Filter::Links(least, most),
            },
            // A word with a colon in it.
            _ => return Ok(None),
        };
        Ok(Some(Some(QueryNode::Filter(filter))))
    }
}

fn joined(mut nodes: Vec<QueryNode>, join: fn(Vec<QueryNode>) -> QueryNode) -> Option<QueryNode> {
    match nodes.len() {
        0 => None,
        1 => nodes.pop(),
        _ => Some(join(nodes)),
    }
}

fn of_words(scope: FieldScope, text: &str) -> Option<QueryNode> {
    term_match(text).map(|term_match| match term_match {
        TermMatch::Words(words) => QueryNode::Words(scope, words),
        TermMatch::Beginning(word) => QueryNode::Beginning(scope, word),
    })
}

fn words_or_beginning(scope: FieldScope, word: &str) -> Result<Option<QueryNode>, QuestionRefusal> {
    let Some(beginning) = word.strip_suffix('*') else { return Ok(of_words(scope, word)) };
    match term_match(beginning) {
        None => Ok(None),
        Some(TermMatch::Beginning(word)) => Ok(Some(QueryNode::Beginning(scope, word))),
        Some(TermMatch::Words(words)) => {
            let mut nodes = Vec::new();
            let Some((last, before)) = words.split_last() else { return Ok(None) };
            if last.chars().count() < BEGINNING_MIN {
                return Err(QuestionRefusal::TooShort(last.clone()));
            }
            if !before.is_empty() {
                nodes.push(QueryNode::Words(scope, before.to_vec()));
            }
            nodes.push(QueryNode::Beginning(scope, last.clone()));
            Ok(joined(nodes, QueryNode::All))
        }
    }
}

/// When a day, a month or a year begins.
fn day_ms(text: &str) -> Option<i64> {
    let mut numbers = text.split('-');
    let year: i16 = numbers.next()?.parse().ok()?;
    let month: i8 = numbers.next().map_or(Some(1), |it| it.parse().ok())?;
    let day: i8 = numbers.next().map_or(Some(1), |it| it.parse().ok())?;
    if numbers.next().is_some() {
        return None;
    }
    let date = Date::new(year, month, day).ok()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// The least and the most of `>10`, `>=10`, `<10`, `<=10`, `10` or `5..10`.
fn bounds(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    if let Some((least, most)) = text.split_once("..") {
        return Some((number(least)?, number(most)?));
    }
    if let Some(rest) = text.strip_prefix(">=") {
        return Some((number(rest)?, u64::MAX));
    }
    if let Some(rest) = text.strip_prefix("<=") {
        return Some((0, number(rest)?));
    }
    if let Some(rest) = text.strip_prefix('>') {
        return Some((number(rest)?.checked_add(1)?, u64::MAX));
    }
    if let Some(rest) = text.strip_prefix('<') {
        return Some((0, number(rest)?.checked_sub(1)?));
    }
    let exact = number(text)?;
    Some((exact, exact))
}

#[cfg(test)]
mod tests;
