//! What looks at the tables have found of a job in a part: documents of older runs, and when
//! documents fall due.

use super::Places;
use crate::hops::Spread;
use store::ids::BinId;
use store::tables::queue::Place;

/// A walk over the bins with documents that an older run settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OlderWalk {
    #[default]
    Unknown,
    After(BinId),
    Done,
}

/// When documents of a job in a part fall due, and by what that is judged.
#[derive(Debug, Clone, Copy)]
pub struct DueLook {
    pub due_ms: Option<i64>,
    /// The job scans once, so nothing is scheduled for later but another try.
    pub scans_once: bool,
    /// When another try is due at the latest.
    pub latest_ms: i64,
    pub now_ms: i64,
}

/// What is done about documents that wait for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueAction {
    Nothing,
    /// They have fallen due.
    Wake,
    /// They were scheduled when the job went on for ever: they are settled.
    Unschedule,
    /// The clock was wrong when their time was written.
    PullIn,
}

impl Places {
    /// Where the walk over bins with older documents stands.
    pub fn older(&mut self, place: Place) -> OlderWalk {
        self.place(place).older
    }

    pub fn set_older(&mut self, place: Place, older: OlderWalk) {
        self.place(place).older = older;
    }

    pub fn want_spread(&mut self, place: Place) {
        self.place(place).spread = Spread::More;
    }

    pub fn set_due(&mut self, place: Place, due_ms: Option<i64>) {
        self.place(place).due_ms = due_ms;
    }

    /// Takes over when documents fall due. Returns what is done about it.
    pub fn on_due_look(&mut self, place: Place, look: DueLook) -> DueAction {
        let work = self.place(place);
        work.due_ms = look.due_ms;
        let Some(due_ms) = look.due_ms else { return DueAction::Nothing };
        if look.scans_once && !work.is_unscheduled {
            DueAction::Unschedule
        } else if look.scans_once && due_ms > look.latest_ms {
            DueAction::PullIn
        } else if due_ms <= look.now_ms {
            DueAction::Wake
        } else {
            DueAction::Nothing
        }
    }

    /// What was scheduled is settled; whether all of it.
    pub fn on_unscheduled(&mut self, place: Place, is_all: bool) {
        self.place(place).is_unscheduled = is_all;
    }
}
