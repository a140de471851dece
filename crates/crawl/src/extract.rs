//! Documents that are neither HTML nor text, read by processes of their own.
//!
//! The readers of PDF and Office files were not made for hostile input. Each document is
//! therefore read by another process: this program itself with the verb `extract`, which
//! limits its memory and its processor time, gives up files, connections and every system call
//! that reading does not need, and then writes what it found.
//! What that process says is as far from being trusted as the document. Invariants: at most
//! as many of them run as there are processors; each is gone after [`WALL`]; whatever becomes
//! of it, the document has an answer, and one that could not be read says why.

mod process;

use page::extract::{self, Extract, Unreadable};
use page::facts::{Facts, LINKS_MAX, Link, LinkKind, Rel, TEXT_BYTES_MAX};
use page::fingerprint;
use page::sniff::Media;
use page::url::{Policy, Resolver};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;
use store::chunkfile::document::Field;
use tokio::sync::Semaphore;

/// Memory that such a process may ask for: a large document unpacked, several times over.
pub const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Processor time that it may use.
pub const CPU_S_MAX: u64 = 30;
/// How long it may take by the clock.
pub const WALL: Duration = Duration::from_secs(30);

/// The field that says why a document has no text.
pub const UNREAD: &str = "unread";

/// Why the text of a document is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// A word for the tables: one of [`CODES`].
    pub code: &'static str,
    /// A sentence for people, without its beginning and its full stop.
    pub detail: String,
    /// It has nothing to do with the document: the next run tries again.
    pub passes: bool,
}

/// Every code, with words for when its sentence is not at hand.
pub const CODES: [(&str, &str); 9] = [
    ("unread-kind", "documents of its type are not supported"),
    ("unread-locked", "it is protected by a password"),
    ("unread-long", "it is too long"),
    ("unread-broken", "it is damaged, or not what it is said to be"),
    ("unread-time", "reading it takes too long"),
    ("unread-memory", "reading it takes too much memory"),
    ("unread-crash", "its reader failed on it"),
    ("unread-forbidden", "its reader made a forbidden system call and was stopped"),
    ("unread-program", "its reader could not be started"),
];

/// The words of a code; `None` for another.
pub fn words_of(code: &str) -> Option<&'static str> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, words)| *words)
}

impl Unread {
    /// Of a document that is to blame itself.
    fn new(code: &'static str, detail: impl Into<String>) -> Unread {
        Unread { code, detail: detail.into(), passes: false }
    }
}

impl From<Unreadable> for Unread {
    fn from(reason: Unreadable) -> Unread {
        Unread::new(reason.code(), reason.to_string())
    }
}

/// The program that reads documents: it gets one on its standard input and its media type as
/// its last argument, and answers on its standard output as `page::extract::reply` reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Program {
    pub path: PathBuf,
    /// What it is told before the media type.
    pub arguments: Vec<String>,
}

/// What came of a document.
pub type ExtractResult = Result<Extract, Unread>;

/// Has documents read by processes of their own, a few at a time.
#[derive(Debug)]
pub struct Extractor {
    program: Option<Program>,
    wall: Duration,
    turns: Semaphore,
}

impl Default for Extractor {
    /// One that reads nothing: only the kind of such documents is known.
    fn default() -> Extractor {
        Extractor { program: None, wall: WALL, turns: Semaphore::new(0) }
    }
}

impl Extractor {
    /// One that has documents read by a program, as many at once as there are processors.
    pub fn new(program: Program) -> Extractor {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Extractor { program: Some(program), wall: WALL, turns: Semaphore::new(cores) }
    }

    /// Has a document read, if it is of a kind that is. Whoever stops waiting ends it.
    pub async fn ask(&self, media: &Media, body: &[u8], is_cut: bool) -> Option<ExtractResult> {
        let program = self.program.as_ref().filter(|_| extract::reads(media.kind))?;
        if is_cut {
            // What it needs stands at its end.
            let reason = format!("only its first {} bytes were fetched", body.len());
            return Some(Err(Unread::new("unread-long", reason)));
        }
        if let Err(reason) = extract::format_of(media.kind, body) {
            return Some(Err(reason.into()));
        }
        let _turn = self.turns.acquire().await.ok()?;
        Some(process::read(program, &media.essence, body, self.wall).await)
    }
}

/// What is known of a document beside its facts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExtractNotes {
    /// What it says of itself.
    pub fields: Vec<Field>,
    /// Why its text is not known.
    pub unread: Option<Unread>,
}

impl ExtractNotes {
    /// A sentence for the history.
    pub fn sentence(&self) -> Option<String> {
        self.unread.as_ref().map(|it| format!("its text could not be extracted: {}", it.detail))
    }

    /// A word for the tables.
    pub fn code(&self) -> Option<&'static str> {
        self.unread.as_ref().map(|it| it.code)
    }

    /// Whether the next run is to read it again, whatever it is recognised by.
    pub fn is_due(&self) -> bool {
        self.unread.as_ref().is_some_and(|it| it.passes)
    }

    /// These fields behind others; of two with a name the first counts.
    pub fn with(self, mut others: Vec<Field>) -> Vec<Field> {
        let is_new = |it: &Field| !others.iter().any(|other| other.name == it.name);
        let new: Vec<Field> = self.fields.into_iter().filter(is_new).collect();
        others.extend(new);
        others
    }
}

/// Takes what a document says into its facts: its text before what is there, its title in
/// place of a mere name, its links if there is an address to resolve them against.
pub fn take(
    result: Option<ExtractResult>,
    facts: &mut Facts,
    docid: &str,
    policy: &Policy,
) -> ExtractNotes {
    let mut notes = ExtractNotes::default();
    let read = match result {
        None => return notes,
        Some(Ok(read)) => read,
        Some(Err(unread)) => {
            notes.fields.push(field(UNREAD, vec![unread.detail.clone()]));
            notes.unread = Some(unread);
            return notes;
        }
    };
    let is_name = docid == facts.title || docid.rsplit('/').next() == Some(facts.title.as_str());
    if !read.title.is_empty() && (facts.title.is_empty() || is_name) {
        facts.title = read.title;
    }
    if facts.description.is_empty() {
        facts.description = read.description;
    }
    facts.language = facts.language.take().or(read.language);
    take_text(facts, read.text);
    facts.truncated.text |= read.truncated;
    facts.truncated.links |= read.more_links;
    take_links(facts, &read.links, docid, policy);
    let dates = [("created", read.created_ms), ("modified", read.modified_ms)];
    let date = |ms: i64| jiff::Timestamp::from_millisecond(ms).ok().map(|it| it.to_string());
    if !read.authors.is_empty() {
        notes.fields.push(field("author", read.authors));
    }
    for (name, ms) in dates {
        notes.fields.extend(ms.and_then(date).map(|it| field(name, vec![it])));
    }
    notes
}

fn field(name: &str, values: Vec<String>) -> Field {
    Field { name: name.to_owned(), values }
}

fn take_text(facts: &mut Facts, mut text: String) {
    if !facts.text.is_empty() && !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&facts.text);
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    facts.truncated.text |= end < text.len();
    text.truncate(end);
    facts.text = text;
    facts.text_hash = fingerprint::text_hash(&facts.text);
    facts.simhash = fingerprint::simhash(&facts.text);
}

fn take_links(facts: &mut Facts, links: &[String], docid: &str, policy: &Policy) {
    let Ok(mut base) = Resolver::new(docid, policy) else { return };
    let mut seen: HashSet<String> = facts.links.iter().map(|it| it.url.clone()).collect();
    for link in links {
        let Ok(url) = base.resolve(link).map(str::to_owned) else { continue };
        if facts.links.len() == LINKS_MAX {
            facts.truncated.links = true;
            return;
        }
        if seen.insert(url.clone()) {
            let (anchor, kind, rel) = (String::new(), LinkKind::A, Rel::default());
            facts.links.push(Link { url, anchor, kind, rel });
        }
    }
}

#[cfg(test)]
mod tests;
