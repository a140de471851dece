//! Looking at the queue: the documents of a job page by page, in the order of an
//! index, and all that is known of one of them.
//!
//! Invariants: a page costs the rows it returns, however long the queue is, because
//! each state is walked along an index and nothing is left out on the way that the
//! index does not leave out; a walk that goes on behind the last row's [`Key`] sees
//! every document that stayed where it was, once.

use super::{Place, State};
use crate::ids::{BinId, ChunkId, ConnectionId, JobId, Part, QueueId, Run};
use crate::value::Row;
use crate::{Result, Tx, Value};
use page::ids::DocHash;

/// Jobs that are shown for one document.
const JOBS_MAX: u32 = 100;
/// Events that are shown for one document.
const EVENTS_MAX: u32 = 10;

/// A document of a job as people see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The row.
    pub id: QueueId,
    /// Its job.
    pub job: JobId,
    /// Its bin.
    pub bin: BinId,
    /// Its identifier: for the web, the canonical URL.
    pub docid: String,
    /// Where it stands.
    pub state: String,
    /// What is to be done: `fetch`, `expire`, `clean`, `delete`.
    pub action: String,
    /// Why it stands there: a short code.
    pub reason: Option<String>,
    /// The reason in words.
    pub detail: Option<String>,
    /// Its place in the bin's order.
    pub priority: f64,
    /// Links from the nearest seed.
    pub hops: i64,
    /// The last run that named it.
    pub seen_run: Run,
    /// The last run that processed it.
    pub done_run: Option<Run>,
    /// The last run whose seeds named it.
    pub seed_run: Option<Run>,
    /// When it falls due.
    pub check_ms: Option<i64>,
    /// Retries that are left, while it is failing.
    pub failcount: Option<i64>,
    /// The chunk that has it, while it is active.
    pub chunk: Option<ChunkId>,
    /// Who named it first: the part and the key.
    pub parent: Option<(Part, DocHash)>,
    /// When it was first named.
    pub added_ms: i64,
    /// What came of the last look at it.
    pub outcome: Option<String>,
    /// The status of the last answer.
    pub status: Option<i64>,
    /// When it was last looked at.
    pub checked_ms: Option<i64>,
}

const LISTED: &str = "q.id, q.jobid, q.bin, q.docid, q.state, q.action, q.reason, q.detail, \
    q.docpriority, q.hops, q.seen_run, q.done_run, q.seed_run, q.checktime, q.failcount, q.chunk, \
    q.parentpart, q.parenthash, q.added_ms, d.outcome, d.httpstatus, d.checked_ms";

impl Listed {
    fn from_row(row: &Row<'_>) -> Result<Listed> {
        Ok(Listed {
            id: row.get(0)?,
            job: row.get(1)?,
            bin: row.get(2)?,
            docid: row.get(3)?,
            state: row.get(4)?,
            action: row.get(5)?,
            reason: row.get(6)?,
            detail: row.get(7)?,
            priority: row.get(8)?,
            hops: row.get(9)?,
            seen_run: row.get(10)?,
            done_run: row.get(11)?,
            seed_run: row.get(12)?,
            check_ms: row.get(13)?,
            failcount: row.get(14)?,
            chunk: row.get(15)?,
            parent: row.get::<Option<Part>>(16)?.zip(row.get(17)?),
            added_ms: row.get(18)?,
            outcome: row.get(19)?,
            status: row.get(20)?,
            checked_ms: row.get(21)?,
        })
    }

    /// Where a walk of this state stands behind this row.
    pub fn key(&self, state: Option<State>) -> Key {
        let run = self.done_run.map_or(i64::MIN, |run| run.0);
        let number = match state {
            Some(State::Waiting) => self.check_ms.unwrap_or(i64::MIN),
            Some(State::Active) => self.chunk.map_or(i64::MIN, |chunk| chunk.0),
            _ => self.bin.0,
        };
        let reason = self.reason.clone().unwrap_or_default();
        Key { number, run, priority: self.priority, reason, id: self.id.0 }
    }
}

/// A place in the order of a walk. Which fields count depends on the state.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Key {
    /// The bin, the check time or the chunk.
    pub number: i64,
    /// The run that processed it.
    pub run: i64,
    /// The priority in its bin.
    pub priority: f64,
    /// The reason's code.
    pub reason: String,
    /// The row.
    pub id: i64,
}

impl Key {
    /// Before everything.
    pub fn first() -> Key {
        let least = i64::MIN;
        Key { number: least, run: least, priority: f64::MIN, reason: String::new(), id: least }
    }
}

/// What is walked. A walk takes the nearest index, and so may bring more than was
/// asked for: documents of other states for `Done`, of other bins for all but `Ready`
/// and `Done`, with other reasons for all but `Cut`. The caller leaves them out.
#[derive(Debug, Clone, PartialEq)]
pub struct Walk {
    /// The job and the part.
    pub place: Place,
    /// The job's connection, whose documents are looked up.
    pub connection: ConnectionId,
    /// Documents of this state; `None` walks all, in order of arrival.
    pub state: Option<State>,
    /// Documents of this bin.
    pub bin: Option<BinId>,
    /// Documents with this reason.
    pub reason: Option<String>,
}

/// The next documents of a walk, behind a key.
pub fn list(tx: &mut Tx<'_>, walk: &Walk, after: &Key, limit: u32) -> Result<Vec<Listed>> {
    let (condition, order, position) = position(walk, after);
    let mut values: Vec<Value<'_>> =
        vec![walk.place.part.into(), walk.place.job.into(), walk.connection.into(), limit.into()];
    values.extend(position);
    tx.query(&page_text(condition, order), &values, Listed::from_row)
}

fn page_text(condition: &str, order: &str) -> String {
    format!(
        "SELECT {LISTED} FROM queue q
         LEFT JOIN documents d ON d.part = q.part AND d.dochash = q.dochash
                              AND d.connectionid = $3
         WHERE q.part = $1 AND q.jobid = $2 AND {condition}
         ORDER BY {order} LIMIT $4"
    )
}

/// What is behind a key in a walk's order: the condition, the order, and the values
/// from `$5` on. Each is what an index was made for; see `migrations/queue.sql`.
fn position<'a>(walk: &'a Walk, after: &'a Key) -> (&'static str, &'static str, Vec<Value<'a>>) {
    let (number, run): (Value<'_>, Value<'_>) = (after.number.into(), after.run.into());
    let (priority, id): (Value<'_>, Value<'_>) = (after.priority.into(), after.id.into());
    match (walk.state, walk.bin, &walk.reason) {
        (None, ..) => ("q.id > $5", "q.id", vec![id]),
        (Some(State::Ready), None, _) => (
            "q.state = 'ready' AND (q.bin, q.docpriority, q.id) > ($5, $6, $7)",
            "q.bin, q.docpriority, q.id",
            vec![number, priority, id],
        ),
        (Some(State::Ready), Some(bin), _) => (
            "q.state = 'ready' AND q.bin = $5 AND (q.docpriority, q.id) > ($6, $7)",
            "q.docpriority, q.id",
            vec![bin.into(), priority, id],
        ),
        (Some(State::Waiting), ..) => (
            "q.state = 'waiting' AND (q.checktime, q.id) > ($5, $6)",
            "q.checktime, q.id",
            vec![number, id],
        ),
        (Some(State::Active), ..) => {
            ("q.state = 'active' AND (q.chunk, q.id) > ($5, $6)", "q.chunk, q.id", vec![number, id])
        }
        (Some(State::Done), None, _) => (
            "q.done_run IS NOT NULL AND q.state IN ('done', 'failed', 'cut')
             AND (q.bin, q.done_run, q.id) > ($5, $6, $7)",
            "q.bin, q.done_run, q.id",
            vec![number, run, id],
        ),
        (Some(State::Done), Some(bin), _) => (
            "q.done_run IS NOT NULL AND q.state IN ('done', 'failed', 'cut')
             AND q.bin = $5 AND (q.done_run, q.id) > ($6, $7)",
            "q.done_run, q.id",
            vec![bin.into(), run, id],
        ),
        (Some(State::Cut), _, None) => (
            "q.state = 'cut' AND (q.reason, q.id) > ($5, $6)",
            "q.reason, q.id",
            vec![(&after.reason).into(), id],
        ),
        (Some(State::Cut), _, Some(reason)) => {
            ("q.state = 'cut' AND q.reason = $5 AND q.id > $6", "q.id", vec![reason.into(), id])
        }
        (Some(State::Failed), ..) => ("q.state = 'failed' AND q.id > $5", "q.id", vec![id]),
    }
}

/// A document in every job that knows it.
pub fn in_jobs(tx: &mut Tx<'_>, part: Part, dochash: DocHash) -> Result<Vec<Listed>> {
    tx.query(
        &format!(
            "SELECT {LISTED} FROM queue q
             LEFT JOIN job_definitions j ON j.id = q.jobid
             LEFT JOIN documents d ON d.part = q.part AND d.dochash = q.dochash
                                  AND d.connectionid = j.connectionid
             WHERE q.part = $1 AND q.dochash = $2 ORDER BY q.jobid LIMIT $3"
        ),
        &[part.into(), (&dochash).into(), JOBS_MAX.into()],
        Listed::from_row,
    )
}

/// The identifier of a document by its key, if any job knows it.
pub fn docid_of(tx: &mut Tx<'_>, (part, dochash): (Part, DocHash)) -> Result<Option<String>> {
    tx.query_opt(
        "SELECT docid FROM queue WHERE part = $1 AND dochash = $2 ORDER BY jobid LIMIT 1",
        &[part.into(), (&dochash).into()],
        |row| row.get(0),
    )
}

/// Events in play that a document waits for.
pub fn waits_for(tx: &mut Tx<'_>, part: Part, id: QueueId) -> Result<Vec<String>> {
    tx.query(
        "SELECT p.eventname FROM prereqevents p JOIN events e ON e.name = p.eventname
         WHERE p.part = $1 AND p.owner = $2 ORDER BY p.eventname LIMIT $3",
        &[part.into(), id.into(), EVENTS_MAX.into()],
        |row| row.get(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{DocumentId, NodeId};
    use crate::tables::chunks;
    use crate::tables::documents::{self, Document};
    use crate::tables::leases::{self, Asking};
    use crate::tables::queue::{
        Adding, Candidate, Reason, Settled, Settlement, add, claim, load, settle,
    };
    use crate::testing::{both_databases, on_sqlite};
    use crate::{Db, Error};
    use std::collections::BTreeSet;

    const PLACE: Place = Place { part: Part(0), job: JobId(1) };
    const RUN: Run = Run(1);

    fn candidate(number: i64, cut: Option<&'static str>) -> Candidate {
        let host = format!("h{}.example", number % 3);
        let docid = format!("http://{host}/{number}");
        Candidate {
            id: QueueId(number),
            dochash: DocHash::of(&docid),
            docid,
            bin: BinId(number % 3),
            bin_name: host,
            priority: (number % 5) as f64 / 7.0,
            hops: 1,
            redirects: 0,
            seed: false,
            parent: Some((Part(0), DocHash::of("http://parent.example/"))),
            cut,
        }
    }

    fn adding(place: Place, now_ms: i64) -> Adding {
        Adding { place, run: RUN, now_ms, room: None }
    }

    /// Ten documents in each state.
    fn fill(db: &Db) -> Result<()> {
        let mut all: Vec<Candidate> = (0..50).map(|number| candidate(number, None)).collect();
        all.extend((50..55).map(|number| candidate(number, Some("scope"))));
        all.extend((55..60).map(|number| candidate(number, Some("hops"))));
        let asking = Asking {
            node: NodeId(1),
            node_name: "n".into(),
            now_ms: 0,
            lease_ms: 1_000,
            skew_ms: 0,
        };
        let lease = db
            .write(move |tx| leases::take(tx, PLACE.part, "crawl", &asking))?
            .ok_or_else(|| Error::Refused("the lease is free".into()))?;
        db.write(move |tx| {
            add(tx, adding(PLACE, 7), &all)?;
            for (chunk, first) in [(ChunkId(900), 10), (ChunkId(901), 40)] {
                chunks::open(tx, &lease, (chunk, PLACE.job, RUN), 0)?;
                let last = if first == 10 { 40 } else { 50 };
                let ids: Vec<QueueId> = (first..last).map(QueueId).collect();
                let peeked = load(tx, PLACE, &ids)?;
                claim(tx, PLACE, chunk, peeked)?;
            }
            let trouble = || Reason::new("http-503", Some("the server answered with status 503"));
            let to = |number: i64| match number {
                10..20 => Settlement::Done,
                20..30 => Settlement::Failed(trouble()),
                _ => Settlement::Retry {
                    check_ms: 1_000 - number % 4,
                    failcount: Some(2),
                    failtime: None,
                    reason: trouble(),
                },
            };
            let settled: Vec<Settled> = (10..40)
                .map(|number| Settled { id: QueueId(number), generation: 1, to: to(number) })
                .collect();
            settle(tx, PLACE, (ChunkId(900), RUN), &settled)
        })
    }

    /// Walks to the end in pages of three; leaves out what was not asked for.
    fn walked(db: &Db, walk: &Walk) -> Result<Vec<i64>> {
        let (mut after, mut found) = (Key::first(), Vec::new());
        loop {
            let (step, key) = (walk.clone(), after.clone());
            let page = db.read(move |tx| list(tx, &step, &key, 3))?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.key(walk.state);
            let asked = |row: &&Listed| {
                walk.state.is_none_or(|state| state.name() == row.state)
                    && walk.bin.is_none_or(|bin| bin == row.bin)
                    && (walk.reason.is_none() || walk.reason == row.reason)
            };
            found.extend(page.iter().filter(asked).map(|row| row.id.0));
        }
    }

    fn walk(state: Option<State>) -> Walk {
        Walk { place: PLACE, connection: ConnectionId(1), state, bin: None, reason: None }
    }

    #[test]
    fn every_state_is_walked_to_its_end_and_nothing_comes_twice() {
        both_databases(|db| {
            fill(db)?;
            assert_eq!(walked(db, &walk(None))?, (0..60).collect::<Vec<i64>>());
            let mut seen = BTreeSet::new();
            for state in State::ALL {
                let found = walked(db, &walk(Some(state)))?;
                assert_eq!(found.len(), 10, "{state:?}");
                seen.extend(found);
            }
            assert_eq!(seen.len(), 60);
            let other = Walk { place: Place { job: JobId(2), ..PLACE }, ..walk(None) };
            assert_eq!(walked(db, &other)?, [] as [i64; 0]);
            Ok(())
        });
    }

    #[test]
    fn a_walk_can_be_narrowed_to_a_bin_or_a_reason() {
        both_databases(|db| {
            fill(db)?;
            let of_bin = Walk { bin: Some(BinId(1)), ..walk(Some(State::Done)) };
            assert_eq!(walked(db, &of_bin)?, [10, 13, 16, 19]);
            let hops = Walk { reason: Some("hops".into()), ..walk(Some(State::Cut)) };
            assert_eq!(walked(db, &hops)?, [55, 56, 57, 58, 59]);
            let both = Walk { bin: Some(BinId(0)), reason: Some("http-503".into()), ..walk(None) };
            assert_eq!(walked(db, &both)?, [21, 24, 27, 30, 33, 36, 39]);
            Ok(())
        });
    }

    #[test]
    fn every_walk_follows_an_index_and_sorts_nothing() {
        on_sqlite(|db| {
            let states = State::ALL.into_iter().map(Some).chain([None]);
            for (state, narrow) in states.flat_map(|state| [(state, false), (state, true)]) {
                let (bin, reason) = (narrow.then_some(BinId(1)), narrow.then(|| "x".to_owned()));
                let walk = Walk { bin, reason, ..walk(state) };
                let plan: Vec<String> = db.read(move |tx| {
                    let key = Key::first();
                    let (condition, order, position) = position(&walk, &key);
                    let text = format!("EXPLAIN QUERY PLAN {}", page_text(condition, order));
                    let mut values: Vec<Value<'_>> = vec![1.into(), 1.into(), 1.into(), 9.into()];
                    values.extend(position);
                    tx.query(&text, &values, |row| row.get(3))
                })?;
                let indexed = plan.iter().all(|step| step.starts_with("SEARCH"));
                assert!(indexed, "{state:?} narrow: {narrow}: {plan:?}");
            }
            Ok(())
        });
    }

    #[test]
    fn a_document_is_shown_in_every_job_with_what_came_of_it() {
        both_databases(|db| {
            fill(db)?;
            let docid = candidate(20, None).docid;
            let hash = DocHash::of(&docid);
            let mut document = Document::new(DocumentId(1), hash, docid.clone(), 5);
            document.http_status = Some(503);
            db.write(move |tx| {
                documents::save(tx, PLACE.part, ConnectionId(1), std::slice::from_ref(&document))?;
                let again = Candidate { id: QueueId(1_000), ..candidate(20, None) };
                let place = Place { job: JobId(2), ..PLACE };
                add(tx, adding(place, 8), &[again]).map(|_| ())
            })?;
            let found = db.read(move |tx| in_jobs(tx, PLACE.part, hash))?;
            let states: Vec<_> = found.iter().map(|it| (it.job.0, it.state.as_str())).collect();
            assert_eq!(states, [(1, "failed"), (2, "ready")]);
            assert_eq!(found[0].reason.as_deref(), Some("http-503"));
            assert_eq!(found[0].added_ms, 7);
            let listed = db.read(|tx| list(tx, &walk(Some(State::Failed)), &Key::first(), 1))?;
            assert_eq!((listed[0].status, listed[0].checked_ms), (Some(503), Some(5)));
            let name = db.read(move |tx| docid_of(tx, (PLACE.part, hash)))?;
            assert_eq!(name, Some(docid));
            assert_eq!(db.read(|tx| docid_of(tx, (Part(1), DocHash::of("x"))))?, None);
            Ok(())
        });
    }
}
