//! One transaction of a job in a part: commit what is finished, claim what is next.
//!
//! Relies on the tables for what each statement means, and on the lease for the right
//! to write. The order is the architecture's: objects and links into other parts
//! first, which can be repeated; then one transaction with everything else.
//!
//! Invariants: a turn happens whole or not at all; repeating one whose outcome is
//! unknown does nothing twice.

mod sweeping;

pub use sweeping::Swept;

use super::batch::Batch;
use super::effects::Effects;
use super::job::JobWork;
use super::links::StoredLinks;
use super::prepare::{self, Prepared};
use super::tasks::Claimed;
use crate::frontier::Want;
use crate::hops::{self, Spread};
use crate::ingest::{self, Committing};
use page::ids::DocHash;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use store::ids::{BinId, ChunkId, IdMaker, ObjectId, Part, QueueId};
use store::objects::{ChunkKey, ObjectPath, Objects};
use store::panics::FaultPoint;
use store::tables::bins::{self, Bin, Marked};
use store::tables::chunks::Opening;
use store::tables::documents::{self, Document};
use store::tables::job_states::RunKind;
use store::tables::leases::{self, Lease};
use store::tables::objects::{self as object_rows, Kind};
use store::tables::queue::sweep::{self, Sweep};
use store::tables::queue::{self, Action, Entry, Place, Presences};
use store::tables::removals;
use store::tables::{addresses, carrydown, chunks, events, history, robots, traps};
use store::{Db, Error, Result, Tx};

/// Documents that can be active in one chunk.
const ACTIVE_MAX: u32 = 10_000;

/// A chunk that is open, and the objects that it may have.
#[derive(Debug, Clone, Copy)]
pub struct OpenChunk {
    /// The chunk.
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

/// What is to be done.
pub struct Turn {
    /// The right to do it.
    pub lease: Lease,
    /// The job.
    pub job: Arc<JobWork>,
    /// Makes ids.
    pub ids: Arc<IdMaker>,
    /// The chunk to commit, and what it says.
    pub commit: Option<(OpenChunk, Batch)>,
    /// The chunk that takes what stays active and what is claimed.
    pub open: OpenChunk,
    /// Whether that chunk is already there.
    pub is_open: bool,
    /// What stays active: claimed before, and not committed with this turn.
    pub active: Vec<QueueId>,
    /// What to claim.
    pub wants: Vec<Want>,
    /// What is to be swept.
    pub sweep: Option<Sweep>,
    /// The time.
    pub now_ms: i64,
}

/// What it did.
#[derive(Default)]
pub struct Done {
    /// For each want what came, and whether there is no more.
    pub claimed: Vec<(Want, Vec<Claimed>, bool)>,
    /// What is to be swept.
    pub swept: Vec<Swept>,
    /// Bins that have something ready because of it.
    pub woken: Vec<(Part, Bin)>,
    /// Whether the chunk `open` is there now.
    pub is_open: bool,
    /// Documents that are new.
    pub new: u64,
    /// How the job's graphs stand in this part.
    pub spread: Spread,
}

/// Runs a turn, once. After an unknown outcome it may be run again with `again`.
pub struct Runner<'a> {
    /// The rows.
    pub db: &'a Db,
    /// The objects.
    pub objects: &'a Objects,
    /// Links of documents that were not read.
    pub links: &'a StoredLinks,
}

/// A turn with everything that is done before its transaction.
pub struct Ready {
    turn: Turn,
    prepared: Option<Prepared>,
}

impl Runner<'_> {
    /// Looks up and encodes what must be there before the transaction. May be tried
    /// again after an error.
    pub fn prepare(&self, turn: &mut Turn) -> Result<Option<Prepared>> {
        let (part, job) = (turn.lease.part, turn.job.clone());
        let Some((chunk, batch)) = &mut turn.commit else { return Ok(None) };
        self.mark_copies(part, &job, batch)?;
        self.links.name_again((self.db, self.objects), (part, &job), batch)?;
        let key = ChunkKey::new(part, chunk.id)?;
        prepare::files((key, *chunk), &job, batch).map(Some)
    }

    /// Finds documents whose content another has already.
    fn mark_copies(&self, part: Part, job: &JobWork, batch: &mut Batch) -> Result<()> {
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
    pub fn run(&self, ready: &Arc<Ready>, again: bool) -> Result<Done> {
        if let Some(prepared) = &ready.prepared {
            self.announce(&ready.turn, prepared)?;
            prepared.put(self.objects)?;
        }
        let effects = Arc::new(Effects::plan(self.db, &ready.turn)?);
        let mut foreign = Vec::new();
        for part in effects.others(&ready.turn) {
            let (ready, effects) = (ready.clone(), effects.clone());
            let bins = self.db.write(move |tx| {
                let added = effects.apply(tx, &ready.turn, part)?;
                woken(tx, part, &added.woken)
            })?;
            foreign.extend(bins.into_iter().map(|bin| (part, bin)));
        }
        let ready = ready.clone();
        let mut done = self.db.write(move |tx| {
            let mut done = Done::default();
            if again && recover(tx, &ready.turn, &mut done)? {
                return Ok(done);
            }
            ready.turn.transact(tx, (ready.prepared.as_ref(), &effects), &mut done)?;
            Ok(done)
        })?;
        done.woken.extend(foreign);
        Ok(done)
    }

    /// Announces objects that nobody expected, before they are written. Doing it again is harmless.
    fn announce(&self, turn: &Turn, prepared: &Prepared) -> Result<()> {
        let unexpected = turn.commit.as_ref().is_some_and(|(chunk, _)| !chunk.announces);
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
    pub fn spread(&self, turn: &Turn, done: &mut Done) -> Result<()> {
        let Some(rules) = &turn.job.hops else { return Ok(()) };
        let (job, now_ms) = (turn.job.clone(), turn.now_ms);
        let adding = move |tx: &mut Tx<'_>, part| job.adding(tx, (part, now_ms));
        let (bins, spread) = hops::spread(self.db, &turn.lease, (rules, turn.place()), adding)?;
        done.spread = spread;
        let mut by_part: BTreeMap<Part, Vec<BinId>> = BTreeMap::new();
        for (part, bin) in bins {
            by_part.entry(part).or_default().push(bin);
        }
        for (part, bins) in by_part {
            let loaded = self.db.read(move |tx| bins::load(tx, part, &bins))?;
            done.woken.extend(loaded.into_iter().map(|bin| (part, bin)));
        }
        Ok(())
    }
}

impl Ready {
    /// A turn with what was prepared for it.
    pub fn new(turn: Turn, prepared: Option<Prepared>) -> Ready {
        Ready { turn, prepared }
    }

    /// The turn.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }
}

impl Turn {
    /// The job in the part.
    pub fn place(&self) -> Place {
        self.job.place(self.lease.part)
    }

    fn transact(
        &self,
        tx: &mut Tx<'_>,
        (prepared, effects): (Option<&Prepared>, &Effects),
        done: &mut Done,
    ) -> Result<()> {
        let part = self.lease.part;
        let seq = match &self.commit {
            Some(_) => leases::number_commit(tx, &self.lease)?,
            None => {
                leases::fence(tx, &self.lease)?;
                0
            }
        };
        let mut raised = BTreeSet::new();
        if let Some((chunk, batch)) = &self.commit {
            self.inject_faults(batch);
            // Before rows of the queue, as everybody locks who adds documents within a limit.
            let round = match batch.marks() {
                true => removals::lock_round(tx, self.job.id)?,
                false => 0,
            };
            let added = effects.apply(tx, self, part)?;
            effects.is_done(tx, self)?;
            done.new += added.new;
            raised = added.woken;
            let presences = Presences { by_id: &batch.presences, round };
            let (claim, run) = (chunk.claim, self.job.run);
            queue::settle_with(tx, self.place(), claim, run, &batch.settled, presences)?;
            let period = self.job.removal_period(self.now_ms);
            removals::record(tx, self.place(), self.job.run, period, &batch.lost)?;
            let waits: Vec<(QueueId, &str)> =
                batch.waits.iter().map(|(id, event)| (*id, event.as_str())).collect();
            events::depend(tx, part, &waits)?;
        }
        done.is_open |= self.is_open && self.commit.is_none();
        if self.commit.is_some() && !self.active.is_empty() {
            self.open_next(tx, done)?;
        }
        for want in &self.wants {
            self.job.ground.faults.at(FaultPoint::Claim, &self.job.name);
            self.claim(tx, *want, done)?;
        }
        if let Some(sweep) = self.sweep {
            self.claim_swept(tx, sweep, done)?;
        }
        if let (Some((chunk, batch)), Some(prepared)) = (&self.commit, prepared) {
            self.write(tx, batch, (*chunk, prepared))?;
            let at = Committing { ids: &self.ids, part, seq, now_ms: self.now_ms };
            ingest::commit(tx, at, &self.job, batch)?;
            let visits: Vec<_> = batch.visits.values().cloned().collect();
            bins::visited(tx, part, &visits)?;
            chunks::commit(tx, &self.lease, chunk.id, seq, &prepared.summary, self.now_ms)?;
        }
        done.woken = woken(tx, part, &raised)?.into_iter().map(|bin| (part, bin)).collect();
        Ok(())
    }

    /// Where tests make a commit panic.
    fn inject_faults(&self, batch: &Batch) {
        let faults = &self.job.ground.faults;
        if !faults.is_none() {
            batch.records.iter().for_each(|it| faults.at(FaultPoint::CommitDocument, &it.docid));
        }
    }

    /// What is known of documents, what was done, and the objects.
    fn write(
        &self,
        tx: &mut Tx<'_>,
        batch: &Batch,
        (chunk, prepared): (OpenChunk, &Prepared),
    ) -> Result<()> {
        let part = self.lease.part;
        let (looks, rows): (Vec<&Document>, Vec<&Document>) =
            batch.documents.iter().partition(|it| batch.looks.contains(&it.dochash));
        documents::save(tx, part, self.job.connection, rows)?;
        documents::note_looks(tx, part, looks)?;
        history::append(tx, part, &batch.history)?;
        for stored in &batch.robots {
            robots::save(tx, part, stored)?;
        }
        addresses::note(tx, part, &batch.addresses, self.now_ms)?;
        traps::save(tx, part, &batch.traps, self.now_ms)?;
        for file in prepared.facts.iter().chain(&prepared.bodies) {
            file.written.publish(tx, self.now_ms)?;
        }
        if chunk.announces && prepared.facts.is_none() {
            object_rows::unstage(tx, part, chunk.facts)?;
        }
        let bodies = chunk.bodies.filter(|_| chunk.announces && prepared.bodies.is_none());
        if let Some(bodies) = bodies {
            object_rows::unstage(tx, part, bodies)?;
        }
        Ok(())
    }

    /// Opens the next chunk and announces the objects it is expected to have, if that is not done.
    fn open_next(&self, tx: &mut Tx<'_>, done: &mut Done) -> Result<()> {
        if done.is_open {
            return Ok(());
        }
        let part = self.lease.part;
        let OpenChunk { id: chunk, claim, .. } = self.open;
        let opening = Opening { chunk, claim, job: self.job.id, run: self.job.run };
        chunks::open_for(tx, &self.lease, opening, self.now_ms)?;
        done.is_open = true;
        if !self.open.announces {
            return Ok(());
        }
        let key = ChunkKey::new(part, self.open.id)?;
        let facts = ObjectPath::facts(key);
        object_rows::stage(tx, part, self.open.facts, Kind::Facts, facts.as_str(), self.now_ms)?;
        if let Some(bodies) = self.open.bodies {
            let path = ObjectPath::bodies(key);
            object_rows::stage(tx, part, bodies, Kind::Bodies, path.as_str(), self.now_ms)?;
        }
        Ok(())
    }

    fn claim(&self, tx: &mut Tx<'_>, want: Want, done: &mut Done) -> Result<()> {
        let (place, part, bin) = (self.place(), self.lease.part, want.host.bin);
        // Before the documents are looked at: whatever is queued after raises it.
        let mark = bins::mark(tx, part, self.job.id, bin)?;
        let limit = u32::try_from(want.documents).unwrap_or(u32::MAX);
        let mut peeked = match mark {
            0 => Vec::new(),
            _ => queue::peek_ready(tx, place, bin, limit)?,
        };
        let left = limit - u32::try_from(peeked.len()).unwrap_or(limit);
        if left > 0 && self.job.run.0 > 1 && self.job.kind == RunKind::Incremental {
            peeked.extend(queue::peek_older(tx, place, bin, self.job.run, left)?);
        }
        let mut exhausted = peeked.len() < want.documents;
        let count = peeked.len();
        let claimed = if peeked.is_empty() {
            peeked
        } else {
            self.open_next(tx, done)?;
            queue::claim(tx, place, self.open.claim, peeked)?
        };
        if claimed.len() < count {
            // Another job has them just now; a later look finds them again.
            exhausted = true;
        } else if exhausted && mark > 0 && !queue::is_held_back(tx, place, bin)? {
            exhausted = bins::unmark(tx, part, Marked { job: self.job.id, bin, mark })?;
        }
        let claimed = self.with_documents(tx, claimed)?;
        done.claimed.push((want, claimed, exhausted));
        Ok(())
    }

    fn with_documents(&self, tx: &mut Tx<'_>, entries: Vec<Entry>) -> Result<Vec<Claimed>> {
        let keys: Vec<DocHash> = entries.iter().map(|entry| entry.dochash).collect();
        let known = documents::load(tx, self.lease.part, self.job.connection, &keys)?;
        let mut known: HashMap<DocHash, Document> =
            known.into_iter().map(|document| (document.dochash, document)).collect();
        for entry in &entries {
            if let Some(document) = known.remove(&entry.dochash) {
                let document = document.if_damaged_anew(&entry.docid, self.now_ms);
                known.insert(entry.dochash, document);
            }
        }
        let ends = entries.iter().filter(|entry| entry.action == Action::Expire);
        let ends: Vec<DocHash> = ends.map(|entry| entry.dochash).collect();
        if !ends.is_empty() {
            // What another job keeps ends for this one only.
            let shared = sweep::shared(tx, self.place(), self.job.connection, &ends)?;
            known.retain(|dochash, _| !shared.contains(dochash));
        }
        let token = self.lease.token;
        let mut far: HashMap<DocHash, String> = match &self.job.hops {
            Some(rules) => rules.too_far_among(tx, self.place(), &keys)?.into_iter().collect(),
            None => HashMap::new(),
        };
        let mut data = match self.job.carries {
            true => carrydown::data(tx, self.place(), &keys)?,
            false => HashMap::new(),
        };
        let with = |entry: Entry| {
            let known = known.remove(&entry.dochash).map(Box::new);
            let too_far = far.remove(&entry.dochash);
            let data = data.remove(&entry.dochash).unwrap_or_default();
            Claimed { entry, known, token, too_far, data }
        };
        Ok(entries.into_iter().map(with).collect())
    }
}

fn woken(tx: &mut Tx<'_>, part: Part, raised: &BTreeSet<BinId>) -> Result<Vec<Bin>> {
    let keys: Vec<BinId> = raised.iter().copied().collect();
    bins::load(tx, part, &keys)
}

/// Whether the turn has already happened; if so, what it claimed.
fn recover(tx: &mut Tx<'_>, turn: &Turn, done: &mut Done) -> Result<bool> {
    leases::fence(tx, &turn.lease)?;
    let part = turn.lease.part;
    let committed = match &turn.commit {
        Some((chunk, _)) => chunks::is_committed(tx, part, chunk.id)?,
        None => false,
    };
    let mut held: HashSet<QueueId> = turn.active.iter().copied().collect();
    if let (false, Some((_, batch))) = (committed, &turn.commit) {
        held.extend(batch.settled.iter().map(|it| it.id));
    }
    let mut entries = queue::active_in(tx, turn.place(), turn.open.claim, ACTIVE_MAX)?;
    entries.retain(|entry| !held.contains(&entry.id));
    // It may be open though nothing could be claimed into it.
    done.is_open = chunks::is_open(tx, part, turn.open.id)?;
    if !committed && entries.is_empty() {
        return Ok(false);
    }
    for want in &turn.wants {
        let (mine, rest): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.bin == want.host.bin);
        entries = rest;
        let claimed = turn.with_documents(tx, mine)?;
        done.claimed.push((*want, claimed, false));
    }
    if let Some(sweep) = turn.sweep {
        // What no want has asked for was swept.
        done.swept = turn.with_sharing(tx, sweep, std::mem::take(&mut entries))?;
    }
    if entries.is_empty() {
        return Ok(true);
    }
    Err(Error::Refused(format!("chunk {} holds documents nobody asked for", turn.open.id)))
}
