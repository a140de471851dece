//! What a person or a script sees of a load: a line that lives while it runs, and what came
//! of every file.
//!
//! The line goes to standard error and only to a terminal. Invariant: the figures of a file
//! are of what is in the index, not of what was read and then left.

use super::loading::{Ended, Loaded, Read};
use super::source::Source;
use crate::cli::words::{count, size};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value as Json, json};
use std::io::IsTerminal;
use std::time::Duration;

/// How often the line is drawn while nothing new is read.
const EVERY: Duration = Duration::from_millis(250);

/// The line of a load.
pub struct Line {
    bar: ProgressBar,
}

impl Line {
    /// Of a load that a person looks at, or of one that nobody sees.
    pub fn new(json: bool) -> Line {
        let live = !json && std::io::stderr().is_terminal();
        let target = if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{spinner} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.set_draw_target(target);
        if live {
            bar.enable_steady_tick(EVERY);
        }
        Line { bar }
    }

    /// Draws how far a file is.
    pub fn draw(&self, source: &Source, read: &Read) {
        if !self.bar.is_hidden() {
            self.bar.set_message(progress(source, read));
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn progress(source: &Source, read: &Read) -> String {
    let bytes = i64::try_from(source.stamp.size_bytes).unwrap_or(i64::MAX);
    let percent = read.offset.saturating_mul(100).checked_div(source.stamp.size_bytes);
    let percent = percent.filter(|_| read.offset > 0).map(|percent| format!("{percent} % of "));
    let (records, pages) = (number(read.records), number(read.pages));
    format!(
        "{}: {}, {}, {}{}",
        source.name,
        count(records, "record"),
        count(pages, "page"),
        percent.unwrap_or_default(),
        size(bytes)
    )
}

/// What became of a file, in lines.
pub fn lines(source: &Source, loaded: &Loaded) -> Vec<String> {
    let name = &source.name;
    if loaded.ended == Ended::Already {
        return vec![format!("{name}: already loaded; --again loads it from the start")];
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
        out.insert(1, format!("    went on behind {before} that were loaded before"));
    }
    if loaded.ended == Ended::Stopped {
        out.push("    stopped; the same command goes on from here".to_owned());
    }
    out
}

/// The same for a script.
pub fn json(source: &Source, loaded: &Loaded) -> Json {
    let Loaded { before, read, applied, ended } = loaded;
    let (word, error) = match ended {
        Ended::Finished => ("loaded", None),
        Ended::Already => ("already loaded", None),
        Ended::Stopped => ("stopped", None),
        Ended::Failed(error) => ("failed", Some(error)),
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
