//! What verbs are answered from: the rows, the indexes, and what this process is doing.
//!
//! A process that holds a data directory listens with it; a process that finds nobody
//! listening answers itself. Invariant: nothing here writes; only a process that may write
//! makes changes.

use super::access::Asker;
use super::changes::ChangeContext;
use super::crawl::hosted_runs::HostedCrawls;
use super::{Run, find, wire};
use crate::place::link_index::PlaceLinkIndex;
use crate::place::search_index::PlaceSearchIndex;
use crate::refusal::{OrRefuse, refuse};
use crate::text::shown;
use serde_json::Value as Json;
use std::sync::Arc;
use store::Db;
use store::datadir::Layout;
use store::dialect::Dialect;
use store::objects::{Location, Objects};
use store::socket::{self, SocketListener, SocketRequest};
use store::tables::jobs::{self, Job};
use store::tables::overview::RunState;

/// Jobs that are named when one has to be chosen.
const JOBS_NAMED_MAX: u32 = 20;

/// What verbs are answered from.
#[derive(Clone)]
pub struct VerbContext {
    pub db: Db,
    pub link_index: Arc<PlaceLinkIndex>,
    pub search_index: Arc<PlaceSearchIndex>,
    /// What the process that holds the directory is doing; `None` when nobody holds it.
    pub doing: Option<String>,
    /// Crawls that were handed over to this process, if it works on all jobs.
    pub hosted: Option<Arc<HostedCrawls>>,
}

impl VerbContext {
    /// From rows that this process has opened beside whoever holds them.
    pub fn of_rows(db: Db) -> VerbContext {
        VerbContext::of_database(db, None)
    }

    /// From a database, and its objects if they are known.
    pub fn of_database(db: Db, objects: Option<Objects>) -> VerbContext {
        let link_index = Arc::new(PlaceLinkIndex::new(&db, None));
        let search_index = PlaceSearchIndex::new(&db, objects, None, link_index.clone());
        VerbContext::new(db, link_index, Arc::new(search_index))
    }

    /// From a directory that cannot be written: mounted read-only, or of another user.
    pub fn of_read_only(db: Db, layout: &Layout) -> anyhow::Result<VerbContext> {
        let objects = Objects::open(&Location::Directory(layout.objects()))?;
        let link_index = Arc::new(PlaceLinkIndex::read_only(&db, layout));
        let search_index = PlaceSearchIndex::new(&db, Some(objects), None, link_index.clone());
        Ok(VerbContext::new(db, link_index, Arc::new(search_index)))
    }

    /// From rows and indexes, in a process that holds nothing.
    pub fn new(
        db: Db,
        link_index: Arc<PlaceLinkIndex>,
        search_index: Arc<PlaceSearchIndex>,
    ) -> VerbContext {
        VerbContext { db, link_index, search_index, doing: None, hosted: None }
    }

    /// Answers through the socket of a directory that this process holds, for as long
    /// as the result lives; and makes changes, which nobody else can meanwhile. A process
    /// that works on all jobs takes crawls over, and is woken by every change.
    pub fn listen(self, layout: &Layout) -> store::Result<SocketListener> {
        let changes = ChangeContext { db: self.db.clone(), hosted: self.hosted.clone() };
        let answer = move |question: SocketRequest| {
            let answer = self.answer_or_change(&changes, question);
            answer.map_err(|error| format!("{error:#}"))
        };
        socket::listen(layout, Arc::new(answer))
    }

    /// Answers a question of another process on this machine, or makes the change.
    fn answer_or_change(
        &self,
        changes: &ChangeContext,
        asked: SocketRequest,
    ) -> anyhow::Result<Json> {
        let verb = find(&asked.verb).ok_or_else(|| wire::unknown_verb(&asked.verb))?;
        match verb.run {
            Run::Answer(answer) => answer(self, Asker::CommandLine, asked.args),
            Run::CarryOut(carry_out) => {
                let made = carry_out(changes, Asker::CommandLine, asked.args);
                if let Some(hosted) = &self.hosted {
                    hosted.nudge();
                }
                made
            }
        }
    }

    /// Whether surely nobody works on the data, whatever leases say: a lease outlives a
    /// process that was killed, the lock on a directory does not.
    pub fn is_unattended(&self) -> bool {
        self.db.dialect() == Dialect::Sqlite && self.doing.is_none()
    }

    /// Where a job stands, as far as this process can tell.
    pub fn standing(&self, found: RunState) -> RunState {
        match found {
            RunState::Running if self.is_unattended() => RunState::Interrupted,
            found => found,
        }
    }

    /// The job of a name, or the only one there is.
    pub fn job(&self, name: Option<String>) -> anyhow::Result<Job> {
        if let Some(name) = name {
            let unknown =
                format!("there is no job named {}; `driftline status` lists them", shown(&name));
            return Ok(self.db.read(move |tx| jobs::find(tx, &name))?.or_refuse(|| unknown)?);
        }
        let mut jobs = self.db.read(|tx| jobs::list(tx, "", JOBS_NAMED_MAX))?;
        match jobs.len() {
            0 => refuse!("there is no job yet; start a crawl: driftline crawl URL"),
            1 => Ok(jobs.remove(0)),
            _ => {
                let names: Vec<String> = jobs.iter().map(|job| shown(&job.name)).collect();
                refuse!("there is more than one job; choose one with --job: {}", names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::tables::settings;

    #[test]
    fn a_holder_says_what_it_is_doing_and_refuses_what_it_does_not_know() {
        store::testing::on_sqlite(|db| {
            db.write(|tx| settings::freeze(tx, 4))?;
            let doing = Some("gc".to_owned());
            let context = VerbContext { doing, ..VerbContext::of_rows(db.clone()) };
            let changes = ChangeContext { db: db.clone(), hosted: None };
            let ask = |verb: &str| {
                let asked = SocketRequest { verb: verb.into(), args: Json::Null };
                context.answer_or_change(&changes, asked)
            };
            let status = ask("status").unwrap();
            assert_eq!(status["holder"]["doing"], "gc");
            assert_eq!(status["overview"]["parts"], 4);
            let refused = ask("dance").unwrap_err().to_string();
            assert!(refused.contains("\"dance\"") && refused.contains("try again"), "{refused}");
            Ok(())
        });
    }
}
