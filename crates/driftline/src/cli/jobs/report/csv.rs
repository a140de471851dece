//! Reports as comma-separated values (RFC 4180), page after page to the end.
//!
//! Relies on `cli::csv` for cells that are no formulas. Invariant: one page is in memory at
//! a time.

use crate::cli::csv;
use crate::text::moments;
use crate::verbs::jobs::report::columns::{Column, ColumnKind};
use crate::verbs::jobs::report::selection::Row;
use crate::verbs::jobs::report::{ReportRequest, ReportResponse};
use crate::verbs::paging::LIST_LIMIT_MAX;
use anyhow::Context;
use serde_json::Value as Json;
use std::io::{BufWriter, Write};
use std::path::Path;
use store::beneath;

/// Writes the rows of a report to a file, or to standard output if it is `-`: as many as
/// were asked for, or all from the cursor on. Returns how many.
pub fn write(
    path: &Path,
    request: &ReportRequest,
    page: impl FnMut(&ReportRequest) -> anyhow::Result<ReportResponse>,
) -> anyhow::Result<u64> {
    if path.as_os_str() == "-" {
        return Ok(csv::to_stdout(|out| write_to(out, request, page))?.unwrap_or(0));
    }
    let name = || crate::text::shown(&path.display().to_string());
    let file = beneath::open_or_make(path, 0o666)
        .and_then(|file| file.set_len(0).map(|()| file))
        .with_context(|| format!("cannot create {}", name()))?;
    write_to(&mut BufWriter::new(file), request, page)
        .with_context(|| format!("cannot write {}", name()))
}

fn write_to(
    out: &mut (impl Write + ?Sized),
    request: &ReportRequest,
    mut page: impl FnMut(&ReportRequest) -> anyhow::Result<ReportResponse>,
) -> anyhow::Result<u64> {
    let columns = request.report.columns();
    let names: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
    write!(out, "{}\r\n", names.join(","))?;
    let is_whole = request.limit.is_none();
    let mut request =
        ReportRequest { limit: Some(request.limit.unwrap_or(LIST_LIMIT_MAX)), ..request.clone() };
    let mut written = 0;
    loop {
        let response = page(&request)?;
        for row in &response.rows {
            write!(out, "{}\r\n", line(columns, row))?;
            written += 1;
        }
        match response.next {
            Some(next) if is_whole => request.cursor = Some(next),
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

fn cell(kind: ColumnKind, value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => csv::cell(text),
        Json::Number(number) => match (kind, number.as_i64()) {
            (ColumnKind::Time, Some(moment_ms)) => moments::calendar(moment_ms),
            _ => number.to_string(),
        },
        other => csv::cell(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::jobs::report::columns::Report;
    use serde_json::json;

    #[test]
    fn text_is_no_formula_and_a_figure_is_as_it_is() {
        assert_eq!(cell(ColumnKind::Text, &json!("=1,2")), "\"'=1,2\"");
        assert_eq!(cell(ColumnKind::Count, &json!(-5)), "-5", "a number of ours is one");
        assert_eq!(cell(ColumnKind::Time, &json!(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(cell(ColumnKind::Text, &Json::Null), "");
    }

    #[test]
    fn pages_are_written_to_the_end() {
        let page = |request: &ReportRequest| {
            let number =
                request.cursor.as_ref().map_or(0, |cursor| cursor.parse::<i64>().unwrap_or(9));
            Ok(ReportResponse {
                report: Report::Results,
                connection: "web".into(),
                since_ms: None,
                until_ms: None,
                rows: vec![Row::from_iter([("activities".to_owned(), json!(number))])],
                walked: 0,
                next: (number < 2).then(|| (number + 1).to_string()),
                previous: None,
                outages: Vec::new(),
            })
        };
        let mut out = Vec::new();
        let request = ReportRequest { report: Report::Results, ..ReportRequest::default() };
        assert_eq!(write_to(&mut out, &request, page).unwrap(), 3);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "class,result,activities\r\n,,0\r\n,,1\r\n,,2\r\n");
        let mut out = Vec::new();
        assert_eq!(
            write_to(&mut out, &ReportRequest { limit: Some(1), ..request }, page).unwrap(),
            1
        );
    }
}
