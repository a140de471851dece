//! Versions of outlets change with what documents must be sent again for.

use super::*;
use crate::Db;
use crate::tables::connections::{self, Connection, ConnectionKind};
use crate::tables::jobs::{self, Job};
use crate::tables::pipelines::PipelineStage;
use crate::testing::both_databases;

const JOB: JobId = JobId(1);

fn stage(prerequisite: Option<i64>, kind: StageKind, connection: i64, spec: &str) -> PipelineStage {
    let (connection, description) = (ConnectionId(connection), None);
    PipelineStage { prerequisite, kind, connection, description, spec: spec.into() }
}

fn make(db: &Db) -> Result<()> {
    db.write(|tx| {
        let kinds = [
            (1, ConnectionKind::Repository),
            (2, ConnectionKind::Transformation),
            (3, ConnectionKind::Output),
        ];
        for (id, kind) in kinds.into_iter().chain([(4, ConnectionKind::Output)]) {
            let name = format!("{}{id}", kind.name());
            let it = Connection::new(ConnectionId(id), &name, "web");
            connections::save(tx, kind, &it, 0)?;
        }
        for (id, name) in [(1, "docs"), (2, "more")] {
            jobs::save(tx, &Job::new(JobId(id), name, ConnectionId(1)), 0)?;
        }
        Ok(())
    })
}

fn outlets(db: &Db) -> Result<Vec<Outlet>> {
    db.read(|tx| of_job(tx, JOB))
}

#[test]
fn versions_follow_the_specification_the_configuration_and_the_transformations() {
    both_databases(|db| {
        make(db)?;
        assert_eq!(outlets(db)?, []);
        let pipe = |spec: &'static str, change: &'static str| {
            let stages = [
                stage(None, StageKind::Transformation, 2, change),
                stage(Some(0), StageKind::Output, 3, spec),
                stage(None, StageKind::Output, 4, "{}"),
            ];
            db.write(move |tx| pipelines::replace(tx, JOB, &stages, 0))
        };
        pipe("{}", "{}")?;
        let first = outlets(db)?;
        assert_eq!((first[0].name.as_str(), first[1].name.as_str()), ("output3", "output4"));
        assert!(!first[0].transformations.is_empty() && first[1].transformations.is_empty());
        pipe("{}", "{\"x\":1}")?;
        let second = outlets(db)?;
        assert_eq!(second[0].version, first[0].version);
        assert_ne!(second[0].transformations, first[0].transformations);
        assert_eq!(second[1], first[1]);
        pipe("{\"y\":1}", "{\"x\":1}")?;
        let third = outlets(db)?;
        assert_ne!(third[0].version, second[0].version);
        assert!(db.write(|tx| reindex(tx, ConnectionId(3), 5))?);
        assert_ne!(outlets(db)?[0].version, third[0].version, "all is to be sent again");
        assert_eq!(outlets(db)?[1], first[1]);
        assert!(!db.write(|tx| reindex(tx, ConnectionId(1), 5))?, "it is no output");
        Ok(())
    });
}

#[test]
fn an_output_that_a_job_does_not_send_to_any_more_is_a_former_outlet() {
    both_databases(|db| {
        make(db)?;
        let send = |output: i64| {
            let stages = [stage(None, StageKind::Output, output, "{\"a\":1}")];
            db.write(move |tx| pipelines::replace(tx, JOB, &stages, 0))
        };
        let names = || -> Result<Vec<(String, bool)>> {
            Ok(outlets(db)?.into_iter().map(|it| (it.name, it.former)).collect())
        };
        let output = |id: i64, former| (format!("output{id}"), former);
        send(4)?;
        assert_eq!(names()?, [output(4, false)]);
        send(3)?;
        assert_eq!(names()?, [output(3, false), output(4, true)]);
        send(4)?;
        assert_eq!(names()?, [output(4, false), output(3, true)]);
        db.write(|tx| pipelines::replace(tx, JOB, &[], 0))?;
        assert_eq!(names()?, [output(3, true), output(4, true)]);
        assert!(db.write(|tx| connections::delete(tx, ConnectionKind::Output, "output4"))?);
        send(3)?;
        assert_eq!(names()?, [output(3, false)]);
        let opened = db.read(|tx| opening(tx, ConnectionId(3)))?.expect("it is there");
        assert_eq!((opened.name.as_str(), opened.present), ("output3", false));
        let spec = db.read(|tx| spec_of(tx, JOB, ConnectionId(3)))?;
        assert_eq!(spec.as_deref(), Some("{\"a\":1}"));
        assert_eq!(db.read(|tx| spec_of(tx, JOB, ConnectionId(4)))?, None);
        Ok(())
    });
}

/// What stands for the transformations changes with their settings, for the outputs
/// behind them alone, and what is stored is looked at again.
#[test]
fn settings_of_a_transformation_count_for_the_outputs_behind_it() {
    both_databases(|db| {
        make(db)?;
        let stages = [
            stage(None, StageKind::Transformation, 2, "{\"first\":1}"),
            stage(Some(0), StageKind::Transformation, 2, "{\"second\":1}"),
            stage(Some(1), StageKind::Output, 3, "{}"),
            stage(None, StageKind::Output, 4, "{}"),
        ];
        db.write(move |tx| pipelines::replace(tx, JOB, &stages, 0))?;
        let steps = db.read(|tx| steps_of(tx, JOB, ConnectionId(3)))?;
        let said: Vec<(&str, &str)> =
            steps.iter().map(|it| (it.name.as_str(), it.spec.as_str())).collect();
        let name = "transformation2";
        assert_eq!(said, [(name, "{\"first\":1}"), (name, "{\"second\":1}")], "in order");
        assert_eq!(db.read(|tx| steps_of(tx, JOB, ConnectionId(4)))?, []);
        assert_eq!(db.read(|tx| steps_of(tx, JOB, ConnectionId(9)))?, []);
        let first = outlets(db)?;
        assert!(!first[0].bodies && !first[1].bodies);
        db.write(|tx| {
            tx.execute("UPDATE job_states SET seedingversion = 'so far'", &[])?;
            let it = Connection::new(ConnectionId(2), name, "html");
            let it = Connection { config: "{\"main\":true}".into(), ..it };
            connections::save(tx, ConnectionKind::Transformation, &it, 1)?;
            tx.execute(
                "INSERT INTO registrations (kind, classname, description, bodies, registered_ms)
                 VALUES ('transformation', 'html', '', 1, 0)",
                &[],
            )
        })?;
        let second = outlets(db)?;
        assert_eq!(second[0].version, first[0].version);
        assert_ne!(second[0].transformations, first[0].transformations);
        assert!(second[0].bodies, "a transformation on the way takes them");
        assert_eq!(second[1], first[1]);
        let sql = "SELECT COUNT(*) FROM job_states WHERE seedingversion IS NULL AND jobid = 1";
        assert_eq!(db.read(move |tx| tx.query_one(sql, &[], |row| row.get::<i64>(0)))?, 1);
        Ok(())
    });
}
