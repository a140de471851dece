//! Forgetting old history beside the work, a bounded piece at a time.
//!
//! Each connection says how long its history is kept. Invariants: what is due goes in
//! steps with pauses between them, so that nobody waits for a mass deletion; it goes
//! faster than a crawl can write.

use store::ids::ConnectionId;
use store::tables::history;
use store::{Db, Result};

/// Activities that one step forgets.
const STEP: u32 = 1_000;
/// Between two steps, while there is more.
const PAUSE_MS: i64 = 100;
/// Between two looks at everything.
const EVERY_MS: i64 = 10 * 60_000;

/// Where the forgetting stands.
#[derive(Debug, Default)]
pub(super) struct Retention {
    /// When there is something to do again.
    next_ms: i64,
    /// The connection that was last looked at to its end.
    after: Option<ConnectionId>,
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
        let Some((connection, kept_ms)) = db.read(move |tx| history::kept(tx, after))? else {
            self.after = None;
            return Ok(EVERY_MS);
        };
        let found = match kept_ms {
            Some(kept_ms) => history::step(db, connection, now_ms.saturating_sub(kept_ms), STEP)?,
            None => 0,
        };
        if found < u64::from(STEP) {
            self.after = Some(connection);
        }
        self.next_ms = now_ms + PAUSE_MS;
        Ok(PAUSE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ids::Part;
    use store::tables::connections::{self, Connection, Kind};
    use store::tables::history::{Activity, Walk, counts};
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
    fn history_is_kept_as_long_as_its_connection_says_and_goes_piece_by_piece() {
        both_databases(|db| {
            // Thirty days of four connections: the usual, ten days, for ever, and gone.
            db.write(|tx| {
                for (id, kept_ms) in [(1, None), (2, Some(Some(10 * DAY_MS))), (3, Some(None))] {
                    let name = format!("web{id}");
                    let usual = Connection::new(ConnectionId(id), &name, "web");
                    let history_ms = kept_ms.unwrap_or(usual.history_ms);
                    let it = Connection { history_ms, ..usual };
                    connections::save(tx, Kind::Repository, &it, 1)?;
                }
                for id in 1..=4 {
                    let rows: Vec<Activity> = (0..3_000).map(|it| activity(id, it)).collect();
                    history::append(tx, Part(id % 2), &rows)?;
                }
                Ok(())
            })?;
            let left = |id: i64| {
                db.read(move |tx| {
                    let range = (i64::MIN, i64::MAX);
                    let counts = counts::between(tx, ConnectionId(id), range, 10)?;
                    let walk = Walk::all(ConnectionId(id));
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
