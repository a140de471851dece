//! Beginning a run: the job is there as it was asked for, its seeds are queued, and
//! links are judged again when what decides about them has changed.
//!
//! Everything here needs no lease and can be repeated: a process that dies half way
//! leaves a run that the next one begins again. Invariant: when a run is begun, every
//! link of every stored document has been judged by the job's present settings.

use crate::ask_again;
use crate::conduct::{self, Attends, JobContext, Terms, takes_seeds};
use crate::definitions::{CONNECTOR, WebSpec};
use crate::job::{CrawlEnvironment, JobSource, JobWork, LinkOrigin};
use crate::lifecycle::{JobEvent, Model};
use crate::targets::targets_of;
use page::ids::DocHash;
use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::sync::Arc;
use store::chunkfile::document::DocumentRecord;
use store::chunkfile::facts::FactsStream;
use store::ids::{ChunkId, CommitNumber, ConnectionId, JobId, Part, QueueId, Run};
use store::objects::ChunkKey;
use store::panics::Faults;
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::job_states::{self, AttendedJob, JobState, Phase, RunKind};
use store::tables::jobs::{self, Job};
use store::tables::queue::{self, Candidate};
use store::tables::{chunks, documents, removals, settings, traps};
use store::{Db, Error, Result, clock, pack};

/// The repository connection that `crawl` jobs share unless they name another.
pub const CONNECTION: &str = "web";
/// Seeds that are queued in one go.
const SEEDS_AT_ONCE: usize = 10_000;
/// Chunks read at once when links are judged again.
const CHUNKS: u32 = 8;
/// Tallies forgotten at once.
const TALLIES_MAX: u32 = 1_000;
/// Bytes of a job's name.
pub const NAME_BYTES_MAX: usize = 255;

/// A run that was begun or joined, and its job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Begun {
    pub job: JobId,
    pub run: Run,
    /// Whether the run is new; otherwise it goes on.
    pub is_new: bool,
    /// Whether the job is new.
    pub is_new_job: bool,
    /// Whether the job was paused, and goes on.
    pub was_paused: bool,
    /// Documents that changed settings let in.
    pub let_in: u64,
}

/// What came of seeding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedResult {
    /// All seeds are queued. How far seeding has come.
    Done(Option<String>),
    /// The run takes none any more.
    Over,
}

/// What all jobs of a database share. `own` are the addresses of this program.
pub fn shared(db: &Db, own: Vec<std::net::SocketAddr>) -> Result<CrawlEnvironment> {
    let (suffixes, parts, installation) = db.read(|tx| {
        Ok((settings::suffix_list(tx)?, settings::parts(tx)?, settings::installation(tx)?))
    })?;
    store::ours::claim_installation(installation);
    let extractor = Arc::default();
    let faults = Faults::default();
    Ok(CrawlEnvironment { suffixes, parts, installation, own, extractor, faults })
}

/// Makes or edits a job, and begins its next run or goes on with the last. A job that is
/// paused goes on.
pub fn begin(at: &JobContext, terms: Terms, name: &str, spec: &WebSpec) -> Result<Begun> {
    let (job, is_new_job) = define(at, name, spec)?;
    let terms = Terms { attends: Attends::One(job.id), ..terms };
    let id = job.id;
    let begun = run(at, &job, spec, |rests| conduct::bring(at, terms, id, rests))?;
    Ok(Begun { is_new_job, ..begun })
}

/// The same in a process that works on all jobs: its conductor carries the job from state to
/// state, and looks when `wake` is called, which says no when the process is about to end.
pub fn begin_beside(
    at: &JobContext,
    name: &str,
    spec: &WebSpec,
    wake: &dyn Fn() -> bool,
) -> Result<Begun> {
    let (job, is_new_job) = define(at, name, spec)?;
    let id = job.id;
    let begun = run(at, &job, spec, |rests| conduct::wait_for(at, id, rests, wake))?;
    wake();
    Ok(Begun { is_new_job, ..begun })
}

/// Whether a job can be told to go on, or stands still.
fn rests(state: &JobState) -> bool {
    match state.phase {
        Phase::Active => {
            let is_pausing = state.paused && state.stopping;
            !(state.resuming || is_pausing)
        }
        Phase::Inactive | Phase::ShuttingDown => true,
        _ => false,
    }
}

/// Whether a run can be started: one that only sweeps what was approved can, too.
fn may_start(state: &JobState) -> bool {
    state.phase == Phase::Inactive || state.removals.only
}

/// Begins the next run of a job or goes on with the last; `bring` waits until the job is in a
/// state that satisfies.
fn run(
    at: &JobContext,
    job: &Job,
    spec: &WebSpec,
    bring: impl Fn(fn(&JobState) -> bool) -> Result<JobState>,
) -> Result<Begun> {
    ask_again::unblock_hosts(&at.db, job, clock::now_ms())?;
    let (id, mut is_new, mut was_paused) = (job.id, false, false);
    // A run that goes on may end, by others, before its new seeds are in; the next one
    // takes them then.
    loop {
        let state = bring(rests)?;
        let event = match state.phase {
            Phase::Inactive if is_new && state.error.is_some() => {
                return Err(Error::Refused(state.error.unwrap_or_default()));
            }
            _ if may_start(&state) => JobEvent::Start { minimal: false },
            _ if state.paused => JobEvent::Resume,
            _ => {
                if let Some(let_in) = join(at, job, spec, &state, is_new)? {
                    let (run, is_new_job) = (state.run, false);
                    return Ok(Begun { job: id, run, is_new, is_new_job, was_paused, let_in });
                }
                continue;
            }
        };
        let (now_ms, starts) = (clock::now_ms(), may_start(&state));
        // Refused when somebody else was faster; then it stands elsewhere by now.
        if at.db.write(move |tx| conduct::try_to(tx, id, &event, now_ms))?.is_some() {
            is_new |= starts;
            was_paused |= !starts;
        }
    }
}

/// Joins a run that is under way, in the name of this node, with the seeds and the
/// settings of now. Returns how many documents these let in; `None` if the run is over.
fn join(
    at: &JobContext,
    job: &Job,
    spec: &WebSpec,
    state: &JobState,
    is_new: bool,
) -> Result<Option<u64>> {
    let (id, node) = (job.id, at.ids.node());
    at.db.write(move |tx| job_states::attend(tx, id, node))?;
    if is_new || state.phase != Phase::Active {
        return Ok(Some(0));
    }
    ask_again::retry_documents(&at.db, id, state.run, spec, clock::now_ms())?;
    let (known, state) = (job.clone(), state.clone());
    let attended = at.db.read(move |tx| AttendedJob::new(tx, known.clone(), state.clone()))?;
    let work =
        JobWork::new(&attended, &at.shared).map_err(|bad| Error::Refused(bad.to_string()))?;
    let work = Arc::new(work);
    let admission = spec.admission();
    let judged = at.db.read(move |tx| job_states::admission(tx, id))?;
    let mut let_in = 0;
    if judged.as_ref() != Some(&admission) {
        let_in = judge_again(at, &work)?;
        at.db.write(move |tx| job_states::set_admission(tx, id, &admission))?;
    }
    Ok(matches!(seed(at, &work, None)?, SeedResult::Done(_)).then_some(let_in))
}

/// Forgets what was counted against traps, so that the next run follows again what
/// looked endless; the links of stored documents are judged anew when it begins.
pub fn reopen(db: &Db, job: JobId) -> Result<()> {
    let parts = db.read(settings::parts)?;
    for part in (0..i64::from(parts)).map(Part) {
        while db.write(move |tx| traps::forget(tx, part, job, TALLIES_MAX))?
            == u64::from(TALLIES_MAX)
        {}
    }
    db.write(move |tx| job_states::set_admission(tx, job, ""))
}

fn check_name(name: &str) -> Result<()> {
    let odd = name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control);
    if odd {
        return Err(Error::Refused(format!(
            "a job's name has 1 to {NAME_BYTES_MAX} bytes and no control characters"
        )));
    }
    Ok(())
}

/// The job's definition, made or edited. Of several processes that make it at the same
/// moment one does, and the others find it. Returns whether it is new, too.
pub fn define(at: &JobContext, name: &str, spec: &WebSpec) -> Result<(Job, bool)> {
    check_name(name)?;
    match define_once(at, name, spec) {
        Err(Error::Duplicate { .. }) => define_once(at, name, spec),
        defined => defined,
    }
}

fn define_once(at: &JobContext, name: &str, spec: &WebSpec) -> Result<(Job, bool)> {
    let (name, docspec, now_ms) = (name.to_owned(), spec.to_json(), clock::now_ms());
    let (job_id, connection_id) = (JobId(at.ids.next()), ConnectionId(at.ids.next()));
    at.db.write(move |tx| {
        let known = jobs::find(tx, &name)?;
        let is_new = known.is_none();
        let job = match known {
            Some(job) if job.docspec == docspec => return Ok((job, false)),
            Some(job) => Job { docspec: docspec.clone(), ..job },
            None => {
                let connection = web_connection(tx, connection_id, now_ms)?;
                Job { docspec: docspec.clone(), ..Job::new(job_id, &name, connection) }
            }
        };
        jobs::save(tx, &job, now_ms)?;
        Ok((job, is_new))
    })
}

fn web_connection(tx: &mut store::Tx<'_>, id: ConnectionId, now_ms: i64) -> Result<ConnectionId> {
    if let Some(known) = connections::find(tx, ConnectionKind::Repository, CONNECTION)? {
        return Ok(known.id);
    }
    let connection = Connection {
        config: crate::connectors::web::no_config(),
        maxcount: crate::connectors::max_connections(CONNECTOR),
        ..Connection::new(id, CONNECTION, CONNECTOR)
    };
    connections::save(tx, ConnectionKind::Repository, &connection, now_ms)?;
    Ok(id)
}

/// Queues the seeds; those that are there already are seen again. `since` is how far the
/// last seeding has come.
pub fn seed(at: &JobContext, work: &Arc<JobWork>, since: Option<&str>) -> Result<SeedResult> {
    let mut by_part: BTreeMap<Part, Vec<Candidate>> = BTreeMap::new();
    let (mut over, mut named) = (None, 0_u64);
    let mut name = |docid: String| {
        named += 1;
        let found = LinkOrigin { seed: true, ..LinkOrigin::default() };
        let (part, candidate) = work.candidate(QueueId(at.ids.next()), docid, found);
        by_part.entry(part).or_default().push(candidate);
        if by_part.values().map(Vec::len).sum::<usize>() >= SEEDS_AT_ONCE {
            let added = add(at, work, std::mem::take(&mut by_part));
            over = over.take().or(match added {
                Ok(Some(_)) => None,
                ended => Some(ended.map(|_| ())),
            });
        }
    };
    let now_ms = clock::now_ms();
    let version = match &work.source {
        JobSource::Web(web) => {
            web.spec.seeds.iter().cloned().for_each(&mut name);
            Some(now_ms.to_string())
        }
        JobSource::Other(repository) => {
            let job = work.id;
            let documents = at.db.read(move |tx| removals::documents(tx, job))?;
            repository.check_available(documents > 0)?;
            let version = repository.seed(since, now_ms, &mut name)?;
            let names_all = work.model() == Model::All || work.kind == RunKind::Full;
            if named == 0 && names_all && documents > 0 {
                return Err(empty_list(documents));
            }
            version
        }
    };
    if let Some(over) = over {
        return over.map(|()| SeedResult::Over);
    }
    Ok(match add(at, work, by_part)? {
        Some(_) => SeedResult::Done(version),
        None => SeedResult::Over,
    })
}

/// A list of documents that is empty all of a sudden is trouble of whoever made it.
fn empty_list(documents: i64) -> Error {
    Error::Unavailable {
        what: "the list of documents".to_owned(),
        reason: format!(
            "it returned no documents, but the job has {documents}; they are kept (if all of them \
             are really gone, delete the job)"
        ),
    }
}

/// Adds candidates to their parts, within the job's limit. Returns how many were let in;
/// `None` if the run is over, which whoever ends it does under the same lock.
fn add(
    at: &JobContext,
    work: &Arc<JobWork>,
    by_part: BTreeMap<Part, Vec<Candidate>>,
) -> Result<Option<u64>> {
    let mut let_in = 0;
    for (part, candidates) in by_part {
        let (work, now_ms) = (work.clone(), clock::now_ms());
        let added = at.db.write(move |tx| {
            let state = job_states::lock(tx, work.id)?;
            if !state.is_some_and(|it| it.run == work.run && takes_seeds(it.phase)) {
                return Ok(None);
            }
            work.add(tx, part, now_ms, &candidates, &[]).map(Some)
        })?;
        let Some(added) = added else { return Ok(None) };
        let_in += added.new + added.revived;
    }
    Ok(Some(let_in))
}

/// Judges the links of every stored document by the job's present settings, from the
/// facts of committed chunks: nothing is fetched for it.
fn judge_again(at: &JobContext, work: &Arc<JobWork>) -> Result<u64> {
    let mut let_in = 0;
    for part in (0..i64::from(work.shared.parts)).map(Part) {
        let mut seq = CommitNumber::NONE;
        loop {
            let found = at.db.read(move |tx| chunks::after(tx, part, seq, CHUNKS))?;
            let Some(last) = found.last() else { break };
            seq = last.seq;
            for chunk in found.into_iter().filter(|chunk| chunk.job == work.id) {
                let facts = pack::read_facts(&at.db, &at.objects, part, chunk.facts.clone())?;
                let Some(bytes) = facts else { continue };
                let key = ChunkKey::new(part, chunk.id)?;
                let mut records = Vec::new();
                for record in FactsStream::open(key, Cursor::new(bytes))? {
                    records.push(record?);
                }
                let added = add(at, work, links_of(at, work, part, chunk.id, records)?)?;
                let_in += added.unwrap_or(0);
            }
        }
    }
    Ok(let_in)
}

/// Links of the records of a chunk that are still the newest of their documents.
fn links_of(
    at: &JobContext,
    work: &JobWork,
    part: Part,
    chunk: ChunkId,
    records: Vec<DocumentRecord>,
) -> Result<BTreeMap<Part, Vec<Candidate>>> {
    let keys: Vec<DocHash> =
        records.iter().filter(|it| it.facts.is_some()).map(|it| it.dochash).collect();
    let (connection, place) = (work.connection, work.place(part));
    let (known, standings) = at.db.read(move |tx| {
        Ok((
            documents::load(tx, part, connection, &keys)?,
            queue::standings(tx, place, &keys)?.into_iter().collect::<HashMap<_, _>>(),
        ))
    })?;
    let newest: HashMap<DocHash, Option<i64>> = known
        .into_iter()
        .filter(|it| it.chunk == Some(chunk) && it.removed_ms.is_none())
        .map(|it| (it.dochash, it.ordinal))
        .collect();
    let mut by_part: BTreeMap<Part, Vec<Candidate>> = BTreeMap::new();
    for (ordinal, record) in (0..).zip(records) {
        let standing = standings.get(&record.dochash);
        let (Some(facts), Some(standing)) = (&record.facts, standing) else {
            continue;
        };
        if newest.get(&record.dochash) != Some(&Some(ordinal)) {
            continue;
        }
        let Some(web) = work.web() else { continue };
        let targets = targets_of(web, &record.docid, *standing, facts, &[]);
        for target in targets {
            let parent = Some((part, record.dochash));
            let hops = standing.hops + 1;
            let found = LinkOrigin { hops, parent, ..LinkOrigin::of(&target) };
            let (to, candidate) = work.candidate(QueueId(at.ids.next()), target.url, found);
            by_part.entry(to).or_default().push(candidate);
        }
    }
    Ok(by_part)
}

#[cfg(test)]
mod tests;
