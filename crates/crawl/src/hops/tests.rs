//! Distances are exact: whatever links and seeds come and go, in whatever order parts tell
//! their news, and wherever a process dies in the middle.

use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use store::ids::{JobId, NodeId, Part, Run};
use store::tables::hops::Leads;
use store::tables::leases::{self, Lease, LeaseRequest};
use store::testing::both_databases;
use store::{Db, Error};

const PARTS: i64 = 3;
const JOB: JobId = JobId(1);
const KINDS: [&str; 2] = ["link", "redirect"];

/// Documents are numbers; their part is theirs modulo the parts.
type Node = u8;
/// These are no documents but lists, and are there from the beginning.
const LISTS: std::ops::Range<Node> = 20..23;

#[derive(Debug, Clone)]
enum Step {
    /// A document is read, and leads there.
    Read(Node, Vec<(Node, bool)>),
    Seed(Node),
    NoSeed(Node),
    /// A part passes news on.
    Spread(u8),
    /// The same, but the process dies after so many transactions.
    Crash(u8, u8),
}

fn key(node: Node) -> DocHash {
    DocHash([node + 1; 16])
}

fn part(node: Node) -> Part {
    Part(i64::from(node) % PARTS)
}

fn place(part: Part) -> Place {
    Place { part, job: JOB }
}

fn rules(mode: HopcountMode) -> Arc<HopRules> {
    let filters = KINDS.iter().map(|kind| ((*kind).to_owned(), 3)).collect();
    Arc::new(HopRules::new(&filters, mode).unwrap())
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..9u8;
    let targets = prop::collection::vec((node.clone(), any::<bool>()), 0..4);
    let source = prop_oneof![7 => node.clone(), 1 => LISTS];
    prop_oneof![
        6 => (source, targets).prop_map(|(node, targets)| Step::Read(node, targets)),
        2 => node.clone().prop_map(Step::Seed),
        1 => node.prop_map(Step::NoSeed),
        4 => (0..3u8).prop_map(Step::Spread),
        2 => (0..3u8, 0..6u8).prop_map(|(part, after)| Step::Crash(part, after)),
    ]
}

/// The graph as it should be.
#[derive(Default)]
struct Model {
    leads: BTreeMap<Node, Vec<(Node, bool)>>,
    seeds: BTreeSet<Node>,
}

impl Model {
    /// Least numbers of links of a kind from any seed, computed from scratch.
    fn distances(&self, kind: usize) -> BTreeMap<Node, i64> {
        let mut best: BTreeMap<Node, i64> = BTreeMap::new();
        let roots = self.seeds.iter().copied().chain(LISTS);
        let mut open: VecDeque<(Node, i64)> = roots.map(|it| (it, 0)).collect();
        while let Some((node, distance)) = open.pop_front() {
            if best.get(&node).is_some_and(|known| *known <= distance) {
                continue;
            }
            best.insert(node, distance);
            for (target, is_redirect) in self.leads.get(&node).into_iter().flatten() {
                match usize::from(*is_redirect) == kind {
                    true => open.push_back((*target, distance + 1)),
                    false => open.push_front((*target, distance)),
                }
            }
        }
        best.retain(|node, _| !LISTS.contains(node));
        best
    }
}

struct Graph<'a> {
    db: &'a Db,
    rules: Arc<HopRules>,
    leases: Vec<Lease>,
}

impl Graph<'_> {
    fn new(db: &Db, mode: HopcountMode) -> Graph<'_> {
        let take = |part| {
            let asking = LeaseRequest {
                node: NodeId(1),
                node_name: "n".into(),
                now_ms: 0,
                lease_ms: 60_000,
                skew_ms: 0,
            };
            db.write(move |tx| leases::take(tx, part, "crawl", &asking)).unwrap().unwrap()
        };
        Graph { db, rules: rules(mode), leases: (0..PARTS).map(|it| take(Part(it))).collect() }
    }

    fn lease(&self, part: Part) -> &Lease {
        &self.leases[usize::try_from(part.0).unwrap()]
    }

    /// As a commit does it; after so many transactions it dies, and its own part is not told.
    fn read(&self, node: Node, targets: &[(Node, bool)], dies: bool) {
        let (own, mut leads) = (part(node), Leads::new());
        for (target, is_redirect) in targets {
            let kind = KINDS[usize::from(*is_redirect)].to_owned();
            leads.entry(kind).or_default().insert((key(*target), part(*target)));
        }
        let leads = HashMap::from([(key(node), leads)]);
        let (none, dropped) = (HashMap::new(), &[][..]);
        let changes = match LISTS.contains(&node) {
            true => LinkChanges { leads: &none, lists: &leads, dropped },
            false => LinkChanges { leads: &leads, lists: &none, dropped },
        };
        let (lease, rules) = (self.lease(own), &*self.rules);
        let updates = DistanceUpdates::plan(self.db, lease, rules, place(own), changes).unwrap();
        let updates = Arc::new(updates);
        for part in updates.parts().filter(|part| *part != own) {
            self.receive(part, &updates, false);
        }
        if !dies {
            self.receive(own, &updates, true);
        }
    }

    fn receive(&self, to: Part, updates: &Arc<DistanceUpdates>, is_last: bool) {
        let (updates, rules) = (updates.clone(), self.rules.clone());
        self.db
            .write(move |tx| {
                rules.receive(tx, adding(to), updates.to(to), &mut [])?;
                if is_last { updates.record_sent(tx, &rules, place(to)) } else { Ok(()) }
            })
            .unwrap();
    }

    fn seed(&self, node: Node, says: Says) {
        let (rules, to) = (self.rules.clone(), part(node));
        self.db
            .write(move |tx| {
                let told = rules.root(&[key(node)], says);
                rules.receive(tx, adding(to), &told, &mut []).map(|_| ())
            })
            .unwrap();
    }

    fn spread(&self, part: Part) {
        self.spreading(part, |_, it| Ok(adding(it))).run().unwrap();
    }

    fn spreading<A>(&self, part: Part, adding: A) -> SpreadContext<'_, A>
    where
        A: Fn(&mut Tx<'_>, Part) -> Result<AddContext> + Clone + Send + 'static,
    {
        let (lease, rules) = (self.lease(part), &self.rules);
        SpreadContext { db: self.db, lease, rules, place: place(part), adding }
    }

    /// Dies after so many transactions: what it asks for then fails.
    fn crash(&self, part: Part, after: u8) {
        let left = Cell::new(after);
        let left = std::sync::Mutex::new(left);
        let left = Arc::new(left);
        let dying = move |_: &mut Tx<'_>, it| {
            let left = left.lock().unwrap();
            match left.get() {
                0 => Err(Error::Refused("it has died".to_owned())),
                more => {
                    left.set(more - 1);
                    Ok(adding(it))
                }
            }
        };
        let _ = self.spreading(part, dying).run();
    }

    fn settle(&self) {
        for _ in 0..1_000 {
            (0..PARTS).for_each(|it| self.spread(Part(it)));
            if self.db.read(|tx| hops::under_way(tx, JOB)).unwrap().is_nothing() {
                return;
            }
        }
        panic!("news are passed on for ever");
    }

    fn distances(&self, kind: usize) -> BTreeMap<Node, i64> {
        let mut out = BTreeMap::new();
        for node in 0..9u8 {
            let rules = self.rules.clone();
            let found = self
                .db
                .read(move |tx| hops::distances(tx, rules.graphs(place(part(node))), &[key(node)]))
                .unwrap();
            match found[&key(node)][kind] {
                Distance::At(distance) => out.insert(node, distance),
                Distance::Lost => panic!("{node} is lost"),
                Distance::Unknown => None,
            };
        }
        out
    }
}

fn adding(part: Part) -> AddContext {
    AddContext {
        place: place(part),
        run: Run(1),
        now_ms: 0,
        room: None,
        requisites: Default::default(),
    }
}

fn play(db: &Db, mode: HopcountMode, steps: &[Step]) -> Model {
    let (graph, mut model) = (Graph::new(db, mode), Model::default());
    for step in steps {
        match step {
            Step::Read(node, targets) => {
                // A process that dies in the middle is followed by one that reads anew.
                graph.read(*node, &[(node.wrapping_add(1) % 9, false)], true);
                graph.read(*node, targets, false);
                let known = model.leads.entry(*node).or_default();
                if mode == HopcountMode::Accurate {
                    known.clear();
                }
                known.extend(targets);
            }
            Step::Seed(node) => {
                graph.seed(*node, Says::At(0));
                model.seeds.insert(*node);
            }
            Step::NoSeed(node) => {
                graph.seed(*node, Says::Gone);
                model.seeds.remove(node);
            }
            Step::Spread(part) => graph.spread(Part(i64::from(*part))),
            Step::Crash(part, after) => graph.crash(Part(i64::from(*part)), *after),
        }
    }
    graph.settle();
    for kind in 0..KINDS.len() {
        assert_eq!(graph.distances(kind), model.distances(kind), "kind {kind} after {steps:?}");
    }
    model
}

/// What is left of an earlier case.
fn forget(db: &Db) {
    for part in (0..PARTS).map(Part) {
        while db.write(move |tx| store::tables::job_states::forget(tx, part, JOB, 1_000)).unwrap()
            > 0
        {}
        db.write(move |tx| tx.execute("DELETE FROM leases WHERE part = $1", &[part.into()]))
            .unwrap();
    }
}

#[test]
fn distances_are_exact_whatever_comes_and_goes() {
    both_databases(|db| {
        let cases = ProptestConfig { cases: 32, failure_persistence: None, ..Default::default() };
        let mut runner = proptest::test_runner::TestRunner::new(cases);
        runner
            .run(&prop::collection::vec(step(), 1..40), |steps| {
                forget(db);
                play(db, HopcountMode::Accurate, &steps);
                Ok(())
            })
            .unwrap();
        Ok(())
    });
}
