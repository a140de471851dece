//! Carries decisions of one part to one output.
//!
//! Invariants: decisions arrive in the order they were made; what came of them, and what
//! the history says of it, is written in one transaction under the part's lease; a
//! removal is never given up, an addition when the job's patience ends.

use super::content::Contents;
use super::handover::{DecisionResult, Handover, HandoverOutcome, Tools};
use super::{DeliveryContext, Listener, Load};
use crate::connectors;
use crate::output::{Operation, Outcome, Output, Unavailable};
use page::ids::DocHash;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use store::ids::{ConnectionId, JobId};
use store::panics::{FaultPoint, caught};
use store::patience::Patience;
use store::tables::claims::Homes;
use store::tables::documents::{self, Document};
use store::tables::history::{self, Activity};
use store::tables::ingests::{self, Decision, Fate, Ingest, NEVER_MS, PendingDecision};
use store::tables::leases;
use store::{Error, Result, clock};

/// Decisions carried at once.
pub(super) const BATCH: u32 = 200;
/// What the history says of a document that is not the owner of its URI.
const SHADOWED: &str = "the output keeps another document under this URI";

/// What came of a load.
pub(super) enum CarriedLoad {
    /// So many decisions have met their fate.
    Delivered(usize),
    /// The part is somebody else's.
    Lost,
    /// The output cannot be reached.
    Unavailable(Unavailable),
    /// The database or the object store cannot be reached.
    StoreUnavailable(Unavailable),
}

/// A thread that delivers the loads which the desk gives out.
pub(super) struct Carrier {
    context: DeliveryContext,
    listener: Arc<dyn Listener>,
    contents: Contents,
    homes: Option<Homes>,
}

/// A decision on its way.
pub(super) struct DeliveryItem {
    pub row: Ingest,
    pub pending: PendingDecision,
    pub document: Option<Document>,
}

impl DeliveryItem {
    /// URIs that the output may still have the document under.
    pub fn stale(&self) -> impl Iterator<Item = &str> {
        self.row.stale_uris.iter().flat_map(|it| it.lines())
    }

    /// All URIs that the decision concerns.
    pub fn uris(&self) -> impl Iterator<Item = &str> {
        self.row.uri.as_deref().into_iter().chain(self.stale())
    }
}

impl Carrier {
    pub fn new(context: DeliveryContext, listener: Arc<dyn Listener>) -> Carrier {
        Carrier { context, listener, contents: Contents::new(), homes: None }
    }

    /// Carries what is due.
    pub fn carry(&mut self, load: &mut Load) -> CarriedLoad {
        match self.try_to_carry(load) {
            Ok(count) => CarriedLoad::Delivered(count),
            Err(Trouble::Store(Error::LeaseLost { .. })) => CarriedLoad::Lost,
            Err(Trouble::Store(error)) => {
                CarriedLoad::StoreUnavailable(Unavailable::because(error.to_string()))
            }
            Err(Trouble::Output(unavailable)) => CarriedLoad::Unavailable(unavailable),
        }
    }

    fn try_to_carry(&mut self, load: &mut Load) -> std::result::Result<usize, Trouble> {
        let mut output = match load.output.take() {
            Some(output) => output,
            None => connectors::open(&load.opening.classname, &load.opening.config)
                .map_err(|why| Trouble::Output(Unavailable::because(why)))?,
        };
        let homes = match &self.homes {
            Some(homes) => homes.clone(),
            None => self.homes.insert(self.context.db.read(Homes::load)?).clone(),
        };
        let mut items = self.items(load)?;
        self.context.faults.at(FaultPoint::Deliver, &load.opening.name);
        let count = items.len();
        while !items.is_empty() {
            let began_ms = clock::now_ms();
            let tools = Tools { context: &self.context, load, homes: &homes };
            let wants = output.wants();
            let mut handover = Handover::prepare(&tools, wants, &mut self.contents, &mut items)?;
            handover.claim(&tools)?;
            handover.send(&mut *output).map_err(Trouble::Output)?;
            handover.look_again(&tools)?;
            handover.send_owners_again(&tools)?;
            handover.drop_left(&tools)?;
            let is_later = |it: &DecisionResult| {
                matches!(it.handed, HandoverOutcome::Answered(Outcome::Later(_)))
            };
            let (later, results): (Vec<DecisionResult>, Vec<DecisionResult>) =
                handover.results().into_iter().partition(is_later);
            self.record(load, results, began_ms)?;
            // What there is no room for stays as it was, and so does the rest.
            if let Some(HandoverOutcome::Answered(Outcome::Later(unavailable))) =
                later.into_iter().next().map(|it| it.handed)
            {
                return Err(Trouble::Output(unavailable));
            }
        }
        load.output = Some(output);
        Ok(count)
    }

    /// What is due, with what is known of the documents.
    pub(super) fn items(&self, load: &Load) -> Result<VecDeque<DeliveryItem>> {
        let (due, now_ms) = (load.due, clock::now_ms());
        self.context.db.read(move |tx| {
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
                Some(DeliveryItem { row, pending, document })
            };
            Ok(rows.into_iter().filter_map(with).collect())
        })
    }

    /// Writes what came of decisions.
    pub(super) fn record(
        &self,
        load: &Load,
        results: Vec<DecisionResult>,
        began_ms: i64,
    ) -> Result<()> {
        let now_ms = clock::now_ms();
        let mut patiences: HashMap<JobId, Patience> = HashMap::new();
        let (mut fates, mut activities, mut given_up) = (Vec::new(), Vec::new(), Vec::new());
        for it in &results {
            let job = it.item.pending.job;
            let patience = *patiences.entry(job).or_insert_with(|| self.listener.patience(job));
            let fate = match &it.handed {
                HandoverOutcome::Answered(outcome) => {
                    fate(&it.item.pending, outcome, patience, now_ms)
                }
                HandoverOutcome::Shadowed => Fate::Shadowed,
                HandoverOutcome::Claimed => Fate::Claimed,
            };
            if let Fate::Again { check_ms: NEVER_MS, error, .. } = &fate {
                let uri = it.item.row.uri.as_deref().unwrap_or_default();
                let name = &load.opening.name;
                given_up.push((job, format!("output {name} could not take {uri}: {error}")));
            }
            fates.push(ingests::DeliveryResult {
                id: it.item.row.id,
                pending: it.item.pending.clone(),
                fate,
            });
            activities.extend(self.activity(load, it, began_ms, now_ms));
        }
        let (lease, due) = (load.lease.clone(), load.due);
        self.context.db.write(move |tx| {
            leases::fence(tx, &lease)?;
            ingests::delivered(tx, due, &fates, now_ms)?;
            history::append(tx, due.part, &activities)
        })?;
        for (job, why) in given_up {
            self.listener.gave_up(job, &why);
        }
        Ok(())
    }

    /// What the history says of a decision, if the output was concerned.
    fn activity(
        &self,
        load: &Load,
        decided: &DecisionResult,
        start_ms: i64,
        end_ms: i64,
    ) -> Option<Activity> {
        let pending = &decided.item.pending;
        let operation = match pending.decision {
            Decision::Remove => "document deletion",
            Decision::Add | Decision::Update => "document ingest",
        };
        let (result, description) = match &decided.handed {
            HandoverOutcome::Claimed => return None,
            HandoverOutcome::Shadowed => ("SHADOWED", Some(SHADOWED.to_owned())),
            HandoverOutcome::Answered(Outcome::Taken) => ("OK", None),
            HandoverOutcome::Answered(
                Outcome::Rejected { code, detail } | Outcome::Trouble { code, detail },
            ) => (*code, Some(detail.clone())),
            HandoverOutcome::Answered(Outcome::Later(unavailable)) => {
                ("LATER", Some(unavailable.why.clone()))
            }
        };
        let uri = decided.item.row.uri.clone();
        Some(Activity {
            id: self.context.claimant.ids.next(),
            connection: decided.item.row.connection,
            job: Some(pending.job),
            kind: format!("{operation} ({})", load.opening.name),
            entity: uri.unwrap_or_default(),
            bytes: Some(decided.bytes),
            result: Some(result.to_owned()),
            description,
            start_ms,
            end_ms,
        })
    }
}

/// Hands operations to an output. If its connector panics they are handed over one by one, so that
/// only the document that it panics on is to blame.
pub(super) fn apply(
    output: &mut dyn Output,
    spec: &str,
    operations: &[Operation],
) -> std::result::Result<Vec<Outcome>, Unavailable> {
    if let Ok(outcomes) = caught(|| output.apply(spec, operations)) {
        return outcomes;
    }
    let mut outcomes = Vec::with_capacity(operations.len());
    for operation in operations {
        match caught(|| output.apply(spec, std::slice::from_ref(operation))) {
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
pub(super) fn fate(
    pending: &PendingDecision,
    outcome: &Outcome,
    patience: Patience,
    now_ms: i64,
) -> Fate {
    let error = match outcome {
        Outcome::Taken => return Fate::Taken,
        Outcome::Rejected { .. } => return Fate::Rejected,
        Outcome::Trouble { detail, .. } => detail.clone(),
        Outcome::Later(unavailable) => unavailable.why.clone(),
    };
    let again = patience.again(pending.failcount, pending.failtime, now_ms);
    let is_given_up = again.is_over && pending.decision != Decision::Remove;
    let check_ms = if is_given_up { NEVER_MS } else { again.check_ms };
    let (failcount, failtime) = (Some(again.failcount), Some(again.failtime));
    Fate::Again { check_ms, failcount, failtime, error }
}

/// What keeps a load from arriving.
pub(super) enum Trouble {
    Store(Error),
    Output(Unavailable),
}
