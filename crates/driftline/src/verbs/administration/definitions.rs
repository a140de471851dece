//! All definitions as one document: written, and read back.
//!
//! Invariants: secrets do not leave through a server; a document is checked as a whole before
//! anything is written, and it is written in one transaction.

use super::ADMIN;
use crate::definitions::{self, Definitions};
use crate::verbs::access::{Area, Caller, Needs, TokenForbids};
use crate::verbs::audit_trail::AuditSubject;
use crate::verbs::changes::{ChangeContext, ChangeResult};
use crate::verbs::context::VerbContext;
use crate::verbs::{Change, Verb};
use serde::{Deserialize, Serialize};

/// Everything that is defined, as one document.
pub struct ExportDefinitions;

/// Makes what a document names what the document says.
pub struct ImportDefinitions;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// Secrets too, instead of ***.
    pub secrets: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    pub definitions: Definitions,
    pub dry_run: bool,
}

impl Verb for ExportDefinitions {
    const NAME: &'static str = "export";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = ExportRequest;
    type Response = Definitions;

    fn answer(context: &VerbContext, request: ExportRequest) -> anyhow::Result<Definitions> {
        let found = context.db.read(definitions::collect)?;
        match request.secrets {
            true => Ok(found),
            false => Ok(definitions::hidden(&found)?),
        }
    }

    fn check_caller(request: &ExportRequest, _: &Caller) -> anyhow::Result<()> {
        if request.secrets {
            let why = "secrets cannot be exported through a server; export them where the data is";
            return Err(TokenForbids(why.to_owned()).into());
        }
        Ok(())
    }
}

impl Change for ImportDefinitions {
    const NAME: &'static str = "import";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = ImportRequest;
    type Response = ChangeResult;

    fn carry_out(context: &ChangeContext, request: ImportRequest) -> anyhow::Result<ChangeResult> {
        let ImportRequest { definitions, dry_run } = request;
        context.define(dry_run, move |_| Ok(definitions.clone()))
    }

    fn subject(_: &ImportRequest) -> AuditSubject {
        AuditSubject::unnamed("import", "definitions")
    }

    fn outcome(changed: &ChangeResult) -> String {
        changed.text()
    }

    fn is_dry_run(request: &ImportRequest) -> bool {
        request.dry_run
    }

    /// A token that is not for jobs defines none.
    fn check_caller(request: &ImportRequest, caller: &Caller) -> anyhow::Result<()> {
        if !request.definitions.jobs.is_empty() && !caller.is_for(Area::Jobs.name()) {
            let why = "this token is not valid for jobs, and the document defines some";
            return Err(TokenForbids(why.to_owned()).into());
        }
        Ok(())
    }
}
