//! The queue against a model: random work on both databases, and after every step
//! rows, counters and marks are what the model says.

mod cases;
mod claims;
mod roles;
mod scheduled;
mod states;
mod sweeping;

use super::*;
use crate::dialect::Dialect;
use crate::ids::{CommitNumber, NodeId};
use crate::tables::leases::{self, Lease, LeaseRequest};
use crate::tables::{bins, chunks, counters};
use crate::testing::{self, both_databases, each_case};
use crate::{Db, Error};
use proptest::prelude::*;
use std::collections::BTreeMap;

const JOB: JobId = JobId(1);
const BINS: i64 = 3;

fn hash(document: u8) -> DocHash {
    DocHash::of(&format!("http://host{}/{document}", i64::from(document) % BINS))
}

fn candidate(id: i64, document: u8, hops: i64, cut: Option<ReasonCode>) -> Candidate {
    let bin = i64::from(document) % BINS;
    let of_host =
        testing::candidate(id, format!("http://host{bin}/{document}"), &format!("host{bin}"));
    Candidate { bin: BinId(bin), hops, seed: hops == 0, cut, ..of_host }
}

fn lease(db: &Db, part: Part, start: i64) -> Result<Lease> {
    let asking = LeaseRequest {
        node: NodeId(start),
        node_name: "n".into(),
        now_ms: 0,
        lease_ms: 1_000,
        skew_ms: 0,
    };
    let taken = db.write(move |tx| leases::take(tx, part, "crawl", &asking))?;
    Ok(taken.expect("its own lease is granted"))
}

#[derive(Debug, Clone)]
enum Step {
    /// Names documents, each at a distance; beyond 2 hops they are cut.
    Add(Vec<(u8, i64)>),
    /// Claims up to so many documents of a bin into a new chunk.
    Claim(i64, u32),
    /// Commits the oldest open chunk; the number picks each document's fate.
    Commit(Vec<u8>),
    /// The oldest open chunk is given up, as after a crash.
    Abandon,
    /// Time passes and what is due wakes up.
    Wake(i64),
    NewRun,
    /// A carried value of a document changes.
    Carry(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let names = proptest::collection::vec((0..12u8, 0..5i64), 1..8);
    let step = prop_oneof![
        3 => names.prop_map(Step::Add),
        3 => (0..BINS, 1..6u32).prop_map(|(bin, limit)| Step::Claim(bin, limit)),
        3 => proptest::collection::vec(0..10u8, 6).prop_map(Step::Commit),
        1 => Just(Step::Abandon),
        1 => (1..200i64).prop_map(Step::Wake),
        1 => Just(Step::NewRun),
        1 => (0..12u8).prop_map(Step::Carry),
    ];
    proptest::collection::vec(step, 1..25)
}

fn claim_ids(tx: &mut Tx<'_>, place: Place, chunk: ChunkId, ids: &[QueueId]) -> Result<Vec<Entry>> {
    let peeked = load(tx, place, ids)?;
    claim(tx, place, chunk, peeked)
}

fn at(place: Place, run: Run, now_ms: i64) -> AddContext {
    AddContext { place, run, now_ms, room: None, requisites: Default::default() }
}

#[derive(Debug, Clone, PartialEq)]
struct QueuedRow {
    state: State,
    hops: i64,
    seen_run: i64,
    done_run: Option<i64>,
    chunk: Option<i64>,
    check_ms: Option<i64>,
    rescan: bool,
    reason_limits: bool,
    scheduled: bool,
}

impl QueuedRow {
    /// Settled by an older run than this one.
    fn is_older(&self, run: i64) -> bool {
        let settled = matches!(self.state, State::Done | State::Failed | State::Cut)
            || (self.state == State::Waiting && self.scheduled);
        settled && self.done_run.is_some_and(|done_run| done_run < run)
    }
}

struct Model {
    lease: Lease,
    place: Place,
    documents: BTreeMap<DocHash, QueuedRow>,
    open: Vec<(ChunkId, Vec<Entry>)>,
    run: i64,
    now_ms: i64,
    next_id: i64,
    commits: CommitNumber,
    starts: i64,
}

#[test]
fn the_queue_behaves_like_the_model() {
    both_databases(|db| {
        each_case(80, &steps(), |part, steps| drive(db, part, steps));
        Ok(())
    });
}

fn drive(db: &Db, part: Part, steps: &[Step]) -> Result<()> {
    let mut model = Model {
        lease: lease(db, part, 1)?,
        starts: 1,
        place: Place { part, job: JOB },
        documents: BTreeMap::new(),
        open: Vec::new(),
        run: 1,
        now_ms: 1_000,
        next_id: 1,
        commits: CommitNumber::NONE,
    };
    for step in steps {
        match step {
            Step::Add(named) => model.add(db, named)?,
            Step::Claim(bin, limit) => model.claim(db, BinId(*bin), *limit)?,
            Step::Commit(fates) => model.commit(db, fates)?,
            Step::Abandon => model.abandon(db)?,
            Step::Wake(ms) => model.wake(db, *ms)?,
            Step::NewRun => model.run += 1,
            Step::Carry(document) => model.carry(db, *document)?,
        }
        model.compare(db).map_err(|error| Error::Refused(format!("after {step:?}: {error}")))?;
    }
    Ok(())
}

impl Model {
    fn add(&mut self, db: &Db, named: &[(u8, i64)]) -> Result<()> {
        let first = self.next_id;
        self.next_id += named.len() as i64;
        let candidates: Vec<Candidate> = named
            .iter()
            .zip(first..)
            .map(|((document, hops), id)| {
                let reason = if id % 2 == 0 { ReasonCode::Hops } else { ReasonCode::Budget };
                candidate(id, *document, *hops, (*hops > 2).then_some(reason))
            })
            .collect();
        let (place, run, now_ms) = (self.place, Run(self.run), self.now_ms);
        let (mut new, mut revived) = (0, 0);
        let mut nearest: BTreeMap<DocHash, i64> = BTreeMap::new();
        for (document, hops) in named {
            let least = nearest.entry(hash(*document)).or_insert(*hops);
            *least = (*least).min(*hops);
        }
        for (key, hops) in nearest {
            match self.documents.get_mut(&key) {
                None => {
                    new += 1;
                    let cut = hops > 2;
                    let state = if cut { State::Cut } else { State::Ready };
                    self.documents.insert(
                        key,
                        QueuedRow {
                            state,
                            hops,
                            seen_run: self.run,
                            done_run: None,
                            chunk: None,
                            check_ms: None,
                            rescan: false,
                            reason_limits: cut,
                            scheduled: false,
                        },
                    );
                }
                Some(known) => {
                    known.hops = known.hops.min(hops);
                    known.seen_run = self.run;
                    if known.state == State::Cut && known.reason_limits && hops <= 2 {
                        known.state = State::Ready;
                        revived += 1;
                    } else if known.is_older(self.run) && hops <= 2 && !known.reason_limits {
                        (known.state, known.check_ms) = (State::Ready, None);
                    }
                }
            }
        }
        let again = candidates.clone();
        let added = db.write(move |tx| add(tx, at(place, run, now_ms), &candidates))?;
        assert_eq!((added.new, added.revived), (new, revived));
        let repeated = db.write(move |tx| add(tx, at(place, run, now_ms), &again))?;
        assert_eq!(repeated, AddResult::default(), "adding again changes nothing");
        Ok(())
    }

    fn claim(&mut self, db: &Db, bin: BinId, limit: u32) -> Result<()> {
        let (place, run, now_ms) = (self.place, Run(self.run), self.now_ms);
        let mut found = db.read(move |tx| peek_ready(tx, place, bin, limit))?;
        found.extend(db.read(move |tx| peek_older(tx, place, bin, run, limit))?);
        found.truncate(limit as usize);
        let chunk = ChunkId(self.next_id);
        self.next_id += 1;
        let (lease, peeked) = (self.lease.clone(), found.clone());
        let claimed = db.write(move |tx| {
            leases::fence(tx, &lease)?;
            chunks::open(tx, &lease, chunk, JOB, run, now_ms)?;
            claim(tx, place, chunk, peeked.clone())
        })?;
        assert_eq!(claimed.len(), found.len(), "what was peeked can be claimed by the holder");
        for entry in &claimed {
            let known = self.documents.get_mut(&entry.dochash).expect("it was added");
            assert!(known.state == State::Ready || known.is_older(self.run));
            (known.state, known.check_ms) = (State::Active, None);
            known.chunk = Some(chunk.0);
        }
        let (lease, peeked) = (self.lease.clone(), claimed.clone());
        let twice = db.write(move |tx| {
            leases::fence(tx, &lease)?;
            claim(tx, place, ChunkId(-1), peeked.clone())
        })?;
        assert_eq!(twice, [], "nothing is claimed twice");
        self.open.push((chunk, claimed));
        Ok(())
    }

    fn commit(&mut self, db: &Db, fates: &[u8]) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let (chunk, entries) = self.open.remove(0);
        let mut settled = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let to = self.settlement(fates[index % fates.len()]);
            self.book(entry, &to);
            settled.push(SettledDocument { id: entry.id, generation: self.commits.0, to });
        }
        let (lease, place, run, now_ms) =
            (self.lease.clone(), self.place, Run(self.run), self.now_ms);
        let summary = chunks::ChunkSummary {
            documents: settled.len() as i64,
            ..chunks::ChunkSummary::default()
        };
        let seq = db.write(move |tx| {
            let seq = leases::number_commit(tx, &lease)?;
            settle(tx, place, chunk, run, &settled)?;
            chunks::commit(tx, &lease, chunk, seq, &summary, now_ms)?;
            Ok(seq)
        })?;
        self.commits = self.commits.next();
        assert_eq!(seq, self.commits, "commits are numbered without gaps");
        Ok(())
    }

    fn settlement(&self, fate: u8) -> Settlement {
        let check_ms = self.now_ms + 50;
        match fate {
            0..=2 => Settlement::Done,
            3 => Settlement::Again { check_ms, action: Action::Fetch },
            4 => {
                let reason = Reason::new("503", Some("the server is busy"));
                Settlement::Retry { check_ms, failcount: Some(3), failtime: Some(9), reason }
            }
            5 => Settlement::Cut(Reason::new("robots", None)),
            6 => Settlement::Back { failcount: None, failtime: None },
            7 => Settlement::Unwanted(Reason::new("budget", None)),
            8 => Settlement::Stale,
            _ => Settlement::Deleted,
        }
    }

    fn book(&mut self, entry: &Entry, to: &Settlement) {
        let run = self.run;
        let stale = &self.documents[&entry.dochash];
        let gone = *to == Settlement::Stale && stale.done_run.is_none() && stale.seen_run < run;
        // One that is to be looked at again is, whatever came of it this time.
        let deleted = *to == Settlement::Deleted && !stale.rescan;
        if deleted || gone {
            self.documents.remove(&entry.dochash);
            return;
        }
        let known = self.documents.get_mut(&entry.dochash).expect("it was claimed");
        known.chunk = None;
        known.check_ms = None;
        known.reason_limits = false;
        known.scheduled = matches!(to, Settlement::Again { .. });
        match to {
            Settlement::Done => (known.state, known.done_run) = (State::Done, Some(run)),
            Settlement::Again { check_ms, .. } => {
                (known.state, known.done_run) = (State::Waiting, Some(run));
                known.check_ms = Some(*check_ms);
            }
            Settlement::Retry { check_ms, .. } => {
                (known.state, known.check_ms) = (State::Waiting, Some(*check_ms));
            }
            Settlement::Back { .. } => known.state = State::Ready,
            Settlement::Stale if known.seen_run >= run => known.state = State::Ready,
            Settlement::Stale => known.state = State::Done,
            Settlement::Unwanted(_) => (known.state, known.reason_limits) = (State::Cut, true),
            _ => (known.state, known.done_run) = (State::Cut, Some(run)),
        }
        let processed = matches!(
            to,
            Settlement::Done | Settlement::Again { .. } | Settlement::Cut(_) | Settlement::Deleted
        );
        if known.rescan && processed {
            (known.state, known.check_ms) = (State::Ready, None);
        }
        known.rescan = false;
    }

    fn abandon(&mut self, db: &Db) -> Result<()> {
        // A new holder, whose token is newer, finds every chunk of the old one.
        self.starts += 1;
        self.lease = lease(db, self.place.part, self.starts)?;
        let expected: usize = self.open.drain(..).map(|(_, entries)| entries.len()).sum();
        let (lease, now_ms) = (self.lease.clone(), self.now_ms);
        let freed = db.write(move |tx| {
            leases::fence(tx, &lease)?;
            chunks::abandon_stale(tx, &lease, now_ms, 1_000)
        })?;
        assert_eq!(freed, expected as u64);
        for known in self.documents.values_mut().filter(|known| known.state == State::Active) {
            (known.state, known.chunk) = (State::Ready, None);
        }
        Ok(())
    }

    fn wake(&mut self, db: &Db, ms: i64) -> Result<()> {
        self.now_ms += ms;
        let (place, now_ms) = (self.place, self.now_ms);
        let woken = db.write(move |tx| wake(tx, place, now_ms, 1_000))?;
        let mut expected = 0;
        for known in self.documents.values_mut() {
            if known.state == State::Waiting && known.check_ms.is_some_and(|due| due <= now_ms) {
                (known.state, known.check_ms) = (State::Ready, None);
                expected += 1;
            }
        }
        assert_eq!(woken, expected);
        let due = self.documents.values().filter_map(|known| known.check_ms).min();
        assert_eq!(db.read(move |tx| next_due(tx, place))?, due);
        Ok(())
    }

    fn carry(&mut self, db: &Db, document: u8) -> Result<()> {
        let (place, key) = (self.place, hash(document));
        let Some(known) = self.documents.get_mut(&key) else { return Ok(()) };
        if known.state == State::Active {
            known.rescan = true;
            db.write(move |tx| {
                tx.execute(
                    "UPDATE queue SET rescan = 1 WHERE part = $1 AND dochash = $2",
                    &[place.part.into(), (&key).into()],
                )
            })?;
        }
        Ok(())
    }

    /// Rows, counters and marks are what the model says.
    fn compare(&self, db: &Db) -> Result<()> {
        let place = self.place;
        let rows = db.read(move |tx| {
            tx.query(
                "SELECT dochash, state, hops, seen_run, done_run, chunk, checktime, rescan, bin
                 FROM queue WHERE part = $1 ORDER BY dochash LIMIT 1000",
                &[place.part.into()],
                |row| {
                    let state: String = row.get(1)?;
                    let known = (state, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
                    Ok((row.get(0)?, known, (row.get(6)?, row.get(7)?), row.get(8)?))
                },
            )
        })?;
        let expected: Vec<_> = self
            .documents
            .iter()
            .map(|(key, it)| {
                let known =
                    (it.state.name().to_owned(), it.hops, it.seen_run, it.done_run, it.chunk);
                (*key, known, (it.check_ms, it.rescan))
            })
            .collect();
        let found: Vec<(DocHash, _, (Option<i64>, bool))> =
            rows.iter().map(|(key, known, rest, _)| (*key, known.clone(), *rest)).collect();
        assert_eq!(found, expected);

        let counted = db.read(move |tx| count_rows(tx, place))?;
        let kept = db.read(move |tx| {
            tx.query(
                "SELECT name, value FROM counters WHERE part = $1 AND value <> 0 ORDER BY name LIMIT 9",
                &[place.part.into()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
        })?;
        assert_eq!(counted, kept, "counters equal counts");

        let known_bins = db.read(move |tx| bins::list(tx, place.part, BinId(-1), 100))?;
        for bin in known_bins {
            let documents = rows.iter().filter(|row| row.3 == bin.bin).count();
            assert_eq!(bin.documents, documents as i64, "a bin counts its documents");
        }
        let marked = db.read(move |tx| bins::marked(tx, place.part, JobId(0), BinId(-1), 100))?;
        for (_, known, _, bin) in &rows {
            let bin: BinId = *bin;
            let is_marked = marked.iter().any(|mark| mark.bin == bin);
            assert!(known.0 != "ready" || is_marked, "a bin with something ready is marked");
        }
        Ok(())
    }
}
