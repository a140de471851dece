//! The read-only verbs, answered: one dispatcher for every process that has the rows
//! open, so that a verb says the same whoever answers it.
//!
//! A process that holds a data directory listens with it; a verb that finds nobody
//! answers itself. Invariants: nothing here writes; an answer is bounded in size and
//! in the rows it looks at, so that a question never holds up a crawl.

use super::changes::Changes;
use super::crawl::handover::{self, Handover};
use super::crawl::hosted::HostedCrawls;
use super::linked::Linked;
use super::searched::Searched;
use super::{
    audit, authority, backup, connection, connector, doctor, domains, export, hosts, job, links,
    nodes, page, report, search, shown, status, token, top, urls, why,
};
use crate::refusal::{OrRefuse, refusal, refuse};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::sync::Arc;
use store::Db;
use store::datadir::Layout;
use store::dialect::Dialect;
use store::objects::{Location, Objects};
use store::socket::{self, Listening, Question};
use store::tables::jobs::{self, Job};
use store::tables::overview::Standing;

/// Jobs that are named when one has to be chosen.
const JOBS_NAMED_MAX: u32 = 20;

/// Who answers, and from what.
#[derive(Clone)]
pub struct Answers {
    /// The rows.
    pub db: Db,
    /// The link index.
    pub links: Arc<Linked>,
    /// The search index.
    pub search: Arc<Searched>,
    /// What the process that holds the directory is doing; `None` when nobody holds it.
    pub doing: Option<String>,
}

impl Answers {
    /// From rows that this process has opened beside whoever holds them.
    pub fn of_rows(db: Db) -> Answers {
        Answers::of_database(db, None)
    }

    /// From a database, and its objects if they are known.
    pub fn of_database(db: Db, objects: Option<Objects>) -> Answers {
        let links = Arc::new(Linked::new(&db, None));
        let search = Arc::new(Searched::new(&db, objects, None, links.clone()));
        Answers { links, search, db, doing: None }
    }

    /// From a directory that cannot be written: mounted read-only, or of another user.
    pub fn of_read_only(db: Db, layout: &Layout) -> anyhow::Result<Answers> {
        let objects = Objects::open(&Location::Directory(layout.objects()))?;
        let links = Arc::new(Linked::read_only(&db, layout));
        let search = Arc::new(Searched::new(&db, Some(objects), None, links.clone()));
        Ok(Answers { links, search, db, doing: None })
    }

    /// Answers a question; the error is a sentence for people.
    pub fn answer(&self, question: &Question) -> Result<Json, String> {
        self.dispatch(question).map_err(|error| format!("{error:#}"))
    }

    /// Answers through the socket of a directory that this process holds, for as long
    /// as the result lives; and carries out changes of definitions, which nobody else
    /// can meanwhile. A process that works on all jobs takes crawls over, and hears of every
    /// change.
    pub fn listen(
        self,
        layout: &Layout,
        hosted: Option<Arc<HostedCrawls>>,
    ) -> store::Result<Listening> {
        let changes = Changes::by_command_line(self.db.clone());
        let told = |error: anyhow::Error| format!("{error:#}");
        socket::listen(
            layout,
            Arc::new(move |question| {
                let answer = match (question.verb.as_str(), &hosted) {
                    (handover::PROGRESS, Some(hosted)) => {
                        return hosted_progress(hosted, &question.args).map_err(told);
                    }
                    (handover::CRAWL, Some(hosted)) => {
                        let taken = || take_over(hosted, &question.args);
                        changes.recorded(&question, taken).map_err(told)
                    }
                    (verb, _) if Changes::knows(verb) => changes.change(&question),
                    _ => return self.answer(&question),
                };
                if let Some(hosted) = &hosted {
                    hosted.nudge();
                }
                answer
            }),
        )
    }

    /// Whether surely nobody works on the data, whatever leases say: a lease outlives a
    /// process that was killed, the lock on a directory does not.
    pub fn is_unattended(&self) -> bool {
        self.db.dialect() == Dialect::Sqlite && self.doing.is_none()
    }

    /// Where a job stands, as far as this process can tell.
    pub fn standing(&self, found: Standing) -> Standing {
        match found {
            Standing::Running if self.is_unattended() => Standing::Interrupted,
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
            0 => refuse!("there is no job yet; crawl something: driftline crawl URL"),
            1 => Ok(jobs.remove(0)),
            _ => {
                let names: Vec<String> = jobs.iter().map(|job| shown(&job.name)).collect();
                refuse!("there is more than one job; name one with --job: {}", names.join(", "))
            }
        }
    }

    /// Answers a question.
    pub fn dispatch(&self, question: &Question) -> anyhow::Result<Json> {
        let args = &question.args;
        match question.verb.as_str() {
            "audit" => audit::answer(self, read(args)?),
            "authorities" => authority::answer(self, read(args)?),
            "connections" => connection::answer(self, read(args)?),
            backup::EXPORT => backup::answer(self, read(args)?),
            "connectors" => connector::answer(self, read(args)?),
            "export" => export::all::answer(self, read(args)?),
            "jobs" => job::answer(self, read(args)?),
            "status" => status::answer(self, read(args)?),
            "doctor" => doctor::answer(self, read(args)?),
            "domains" => domains::answer(self, read(args)?),
            "hosts" => hosts::answer(self, read(args)?),
            "links" => links::answer(self, read(args)?),
            "nodes" => nodes::answer(self, read(args)?),
            "page" => page::answer(self, read(args)?),
            "report" => report::answer(self, read(args)?),
            "search" => search::answer(self, read(args)?),
            "tokens" => token::answer(self, read(args)?),
            "top" => top::answer(self, read(args)?),
            "urls" => urls::answer(self, read(args)?),
            "why" => why::answer(self, read(args)?),
            verb => refuse!(
                "process {}, which holds the data directory, is of another version and does not \
                 know {verb:?}; try again when it has ended",
                std::process::id()
            ),
        }
    }
}

fn take_over(hosted: &Arc<HostedCrawls>, args: &Json) -> anyhow::Result<Json> {
    let Handover::Crawl(request) = read(args)?;
    Ok(serde_json::to_value(hosted.take_over(&request)?)?)
}

fn hosted_progress(hosted: &HostedCrawls, args: &Json) -> anyhow::Result<Json> {
    Ok(serde_json::to_value(hosted.progress(read(args)?)?)?)
}

/// A verb's arguments, as the asking process sent them.
pub(super) fn read<T: DeserializeOwned>(args: &Json) -> anyhow::Result<T> {
    serde_json::from_value(args.clone()).map_err(|error| {
        let why = "the process that holds the data directory is of another version";
        refusal(format!("{why}: {error}; try again when it has ended")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::tables::settings;

    #[test]
    fn a_holder_says_what_it_is_doing_and_refuses_what_it_does_not_know() {
        store::testing::on_sqlite(|db| {
            db.write(|tx| settings::freeze(tx, 4))?;
            let answers = Answers { doing: Some("gc".into()), ..Answers::of_rows(db.clone()) };
            let question = |verb: &str| Question { verb: verb.into(), args: Json::Null };
            let status = answers.answer(&question("status")).unwrap();
            assert_eq!(status["holder"]["doing"], "gc");
            assert_eq!(status["overview"]["parts"], 4);
            let refused = answers.answer(&question("dance")).unwrap_err();
            assert!(refused.contains("\"dance\"") && refused.contains("try again"), "{refused}");
            Ok(())
        });
    }
}
