//! Reports as people read them: a table, the time it covers, and how to go on.

use crate::cli::say;
use crate::text::{self, counted, date, quoted, shown, size, span};
use crate::verbs::jobs::report::columns::{Column, ColumnKind, Report};
use crate::verbs::jobs::report::selection::Row;
use crate::verbs::jobs::report::{ReportRequest, ReportResponse};
use crate::verbs::status::outages;
use serde_json::Value as Json;
use store::clock;

pub fn print(request: &ReportRequest, response: &ReportResponse) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    lines(request, response, &words).iter().for_each(|line| say(line));
}

/// The lines of a response. `words` are those of the command that asked.
fn lines(request: &ReportRequest, response: &ReportResponse, words: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    if response.rows.is_empty() {
        lines.push("no matching entries".to_owned());
    } else {
        lines.extend(table(request, response));
    }
    if let Some(covered) = covered(response) {
        lines.push(covered);
    }
    let now_ms = clock::now_ms();
    lines.extend(response.outages.iter().map(|it| outages::line(it, now_ms)));
    for (word, cursor) in [("next page", &response.next), ("previous page", &response.previous)] {
        if let Some(cursor) = cursor {
            lines.push(format!("{word}: {}", command(words, cursor)));
        }
    }
    lines
}

fn table(request: &ReportRequest, response: &ReportResponse) -> Vec<String> {
    // A column that says nothing on this page is left out.
    let says = |row: &Row, column: &Column| match row.get(column.name) {
        None | Some(Json::Null) => false,
        Some(value) => request.report != Report::Queue || *value != 0,
    };
    let columns = request.report.columns().iter();
    let columns: Vec<&Column> =
        columns.filter(|column| response.rows.iter().any(|row| says(row, column))).collect();
    let text = |column: &Column, row: &Row| cell(request, column, row.get(column.name));
    let mut grid: Vec<Vec<String>> =
        vec![columns.iter().map(|column| column.title.to_owned()).collect()];
    for row in &response.rows {
        grid.push(columns.iter().map(|column| text(column, row)).collect());
    }
    text::table(&grid, |at| columns[at].kind != ColumnKind::Text)
}

fn cell(request: &ReportRequest, column: &Column, value: Option<&Json>) -> String {
    match (column.kind, value) {
        (_, None | Some(Json::Null)) => "-".to_owned(),
        (ColumnKind::Text, Some(Json::String(text))) if text.is_empty() => match column.name {
            // All are of one class unless they are told apart.
            "class" if request.class.is_none() => "(all)".to_owned(),
            "class" => "(other)".to_owned(),
            _ => "(none)".to_owned(),
        },
        (_, Some(Json::String(text))) => shown(text),
        #[allow(clippy::cast_possible_truncation)] // A rate for people.
        (ColumnKind::Rate, Some(value)) if column.name == "bytes_per_s" => {
            size(value.as_f64().unwrap_or(0.0) as i64)
        }
        (ColumnKind::Rate, Some(value)) => format!("{:.1}", value.as_f64().unwrap_or(0.0)),
        (kind, Some(value)) => match (kind, value.as_i64()) {
            (ColumnKind::Time, Some(moment_ms)) => moment(moment_ms),
            (ColumnKind::Span, Some(ms)) => span(ms),
            (ColumnKind::Bytes, Some(bytes)) => size(bytes),
            _ => value.to_string(),
        },
    }
}

/// A moment to the second, in UTC.
fn moment(moment_ms: i64) -> String {
    let calendar = crate::text::moments::calendar(moment_ms);
    calendar.get(..19).map_or(calendar.clone(), |text| text.replace('T', " "))
}

fn covered(response: &ReportResponse) -> Option<String> {
    if !response.report.has_time() {
        return None;
    }
    let from = response.since_ms.map_or("the beginning".to_owned(), date);
    let to = response.until_ms.map_or("now".to_owned(), date);
    let walked = i64::try_from(response.walked).unwrap_or(i64::MAX);
    let looked = match response.walked {
        0 => String::new(),
        _ => format!(", {} read", counted(walked, "activity", "activities")),
    };
    Some(format!("connection {} from {from} to {to}{looked}", shown(&response.connection)))
}

/// The command that goes on: the one that was given, with a cursor. A database's URL may
/// have a password in it and is not repeated.
fn command(words: &[String], cursor: &str) -> String {
    let mut out = vec!["driftline".to_owned()];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (flag, value) =
            word.split_once('=').map_or((word.as_str(), None), |(f, v)| (f, Some(v)));
        match (flag, value) {
            ("--cursor", None) => {
                words.next();
            }
            ("--cursor", Some(_)) => {}
            ("--database", given) => {
                if given.is_none() {
                    words.next();
                }
                out.push("--database URL".to_owned());
            }
            _ => out.push(quoted(word)),
        }
    }
    out.push(format!("--cursor {}", quoted(cursor)));
    out.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(report: Report, rows: Vec<Json>) -> ReportResponse {
        let rows = rows.into_iter().filter_map(|row| row.as_object().cloned()).collect();
        ReportResponse {
            report,
            connection: "web".into(),
            since_ms: None,
            until_ms: Some(0),
            rows,
            walked: 2,
            next: Some("abc".into()),
            previous: None,
            outages: Vec::new(),
        }
    }

    #[test]
    fn a_table_has_its_columns_and_shows_nothing_strange() {
        let rows = vec![json!({
            "start_ms": 1_769_860_800_000_i64, "activity": "fetch", "identifier": "http://a/\u{1b}[2J",
            "result": "", "bytes": 2_500, "time_ms": 61_000, "description": null, "job": null
        })];
        let request = ReportRequest { report: Report::History, ..ReportRequest::default() };
        let words: Vec<String> =
            ["report", "history", "--cursor", "old", "--database", "postgres://me:pw@db/x"]
                .map(str::to_owned)
                .into();
        let expected = [
            "              start  activity  result   bytes   time  identifier",
            "2026-01-31 12:00:00  fetch     (none)  2.5 kB  1 min  http://a/\\u{1b}[2J",
            "connection web from the beginning to 1970-01-01 00:00 UTC, 2 activities read",
            "next page: driftline report history --database URL --cursor abc",
        ];
        assert_eq!(lines(&request, &answer(Report::History, rows), &words), expected);
    }

    #[test]
    fn classes_without_a_name_are_told_apart_from_all() {
        let row = || vec![json!({"class": "", "result": "OK", "activities": 3})];
        let request = ReportRequest { report: Report::Results, ..ReportRequest::default() };
        let words = ["report".to_owned(), "results".to_owned()];
        let all = lines(&request, &answer(Report::Results, row()), &words);
        assert_eq!(all[1], "(all)  OK               3");
        let request = ReportRequest { class: Some("x".into()), ..request };
        let other = lines(&request, &answer(Report::Results, row()), &words);
        assert!(other[1].starts_with("(other)"), "{other:?}");
    }
}
