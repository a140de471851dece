//! Jobs lose and regain their connectors in the transaction that changes a registration.

use super::*;
use crate::Db;
use crate::tables::connections::{self, Connection};
use crate::tables::jobs::{self, Job};
use crate::tables::pipelines::{self, PipelineStage, StageKind};
use crate::testing::{self, both_databases};

const fn connector(kind: ConnectionKind, name: &'static str) -> Connector {
    Connector { kind, name, install: None, deinstall: None, ..testing::WEB }
}

const LOWER: Connector = connector(ConnectionKind::Transformation, "lower");
const DISK: Connector = connector(ConnectionKind::Output, "disk");

fn connection(id: i64, kind: ConnectionKind, classname: &str) -> (ConnectionKind, Connection) {
    (kind, Connection::new(ConnectionId(id), classname, classname))
}

fn stage(kind: StageKind, prerequisite: Option<i64>, connection: i64) -> PipelineStage {
    let connection = ConnectionId(connection);
    PipelineStage { prerequisite, kind, connection, description: None, spec: "{}".into() }
}

/// A job from the web through `lower` to `disk`, and one without a pipeline.
fn make(db: &Db) -> Result<()> {
    db.write(|tx| {
        for it in [&LOWER, &DISK] {
            assert!(register(tx, it, 1)?);
        }
        for (kind, it) in [
            connection(1, ConnectionKind::Repository, "web"),
            connection(2, ConnectionKind::Transformation, "lower"),
            connection(3, ConnectionKind::Output, "disk"),
        ] {
            connections::save(tx, kind, &it, 1)?;
        }
        for (id, name) in [(1, "piped"), (2, "plain")] {
            jobs::save(tx, &Job::new(JobId(id), name, ConnectionId(1)), 1)?;
        }
        let stages =
            [stage(StageKind::Transformation, None, 2), stage(StageKind::Output, Some(0), 3)];
        pipelines::replace(tx, JobId(1), &stages, 1)
    })
}

/// Of both jobs: whether the repository and the outputs are there.
fn present(db: &Db) -> Result<[(bool, bool); 2]> {
    db.read(|tx| {
        let rows = tx.query(
            "SELECT repository_present, outputs_present FROM job_states ORDER BY jobid LIMIT 2",
            &[],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        Ok([rows[0], rows[1]])
    })
}

#[test]
fn jobs_go_without_a_connector_and_back() {
    both_databases(|db| {
        make(db)?;
        let all = [(true, true); 2];
        assert_eq!(present(db)?, all);
        for (gone, left) in [
            (testing::WEB, [(false, true), (false, true)]),
            (LOWER, [(false, true), (true, true)]),
            (DISK, [(true, false), (true, true)]),
        ] {
            assert!(db.write(move |tx| deregister(tx, &gone, 5))?);
            assert_eq!(present(db)?, left, "without {}", gone.name);
            assert!(!db.write(move |tx| deregister(tx, &gone, 6))?, "it is gone already");
            assert!(db.write(move |tx| register(tx, &gone, 7))?);
            assert_eq!(present(db)?, all, "with {} again", gone.name);
        }
        db.write(|tx| {
            deregister(tx, &testing::WEB, 8)?;
            deregister(tx, &DISK, 8)
        })?;
        assert_eq!(present(db)?, [(false, false), (false, true)]);
        let status = db.write(|tx| {
            tx.execute("UPDATE job_states SET phase = 'active' WHERE jobid = 1", &[])?;
            testing::sum_rows(tx)?;
            tx.query_one("SELECT status FROM jobs WHERE id = 1", &[], |row| row.get::<String>(0))
        })?;
        assert_eq!(status, "ACTIVE_NEITHER");
        Ok(())
    });
}

#[test]
fn a_job_made_while_its_connector_is_away_lacks_it_until_it_is_edited_to_another() {
    both_databases(|db| {
        make(db)?;
        let away = connection(9, ConnectionKind::Repository, "gopher").1;
        db.write(move |tx| {
            connections::save(tx, ConnectionKind::Repository, &away, 2)?;
            jobs::save(tx, &Job::new(JobId(2), "plain", ConnectionId(9)), 2)
        })?;
        assert_eq!(present(db)?[1], (false, true));
        db.write(|tx| {
            let (kind, it) = connection(9, ConnectionKind::Repository, "web");
            connections::save(tx, kind, &Connection { name: "gopher".into(), ..it }, 3)
        })?;
        assert_eq!(present(db)?[1], (true, true), "its connection has another connector now");
        Ok(())
    });
}

#[test]
fn the_list_and_the_views_show_what_is_registered() {
    both_databases(|db| {
        make(db)?;
        let listed = db.read(list)?;
        let names: Vec<(ConnectionKind, &str)> =
            listed.iter().map(|it| (it.kind, it.classname.as_str())).collect();
        let expected = [
            (ConnectionKind::Output, "disk"),
            (ConnectionKind::Repository, "web"),
            (ConnectionKind::Transformation, "lower"),
        ];
        assert_eq!(names, expected);
        for view in ["connectors", "outputconnectors", "transformationconnectors"] {
            let sql = format!("SELECT classname FROM {view} LIMIT 9");
            let found = db.read(move |tx| tx.query(&sql, &[], |row| row.get::<String>(0)))?;
            assert_eq!(found.len(), 1, "{view}");
        }
        Ok(())
    });
}
