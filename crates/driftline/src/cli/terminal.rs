//! The terminal: how wide it is, what fits into its lines, and one line that is redrawn.
//!
//! Widths are columns of a terminal, not characters: East Asian characters take two, accents
//! of their own none. Text comes in without control characters ([`crate::text::shown`] escapes
//! them). Invariants: a live line never wraps, whatever it is told to show; after a resize the
//! next drawing removes all rows of the old one.

use crate::stderr::Stderr;
use crate::text::width;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use unicode_width::UnicodeWidthChar;

/// Columns of a terminal that does not say how many it has.
const COLUMNS_DEFAULT: usize = 80;
/// Columns that a cut part of a line must have to be worth showing.
const CUT_COLUMNS_MIN: usize = 12;
/// What stands at the end of a text that was cut.
const ELLIPSIS: char = '…';
/// The drawings of a line that lives, in turn.
const SPINNER: [char; 4] = ['-', '\\', '|', '/'];

/// Erases the row that the cursor is in.
pub const ERASE_ROW: &str = "\r\u{1b}[K";

/// The columns of a terminal; `None` when it is none.
pub fn columns(stream: impl AsFd + IsTerminal) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    Some(if columns == 0 { COLUMNS_DEFAULT } else { columns })
}

/// A text within so many columns; one that was cut ends with an ellipsis.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let mut out = String::new();
    for character in text.chars() {
        let takes = character.width().unwrap_or(0);
        if takes > room {
            break;
        }
        room -= takes;
        out.push(character);
    }
    if columns > 0 {
        out.push(ELLIPSIS);
    }
    out
}

/// A part of a line, the more important ones first.
pub struct Part {
    text: String,
    can_be_cut: bool,
}

impl Part {
    /// A part that is shown whole or not at all.
    pub fn whole(text: impl Into<String>) -> Part {
        Part { text: text.into(), can_be_cut: false }
    }

    /// A part of which the beginning is worth showing.
    pub fn cuttable(text: impl Into<String>) -> Part {
        Part { text: text.into(), can_be_cut: true }
    }
}

/// As many parts as fit into a line, with commas between them. The first is always there.
pub fn fitted(parts: &[Part], columns: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let comma = if line.is_empty() { "" } else { ", " };
        let room = columns.saturating_sub(width(&line) + comma.len());
        let is_first = line.is_empty();
        if width(&part.text) <= room {
            line = format!("{line}{comma}{}", part.text);
        } else if is_first || (part.can_be_cut && room >= CUT_COLUMNS_MIN) {
            line = format!("{line}{comma}{}", cut(&part.text, room));
        }
    }
    line
}

/// Pieces of one text, each with a mark, as lines of at most so many columns. Lines break at
/// spaces, between wide characters, and within a word only where it is wider than a line.
pub fn wrapped(pieces: &[(String, bool)], columns: usize) -> Vec<Vec<(String, bool)>> {
    let marked: Vec<(char, bool)> =
        pieces.iter().flat_map(|(text, mark)| text.chars().map(|it| (it, *mark))).collect();
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let mut rest = marked.as_slice();
    loop {
        while let Some(((' ', _), tail)) = rest.split_first() {
            rest = tail;
        }
        if rest.is_empty() {
            return lines;
        }
        let (line, tail) = rest.split_at(break_at(rest, columns));
        lines.push(joined(line));
        rest = tail;
    }
}

/// How many characters the first line of a text takes.
fn break_at(text: &[(char, bool)], columns: usize) -> usize {
    let (mut taken, mut last_break) = (0, 0);
    for (at, (character, _)) in text.iter().enumerate() {
        let takes = character.width().unwrap_or(0);
        let follows_wide = at > 0 && text[at - 1].0.width() == Some(2);
        if *character == ' ' || follows_wide || (takes == 2 && at > 0) {
            last_break = at;
        }
        // A space at the end of a line takes no room.
        if taken + takes > columns && *character != ' ' {
            return if last_break > 0 { last_break } else { at.max(1) };
        }
        taken += takes;
    }
    text.len()
}

/// Characters as pieces again, without the spaces at their end.
fn joined(line: &[(char, bool)]) -> Vec<(String, bool)> {
    let end = line.iter().rposition(|(character, _)| *character != ' ').map_or(0, |at| at + 1);
    let mut pieces: Vec<(String, bool)> = Vec::new();
    for (character, mark) in &line[..end] {
        match pieces.last_mut() {
            Some((text, last)) if last == mark => text.push(*character),
            _ => pieces.push((character.to_string(), *mark)),
        }
    }
    pieces
}

/// A line on a terminal that is drawn again and again.
pub struct LiveLine<W: Write> {
    out: W,
    /// Columns of what is drawn now.
    drawn: usize,
    drawings: usize,
}

/// A live line on standard error, if somebody looks at it.
pub fn live_line() -> Option<LiveLine<Stderr>> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let is_live = std::io::stderr().is_terminal() && !is_dumb;
    is_live.then(|| LiveLine::new(Stderr))
}

impl<W: Write> LiveLine<W> {
    /// One that is not drawn yet.
    pub fn new(out: W) -> LiveLine<W> {
        LiveLine { out, drawn: 0, drawings: 0 }
    }

    /// Draws it on a terminal of so many columns.
    pub fn draw(&mut self, columns: usize, text: impl FnOnce(usize) -> String) {
        let spinner = SPINNER[self.drawings % SPINNER.len()];
        self.drawings += 1;
        // Terminals differ in what they do after the last column, so it stays empty.
        let room = columns.saturating_sub(3);
        let line = format!("{spinner} {}", cut(&text(room), room));
        let erased = self.erased(columns);
        let _ = self
            .out
            .write_all(format!("{erased}{line}").as_bytes())
            .and_then(|()| self.out.flush());
        self.drawn = width(&line);
    }

    /// Takes it away, so that something else can be written.
    pub fn clear(&mut self, columns: usize) {
        if self.drawn > 0 {
            let erased = self.erased(columns);
            let _ = self.out.write_all(erased.as_bytes()).and_then(|()| self.out.flush());
            self.drawn = 0;
        }
    }

    /// What removes it. A terminal that has become narrower has broken it into rows.
    fn erased(&self, columns: usize) -> String {
        let rows_above = self.drawn.saturating_sub(1) / columns.max(1);
        // Row by row: some terminals keep what is cleared from the first row on in their history.
        format!("{ERASE_ROW}{}", format!("\u{1b}[A{ERASE_ROW}").repeat(rows_above))
    }
}

/// The columns of standard error, where live lines are.
pub fn error_columns() -> usize {
    columns(std::io::stderr()).unwrap_or(COLUMNS_DEFAULT)
}

#[cfg(test)]
mod tests;
