//! A follower whose consumer panics.

use super::*;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;
use store::Db;
use store::ids::{CommitNumber, IdMaker, NodeId};
use store::tables::leases::LeaseRequest;
use store::testing::both_databases;

const PART: Part = Part(0);
const PATIENCE: Duration = Duration::from_secs(40);

/// Panics the first few times that it is given something.
struct Panicking {
    times: usize,
    given: Arc<AtomicUsize>,
}

impl Consumer for Panicking {
    fn role(&self) -> &'static str {
        cursors::LINKS
    }

    fn spans_parts(&self) -> bool {
        true
    }

    fn gather_ms(&self) -> i64 {
        1
    }

    fn take_up(&mut self, _lease: &Lease) -> Result<CommitNumber> {
        Ok(CommitNumber::NONE)
    }

    fn apply(&mut self, work: &[PartWork]) -> Result<AppliedBatch> {
        if self.given.fetch_add(1, Ordering::SeqCst) < self.times {
            panic!("a bug in an index");
        }
        let reached = work.iter().map(|it| (it.lease.part, it.head)).collect();
        Ok(AppliedBatch { reached, ..AppliedBatch::default() })
    }
}

/// Three commits in each of so many parts.
fn made(db: &Db, parts: u32) -> Result<FollowContext> {
    db.write(move |tx| {
        settings::freeze(tx, parts)?;
        for part in Part::all(parts) {
            let lease = leases::take(tx, part, FOLLOWED, &other(0, 1))?.expect("nobody has it");
            for _ in 0..3 {
                leases::number_commit(tx, &lease)?;
            }
        }
        Ok(())
    })?;
    let claimant = Claimant {
        db: db.clone(),
        ids: Arc::new(IdMaker::new(NodeId(1))?),
        node_name: "one".into(),
        lease_ms: 1_000,
        skew_ms: 0,
    };
    Ok(FollowContext { claimant, poll_ms: 20 })
}

/// Another node, which asks for a lease.
fn other(now_ms: i64, lease_ms: i64) -> LeaseRequest {
    LeaseRequest { node: NodeId(2), node_name: "crawler".into(), now_ms, lease_ms, skew_ms: 0 }
}

fn wait_until(mut is_so: impl FnMut() -> Result<bool>, what: &str) -> Result<()> {
    let began = Instant::now();
    while !is_so()? {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Ok(())
}

#[test]
fn a_consumer_that_spans_parts_applies_nothing_without_the_leases_of_all_of_them() {
    both_databases(|db| {
        let context = made(db, 2)?;
        let far = other(clock::now_ms(), 600_000);
        let held = db
            .write(move |tx| leases::take(tx, Part(1), cursors::LINKS, &far))?
            .expect("nobody has it");
        let given = Arc::new(AtomicUsize::new(0));
        let consumer = Panicking { times: 0, given: given.clone() };
        let follower = ready().start(context, Box::new(consumer), Arc::new(|_| {}))?;
        // It looks, and holds what it can have.
        let is_taken = |part| {
            db.read(move |tx| leases::held_by(tx, part, cursors::LINKS, NodeId(1)))
                .map(|lease| lease.is_some())
        };
        wait_until(|| is_taken(PART), "it never looked")?;
        std::thread::park_timeout(Duration::from_millis(100));
        assert_eq!(given.load(Ordering::SeqCst), 0, "somebody else has a part");
        db.write(move |tx| leases::release(tx, &held, true))?;
        for part in [Part(0), Part(1)] {
            let cursor = || db.read(move |tx| cursors::get(tx, part, cursors::LINKS));
            wait_until(|| Ok(cursor()? == CommitNumber(3)), "it never caught up")?;
        }
        follower.stop();
        Ok(())
    });
}

#[test]
fn an_index_that_panics_is_tried_again_and_says_so_and_is_not_given_up() {
    both_databases(|db| {
        let (given, said) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let consumer = Panicking { times: 2, given: given.clone() };
        let heard = said.clone();
        let listener: Listener = Arc::new(move |why| heard.lock().unwrap().push(why));
        let follower = ready().start(made(db, 1)?, Box::new(consumer), listener)?;
        let began = Instant::now();
        while db.read(|tx| cursors::get(tx, PART, cursors::LINKS))? != CommitNumber(3) {
            assert!(began.elapsed() < PATIENCE, "it never caught up");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        follower.stop();
        assert_eq!(given.load(Ordering::SeqCst), 3);
        let said = said.lock().unwrap().clone();
        let first = said.first().cloned().flatten().unwrap_or_default();
        assert!(first.contains("internal error: a bug in an index"), "{first}");
        assert_eq!(said.last(), Some(&None), "what is over is not waited for");
        Ok(())
    });
}
