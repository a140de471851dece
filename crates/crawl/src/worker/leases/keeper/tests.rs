//! Leases given back in good order and otherwise, and leases of clocks that were wrong.

use super::*;
use std::sync::mpsc::{Receiver, channel};
use store::tables::nodes::NewNode;
use store::tables::settings;
use store::testing::both_databases;

const PARTS: u32 = 6;
/// No round but the first, unless somebody causes one.
const SELDOM_MS: i64 = 3_600_000;

fn keeper(db: &Db, heartbeat_ms: i64) -> Result<(LeaseKeeper, Receiver<LeaseEvent>)> {
    let node =
        NewNode { name: "one".into(), roles: ROLE.into(), address: None, version: "0".into() };
    let node = db.write(move |tx| nodes::register(tx, &node, clock::now_ms()))?;
    let terms = LeaseTerms {
        node,
        node_name: "one".into(),
        lease_ms: 60_000,
        heartbeat_ms,
        skew_ms: 100,
        parts: PARTS,
    };
    let (events, incoming) = channel();
    let report = move |event| events.send(event).is_ok();
    let started = LeaseKeeper::start(db.clone(), terms, LeaseCheck::default(), report)?;
    Ok((started, incoming))
}

/// The leases that it has taken.
fn taken(incoming: &Receiver<LeaseEvent>, count: usize) -> Vec<Lease> {
    let patience = Duration::from_secs(40);
    let next = || match incoming.recv_timeout(patience).expect("it takes what is free") {
        LeaseEvent::Held { lease, .. } => lease,
        other => panic!("{other:?}"),
    };
    (0..count).map(|_| next()).collect()
}

fn deadlines(db: &Db) -> Result<Vec<i64>> {
    db.read(|tx| tx.query("SELECT deadline_ms FROM leases ORDER BY part", &[], |row| row.get(0)))
}

#[test]
fn a_part_that_was_not_left_in_order_is_not_vacant_after_the_end() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let (keeper, incoming) = keeper(db, 50)?;
        let leases = taken(&incoming, PARTS as usize);
        // Two are left with requests that nobody has booked. The process takes them again,
        // because they are free, and ends before it has done anything there.
        keeper.give_back(Part(1), false);
        keeper.give_back(Part(4), false);
        taken(&incoming, 2);
        let in_order = leases.iter().map(LeaseKey::from).collect();
        keeper.stop(in_order);
        assert_eq!(deadlines(db)?, [0, 1, 0, 0, 1, 0], "0 is vacant, 1 is over and in doubt");
        Ok(())
    });
}

#[test]
fn parts_that_are_given_back_one_by_one_renew_no_lease() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let (keeper, incoming) = keeper(db, SELDOM_MS)?;
        let leases = taken(&incoming, PARTS as usize);
        let before = deadlines(db)?;
        for part in 0..3 {
            keeper.give_back(Part(part), true);
        }
        keeper.stop(BTreeSet::new());
        let node = leases[0].node;
        let heard: i64 = db.read(move |tx| {
            tx.query_one("SELECT heartbeat_ms FROM nodes WHERE id = $1", &[node.into()], |row| {
                row.get(0)
            })
        })?;
        assert!(heard <= before[0] - 60_000, "it was swept once");
        assert_eq!(deadlines(db)?, [0, 0, 0, 1, 1, 1]);
        Ok(())
    });
}

#[test]
fn a_lease_from_the_future_ends_when_it_has_not_moved_for_as_long_as_one_lasts() {
    let lease = |token, deadline_ms| Lease {
        part: Part(1),
        role: ROLE.into(),
        node: NodeId(9),
        token,
        deadline_ms,
    };
    let mut ahead = Ahead::default();
    assert_eq!(ahead.unmoved(vec![lease(1, 7_000_000)], 100, 1_000), []);
    assert_eq!(ahead.unmoved(vec![lease(1, 7_000_500)], 1_050, 1_000), [], "its holder lives");
    assert_eq!(ahead.unmoved(vec![lease(1, 7_000_500)], 2_049, 1_000), []);
    assert_eq!(ahead.unmoved(vec![lease(1, 7_000_500)], 2_050, 1_000), [lease(1, 7_000_500)]);
    assert_eq!(ahead.unmoved(vec![], 2_100, 1_000), []);
    assert_eq!(ahead.unmoved(vec![lease(1, 7_000_500)], 9_000, 1_000), [], "seen anew");
}

#[test]
fn the_parts_of_a_dead_process_whose_clock_was_ahead_are_taken_over() {
    both_databases(|db| {
        db.write(|tx| {
            settings::freeze(tx, PARTS)?;
            let asking = LeaseRequest {
                node: NodeId(900),
                node_name: "dead".into(),
                now_ms: clock::now_ms() + 7_200_000,
                lease_ms: 60_000,
                skew_ms: 0,
            };
            leases::take(tx, Part(2), ROLE, &asking)
        })?;
        let found = db.read(|tx| leases::ahead(tx, clock::now_ms() + 60_100, 9))?;
        assert_eq!(found.len(), 1);
        let other = Lease { token: found[0].token + 1, ..found[0].clone() };
        db.write(move |tx| leases::end(tx, &other))?;
        assert!(deadlines(db)?[0] > 1, "a lease that has moved on is left alone");
        let seen = found[0].clone();
        db.write(move |tx| leases::end(tx, &seen))?;
        let (keeper, incoming) = keeper(db, 50)?;
        assert!(taken(&incoming, PARTS as usize).iter().any(|lease| lease.part == Part(2)));
        keeper.stop(BTreeSet::new());
        Ok(())
    });
}
