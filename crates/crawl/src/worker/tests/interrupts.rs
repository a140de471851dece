//! Queries of a sql job that never come to an end, in the middle of which it is told to stop.
//!
//! Only an interrupt lets these tests pass: the limit of a statement is longer than they wait,
//! and a query that ran into it would leave its trace.

use crate::lifecycle::JobEvent;
use crate::worker::CrawlEnd;
use crate::worker::tests::world::{Working, World, until};
use store::testing::{FreshDatabase, both_databases, skipped};
use store::{Db, Result};

const ONE_ID: &str = "SELECT 1";
const ENDLESS_IDS: &str = "WITH RECURSIVE n (i) AS (
         SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n)
     SELECT i FROM n WHERE i < 0";
const ENDLESS_DOCUMENT: &str = "WITH RECURSIVE n (i) AS (
         SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n)
     SELECT i AS version FROM n WHERE i < 0 AND CAST($1 AS TEXT) <> ''";
const DOCUMENT: &str = "SELECT 'one' AS title, CAST($1 AS TEXT) AS version";

/// Runs a test on both databases, with a SQLite file as the source and with PostgreSQL.
fn each_source(test: impl Fn(&Db, &str) -> Result<()>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.db");
    let theirs = Db::open_sqlite(&path).unwrap();
    theirs.write(|tx| tx.execute("CREATE TABLE items (id BIGINT)", &[])).unwrap();
    both_databases(|db| test(db, path.to_str().unwrap()));
    match FreshDatabase::from_environment() {
        Some(fresh) => both_databases(|db| test(db, &fresh.url)),
        None => skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set"),
    }
}

/// A worker that is in the middle of the query for the only document.
fn looking(world: &World) -> Result<Working> {
    world.tell(JobEvent::Start { minimal: false })?;
    let working = world.work_until(false)?;
    until("the document is looked at", || active(world) == ["1"]);
    Ok(working)
}

fn active(world: &World) -> Vec<String> {
    world.texts("SELECT docid FROM queue WHERE state = 'active'").unwrap()
}

/// The document is as it was: it waits for its turn, and nothing says that it has failed.
fn assert_untouched(world: &World) -> Result<()> {
    let ready = world.texts("SELECT docid FROM queue WHERE state = 'ready' AND reason IS NULL")?;
    assert_eq!(ready, ["1"]);
    assert_eq!(world.texts("SELECT resultcode FROM history WHERE entityid = '1'")?, [""; 0]);
    Ok(())
}

#[test]
fn a_job_is_aborted_in_the_middle_of_a_query_for_a_document() {
    each_source(|db, database| {
        let world = World::sql(db, database, (ONE_ID, ENDLESS_DOCUMENT))?;
        let working = looking(&world)?;
        world.tell(JobEvent::Abort)?;
        working.stopper.nudge();
        until("the job is aborted", || world.state().unwrap().name() == "INACTIVE");
        assert_eq!(world.state()?.error, None);
        assert_untouched(&world)?;
        working.stopper.stop();
        assert_eq!(working.join()?, CrawlEnd::Stopped);
        Ok(())
    });
}

#[test]
fn a_job_is_paused_in_the_middle_of_a_query_for_a_document() {
    each_source(|db, database| {
        let world = World::sql(db, database, (ONE_ID, ENDLESS_DOCUMENT))?;
        let working = looking(&world)?;
        world.tell(JobEvent::Pause)?;
        working.stopper.nudge();
        until("the job is paused", || world.state().unwrap().name() == "PAUSED");
        assert_untouched(&world)?;
        world.tell(JobEvent::Resume)?;
        working.stopper.nudge();
        until("it goes on", || active(&world) == ["1"]);
        world.tell(JobEvent::Abort)?;
        working.stopper.nudge();
        until("the job is aborted", || world.state().unwrap().name() == "INACTIVE");
        working.stopper.stop();
        working.join().map(|_| ())
    });
}

#[test]
fn a_process_ends_in_the_middle_of_a_query_for_a_document() {
    each_source(|db, database| {
        let world = World::sql(db, database, (ONE_ID, ENDLESS_DOCUMENT))?;
        let working = looking(&world)?;
        working.stopper.stop();
        assert_eq!(working.join()?, CrawlEnd::Stopped);
        assert_untouched(&world)?;
        world.tell(JobEvent::Abort).map(|_| ())?;
        world.work()?.join().map(|_| ())
    });
}

#[test]
fn a_job_is_aborted_and_a_process_ends_in_the_middle_of_the_query_for_its_ids() {
    each_source(|db, database| {
        let world = World::sql(db, database, (ENDLESS_IDS, DOCUMENT))?;
        world.tell(JobEvent::Start { minimal: false })?;
        let working = world.work_until(false)?;
        let begins = || world.state().unwrap().name() == "STARTINGUP";
        until("its ids are asked for", begins);
        let run = world.state()?.run;
        world.tell(JobEvent::Restart { minimal: false })?;
        working.stopper.nudge();
        until("it is started again", || begins() && world.state().unwrap().run > run);
        working.stopper.stop();
        assert_eq!(working.join()?, CrawlEnd::Stopped);
        let state = world.state()?;
        assert_eq!((state.name().as_str(), state.failcount), ("READYFORSTARTUP", None));
        assert_eq!(world.texts("SELECT why FROM outages")?, [""; 0]);
        world.tell(JobEvent::Abort)?;
        world.work()?.join()?;
        assert_eq!(world.state()?.name(), "INACTIVE");
        Ok(())
    });
}
