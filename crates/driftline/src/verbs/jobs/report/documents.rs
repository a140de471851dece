//! `report documents`: documents one by one with their state and status, in the order in
//! which they arrived, or by a column.
//!
//! Invariant: in order of arrival, an answer looks at a bounded number of rows and has a
//! cursor to go on with, however long the queue is.

use super::selection::{Key, Row, RowPage, SortValue};
use super::source::{PAGE, ReportQuery, TimeRange};
use super::{ROWS_MAX, ReportResponse};
use crate::refusal::OrRefuse;
use serde_json::json;
use store::ids::{JobId, Part, QueueId};
use store::tables::document_status::{self, DocumentStatus, Shape, Status};
use store::tables::settings;

/// Documents, as they were asked for.
pub fn answer(source: &ReportQuery<'_>) -> anyhow::Result<ReportResponse> {
    if source.order()?.0.is_none() {
        return by_arrival(source);
    }
    let mut selection = source.selection()?;
    let walked = each(source, |it| {
        let row = row(source, it);
        selection.offer(source.key(&row, place(it))?, row);
        Ok(())
    })?;
    source.answer(selection.page(), TimeRange::ALWAYS, walked)
}

/// Hands over every document that was asked for. Returns how many were looked at.
pub fn each(
    source: &ReportQuery<'_>,
    mut take: impl FnMut(&DocumentStatus) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let now_ms = source.now_ms.saturating_add(source.request.after_span_ms);
    let parts = source.db.read(settings::parts)?;
    let mut walked = 0;
    for part in (0..i64::from(parts)).map(Part) {
        let mut after = QueueId(i64::MIN);
        loop {
            let page = source
                .db
                .read(move |tx| document_status::page(tx, part, after, now_ms, false, PAGE))?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for it in &page {
                walked += 1;
                source.check_walked(walked)?;
                if takes(source, it) {
                    take(it)?;
                }
            }
        }
    }
    Ok(walked)
}

/// The status of documents of a job and a shape, if they were asked for.
pub fn status_if_requested(source: &ReportQuery<'_>, job: JobId, shape: &Shape) -> Option<Status> {
    let job = source.jobs.get(&job).filter(|job| job.wanted)?;
    let status = shape.status(job.ground);
    let among = |wanted: &[String], name| wanted.is_empty() || wanted.iter().any(|it| it == name);
    let is_wanted = among(&source.request.state, shape.state().name())
        && among(&source.request.status, status.name());
    is_wanted.then_some(status)
}

/// Whether a document was asked for.
fn takes(source: &ReportQuery<'_>, it: &DocumentStatus) -> bool {
    status_if_requested(source, it.job, &it.shape).is_some() && source.takes_identifier(&it.docid)
}

/// What tells documents apart, in order of arrival.
fn place(it: &DocumentStatus) -> [SortValue; 2] {
    [SortValue::Int(it.part.0), SortValue::Int(it.id.0)]
}

fn row(source: &ReportQuery<'_>, it: &DocumentStatus) -> Row {
    let job = source.jobs.get(&it.job);
    let status = job.map(|job| it.shape.status(job.ground).name());
    Row::from_iter([
        ("identifier".to_owned(), json!(it.docid)),
        ("job".to_owned(), json!(job.map(|job| &job.name))),
        ("state".to_owned(), json!(it.shape.state().name())),
        ("status".to_owned(), json!(status)),
        ("scheduled_ms".to_owned(), json!(it.check_ms)),
        ("action".to_owned(), json!(it.shape.action.name())),
        ("retries".to_owned(), json!(it.failcount)),
        ("retry_until_ms".to_owned(), json!(it.failtime)),
        ("reason".to_owned(), json!(it.reason)),
    ])
}

fn by_arrival(source: &ReportQuery<'_>) -> anyhow::Result<ReportResponse> {
    let from = source.from();
    let backward = from.as_ref().is_some_and(|(_, backward)| *backward);
    let falls = source.order()?.1 != backward;
    let parts = i64::from(source.db.read(settings::parts)?);
    let mut at = match &from {
        Some((key, _)) => {
            place_of(key).or_refuse(|| "the cursor is damaged; start again without --cursor")?
        }
        None if falls => (parts - 1, i64::MAX),
        None => (0, i64::MIN),
    };
    let now_ms = source.now_ms.saturating_add(source.request.after_span_ms);
    let (mut found, mut walked, mut more) = (Vec::new(), 0, false);
    'walk: while (0..parts).contains(&at.0) {
        let (part, after) = (Part(at.0), QueueId(at.1));
        let page = source
            .db
            .read(move |tx| document_status::page(tx, part, after, now_ms, falls, PAGE))?;
        let is_last = page.len() < PAGE as usize;
        for it in page {
            let is_wanted = takes(source, &it);
            if is_wanted && found.len() == source.request.limit() {
                more = true;
                break 'walk;
            }
            walked += 1;
            at.1 = it.id.0;
            if is_wanted {
                found.push(it);
            }
        }
        if is_last {
            at = if falls { (at.0 - 1, i64::MAX) } else { (at.0 + 1, i64::MIN) };
        } else if walked >= ROWS_MAX && !source.request.whole {
            more = true;
            break;
        }
    }
    let reached: Key = vec![SortValue::Int(at.0), SortValue::Int(at.1)];
    let near = found.first().map(|it| Key::from(place(it)));
    let rows: Vec<Row> = found.iter().map(|it| row(source, it)).collect();
    let page = RowPage::walked(rows, from, near, more.then_some(reached));
    source.answer(page, TimeRange::ALWAYS, walked)
}

fn place_of(key: &[SortValue]) -> Option<(i64, i64)> {
    match key {
        [SortValue::Int(part), SortValue::Int(id)] => Some((*part, *id)),
        _ => None,
    }
}
