//! `report history`: activities one by one, by time or by another column.
//!
//! Invariant: by time, a page costs the rows that are looked at on the way to it, however
//! long the history is; when that is much, the answer ends early and has a cursor.

use super::selection::{Key, Row, RowPage, SortValue};
use super::source::{PAGE, ReportQuery};
use super::{ROWS_MAX, ReportResponse};
use crate::refusal::OrRefuse;
use serde_json::json;
use store::tables::history::{self, Activity, ActivityQuery};

/// Activities, as they were asked for.
pub fn answer(source: &ReportQuery<'_>) -> anyhow::Result<ReportResponse> {
    let (column, descending) = source.order()?;
    if column.is_none_or(|column| column.name == "start_ms") {
        return by_time(source, descending);
    }
    let range = source.bounded_range()?;
    let mut selection = source.selection()?;
    let name = column.map_or("", |column| column.name);
    let walked = source.each_activity(range, |it| {
        let mut key = vec![cell(source, it, name)];
        key.extend(place(it));
        // Most rows are of other pages.
        if selection.wants(&key) {
            selection.offer(key, row(source, it));
        }
        Ok(())
    })?;
    source.answer(selection.page(), range, walked)
}

/// What tells activities apart, in the order of time.
fn place(it: &Activity) -> [SortValue; 2] {
    [SortValue::Int(it.start_ms), SortValue::Int(it.id)]
}

/// What a column says of an activity, without making a row of it.
fn cell(source: &ReportQuery<'_>, it: &Activity, column: &str) -> SortValue {
    let text =
        |text: Option<&str>| text.map_or(SortValue::None, |text| SortValue::Text(text.to_owned()));
    match column {
        "activity" => text(Some(&it.kind)),
        "identifier" => text(Some(&it.entity)),
        "result" => text(it.result.as_deref()),
        "bytes" => it.bytes.map_or(SortValue::None, SortValue::Int),
        "time_ms" => SortValue::Int(it.end_ms.saturating_sub(it.start_ms)),
        "description" => text(it.description.as_deref()),
        "job" => text(source.job_name(it.job)),
        _ => SortValue::Int(it.start_ms),
    }
}

fn row(source: &ReportQuery<'_>, it: &Activity) -> Row {
    let row = json!({
        "start_ms": it.start_ms,
        "activity": it.kind,
        "identifier": it.entity,
        "result": it.result,
        "bytes": it.bytes,
        "time_ms": it.end_ms.saturating_sub(it.start_ms),
        "description": it.description,
        "job": source.job_name(it.job),
    });
    match row {
        serde_json::Value::Object(row) => row,
        _ => Row::new(),
    }
}

fn by_time(source: &ReportQuery<'_>, descending: bool) -> anyhow::Result<ReportResponse> {
    let range = source.asked_range();
    let from = source.from();
    let backward = from.as_ref().is_some_and(|(_, backward)| *backward);
    let walk = ActivityQuery {
        connection: source.connection.id,
        since_ms: range.since_ms,
        until_ms: range.until_ms,
        newest_first: descending != backward,
    };
    let mut after = match &from {
        Some((key, _)) => {
            time_of(key).or_refuse(|| "the cursor is damaged; start again without --cursor")?
        }
        None => walk.start(),
    };
    let (mut found, mut walked, mut more) = (Vec::new(), 0, false);
    // The first look is for a page that needs nothing left out.
    let mut size = u32::try_from(source.request.limit()).unwrap_or(PAGE).saturating_add(1);
    'walk: loop {
        let page = source.db.read(move |tx| history::page(tx, &walk, after, size))?;
        let is_last = page.len() < size as usize;
        for it in page {
            if source.takes(&it) && found.len() == source.request.limit() {
                more = true;
                break 'walk;
            }
            walked += 1;
            after = (it.start_ms, it.id);
            if source.takes(&it) {
                found.push(it);
            }
        }
        if is_last {
            break;
        }
        if walked >= ROWS_MAX && !source.request.whole {
            more = true;
            break;
        }
        size = PAGE;
    }
    let reached: Key = vec![SortValue::Int(after.0), SortValue::Int(after.1)];
    let near = found.first().map(|it| Key::from(place(it)));
    let rows: Vec<Row> = found.iter().map(|it| row(source, it)).collect();
    source.answer(RowPage::walked(rows, from, near, more.then_some(reached)), range, walked)
}

fn time_of(key: &[SortValue]) -> Option<(i64, i64)> {
    // Ordered by its start, a row has it twice in its key: it may be either.
    match key {
        [.., SortValue::Int(start_ms), SortValue::Int(id)] => Some((*start_ms, *id)),
        _ => None,
    }
}
