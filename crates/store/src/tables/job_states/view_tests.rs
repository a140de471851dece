//! What the view `jobs` shows beside the names of states.

use super::*;
use crate::ids::ConnectionId;
use crate::tables::connections::{Connection, ConnectionKind};
use crate::tables::jobs;
use crate::testing::both_databases;

#[test]
fn the_view_names_a_process_only_while_it_brings_a_job_to_a_permanent_state() {
    both_databases(|db| {
        db.write(|tx| {
            let web = Connection::new(ConnectionId(1), "web", "web");
            connections::save(tx, ConnectionKind::Repository, &web, 0)?;
            jobs::save(tx, &Job::new(JobId(1), "a", ConnectionId(1)), 1)
        })?;
        let shown = |phase: Phase, change: fn(&mut JobState)| {
            db.write(move |tx| {
                let before = state(tx, JobId(1))?;
                let mut now = JobState { phase, node: Some(NodeId(7)), ..JobState::default() };
                change(&mut now);
                save(tx, JobId(1), &before, &now, 2)?;
                let sql = "SELECT processid FROM jobs WHERE id = 1";
                tx.query_one(sql, &[], |row| row.get::<Option<i64>>(0))
            })
        };
        for phase in Phase::ALL {
            let is_transient = matches!(
                phase,
                Phase::StartingUp
                    | Phase::Notifying
                    | Phase::DeleteStartingUp
                    | Phase::NotifyingOfDeletion
            );
            let expected = is_transient.then_some(7);
            assert_eq!(shown(*phase, |_| {})?, expected, "{phase:?}");
        }
        assert_eq!(shown(Phase::Active, |it| it.seeding = true)?, Some(7));
        let aborted = |it: &mut JobState| it.aborted_from = Some(AbortedFrom::StartingUp);
        assert_eq!(shown(Phase::Aborting, aborted)?, Some(7));
        Ok(())
    });
}
