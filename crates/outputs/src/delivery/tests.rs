//! Deliveries by several processes at once, and what failures mean.

use super::carry::fate;
use super::*;
use crate::connectors::{files, null};
use crate::output::{Operation, Outcome, Wants};
use page::ids::DocHash;
use std::sync::Condvar;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use store::clock;
use store::ids::{CommitNumber, ConnectionId, DocumentId, IdMaker, Part};
use store::objects::Location;
use store::panics::Faults;
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::documents::{self, Document};
use store::tables::ingests::{self, Decision, Fate, Ingest, Move, NEVER_MS, PendingDecision};
use store::tables::nodes::{self, NewNode};
use store::tables::{counters, history, outages, registrations, settings};
use store::testing::both_databases;

const OUTPUT: ConnectionId = ConnectionId(5);
const REPOSITORY: ConnectionId = ConnectionId(1);
const JOB: JobId = JobId(7);
const PARTS: i64 = 6;
const DOCUMENTS: i64 = 450;

#[derive(Default)]
struct Ear {
    heard: Mutex<u64>,
    more: Condvar,
}

impl Listener for Ear {
    fn patience(&self, _job: JobId) -> Patience {
        Patience { retries: 2, retry_ms: 10, most_ms: 1_000 }
    }

    fn delivered(&self) {
        *self.heard.lock().unwrap() += 1;
        self.more.notify_all();
    }

    fn gave_up(&self, _job: JobId, why: &str) {
        panic!("{why}");
    }

    fn waits_for(&self, _why: Option<String>) {}
}

fn context(db: &Db, name: &str, folder: &std::path::Path) -> Result<DeliveryContext> {
    let node = NewNode {
        name: name.to_owned(),
        roles: "crawl".to_owned(),
        address: None,
        version: "0".to_owned(),
    };
    let node = db.write(move |tx| {
        settings::freeze(tx, 6)?;
        nodes::register(tx, &node, clock::now_ms())
    })?;
    Ok(DeliveryContext {
        db: db.clone(),
        objects: Objects::open(&Location::Directory(folder.to_owned()))?,
        claimant: Claimant {
            db: db.clone(),
            ids: Arc::new(IdMaker::new(node)?),
            node_name: name.to_owned(),
            lease_ms: 1_000,
            skew_ms: 100,
        },
        poll_ms: 100,
        faults: Faults::default(),
    })
}

/// Documents with decisions, in several parts.
fn decide(db: &Db, ids: &IdMaker) -> Result<()> {
    for number in 0..DOCUMENTS {
        let (docid, part) = (format!("http://a.example/{number}"), Part(number % PARTS));
        let dochash = DocHash::of(&docid);
        let row = Ingest {
            uri_hash: Some(dochash.0.to_vec()),
            uri: Some(docid.clone()),
            pending: Some(PendingDecision::new(Decision::Add, CommitNumber(number / 100 + 1), JOB)),
            ..Ingest::new(ids.next(), REPOSITORY, dochash)
        };
        let document = Document::new(DocumentId(ids.next()), dochash, docid, 1);
        db.write(move |tx| {
            documents::save(tx, part, REPOSITORY, std::slice::from_ref(&document))?;
            let moves = [Move { before: None, after: Some(row.clone()) }];
            ingests::save(tx, part, OUTPUT, &moves)
        })?;
    }
    Ok(())
}

#[test]
fn two_processes_deliver_everything_once() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| context(db, name, folder.path()));
        let (one, two) = (one?, two?);
        db.write(|tx| {
            registrations::register(tx, &null::CONNECTOR, 1)?;
            let output = Connection::new(OUTPUT, "nowhere", "null");
            connections::save(tx, ConnectionKind::Output, &output, 1)
        })?;
        decide(db, &one.claimant.ids)?;
        let ear = Arc::new(Ear::default());
        let begun = [ready().start(one, ear.clone())?, ready().start(two, ear.clone())?];
        let left = || db.read(|tx| counters::total(tx, JOB, ingests::UNDELIVERED));
        let mut heard = ear.heard.lock().unwrap();
        while left()? > 0 {
            heard = ear.more.wait_timeout(heard, Duration::from_secs(5)).unwrap().0;
        }
        drop(heard);
        begun.into_iter().for_each(Delivery::stop);
        let walk = history::ActivityQuery::all(REPOSITORY);
        let told = db
            .read(move |tx| history::page(tx, &walk, walk.start(), 1_000))?
            .iter()
            .filter(|it| it.kind == "document ingest (nowhere)")
            .count();
        assert_eq!(told, DOCUMENTS as usize, "none was told twice");
        Ok(())
    });
}

#[test]
fn an_output_that_is_gone_is_forgotten() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let one = context(db, "one", folder.path())?;
        decide(db, &one.claimant.ids)?;
        let delivery = ready().start(one, Arc::new(Ear::default()))?;
        while db.read(|tx| counters::total(tx, JOB, ingests::UNDELIVERED))? > 0 {
            std::thread::yield_now();
        }
        delivery.stop();
        Ok(())
    });
}

/// Waits until outages are as they should be, and returns them.
fn outages_when(db: &Db, is_so: impl Fn(&[outages::Outage]) -> bool) -> Vec<outages::Outage> {
    let begun = std::time::Instant::now();
    loop {
        let found = db.read(|tx| outages::list(tx, clock::now_ms())).unwrap();
        if is_so(&found) {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it stays so: {found:?}");
        std::thread::yield_now();
    }
}

#[test]
fn an_output_that_cannot_be_reached_is_seen_by_others_until_it_is_reached_again() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let one = context(db, "one", folder.path())?;
        let copy_to = |class: &'static str| {
            db.write(move |tx| {
                let output = Connection::new(OUTPUT, "copy", class);
                connections::save(tx, ConnectionKind::Output, &output, 1)
            })
        };
        db.write(|tx| {
            registrations::register(tx, &null::CONNECTOR, 1)?;
            registrations::register(tx, &files::CONNECTOR, 1)
        })?;
        // It is told no directory, so it cannot be opened.
        copy_to("files")?;
        decide(db, &one.claimant.ids)?;
        let begun_ms = clock::now_ms();
        let delivery = ready().start(one, Arc::new(Ear::default()))?;
        let found = outages_when(db, |it| it.first().is_some_and(|it| it.attempts > 1));
        let [outage] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((outage.connection.as_str(), outage.waiting), ("copy", DOCUMENTS));
        assert!(outage.why.contains("directory"), "{outage:?}");
        assert!((begun_ms..=outage.tried_ms).contains(&outage.since_ms), "{outage:?}");
        copy_to("null")?;
        outages_when(db, <[_]>::is_empty);
        while db.read(|tx| counters::total(tx, JOB, ingests::UNDELIVERED))? > 0 {
            std::thread::yield_now();
        }
        delivery.stop();
        Ok(())
    });
}

#[test]
fn an_output_that_nobody_waits_for_any_more_is_no_outage() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let one = context(db, "one", folder.path())?;
        db.write(|tx| {
            registrations::register(tx, &files::CONNECTOR, 1)?;
            connections::save(
                tx,
                ConnectionKind::Output,
                &Connection::new(OUTPUT, "copy", "files"),
                1,
            )
        })?;
        decide(db, &one.claimant.ids)?;
        let delivery = ready().start(one, Arc::new(Ear::default()))?;
        outages_when(db, |it| !it.is_empty());
        db.write(|tx| tx.execute("UPDATE ingests SET decision = NULL", &[]).map(|_| ()))?;
        let rows = || {
            let sql = "SELECT COUNT(*) FROM outages";
            db.read(move |tx| tx.query_one(sql, &[], |row| row.get::<i64>(0)))
        };
        while rows()? > 0 {
            std::thread::yield_now();
        }
        delivery.stop();
        Ok(())
    });
}

#[test]
fn an_addition_is_given_up_when_patience_ends_and_a_removal_never() {
    let patience = Patience { retries: 2, retry_ms: 10, most_ms: 1_000 };
    let trouble = Outcome::Trouble { code: "IO", detail: "full".into() };
    let mut times = Vec::new();
    for decision in [Decision::Add, Decision::Remove] {
        let mut pending = PendingDecision::new(decision, CommitNumber(1), JOB);
        let mut now_ms = 100;
        for _ in 0..5 {
            let fate = fate(&pending, &trouble, patience, now_ms);
            let Fate::Again { check_ms, failcount, failtime, .. } = fate else { panic!() };
            times.push(check_ms);
            if check_ms == NEVER_MS {
                break;
            }
            now_ms = check_ms;
            (pending.failcount, pending.failtime) = (failcount, failtime);
        }
    }
    assert_eq!(times, [110, 130, NEVER_MS, 110, 130, 170, 210, 250]);
    let slow = Patience { retries: 50, retry_ms: 600, most_ms: 1_000 };
    let pending = PendingDecision::new(Decision::Add, CommitNumber(1), JOB);
    let first = fate(&pending, &trouble, slow, 0);
    let Fate::Again { check_ms: 600, failcount, failtime, .. } = first else { panic!() };
    let second = PendingDecision { failcount, failtime, ..pending };
    let second = fate(&second, &trouble, slow, 600);
    assert!(matches!(second, Fate::Again { check_ms: NEVER_MS, .. }), "1,800 is too late");
    let rejected = Outcome::Rejected { code: "NOBYTES", detail: String::new() };
    let pending = PendingDecision::new(Decision::Add, CommitNumber(1), JOB);
    assert_eq!(fate(&pending, &rejected, patience, 0), Fate::Rejected);
    assert_eq!(fate(&pending, &Outcome::Taken, patience, 0), Fate::Taken);
}

/// Hears that runs are over, or cannot.
struct Over(Arc<AtomicUsize>, bool);

impl Output for Over {
    fn wants(&self) -> Wants {
        Wants::Name
    }

    fn apply(
        &mut self,
        _spec: &str,
        _operations: &[Operation],
    ) -> std::result::Result<Vec<Outcome>, Unavailable> {
        Ok(Vec::new())
    }

    fn job_over(&mut self) -> std::result::Result<(), Unavailable> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if self.1 { Ok(()) } else { Err(Unavailable::because("it is away")) }
    }
}

/// ManifoldCF stops at the first that answers.
#[test]
fn every_output_is_told_that_a_run_is_over_although_one_cannot_be() {
    let told = Arc::new(AtomicUsize::new(0));
    let output = |hears| Ok(Box::new(Over(told.clone(), hears)) as Box<dyn Output>);
    let outputs = [output(true), output(false), Err("no such connector".to_owned()), output(true)];
    let outputs = outputs.into_iter().map(|it| ("copy".to_owned(), it));
    let error = tell_each(outputs).unwrap_err();
    assert!(error.passes() && error.to_string().contains("away"), "{error}");
    assert_eq!(told.load(Ordering::SeqCst), 3);
}

/// Panics on documents whose URI ends with a word.
struct Panicking(Vec<String>);

impl Output for Panicking {
    fn wants(&self) -> Wants {
        Wants::Name
    }

    fn apply(
        &mut self,
        _spec: &str,
        operations: &[Operation],
    ) -> std::result::Result<Vec<Outcome>, Unavailable> {
        assert!(
            operations.iter().all(|operation| !operation.uri.ends_with("bad")),
            "a bug of a connector"
        );
        self.0.extend(operations.iter().map(|operation| operation.uri.clone()));
        Ok(vec![Outcome::Taken; operations.len()])
    }
}

#[test]
fn a_document_on_which_an_output_panics_is_its_own_trouble_and_no_others() {
    let operation = |uri: &str| Operation { uri: uri.to_owned(), stale: Vec::new(), content: None };
    let operations = [operation("one"), operation("bad"), operation("three")];
    let mut output = Panicking(Vec::new());
    let outcomes = super::carry::apply(&mut output, "{}", &operations).unwrap();
    assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Taken, &Outcome::Taken));
    let Outcome::Trouble { code, detail } = &outcomes[1] else { panic!("{outcomes:?}") };
    assert_eq!(*code, "INTERNALERROR");
    assert!(detail.contains("a bug of a connector"), "{detail}");
    assert_eq!(output.0, ["one", "three"]);
}

/// Hears what is waited for.
#[derive(Default)]
struct RecordingListener {
    said: Mutex<Vec<Option<String>>>,
}

impl Listener for RecordingListener {
    fn patience(&self, _job: JobId) -> Patience {
        Patience { retries: 2, retry_ms: 10, most_ms: 1_000 }
    }

    fn delivered(&self) {}

    fn gave_up(&self, _job: JobId, why: &str) {
        panic!("{why}");
    }

    fn waits_for(&self, why: Option<String>) {
        self.said.lock().unwrap().push(why);
    }
}

#[test]
fn a_delivery_that_panics_is_named_and_made_again() {
    both_databases(|db| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut one = context(db, "one", folder.path())?;
        let carried = AtomicUsize::new(0);
        one.faults = Faults::new(move |_, _| {
            assert!(carried.fetch_add(1, Ordering::SeqCst) > 0, "a bug of a carrier");
        });
        db.write(|tx| {
            registrations::register(tx, &null::CONNECTOR, 1)?;
            // One after the other, so that nothing else succeeds meanwhile.
            let output = Connection { maxcount: 1, ..Connection::new(OUTPUT, "nowhere", "null") };
            connections::save(tx, ConnectionKind::Output, &output, 1)
        })?;
        decide(db, &one.claimant.ids)?;
        let listener = Arc::new(RecordingListener::default());
        let delivery = ready().start(one, listener.clone())?;
        while db.read(|tx| counters::total(tx, JOB, ingests::UNDELIVERED))? > 0 {
            std::thread::yield_now();
        }
        delivery.stop();
        let said = listener.said.lock().unwrap().clone();
        let is_named = |it: &Option<String>| {
            it.as_ref()
                .is_some_and(|it| it.contains("nowhere") && it.contains("a bug of a carrier"))
        };
        assert!(said.iter().any(is_named), "{said:?}");
        Ok(())
    });
}
