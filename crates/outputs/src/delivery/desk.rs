//! Looks what is due, and hands it to carriers.
//!
//! Invariants: a part and an output are with one carrier at a time; an output has no
//! more carriers than connections; with nothing to do, a look costs two short questions,
//! and comes less and less often.

use super::carry::{BATCH, CarriedLoad};
use super::{Back, CARRIERS, DeliveryContext, DeskEvent, Listener, Load, ROLE};
use crate::output::{Output, Unavailable};
use crate::rights::Rights;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;
use store::ids::{ConnectionId, Part};
use store::panics::caught;
use store::tables::claims;
use store::tables::ingests::{self, Due, NEVER_MS};
use store::tables::outages::{self, Failure, Unreachable};
use store::tables::outlets::{self, OutputOpening};
use store::{Result, Tx, clock};

/// Outputs and parts looked at in one go.
const DUE_MAX: usize = 4_096;
/// Rows of an output that is gone that are forgotten at once.
const FORGET_ROWS: u32 = 1_000;
/// With nothing to do, the tables are looked at again after this long at first.
const IDLE_MS: i64 = 20;
/// What an output must hear of a part is gathered for so long after the last delivery, so
/// that a crawl in full swing costs a transaction for many documents.
const GATHER_MS: i64 = 200;
/// How long an output rests that could not be reached; it doubles up to [`REST_MS_MAX`].
const REST_MS: i64 = 500;
/// How long an output that cannot be reached rests at most before it is tried again.
const REST_MS_MAX: i64 = 60_000;

const FIRST: Due = Due { part: Part(i64::MIN), output: ConnectionId(i64::MIN) };

/// An output, as this process knows it.
#[derive(Default)]
struct OutputState {
    /// Connections that are open and idle, and the version they were opened in.
    idle: Vec<Box<dyn Output>>,
    version: i64,
    carriers: usize,
    /// It rests until then, because it could not be reached so often in a row.
    rests_until_ms: i64,
    failures: u32,
    why: Option<String>,
    /// When the first of these failures was, and whether a row tells others of them.
    failing_since_ms: i64,
    is_recorded: bool,
}

impl OutputState {
    /// It was reached, or nobody waits for it.
    fn end_outage(&mut self) {
        (self.failures, self.why, self.rests_until_ms) = (0, None, 0);
    }
}

/// What the tables say is to be delivered.
struct DueDeliveries {
    /// What can be handed out now.
    due: Vec<Due>,
    /// When something else falls due.
    next_ms: Option<i64>,
    /// Outputs that have something to hear, now or later; `None` if there are too many.
    waited_for: Option<BTreeSet<ConnectionId>>,
}

/// Looks what is due.
fn look_at(tx: &mut Tx<'_>, now_ms: i64) -> Result<DueDeliveries> {
    let (mut found, mut next_ms) = (Vec::new(), None::<i64>);
    let mut waited_for = BTreeSet::new();
    let mut at = FIRST;
    while let Some(due) = ingests::due(tx, at)?.filter(|_| found.len() < DUE_MAX) {
        found.push(due);
        waited_for.insert(due.output);
        at = due;
    }
    let is_whole = found.len() < DUE_MAX;
    at = FIRST;
    while let Some((due, check_ms)) = ingests::retries(tx, at)? {
        if check_ms < NEVER_MS {
            waited_for.insert(due.output);
        }
        if check_ms > now_ms {
            next_ms = Some(next_ms.map_or(check_ms, |it| it.min(check_ms)));
        } else if !found.contains(&due) && found.len() < DUE_MAX {
            found.push(due);
        }
        at = due;
    }
    Ok(DueDeliveries { due: found, next_ms, waited_for: is_whole.then_some(waited_for) })
}

/// The thread that finds what is due and gives it to the carriers.
pub(super) struct Desk {
    context: DeliveryContext,
    loads: Option<SyncSender<Load>>,
    listener: Arc<dyn Listener>,
    rights: Rights,
    outputs: BTreeMap<ConnectionId, OutputState>,
    carried: HashSet<(Part, ConnectionId)>,
    /// When something was last carried.
    carried_ms: BTreeMap<(Part, ConnectionId), i64>,
    idle_ms: i64,
    /// When the tables were last looked at, and when they are next.
    looked_ms: i64,
    look_ms: i64,
    /// What was said to be waited for.
    reported: Option<String>,
}

impl Desk {
    pub fn new(
        context: DeliveryContext,
        loads: SyncSender<Load>,
        listener: Arc<dyn Listener>,
    ) -> Desk {
        Desk {
            rights: Rights::new(context.claimant.clone(), ROLE),
            context,
            loads: Some(loads),
            listener,
            outputs: BTreeMap::new(),
            carried: HashSet::new(),
            carried_ms: BTreeMap::new(),
            idle_ms: 0,
            looked_ms: 0,
            look_ms: 0,
            reported: None,
        }
    }

    /// Works until it is told to stop and everything that is carried has arrived.
    pub fn serve(&mut self, incoming: &Receiver<DeskEvent>, stop: &AtomicBool) {
        let poll_ms = self.context.poll_ms.min(self.context.claimant.lease_ms / 4).max(1);
        loop {
            let stopping = stop.load(Ordering::SeqCst);
            if stopping && self.carried.is_empty() {
                break;
            }
            let now_ms = clock::now_ms();
            if !stopping && now_ms >= self.look_ms {
                self.looked_ms = now_ms;
                // A database that is away is met again at the next look.
                let next_ms = caught(|| self.look()).flatten().unwrap_or(None).unwrap_or(i64::MAX);
                let idle_ms = if self.carried.is_empty() { self.idle_ms } else { poll_ms };
                self.look_ms = next_ms.min(now_ms + idle_ms.min(poll_ms)).max(now_ms + 1);
            }
            self.rights.keep();
            self.say();
            let wait_ms = (self.look_ms - now_ms).clamp(1, poll_ms);
            let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(1));
            let Ok(first) = incoming.recv_timeout(wait) else { continue };
            let mut next = Some(first);
            while let Some(event) = next {
                self.idle_ms = 0;
                if let DeskEvent::Back(back) = event {
                    self.back(*back);
                }
                next = incoming.try_recv().ok();
            }
            // Whoever rings all the time is heard now and then.
            self.look_ms = self.look_ms.min(self.looked_ms + IDLE_MS);
        }
        self.loads = None;
        self.rights.end();
    }

    /// Hands out what is due. Returns when something else will be.
    fn look(&mut self) -> Result<Option<i64>> {
        self.idle_ms = (self.idle_ms * 2).clamp(IDLE_MS, self.context.poll_ms.max(IDLE_MS));
        let now_ms = clock::now_ms();
        let DueDeliveries { due, mut next_ms, waited_for } =
            self.context.db.read(move |tx| look_at(tx, now_ms))?;
        if let Some(waited_for) = waited_for {
            self.end_outages(&waited_for, now_ms);
        }
        self.carried_ms.retain(|_, carried_ms| now_ms - *carried_ms < GATHER_MS);
        let mut openings: BTreeMap<ConnectionId, Option<OutputOpening>> = BTreeMap::new();
        for due in due {
            if self.carried.len() >= CARRIERS {
                break;
            }
            let carried_ms = self.carried_ms.get(&(due.part, due.output));
            let gathers_until_ms = carried_ms.map_or(0, |carried_ms| carried_ms + GATHER_MS);
            let rests_until_ms = self.outputs.get(&due.output).map_or(0, |it| it.rests_until_ms);
            let rests_until_ms = rests_until_ms.max(gathers_until_ms);
            if rests_until_ms > now_ms {
                next_ms = Some(next_ms.map_or(rests_until_ms, |it| it.min(rests_until_ms)));
                continue;
            }
            let opening = match openings.get(&due.output) {
                Some(opening) => opening.clone(),
                None => {
                    let found = self.context.db.read(move |tx| outlets::opening(tx, due.output))?;
                    openings.entry(due.output).or_insert(found).clone()
                }
            };
            match opening {
                // One whose connector is not registered waits until it is.
                Some(opening) if opening.present => self.hand_out(due, opening)?,
                Some(_) => {}
                None => {
                    // Nobody can tell an output that is gone.
                    let Due { part, output } = due;
                    self.context.db.write(move |tx| {
                        claims::forget(tx, part, output, FORGET_ROWS)?;
                        ingests::forget(tx, part, output, FORGET_ROWS)
                    })?;
                    next_ms = Some(now_ms);
                }
            }
        }
        Ok(next_ms)
    }

    fn hand_out(&mut self, due: Due, opening: OutputOpening) -> Result<()> {
        let key = (due.part, due.output);
        let known = self.outputs.entry(due.output).or_default();
        let most = usize::try_from(opening.maxcount).unwrap_or(usize::MAX);
        if known.carriers >= most || self.carried.contains(&key) {
            return Ok(());
        }
        let Some(lease) = self.rights.claim(due.part)? else { return Ok(()) };
        if known.version != opening.version {
            known.idle.clear();
            known.version = opening.version;
        }
        let load = Load { due, lease, opening, output: known.idle.pop() };
        known.carriers += 1;
        self.carried.insert(key);
        if let Some(loads) = &self.loads {
            // There are no more loads than carriers.
            let _ = loads.try_send(load);
        }
        Ok(())
    }

    fn back(&mut self, back: Back) {
        let Back { mut load, outcome } = back;
        self.carried.remove(&(load.due.part, load.due.output));
        self.rights.done(&load.lease, matches!(outcome, CarriedLoad::Lost));
        let known = self.outputs.entry(load.due.output).or_default();
        known.carriers = known.carriers.saturating_sub(1);
        if known.version == load.opening.version
            && let Some(output) = load.output.take()
        {
            known.idle.push(output);
        }
        match outcome {
            // A full load leaves more behind, which nobody has to wait for.
            CarriedLoad::Delivered(count) if count < BATCH as usize => {
                self.carried_ms.insert((load.due.part, load.due.output), clock::now_ms());
            }
            _ => {}
        }
        match outcome {
            CarriedLoad::Delivered(count) => {
                known.end_outage();
                self.clear_outage(load.due.output);
                if count > 0 {
                    self.listener.delivered();
                }
            }
            CarriedLoad::Lost => {}
            CarriedLoad::StoreUnavailable(unavailable) => self.rest(&load, &unavailable),
            CarriedLoad::Unavailable(unavailable) => {
                self.rest(&load, &unavailable);
                self.record_outage(load.due.output, unavailable.why);
            }
        }
    }

    /// Leaves an output alone for a while that could not be served.
    fn rest(&mut self, load: &Load, unavailable: &Unavailable) {
        let (known, now_ms) = (self.outputs.entry(load.due.output).or_default(), clock::now_ms());
        known.idle.clear();
        let usual_ms = (REST_MS << known.failures.min(10)).min(REST_MS_MAX);
        // Whoever says how long knows best, but is not asked without a rest.
        let rest_ms = unavailable.retry_ms.map_or(usual_ms, |it| it.max(REST_MS));
        if known.failures == 0 {
            known.failing_since_ms = now_ms;
        }
        known.failures += 1;
        known.rests_until_ms = now_ms + rest_ms;
        let name = &load.opening.name;
        known.why = Some(format!("output {name}: {}; retrying", unavailable.why));
    }

    /// Lets other processes and the command line know that an output cannot be reached.
    fn record_outage(&mut self, output: ConnectionId, why: String) {
        let (known, now_ms) = (self.outputs.entry(output).or_default(), clock::now_ms());
        let failure = Failure {
            what: Unreachable::Output(output),
            node: self.context.claimant.ids.node(),
            since_ms: known.failing_since_ms,
            why,
        };
        // If the database is away, too, the next failure is recorded.
        let recorded = self.context.db.write(move |tx| outages::record(tx, &failure, now_ms));
        known.is_recorded |= recorded.is_ok();
    }

    /// Takes that back. If it cannot be written now, the next look does it.
    fn clear_outage(&mut self, output: ConnectionId) {
        let Some(known) = self.outputs.get_mut(&output).filter(|it| it.is_recorded) else { return };
        let node = self.context.claimant.ids.node();
        let cleared = self.context.db.write(move |tx| outages::clear_output(tx, output, node));
        known.is_recorded = cleared.is_err();
    }

    /// Ends outages of outputs that nobody waits for, or that others serve: for long, no
    /// part of theirs was to be had here.
    fn end_outages(&mut self, waited_for: &BTreeSet<ConnectionId>, now_ms: i64) {
        let mut over = Vec::new();
        for (output, known) in &mut self.outputs {
            let untried = now_ms - known.rests_until_ms > REST_MS_MAX;
            let is_over = !waited_for.contains(output) || untried;
            if known.failures > 0 && known.carriers == 0 && is_over {
                known.end_outage();
            }
            if known.failures == 0 && known.is_recorded {
                over.push(*output);
            }
        }
        over.into_iter().for_each(|output| self.clear_outage(output));
    }

    /// Says what is waited for, when that has changed.
    fn say(&mut self) {
        let why = self.outputs.values().find_map(|known| known.why.clone());
        if self.reported != why {
            self.listener.waits_for(why.clone());
            self.reported = why;
        }
    }
}
