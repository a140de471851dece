//! Who may see a document, as words of the index, and the questions they answer.
//!
//! Access is asked for on several levels, as file systems and shares do; a reader must pass
//! every level: hold one of its `allow` tokens, if it has any, and none of its `deny`
//! tokens. Invariant: a level without tokens has a word of its own, so that a question for
//! a reader's tokens never has to say "nothing".

use super::schema::Fields;
use store::chunkfile::document::{Access, Level};
use tantivy::Term;
use tantivy::query::{BooleanQuery, Occur, Query, TermSetQuery};

/// Tokens of one reader that are looked for.
pub const TOKENS_MAX: usize = 10_000;

const LEVELS: [Level; 3] = [Level::Share, Level::Parent, Level::Document];

fn letter(level: Level) -> char {
    match level {
        Level::Share => 's',
        Level::Parent => 'p',
        Level::Document => 'd',
    }
}

fn open(level: Level) -> String {
    format!("{}*", letter(level))
}

fn allow(level: Level, token: &str) -> String {
    format!("{}+{token}", letter(level))
}

fn deny(level: Level, token: &str) -> String {
    format!("{}-{token}", letter(level))
}

/// The words of a document.
pub fn words(access: &Access) -> Vec<String> {
    let is_open = |level: &Level| !access.allow.iter().any(|token| token.level == *level);
    let mut words: Vec<String> = LEVELS.into_iter().filter(is_open).map(open).collect();
    words.extend(access.allow.iter().map(|it| allow(it.level, &it.name)));
    words.extend(access.deny.iter().map(|it| deny(it.level, &it.name)));
    words
}

/// What a reader with these tokens may see.
pub fn visible_to(tokens: &[String], fields: &Fields) -> Box<dyn Query> {
    let term = |word: String| Term::from_field_text(fields.access, &word);
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for level in LEVELS {
        let passes = tokens.iter().map(|token| term(allow(level, token)));
        let passes: Vec<Term> = passes.chain([term(open(level))]).collect();
        clauses.push((Occur::Must, Box::new(TermSetQuery::new(passes))));
        let denied: Vec<Term> = tokens.iter().map(|token| term(deny(level, token))).collect();
        if !denied.is_empty() {
            clauses.push((Occur::MustNot, Box::new(TermSetQuery::new(denied))));
        }
    }
    Box::new(BooleanQuery::new(clauses))
}
