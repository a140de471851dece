//! Text for people: times, spans, sizes, tables, and text from outside made safe to show.
//!
//! Only for terminals and messages: JSON has plain numbers, with their unit in the name.

pub mod moments;

use jiff::Timestamp;
pub use page::bytesize::human_bytes as size;
pub use page::bytesize::human_bytes_of as size_of;
use unicode_width::UnicodeWidthStr;

/// Units of a span, the largest first: its milliseconds and its name.
const SPANS: [(i64, &str); 4] =
    [(24 * 3_600_000, "days"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];

/// Characters of a table's column that is not the last; what is longer pushes the rest on.
const COLUMN_CHARS_MAX: usize = 40;

/// The columns that a text takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The lines of a table, each column as wide as what stands in it; figures stand on the
/// right. Every row has as many cells as there are columns.
pub fn table(rows: &[Vec<String>], is_figure: impl Fn(usize) -> bool) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(|at| widest(at).min(COLUMN_CHARS_MAX)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, columns))| {
                let blank = " ".repeat(columns.saturating_sub(width(cell)));
                if is_figure(at) { format!("{blank}{cell}") } else { format!("{cell}{blank}") }
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A span of time in its largest unit that has at least one of it, such as `3 min`.
pub fn span(ms: i64) -> String {
    let ms = ms.max(0);
    match SPANS.iter().find(|(unit_ms, _)| ms >= *unit_ms) {
        Some((unit_ms, _)) if *unit_ms == SPANS[0].0 && ms < 2 * unit_ms => "1 day".to_owned(),
        Some((unit_ms, name)) => format!("{} {name}", ms / unit_ms),
        None => format!("{ms} ms"),
    }
}

/// A span of time in full, such as `1 day 6 h`; `driftline` reads it back as the same.
pub fn exact_span(ms: i64) -> String {
    let mut rest = ms.max(0);
    let mut words = Vec::new();
    for (unit_ms, name) in SPANS.into_iter().chain([(1, "ms")]) {
        let number = rest / unit_ms;
        rest %= unit_ms;
        match number {
            0 => {}
            1 if unit_ms == SPANS[0].0 => words.push("1 day".to_owned()),
            number => words.push(format!("{number} {name}")),
        }
    }
    if words.is_empty() { "0 ms".to_owned() } else { words.join(" ") }
}

/// A moment beside now: `3 min ago`, `in 5 s`, and from a day on also the date.
pub fn when(moment_ms: i64, now_ms: i64) -> String {
    let apart = now_ms.saturating_sub(moment_ms);
    if apart.unsigned_abs() < 1_000 {
        return "just now".to_owned();
    }
    let spoken = match apart > 0 {
        true => format!("{} ago", span(apart)),
        false => format!("in {}", span(apart.saturating_neg())),
    };
    if apart.unsigned_abs() < SPANS[0].0.unsigned_abs() {
        spoken
    } else {
        format!("{spoken} ({})", date(moment_ms))
    }
}

/// A moment by the calendar, in UTC.
pub fn date(moment_ms: i64) -> String {
    match Timestamp::from_millisecond(moment_ms) {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => format!("{moment_ms} ms"),
    }
}

/// `1 document`, `2 documents`.
pub fn count(number: i64, one: &str) -> String {
    counted(number, one, &format!("{one}s"))
}

/// The same for a word whose plural is its own.
pub fn counted(number: i64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// A word as a shell reads it back.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", shown(text).replace('\'', "'\\''"))
}

/// Text from outside, fit for a terminal: control characters and those that
/// turn the direction of writing are shown as escapes.
pub fn shown(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_harmless(c) {
            out.push(c)
        } else {
            out.extend(c.escape_unicode())
        }
        out
    })
}

/// Whether a character neither controls whatever shows it nor turns the direction of writing.
pub fn is_harmless(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_characters() {
        assert_eq!(shown("a\u{1b}[2Jb\u{202e}c é"), "a\\u{1b}[2Jb\\u{202e}c é");
    }

    #[test]
    fn spans_and_moments_are_read_at_a_glance() {
        let cases = [(-1, "0 ms"), (999, "999 ms"), (59_999, "59 s"), (60_000, "1 min")];
        for (ms, expected) in cases {
            assert_eq!(span(ms), expected);
        }
        assert_eq!((span(86_400_000), span(3 * 86_400_000)), ("1 day".into(), "3 days".into()));
        for ms in [0, 1, 90_000, 86_400_000, 108_000_001, 1_209_600_000] {
            let text = exact_span(ms);
            assert_eq!(crate::catalog::typed::milliseconds(&text), Some(ms), "{text}");
        }
        assert_eq!(exact_span(108_000_000), "1 day 6 h");
        let now = 1_700_000_000_000;
        assert_eq!(when(now - 999, now), "just now");
        assert_eq!(when(now - 7_200_000, now), "2 h ago");
        assert_eq!(when(now + 5_000, now), "in 5 s");
        assert_eq!(when(now - 3 * 86_400_000, now), "3 days ago (2023-11-11 22:13 UTC)");
        for (moment_ms, now_ms) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN)] {
            assert!(!when(moment_ms, now_ms).is_empty(), "nothing overflows");
        }
    }

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let rows = [["name", "n", "about"], ["é", "12", "x"], ["", "3", ""]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let lines = table(&rows, |at| at == 1);
        assert_eq!(lines, ["name   n  about", "é     12  x", "       3"]);
        let wide = [vec!["日本語".to_owned(), "y".to_owned()], vec!["abc".into(), "y".into()]];
        assert_eq!(table(&wide, |_| false), ["日本語  y", "abc     y"]);
        assert!(table(&[], |_| true).is_empty());
        let long = "x".repeat(COLUMN_CHARS_MAX + 10);
        let rows = [vec![long.clone(), "y".to_owned()], vec!["z".to_owned(), "y".to_owned()]];
        let lines = table(&rows, |_| false);
        assert_eq!(lines[0], format!("{long}  y"));
        assert_eq!(lines[1].len(), COLUMN_CHARS_MAX + 3, "one that is long widens no other");
    }

    #[test]
    fn words_are_quoted_as_a_shell_needs_them() {
        assert_eq!(quoted("a.example"), "a.example");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!((count(1, "host"), count(0, "host")), ("1 host".into(), "0 hosts".into()));
    }
}
