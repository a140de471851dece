//! What fits into lines of a terminal.

use super::*;

fn texts(lines: &[Vec<(String, bool)>]) -> Vec<String> {
    lines.iter().map(|line| line.iter().map(|(text, _)| text.as_str()).collect()).collect()
}

fn plain(text: &str) -> Vec<(String, bool)> {
    vec![(text.to_owned(), false)]
}

#[test]
fn a_text_is_cut_by_the_columns_it_takes_and_not_by_its_characters() {
    assert_eq!(cut("abcdef", 6), "abcdef");
    assert_eq!(cut("abcdef", 5), "abcd…");
    assert_eq!(cut("日本語です", 6), "日本…", "a wide character is not cut in half");
    assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}e\u{301}");
    assert_eq!((cut("abc", 1), cut("abc", 0)), ("…".into(), String::new()));
}

#[test]
fn a_line_shows_the_more_important_parts_and_none_in_pieces() {
    let parts = [
        Part::whole("12 documents"),
        Part::cuttable("waiting: www.example.com is left alone"),
        Part::whole("3.4 MB"),
    ];
    assert_eq!(fitted(&parts, 80), "12 documents, waiting: www.example.com is left alone, 3.4 MB");
    assert_eq!(fitted(&parts, 30), "12 documents, waiting: www.ex…");
    assert_eq!(fitted(&parts, 22), "12 documents, 3.4 MB");
    assert_eq!(fitted(&parts, 6), "12 do…");
}

#[test]
fn a_snippet_breaks_at_words_and_keeps_what_stands_out() {
    let pieces = [("the old light".to_owned(), false), ("house".to_owned(), true)];
    let lines = wrapped(&[pieces.to_vec(), plain(" of the island")].concat(), 12);
    assert_eq!(texts(&lines), ["the old", "lighthouse", "of the", "island"]);
    assert_eq!(lines[1], [("light".to_owned(), false), ("house".to_owned(), true)]);
    assert_eq!(texts(&wrapped(&plain("abcdefghij kl"), 4)), ["abcd", "efgh", "ij", "kl"]);
    assert_eq!(texts(&wrapped(&plain("日本語の検索 ab"), 6)), ["日本語", "の検索", "ab"]);
    assert!(wrapped(&plain("  "), 10).is_empty());
    assert_eq!(texts(&wrapped(&plain("日"), 0)), ["日"], "it ends, however narrow");
}

#[test]
fn a_live_line_stays_in_one_row_whatever_it_shows() {
    for text in ["x".repeat(500), "語".repeat(500), "short".to_owned()] {
        let mut written = Vec::new();
        LiveLine::new(&mut written).draw(80, |_| text.clone());
        let written = String::from_utf8(written).unwrap();
        let line = written.strip_prefix(ERASE_ROW).unwrap();
        assert!(width(line) <= 79, "{line}");
    }
}

#[test]
fn a_terminal_that_becomes_narrower_keeps_no_rows_of_the_old_line() {
    let mut written = Vec::new();
    let mut line = LiveLine::new(&mut written);
    line.draw(80, |_| "x".repeat(200));
    line.draw(30, |_| "y".repeat(200));
    line.clear(30);
    line.clear(30);
    let written = String::from_utf8(written).unwrap();
    // 79 columns are three rows of 30; two of them are above the cursor.
    let three_rows = format!("{ERASE_ROW}\u{1b}[A{ERASE_ROW}\u{1b}[A{ERASE_ROW}- y");
    assert!(written.replace('\\', "-").contains(&three_rows), "{written:?}");
    assert!(written.ends_with(&format!("…{ERASE_ROW}")), "it is cleared once: {written:?}");
}
