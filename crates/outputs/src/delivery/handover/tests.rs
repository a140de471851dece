//! Ownership against a model: whatever is decided, whoever delivers at the same time, and
//! after whichever step a delivery is cut off, in the end the output has under each URI what
//! a document that is sent there now says, and nothing else.

use super::super::carry::Carrier;
use super::super::{Listener, ROLE};
use super::*;
use crate::rights::Claimant as Deliverer;
use page::ids::DocHash;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use store::dialect::Dialect;
use store::ids::{CommitNumber, ConnectionId, DocumentId, IdMaker, JobId};
use store::objects::{Location, Objects};
use store::panics::Faults;
use store::patience::Patience;
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::documents::{self, Document};
use store::tables::ingests::{Due, Ingest, Move, PendingDecision};
use store::tables::jobs::{self, Job};
use store::tables::leases::{Lease, LeaseRequest};
use store::tables::nodes::{self, NewNode};
use store::tables::outlets::OutputOpening;
use store::tables::pipelines::{self, PipelineStage, StageKind};
use store::tables::settings;
use store::testing::both_databases;
use store::{Db, clock};

const OUTPUT: ConnectionId = ConnectionId(5);
const URIS: [&str; 2] = ["http://a.example/1", "http://b.example/2"];
/// Documents by the connections and the parts that they are of.
const DOCUMENTS: [(i64, i64); 4] = [(1, 0), (2, 0), (2, 1), (1, 2)];
const PARTS: usize = 3;
/// A version that the output does not want.
const UNWANTED: i64 = 4;

struct Quiet;

impl Listener for Quiet {
    fn patience(&self, _job: JobId) -> Patience {
        Patience { retries: 2, retry_ms: 10, most_ms: 1_000 }
    }

    fn delivered(&self) {}

    fn gave_up(&self, _job: JobId, why: &str) {
        panic!("{why}");
    }

    fn waits_for(&self, _why: Option<String>) {}
}

/// An output that keeps a number for each URI: which document it is of, and the version.
#[derive(Default)]
struct VersionsOutput(BTreeMap<String, i64>);

impl Output for VersionsOutput {
    fn wants(&self) -> Wants {
        Wants::Name
    }

    fn apply(
        &mut self,
        _spec: &str,
        operations: &[Operation],
    ) -> std::result::Result<Vec<Outcome>, Unavailable> {
        let mut outcomes = Vec::new();
        for operation in operations {
            for uri in operation.stale.iter().chain([&operation.uri]) {
                self.0.remove(uri);
            }
            let number = operation.content.as_ref().and_then(|it| it.length);
            outcomes.push(match number {
                Some(number) if number % 10 == UNWANTED => {
                    Outcome::Rejected { code: "UNWANTED", detail: String::new() }
                }
                Some(number) => {
                    self.0.insert(operation.uri.clone(), number);
                    Outcome::Taken
                }
                None => Outcome::Taken,
            });
        }
        Ok(outcomes)
    }
}

/// A delivery for a part, and the step that it has come to.
struct Running {
    load: Load,
    handover: Handover,
    step: usize,
}

struct World {
    db: Db,
    context: DeliveryContext,
    homes: Homes,
    carrier: Carrier,
    output: VersionsOutput,
    seq: i64,
    now_ms: i64,
    /// What is sent now: where, and in which version.
    sent: HashMap<usize, (usize, i64)>,
    running: [Option<Running>; PARTS],
    _folder: tempfile::TempDir,
}

impl World {
    fn new(db: &Db) -> Result<World> {
        let folder = tempfile::tempdir().expect("a folder");
        let node = NewNode {
            name: "one".to_owned(),
            roles: "crawl".to_owned(),
            address: None,
            version: "0".to_owned(),
        };
        let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
        let claimant = Deliverer {
            db: db.clone(),
            ids: Arc::new(IdMaker::new(node)?),
            node_name: "one".to_owned(),
            lease_ms: 1_000,
            skew_ms: 0,
        };
        let objects = Objects::open(&Location::Directory(folder.path().to_owned()))?;
        let context = DeliveryContext {
            db: db.clone(),
            objects,
            claimant,
            poll_ms: 100,
            faults: Faults::default(),
        };
        db.write(|tx| {
            settings::freeze(tx, 4)?;
            for id in [1, 2] {
                let it = Connection::new(ConnectionId(id), &format!("source {id}"), "files");
                connections::save(tx, ConnectionKind::Repository, &it, 1)?;
                jobs::save(tx, &Job::new(JobId(id), &format!("job {id}"), ConnectionId(id)), 1)?;
            }
            let it = Connection::new(OUTPUT, "out", "null");
            connections::save(tx, ConnectionKind::Output, &it, 1)?;
            for id in [1, 2] {
                pipelines::replace(tx, JobId(id), &[stage()], 1)?;
            }
            Ok(())
        })?;
        Ok(World {
            db: db.clone(),
            homes: db.read(Homes::load)?,
            carrier: Carrier::new(context.clone(), Arc::new(Quiet)),
            context,
            output: VersionsOutput::default(),
            seq: 0,
            now_ms: 0,
            sent: HashMap::new(),
            running: [None, None, None],
            _folder: folder,
        })
    }

    /// A commit decides on a document: it is sent, or not any more.
    fn decide(&mut self, number: usize, sent: Option<(usize, i64)>) -> Result<()> {
        self.seq += 1;
        let (connection, part) = DOCUMENTS[number];
        let (connection, part, seq) = (ConnectionId(connection), Part(part), self.seq);
        let (job, id) = (JobId(connection.0), self.context.claimant.ids.next());
        let docid = format!("document {number}");
        self.db.write(move |tx| {
            let dochash = DocHash::of(&docid);
            let before = ingests::load(tx, part, OUTPUT, connection, &[dochash])?.pop();
            let mut row = match (&before, sent) {
                (None, None) => return Ok(()),
                (known, _) => known.clone().unwrap_or_else(|| Ingest::new(id, connection, dochash)),
            };
            let Some((uri, version)) = sent else {
                let has_nothing = row.uri.is_none() && row.stale_uris.is_none();
                row.pending = Some(PendingDecision::new(Decision::Remove, CommitNumber(seq), job));
                let after = Some(row).filter(|_| !has_nothing);
                return ingests::save(tx, part, OUTPUT, &[Move { before, after }]);
            };
            if let Some(old) = row.uri.take().filter(|old| old != URIS[uri]) {
                let stale = row.stale_uris.take().map(|it| it + "\n").unwrap_or_default();
                row.stale_uris = Some(stale + &old);
            }
            row.uri = Some(URIS[uri].to_owned());
            row.uri_hash = Some(DocHash::of(URIS[uri]).0.to_vec());
            row.ways = Some(job.0.to_string());
            row.pending = Some(PendingDecision::new(Decision::Update, CommitNumber(seq), job));
            let mut document = Document::new(DocumentId(id), dochash, docid.clone(), 1);
            document.length = Some(content(number, version));
            documents::save(tx, part, connection, &[document])?;
            ingests::save(tx, part, OUTPUT, &[Move { before, after: Some(row) }])
        })?;
        match sent {
            Some(sent) => self.sent.insert(number, sent),
            None => self.sent.remove(&number),
        };
        Ok(())
    }

    /// Whoever delivers for a part is cut off, and somebody else begins anew.
    fn crash(&mut self, part: usize) {
        self.running[part] = None;
    }

    /// Each lease is over at once, so that the next one is to be had.
    fn lease(&mut self, part: Part) -> Result<Lease> {
        self.now_ms += 1;
        let (node, node_name) = (self.context.claimant.ids.node(), "one".to_owned());
        let asking = LeaseRequest { node, node_name, now_ms: self.now_ms, lease_ms: 0, skew_ms: 0 };
        let taken = self.db.write(move |tx| leases::take(tx, part, ROLE, &asking))?;
        Ok(taken.expect("nobody holds it"))
    }

    fn begin(&mut self, number: usize) -> Result<bool> {
        let part = Part(number as i64);
        let opening = OutputOpening {
            connection: OUTPUT,
            name: "out".to_owned(),
            classname: "null".to_owned(),
            config: "{}".to_owned(),
            maxcount: 1,
            version: 1,
            present: true,
        };
        let due = Due { part, output: OUTPUT };
        let load = Load { due, lease: self.lease(part)?, opening, output: None };
        let mut items = self.carrier.items(&load)?;
        if items.is_empty() {
            return Ok(false);
        }
        let tools = Tools { context: &self.context, load: &load, homes: &self.homes };
        let contents = &mut Contents::new();
        let handover = Handover::prepare(&tools, Wants::Name, contents, &mut items);
        let Ok(handover) = handover else { panic!("nothing is away") };
        self.running[number] = Some(Running { load, handover, step: 0 });
        Ok(true)
    }

    /// The next step of a delivery for a part. Returns whether there was one.
    fn step(&mut self, number: usize) -> Result<bool> {
        let Some(mut it) = self.running[number].take() else { return self.begin(number) };
        let tools = Tools { context: &self.context, load: &it.load, homes: &self.homes };
        match it.step {
            0 => it.handover.claim(&tools)?,
            1 => it.handover.send(&mut self.output).expect("it is there"),
            2 => it.handover.look_again(&tools)?,
            3 => it.handover.send_owners_again(&tools)?,
            4 => it.handover.drop_left(&tools)?,
            _ => {
                self.carrier.record(&it.load, it.handover.results(), 1)?;
                return Ok(true);
            }
        }
        it.step += 1;
        self.running[number] = Some(it);
        Ok(true)
    }

    /// Delivers whatever is left, and compares.
    fn settle(&mut self) -> Result<()> {
        for round in 0.. {
            assert!(round < 200, "it goes on for ever");
            let mut moved = false;
            for part in 0..PARTS {
                moved |= self.step(part)?;
            }
            if !moved {
                break;
            }
        }
        for (place, uri) in URIS.iter().enumerate() {
            let wanted: Vec<i64> = self
                .sent
                .iter()
                .filter(|(_, (uri, version))| *uri == place && *version != UNWANTED)
                .map(|(number, (_, version))| content(*number, *version))
                .collect();
            match self.output.0.get(*uri) {
                None => assert!(wanted.is_empty(), "{uri} is not there: {wanted:?}"),
                Some(kept) => assert!(wanted.contains(kept), "{uri}: {kept} of {wanted:?}"),
            }
        }
        let report = store::verify::verify(&self.db, &self.context.objects, false)?;
        assert_eq!(report.findings, [], "{:?}", self.sent);
        Ok(())
    }
}

/// The one stage of a job that sends everything to the output as it is.
fn stage() -> PipelineStage {
    PipelineStage {
        prerequisite: None,
        kind: StageKind::Output,
        connection: OUTPUT,
        description: None,
        spec: "{}".to_owned(),
    }
}

fn content(number: usize, version: i64) -> i64 {
    number as i64 * 10 + version
}

/// Numbers that look like chance, and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

#[test]
fn an_output_has_what_is_sent_now_whatever_comes_between() {
    both_databases(|db| {
        let mut world = World::new(db)?;
        let stories = if db.dialect() == Dialect::Sqlite { 60 } else { 15 };
        for story in 0..stories {
            let mut dice = Dice(story);
            for _ in 0..30 {
                match dice.below(10) {
                    0 | 1 => {
                        let number = dice.below(DOCUMENTS.len());
                        let sent = (dice.below(URIS.len()), dice.below(5) as i64);
                        world.decide(number, Some(sent))?;
                    }
                    2 => world.decide(dice.below(DOCUMENTS.len()), None)?,
                    3 => world.crash(dice.below(PARTS)),
                    _ => drop(world.step(dice.below(PARTS))?),
                }
            }
            world.settle()?;
        }
        Ok(())
    });
}

/// One takes a URI over from another while that one is delivered, after every step of both;
/// then the new owner leaves, with every step cut off once.
#[test]
fn a_uri_that_is_taken_over_and_left_is_never_lost_after_whichever_step() {
    both_databases(|db| {
        let mut world = World::new(db)?;
        for first in 0..7 {
            for cut in 0..7 {
                world.decide(0, Some((0, 1)))?;
                for _ in 0..first {
                    world.step(0)?;
                }
                world.decide(2, Some((0, 2)))?;
                for _ in 0..cut {
                    world.step(1)?;
                }
                world.crash(usize::from(cut % 2 == 0));
                world.settle()?;
                let owner = world.output.0[URIS[0]] / 10;
                let (owner, other) = if owner == 0 { (0, 2) } else { (2, 0) };
                world.decide(owner, None)?;
                let part = usize::try_from(DOCUMENTS[owner].1).expect("a small number");
                for _ in 0..cut {
                    world.step(part)?;
                }
                world.crash(part);
                world.settle()?;
                assert_eq!(world.output.0[URIS[0]] / 10, other as i64, "{first} {cut}");
                world.decide(other, None)?;
                world.settle()?;
                assert_eq!(world.output.0.len(), 0);
            }
        }
        Ok(())
    });
}

/// Documents that the output has from before there were claims: the next look claims what is
/// the same without a word to the output; one that leaves is removed, unless others claim
/// its URI.
#[test]
fn what_was_delivered_before_there_were_claims_is_claimed_in_silence_and_removed_in_order() {
    both_databases(|db| {
        let mut world = World::new(db)?;
        let forget_claims = |ownership: &'static str| {
            db.write(move |tx| {
                tx.execute("DELETE FROM claims", &[])?;
                tx.execute(
                    &format!("UPDATE ingests SET ways = NULL, ownership = {ownership}"),
                    &[],
                )?;
                store::testing::sum_rows(tx)
            })
        };
        world.decide(0, Some((0, 1)))?;
        world.settle()?;
        forget_claims("NULL")?;
        world.decide(0, Some((0, 1)))?;
        forget_claims("'unclaimed'")?;
        world.output.0.clear();
        while world.step(0)? {}
        assert_eq!(world.output.0.len(), 0, "nothing was sent");
        let count = |tx: &mut store::Tx<'_>| {
            tx.query_one("SELECT COUNT(*) FROM claims", &[], |row| row.get::<i64>(0))
        };
        assert_eq!(db.read(count)?, 1);

        // One that leaves without a claim makes room for the one that has come since.
        forget_claims("NULL")?;
        world.decide(2, Some((0, 2)))?;
        world.settle()?;
        world.decide(0, None)?;
        world.output.0.insert(URIS[0].to_owned(), content(0, 1));
        world.settle()?;
        assert_eq!(world.output.0[URIS[0]], content(2, 2), "it was sent again");
        forget_claims("NULL")?;
        world.decide(2, None)?;
        world.settle()?;
        assert_eq!(world.output.0.len(), 0, "nobody else claims it");
        Ok(())
    });
}
