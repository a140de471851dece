//! Children have what their parents hand them, wherever a process dies in the middle, and
//! are looked at again exactly when that is something else.

use super::*;
use proptest::prelude::*;
use std::sync::Arc;
use store::ids::{ChunkId, JobId, NodeId, Run};
use store::tables::queue::{AddContext, Candidate, SettledDocument, Settlement};
use store::tables::{chunks, leases};
use store::testing::{both_databases, candidate};

const PARTS: i64 = 2;
const JOB: JobId = JobId(1);
const RUN: Run = Run(1);
const CHILDREN: u8 = 4;

/// Child, name, value.
type Gift = (u8, u8, u8);

fn key(number: u8) -> DocHash {
    DocHash([number + 1; 16])
}

fn part(number: u8) -> Part {
    Part(i64::from(number) % PARTS)
}

fn place(part: Part) -> Place {
    Place { part, job: JOB }
}

fn hands(gifts: &[Gift]) -> Hands {
    let mut hands = Hands::new();
    for (child, name, value) in gifts {
        let data = hands.entry((part(*child), key(*child))).or_default();
        data.entry(format!("name {name}")).or_default().insert(format!("value {value}"));
    }
    hands
}

/// All that a child has of all parents.
fn expected(parents: &BTreeMap<u8, Vec<Gift>>, child: u8) -> Data {
    let mut data = Data::new();
    for gifts in parents.values() {
        for (name, values) in hands(gifts).remove(&(part(child), key(child))).unwrap_or_default() {
            data.entry(name).or_default().extend(values);
        }
    }
    data
}

struct Stage<'a> {
    db: &'a Db,
    leases: Vec<Lease>,
}

impl Stage<'_> {
    /// Children are queued, and done with.
    fn new(db: &Db) -> Stage<'_> {
        for part in (0..PARTS).map(Part) {
            db.write(move |tx| {
                for table in ["carrydowns", "handed", "queue", "chunks", "counters", "bins"] {
                    tx.execute(&format!("DELETE FROM {table} WHERE part = $1"), &[part.into()])?;
                }
                tx.execute("DELETE FROM leases WHERE part = $1", &[part.into()])
            })
            .unwrap();
        }
        let take = |part| {
            let asking = leases::LeaseRequest {
                node: NodeId(1),
                node_name: "n".into(),
                now_ms: 0,
                lease_ms: 60_000,
                skew_ms: 0,
            };
            db.write(move |tx| leases::take(tx, part, "crawl", &asking)).unwrap().unwrap()
        };
        let stage = Stage { db, leases: (0..PARTS).map(|it| take(Part(it))).collect() };
        for child in 0..CHILDREN {
            let document = candidate(i64::from(child) + 1, format!("child {child}"), "bin");
            let candidate = Candidate { dochash: key(child), bin: BinId(1), hops: 1, ..document };
            let adding = AddContext {
                place: place(part(child)),
                run: RUN,
                now_ms: 0,
                room: None,
                requisites: Default::default(),
            };
            db.write(move |tx| queue::add(tx, adding, std::slice::from_ref(&candidate))).unwrap();
        }
        stage.finish_all();
        stage
    }

    fn lease(&self, part: Part) -> &Lease {
        &self.leases[usize::try_from(part.0).unwrap()]
    }

    /// Looks at all that is ready; returns which children that were.
    fn finish_all(&self) -> BTreeSet<DocHash> {
        let mut looked = BTreeSet::new();
        for part in (0..PARTS).map(Part) {
            let lease = self.lease(part).clone();
            looked.extend(
                self.db
                    .write(move |tx| {
                        let ready = queue::peek_ready(tx, place(part), BinId(1), 100)?;
                        let keys: Vec<DocHash> = ready.iter().map(|it| it.dochash).collect();
                        let chunk = ChunkId(7);
                        chunks::open(tx, &lease, chunk, JOB, RUN, 0)?;
                        let claimed = queue::claim(tx, place(part), chunk, ready)?;
                        let done: Vec<SettledDocument> = claimed
                            .iter()
                            .map(|it| SettledDocument {
                                id: it.id,
                                generation: 0,
                                to: Settlement::Done,
                            })
                            .collect();
                        queue::settle(tx, place(part), chunk, RUN, &done)?;
                        tx.execute("DELETE FROM chunks WHERE part = $1", &[part.into()])?;
                        Ok(keys)
                    })
                    .unwrap(),
            );
        }
        looked
    }

    /// A parent is read; a process that dies does so before its own part's transaction.
    fn read(&self, parent: u8, gifts: &[Gift], dies: bool) {
        let own = Part(i64::from(parent) % PARTS);
        let hands = HashMap::from([(key(100 + parent), hands(gifts))]);
        let over = HandingOver::plan(self.db, self.lease(own), place(own), &hands).unwrap();
        let over = Arc::new(over);
        let mut parts: Vec<Part> = over.parts().filter(|it| *it != own).collect();
        if !dies {
            parts.push(own);
        }
        for part in parts {
            let over = over.clone();
            self.db
                .write(move |tx| {
                    over.take(tx, place(part))?;
                    if part == own { over.record_sent(tx, place(own)) } else { Ok(()) }
                })
                .unwrap();
        }
    }

    fn data(&self, child: u8) -> Data {
        let found =
            self.db.read(move |tx| carrydown::data(tx, place(part(child)), &[key(child)])).unwrap();
        found.into_values().next().unwrap_or_default()
    }
}

#[test]
fn children_have_what_is_handed_and_hear_of_what_is_added_or_taken_away() {
    let gift = (0..CHILDREN, 0..2u8, 0..3u8);
    let step = (0..3u8, prop::collection::vec(gift, 0..5), any::<bool>());
    both_databases(|db| {
        let cases = ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() };
        let mut runner = proptest::test_runner::TestRunner::new(cases);
        runner
            .run(&prop::collection::vec(step.clone(), 1..12), |steps| {
                let (stage, mut parents) = (Stage::new(db), BTreeMap::new());
                for (parent, gifts, dies) in &steps {
                    let before: Vec<Data> =
                        (0..CHILDREN).map(|it| expected(&parents, it)).collect();
                    if *dies {
                        stage.read(*parent, &[(parent + 1, 0, 9)], true);
                    }
                    stage.read(*parent, gifts, false);
                    parents.insert(*parent, gifts.clone());
                    let looked = stage.finish_all();
                    for child in 0..CHILDREN {
                        let now = expected(&parents, child);
                        prop_assert_eq!(stage.data(child), now.clone(), "child {}", child);
                        let differs = now != before[usize::from(child)];
                        if differs {
                            prop_assert!(looked.contains(&key(child)), "child {} hears", child);
                        }
                    }
                }
                Ok(())
            })
            .unwrap();
        Ok(())
    });
}

#[test]
fn a_version_says_what_was_handed_too() {
    let data: Data = [("title".to_owned(), ["one".to_owned()].into())].into();
    let stored = sealed(Some("v1".to_owned()), &data);
    assert_eq!(opened(stored.as_deref(), &data), Some(Some("v1")));
    assert_eq!(opened(stored.as_deref(), &Data::new()), None, "it was taken away");
    assert_eq!(opened(Some("v1"), &data), None, "it is new");
    assert_eq!(opened(Some("v1"), &Data::new()), Some(Some("v1")));
    assert_eq!(sealed(None, &Data::new()), None);
    let stored = sealed(None, &data);
    assert_eq!(opened(stored.as_deref(), &data), Some(Some("")));
}
