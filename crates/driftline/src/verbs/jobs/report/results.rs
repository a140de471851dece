//! `report results`: how many activities came to which result, by class of identifiers.
//!
//! Where identifiers are not told apart, whole hours are taken from the counts that are
//! kept with the history, and only what is left of a first and a last hour is read.
//! Invariant: both ways count the same.

use super::ReportResponse;
use super::classes::Classes;
use super::selection::{Row, SortValue};
use super::source::{ReportQuery, TimeRange};
use super::windows::CLASSES_MAX;
use crate::refusal::require;
use serde_json::json;
use std::collections::BTreeMap;
use store::Tx;
use store::tables::history::counts::{self, HOUR_MS, hour_of};

/// Kinds of counts that are added up: jobs times kinds times results.
const COUNTS_MAX: u32 = 100_000;

/// Activities by class and result.
struct Histogram {
    classes: Classes,
    counts: BTreeMap<(String, String), i64>,
}

impl Histogram {
    fn add(&mut self, class: &str, result: &str, count: i64) -> anyhow::Result<()> {
        let result = match self.classes.are_told_apart() {
            true => self.classes.of(result),
            false => result,
        };
        *self.counts.entry((class.to_owned(), result.to_owned())).or_default() += count;
        require!(
            self.counts.len() <= CLASSES_MAX,
            "there are more than {CLASSES_MAX} classes; make --class less specific, such as \
             '^https?://([^/]+)' for hosts"
        );
        Ok(())
    }
}

/// The results, as they were asked for.
pub fn answer(source: &ReportQuery<'_>) -> anyhow::Result<ReportResponse> {
    let classes = Classes::new("--result-class", source.request.result_class.as_deref())?;
    let mut histogram = Histogram { classes, counts: BTreeMap::new() };
    let by_rows = source.classes.are_told_apart() || source.request.matching.is_some();
    let (range, walked) = match by_rows {
        true => {
            let range = source.bounded_range()?;
            (range, by_row(source, range, &mut histogram)?)
        }
        false => {
            let range = source.asked_range();
            (range, by_hour(source, range, &mut histogram)?)
        }
    };
    let mut selection = source.selection()?;
    for ((class, result), count) in histogram.counts {
        let row = Row::from_iter([
            ("class".to_owned(), json!(class)),
            ("result".to_owned(), json!(result)),
            ("activities".to_owned(), json!(count)),
        ]);
        selection.offer(source.key(&row, [SortValue::Text(class), SortValue::Text(result)])?, row);
    }
    source.answer(selection.page(), range, walked)
}

fn by_row(
    source: &ReportQuery<'_>,
    range: TimeRange,
    histogram: &mut Histogram,
) -> anyhow::Result<u64> {
    source.each_activity(range, |it| {
        let result = it.result.as_deref().unwrap_or_default();
        histogram.add(source.classes.of(&it.entity), result, 1)
    })
}

fn by_hour(
    source: &ReportQuery<'_>,
    range: TimeRange,
    histogram: &mut Histogram,
) -> anyhow::Result<u64> {
    let TimeRange { since_ms, until_ms } = range;
    // The first whole hour, and the end of the last; open ends are whole.
    let first_ms = match since_ms {
        i64::MIN => i64::MIN,
        _ => hour_of(since_ms.saturating_add(HOUR_MS - 1)),
    };
    let last_ms = if until_ms == i64::MAX { i64::MAX } else { hour_of(until_ms) };
    if first_ms >= last_ms {
        return by_row(source, range, histogram);
    }
    let mut walked = by_row(source, TimeRange { until_ms: first_ms, ..range }, histogram)?;
    if until_ms != last_ms {
        walked += by_row(source, TimeRange { since_ms: last_ms, ..range }, histogram)?;
    }
    let connection = source.connection.id;
    let within =
        move |tx: &mut Tx<'_>| counts::between(tx, connection, first_ms, last_ms, COUNTS_MAX);
    let kept = source.db.read(within)?;
    for it in kept {
        let kinds = &source.request.activity;
        let is_wanted = source.takes_job(it.job)
            && (kinds.is_empty() || kinds.contains(&it.kind))
            && source.takes_result(&it.result);
        if is_wanted {
            histogram.add("", &it.result, it.activities)?;
        }
    }
    Ok(walked)
}
