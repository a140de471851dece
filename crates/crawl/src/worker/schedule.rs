//! When the worker looks at the tables: asked to, now and then, and less and less often while
//! there is nothing to do. And whether the machine's clock was set meanwhile.
//!
//! Invariant: whoever asks for a look gets one that begins after it asked.

use store::clock::{Jumps, Moment};

/// With nothing to do, the tables are looked at again after this long at first.
const IDLE_MS: i64 = 20;

pub(super) struct LookSchedule {
    /// How often the tables are looked at while there is work.
    poll_ms: i64,
    /// When the last look began; `None` while another one is wanted.
    looked_ms: Option<i64>,
    /// After how long they are looked at again while there is none.
    idle_ms: i64,
    jumps: Jumps,
}

impl LookSchedule {
    /// The first look is wanted.
    pub fn new(poll_ms: i64, at: Moment) -> LookSchedule {
        LookSchedule { poll_ms, looked_ms: None, idle_ms: 0, jumps: Jumps::since(at) }
    }

    /// When the next look is due.
    pub fn next_ms(&self, is_idle: bool) -> i64 {
        let wait_ms = if is_idle { self.idle_ms } else { self.poll_ms };
        self.looked_ms.map_or(i64::MIN, |looked_ms| looked_ms.saturating_add(wait_ms))
    }

    /// A look begins. Whoever asks for another one from here on gets it.
    pub fn begin(&mut self, is_idle: bool, now_ms: i64) {
        // The longer there is nothing, the less often it is worth a look.
        self.idle_ms = match is_idle {
            true => (self.idle_ms * 2).clamp(IDLE_MS, self.poll_ms),
            false => 0,
        };
        self.looked_ms = Some(now_ms);
    }

    /// Asks for a look.
    pub fn want(&mut self) {
        self.looked_ms = None;
    }

    /// Whether a look is wanted that has not begun.
    pub fn is_wanted(&self) -> bool {
        self.looked_ms.is_none()
    }

    /// There was something to do.
    pub fn on_work(&mut self) {
        self.idle_ms = 0;
    }

    /// By how much the clock was set since it was last asked; due times mean another moment
    /// then, so a look is wanted.
    pub fn follow(&mut self, at: Moment) -> Option<i64> {
        let jump_ms = self.jumps.look(at)?;
        self.want();
        Some(jump_ms)
    }

    /// When a request ended, by the clock of now: one that ended before the clock was set ended
    /// just now.
    pub fn ended_ms(&self, told_ms: i64, now_ms: i64) -> i64 {
        ended_ms(told_ms, self.jumps.since_ms(), now_ms)
    }
}

fn ended_ms(told_ms: i64, set_ms: i64, now_ms: i64) -> i64 {
    if told_ms > now_ms || told_ms < set_ms { now_ms } else { told_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> LookSchedule {
        LookSchedule::new(1_000, Moment::now())
    }

    #[test]
    fn a_look_that_is_asked_for_during_a_look_is_not_lost() {
        let mut schedule = schedule();
        assert!(schedule.is_wanted() && schedule.next_ms(false) == i64::MIN);
        schedule.begin(false, 5_000);
        assert_eq!((schedule.is_wanted(), schedule.next_ms(false)), (false, 6_000));
        schedule.want();
        assert!(schedule.is_wanted() && schedule.next_ms(false) == i64::MIN);
    }

    #[test]
    fn while_there_is_nothing_to_do_looks_become_rare_and_work_makes_them_frequent_again() {
        let mut schedule = schedule();
        let mut waits = Vec::new();
        for _ in 0..8 {
            schedule.begin(true, 0);
            waits.push(schedule.next_ms(true));
        }
        assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1_000, 1_000]);
        schedule.on_work();
        schedule.begin(true, 0);
        assert_eq!(schedule.next_ms(true), 20);
        assert_eq!(schedule.next_ms(false), 1_000, "with work it is as often as the settings say");
    }

    #[test]
    fn a_clock_that_is_set_asks_for_a_look() {
        let at = Moment::now();
        let mut schedule = LookSchedule::new(1_000, at);
        schedule.begin(false, at.wall_ms);
        assert_eq!((schedule.follow(at), schedule.is_wanted()), (None, false));
        let set = Moment { wall_ms: at.wall_ms + 3_600_000, ..at };
        assert_eq!((schedule.follow(set), schedule.is_wanted()), (Some(3_600_000), true));
    }

    #[test]
    fn an_end_by_the_old_clock_is_an_end_now() {
        let set_ms = 9_000;
        assert_eq!(ended_ms(9_000, set_ms, 40_000), 9_000, "what it said took long to read");
        assert_eq!(ended_ms(10_000 + 7_200_000, set_ms, 10_000), 10_000, "the clock went back");
        assert_eq!(ended_ms(10_000 - 7_200_000, set_ms, 10_000), 10_000, "it went forward");
    }
}
