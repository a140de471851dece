//! Garbage collection: gives back what nothing needs any more, part by part.
//!
//! In this order, so that nothing is packed that goes anyway: facts and bodies that
//! no document points to and every consumer has passed are dropped or condemned, and
//! chunks of which little is needed are rewritten;
//! chunks that were given up long ago, or of which nothing is left, are forgotten; what is
//! left of small facts is packed; objects that were condemned, or staged by a writer that died, are
//! removed; and the store's listing is compared with the rows.
//!
//! Relies on [`crate::tables::chunk_storage`], [`crate::pack`] and
//! [`crate::collect`] for the steps. Invariant: every step is a transaction of
//! bounded size under the part's crawl lease, or is safe beside a crawl; so a
//! process may die behind any of them, and the next run goes on from there.

mod orphans;
mod rewrite;
#[cfg(test)]
mod tests;

pub use orphans::{ORPHANS_SHOWN_MAX, Orphans};

use crate::collect::{self, Grace};
use crate::ids::{CommitNumber, IdMaker, Part};
use crate::objects::Objects;
use crate::tables::chunk_storage::{self, SettledChunks, StorageProgress};
use crate::tables::leases::{self, Lease, LeaseRequest};
use crate::tables::{chunks, settings};
use crate::{Db, Error, Result, Tx, pack};
use rewrite::RewriteContext;

/// The role whose lease keeps commits and condemnations apart.
const ROLE: &str = "crawl";
/// Chunks looked at in one transaction.
const CHUNKS_STEP: u32 = 500;
/// How long a lease lasts; every step renews it.
const LEASE_MS: i64 = 60 * 1_000;
/// How far the clocks of two machines may differ.
const SKEW_MS: i64 = 5 * 1_000;
/// How long facts and bodies stay at least, unless told otherwise: an output that
/// was just added has begun to read by then.
pub const SETTLED_AGE_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long the row of a chunk that was given up stays, unless told otherwise: an
/// operator may want to see what happened.
pub const ABANDONED_AGE_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Small facts that are worth a pack, unless told otherwise.
pub const PACK_CHUNKS_MIN: u32 = 16;
/// The same where a collection comes by itself, beside other work.
const PACK_CHUNKS_MIN_ASIDE: u32 = 64;
/// How long a writer may take from staging to publishing, for a collection beside it.
const STAGED_ASIDE_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Bytes that a collection rewrites in a part where it comes by itself: a few seconds of a
/// disk's time. What is left over is for the next one.
const REWRITE_BYTES_MAX_ASIDE: u64 = 256 << 20;

/// What is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Facts and bodies: at least this long after their commit.
    pub settled_ms: i64,
    /// Rows of chunks that were given up: this long after their claim.
    pub abandoned_ms: i64,
    /// Objects: this long after they were staged or condemned. An object without a
    /// row is an orphan when it is older than a staged one may be.
    pub grace: Grace,
    /// Facts stay in their rows when there are fewer than this.
    pub pack_chunks_min: u32,
    /// Chunks of a part are rewritten until this many bytes were written.
    pub rewrite_bytes_max: u64,
    /// What is done about orphans.
    pub orphans: OnOrphans,
}

/// What is done about objects that no row knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OnOrphans {
    /// Nobody looks for them: that takes a listing of the whole store.
    Ignore,
    Report,
    Delete,
}

impl Keep {
    /// What a collection keeps that comes by itself, beside other work.
    pub fn aside() -> Keep {
        Keep {
            pack_chunks_min: PACK_CHUNKS_MIN_ASIDE,
            rewrite_bytes_max: REWRITE_BYTES_MAX_ASIDE,
            orphans: OnOrphans::Ignore,
            // A crawl may have a chunk open beside it, however slow its hosts are.
            grace: Grace { staged_ms: STAGED_ASIDE_MS, ..Grace::default() },
            ..Keep::default()
        }
    }
}

impl Default for Keep {
    fn default() -> Keep {
        Keep {
            settled_ms: SETTLED_AGE_MS,
            abandoned_ms: ABANDONED_AGE_MS,
            grace: Grace::default(),
            pack_chunks_min: PACK_CHUNKS_MIN,
            rewrite_bytes_max: u64::MAX,
            orphans: OnOrphans::Report,
        }
    }
}

/// What a run of the garbage collection did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct GcReport {
    /// Parts that were collected.
    pub parts: u64,
    /// Parts left alone, since another process works on them.
    pub parts_busy: u64,
    /// Chunks whose facts nothing needed.
    pub facts_dropped: u64,
    /// Chunks whose bodies nothing needed.
    pub bodies_dropped: u64,
    /// Chunks that were rewritten without what nothing needed.
    pub rewritten: u64,
    /// Bytes that were written for that.
    pub rewritten_bytes: u64,
    /// Chunks whose facts moved from rows into packs.
    pub packed: u64,
    /// Chunks that were given up and are now forgotten.
    pub abandoned_forgotten: u64,
    /// Committed chunks that nothing needed any more and that are now forgotten.
    pub chunks_forgotten: u64,
    /// Objects that will go when their grace is over.
    pub condemned: u64,
    /// Objects that are gone.
    pub collected: u64,
    /// Bytes of those objects.
    pub object_bytes_freed: u64,
    /// Bytes of dropped facts that were in rows; the database uses them again.
    pub row_bytes_freed: u64,
    /// Objects that no row knows.
    pub orphans: Orphans,
}

/// Who collects, and by which clock.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Collector<'a> {
    /// Makes the ids of packs; its node was registered.
    pub ids: &'a IdMaker,
    pub node_name: &'a str,
    /// The clock. A long collection renews its leases by it.
    pub clock: fn() -> i64,
}

/// Collects every part whose crawl lease can be had or is this node's already, one after the
/// other, until `stops` says so.
pub fn all(
    db: &Db,
    objects: &Objects,
    collector: &Collector<'_>,
    keep: &Keep,
    stops: &dyn Fn() -> bool,
) -> Result<GcReport> {
    let mut report = GcReport::default();
    for part in (0..i64::from(db.read(settings::parts)?)).map(Part) {
        if stops() {
            break;
        }
        let Some((lease, taken)) = lease_of(db, part, collector)? else {
            report.parts_busy += 1;
            continue;
        };
        let outcome = self::part(db, objects, collector, &lease, keep, &mut report);
        if let LeaseOrigin::Now { in_order } = taken {
            // Given back as it was found: a crawl that was killed has still left no record.
            db.write(move |tx| leases::release(tx, &lease, in_order))?;
        }
        match outcome {
            Ok(()) => report.parts += 1,
            Err(Error::LeaseLost { .. }) => report.parts_busy += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// How a collector has a lease.
#[derive(Clone, Copy)]
enum LeaseOrigin {
    /// It took it; whether its last holder gave it back in good order.
    Now { in_order: bool },
    /// The crawl of the same process holds it, and keeps it. Both write under one token, and
    /// every step checks in its transaction what a commit may have changed.
    Before,
}

/// The crawl lease of a part, if it can be had.
fn lease_of(
    db: &Db,
    part: Part,
    collector: &Collector<'_>,
) -> Result<Option<(Lease, LeaseOrigin)>> {
    let asking = LeaseRequest {
        node: collector.ids.node(),
        node_name: collector.node_name.to_owned(),
        now_ms: (collector.clock)(),
        lease_ms: LEASE_MS,
        skew_ms: SKEW_MS,
    };
    db.write(move |tx| {
        if let Some(lease) = leases::held_by(tx, part, ROLE, asking.node)? {
            return Ok(Some((lease, LeaseOrigin::Before)));
        }
        let in_order = leases::is_vacant(tx, part, ROLE)?;
        let lease = leases::take(tx, part, ROLE, &asking)?;
        Ok(lease.map(|lease| (lease, LeaseOrigin::Now { in_order })))
    })
}

/// Collects one part under its crawl lease, and adds what it did to the report.
pub fn part(
    db: &Db,
    objects: &Objects,
    collector: &Collector<'_>,
    lease: &Lease,
    keep: &Keep,
    report: &mut GcReport,
) -> Result<()> {
    let part = lease.part;
    let now_ms = (collector.clock)();
    let held = LeasedPart { db, lease, clock: collector.clock };
    let settled_ms = now_ms - keep.settled_ms;
    let settled = db.read(move |tx| chunk_storage::settled(tx, part, settled_ms))?;
    let facts = held.walk(chunk_storage::drop_facts, settled)?;
    let bodies = held.walk(chunk_storage::condemn_bodies, settled)?;
    report.facts_dropped += facts.chunks;
    report.bodies_dropped += bodies.chunks;
    report.condemned += facts.condemned + bodies.condemned;
    report.row_bytes_freed += facts.row_bytes;
    let until_bytes = report.rewritten_bytes.saturating_add(keep.rewrite_bytes_max);
    let ids = collector.ids;
    let rewriting = RewriteContext { held: &held, objects, ids, settled, until_bytes };
    rewriting.run(report)?;
    rewriting.repack(report)?;
    report.chunks_forgotten += held.walk(chunk_storage::forget, settled)?.chunks;
    report.abandoned_forgotten += held.forget_abandoned(now_ms - keep.abandoned_ms)?;
    loop {
        let now_ms = (collector.clock)();
        match pack::pack_facts(db, objects, part, collector.ids, now_ms, keep.pack_chunks_min)? {
            0 => break,
            chunks => report.packed += chunks as u64,
        }
    }
    let collected = collect::collect(db, objects, part, keep.grace, now_ms, u32::MAX)?;
    report.collected += collected.objects;
    report.object_bytes_freed += collected.bytes;
    let before_ms = now_ms - keep.grace.staged_ms;
    match keep.orphans {
        OnOrphans::Ignore => Ok(()),
        on_orphans => {
            let keeps = on_orphans == OnOrphans::Report;
            orphans::find(db, objects, part, before_ms, keeps, &mut report.orphans)
        }
    }
}

/// A part whose lease is held, and renewed with every step.
struct LeasedPart<'a> {
    db: &'a Db,
    lease: &'a Lease,
    clock: fn() -> i64,
}

/// One step of a walk over a part's chunks: the part, from and to which number, how
/// many chunks, and the time.
type WalkStep =
    fn(&mut Tx<'_>, Part, CommitNumber, SettledChunks, u32, i64) -> Result<StorageProgress>;

impl LeasedPart<'_> {
    /// Runs a step in a transaction that fails if the lease is lost.
    fn step<T: Send + 'static>(
        &self,
        run: impl Fn(&mut Tx<'_>, i64) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (lease, now_ms) = (self.lease.clone(), (self.clock)());
        self.db.write(move |tx| {
            // Renewing locks the lease's row and checks its token, as fencing does.
            leases::renew(tx, &lease, lease.deadline_ms.max(now_ms + LEASE_MS))?;
            run(tx, now_ms)
        })
    }

    /// Walks the part's chunks up to a number; returns the sum of its steps.
    fn walk(&self, walk_step: WalkStep, settled: SettledChunks) -> Result<StorageProgress> {
        let part = self.lease.part;
        let mut sum =
            StorageProgress { next: Some(CommitNumber::NONE), ..StorageProgress::default() };
        while let Some(after) = sum.next {
            let done = self
                .step(move |tx, now_ms| walk_step(tx, part, after, settled, CHUNKS_STEP, now_ms))?;
            sum.next = done.next;
            sum.chunks += done.chunks;
            sum.condemned += done.condemned;
            sum.row_bytes += done.row_bytes;
        }
        Ok(sum)
    }

    fn forget_abandoned(&self, claimed_before_ms: i64) -> Result<u64> {
        let part = self.lease.part;
        let mut sum = 0;
        loop {
            let forgotten = self.step(move |tx, _| {
                chunks::forget_abandoned(tx, part, claimed_before_ms, CHUNKS_STEP)
            })?;
            sum += forgotten;
            if forgotten < u64::from(CHUNKS_STEP) {
                return Ok(sum);
            }
        }
    }
}
