//! A job's definition is saved whole, counts its changes, and goes whole.

use super::*;
use crate::ids::{NodeId, Run};
use crate::tables::hopfilters;
use crate::testing::both_databases;

fn job(id: i64, name: &str) -> Job {
    Job {
        id: JobId(id),
        name: name.into(),
        description: "a test".into(),
        connection: ConnectionId(1),
        docspec: "{}".into(),
        priority: 5,
        continuous: false,
        interval_ms: None,
        interval_max_ms: Some(9),
        reseed_ms: None,
        expiration_ms: None,
        start: StartMethod::WindowInside,
        hopcount: HopcountMode::NeverDelete,
        refetch: Refetch::Formula,
        fetches_per_day: Some(100),
        on_failure: OnFailure::Abort,
        removal_limit: Some("5% or 9".into()),
        proven_removal_limit: Some("off".into()),
    }
}

#[test]
fn a_definition_is_saved_whole_and_keeps_its_state() {
    both_databases(|db| {
        db.write(|tx| save(tx, &job(1, "a"), 1))?;
        db.write(|tx| job_states::start_run(tx, JobId(1), NodeId(1), 2))?;
        let edited = Job {
            docspec: "{\"seeds\":[]}".into(),
            continuous: true,
            start: StartMethod::Manual,
            hopcount: HopcountMode::NoDelete,
            refetch: Refetch::Fixed,
            fetches_per_day: None,
            on_failure: OnFailure::Skip,
            ..job(1, "b")
        };
        let saved = edited.clone();
        db.write(move |tx| save(tx, &saved, 3))?;
        assert_eq!(db.read(|tx| find(tx, "a"))?, None);
        assert_eq!(db.read(|tx| find(tx, "b"))?, Some(edited.clone()));
        assert_eq!(db.read(|tx| load(tx, JobId(1)))?, Some(edited.clone()));
        assert_eq!(db.read(|tx| list(tx, "", 9))?, [edited]);
        assert_eq!(
            db.read(|tx| job_states::state(tx, JobId(1)))?.run,
            Run(1),
            "an edit starts nothing"
        );
        Ok(())
    });
}

#[test]
fn the_columns_are_as_many_as_is_said() {
    assert_eq!(COLUMNS.split(", ").count(), COLUMNS_COUNT);
}

#[test]
fn a_version_counts_changes_and_another_specification_looks_at_everything_again() {
    both_databases(|db| {
        let edit = |it: Job| {
            db.write(move |tx| {
                tx.execute("UPDATE job_states SET seedingversion = 'so far'", &[])?;
                save(tx, &it, 3)?;
                let sql = "SELECT seedingversion FROM job_states WHERE jobid = 1";
                let seeding = tx.query_one(sql, &[], |row| row.get::<Option<String>>(0))?;
                Ok((version(tx, JobId(1))?, seeding.is_some()))
            })
        };
        db.write(|tx| save(tx, &job(1, "a"), 1))?;
        assert_eq!(edit(job(1, "a"))?, (Some(1), true), "nothing has changed");
        assert_eq!(edit(Job { priority: 3, ..job(1, "b") })?, (Some(2), true));
        let docspec = "{\"a\": 1}".to_owned();
        assert_eq!(edit(Job { docspec, priority: 3, ..job(1, "b") })?, (Some(3), false));
        let elsewhere = Job { connection: ConnectionId(2), ..job(1, "b") };
        assert_eq!(edit(elsewhere)?, (Some(4), false));
        assert_eq!(db.read(|tx| version(tx, JobId(7)))?, None);
        Ok(())
    });
}

#[test]
fn a_job_goes_with_all_that_belongs_to_it_and_leaves_others_alone() {
    both_databases(|db| {
        for (id, name) in [(1, "a"), (2, "b")] {
            db.write(move |tx| {
                save(tx, &job(id, name), 1)?;
                job_states::start_run(tx, JobId(id), NodeId(1), 2)?;
                let hops = [("link".to_owned(), 3)].into();
                hopfilters::replace(tx, JobId(id), &hops, 2)
            })?;
        }
        assert!(db.write(|tx| delete(tx, JobId(1)))?);
        assert!(!db.write(|tx| delete(tx, JobId(1)))?, "it is gone");
        let left = |table: &'static str| {
            let sql = format!("SELECT COUNT(*) FROM {table}");
            db.read(move |tx| tx.query_one(&sql, &[], |row| row.get::<i64>(0)))
        };
        for table in ["job_definitions", "job_states", "runs", "jobhopfilters"] {
            assert_eq!(left(table)?, 1, "{table}");
        }
        assert_eq!(db.read(|tx| list(tx, "", 9))?, [job(2, "b")]);
        Ok(())
    });
}
