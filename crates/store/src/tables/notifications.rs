//! Whom a job tells of its end, its failures and its pauses: notification connections in
//! order.
//!
//! Invariant: a change here changes nothing of what is fetched, so seeding goes on from
//! where it got to.

use crate::checksums::coverage::JOB_NOTIFICATIONS;
use crate::ids::{ConnectionId, JobId};
use crate::tables::connections::{self, ConnectionKind};
use crate::tables::jobs;
use crate::{Error, Result, Tx, checksums};

/// Notifications of one job.
pub const NOTIFICATIONS_MAX: usize = 100;

/// What a job tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Occasion {
    /// Its run is over.
    End,
    /// Its run was aborted because something failed.
    ErrorAbort,
    /// Somebody has aborted its run.
    ManualAbort,
    /// Somebody has paused it.
    ManualPause,
    /// Its window is over, and it waits for the next.
    SchedulePause,
    /// Its run was given up for another.
    Restart,
    /// It would lose more than it may: its removals wait for a person.
    RemovalsHeld,
}

impl Occasion {
    /// All occasions, in the order in which help lists them.
    pub const ALL: [Occasion; 7] = [
        Occasion::End,
        Occasion::ErrorAbort,
        Occasion::ManualAbort,
        Occasion::ManualPause,
        Occasion::SchedulePause,
        Occasion::Restart,
        Occasion::RemovalsHeld,
    ];

    /// The occasion as tables and notices name it.
    pub const fn name(self) -> &'static str {
        match self {
            Occasion::End => "end",
            Occasion::ErrorAbort => "error abort",
            Occasion::ManualAbort => "manual abort",
            Occasion::ManualPause => "manual pause",
            Occasion::SchedulePause => "schedule pause",
            Occasion::Restart => "restart",
            Occasion::RemovalsHeld => "removals-held",
        }
    }
}

/// A notification connection of a job, and its occasions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The connection that is told.
    pub connection: ConnectionId,
    /// What people say of it.
    pub description: Option<String>,
    /// The connector's specification, as JSON.
    pub spec: String,
}

/// Gives a job these notifications instead of those it had.
pub fn replace(tx: &mut Tx<'_>, job: JobId, list: &[Notification], now_ms: i64) -> Result<()> {
    let is_whole = checksums::are_whole(tx, &JOB_NOTIFICATIONS, "ownerid", job.into())?;
    if load(tx, job)? == list && is_whole {
        return Ok(());
    }
    if list.len() > NOTIFICATIONS_MAX {
        let number = list.len();
        return Err(Error::Refused(format!(
            "a job has at most {NOTIFICATIONS_MAX} notifications, not {number}"
        )));
    }
    for it in list {
        match connections::load(tx, it.connection)? {
            Some((ConnectionKind::Notification, _)) => {}
            Some((kind, it)) => {
                let (name, kind) = (it.name, kind.name());
                return Err(Error::Refused(format!(
                    "{name} is a connection of kind {kind}: it cannot be told"
                )));
            }
            None => return Err(Error::Refused("a notification's connection is not there".into())),
        }
    }
    tx.execute("DELETE FROM jobnotifications WHERE ownerid = $1", &[job.into()])?;
    let places = JOB_NOTIFICATIONS.places(JOB_NOTIFICATIONS.covered);
    let rows: Vec<_> = (0_i64..)
        .zip(list)
        .map(|(ordinal, it)| {
            places.with_checksum(vec![
                job.into(),
                ordinal.into(),
                it.connection.into(),
                (&it.description).into(),
                (&it.spec).into(),
            ])
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO jobnotifications (ownerid, ordinal, connectionid, description, spec,
             checksum)",
        &rows,
        "",
    )?;
    jobs::touch(tx, job, now_ms)
}

/// The notifications of a job, in order.
pub fn load(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<Notification>> {
    tx.query(
        "SELECT connectionid, description, spec FROM jobnotifications
         WHERE ownerid = $1 ORDER BY ordinal LIMIT $2",
        &[job.into(), (NOTIFICATIONS_MAX as i64).into()],
        |row| {
            let (connection, description) = (row.get(0)?, row.get(1)?);
            Ok(Notification { connection, description, spec: row.get(2)? })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::connections::Connection;
    use crate::tables::jobs::Job;
    use crate::testing::both_databases;

    #[test]
    fn notifications_are_replaced_in_order_and_reset_no_seeding() {
        both_databases(|db| {
            let job = JobId(1);
            db.write(move |tx| {
                for (id, kind) in
                    [(1, ConnectionKind::Repository), (2, ConnectionKind::Notification)]
                {
                    let it = Connection::new(ConnectionId(id), kind.name(), "web");
                    connections::save(tx, kind, &it, 0)?;
                }
                jobs::save(tx, &Job::new(job, "docs", ConnectionId(1)), 0)?;
                tx.execute("UPDATE job_states SET seedingversion = 'so far'", &[])
            })?;
            let told = |connection, spec: &str| Notification {
                connection: ConnectionId(connection),
                description: None,
                spec: spec.into(),
            };
            let replace =
                |list: Vec<Notification>| db.write(move |tx| super::replace(tx, job, &list, 5));
            let both = vec![told(2, "{\"b\":1}"), told(2, "{\"a\":1}")];
            replace(both.clone())?;
            replace(both.clone())?;
            assert_eq!(db.read(move |tx| load(tx, job))?, both);
            assert_eq!(db.read(move |tx| jobs::version(tx, job))?, Some(2));
            assert!(replace(vec![told(1, "{}")]).unwrap_err().to_string().contains("repository"));
            assert!(replace(vec![told(9, "{}")]).unwrap_err().to_string().contains("not there"));
            assert!(replace(vec![told(2, "{}"); NOTIFICATIONS_MAX + 1]).is_err());
            let sql = "SELECT seedingversion FROM job_states";
            let seeding =
                db.read(move |tx| tx.query_one(sql, &[], |row| row.get::<Option<String>>(0)))?;
            assert_eq!(seeding.as_deref(), Some("so far"));
            Ok(())
        });
    }
}
