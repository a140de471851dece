//! Jobs made and changed, through the document of all definitions.
//!
//! Invariant: an edit loads, changes and saves in one transaction, its new name included.

use super::super::changes::{self, Changed, Changes};
use super::super::shown;
use super::find;
use super::flags::Flags;
use crate::catalog;
use crate::definitions::{self, Definitions, JobForm};
use crate::refusal::{OrRefuse, require};
use anyhow::Context;
use store::catalog::Connector;
use store::tables::connections::Kind;
use store::tables::jobs::{self, Job};
use store::{Error, Tx, clock};

/// What an edit changes.
pub struct Edit {
    /// The job's new name.
    pub rename: Option<String>,
    /// Where its documents come from now.
    pub connection: Option<String>,
    /// What else was said.
    pub flags: Flags,
}

/// Makes a job.
pub fn create(
    changes: &Changes,
    name: String,
    connection: String,
    flags: Flags,
) -> anyhow::Result<Changed> {
    changes.define(false, move |stored| {
        require!(
            !stored.jobs.contains_key(&name),
            "there is a job named {} already; change it with: driftline job edit {0}",
            shown(&name)
        );
        let mut form = JobForm::new(&connection);
        flags.apply(connector_of(stored, &connection)?, &mut form)?;
        Ok(holding(&name, form))
    })
}

/// Changes one.
pub fn edit(changes: &Changes, name: String, edit: Edit) -> anyhow::Result<Changed> {
    let now_ms = clock::now_ms();
    let lines = changes.db.write(move |tx| {
        let mut job = find(tx, &name)?;
        let mut lines = Vec::new();
        if let Some(new) = edit.rename.as_ref().filter(|new| **new != job.name) {
            lines.push(format!("job {}: name -> {new}", job.name));
            job = renamed(tx, job, new, now_ms)?;
        }
        lines.extend(changes::define(tx, now_ms, &mut |stored| {
            let form = stored.jobs.get(&job.name);
            let mut form = form.context("it was there a moment ago")?.clone();
            if let Some(connection) = &edit.connection {
                form.connection.clone_from(connection);
            }
            edit.flags.apply(connector_of(stored, &form.connection)?, &mut form)?;
            Ok(holding(&job.name, form))
        })?);
        Ok(lines)
    })?;
    Ok(Changed::done(lines))
}

fn renamed(tx: &mut Tx<'_>, job: Job, name: &str, now_ms: i64) -> store::Result<Job> {
    definitions::check_job_name(name).map_err(|error| Error::Refused(error.to_string()))?;
    if jobs::find(tx, name)?.is_some() {
        let reason = format!("there is a job named {} already; choose another name", shown(name));
        return Err(Error::Refused(reason));
    }
    let job = Job { name: name.to_owned(), ..job };
    jobs::save(tx, &job, now_ms)?;
    Ok(job)
}

/// The connector of a repository connection.
fn connector_of(stored: &Definitions, connection: &str) -> anyhow::Result<&'static Connector> {
    let form = stored.connections.repository.get(connection).or_refuse(|| {
        format!(
            "there is no repository connection named {}; `driftline connection list --kind \
             repository` lists them, and this makes one: driftline connection create {0} \
             --connector web",
            shown(connection)
        )
    })?;
    catalog::named(Some(Kind::Repository), &form.connector)
}

/// A document with one job.
fn holding(name: &str, form: JobForm) -> Definitions {
    Definitions { jobs: [(name.to_owned(), form)].into(), ..Definitions::default() }
}
