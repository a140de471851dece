//! Comma-separated values (RFC 4180): cells, and where they are written.
//!
//! Invariant: no text from outside is a formula to a spreadsheet: what could begin one
//! gets an apostrophe before it.

use anyhow::Context;
use std::io::{BufWriter, ErrorKind, Write};

/// Text as one cell.
pub fn cell(text: &str) -> String {
    quoted(&harmless(text))
}

/// A line of cells that are ready to be written.
pub fn line(cells: &[String]) -> String {
    format!("{}\r\n", cells.join(","))
}

/// Writes to standard output. A reader that has gone away is no failure: `None`.
pub fn to_stdout<T>(
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = write(&mut out).and_then(|written| {
        out.flush()?;
        Ok(written)
    });
    match written {
        Err(error) if is_broken_pipe(&error) => Ok(None),
        Err(error) if error.is::<std::io::Error>() => {
            Err(error).context("cannot write to standard output")
        }
        written => written.map(Some),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(ErrorKind::BrokenPipe)
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

    #[test]
    fn no_text_is_a_formula_and_each_is_one_cell() {
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
            assert_eq!(cell(text), expected);
        }
        assert_eq!(line(&[cell("a,b"), cell("c")]), "\"a,b\",c\r\n");
    }
}
