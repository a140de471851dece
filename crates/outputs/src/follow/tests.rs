//! A follower whose consumer panics.

use super::*;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;
use store::Db;
use store::ids::{IdMaker, NodeId};
use store::tables::leases::Asking;
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

    fn take_up(&mut self, _lease: &Lease) -> Result<i64> {
        Ok(0)
    }

    fn apply(&mut self, work: &[Work]) -> Result<Applied> {
        if self.given.fetch_add(1, Ordering::SeqCst) < self.times {
            panic!("a bug in an index");
        }
        let reached = work.iter().map(|it| (it.lease.part, it.head)).collect();
        Ok(Applied { reached, ..Applied::default() })
    }
}

fn made(db: &Db) -> Result<Means> {
    db.write(|tx| {
        settings::freeze(tx, 1)?;
        let asking = Asking {
            node: NodeId(2),
            node_name: "crawler".into(),
            now_ms: 0,
            lease_ms: 1,
            skew_ms: 0,
        };
        let lease = leases::take(tx, PART, FOLLOWED, &asking)?.expect("nobody has it");
        for _ in 0..3 {
            leases::number_commit(tx, &lease)?;
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
    Ok(Means { claimant, poll_ms: 20 })
}

#[test]
fn an_index_that_panics_is_tried_again_and_says_so_and_is_not_given_up() {
    both_databases(|db| {
        let (given, said) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let consumer = Panicking { times: 2, given: given.clone() };
        let heard = said.clone();
        let listener: Listener = Arc::new(move |why| heard.lock().unwrap().push(why));
        let follower = ready().start(made(db)?, Box::new(consumer), listener)?;
        let began = Instant::now();
        while db.read(|tx| cursors::get(tx, PART, cursors::LINKS))? != 3 {
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
