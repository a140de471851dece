//! `report queue`: how many documents stand where, by class of identifiers.
//!
//! Where identifiers are not told apart, counters and the database count, and no row leaves
//! it.
//! Invariant: both ways count the same, and exactly, however many documents there are.

use super::selection::{Row, SortValue};
use super::source::{ReportQuery, TimeRange};
use super::windows::CLASSES_MAX;
use super::{ReportResponse, documents};
use crate::refusal::require;
use serde_json::json;
use std::collections::BTreeMap;
use store::Tx;
use store::ids::Part;
use store::tables::document_status::{self, Status};
use store::tables::queue::Place;
use store::tables::{counters, settings};

/// Documents of a class, by status.
type Counts = BTreeMap<Status, i64>;

/// The counts, as they were asked for.
pub fn answer(source: &ReportQuery<'_>) -> anyhow::Result<ReportResponse> {
    let mut classes: BTreeMap<String, Counts> = BTreeMap::new();
    let by_row = source.classes.are_told_apart() || source.request.matching.is_some();
    let walked = match by_row {
        true => documents::each(source, |it| {
            let Some(job) = source.jobs.get(&it.job) else { return Ok(()) };
            let class = source.classes.of(&it.docid);
            let status = it.shape.status(job.ground);
            *classes.entry(class.to_owned()).or_default().entry(status).or_default() += 1;
            require!(
                classes.len() <= CLASSES_MAX,
                "there are more than {CLASSES_MAX} classes; make --class less specific, such as \
                 '^https?://([^/]+)' for hosts"
            );
            Ok(())
        })?,
        false => {
            let counts = counted(source)?;
            if !counts.is_empty() {
                classes.insert(String::new(), counts);
            }
            0
        }
    };
    let mut selection = source.selection()?;
    for (class, counts) in classes {
        let row = row(&class, &counts);
        selection.offer(source.key(&row, [SortValue::Text(class)])?, row);
    }
    source.answer(selection.page(), TimeRange::ALWAYS, walked)
}

fn counted(source: &ReportQuery<'_>) -> anyhow::Result<Counts> {
    let now_ms = source.now_ms.saturating_add(source.request.after_span_ms);
    let mut counts = Counts::new();
    for (job, of) in source.jobs.iter().filter(|(_, of)| of.wanted) {
        let (job, ground, run) = (*job, of.ground, of.run);
        let parts =
            source.db.read(move |tx| counters::parts_of(tx, job, Part(0), settings::PARTS_MAX))?;
        for part in parts {
            let place = Place { part, job };
            let counts_of =
                move |tx: &mut Tx<'_>| document_status::counts(tx, place, ground, run, now_ms);
            let found = source.db.read(counts_of)?;
            for (shape, count) in found {
                if let Some(status) = documents::status_if_requested(source, job, &shape) {
                    *counts.entry(status).or_default() += count;
                }
            }
        }
    }
    Ok(counts)
}

fn row(class: &str, counts: &Counts) -> Row {
    let mut row = Row::from_iter([("class".to_owned(), json!(class))]);
    for status in Status::ALL {
        let count = counts.get(status).copied().unwrap_or(0);
        row.insert(status.name().replace(' ', "_"), json!(count));
    }
    row.insert("documents".to_owned(), json!(counts.values().sum::<i64>()));
    row
}
