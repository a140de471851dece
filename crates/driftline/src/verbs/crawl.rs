//! A crawl of a data directory that another process holds and works on: that process takes it
//! over.

pub mod audit;
pub mod flags;
pub mod handover;
pub mod hosted_runs;
pub mod mirror;
pub mod request;

use super::access::Needs;
use super::audit_trail::AuditSubject;
use super::changes::ChangeContext;
use super::context::VerbContext;
use super::registry::{RegisteredVerb, change, verb};
use super::{Change, Verb};
use crate::refusal::refusal;
use handover::{HandedProgress, HandoverAccepted, Ticket};
use hosted_runs::HostedCrawls;
use request::CrawlRequest;
use std::sync::Arc;

/// The verbs of this room.
pub const VERBS: &[RegisteredVerb] = &[change::<HandOverCrawl>(), verb::<CrawlProgress>()];

/// Defines a job as a crawl says, and begins its run.
pub struct HandOverCrawl;

/// How far a crawl is that was handed over.
pub struct CrawlProgress;

impl Change for HandOverCrawl {
    const NAME: &'static str = "crawl";
    const NEEDS: Option<Needs> = None;
    type Request = CrawlRequest;
    type Response = HandoverAccepted;

    fn carry_out(
        context: &ChangeContext,
        request: CrawlRequest,
    ) -> anyhow::Result<HandoverAccepted> {
        hosting(&context.hosted)?.take_over(&request)
    }

    fn subject(request: &CrawlRequest) -> AuditSubject {
        AuditSubject::of("crawl", "crawl", &request.name)
    }

    fn outcome(accepted: &HandoverAccepted) -> String {
        accepted.changes.join("\n")
    }
}

impl Verb for CrawlProgress {
    const NAME: &'static str = "crawl-progress";
    const NEEDS: Option<Needs> = None;
    type Request = Ticket;
    type Response = HandedProgress;

    fn answer(context: &VerbContext, ticket: Ticket) -> anyhow::Result<HandedProgress> {
        hosting(&context.hosted)?.progress(ticket)
    }
}

/// The crawls that this process takes over, if it works on all jobs.
fn hosting(hosted: &Option<Arc<HostedCrawls>>) -> anyhow::Result<&Arc<HostedCrawls>> {
    let id = std::process::id();
    let none = || refusal(format!("process {id} works on no jobs and accepts no crawls"));
    Ok(hosted.as_ref().ok_or_else(none)?)
}
