//! Hands a batch of decisions to an output, so that it keeps under each URI what the owner
//! of that URI is.
//!
//! The steps, each of which may be the last before a crash: look who claims the URIs; make
//! ready what is to be sent; write claims, and mark those of documents that leave; send what
//! the claims allow; look again; let whoever owns a URI by now be sent again; drop the
//! claims of those that have left. What came of the decisions is recorded after that, by
//! the carrier, so whatever is cut off is begun anew from the first step.
//! `docs/decisions/uri-ownership.md` says why this is enough.
//!
//! Invariants: only the owner of a URI is put under it, and nothing is removed from under a
//! URI that somebody claims; a decision is done only when, after all that was sent for it,
//! the owner of its URIs was this document, or nobody, or one that is sent again.

use super::carry::{DeliveryItem, Trouble, apply};
use super::content::Contents;
use super::ownership::{ClaimChanges, ClaimView, Uri, by_home, claimant};
use super::way::{PreparedDocument, Ways};
use super::{DeliveryContext, Load};
use crate::output::{Content, Operation, Outcome, Output, Unavailable, Wants};
use crate::transformations::Refusal;
use std::collections::{BTreeMap, VecDeque};
use store::ids::Part;
use store::panics::caught;
use store::tables::claims::{ClaimingDocument, Homes};
use store::tables::ingests::{self, Decision, Ownership, Resend};
use store::tables::leases;
use store::{Error, Result};

/// Bytes of documents handed over at once, beyond one document.
const BYTES_MAX: usize = 32 << 20;

/// A decision that is being carried out.
struct ActiveDecision {
    item: DeliveryItem,
    by: ClaimingDocument,
    /// The URI that the document is to be kept under.
    own: Option<Uri>,
    /// Whether it may be there already.
    may_be_there: bool,
    /// URIs that it leaves.
    vacated: Vec<Uri>,
    action: HandoverAction,
    /// What the job tells the output.
    spec: String,
    /// Bytes that are held for it.
    bytes: usize,
    outcome: Option<HandoverOutcome>,
}

/// What is to be done for a document.
enum HandoverAction {
    /// It is put under its URI, if it owns that.
    Put(Box<Content>),
    /// It is there already, and claims its URI.
    Claim,
    /// Another document owns its URI.
    Shadowed,
    /// It leaves its URIs; why, if its ways refuse it.
    Leave(Option<Refusal>),
    /// What it says is not to be had.
    Missing(String),
}

/// What came of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HandoverOutcome {
    /// The output has answered.
    Answered(Outcome),
    /// Another document owns the URI, and the output keeps that one.
    Shadowed,
    /// The output had it; now it is claimed.
    Claimed,
}

/// A decision with what came of it.
pub(super) struct DecisionResult {
    pub item: DeliveryItem,
    pub handed: HandoverOutcome,
    pub bytes: i64,
}

/// What a handover is made with.
pub(super) struct Tools<'a> {
    pub context: &'a DeliveryContext,
    pub load: &'a Load,
    pub homes: &'a Homes,
}

/// A batch on its way to an output.
pub(super) struct Handover {
    orders: Vec<ActiveDecision>,
    view: ClaimView,
}

impl Handover {
    /// Looks who claims the URIs of decisions, and makes as many ready as a batch takes.
    pub fn prepare(
        tools: &Tools<'_>,
        wants: Wants,
        contents: &mut Contents,
        items: &mut VecDeque<DeliveryItem>,
    ) -> std::result::Result<Handover, Trouble> {
        let uris: Vec<Uri> =
            items.iter().flat_map(|it| it.uris()).map(|uri| Uri::new(tools.homes, uri)).collect();
        let mut view = ClaimView::default();
        view.read(&tools.context.db, tools.load.due.output, by_home(uris.iter()))?;
        let (mut ways, mut orders) = (Ways::to(tools.load.due.output), Vec::new());
        let mut bytes_held = 0;
        while bytes_held < BYTES_MAX
            && let Some(item) = items.pop_front()
        {
            let mut order = ActiveDecision::new(tools, &view, item);
            let filled = caught(|| order.fill(tools, wants, &mut ways, contents));
            match filled {
                Ok(filled) => filled?,
                // Others need not wait for one on which this program fails.
                Err(error) => order.miss(error.to_string()),
            }
            bytes_held += order.bytes;
            orders.push(order);
        }
        Ok(Handover { orders, view })
    }

    /// Writes the claims of documents that have none, and marks those of documents that
    /// leave.
    pub fn claim(&mut self, tools: &Tools<'_>) -> Result<()> {
        let mut changes = ClaimChanges::default();
        for order in &self.orders {
            if let Some(uri) = &order.own {
                changes.add(&self.view, uri, order.by);
            }
            for uri in &order.vacated {
                changes.leave(&self.view, uri, order.by);
            }
        }
        changes.write(&tools.context.db, &tools.load.lease, tools.load.due.output, &mut self.view)
    }

    /// Tells the output what the claims allow.
    pub fn send(&mut self, output: &mut dyn Output) -> std::result::Result<(), Unavailable> {
        // What jobs tell the output differs; what is told alike goes together.
        let mut batches: Vec<(String, Vec<usize>, Vec<Operation>)> = Vec::new();
        for (place, order) in self.orders.iter_mut().enumerate() {
            let Some(operation) = order.operation(&self.view) else { continue };
            match batches.last_mut() {
                Some((spec, places, operations)) if *spec == order.spec => {
                    places.push(place);
                    operations.push(operation);
                }
                _ => batches.push((order.spec.clone(), vec![place], vec![operation])),
            }
        }
        for (spec, places, operations) in batches {
            let outcomes = apply(output, &spec, &operations)?;
            if outcomes.len() != operations.len() {
                return Err(Unavailable::because("it did not answer to everything"));
            }
            for (place, outcome) in places.into_iter().zip(outcomes) {
                self.orders[place].hear(outcome);
            }
        }
        Ok(())
    }

    /// Looks who owns the URIs now that the output has been told.
    pub fn look_again(&mut self, tools: &Tools<'_>) -> Result<()> {
        let mut changes = ClaimChanges::default();
        for order in &mut self.orders {
            // The output does not want it, so that it claims nothing.
            if matches!(order.outcome, Some(HandoverOutcome::Answered(Outcome::Rejected { .. })))
                && let Some(uri) = order.own.take()
            {
                changes.leave(&self.view, &uri, order.by);
                order.vacated.push(uri);
            }
        }
        let (db, output) = (&tools.context.db, tools.load.due.output);
        changes.write(db, &tools.load.lease, output, &mut self.view)?;
        let uris = self.orders.iter().flat_map(ActiveDecision::uris);
        let uris = by_home(uris);
        self.view.read(db, output, uris)
    }

    /// Lets the owners of URIs that are not the documents handed over be sent again.
    pub fn send_owners_again(&mut self, tools: &Tools<'_>) -> Result<()> {
        let ids = &tools.context.claimant.ids;
        let mut wanted: BTreeMap<Part, BTreeMap<ClaimingDocument, Vec<(Resend, Uri)>>> =
            BTreeMap::new();
        for order in &self.orders {
            for uri in order.uris() {
                let owner = self.view.owner(uri).filter(|it| *it != order.by);
                let Some(owner) = owner.filter(|it| !self.is_put(uri, *it)) else { continue };
                let resends = wanted.entry(owner.part).or_default().entry(owner).or_default();
                if !resends.iter().any(|(_, known)| known == uri) {
                    let (uri_hash, resent) = (uri.hash.clone(), ids.next());
                    resends.push((Resend { owner, uri_hash, resent }, uri.clone()));
                }
            }
        }
        let (db, output) = (&tools.context.db, tools.load.due.output);
        for (part, wanted) in wanted {
            let wanted: Vec<(Resend, Uri)> = wanted.into_values().flatten().collect();
            let resends: Vec<Resend> = wanted.iter().map(|it| it.0.clone()).collect();
            let lease = tools.load.lease.clone();
            let unwanted = db.write(move |tx| {
                leases::fence(tx, &lease)?;
                ingests::resend(tx, part, output, &resends)
            })?;
            let mut changes = ClaimChanges::default();
            for it in &unwanted {
                // Nobody stands behind the claim; whoever comes next sees that it is gone.
                for (_, uri) in wanted.iter().filter(|(resend, _)| resend == it) {
                    changes.remove(&self.view, uri, it.owner);
                    let concerned =
                        |order: &&mut ActiveDecision| order.uris().any(|own| own == uri);
                    self.orders.iter_mut().filter(concerned).for_each(|it| it.outcome = None);
                }
            }
            changes.write(db, &tools.load.lease, output, &mut self.view)?;
        }
        Ok(())
    }

    /// Drops the claims of documents that have left their URIs: nothing follows any more,
    /// even if the decision is carried out again.
    pub fn drop_left(&mut self, tools: &Tools<'_>) -> Result<()> {
        let mut changes = ClaimChanges::default();
        for order in self.orders.iter().filter(|it| it.is_done()) {
            for uri in &order.vacated {
                changes.remove(&self.view, uri, order.by);
            }
        }
        let output = tools.load.due.output;
        changes.write(&tools.context.db, &tools.load.lease, output, &mut self.view)
    }

    /// Whether a document was put under a URI just now, after all that was sent before.
    fn is_put(&self, uri: &Uri, by: ClaimingDocument) -> bool {
        let is_told =
            |it: &ActiveDecision| it.outcome == Some(HandoverOutcome::Answered(Outcome::Taken));
        self.orders.iter().any(|it| it.by == by && it.own.as_ref() == Some(uri) && is_told(it))
    }

    /// What came of the decisions. Those that nothing can be said of are left as they are,
    /// to be carried out again.
    pub fn results(self) -> Vec<DecisionResult> {
        let mut results = Vec::with_capacity(self.orders.len());
        for mut order in self.orders {
            let bytes = i64::try_from(order.bytes).unwrap_or(i64::MAX);
            let Some(handed) = order.outcome.take() else { continue };
            let is_kept = matches!(
                handed,
                HandoverOutcome::Answered(Outcome::Taken) | HandoverOutcome::Claimed
            );
            let handed = match &order.own {
                // Its claim was taken for one that nobody stands behind.
                Some(uri) if is_kept && !self.view.has(uri, order.by) => continue,
                Some(uri) if is_kept && self.view.owner(uri) != Some(order.by) => {
                    HandoverOutcome::Shadowed
                }
                _ => handed,
            };
            results.push(DecisionResult { item: order.item, handed, bytes });
        }
        results
    }
}

impl ActiveDecision {
    /// What is to be done, but for what a document says.
    fn new(tools: &Tools<'_>, view: &ClaimView, item: DeliveryItem) -> ActiveDecision {
        let uri = |text: &str| Uri::new(tools.homes, text);
        let row = &item.row;
        let by = claimant(row, tools.load.due.part);
        let mut own = row.uri.as_deref().map(uri);
        let stale = item.stale().map(uri).filter(|it| own.as_ref() != Some(it));
        let mut vacated: Vec<Uri> = Vec::new();
        for uri in stale {
            if !vacated.contains(&uri) {
                vacated.push(uri);
            }
        }
        // What was sent before there were claims has left no trace.
        let is_older = matches!(row.ownership, None | Some(Ownership::Unclaimed))
            && (row.delivered_seq.is_some() || row.ways.is_none());
        let action = match item.pending.decision {
            Decision::Remove => {
                vacated.extend(own.take());
                HandoverAction::Leave(None)
            }
            Decision::Add | Decision::Update => {
                let owner = own.as_ref().and_then(|uri| view.owner(uri));
                let is_claimed = own.as_ref().is_some_and(|uri| view.has(uri, by));
                let is_contested = own.as_ref().is_some_and(|uri| view.is_contested(uri, by));
                match row.ownership {
                    _ if is_claimed && owner != Some(by) => HandoverAction::Shadowed,
                    Some(Ownership::Unclaimed) if !is_contested => HandoverAction::Claim,
                    _ => HandoverAction::Put(Box::default()),
                }
            }
        };
        // Whatever was sent since was claimed before.
        let may_have = |uri: &Uri| is_older || view.is_known(uri, by);
        vacated.retain(may_have);
        ActiveDecision {
            may_be_there: own.as_ref().is_some_and(may_have),
            item,
            by,
            own,
            vacated,
            action,
            spec: String::new(),
            bytes: 0,
            outcome: None,
        }
    }

    /// Takes in what the document says, as its ways make it.
    fn fill(
        &mut self,
        tools: &Tools<'_>,
        wants: Wants,
        ways: &mut Ways,
        contents: &mut Contents,
    ) -> std::result::Result<(), Trouble> {
        let db = &tools.context.db;
        let jobs = ways.of(db, &self.item.row)?;
        let jobs = jobs.map_err(|why| Trouble::Output(Unavailable::because(why)))?;
        self.spec = ways.spec(&jobs);
        let (HandoverAction::Put(_), Some(uri)) = (&self.action, &self.own) else { return Ok(()) };
        let document = self.item.document.as_ref().filter(|it| it.removed_ms.is_none());
        let wants = wants.max(ways.wants(&jobs));
        let part = tools.load.due.part;
        let content = document.map(|it| contents.of(tools.context, part, it, wants));
        match content.transpose() {
            Ok(Some(Some(content))) => {
                let authority = self.item.row.authority.clone();
                match ways.walk(&jobs, &uri.text, Content { authority, ..content }) {
                    Ok(PreparedDocument { spec, content }) => {
                        self.bytes = content.facts.text.len();
                        self.bytes += content.bytes.as_ref().map_or(0, |it| it.len());
                        (self.spec, self.action) = (spec, HandoverAction::Put(Box::new(content)));
                    }
                    // What is refused on all ways must not be there in an older version.
                    Err(refusal) => self.leave(refusal),
                }
            }
            Ok(_) => self.miss("what it says is not in the store".to_owned()),
            Err(error) if error.passes() => return Err(error.into()),
            // Others need not wait for one that is damaged.
            Err(error) => self.miss(error.to_string()),
        }
        Ok(())
    }

    fn leave(&mut self, refusal: Refusal) {
        self.vacated.extend(self.own.take().filter(|_| self.may_be_there));
        self.action = HandoverAction::Leave(Some(refusal));
    }

    /// It stays as it is, claims and all, until it is to be had.
    fn miss(&mut self, why: String) {
        (self.own, self.vacated, self.action) = (None, Vec::new(), HandoverAction::Missing(why));
    }

    /// Whether the decision has been carried out.
    fn is_done(&self) -> bool {
        let is_undone = |it: &HandoverOutcome| {
            matches!(it, HandoverOutcome::Answered(Outcome::Trouble { .. } | Outcome::Later(_)))
        };
        self.outcome.as_ref().is_some_and(|it| !is_undone(it))
    }

    fn uris(&self) -> impl Iterator<Item = &Uri> {
        self.own.iter().chain(&self.vacated)
    }

    /// What the output is to be told, if anything. What comes of the decision otherwise is
    /// noted; nothing is, if it is to be carried out again.
    fn operation(&mut self, view: &ClaimView) -> Option<Operation> {
        let owns = self.own.as_ref().is_some_and(|uri| view.owner(uri) == Some(self.by));
        let is_alone = !self.own.as_ref().is_some_and(|uri| view.is_contested(uri, self.by));
        let is_free = |uri: &&Uri| view.owner(uri).is_none();
        let mut stale: VecDeque<String> =
            self.vacated.iter().filter(is_free).map(|uri| uri.text.clone()).collect();
        self.outcome = match &mut self.action {
            HandoverAction::Put(content) if owns => {
                let uri = self.own.as_ref().map(|uri| uri.text.clone()).unwrap_or_default();
                let content = Some(std::mem::take(&mut **content));
                return Some(Operation { uri, stale: stale.into(), content });
            }
            HandoverAction::Missing(why) => {
                let detail = std::mem::take(why);
                Some(HandoverOutcome::Answered(Outcome::Trouble { code: "NOCONTENT", detail }))
            }
            HandoverAction::Claim if owns => is_alone.then_some(HandoverOutcome::Claimed),
            HandoverAction::Put(_) | HandoverAction::Claim | HandoverAction::Shadowed => {
                Some(HandoverOutcome::Shadowed)
            }
            HandoverAction::Leave(refusal) => {
                Some(HandoverOutcome::Answered(refused(refusal.take())))
            }
        };
        let uri = stale.pop_front()?;
        Some(Operation { uri, stale: stale.into(), content: None })
    }

    /// The output has answered to the operation.
    fn hear(&mut self, outcome: Outcome) {
        let is_done = matches!(outcome, Outcome::Taken | Outcome::Rejected { .. });
        // What only leaves URIs has come to something already.
        let is_put = matches!(self.action, HandoverAction::Put(_)) && self.outcome.is_none();
        if is_put || !is_done {
            self.outcome = Some(HandoverOutcome::Answered(outcome));
        }
    }
}

/// What came of a document that leaves.
fn refused(refusal: Option<Refusal>) -> Outcome {
    match refusal {
        Some(Refusal { code, detail }) => Outcome::Rejected { code, detail },
        None => Outcome::Taken,
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Store(error)
    }
}

#[cfg(test)]
mod tests;
