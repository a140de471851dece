//! `report activity` and `report bandwidth`: for each class of identifiers, the window of
//! time in which it had the most activities, or the most bytes.
//!
//! An activity counts when it began. One pass over the rows in order of time is enough: the
//! best window of a class ends with one of its activities. Invariants: only what lies in a
//! window is kept, in bounded memory; of windows with the same amount the first is told.

use super::ReportResponse;
use super::columns::Report;
use super::selection::{Row, SortValue};
use super::source::ReportQuery;
use crate::refusal::refuse;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};

/// Classes that are told apart.
pub const CLASSES_MAX: usize = 10_000;
/// Moments that are kept of all windows together: 16 MB.
const HELD_MAX: usize = 1_000_000;

/// The windows of all classes.
pub struct Windows {
    window_ms: i64,
    classes: BTreeMap<String, Track>,
    held: usize,
    limits: (usize, usize),
}

/// The window of one class that ends now, and the best so far.
#[derive(Default)]
struct Track {
    /// Moments with their amounts, the oldest first.
    held: VecDeque<(i64, i64)>,
    sum: i64,
    best: Option<BusiestWindow>,
}

/// The window with the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusiestWindow {
    pub amount: i64,
    pub start_ms: i64,
}

impl Track {
    /// Forgets what is not in the window that ends at a moment. Returns how much.
    fn leave(&mut self, window_ms: i64, now_ms: i64) -> usize {
        let before = self.held.len();
        while let Some((at_ms, amount)) = self.held.front()
            && now_ms.saturating_sub(*at_ms) >= window_ms
        {
            self.sum -= amount;
            self.held.pop_front();
        }
        before - self.held.len()
    }
}

impl Windows {
    /// Windows of a length.
    pub fn new(window_ms: i64) -> Windows {
        let limits = (CLASSES_MAX, HELD_MAX);
        Windows { window_ms: window_ms.max(1), classes: BTreeMap::new(), held: 0, limits }
    }

    /// Takes an amount in. Moments never go back.
    pub fn take(&mut self, class: &str, at_ms: i64, amount: i64) -> anyhow::Result<()> {
        let (classes_max, held_max) = self.limits;
        if !self.classes.contains_key(class) {
            if self.classes.len() >= classes_max {
                refuse!(
                    "there are more than {classes_max} classes; make --class less specific, such \
                     as '^https?://([^/]+)' for hosts"
                );
            }
            self.classes.insert(class.to_owned(), Track::default());
        }
        let Some(track) = self.classes.get_mut(class) else { return Ok(()) };
        self.held -= track.leave(self.window_ms, at_ms);
        match track.held.back_mut() {
            Some((last_ms, held)) if *last_ms == at_ms => *held += amount,
            _ => {
                track.held.push_back((at_ms, amount));
                self.held += 1;
            }
        }
        track.sum = track.sum.saturating_add(amount);
        if track.best.is_none_or(|best| track.sum > best.amount) {
            let start_ms = track.held.front().map_or(at_ms, |(first_ms, _)| *first_ms);
            track.best = Some(BusiestWindow { amount: track.sum, start_ms });
        }
        if self.held > held_max {
            self.make_room(at_ms)?;
        }
        Ok(())
    }

    /// Forgets what is old in classes that were not met lately.
    fn make_room(&mut self, now_ms: i64) -> anyhow::Result<()> {
        let window_ms = self.window_ms;
        let left: usize =
            self.classes.values_mut().map(|track| track.leave(window_ms, now_ms)).sum();
        self.held -= left;
        // If that did not help much, it would have to be done again and again.
        if self.held > self.limits.1 / 4 * 3 {
            refuse!(
                "the window has too many activities to hold in memory; choose a shorter --window"
            );
        }
        Ok(())
    }

    /// The best window of each class.
    pub fn best(&self) -> impl Iterator<Item = (&str, BusiestWindow)> {
        self.classes.iter().filter_map(|(class, track)| Some((class.as_str(), track.best?)))
    }
}

/// The windows, as they were asked for.
pub fn answer(source: &ReportQuery<'_>) -> anyhow::Result<ReportResponse> {
    let (range, by_bytes) = (source.bounded_range()?, source.request.report == Report::Bandwidth);
    let mut windows = Windows::new(source.request.window_ms);
    let walked = source.each_activity(range, |it| {
        let amount = if by_bytes { it.bytes.unwrap_or(0) } else { 1 };
        windows.take(source.classes.of(&it.entity), it.start_ms, amount)
    })?;
    let mut selection = source.selection()?;
    for (class, best) in windows.best() {
        let row = row(class, best, windows.window_ms, by_bytes);
        selection.offer(source.key(&row, [SortValue::Text(class.to_owned())])?, row);
    }
    source.answer(selection.page(), range, walked)
}

fn row(class: &str, best: BusiestWindow, window_ms: i64, by_bytes: bool) -> Row {
    let (unit_ms, amount, rate) = match by_bytes {
        true => (1_000.0, "bytes", "bytes_per_s"),
        false => (60_000.0, "activities", "per_minute"),
    };
    // For people: the amount itself is exact.
    let per_unit = best.amount as f64 * unit_ms / window_ms as f64;
    Row::from_iter([
        ("class".to_owned(), json!(class)),
        ("start_ms".to_owned(), json!(best.start_ms)),
        ("end_ms".to_owned(), json!(best.start_ms.saturating_add(window_ms))),
        (amount.to_owned(), json!(best.amount)),
        (rate.to_owned(), json!(per_unit)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(classes_max: usize, held_max: usize) -> Windows {
        Windows { limits: (classes_max, held_max), ..Windows::new(10) }
    }

    #[test]
    fn a_window_slides_and_the_first_best_is_told() {
        let mut windows = Windows::new(10);
        for (at_ms, amount) in [(0, 1), (5, 1), (10, 1), (14, 1), (24, 9), (40, 3)] {
            windows.take("a", at_ms, amount).unwrap();
        }
        // From 0 to 9 are two, from 5 to 14 three, from 24 on nine.
        assert_eq!(
            windows.best().collect::<Vec<_>>(),
            [("a", BusiestWindow { amount: 9, start_ms: 24 })]
        );
        let mut equal = Windows::new(10);
        for at_ms in [0, 1, 20, 21] {
            equal.take("a", at_ms, 1).unwrap();
        }
        assert_eq!(equal.best().next(), Some(("a", BusiestWindow { amount: 2, start_ms: 0 })));
    }

    #[test]
    fn too_many_classes_are_refused_with_what_to_do() {
        let mut windows = limited(2, 100);
        windows.take("a", 0, 1).unwrap();
        windows.take("b", 0, 1).unwrap();
        windows.take("a", 1, 1).unwrap();
        let error = windows.take("c", 2, 1).unwrap_err().to_string();
        assert!(error.contains("more than 2 classes") && error.contains("--class"), "{error}");
    }

    #[test]
    fn what_is_old_makes_room_and_a_window_that_is_too_full_is_refused() {
        let mut windows = limited(100, 8);
        for at_ms in 0..50 {
            windows.take(&format!("{at_ms}"), at_ms * 10, 1).unwrap();
        }
        assert!(windows.held <= 9);
        let mut full = limited(100, 8);
        let outcome = (0..9).try_for_each(|at_ms| full.take("a", at_ms, 1));
        assert!(outcome.unwrap_err().to_string().contains("--window"));
    }
}
