//! Carries decisions of one part to one output.
//!
//! Invariants: decisions arrive in the order they were made; what came of them, and what
//! the history says of it, is written in one transaction under the part's lease; a
//! removal is never given up, an addition when the job's patience ends.

use super::content::Contents;
use super::{Listener, Load, Means};
use crate::connectors;
use crate::output::{Away, Content, Deed, Outcome, Output, Wants};
use page::ids::DocHash;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use store::ids::{ConnectionId, JobId};
use store::patience::Patience;
use store::tables::documents::{self, Document};
use store::tables::history::{self, Activity};
use store::tables::ingests::{self, Decision, Fate, Ingest, NEVER_MS, Pending};
use store::tables::{leases, outlets};
use store::{Error, Result, clock};

/// Decisions carried at once.
pub(super) const BATCH: u32 = 200;
/// Bytes of documents carried at once, beyond one document.
const BYTES_MAX: usize = 32 << 20;

/// What came of a load.
pub(super) enum Carried {
    /// So many decisions have met their fate.
    Delivered(usize),
    /// The part is somebody else's.
    Lost,
    /// The output, or the store, cannot be reached: why.
    Away(String),
}

/// One who carries.
pub(super) struct Carrier {
    means: Means,
    listener: Arc<dyn Listener>,
    contents: Contents,
}

/// A decision on its way.
struct Item {
    row: Ingest,
    pending: Pending,
    document: Option<Document>,
}

/// A decision and what came of it.
struct Met {
    item: Item,
    outcome: Outcome,
    bytes: i64,
}

impl Carrier {
    pub fn new(means: Means, listener: Arc<dyn Listener>) -> Carrier {
        Carrier { means, listener, contents: Contents::new() }
    }

    /// Carries what is due.
    pub fn carry(&mut self, load: &mut Load) -> Carried {
        match self.try_to_carry(load) {
            Ok(count) => Carried::Delivered(count),
            Err(Trouble::Store(Error::LeaseLost { .. })) => Carried::Lost,
            Err(Trouble::Store(error)) => Carried::Away(error.to_string()),
            Err(Trouble::Output(Away(why))) => Carried::Away(why),
        }
    }

    fn try_to_carry(&mut self, load: &mut Load) -> std::result::Result<usize, Trouble> {
        let mut output = match load.output.take() {
            Some(output) => output,
            None => connectors::open(&load.opening.classname, &load.opening.config)
                .map_err(|why| Trouble::Output(Away(why)))?,
        };
        let mut items = self.items(load)?;
        let count = items.len();
        while !items.is_empty() {
            let began_ms = clock::now_ms();
            let met = self.hand_over(&mut *output, load, &mut items)?;
            self.record(load, met, began_ms)?;
        }
        load.output = Some(output);
        Ok(count)
    }

    /// What is due, with what is known of the documents.
    fn items(&self, load: &Load) -> Result<VecDeque<Item>> {
        let (due, now_ms) = (load.due, clock::now_ms());
        self.means.db.read(move |tx| {
            let rows = ingests::undelivered(tx, due, now_ms, BATCH)?;
            let mut keys: HashMap<ConnectionId, Vec<DocHash>> = HashMap::new();
            for row in &rows {
                keys.entry(row.connection).or_default().push(row.dochash);
            }
            let mut known: HashMap<(ConnectionId, DocHash), Document> = HashMap::new();
            for (connection, keys) in keys {
                let found = documents::load(tx, due.part, connection, &keys)?;
                known.extend(found.into_iter().map(|it| ((connection, it.dochash), it)));
            }
            let with = |row: Ingest| {
                let document = known.remove(&(row.connection, row.dochash));
                let pending = row.pending.clone()?;
                Some(Item { row, pending, document })
            };
            Ok(rows.into_iter().filter_map(with).collect())
        })
    }

    /// Hands as many over as one batch takes, all of one job.
    fn hand_over(
        &mut self,
        output: &mut dyn Output,
        load: &Load,
        items: &mut VecDeque<Item>,
    ) -> std::result::Result<Vec<Met>, Trouble> {
        let job = items.front().map_or(JobId(0), |item| item.pending.job);
        let (mut deeds, mut taken, mut met) = (Vec::new(), Vec::new(), Vec::new());
        let mut bytes_held = 0;
        while bytes_held < BYTES_MAX
            && let Some(item) = items.pop_front_if(|it| it.pending.job == job)
        {
            match self.deed(&item, load, output.wants())? {
                Ok(deed) => {
                    let bytes = size_of(&deed);
                    bytes_held += bytes;
                    deeds.push(deed);
                    taken.push((item, i64::try_from(bytes).unwrap_or(i64::MAX)));
                }
                Err(detail) => {
                    let outcome = Outcome::Trouble { code: "NOCONTENT", detail };
                    met.push(Met { item, outcome, bytes: 0 });
                }
            }
        }
        let connection = load.due.output;
        let spec = self.means.db.read(move |tx| outlets::spec_of(tx, job, connection))?;
        let outcomes = output.take(spec.as_deref().unwrap_or("{}"), &deeds);
        let outcomes = outcomes.map_err(Trouble::Output)?;
        if outcomes.len() != taken.len() {
            let why = "it did not answer to everything".to_owned();
            return Err(Trouble::Output(Away(why)));
        }
        let with = |((item, bytes), outcome)| Met { item, outcome, bytes };
        met.extend(taken.into_iter().zip(outcomes).map(with));
        Ok(met)
    }

    /// What is to be done, or why the document is not to be had.
    fn deed(
        &mut self,
        item: &Item,
        load: &Load,
        wants: Wants,
    ) -> Result<std::result::Result<Deed, String>> {
        let uri = item.row.uri.clone().unwrap_or_default();
        let stale = item.row.stale_uris.iter().flat_map(|it| it.lines());
        let stale = stale.map(str::to_owned).collect();
        if item.pending.decision == Decision::Remove {
            return Ok(Ok(Deed { uri, stale, content: None }));
        }
        let document = item.document.as_ref().filter(|it| it.removed_ms.is_none());
        let content = document
            .map(|document| self.contents.of(&self.means, (load.due.part, document), wants));
        match content.transpose() {
            Ok(Some(Some(content))) => {
                let content = Content { authority: item.row.authority.clone(), ..content };
                Ok(Ok(Deed { uri, stale, content: Some(content) }))
            }
            Ok(_) => Ok(Err("what it says is not in the store".to_owned())),
            Err(error) if error.passes() => Err(error),
            // Others need not wait for one that is damaged.
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Writes what came of decisions.
    fn record(&self, load: &Load, met: Vec<Met>, began_ms: i64) -> Result<()> {
        let now_ms = clock::now_ms();
        let mut patiences: HashMap<JobId, Patience> = HashMap::new();
        let (mut fates, mut activities, mut given_up) = (Vec::new(), Vec::new(), Vec::new());
        for it in &met {
            let job = it.item.pending.job;
            let patience = *patiences.entry(job).or_insert_with(|| self.listener.patience(job));
            let fate = fate(&it.item.pending, &it.outcome, patience, now_ms);
            if let Fate::Again { check_ms: NEVER_MS, error, .. } = &fate {
                let uri = it.item.row.uri.as_deref().unwrap_or_default();
                let name = &load.opening.name;
                given_up.push((job, format!("output {name} could not take {uri}: {error}")));
            }
            fates.push(ingests::Met { id: it.item.row.id, pending: it.item.pending.clone(), fate });
            activities.push(self.activity(load, it, (began_ms, now_ms)));
        }
        let (lease, due) = (load.lease.clone(), load.due);
        self.means.db.write(move |tx| {
            leases::fence(tx, &lease)?;
            ingests::delivered(tx, due, &fates, now_ms)?;
            history::append(tx, due.part, &activities)
        })?;
        for (job, why) in given_up {
            self.listener.gave_up(job, &why);
        }
        Ok(())
    }

    fn activity(&self, load: &Load, met: &Met, (start_ms, end_ms): (i64, i64)) -> Activity {
        let pending = &met.item.pending;
        let deed = match pending.decision {
            Decision::Remove => "document deletion",
            Decision::Add | Decision::Update => "document ingest",
        };
        let (result, description) = match &met.outcome {
            Outcome::Taken => ("OK", None),
            Outcome::Rejected { code, detail } | Outcome::Trouble { code, detail } => {
                (*code, Some(detail.clone()))
            }
        };
        let uri = met.item.row.uri.clone();
        Activity {
            id: self.means.ids.next(),
            connection: met.item.row.connection,
            job: Some(pending.job),
            kind: format!("{deed} ({})", load.opening.name),
            entity: uri.unwrap_or_default(),
            bytes: Some(met.bytes),
            result: Some(result.to_owned()),
            description,
            start_ms,
            end_ms,
        }
    }
}

/// What follows from an outcome for a decision.
pub(super) fn fate(pending: &Pending, outcome: &Outcome, patience: Patience, now_ms: i64) -> Fate {
    let error = match outcome {
        Outcome::Taken => return Fate::Taken,
        Outcome::Rejected { .. } => return Fate::Rejected,
        Outcome::Trouble { detail, .. } => detail.clone(),
    };
    let again = patience.again((pending.failcount, pending.failtime), now_ms);
    let is_given_up = again.is_over && pending.decision != Decision::Remove;
    let check_ms = if is_given_up { NEVER_MS } else { again.check_ms };
    let (failcount, failtime) = (Some(again.failcount), Some(again.failtime));
    Fate::Again { check_ms, failcount, failtime, error }
}

/// Bytes that a deed holds.
fn size_of(deed: &Deed) -> usize {
    let content = deed.content.as_ref();
    content.map_or(0, |it| it.facts.text.len() + it.bytes.as_ref().map_or(0, |it| it.len()))
}

/// What keeps a load from arriving.
enum Trouble {
    Store(Error),
    Output(Away),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Store(error)
    }
}
