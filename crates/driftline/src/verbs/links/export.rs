//! The link index written into a file, for a backup, by whoever has it open.

use crate::verbs::access::Needs;
use crate::verbs::context::VerbContext;
use crate::verbs::{Opens, Verb};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Writes the link index into a file; `false` if there is none.
pub struct ExportLinks;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportLinksRequest {
    pub path: PathBuf,
}

impl Verb for ExportLinks {
    const NAME: &'static str = "links-export";
    const NEEDS: Option<Needs> = None;
    const OPENS: Opens = Opens::LinkIndex;
    type Request = ExportLinksRequest;
    type Response = bool;

    fn answer(context: &VerbContext, request: ExportLinksRequest) -> anyhow::Result<bool> {
        Ok(context.link_index.export(&request.path)?)
    }
}
