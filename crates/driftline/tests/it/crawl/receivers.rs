//! Documents reach servers: whatever these say, and whenever the program is killed, in the
//! end they have what there is.

use super::files::Tree;
use super::outputs::collect;
use super::{Home, Running, text};
use ::crawl::lifecycle::JobEvent;
use ::outputs::testing::opensearch::OpenSearch;
use ::outputs::testing::receiver::Receiver;
use ::outputs::testing::solr::Solr;
use ::outputs::testing::{Fault, Shelf, UNACCEPTABLE};
use std::collections::BTreeMap;

/// A files job whose documents go to a server.
struct Sent {
    tree: Tree,
    shelf: Shelf,
}

impl Sent {
    fn new(home: Home, shelf: &Shelf, connector: &str, settings: &str) -> Sent {
        let more = format!(
            "[[jobs.docs.pipeline]]\noutput = \"far\"\n\
             [connections.output.far]\nconnector = {connector:?}\n\
             [connections.output.far.settings]\n{settings}\n"
        );
        Sent { tree: Tree::with(home, &more), shelf: shelf.clone() }
    }

    /// What there is: the URIs of files, and what they say.
    fn there(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(&self.tree.root, "", &mut found);
        let root = self.tree.root.display().to_string();
        found.into_iter().map(|(name, text)| (format!("file://{root}/{name}"), text)).collect()
    }

    #[track_caller]
    fn assert_equal(&self) {
        assert_eq!(self.shelf.field("text"), self.there());
        let undelivered = "SELECT COUNT(*) FROM ingests WHERE decision IS NOT NULL";
        assert_eq!(self.tree.home.number(undelivered), 0);
    }

    fn start(&self) -> Running {
        self.tree.change(JobEvent::Start { minimal: false });
        Running::start(self.tree.home.command(&["work", "--until-idle", "--lease", "1"]))
    }

    #[track_caller]
    fn ends(&self, running: Running) {
        let ended = running.ended();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    }
}

/// Adds, updates and removals arrive, through everything that servers do.
fn a_server_has_what_there_is(sent: &Sent, faults: &[Fault]) {
    sent.tree.run(false);
    sent.assert_equal();
    assert_eq!(sent.there().len(), 3);
    let updates = sent.shelf.kept().updates;
    sent.tree.run(false);
    assert_eq!(sent.shelf.kept().updates, updates, "nothing has changed");

    sent.tree.write("test1.txt", "Modified contents");
    sent.tree.write("testdir/test4.txt", "Added file");
    std::fs::remove_file(sent.tree.root.join("test2.txt")).unwrap();
    sent.shelf.fail(faults.iter().cloned());
    sent.tree.run(false);
    sent.assert_equal();
    assert!(sent.shelf.kept().faults.is_empty(), "all of it happened");

    // One that the server does not take is not there, and the history says why.
    sent.tree.write("test1.txt", UNACCEPTABLE);
    sent.tree.run(false);
    let mut expected = sent.there();
    expected.retain(|_, text| text != UNACCEPTABLE);
    assert_eq!(sent.shelf.field("text"), expected);
    let rejected = "SELECT COUNT(*) FROM history WHERE activitytype = 'document ingest (far)'
                    AND resultcode IN ('REFUSED', 'MAPPING', 'SCHEMA')";
    assert_eq!(sent.tree.home.number(rejected), 1);
    sent.tree.write("test1.txt", "Acceptable again");
    sent.tree.run(false);
    sent.assert_equal();

    kills(sent);
    sent.tree.change(JobEvent::Delete);
    sent.tree.work();
    assert_eq!(sent.shelf.field("text"), BTreeMap::new(), "what leaves is removed");
}

/// Killed again and again while it delivers.
fn kills(sent: &Sent) {
    for number in 0..200 {
        sent.tree.write(&format!("testdir/more{number}.txt"), &format!("text {number}"));
    }
    sent.tree.change(JobEvent::Start { minimal: false });
    sent.tree.work_through_kills();
    sent.assert_equal();
}

#[test]
fn an_opensearch_has_what_there_is() {
    let fake = OpenSearch::start();
    let settings = format!("url = {:?}\nindex = \"web\"", fake.server.url());
    let sent = Sent::new(Home::directory(), &fake.shelf, "opensearch", &settings);
    a_server_has_what_there_is(&sent, &[Fault::Busy(1), Fault::BusyAfter(1), Fault::Lost]);
    assert!(fake.shelf.kept().commits > 4, "each run makes it visible");
}

#[test]
fn a_solr_has_what_there_is() {
    let fake = Solr::start();
    let settings = format!("url = {:?}", fake.url());
    let sent = Sent::new(Home::directory(), &fake.shelf, "solr", &settings);
    a_server_has_what_there_is(&sent, &[Fault::Busy(1), Fault::Half]);
    assert!(fake.shelf.kept().commits > 4, "each run makes it visible");
}

#[test]
fn a_receiver_of_messages_has_what_there_is() {
    let fake = Receiver::at(0, Shelf::default(), Some("sesame"));
    let settings =
        format!("url = {:?}\nremoval = \"delete\"\nsecret = \"sesame\"", fake.server.url());
    let sent = Sent::new(Home::directory(), &fake.shelf, "webhook", &settings);
    a_server_has_what_there_is(&sent, &[Fault::Busy(1), Fault::Lost]);
}

#[test]
fn a_receiver_of_batches_has_what_there_is_on_postgres() {
    let Some(home) = Home::database() else { return };
    let fake = Receiver::start();
    let settings = format!("url = {:?}\nbatch = 50", fake.server.url());
    let sent = Sent::new(home, &fake.shelf, "webhook", &settings);
    a_server_has_what_there_is(&sent, &[Fault::Busy(1), Fault::Half]);
}

/// A run waits for a server that is not there, says so, and blames no document.
#[test]
fn a_server_that_comes_back_gets_everything() {
    let fake = OpenSearch::start();
    let (port, shelf) = (fake.server.port(), fake.shelf.clone());
    let settings = format!("url = {:?}", fake.server.url());
    let sent = Sent::new(Home::directory(), &shelf, "opensearch", &settings);
    drop(fake);
    let running = sent.start();
    running.prints("refused");
    let _fake = OpenSearch::at(port, shelf);
    sent.ends(running);
    sent.assert_equal();
    let failed = "SELECT COUNT(*) FROM history WHERE activitytype = 'document ingest (far)'
                  AND resultcode <> 'OK'";
    assert_eq!(sent.tree.home.number(failed), 0);
}

/// A secret is in no listing, no export and no message; `--secrets` exports it.
#[test]
fn secrets_are_shown_to_nobody() {
    let fake = Receiver::start();
    let settings = format!("url = {:?}\nsecret = \"hunter2\"", fake.server.url());
    let sent = Sent::new(Home::directory(), &fake.shelf, "webhook", &settings);
    let said = |args: &[&str]| {
        let output = sent.tree.home.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for args in [
        &["connection", "show", "far"][..],
        &["connection", "show", "far", "--json"],
        &["connection", "list", "--json"],
        &["export"],
        &["connection", "edit", "far", "secret=hunter3"],
    ] {
        let said = said(args);
        assert!(!said.contains("hunter"), "{args:?}: {said}");
    }
    assert!(said(&["export", "--secrets"]).contains("hunter3"));
}
