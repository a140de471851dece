//! Slots: bounded, shared fairly, and free again when their node is gone.

use super::*;
use crate::Db;
use crate::tables::nodes::{self, NewNode};
use crate::testing::{FreshDatabase, both_databases, skipped};
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

const CONNECTION: ConnectionId = ConnectionId(7);

fn node(db: &Db, name: &str) -> Result<NodeId> {
    let node = NewNode {
        name: name.into(),
        roles: "authority".into(),
        address: None,
        version: "test".into(),
    };
    db.write(move |tx| nodes::register(tx, &node, 0))
}

fn asking(node: NodeId, maxcount: i64, claim: i64) -> SlotRequest {
    SlotRequest { connection: CONNECTION, maxcount, node, claim, heard_since_ms: 0, now_ms: 100 }
}

fn take(db: &Db, asking: SlotRequest) -> Result<Option<i64>> {
    db.write(move |tx| super::take(tx, asking))
}

fn give_back(db: &Db, claim: i64) -> Result<()> {
    db.write(move |tx| super::give_back(tx, CONNECTION, claim))
}

#[test]
fn no_more_slots_are_taken_than_there_are_and_asking_again_takes_no_other() {
    both_databases(|db| {
        let one = node(db, "one")?;
        assert_eq!(take(db, asking(one, 2, 1))?, Some(0));
        assert_eq!(take(db, asking(one, 2, 1))?, Some(0), "it is the same");
        assert_eq!(take(db, asking(one, 2, 2))?, Some(1));
        assert_eq!(take(db, asking(one, 2, 3))?, None);
        let other = SlotRequest { connection: ConnectionId(8), ..asking(one, 2, 4) };
        assert_eq!(take(db, other)?, Some(0), "another connection has slots of its own");
        give_back(db, 1)?;
        give_back(db, 1)?;
        assert_eq!(take(db, asking(one, 2, 3))?, Some(0));
        assert_eq!(take(db, asking(one, 1, 5))?, None, "there are fewer now");
        assert_eq!(take(db, asking(one, 3, 5))?, Some(2), "there are more now");
        Ok(())
    });
}

#[test]
fn whoever_has_less_than_its_share_comes_first() {
    both_databases(|db| {
        let (one, two) = (node(db, "one")?, node(db, "two")?);
        for claim in 0..4 {
            assert!(take(db, asking(one, 4, claim))?.is_some(), "alone, it may have all");
        }
        assert_eq!(take(db, asking(two, 4, 10))?, None);
        for (claim, other) in [(0, 10), (1, 11)] {
            give_back(db, claim)?;
            assert_eq!(take(db, asking(one, 4, 20))?, None, "it has its share, the other not");
            assert!(take(db, asking(two, 4, other))?.is_some());
            assert_eq!(take(db, asking(two, 4, 12))?, None, "there is none just now");
        }
        give_back(db, 2)?;
        assert_eq!(take(db, asking(two, 4, 12))?, None, "now the first has less, and asked first");
        assert!(take(db, asking(one, 4, 20))?.is_some());
        // Who gives up waiting, or falls silent, keeps nobody from anything.
        db.write(move |tx| stop_waiting(tx, CONNECTION, two))?;
        give_back(db, 10)?;
        assert_eq!(
            take(db, asking(two, 4, 12))?.is_some(),
            take(db, asking(two, 4, 12))?.is_some()
        );
        give_back(db, 12)?;
        let late = SlotRequest { now_ms: 100 + WAIT_MS + 1, ..asking(one, 4, 21) };
        assert!(take(db, late)?.is_some());
        Ok(())
    });
}

#[test]
fn the_slots_of_a_node_that_is_gone_are_free() {
    both_databases(|db| {
        let (dead, alive) = (node(db, "dead")?, node(db, "alive")?);
        assert!(take(db, asking(dead, 1, 1))?.is_some());
        assert_eq!(take(db, asking(dead, 1, 2))?, None);
        db.write(move |tx| nodes::heartbeat(tx, alive, 90))?;
        assert_eq!(take(db, asking(alive, 1, 3))?, None, "so far it lives");
        let later = SlotRequest { heard_since_ms: 50, ..asking(alive, 1, 3) };
        assert_eq!(take(db, later)?, Some(0), "it has not been heard of");
        give_back(db, 1)?;
        assert_eq!(
            take(db, SlotRequest { claim: 4, ..later })?,
            None,
            "what is gone gives nothing back"
        );
        Ok(())
    });
}

/// Takes slots and gives them back; a file for each that is out is what others see of it.
fn use_slots(db: &Db, node: NodeId, (thread, out): (i64, &Path)) {
    for number in 0..20 {
        let claim = thread * 1_000 + number;
        while take(db, asking(node, 3, claim)).unwrap().is_none() {
            std::thread::yield_now();
        }
        let mine = out.join(claim.to_string());
        std::fs::write(&mine, "").unwrap();
        assert!(std::fs::read_dir(out).unwrap().count() <= 3, "more than three are out");
        std::fs::remove_file(mine).unwrap();
        give_back(db, claim).unwrap();
    }
}

/// Not a test of its own: the processes of the next one run it. What it is to do stands in
/// its input: a database, its number, a directory.
#[test]
#[ignore = "what another test starts as a process"]
fn a_process_that_uses_slots() {
    let mut input = std::io::stdin().lines();
    let mut next = || input.next().and_then(|line| line.ok());
    let (Some(url), Some(number), Some(out)) = (next(), next(), next()) else { return };
    let (db, number) = (Db::open_postgres(&url).unwrap(), number.parse::<i64>().unwrap());
    let node = node(&db, &format!("process {number}")).unwrap();
    if number == 0 {
        for claim in 1..=3 {
            assert!(take(&db, asking(node, 3, claim)).unwrap().is_some());
        }
        std::fs::write(Path::new(&out).join("node"), node.0.to_string()).unwrap();
        // Until it is killed: nobody writes another line.
        next();
        return;
    }
    std::thread::scope(|scope| {
        for thread in [2 * number, 2 * number + 1] {
            let (db, out) = (&db, Path::new(&out));
            scope.spawn(move || use_slots(db, node, (thread, out)));
        }
    });
}

/// Starts such a process, and returns what holds its input open.
fn process(url: &str, number: i64, out: &Path) -> (Child, ChildStdin) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tables::slots::tests::a_process_that_uses_slots", "--ignored"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{url}\n{number}\n{}", out.display()).unwrap();
    (child, input)
}

/// One process is killed with all slots in its hands; when it counts as gone, two others
/// share them, and never have more than there are.
#[test]
fn processes_share_slots_on_postgresql_and_those_of_a_killed_one_come_back() {
    let Some(fresh) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let (killed_at, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut holder, _held_open) = process(&fresh.url, 0, killed_at.path());
    let written = killed_at.path().join("node");
    while !std::fs::read_to_string(&written).is_ok_and(|text| !text.is_empty()) {
        assert!(holder.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    let killed = NodeId(std::fs::read_to_string(written).unwrap().parse().unwrap());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let db = Db::open_postgres(&fresh.url).unwrap();
    let other = node(&db, "other").unwrap();
    assert_eq!(take(&db, asking(other, 3, 4)).unwrap(), None, "it may be alive for all we know");
    db.write(move |tx| stop_waiting(tx, CONNECTION, other)).unwrap();
    db.write(move |tx| nodes::stop(tx, killed, 1)).unwrap();
    let mut processes = [1, 2].map(|number| process(&fresh.url, number, out.path()));
    for (process, _) in &mut processes {
        assert!(process.wait().unwrap().success());
    }
}
