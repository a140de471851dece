//! The audit log: who changed what, and whether anybody has rewritten it.

use super::ADMIN;
use crate::refusal::OrRefuse;
use crate::verbs::Verb;
use crate::verbs::access::Needs;
use crate::verbs::context::VerbContext;
use crate::verbs::paging::{LIST_LIMIT_MAX, usual_limit};
use clap::Args as ClapArgs;
use data_encoding::BASE64URL_NOPAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::tables::audit::chain::{self, ChainCheck};
use store::tables::audit::{self, AuditEntry};

/// Who changed what, the newest first.
pub struct AuditEntries;

/// Whether anybody has rewritten the log.
pub struct CheckAudit;

#[derive(ClapArgs, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditRequest {
    /// Number of changes to list
    #[arg(long, value_name = "N", default_value_t = usual_limit(),
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST_LIMIT_MAX)))]
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = LIST_LIMIT_MAX))]
    pub limit: u32,
    /// Cursor of the next page, from an earlier answer
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct AuditResponse {
    /// Changes, the newest first.
    pub entries: Vec<AuditEntry>,
    /// To go on with; `null` at the end.
    pub cursor: Option<String>,
}

impl Verb for AuditEntries {
    const NAME: &'static str = "audit";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = AuditRequest;
    type Response = AuditResponse;

    fn answer(context: &VerbContext, request: AuditRequest) -> anyhow::Result<AuditResponse> {
        let (before_ms, before_id) = match request.cursor {
            None => (i64::MAX, i64::MAX),
            Some(cursor) => {
                parse(&cursor).or_refuse(|| "the cursor does not belong to this list")?
            }
        };
        let limit = request.limit.clamp(1, LIST_LIMIT_MAX);
        let entries = context.db.read(move |tx| audit::list(tx, before_ms, before_id, limit))?;
        let last = entries.last().filter(|_| entries.len() == limit as usize);
        let cursor =
            last.map(|it| BASE64URL_NOPAD.encode(format!("{}.{}", it.at_ms, it.id).as_bytes()));
        Ok(AuditResponse { entries, cursor })
    }
}

impl Verb for CheckAudit {
    const NAME: &'static str = "audit-check";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = ();
    type Response = ChainCheck;

    fn answer(context: &VerbContext, _: ()) -> anyhow::Result<ChainCheck> {
        Ok(chain::check(&context.db)?)
    }
}

fn parse(cursor: &str) -> Option<(i64, i64)> {
    let text = String::from_utf8(BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?).ok()?;
    let (at_ms, id) = text.split_once('.')?;
    Some((at_ms.parse().ok()?, id.parse().ok()?))
}
