//! Carries decisions of one part to one output.
//!
//! Invariants: decisions arrive in the order they were made; what came of them, and what
//! the history says of it, is written in one transaction under the part's lease; a
//! removal is never given up, an addition when the job's patience ends.

use super::content::Contents;
use super::way::Way;
use super::{Listener, Load, Means};
use crate::connectors;
use crate::output::{Away, Content, Deed, Outcome, Output, Wants};
use crate::transformations::Refusal;
use page::ids::DocHash;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use store::ids::{ConnectionId, JobId};
use store::panics::{FaultPoint, caught};
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
    /// The output cannot be reached.
    Away(Away),
    /// The database or the object store cannot be reached.
    StoreAway(Away),
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

/// What one batch is made with.
struct Batch<'a> {
    load: &'a Load,
    way: Way,
    wants: Wants,
}

/// A deed, and why it is a removal if a transformation wants it to be.
struct Ordered {
    deed: Deed,
    refusal: Option<Refusal>,
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
            Err(Trouble::Store(error)) => Carried::StoreAway(Away::because(error.to_string())),
            Err(Trouble::Output(away)) => Carried::Away(away),
        }
    }

    fn try_to_carry(&mut self, load: &mut Load) -> std::result::Result<usize, Trouble> {
        let mut output = match load.output.take() {
            Some(output) => output,
            None => connectors::open(&load.opening.classname, &load.opening.config)
                .map_err(|why| Trouble::Output(Away::because(why)))?,
        };
        let mut items = self.items(load)?;
        self.means.faults.at(FaultPoint::Deliver, &load.opening.name);
        let count = items.len();
        while !items.is_empty() {
            let began_ms = clock::now_ms();
            let met = self.hand_over(&mut *output, load, &mut items)?;
            let is_later = |it: &Met| matches!(it.outcome, Outcome::Later(_));
            let (later, met): (Vec<Met>, Vec<Met>) = met.into_iter().partition(is_later);
            self.record(load, met, began_ms)?;
            // What there is no room for stays as it was, and so does the rest.
            if let Some(Outcome::Later(away)) = later.into_iter().next().map(|it| it.outcome) {
                return Err(Trouble::Output(away));
            }
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
        let connection = load.due.output;
        let (spec, steps) = self.means.db.read(move |tx| {
            let spec = outlets::spec_of(tx, job, connection)?;
            Ok((spec, outlets::steps_of(tx, job, connection)?))
        })?;
        let way = Way::open(&steps).map_err(|why| Trouble::Output(Away::because(why)))?;
        let wants = output.wants().max(way.wants());
        let batch = Batch { load, way, wants };
        let (mut deeds, mut taken, mut met) = (Vec::new(), Vec::new(), Vec::new());
        let mut bytes_held = 0;
        while bytes_held < BYTES_MAX
            && let Some(item) = items.pop_front_if(|it| it.pending.job == job)
        {
            match caught(|| self.order(&item, &batch))
                .unwrap_or_else(|error| Ok(Err(error.to_string())))?
            {
                Ok(Ordered { deed, refusal }) => {
                    let bytes = size_of(&deed);
                    bytes_held += bytes;
                    deeds.push(deed);
                    taken.push((item, refusal, i64::try_from(bytes).unwrap_or(i64::MAX)));
                }
                Err(detail) => {
                    let outcome = Outcome::Trouble { code: "NOCONTENT", detail };
                    met.push(Met { item, outcome, bytes: 0 });
                }
            }
        }
        let outcomes = match deeds.is_empty() {
            true => Vec::new(),
            false => {
                take(output, spec.as_deref().unwrap_or("{}"), &deeds).map_err(Trouble::Output)?
            }
        };
        if outcomes.len() != taken.len() {
            return Err(Trouble::Output(Away::because("it did not answer to everything")));
        }
        for ((item, refusal, bytes), outcome) in taken.into_iter().zip(outcomes) {
            let outcome = match (refusal, outcome) {
                (Some(Refusal { code, detail }), Outcome::Taken) => {
                    Outcome::Rejected { code, detail }
                }
                (_, outcome) => outcome,
            };
            met.push(Met { item, outcome, bytes });
        }
        Ok(met)
    }

    /// What is to be done, or why the document is not to be had.
    fn order(
        &mut self,
        item: &Item,
        batch: &Batch<'_>,
    ) -> Result<std::result::Result<Ordered, String>> {
        let uri = item.row.uri.clone().unwrap_or_default();
        let stale = item.row.stale_uris.iter().flat_map(|it| it.lines());
        let stale = stale.map(str::to_owned).collect();
        let mut deed = Deed { uri, stale, content: None };
        if item.pending.decision == Decision::Remove {
            return Ok(Ok(Ordered { deed, refusal: None }));
        }
        let document = item.document.as_ref().filter(|it| it.removed_ms.is_none());
        let part = batch.load.due.part;
        let content =
            document.map(|document| self.contents.of(&self.means, (part, document), batch.wants));
        match content.transpose() {
            Ok(Some(Some(content))) => {
                let mut content = Content { authority: item.row.authority.clone(), ..content };
                let refusal = batch.way.walk(&deed.uri, &mut content).err();
                // What is refused on the way must not be there in an older version.
                deed.content = refusal.is_none().then_some(content);
                Ok(Ok(Ordered { deed, refusal }))
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
            Outcome::Later(away) => ("LATER", Some(away.why.clone())),
        };
        let uri = met.item.row.uri.clone();
        Activity {
            id: self.means.claimant.ids.next(),
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

/// Hands deeds to an output. If its connector panics they are handed over one by one, so that
/// only the document that it panics on is to blame.
pub(super) fn take(
    output: &mut dyn Output,
    spec: &str,
    deeds: &[Deed],
) -> std::result::Result<Vec<Outcome>, Away> {
    if let Ok(outcomes) = caught(|| output.take(spec, deeds)) {
        return outcomes;
    }
    let mut outcomes = Vec::with_capacity(deeds.len());
    for deed in deeds {
        match caught(|| output.take(spec, std::slice::from_ref(deed))) {
            Ok(outcome) => outcomes.extend(outcome?),
            Err(error) => {
                let detail = error.to_string();
                outcomes.push(Outcome::Trouble { code: "INTERNALERROR", detail });
            }
        }
    }
    Ok(outcomes)
}

/// What follows from an outcome for a decision.
pub(super) fn fate(pending: &Pending, outcome: &Outcome, patience: Patience, now_ms: i64) -> Fate {
    let error = match outcome {
        Outcome::Taken => return Fate::Taken,
        Outcome::Rejected { .. } => return Fate::Rejected,
        Outcome::Trouble { detail, .. } => detail.clone(),
        Outcome::Later(away) => away.why.clone(),
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
