//! The ways of documents to an output: the transformations between the stored facts and it.
//!
//! Several jobs may send a document to one output, each by a way of its own. They are tried
//! in the order that was decided; the first whose transformations do not refuse the
//! document sends it. Invariant: what comes out depends on what goes in and on the settings,
//! and on nothing else, so that a document may be sent again.

use crate::output::{Content, Wants};
use crate::transformations::{self, Refusal, Transformation};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use store::ids::{ConnectionId, JobId};
use store::tables::ingests::Ingest;
use store::tables::outlets::{self, TransformationStep};
use store::{Db, Result};

/// What a job tells an output that it tells nothing.
const NO_SPEC: &str = "{}";

/// The way of a job's documents to an output.
struct Way {
    spec: String,
    steps: Vec<Box<dyn Transformation>>,
}

impl Way {
    /// Opens the steps. The error is a sentence that names the one that cannot be used.
    fn open(spec: String, steps: &[TransformationStep]) -> std::result::Result<Way, String> {
        let opened = steps.iter().map(|it| {
            let opened = transformations::open(&it.classname, &it.config, &it.spec);
            opened.map_err(|why| format!("transformation {} cannot be used: {why}", it.name))
        });
        Ok(Way { spec, steps: opened.collect::<std::result::Result<_, _>>()? })
    }

    /// What it needs of documents.
    fn wants(&self) -> Wants {
        self.steps.iter().map(|it| it.wants()).max().unwrap_or(Wants::Name)
    }

    /// Changes what is given of a document, or says why it is not to be sent.
    fn walk(&self, uri: &str, content: &mut Content) -> std::result::Result<(), Refusal> {
        self.steps.iter().try_for_each(|it| it.change(uri, content))
    }
}

/// The ways to one output, opened as they are needed.
pub(super) struct Ways {
    output: ConnectionId,
    /// `None` is a job that does not send there any more.
    opened: BTreeMap<JobId, Option<Way>>,
    senders: HashMap<ConnectionId, Vec<JobId>>,
}

/// A document as it goes to an output.
pub(super) struct PreparedDocument {
    pub spec: String,
    pub content: Content,
}

impl Ways {
    pub fn to(output: ConnectionId) -> Ways {
        Ways { output, opened: BTreeMap::new(), senders: HashMap::new() }
    }

    /// The jobs whose ways a document may take, opened. The inner error is a sentence on a
    /// way that cannot be used just now.
    pub fn of(&mut self, db: &Db, row: &Ingest) -> Result<std::result::Result<Vec<JobId>, String>> {
        let mut jobs = row.way_jobs();
        if jobs.is_empty() {
            // It was decided before that was kept.
            let (connection, output) = (row.connection, self.output);
            let senders = match self.senders.entry(connection) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(room) => {
                    let found = db.read(move |tx| outlets::senders(tx, connection, output))?;
                    room.insert(found)
                }
            };
            jobs.extend(senders.iter());
        }
        for job in &jobs {
            if let Err(why) = self.open(db, *job)? {
                return Ok(Err(why));
            }
        }
        Ok(Ok(jobs))
    }

    fn open(&mut self, db: &Db, job: JobId) -> Result<std::result::Result<(), String>> {
        if self.opened.contains_key(&job) {
            return Ok(Ok(()));
        }
        let output = self.output;
        let (spec, steps) = db.read(move |tx| {
            Ok((outlets::spec_of(tx, job, output)?, outlets::steps_of(tx, job, output)?))
        })?;
        let way = match spec.map(|spec| Way::open(spec, &steps)).transpose() {
            Err(why) => return Ok(Err(why)),
            Ok(way) => way,
        };
        self.opened.insert(job, way);
        Ok(Ok(()))
    }

    fn opened(&self, jobs: &[JobId]) -> impl Iterator<Item = &Way> {
        jobs.iter().filter_map(|job| self.opened.get(job)?.as_ref())
    }

    /// What these ways need of a document.
    pub fn wants(&self, jobs: &[JobId]) -> Wants {
        self.opened(jobs).map(Way::wants).max().unwrap_or(Wants::Name)
    }

    /// What a job tells the output.
    pub fn spec(&self, jobs: &[JobId]) -> String {
        self.opened(jobs).next().map_or_else(|| NO_SPEC.to_owned(), |way| way.spec.clone())
    }

    /// What the first of these ways makes of a document that does not refuse it, or why the
    /// last of them does.
    pub fn walk(
        &self,
        jobs: &[JobId],
        uri: &str,
        content: Content,
    ) -> std::result::Result<PreparedDocument, Refusal> {
        let mut refusal = match jobs.is_empty() {
            // Nobody knows how it got there, so there is nothing to go by.
            true => return Ok(PreparedDocument { spec: NO_SPEC.to_owned(), content }),
            false => Refusal { code: "NOTSENT", detail: "no job sends it here any more".into() },
        };
        let (mut ways, mut content) = (self.opened(jobs).peekable(), content);
        while let Some(way) = ways.next() {
            let mut changed = match ways.peek() {
                Some(_) => content.clone(),
                None => std::mem::take(&mut content),
            };
            match way.walk(uri, &mut changed) {
                Ok(()) => return Ok(PreparedDocument { spec: way.spec.clone(), content: changed }),
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }
}
