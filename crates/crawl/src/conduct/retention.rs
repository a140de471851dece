//! Forgetting old history beside the work, a bounded piece at a time.
//!
//! Each connection says how long its history is kept. Looks that found nothing new go sooner
//! when they are many for its documents; what found something stays. Invariants: what is due
//! goes in steps with pauses between them, so that nobody waits for a mass deletion; it goes
//! faster than a crawl can write.

use std::collections::BTreeMap;
use store::ids::ConnectionId;
use store::tables::history::{self, Key};
use store::{Db, Result};

/// Activities that one step forgets.
const STEP: u32 = 1_000;
/// Activities that one step looks at, to find those: what stays lies before them, and a run may
/// be over after a few steps.
const LOOKED_MAX: u32 = 20 * STEP;
/// Between two steps, while there is more.
const PAUSE_MS: i64 = 100;
/// Between two looks at everything.
const EVERY_MS: i64 = 10 * 60_000;

/// Looks that found nothing new stay for at least this long, however many they are.
const UNCHANGED_MS_MIN: i64 = 24 * 60 * 60_000;

/// Where the forgetting stands.
#[derive(Debug, Default)]
pub(super) struct Retention {
    /// When there is something to do again.
    next_ms: i64,
    /// The connection that was last looked at to its end.
    after: Option<ConnectionId>,
    /// How far looks that found nothing new have been gone through, by connection: before it
    /// there are none.
    thinned: BTreeMap<ConnectionId, Key>,
}

impl Retention {
    /// Does one step, if it is time. Returns how long to wait for the next.
    pub(super) fn step(&mut self, db: &Db, now_ms: i64) -> Result<i64> {
        if now_ms < self.next_ms {
            return Ok(self.next_ms - now_ms);
        }
        // Trouble with the database is met again at the next look.
        self.next_ms = now_ms + EVERY_MS;
        let after = self.after.unwrap_or(ConnectionId(i64::MIN));
        let Some((connection, kept_ms)) = db.read(move |tx| history::retention_after(tx, after))?
        else {
            self.after = None;
            return Ok(EVERY_MS);
        };
        let is_done = match kept_ms {
            Some(kept_ms) => {
                let before_ms = now_ms.saturating_sub(kept_ms);
                history::step(db, connection, before_ms, STEP)? < u64::from(STEP)
                    && self.thin(db, connection, now_ms)?
            }
            None => true,
        };
        if is_done {
            self.after = Some(connection);
        }
        self.next_ms = now_ms + PAUSE_MS;
        Ok(PAUSE_MS)
    }

    /// Forgets looks that found nothing new, if they are too many. Returns whether that is
    /// done.
    fn thin(&mut self, db: &Db, connection: ConnectionId, now_ms: i64) -> Result<bool> {
        let excess = db.read(move |tx| history::excess(tx, connection))?;
        if excess == 0 {
            return Ok(true);
        }
        let after = self.thinned.get(&connection).copied().unwrap_or((i64::MIN, i64::MIN));
        let count = excess.min(i64::from(STEP));
        let before_ms = now_ms.saturating_sub(UNCHANGED_MS_MIN);
        let (reached, is_end) = history::thin(db, connection, after, before_ms, count, LOOKED_MAX)?;
        self.thinned.insert(connection, reached);
        Ok(is_end || reached == after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::Part;
    use store::tables::connections::{self, Connection, ConnectionKind};
    use store::tables::history::{Activity, ActivityQuery, counts};
    use store::testing::both_databases;

    const DAY_MS: i64 = 86_400_000;

    fn activity(connection: i64, number: i64) -> Activity {
        Activity {
            id: connection * 100_000 + number,
            connection: ConnectionId(connection),
            job: None,
            kind: "fetch".into(),
            entity: "http://a.example/".into(),
            bytes: Some(1),
            result: None,
            description: None,
            start_ms: number * DAY_MS / 100,
            end_ms: number * DAY_MS / 100,
        }
    }

    #[test]
    fn of_looks_that_found_nothing_new_as_many_stay_as_fit_the_documents() {
        both_databases(|db| {
            let id = ConnectionId(1);
            let connection = Connection::new(id, "web", "web");
            db.write(move |tx| connections::save(tx, ConnectionKind::Repository, &connection, 1))?;
            let count = history::ACTIVITIES_MIN + 1_500;
            // Every tenth look found something new, and the last hundred are of today.
            let looks: Vec<Activity> = (0..count)
                .map(|number| {
                    let mut look = activity(1, number);
                    look.start_ms = 100 * DAY_MS + number;
                    if number >= count - 100 {
                        look.start_ms = 103 * DAY_MS + number;
                    }
                    match number % 10 {
                        0 => look.result = Some("200".into()),
                        1 => look.say_nothing_new(),
                        _ => look.result = Some("304".into()),
                    }
                    look
                })
                .collect();
            db.write(move |tx| history::append(tx, Part(1), &looks))?;
            let mut retention = Retention::default();
            let mut now_ms = 103 * DAY_MS + DAY_MS / 2;
            while retention.step(db, now_ms)? < EVERY_MS {
                now_ms += PAUSE_MS;
            }
            let left = db.read(move |tx| {
                history::page(tx, &ActivityQuery::all(id), (i64::MIN, i64::MIN), 100_000)
            })?;
            assert_eq!(left.len() as i64, history::ACTIVITIES_MIN);
            let changes = left.iter().filter(|it| !it.is_nothing_new()).count() as i64;
            assert_eq!(changes, count / 10, "what found something stays");
            let today = left.iter().filter(|it| it.start_ms > 102 * DAY_MS).count();
            assert_eq!(today, 100, "all of today stays");
            assert_eq!(db.read(counts::differences)?, []);
            Ok(())
        });
    }

    #[test]
    fn short_runs_keep_up_with_what_they_write_whatever_stays_from_earlier_ones() {
        both_databases(|db| {
            let id = ConnectionId(1);
            let connection = Connection::new(id, "web", "web");
            db.write(move |tx| connections::save(tx, ConnectionKind::Repository, &connection, 1))?;
            let (changes, looks) = (history::ACTIVITIES_MIN + 3_000, 3_000);
            let rows: Vec<Activity> = (0..changes + looks)
                .map(|number| {
                    let result = if number < changes { "200" } else { "304" };
                    let start_ms = 100 * DAY_MS + number;
                    Activity { result: Some(result.into()), start_ms, ..activity(1, number) }
                })
                .collect();
            db.write(move |tx| history::append(tx, Part(1), &rows))?;
            // A run of half a second, in a process of its own.
            let mut retention = Retention::default();
            for step in 0..5 {
                retention.step(db, 103 * DAY_MS + step * PAUSE_MS)?;
            }
            let walk = ActivityQuery::all(id);
            let left = db.read(move |tx| history::page(tx, &walk, walk.start(), 100_000))?;
            assert_eq!(left.len() as i64, changes, "all that found something, and nothing else");
            Ok(())
        });
    }

    #[test]
    fn history_is_kept_as_long_as_its_connection_says_and_goes_piece_by_piece() {
        both_databases(|db| {
            // Thirty days of four connections: the usual, ten days, for ever, and gone.
            db.write(|tx| {
                for (id, kept_ms) in [(1, None), (2, Some(Some(10 * DAY_MS))), (3, Some(None))] {
                    let name = format!("web{id}");
                    let usual = Connection::new(ConnectionId(id), &name, "web");
                    let history_ms = kept_ms.unwrap_or(usual.history_ms);
                    let it = Connection { history_ms, ..usual };
                    connections::save(tx, ConnectionKind::Repository, &it, 1)?;
                }
                for id in 1..=4 {
                    let rows: Vec<Activity> = (0..3_000).map(|it| activity(id, it)).collect();
                    history::append(tx, Part(id % 2), &rows)?;
                }
                Ok(())
            })?;
            let left = |id: i64| {
                db.read(move |tx| {
                    let counts = counts::between(tx, ConnectionId(id), i64::MIN, i64::MAX, 10)?;
                    let walk = ActivityQuery::all(ConnectionId(id));
                    let rows = history::page(tx, &walk, walk.start(), 10_000)?.len();
                    assert_eq!(counts.iter().map(|it| it.activities).sum::<i64>(), rows as i64);
                    Ok(rows)
                })
            };
            let (mut retention, mut now_ms) = (Retention::default(), 100 * DAY_MS - 10_000);
            let mut steps = 0;
            loop {
                let wait_ms = retention.step(db, now_ms)?;
                now_ms += wait_ms;
                steps += 1;
                if wait_ms == EVERY_MS {
                    break;
                }
            }
            // Of the first connection, what is older than ninety days has gone.
            assert_eq!([left(1)?, left(2)?, left(3)?, left(4)?], [2_000, 0, 3_000, 0]);
            assert_eq!(steps, 2 + 3 + 1 + 3 + 1, "at most a thousand at once");
            assert_eq!(retention.step(db, now_ms - 1)?, 1, "it waits until there may be more");
            Ok(())
        });
    }
}
