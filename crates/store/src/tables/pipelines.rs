//! The pipeline of a job: a tree of transformations that ends in outputs.
//!
//! A stage's ordinal is its place in the list, from 0; it hears the repository, or the
//! earlier transformation that it names. Invariants: the tree is checked before it is
//! kept; when it changes, the job looks at everything again.

use crate::checksums::coverage::JOB_PIPELINES;
use crate::ids::{ConnectionId, JobId};
use crate::tables::connections::{self, ConnectionKind};
use crate::tables::{jobs, registrations};
use crate::{Error, Result, Tx, checksums};

/// Stages of one job.
pub const STAGES_MAX: usize = 100;

/// What a stage does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageKind {
    /// It changes documents and hands them on.
    Transformation,
    /// The stage is an output.
    Output,
}

impl StageKind {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    /// The kind of connection it uses.
    pub fn kind(self) -> ConnectionKind {
        match self {
            StageKind::Transformation => ConnectionKind::Transformation,
            StageKind::Output => ConnectionKind::Output,
        }
    }
}

/// A transformation or an output of a job's pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PipelineStage {
    /// The ordinal of the transformation it hears; `None` hears the repository.
    pub prerequisite: Option<i64>,
    pub kind: StageKind,
    /// The connection it uses.
    pub connection: ConnectionId,
    /// What people say of it.
    pub description: Option<String>,
    /// The connector's specification, as JSON.
    pub spec: String,
}

/// Gives a job this pipeline instead of the one it had.
pub fn replace(tx: &mut Tx<'_>, job: JobId, stages: &[PipelineStage], now_ms: i64) -> Result<()> {
    let before = load(tx, job)?;
    if before == stages && checksums::are_whole(tx, &JOB_PIPELINES, "ownerid", job.into())? {
        return Ok(());
    }
    check(tx, stages)?;
    note_former(tx, job, &before, stages)?;
    tx.execute("DELETE FROM jobpipelines WHERE ownerid = $1", &[job.into()])?;
    let places = JOB_PIPELINES.places(JOB_PIPELINES.covered);
    let rows: Vec<_> = (0_i64..)
        .zip(stages)
        .map(|(ordinal, it)| {
            places.with_checksum(vec![
                job.into(),
                ordinal.into(),
                it.prerequisite.into(),
                it.kind.name().into(),
                it.connection.into(),
                (&it.description).into(),
                (&it.spec).into(),
            ])
        })
        .collect();
    tx.insert_rows(
        "INSERT INTO jobpipelines (ownerid, ordinal, prerequisite, kind, connectionid,
             description, spec, checksum)",
        &rows,
        "",
    )?;
    jobs::touch(tx, job, now_ms)?;
    jobs::reseed(tx, job)?;
    registrations::assess_job(tx, job, now_ms)
}

/// Notes the outputs that a job does not send to any more: what they have of its documents
/// is cleaned up as these are looked at, or leave.
fn note_former(
    tx: &mut Tx<'_>,
    job: JobId,
    before: &[PipelineStage],
    after: &[PipelineStage],
) -> Result<()> {
    let outputs = |stages: &[PipelineStage]| -> Vec<ConnectionId> {
        let ends = stages.iter().filter(|it| it.kind == StageKind::Output);
        ends.map(|it| it.connection).collect()
    };
    let after = outputs(after);
    for output in &after {
        tx.execute(
            "DELETE FROM former_outputs WHERE ownerid = $1 AND connectionid = $2",
            &[job.into(), (*output).into()],
        )?;
    }
    for output in outputs(before).into_iter().filter(|it| !after.contains(it)) {
        tx.execute(
            "INSERT INTO former_outputs (ownerid, connectionid) VALUES ($1, $2)
             ON CONFLICT (ownerid, connectionid) DO NOTHING",
            &[job.into(), output.into()],
        )?;
    }
    Ok(())
}

/// The pipeline of a job, in the order of its stages.
pub fn load(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<PipelineStage>> {
    tx.query(
        "SELECT prerequisite, kind, connectionid, description, spec FROM jobpipelines
         WHERE ownerid = $1 ORDER BY ordinal LIMIT $2",
        &[job.into(), (STAGES_MAX as i64).into()],
        |row| {
            let kind = match row.get::<String>(1)?.as_str() {
                "transformation" => StageKind::Transformation,
                _ => StageKind::Output,
            };
            Ok(PipelineStage {
                prerequisite: row.get(0)?,
                kind,
                connection: row.get(2)?,
                description: row.get(3)?,
                spec: row.get(4)?,
            })
        },
    )
}

/// Refuses what is no tree from the repository to outputs.
fn check(tx: &mut Tx<'_>, stages: &[PipelineStage]) -> Result<()> {
    if stages.len() > STAGES_MAX {
        let number = stages.len();
        return Err(Error::Refused(format!(
            "a pipeline has at most {STAGES_MAX} stages, not {number}"
        )));
    }
    let mut heard = vec![false; stages.len()];
    for (ordinal, stage) in stages.iter().enumerate() {
        let refused = |reason: &str| {
            Err(Error::Refused(format!("stage {ordinal} of the pipeline cannot be used: {reason}")))
        };
        if let Some(before) = stage.prerequisite {
            let found = usize::try_from(before).ok().filter(|before| *before < ordinal);
            let Some(before) = found else {
                return refused("it hears a stage that does not come before it");
            };
            if stages[before].kind == StageKind::Output {
                return refused("it hears an output, which hands nothing on");
            }
            heard[before] = true;
        }
        let is_twice = |other: &PipelineStage| {
            other.kind == StageKind::Output && other.connection == stage.connection
        };
        if stage.kind == StageKind::Output && stages[..ordinal].iter().any(is_twice) {
            return refused("an output takes each document once, and this one is there already");
        }
        match connections::load(tx, stage.connection)? {
            Some((kind, _)) if kind == stage.kind.kind() => {}
            Some((kind, it)) => {
                let reason = format!("{} is a connection of kind {}", it.name, kind.name());
                return refused(&reason);
            }
            None => return refused("its connection is not there"),
        }
    }
    let is_idle =
        |(stage, heard): (&PipelineStage, &bool)| stage.kind == StageKind::Transformation && !heard;
    match stages.iter().zip(&heard).position(is_idle) {
        Some(ordinal) => Err(Error::Refused(format!(
            "stage {ordinal} of the pipeline leads to no output: nothing hears it"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::tables::connections::Connection;
    use crate::tables::jobs::Job;
    use crate::testing::both_databases;

    const JOB: JobId = JobId(1);

    fn make(db: &Db) -> Result<()> {
        db.write(|tx| {
            for (id, kind) in [
                (1, ConnectionKind::Repository),
                (2, ConnectionKind::Transformation),
                (3, ConnectionKind::Output),
            ]
            .into_iter()
            .chain([(4, ConnectionKind::Output), (5, ConnectionKind::Output)])
            {
                let name = if id > 3 { format!("output {id}") } else { kind.name().to_owned() };
                let it = Connection::new(ConnectionId(id), &name, "web");
                connections::save(tx, kind, &it, 0)?;
            }
            jobs::save(tx, &Job::new(JOB, "docs", ConnectionId(1)), 0)
        })
    }

    fn change(prerequisite: Option<i64>) -> PipelineStage {
        let (kind, connection) = (StageKind::Transformation, ConnectionId(2));
        PipelineStage { prerequisite, kind, connection, description: None, spec: "{}".into() }
    }

    fn take(prerequisite: Option<i64>) -> PipelineStage {
        PipelineStage {
            kind: StageKind::Output,
            connection: ConnectionId(3),
            ..change(prerequisite)
        }
    }

    #[test]
    fn a_tree_is_kept_in_order_and_a_change_looks_at_everything_again() {
        both_databases(|db| {
            make(db)?;
            let replace = |stages: Vec<PipelineStage>| {
                db.write(move |tx| {
                    tx.execute("UPDATE job_states SET seedingversion = 'so far'", &[])?;
                    super::replace(tx, JOB, &stages, 5)?;
                    let sql = "SELECT seedingversion FROM job_states WHERE jobid = 1";
                    let seeding = tx.query_one(sql, &[], |row| row.get::<Option<String>>(0))?;
                    Ok((jobs::version(tx, JOB)?, seeding.is_some()))
                })
            };
            let to =
                |id, stage: PipelineStage| PipelineStage { connection: ConnectionId(id), ..stage };
            let described =
                PipelineStage { description: Some("third".into()), ..to(5, take(None)) };
            let second = to(4, take(Some(0)));
            let tree = vec![change(None), change(Some(0)), take(Some(1)), second, described];
            assert_eq!(replace(tree.clone())?, (Some(2), false));
            assert_eq!(db.read(|tx| load(tx, JOB))?, tree);
            assert_eq!(replace(tree)?, (Some(2), true), "it is the same");
            assert_eq!(replace(vec![take(None)])?, (Some(3), false));
            assert_eq!(db.read(|tx| load(tx, JOB))?, [take(None)]);
            let shown = db.read(|tx| {
                tx.query_one("SELECT outputname, outputspec FROM jobs", &[], |row| {
                    Ok((row.get::<String>(0)?, row.get::<String>(1)?))
                })
            })?;
            assert_eq!(shown, ("output".to_owned(), "{}".to_owned()));
            Ok(())
        });
    }

    #[test]
    fn what_is_no_tree_is_refused_with_its_stage() {
        both_databases(|db| {
            make(db)?;
            let refused = |stages: Vec<PipelineStage>| {
                let outcome = db.write(move |tx| super::replace(tx, JOB, &stages, 5));
                outcome.expect_err("it is no pipeline").to_string()
            };
            assert!(refused(vec![take(Some(0))]).contains("stage 0"));
            assert!(refused(vec![take(Some(-1))]).contains("does not come before"));
            assert!(refused(vec![take(None), take(Some(0))]).contains("hears an output"));
            assert!(refused(vec![take(None), take(None)]).contains("there already"));
            assert!(refused(vec![change(None)]).contains("leads to no output"));
            let wrong = PipelineStage { connection: ConnectionId(1), ..take(None) };
            assert!(refused(vec![wrong]).contains("kind repository"));
            let gone = PipelineStage { connection: ConnectionId(9), ..take(None) };
            assert!(refused(vec![gone]).contains("not there"));
            assert!(refused(vec![take(None); STAGES_MAX + 1]).contains("at most"));
            assert_eq!(db.read(|tx| load(tx, JOB))?, [], "nothing was written");
            Ok(())
        });
    }
}
