//! One transaction of a job in a part: commit what is finished, claim what is next.
//!
//! Relies on the tables for what each statement means, and on the lease for the right
//! to write. The order is the architecture's: objects and links into other parts
//! first, which can be repeated; then one transaction with everything else.
//!
//! Invariants: a turn happens whole or not at all; repeating one whose outcome is
//! unknown does nothing twice.

mod claim;
mod sweep;
mod transaction;

pub use claim::ClaimDone;
pub use sweep::SweptDocument;

use crate::frontier::DocumentDemand;
use crate::hops::{Spread, SpreadContext};
use crate::job::JobWork;
use crate::worker::commit::effects::Effects;
use crate::worker::commit::places::{Commit, SweepQuestion};
use crate::worker::commit::prepare::{self, PreparedCommit};
use crate::worker::read::stored_links::StoredLinks;
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use store::ids::{BinId, ChunkId, IdMaker, ObjectId, Part, QueueId};
use store::objects::{ChunkKey, Objects};
use store::tables::bins::{self, Bin};
use store::tables::documents;
use store::tables::leases::Lease;
use store::tables::objects as object_rows;
use store::tables::queue::Place;
use store::tables::queue::sweep::Sweep;
use store::{Db, Result, Tx};

/// A chunk that is open, and the objects that it may have.
#[derive(Debug, Clone, Copy)]
pub struct OpenChunk {
    pub id: ChunkId,
    /// What its documents are active in.
    pub claim: ChunkId,
    /// Where its facts go if they are large.
    pub facts: ObjectId,
    /// Where its bodies go, if the job keeps them.
    pub bodies: Option<ObjectId>,
    /// Whether the objects are announced when the chunk is opened. If the chunk before had none,
    /// this one is not expected to have any: they are announced when it turns out to.
    pub announces: bool,
}

impl OpenChunk {
    /// A chunk that nobody knows of yet, and that goes on with nothing.
    pub fn new(job: &JobWork, ids: &IdMaker) -> OpenChunk {
        let id = ChunkId(ids.next());
        OpenChunk {
            id,
            claim: id,
            facts: ObjectId(ids.next()),
            bodies: job.settings.bodies.then(|| ObjectId(ids.next())),
            announces: true,
        }
    }
}

/// A commit, the claims that follow it, or both.
pub struct Turn {
    /// The right to do it.
    pub lease: Lease,
    pub job: Arc<JobWork>,
    pub ids: Arc<IdMaker>,
    pub commit: Option<Commit>,
    /// The chunk that takes what stays active and what is claimed.
    pub open: OpenChunk,
    /// Whether that chunk is already there.
    pub is_open: bool,
    /// What stays active: claimed before, and not committed with this turn.
    pub active: Vec<QueueId>,
    pub wants: Vec<DocumentDemand>,
    /// What is to be swept.
    pub sweep: Option<Sweep>,
    /// Of which state of the job that is asked.
    pub question: SweepQuestion,
    pub now_ms: i64,
}

impl Turn {
    /// The job in the part.
    pub fn place(&self) -> Place {
        self.job.place(self.lease.part)
    }
}

/// A bin that has something ready.
pub struct WokenBin {
    pub part: Part,
    pub bin: Bin,
}

/// What a turn did.
#[derive(Default)]
pub struct TurnDone {
    /// What came of each want.
    pub claimed: Vec<ClaimDone>,
    /// What is to be swept.
    pub swept: Vec<SweptDocument>,
    /// Bins that have something ready because of it.
    pub woken: Vec<WokenBin>,
    /// Whether the chunk `open` is there now.
    pub is_open: bool,
    /// Documents that are new.
    pub new: u64,
    /// How the job's graphs stand in this part.
    pub spread: Spread,
}

pub struct Runner<'a> {
    pub db: &'a Db,
    pub objects: &'a Objects,
    /// Links of documents that were not read.
    pub links: &'a StoredLinks,
}

/// A turn with everything that is done before its transaction.
pub struct ReadyTurn {
    turn: Turn,
    prepared: Option<PreparedCommit>,
}

impl ReadyTurn {
    /// A turn with what was prepared for it.
    pub fn new(turn: Turn, prepared: Option<PreparedCommit>) -> ReadyTurn {
        ReadyTurn { turn, prepared }
    }

    pub fn turn(&self) -> &Turn {
        &self.turn
    }
}

impl Runner<'_> {
    /// Looks up and encodes what must be there before the transaction. May be tried
    /// again after an error.
    pub fn prepare(&self, turn: &mut Turn) -> Result<Option<PreparedCommit>> {
        let (part, job) = (turn.lease.part, turn.job.clone());
        let Some(commit) = &mut turn.commit else { return Ok(None) };
        self.mark_copies(part, &job, commit)?;
        self.links.name_again(self.db, self.objects, part, &job, &mut commit.batch)?;
        let key = ChunkKey::new(part, commit.chunk.id)?;
        prepare::files(key, commit.chunk, &job, &mut commit.batch).map(Some)
    }

    /// Finds documents whose content another has already.
    fn mark_copies(&self, part: Part, job: &JobWork, commit: &mut Commit) -> Result<()> {
        let batch = &mut commit.batch;
        let fresh: HashSet<DocHash> =
            batch.records.iter().filter(|it| it.facts.is_some()).map(|it| it.dochash).collect();
        let contents: Vec<Vec<u8>> = batch
            .documents
            .iter()
            .filter(|it| fresh.contains(&it.dochash) && it.chunk.is_some())
            .filter_map(|it| it.content_hash.clone())
            .collect();
        if contents.is_empty() {
            return Ok(());
        }
        let connection = job.connection;
        let found =
            self.db.read(move |tx| documents::originals(tx, part, connection, &contents))?;
        let mut originals: HashMap<Vec<u8>, DocHash> = HashMap::new();
        for (content, dochash) in found {
            originals.entry(content).or_insert(dochash);
        }
        for document in batch.documents.iter_mut().filter(|it| fresh.contains(&it.dochash)) {
            let Some(content) = document.content_hash.clone() else { continue };
            let original = *originals.entry(content).or_insert(document.dochash);
            document.duplicate_of = (original != document.dochash).then_some((part, original));
        }
        Ok(())
    }

    /// Does it. `again` says that an earlier attempt may have succeeded unnoticed.
    pub fn run(&self, ready: &Arc<ReadyTurn>, again: bool) -> Result<TurnDone> {
        if let Some(prepared) = &ready.prepared {
            self.announce(&ready.turn, prepared)?;
            prepared.put(self.objects)?;
        }
        let effects = Arc::new(Effects::plan(self.db, &ready.turn)?);
        let mut foreign = Vec::new();
        for part in effects.other_parts(&ready.turn) {
            let (ready, effects) = (ready.clone(), effects.clone());
            let woken = self.db.write(move |tx| {
                let added = effects.apply(tx, &ready.turn, part)?;
                woken_bins(tx, part, &added.woken)
            })?;
            foreign.extend(woken);
        }
        let ready = ready.clone();
        let mut done = self.db.write(move |tx| {
            let mut done = TurnDone::default();
            if again && ready.turn.recover(tx, &mut done)? {
                return Ok(done);
            }
            ready.turn.transact(tx, ready.prepared.as_ref(), &effects, &mut done)?;
            Ok(done)
        })?;
        done.woken.extend(foreign);
        Ok(done)
    }

    /// Announces objects that nobody expected, before they are written. Doing it again is harmless.
    fn announce(&self, turn: &Turn, prepared: &PreparedCommit) -> Result<()> {
        let unexpected = turn.commit.as_ref().is_some_and(|it| !it.chunk.announces);
        let rows = prepared.rows();
        if !unexpected || rows.is_empty() {
            return Ok(());
        }
        let now_ms = turn.now_ms;
        self.db.write(move |tx| {
            for (key, kind, path) in &rows {
                if !object_rows::is_known(tx, key.0, key.1)? {
                    object_rows::stage(tx, key.0, key.1, *kind, path, now_ms)?;
                }
            }
            Ok(())
        })
    }

    /// Passes on what is news of how far documents are; the turn is over.
    pub fn spread(&self, turn: &Turn, done: &mut TurnDone) -> Result<()> {
        let Some(rules) = &turn.job.hops else { return Ok(()) };
        let (job, now_ms) = (turn.job.clone(), turn.now_ms);
        let adding = move |tx: &mut Tx<'_>, part| job.adding(tx, part, now_ms);
        let (lease, place) = (&turn.lease, turn.place());
        let (bins, spread) = SpreadContext { db: self.db, lease, rules, place, adding }.run()?;
        done.spread = spread;
        let mut by_part: BTreeMap<Part, BTreeSet<BinId>> = BTreeMap::new();
        for (part, bin) in bins {
            by_part.entry(part).or_default().insert(bin);
        }
        for (part, bins) in by_part {
            done.woken.extend(self.db.read(move |tx| woken_bins(tx, part, &bins))?);
        }
        Ok(())
    }
}

/// Bins of a part that have something ready.
fn woken_bins(tx: &mut Tx<'_>, part: Part, raised: &BTreeSet<BinId>) -> Result<Vec<WokenBin>> {
    let keys: Vec<BinId> = raised.iter().copied().collect();
    Ok(bins::load(tx, part, &keys)?.into_iter().map(|bin| WokenBin { part, bin }).collect())
}
