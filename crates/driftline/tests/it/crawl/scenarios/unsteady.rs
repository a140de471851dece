//! A database that fails again and again while feeds are crawled: ManifoldCF's numbers
//! come out all the same, and everything that is stored is whole.
//!
//! It fails as databases do: PostgreSQL ends sessions in the middle of their work, and
//! somebody else keeps a SQLite file locked for longer than anybody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::sync_channel;

use super::super::Home;
use super::super::killed::drawn;
use super::feeds::{feeds_after, make};
use super::{ends_well, listed, told, work};

/// Feeds and their articles.
const DOCUMENTS: i64 = 110;
/// One of so many answers comes after the database has failed.
const FAILS_EVERY: u64 = 4;
/// The answer before which a file is locked.
const LOCKED_AT: i64 = 40;

const END_ALL: &str = "SELECT COUNT(*) FROM (
         SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()) sessions
     WHERE ended";

#[track_caller]
fn all_is_there(home: &Home) {
    let line = listed(home).unwrap();
    assert_eq!((&line["word"], &line["failed"]), (&"done".into(), &0.into()), "{line}");
    assert_eq!(line["processed"], DOCUMENTS, "{line}");
    home.verify();
    assert_eq!(home.number("SELECT COUNT(*) FROM queue"), DOCUMENTS);
    assert_eq!(home.number("SELECT COUNT(*) FROM ingeststatus"), 100, "all articles were sent");
    assert_eq!(home.number("SELECT COUNT(*) FROM carrydown"), 300, "title, date and source");
}

#[test]
fn feeds_are_whole_although_postgres_ends_sessions_all_the_time() {
    let Some(home) = Home::database() else { return };
    told(&home, &["init"]);
    let (rows, asked, ended) = (home.rows(), AtomicI64::new(0), Arc::new(AtomicI64::new(0)));
    let count = ended.clone();
    let (site, _titles) = feeds_after(move || {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        if drawn(number.unsigned_abs(), FAILS_EVERY) == 0 {
            let sessions = rows.read(|tx| tx.query_one(END_ALL, &[], |row| row.get::<i64>(0)));
            count.fetch_add(sessions.unwrap_or(0), Ordering::SeqCst);
        }
    });
    make(&home, &site);
    told(&home, &["job", "start", "news"]);
    ends_well(work(&home, &["--node", "a"]));
    let ended = ended.load(Ordering::SeqCst);
    assert!(ended > 10, "only {ended} sessions were ended");
    all_is_there(&home);
}

#[test]
fn feeds_are_whole_although_somebody_locks_the_sqlite_file() {
    let home = Home::directory();
    told(&home, &["init"]);
    let (rows, asked) = (home.rows(), AtomicI64::new(0));
    let (held, is_held) = sync_channel(1);
    let (release, released) = sync_channel::<()>(1);
    let released = Arc::new(std::sync::Mutex::new(released));
    let (site, _titles) = feeds_after(move || {
        if asked.fetch_add(1, Ordering::SeqCst) != LOCKED_AT {
            return;
        }
        let (rows, held, released) = (rows.clone(), held.clone(), released.clone());
        let (begun, has_begun) = sync_channel(1);
        std::thread::spawn(move || {
            let locked = rows.write(move |_| {
                let _ = begun.send(());
                let _ = held.send(());
                // It is given back when the test says so, or has failed.
                let _ = released.lock().unwrap().recv();
                Ok(())
            });
            locked.unwrap();
        });
        has_begun.recv().unwrap();
    });
    make(&home, &site);
    told(&home, &["job", "start", "news"]);
    let work = work(&home, &["--node", "a"]);
    is_held.recv().unwrap();
    work.prints("retrying until it succeeds");
    release.send(()).unwrap();
    ends_well(work);
    all_is_there(&home);
}
