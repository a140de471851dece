//! When jobs start by themselves (table 11.14).
//!
//! A schedule is one record of a job: lists of times and how long a run may take. This
//! module loads and saves all records of a job together, in their order. Invariant: a list
//! keeps the difference between "nothing said" (NULL) and "any value" (`*`), on which the
//! meaning of the other lists depends. What the numbers mean is `crawl::schedule`'s affair.

use crate::checksums::coverage::SCHEDULES;
use crate::ids::JobId;
use crate::tables::{job_states, jobs};
use crate::value::{Row, Value, column};
use crate::{Error, Result, Tx, checksums};
use std::collections::BTreeSet;

/// Schedules of one job: one for every hour of a week, and then some.
pub const SCHEDULES_MAX: usize = 200;
/// Bytes of one list as text; every year from 1970 to 9999 has room.
pub const LIST_BYTES_MAX: usize = 64 * 1_024;

/// What a schedule says of one field of a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum TimeField {
    /// Nothing: any value if a smaller field is said, else the least one.
    #[default]
    Unset,
    /// Any value, as the schedule says expressly.
    Any,
    /// One of these values.
    Of(BTreeSet<i64>),
}

impl TimeField {
    /// One of some values.
    pub fn of(values: impl IntoIterator<Item = i64>) -> TimeField {
        TimeField::Of(values.into_iter().collect())
    }

    /// Whether it says anything.
    pub fn is_set(&self) -> bool {
        *self != TimeField::Unset
    }

    fn to_text(&self) -> Result<Option<String>> {
        let text = match self {
            TimeField::Unset => return Ok(None),
            TimeField::Any => "*".to_owned(),
            TimeField::Of(values) => {
                let values: Vec<String> = values.iter().map(i64::to_string).collect();
                values.join(",")
            }
        };
        if text.is_empty() {
            return Err(Error::Refused("a list of a schedule has no value".into()));
        }
        if text.len() > LIST_BYTES_MAX {
            let (bytes, max) = (text.len() as u64, LIST_BYTES_MAX as u64);
            return Err(Error::TooLarge { what: "a list of a schedule".into(), bytes, max });
        }
        Ok(Some(text))
    }

    fn from_text(text: Option<&str>) -> Option<TimeField> {
        match text {
            None => Some(TimeField::Unset),
            Some("*") => Some(TimeField::Any),
            Some(list) => {
                let values = list.split(',').map(|value| value.trim().parse().ok());
                Some(TimeField::Of(values.collect::<Option<_>>()?))
            }
        }
    }
}

/// One record of a job's schedules. Numbers are those of the table: all but the years
/// count from zero.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Schedule {
    /// Years, such as 2030.
    pub years: TimeField,
    /// From 0 for January.
    pub months: TimeField,
    /// Days of the month; 0 is the first.
    pub dates: TimeField,
    /// Days of the week; 0 is Sunday.
    pub days: TimeField,
    /// From 0 to 23.
    pub hours: TimeField,
    /// From 0 to 59.
    pub minutes: TimeField,
    /// The name of the zone whose clocks all this is read from; `None` is UTC.
    pub timezone: Option<String>,
    /// How long a run may take before it waits for the next time; `None` is no limit.
    pub window_ms: Option<i64>,
    /// How long after a run's end another one starts in the same window; `None` is one run
    /// a window.
    pub repeat_ms: Option<i64>,
    /// Whether the run does only what must be done.
    pub minimal: bool,
}

/// What a schedule says, in the order in which it is read and written: its lists first.
const COLUMNS: &str = "yearlist, monthofyear, dayofmonth, dayofweek, hourofday, minutesofhour, \
                       timezone, windowlength, requestminimum, repeat_ms";

impl Schedule {
    fn from_row(row: &Row<'_>) -> Result<Schedule> {
        let list = |index: usize, name: &str| {
            let text: Option<String> = row.get(index)?;
            TimeField::from_text(text.as_deref()).ok_or_else(|| {
                let what = format!("{name} of a job's schedule");
                Error::corrupt(what, "it is neither * nor numbers with commas between")
            })
        };
        Ok(Schedule {
            years: list(column!(COLUMNS, "yearlist"), "yearlist")?,
            months: list(column!(COLUMNS, "monthofyear"), "monthofyear")?,
            dates: list(column!(COLUMNS, "dayofmonth"), "dayofmonth")?,
            days: list(column!(COLUMNS, "dayofweek"), "dayofweek")?,
            hours: list(column!(COLUMNS, "hourofday"), "hourofday")?,
            minutes: list(column!(COLUMNS, "minutesofhour"), "minutesofhour")?,
            timezone: row.get(column!(COLUMNS, "timezone"))?,
            window_ms: row.get(column!(COLUMNS, "windowlength"))?,
            minimal: row.get(column!(COLUMNS, "requestminimum"))?,
            repeat_ms: row.get(column!(COLUMNS, "repeat_ms"))?,
        })
    }
}

/// The schedules of a job, in their order.
pub fn load(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<Schedule>> {
    tx.query(
        &format!("SELECT {COLUMNS} FROM schedules WHERE ownerid = $1 ORDER BY ordinal LIMIT $2"),
        &[job.into(), Value::Int(SCHEDULES_MAX as i64)],
        Schedule::from_row,
    )
}

/// The lists of a schedule as the table has them, in the order of [`COLUMNS`].
fn lists(it: &Schedule) -> Result<Vec<Option<String>>> {
    let lists = [&it.years, &it.months, &it.dates, &it.days, &it.hours, &it.minutes];
    lists.into_iter().map(TimeField::to_text).collect()
}

/// Puts these schedules in the place of those that a job has. Whoever saves the job calls
/// it in the same transaction.
pub fn replace(tx: &mut Tx<'_>, job: JobId, schedules: &[Schedule], now_ms: i64) -> Result<()> {
    let is_whole = checksums::are_whole(tx, &SCHEDULES, "ownerid", job.into())?;
    if load(tx, job)? == schedules && is_whole {
        return Ok(());
    }
    if schedules.len() > SCHEDULES_MAX {
        let count = schedules.len();
        return Err(Error::Refused(format!(
            "a job can have {SCHEDULES_MAX} schedules, not {count}"
        )));
    }
    let texts: Vec<Vec<Option<String>>> = schedules.iter().map(lists).collect::<Result<_>>()?;
    let mut rows = Vec::new();
    for ((ordinal, schedule), lists) in (0_i64..).zip(schedules).zip(&texts) {
        let mut row: Vec<Value<'_>> = vec![job.into(), ordinal.into()];
        row.extend(lists.iter().map(Value::from));
        row.push((&schedule.timezone).into());
        row.push(schedule.window_ms.into());
        row.push(schedule.minimal.into());
        row.push(schedule.repeat_ms.into());
        rows.push(SCHEDULES.places(SCHEDULES.covered).with_checksum(row));
    }
    tx.execute("DELETE FROM schedules WHERE ownerid = $1", &[job.into()])?;
    tx.insert_rows(
        &format!("INSERT INTO schedules (ownerid, ordinal, {COLUMNS}, checksum)"),
        &rows,
        "",
    )?;
    // What a new schedule names counts from now on, not from the last run on.
    job_states::count_from(tx, job, now_ms)?;
    jobs::touch(tx, job, now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::both_databases;

    const JOB: JobId = JobId(7);

    /// One that says something of everything.
    fn full() -> Schedule {
        Schedule {
            years: TimeField::of([2030, 2027]),
            months: TimeField::of(0..12),
            dates: TimeField::Any,
            days: TimeField::of([0]),
            hours: TimeField::Unset,
            minutes: TimeField::of([0, 30]),
            timezone: Some("Europe/Berlin".into()),
            window_ms: Some(7_200_000),
            repeat_ms: Some(600_000),
            minimal: true,
        }
    }

    #[test]
    fn schedules_come_back_whole_and_in_their_order() {
        both_databases(|db| {
            let saved = vec![full(), Schedule::default(), Schedule { minimal: false, ..full() }];
            let expected = saved.clone();
            db.write(move |tx| replace(tx, JOB, &saved, 5))?;
            db.write(|tx| replace(tx, JobId(8), &[full()], 5))?;
            assert_eq!(db.read(|tx| load(tx, JOB))?, expected);
            assert_eq!(db.read(|tx| load(tx, JobId(9)))?, []);
            Ok(())
        });
    }

    #[test]
    fn the_lists_stand_in_the_table_as_the_chapter_says() {
        both_databases(|db| {
            db.write(|tx| replace(tx, JOB, &[full()], 5))?;
            let stored = db.read(|tx| {
                tx.query_one(
                    "SELECT yearlist, dayofmonth, dayofweek, hourofday FROM schedules
                     WHERE ownerid = $1 AND ordinal = 0",
                    &[JOB.into()],
                    |row| {
                        let list = |index| row.get::<Option<String>>(index);
                        Ok([list(0)?, list(1)?, list(2)?, list(3)?])
                    },
                )
            })?;
            let expected = [Some("2027,2030"), Some("*"), Some("0"), None];
            assert_eq!(stored, expected.map(|list| list.map(str::to_owned)));
            Ok(())
        });
    }

    #[test]
    fn new_schedules_take_the_place_of_all_old_ones_of_that_job_only() {
        both_databases(|db| {
            db.write(|tx| replace(tx, JOB, &[full(), full()], 5))?;
            db.write(|tx| replace(tx, JobId(8), &[full()], 5))?;
            db.write(|tx| replace(tx, JOB, &[Schedule::default()], 5))?;
            assert_eq!(db.read(|tx| load(tx, JOB))?, [Schedule::default()]);
            db.write(|tx| replace(tx, JOB, &[], 5))?;
            assert_eq!(db.read(|tx| load(tx, JOB))?, []);
            assert_eq!(db.read(|tx| load(tx, JobId(8)))?, [full()]);
            Ok(())
        });
    }

    #[test]
    fn what_cannot_be_kept_is_refused_and_changes_nothing() {
        both_databases(|db| {
            let most = vec![full(); SCHEDULES_MAX];
            db.write(move |tx| replace(tx, JOB, &most, 5))?;
            let one = |hours| vec![Schedule { hours, ..full() }];
            let refused = [
                vec![full(); SCHEDULES_MAX + 1],
                one(TimeField::of([])),
                one(TimeField::of(0..LIST_BYTES_MAX as i64)),
            ];
            for schedules in refused {
                assert!(db.write(move |tx| replace(tx, JOB, &schedules, 5)).is_err());
            }
            assert_eq!(db.read(|tx| load(tx, JOB))?.len(), SCHEDULES_MAX);
            Ok(())
        });
    }

    #[test]
    fn a_list_that_is_none_is_named() {
        both_databases(|db| {
            crate::testing::damages_rows();
            db.write(|tx| replace(tx, JOB, &[full()], 5))?;
            for text in ["", "1,,2", "monday", "*,1", "99999999999999999999"] {
                db.write(|tx| {
                    tx.execute("UPDATE schedules SET dayofweek = $1", &[text.into()]).map(|_| ())
                })?;
                let error = db.read(|tx| load(tx, JOB)).unwrap_err();
                assert!(matches!(error, Error::Corrupt { .. }), "{text:?}: {error}");
                assert!(error.to_string().contains("dayofweek"), "{text:?}: {error}");
            }
            Ok(())
        });
    }
}
