//! Who may see a document, as words of the index, and the questions they answer.
//!
//! Access is asked for on several levels, as file systems and shares do; a reader must pass
//! every level: hold one of its `allow` tokens, if it has any, and none of its `deny`
//! tokens. Invariants: a level without tokens has a word of its own, so that a question for
//! a reader's tokens never has to say "nothing"; a document whose connection is secured by an
//! authority group, and which has no `allow` token on any level, is visible to no reader: it
//! is not known who may see it.

use super::schema::Fields;
use store::chunkfile::document::{Access, Level};
use store::ids::ConnectionId;
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

/// Who asks for what they may see, and which documents are secured.
pub struct ReaderAccess<'a> {
    /// The reader's access tokens.
    pub tokens: &'a [String],
    /// Connections whose documents an authority group secures.
    pub secured: &'a [ConnectionId],
}

/// What a reader may see.
pub fn visible_to(reader: &ReaderAccess<'_>, fields: &Fields) -> Box<dyn Query> {
    let ReaderAccess { tokens, secured } = reader;
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
    if !secured.is_empty() {
        clauses.push((Occur::MustNot, without_tokens(secured, fields)));
    }
    Box::new(BooleanQuery::new(clauses))
}

/// Documents of these connections that have no `allow` token on any level.
fn without_tokens(connections: &[ConnectionId], fields: &Fields) -> Box<dyn Query> {
    let term = |id: &ConnectionId| Term::from_field_i64(fields.connection, id.0);
    let of_these: Box<dyn Query> = Box::new(TermSetQuery::new(connections.iter().map(term)));
    let open_on = |level: Level| -> (Occur, Box<dyn Query>) {
        let term = Term::from_field_text(fields.access, &open(level));
        (Occur::Must, Box::new(TermSetQuery::new([term])))
    };
    let mut clauses = vec![(Occur::Must, of_these)];
    clauses.extend(LEVELS.into_iter().map(open_on));
    Box::new(BooleanQuery::new(clauses))
}
