//! Takes what commits have decided to outputs, and records what came of it.
//!
//! One thread looks what is due and hands it out ([`Desk`]); a few carry it
//! ([`carry`]). Relies on `tables::ingests` for what is due, and on a lease of each part
//! for the right to speak for it, so that two processes never tell an output the same
//! document at once. Invariants: what is carried at once is bounded by [`CARRIERS`] and,
//! for each output, by its connection's `maxcount`; a decision is done only when its
//! output has said so; an output that cannot be reached rests, and no document is blamed.

mod carry;
mod content;
mod desk;
mod handover;
mod ownership;
mod way;

use crate::connectors;
use crate::output::{Output, Unavailable};
use crate::rights::Claimant;
use desk::Desk;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use store::ids::JobId;
use store::objects::Objects;
use store::panics::{Faults, caught};
use store::patience::Patience;
use store::tables::ingests::Due;
use store::tables::leases::Lease;
use store::tables::outlets::{self, OutputOpening};
use store::{Db, Error, Result};

/// Threads that deliver at the same time, so that one slow output does not stop all.
pub const CARRIERS: usize = 4;
/// Events that may wait for the desk beyond what is carried.
const EVENTS_SPARE: usize = 16;
/// What the leases are about.
pub const ROLE: &str = "deliver";

/// What deliveries are made with.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct DeliveryContext {
    pub db: Db,
    pub objects: Objects,
    pub claimant: Claimant,
    /// How often it looks for what others decided.
    pub poll_ms: i64,
    /// Faults that tests inject.
    pub faults: Faults,
}

/// Who wants to know, and knows what jobs want.
pub trait Listener: Send + Sync {
    /// How a job deals with failures.
    fn patience(&self, job: JobId) -> Patience;

    /// Something was delivered, so that a job may be done.
    fn delivered(&self);

    /// A document of a job was given up, and why.
    fn gave_up(&self, job: JobId, why: &str);

    /// What cannot be done just now, if anything.
    fn waits_for(&self, why: Option<String>);
}

/// What the threads tell the desk.
enum DeskEvent {
    /// Something may be due.
    Nudge,
    /// A carrier is back.
    Back(Box<Back>),
}

/// A load for a carrier.
struct Load {
    due: Due,
    lease: Lease,
    opening: OutputOpening,
    output: Option<Box<dyn Output>>,
}

/// What a carrier comes back with.
struct Back {
    load: Load,
    outcome: carry::CarriedLoad,
}

/// Tells deliveries that something may be due. It may be told before they begin.
#[derive(Clone)]
pub struct Wakeup {
    events: SyncSender<DeskEvent>,
}

impl Wakeup {
    /// Something may be due.
    pub fn wake(&self) {
        // One that waits already is enough.
        let _ = self.events.try_send(DeskEvent::Nudge);
    }
}

/// Deliveries that have not begun.
pub struct PreparedDeliveries {
    wakeup: Wakeup,
    incoming: Receiver<DeskEvent>,
}

/// Deliveries that have not begun, with what wakes them.
pub fn ready() -> PreparedDeliveries {
    let (events, incoming) = sync_channel(CARRIERS + EVENTS_SPARE);
    PreparedDeliveries { wakeup: Wakeup { events }, incoming }
}

impl PreparedDeliveries {
    /// What wakes them when something is to be delivered.
    pub fn wakeup(&self) -> Wakeup {
        self.wakeup.clone()
    }

    /// Starts the threads; `listener` hears of outages and deliveries.
    pub fn start(self, context: DeliveryContext, listener: Arc<dyn Listener>) -> Result<Delivery> {
        let stop = Arc::new(AtomicBool::new(false));
        let (loads, incoming) = sync_channel::<Load>(CARRIERS);
        let incoming = Arc::new(Mutex::new(incoming));
        let mut carriers = Vec::new();
        for number in 0..CARRIERS {
            let (incoming, events) = (incoming.clone(), self.wakeup.events.clone());
            let (context, listener) = (context.clone(), listener.clone());
            carriers.push(spawn(&format!("carrier-{number}"), move || {
                let mut carrier = carry::Carrier::new(context, listener);
                loop {
                    let next = incoming.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(mut load) = next else { return };
                    let outcome = caught(|| carrier.carry(&mut load)).unwrap_or_else(|error| {
                        carry::CarriedLoad::Unavailable(Unavailable::because(error.to_string()))
                    });
                    if events.send(DeskEvent::Back(Box::new(Back { load, outcome }))).is_err() {
                        return;
                    }
                }
            })?);
        }
        let (stopped, wakeup) = (stop.clone(), self.wakeup);
        let mut desk = Desk::new(context, loads, listener);
        let incoming = self.incoming;
        let thread = spawn("delivery", move || desk.serve(&incoming, &stopped))?;
        Ok(Delivery { wakeup, stop, thread, carriers })
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| Error::io(name, error))
}

/// Deliveries that are made.
pub struct Delivery {
    wakeup: Wakeup,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    carriers: Vec<JoinHandle<()>>,
}

impl Delivery {
    /// Ends, when what is carried has arrived.
    pub fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wakeup.wake();
        let _ = self.thread.join();
        for carrier in self.carriers {
            let _ = carrier.join();
        }
    }
}

/// Tells the outputs of a job that its run is over, each of them.
pub fn job_over(db: &Db, job: JobId) -> Result<()> {
    let openings = db.read(move |tx| {
        let mut openings = Vec::new();
        for outlet in outlets::of_job(tx, job)?.into_iter().filter(|it| !it.former) {
            openings.extend(outlets::opening(tx, outlet.connection)?);
        }
        Ok(openings)
    })?;
    let opened = openings.into_iter().map(|opening| {
        let output = connectors::open(&opening.classname, &opening.config);
        (opening.name, output)
    });
    tell_each(opened)
}

/// One that cannot be told keeps nobody else from being told.
fn tell_each(
    opened: impl Iterator<Item = (String, std::result::Result<Box<dyn Output>, String>)>,
) -> Result<()> {
    let mut result = Ok(());
    for (name, output) in opened {
        let what = format!("output {name}");
        let outcome = match output {
            Err(why) => Err(Error::Refused(format!("{what}: {why}"))),
            Ok(mut output) => {
                let unavailable =
                    |unavailable: Unavailable| Error::Unavailable { what, reason: unavailable.why };
                output.job_over().map_err(unavailable)
            }
        };
        result = result.and(outcome);
    }
    result
}

#[cfg(test)]
mod tests;
