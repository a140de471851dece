//! Leases against a model: at any moment one token can write, and commits are
//! numbered without gaps.

use super::*;
use crate::testing::{both_databases, each_case};
use proptest::prelude::*;

fn asking(node: i64, now_ms: i64) -> LeaseRequest {
    LeaseRequest {
        node: NodeId(node),
        node_name: format!("node {node}"),
        now_ms,
        lease_ms: 100,
        skew_ms: 10,
    }
}

#[test]
fn a_foreign_lease_is_taken_only_when_it_is_surely_over() {
    both_databases(|db| {
        let take =
            |node, now_ms| db.write(move |tx| take(tx, Part(1), "crawl", &asking(node, now_ms)));
        let refused =
            |node, now_ms| db.read(move |tx| not_to_be_had(tx, "crawl", &asking(node, now_ms), 9));
        assert_eq!(refused(1, 0)?, []);
        let first = take(1, 0)?.expect("a free lease is granted");
        assert_eq!((refused(2, 109)?, refused(2, 110)?), (vec![Part(1)], vec![]));
        assert_eq!(take(2, 100)?, None, "clocks may differ");
        let second = take(2, 110)?.expect("it is over by any clock");
        assert!(second.token > first.token);
        assert_eq!(take(2, 111)?, None, "a start does not take from itself");
        let restarted =
            LeaseRequest { node: NodeId(3), node_name: "node 2".into(), ..asking(3, 111) };
        let own = restarted.clone();
        assert_eq!(db.read(move |tx| not_to_be_had(tx, "crawl", &own, 9))?, []);
        let back = db.write(move |tx| super::take(tx, Part(1), "crawl", &restarted))?;
        assert!(back.is_some(), "a restarted node takes its own lease back at once");
        let older = LeaseRequest { node: NodeId(2), node_name: "node 2".into(), ..asking(2, 112) };
        let stolen = db.write(move |tx| super::take(tx, Part(1), "crawl", &older))?;
        assert_eq!(stolen, None, "an older start of that name is over");
        Ok(())
    });
}

#[test]
fn a_stale_holder_can_neither_renew_nor_commit() {
    both_databases(|db| {
        let take =
            |node, now_ms| db.write(move |tx| take(tx, Part(1), "crawl", &asking(node, now_ms)));
        let stale = take(1, 0)?.expect("granted");
        let seq = db.write({
            let stale = stale.clone();
            move |tx| number_commit(tx, &stale)
        })?;
        assert_eq!(seq, CommitNumber(1));
        let fresh = take(2, 500)?.expect("granted");
        for attempt in [renew_it, fence_it, commit_it] {
            let stale = stale.clone();
            let outcome = db.write(move |tx| attempt(tx, &stale));
            assert!(matches!(outcome, Err(Error::LeaseLost { part: 1, .. })), "{outcome:?}");
        }
        db.write(move |tx| release(tx, &stale, true))?;
        let seq = db.write(move |tx| number_commit(tx, &fresh))?;
        assert_eq!(seq, CommitNumber(2), "a refused commit uses up no number");
        assert_eq!(db.read(|tx| last_commit(tx, Part(1), "crawl"))?, CommitNumber(2));
        assert_eq!(db.read(|tx| last_commit(tx, Part(1), "search"))?, CommitNumber::NONE);
        Ok(())
    });
}

fn renew_it(tx: &mut Tx<'_>, lease: &Lease) -> Result<()> {
    renew(tx, lease, 9_999)
}
fn fence_it(tx: &mut Tx<'_>, lease: &Lease) -> Result<()> {
    fence(tx, lease)
}
fn commit_it(tx: &mut Tx<'_>, lease: &Lease) -> Result<()> {
    number_commit(tx, lease).map(|_| ())
}

#[derive(Debug, Clone)]
enum Step {
    Take(i64),
    Renew(i64),
    Release(i64),
    Commit(i64),
    Pass(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let node = 1..4i64;
    let step = prop_oneof![
        node.clone().prop_map(Step::Take),
        node.clone().prop_map(Step::Renew),
        node.clone().prop_map(Step::Release),
        node.prop_map(Step::Commit),
        (1..150i64).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 1..30)
}

/// What the model believes: who holds the lease with which token until when.
#[derive(Default)]
struct Model {
    holder: Option<(i64, i64)>,
    deadline_ms: i64,
    grants: i64,
    commits: CommitNumber,
}

#[test]
fn leases_behave_like_the_model() {
    both_databases(|db| {
        each_case(60, &steps(), |part, steps| drive(db, part, steps));
        Ok(())
    });
}

fn drive(db: &crate::Db, part: Part, steps: &[Step]) -> Result<()> {
    let mut model = Model::default();
    let mut now_ms = 1_000;
    let mut held: std::collections::HashMap<i64, Lease> = std::collections::HashMap::new();
    for step in steps {
        match *step {
            Step::Pass(ms) => now_ms += ms,
            Step::Take(node) => {
                let granted = db.write(move |tx| take(tx, part, "crawl", &asking(node, now_ms)))?;
                let over = model.deadline_ms <= now_ms - 10;
                assert_eq!(granted.is_some(), model.holder.is_none() || over);
                if let Some(lease) = granted {
                    model.grants += 1;
                    assert_eq!(lease.token, model.grants, "tokens grow by one");
                    model.holder = Some((node, lease.token));
                    model.deadline_ms = lease.deadline_ms;
                    held.insert(node, lease);
                }
            }
            Step::Renew(node) | Step::Release(node) | Step::Commit(node) => {
                let Some(lease) = held.get(&node).cloned() else { continue };
                let valid = model.holder == Some((node, lease.token));
                match step {
                    Step::Renew(_) => {
                        let deadline = now_ms + 100;
                        let done = db.write(move |tx| renew(tx, &lease, deadline));
                        assert_eq!(done.is_ok(), valid);
                        if valid {
                            model.deadline_ms = deadline;
                        }
                    }
                    Step::Release(_) => {
                        db.write(move |tx| release(tx, &lease, true))?;
                        if valid {
                            model.deadline_ms = 0;
                        }
                    }
                    _ => {
                        let done = db.write(move |tx| number_commit(tx, &lease));
                        assert_eq!(done.is_ok(), valid);
                        if valid {
                            model.commits = model.commits.next();
                        }
                        assert_eq!(done.unwrap_or(model.commits), model.commits);
                    }
                }
            }
        }
    }
    let last = db.read(move |tx| last_commit(tx, part, "crawl"))?;
    assert_eq!(last, model.commits);
    Ok(())
}
