//! Jobs made and changed, through the document of all definitions.
//!
//! Invariant: an edit loads, changes and saves in one transaction, its new name included.

use super::flags::JobFlags;
use super::{find, unknown};
use crate::catalog;
use crate::definitions::{self, Definitions, JobForm};
use crate::refusal::{OrRefuse, require};
use crate::text::shown;
use crate::verbs::Change;
use crate::verbs::access::{Area, Needs};
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::{self, ChangeContext, ChangeResult};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use store::catalog::Connector;
use store::tables::connections::ConnectionKind;
use store::tables::job_states::{self, Phase};
use store::tables::jobs::{self, Job};
use store::{Db, Error, Tx, clock};

/// Makes or edits a job, or has its seeding begin anew.
pub struct DefineJob;

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum DefineRequest {
    Create {
        name: String,
        /// The repository connection that its documents come from.
        connection: String,
        flags: JobFlags,
    },
    Edit {
        name: String,
        edit: JobEdit,
    },
    /// Forgets how far its seeding has come.
    ResetSeeding {
        name: String,
    },
}

/// What an edit changes.
#[derive(Clone, Serialize, Deserialize)]
pub struct JobEdit {
    /// The job's new name.
    pub rename: Option<String>,
    /// Where its documents come from now.
    pub connection: Option<String>,
    pub flags: JobFlags,
}

impl Change for DefineJob {
    const NAME: &'static str = "job-define";
    const NEEDS: Option<Needs> = Some(Needs::operator(Area::Jobs));
    type Request = DefineRequest;
    type Response = ChangeResult;

    fn carry_out(context: &ChangeContext, request: DefineRequest) -> anyhow::Result<ChangeResult> {
        match request {
            DefineRequest::Create { name, connection, flags } => {
                create(context, name, connection, flags)
            }
            DefineRequest::Edit { name, edit } => edited(context, name, edit),
            DefineRequest::ResetSeeding { name } => reset_seeding(&context.db, name),
        }
    }

    fn subject(request: &DefineRequest) -> AuditSubject {
        match request {
            DefineRequest::Create { name, .. } => AuditSubject::of("job", "create", name),
            DefineRequest::Edit { name, .. } => AuditSubject::of("job", "edit", name),
            DefineRequest::ResetSeeding { name } => AuditSubject::of("job", "reset_seeding", name),
        }
    }

    fn outcome(changed: &ChangeResult) -> String {
        changed.text()
    }
}

fn create(
    context: &ChangeContext,
    name: String,
    connection: String,
    flags: JobFlags,
) -> anyhow::Result<ChangeResult> {
    context.define(false, move |stored| {
        require!(
            !stored.jobs.contains_key(&name),
            "there is already a job named {}; change it with: driftline job edit {0}",
            shown(&name)
        );
        let mut form = JobForm::new(&connection);
        flags.apply(connector_of(stored, &connection)?, &mut form)?;
        Ok(holding(&name, form))
    })
}

fn edited(context: &ChangeContext, name: String, edit: JobEdit) -> anyhow::Result<ChangeResult> {
    let now_ms = clock::now_ms();
    let lines = context.db.write(move |tx| {
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
    Ok(ChangeResult::done(lines))
}

fn renamed(tx: &mut Tx<'_>, job: Job, name: &str, now_ms: i64) -> store::Result<Job> {
    definitions::check_job_name(name).map_err(|error| Error::Refused(error.to_string()))?;
    if jobs::find(tx, name)?.is_some() {
        let reason = format!("there is already a job named {}; choose another name", shown(name));
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
             repository` lists them; to create it: driftline connection create {0} --connector web",
            shown(connection)
        )
    })?;
    catalog::named(Some(ConnectionKind::Repository), &form.connector)
}

/// A document with one job.
fn holding(name: &str, form: JobForm) -> Definitions {
    Definitions { jobs: [(name.to_owned(), form)].into(), ..Definitions::default() }
}

/// Forgets how far a job's seeding has come.
pub fn reset_seeding(db: &Db, name: String) -> anyhow::Result<ChangeResult> {
    let line = db.write(move |tx| {
        let job = find(tx, &name)?;
        let state = job_states::lock(tx, job.id)?.ok_or_else(|| unknown(&name))?;
        let name = shown(&job.name);
        if state.phase == Phase::StartingUp || state.seeding {
            return Err(Error::Refused(format!(
                "the seeding of job {name} cannot be reset while the job is {}; try again in a \
                 moment",
                state.name()
            )));
        }
        jobs::reseed(tx, job.id)?;
        Ok(format!("job {name}: its seeding is reset, so the next run checks every document"))
    })?;
    Ok(ChangeResult::done(vec![line]))
}
