//! Forgets lost links that are too old or too many, so that the index does not grow with
//! every link that ever was.
//!
//! A sweep goes through the lost links of a part, target by target and in each from the
//! latest to the oldest, in steps of [`STEP_ROWS`]; where it is, stands in the part. Once a
//! sweep is through, the next one begins [`SWEEP_EVERY_MS`] after it.
//!
//! Invariant: after a sweep a target has, of all links that it ever lost, the latest ones up
//! to the limits, whatever sweeps there were before: what a sweep removes, all later ones
//! would remove.

use super::codec::{self, ByteReader};
use super::index::LinkIndex;
use super::keys;
use super::pages::seconds;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Result;
use store::ids::Part;
use store::sorted::{Row, Span, View};
use store::tables::leases::Lease;
use store::tables::settings::LostLinks;

/// Lost links that a step looks at: a few milliseconds.
pub const STEP_ROWS: usize = 5_000;
/// From the end of a sweep to the beginning of the next one.
pub const SWEEP_EVERY_MS: i64 = 24 * 60 * 60 * 1_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Which lost links stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Lost at this second or later.
    from_s: u64,
    /// The most lost links of one target.
    per_target: u64,
}

impl Bounds {
    /// What a setting means at a moment; 0 is no limit.
    pub fn at(setting: LostLinks, now_ms: i64) -> Bounds {
        let kept_ms = i64::from(setting.days).saturating_mul(DAY_MS);
        Bounds {
            from_s: if kept_ms == 0 { 0 } else { seconds(now_ms.saturating_sub(kept_ms)) },
            per_target: if setting.per_target == 0 { u64::MAX } else { setting.per_target.into() },
        }
    }

    /// Whether a lost link stays, of whose target so many later ones do.
    pub fn take(&self, lost_s: u64, later: u64) -> bool {
        later < self.per_target && lost_s >= self.from_s
    }
}

/// Takes the sweep of one part a step further, of all that may be changed; whether there is more to
/// do. A map that only one process has needs no leases.
pub fn step_any(
    index: &LinkIndex,
    leases: &[Lease],
    setting: LostLinks,
    now_ms: i64,
) -> Result<bool> {
    let parts: Vec<(Part, Option<&Lease>)> = match index.map().spans_parts() {
        true => Part::all(index.parts()).map(|part| (part, None)).collect(),
        false => leases.iter().map(|lease| (lease.part, Some(lease))).collect(),
    };
    for (part, lease) in parts {
        if step(index, part, lease, setting, now_ms)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes a sweep of a part one step further, if one is due; whether there is more to do.
/// `lease` is that of the part; a map that only one process has needs none.
fn step(
    index: &LinkIndex,
    part: Part,
    lease: Option<&Lease>,
    setting: LostLinks,
    now_ms: i64,
) -> Result<bool> {
    step_of(index, part, lease, setting, now_ms, STEP_ROWS)
}

/// The same, with so many rows at most.
pub(super) fn step_of(
    index: &LinkIndex,
    part: Part,
    lease: Option<&Lease>,
    setting: LostLinks,
    now_ms: i64,
    rows_max: usize,
) -> Result<bool> {
    let is_due = index.read(move |view| {
        if !PruneProgress::load(view, part)?.is_due(now_ms) {
            return Ok(false);
        }
        Ok(!view.scan(part, &Span::prefix(&[keys::LOST.byte]), 1)?.is_empty())
    })?;
    if !is_due {
        return Ok(false);
    }
    let bounds = Bounds::at(setting, now_ms);
    let is_more = Arc::new(AtomicBool::new(false));
    let found_more = is_more.clone();
    let work = move |view: &dyn View| {
        let mut sweep = PruneProgress::load(view, part)?;
        let mut rows = sweep.advance(view, part, bounds, rows_max)?;
        found_more.store(sweep.at.is_some(), Ordering::SeqCst);
        if sweep.at.is_none() {
            sweep.done_ms = Some(now_ms);
        }
        rows.push(sweep.row(part));
        Ok(rows)
    };
    index.map().change(part, lease, Arc::new(work))?;
    Ok(is_more.load(Ordering::SeqCst))
}

/// How far the sweep of a part is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PruneProgress {
    /// When the last one was through.
    done_ms: Option<i64>,
    /// Where the one under way is: the last key that it looked at, and how many of that
    /// key's target stay.
    at: Option<(Vec<u8>, u64)>,
}

impl PruneProgress {
    fn load(view: &dyn View, part: Part) -> Result<PruneProgress> {
        let Some(bytes) = view.get(part, &keys::swept())? else {
            return Ok(PruneProgress::default());
        };
        let mut reader = ByteReader::new("meta", &bytes);
        let done_ms = match reader.byte()? {
            0 => None,
            _ => Some(reader.signed()?),
        };
        let at = match reader.byte()? {
            0 => None,
            _ => {
                let kept = reader.number()?;
                let key = reader.bytes(reader.left())?.to_vec();
                Some((key, kept))
            }
        };
        Ok(PruneProgress { done_ms, at })
    }

    fn row(&self, part: Part) -> Row {
        let mut value = vec![u8::from(self.done_ms.is_some())];
        if let Some(done_ms) = self.done_ms {
            codec::put_signed(&mut value, done_ms);
        }
        value.push(u8::from(self.at.is_some()));
        if let Some((key, kept)) = &self.at {
            codec::put_number(&mut value, *kept);
            value.extend_from_slice(key);
        }
        Row { part, key: keys::swept(), value: Some(value) }
    }

    /// A clock that was set back does not put sweeps off for ever.
    fn is_due(&self, now_ms: i64) -> bool {
        let rests = |done_ms: i64| (0..SWEEP_EVERY_MS).contains(&now_ms.saturating_sub(done_ms));
        self.at.is_some() || !self.done_ms.is_some_and(rests)
    }

    /// Looks at the next rows. Returns those that go.
    fn advance(
        &mut self,
        view: &dyn View,
        part: Part,
        bounds: Bounds,
        rows_max: usize,
    ) -> Result<Vec<Row>> {
        let mut span = Span::prefix(&[keys::LOST.byte]);
        if let Some((last, _)) = &self.at {
            span = span.behind(last);
        }
        let found = view.scan(part, &span, rows_max)?;
        let is_end = found.len() < rows_max;
        let mut gone = Vec::new();
        for (key, _) in found {
            let (last, kept) = self.at.take().unwrap_or_default();
            let kept = if keys::target_of(&last) == keys::target_of(&key) { kept } else { 0 };
            // A key that nobody can read is nobody's lost link.
            let lost_s = keys::read_lost(&key).map_or(0, |(lost_s, _)| lost_s);
            let stays = bounds.take(lost_s, kept);
            if !stays {
                gone.push(Row { part, key: key.clone(), value: None });
            }
            self.at = Some((key, kept + u64::from(stays)));
        }
        if is_end {
            self.at = None;
        }
        Ok(gone)
    }
}
