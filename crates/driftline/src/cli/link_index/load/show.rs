//! What a person or a script sees of a load: a line that lives while it runs, and what came
//! of every file.
//!
//! The line goes to standard error and only to a terminal. Invariant: the figures of a file
//! are of what is in the index, not of what was read and then left.

use super::file::{LoadOutcome, LoadedFile, Read};
use super::source::SourceFile;
use crate::cli::terminal::{self, LiveLine};
use crate::text::{self, count, shown, size_of};
use serde_json::{Value as Json, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the line is drawn at most.
const EVERY: Duration = Duration::from_millis(250);

/// The line of a load.
pub struct LoadLine {
    live: Option<Mutex<Live>>,
}

struct Live {
    line: LiveLine<crate::stderr::Stderr>,
    drawn: Option<Instant>,
}

impl LoadLine {
    /// Of a load that a person looks at, or of one that nobody sees.
    pub fn new(json: bool) -> LoadLine {
        let line = if json { None } else { terminal::live_line() };
        LoadLine { live: line.map(|line| Mutex::new(Live { line, drawn: None })) }
    }

    /// Draws how far a file is.
    pub fn draw(&self, source: &SourceFile, read: &Read) {
        let Some(live) = &self.live else { return };
        let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.drawn.is_some_and(|drawn| drawn.elapsed() < EVERY) {
            return;
        }
        live.drawn = Some(Instant::now());
        live.line.draw(terminal::error_columns(), |room| progress(source, read, room));
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Some(live) = &self.live {
            let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
            live.line.clear(terminal::error_columns());
        }
    }
}

/// How far a file is, within so many columns: a long name gives way to the figures.
fn progress(source: &SourceFile, read: &Read, columns: usize) -> String {
    let bytes = size_of(source.stamp.size_bytes);
    let percent = read.offset.saturating_mul(100).checked_div(source.stamp.size_bytes);
    let percent = percent.filter(|_| read.offset > 0).map(|percent| format!("{percent} % of "));
    let (records, pages) = (number(read.records), number(read.pages));
    let figures = format!(
        ": {}, {}, {}{bytes}",
        count(records, "record"),
        count(pages, "page"),
        percent.unwrap_or_default(),
    );
    let room = columns.saturating_sub(text::width(&figures));
    format!("{}{figures}", terminal::cut(&shown(&source.name), room))
}

/// What became of a file, in lines.
pub fn lines(source: &SourceFile, loaded: &LoadedFile) -> Vec<String> {
    let name = &source.name;
    if loaded.ended == LoadOutcome::Already {
        return vec![format!("{name}: already loaded; use --again to load it from the start")];
    }
    let Read { records, unreadable, pages, gone, links, .. } = loaded.read;
    let mut what = format!(
        "{name}: {}, {} with {}, {} gone",
        count(number(records), "record"),
        count(number(pages), "page"),
        count(number(links), "link"),
        number(gone)
    );
    if unreadable > 0 {
        what += &format!(", {unreadable} unreadable");
    }
    let applied = &loaded.applied;
    let came = format!(
        "    {} changed; {} new, {} altered, {} lost",
        count(number(applied.changed), "page"),
        count(number(applied.added), "link"),
        applied.altered,
        applied.lost
    );
    let mut out = vec![what, came];
    if loaded.before > 0 {
        let before = count(number(loaded.before), "record");
        out.insert(1, format!("    continued after {before} loaded before"));
    }
    if loaded.ended == LoadOutcome::Stopped {
        out.push("    stopped; run the same command to continue".to_owned());
    }
    out
}

/// The same for a script.
pub fn json(source: &SourceFile, loaded: &LoadedFile) -> Json {
    let LoadedFile { before, read, applied, ended } = loaded;
    let (word, error) = match ended {
        LoadOutcome::Finished => ("loaded", None),
        LoadOutcome::Already => ("already loaded", None),
        LoadOutcome::Stopped => ("stopped", None),
        LoadOutcome::Failed(error) => ("failed", Some(error)),
    };
    json!({
        "file": source.path.display().to_string(),
        "ended": word,
        "error": error,
        "records_before": before,
        "records": read.records,
        "unreadable": read.unreadable,
        "pages": read.pages,
        "gone": read.gone,
        "links": read.links,
        "pages_changed": applied.changed,
        "links_new": applied.added,
        "links_altered": applied.altered,
        "links_lost": applied.lost,
    })
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
