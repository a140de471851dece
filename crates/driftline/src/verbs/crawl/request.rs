//! What a crawl asks of its job: the same whether this process crawls or the one that holds
//! the directory does.
//!
//! Invariant: there is one place that says what flags make of a job.

use super::flags::CrawlFlags;
use super::mirror::MirrorTarget;
use crate::text::shown;
use ::crawl::definitions::WebSpec;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use store::Db;
use store::tables::jobs::{self, Job};

/// A crawl as it was asked for.
#[derive(Clone, Serialize, Deserialize)]
pub struct CrawlRequest {
    pub name: String,
    /// Where it begins; none leaves the job's seeds as they are.
    pub seeds: Vec<String>,
    pub flags: CrawlFlags,
    /// Whether what looked endless is followed again.
    pub reopen: bool,
    /// Where the job keeps a browsable copy from now on.
    #[serde(default)]
    pub mirror: Option<MirrorTarget>,
}

impl CrawlRequest {
    /// The job, if it is there already.
    pub fn known(&self, db: &Db) -> anyhow::Result<Option<Job>> {
        let name = self.name.clone();
        Ok(db.read(move |tx| jobs::find(tx, &name))?)
    }

    /// What a job that is not there yet would be told. Says what is wrong with the flags
    /// before anything is made.
    pub fn new_spec(&self) -> anyhow::Result<WebSpec> {
        let spec = self.flags.apply(WebSpec::default(), &self.seeds)?;
        Ok(if self.seeds.is_empty() { spec } else { spec.check()? })
    }

    /// What the job is told by this request.
    pub fn spec(&self, known: Option<&Job>) -> anyhow::Result<WebSpec> {
        match known {
            Some(job) => {
                let before = WebSpec::from_json(&job.docspec)
                    .with_context(|| format!("job {} cannot be used", shown(&self.name)))?;
                Ok(self.flags.apply(before, &self.seeds)?.check()?)
            }
            None if self.seeds.is_empty() => anyhow::bail!(
                "there is no job {} yet; give the URL where its crawl begins",
                shown(&self.name)
            ),
            None => self.new_spec(),
        }
    }
}
