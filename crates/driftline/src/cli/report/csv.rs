//! Reports as comma-separated values (RFC 4180), page after page to the end.
//!
//! Invariants: one page is in memory at a time; no value from outside is a formula to a
//! spreadsheet (T21): text that could begin one gets an apostrophe before it.

use super::columns::{Column, Kind};
use super::selection::Row;
use super::{Answer, Ask, LIMIT_MAX, moments};
use anyhow::Context;
use serde_json::Value as Json;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

/// Writes the rows of a report to a file, or to standard output if it is `-`: as many as
/// were asked for, or all from the cursor on. Returns how many.
pub fn write(
    path: &Path,
    ask: &Ask,
    page: impl FnMut(&Ask) -> anyhow::Result<Answer>,
) -> anyhow::Result<u64> {
    if path.as_os_str() == "-" {
        let written = write_to(&mut BufWriter::new(std::io::stdout().lock()), ask, page);
        return match written {
            // A reader that has gone away is no failure.
            Err(error) if is_broken_pipe(&error) => Ok(0),
            written => written.context("cannot write to standard output"),
        };
    }
    let name = || crate::cli::shown(&path.display().to_string());
    let file = File::create(path).with_context(|| format!("cannot make {}", name()))?;
    write_to(&mut BufWriter::new(file), ask, page)
        .with_context(|| format!("cannot write {}", name()))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(ErrorKind::BrokenPipe)
}

fn write_to(
    out: &mut impl Write,
    ask: &Ask,
    mut page: impl FnMut(&Ask) -> anyhow::Result<Answer>,
) -> anyhow::Result<u64> {
    let columns = ask.report.columns();
    let names: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
    write!(out, "{}\r\n", names.join(","))?;
    let is_whole = ask.limit.is_none();
    let mut ask = Ask { limit: Some(ask.limit.unwrap_or(LIMIT_MAX)), ..ask.clone() };
    let mut written = 0;
    loop {
        let answer = page(&ask)?;
        for row in &answer.rows {
            write!(out, "{}\r\n", line(columns, row))?;
            written += 1;
        }
        match answer.next {
            Some(next) if is_whole => ask.after = Some(next),
            _ => break,
        }
    }
    out.flush()?;
    Ok(written)
}

fn line(columns: &[Column], row: &Row) -> String {
    let cells: Vec<String> = columns
        .iter()
        .map(|column| cell(column.kind, row.get(column.name).unwrap_or(&Json::Null)))
        .collect();
    cells.join(",")
}

fn cell(kind: Kind, value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => quoted(&harmless(text)),
        Json::Number(number) => match (kind, number.as_i64()) {
            (Kind::Time, Some(moment_ms)) => moments::calendar(moment_ms),
            _ => number.to_string(),
        },
        other => quoted(&harmless(&other.to_string())),
    }
}

/// Text that no spreadsheet takes for a formula.
fn harmless(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::report::columns::Report;
    use serde_json::json;

    #[test]
    fn no_value_is_a_formula_and_each_is_one_cell() {
        let cases = [
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("a,b", "\"a,b\""),
            ("two\nlines", "\"two\nlines\""),
            ("plain = fine", "plain = fine"),
        ];
        for (text, expected) in cases {
            assert_eq!(cell(Kind::Text, &json!(text)), expected);
        }
        assert_eq!(cell(Kind::Count, &json!(-5)), "-5", "a number of ours is one");
        assert_eq!(cell(Kind::Time, &json!(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(cell(Kind::Text, &Json::Null), "");
    }

    #[test]
    fn pages_are_written_to_the_end() {
        let page = |ask: &Ask| {
            let number = ask.after.as_ref().map_or(0, |after| after.parse::<i64>().unwrap_or(9));
            Ok(Answer {
                report: Report::Results,
                connection: "web".into(),
                since_ms: None,
                until_ms: None,
                rows: vec![Row::from_iter([("activities".to_owned(), json!(number))])],
                walked: 0,
                next: (number < 2).then(|| (number + 1).to_string()),
                previous: None,
            })
        };
        let mut out = Vec::new();
        let ask = Ask { report: Report::Results, ..Ask::default() };
        assert_eq!(write_to(&mut out, &ask, page).unwrap(), 3);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "class,result,activities\r\n,,0\r\n,,1\r\n,,2\r\n");
        let mut out = Vec::new();
        assert_eq!(write_to(&mut out, &Ask { limit: Some(1), ..ask }, page).unwrap(), 1);
    }
}
