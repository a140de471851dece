//! Several processes on one PostgreSQL: they share the work, never ask for the same
//! document at once, keep to the delay of a host together, and outlive each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::server::Server;
use super::{Home, ROUNDING, Running, Summary, until, words};
use crate::site::{Served, Site, Traffic};

const DELAY: Duration = Duration::from_millis(50);
const HOSTS: usize = 8;
/// Names of the nodes that have committed something.
const COMMITTERS: &str = "SELECT DISTINCT n.name FROM chunks c JOIN nodes n ON n.id = c.node
                          WHERE c.state = 'crawled' AND c.documents > 0";

struct Shared {
    home: Home,
    site: Served,
    seeds: Vec<String>,
}

impl Shared {
    fn new(pages: usize) -> Option<Shared> {
        let home = Home::database()?;
        let site = Site::with_pages(pages).hosts(HOSTS).serve();
        let seeds = site.seeds();
        Some(Shared { home, site, seeds })
    }

    /// A process of that name for the one job.
    fn node(&self, name: &str) -> Running {
        let args = words(&self.seeds, &["--node", name, "--delay", "0.05"]);
        Running::start(self.home.crawl(&args))
    }

    /// A process that keeps its leases although a busy machine lets it wait: for what must not
    /// be repeated, and does not depend on how soon a lease ends.
    fn steady_node(&self, name: &str) -> Running {
        let args = words(&self.seeds, &["--node", name, "--delay", "0.05", "--lease", "10"]);
        Running::start(self.home.crawl(&args))
    }

    /// Waits until all these have committed something.
    #[track_caller]
    fn share(&self, names: &[&str]) {
        let names: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        until(&self.site, "all of them commit", || self.home.texts(COMMITTERS).is_superset(&names));
    }

    /// Checks what holds when the run is over: all is fetched, and in good manners.
    #[track_caller]
    fn is_whole(&self) -> Traffic {
        self.home.verify();
        assert_eq!(self.home.number("SELECT COUNT(*) FROM queue WHERE state <> 'done'"), 0);
        assert_eq!(self.home.number("SELECT COUNT(*) FROM job_states WHERE phase = 'active'"), 0);
        let traffic = self.site.traffic();
        assert_eq!(self.site.unfetched(&traffic), Vec::<String>::new());
        assert!(traffic.document_overlaps().is_empty(), "{:?}", traffic.document_overlaps());
        assert!(traffic.host_overlaps().is_empty(), "{:?}", traffic.host_overlaps());
        let least = traffic.smallest_gap().unwrap();
        assert!(least + ROUNDING >= DELAY, "{least:?}: {:?}", traffic.smallest_gaps());
        traffic
    }
}

#[test]
fn two_processes_share_a_job_and_end_together() {
    let Some(it) = Shared::new(HOSTS * 40) else { return };
    let one = it.steady_node("one");
    until(&it.site, "the first begins", || it.site.web().visits_count() > 20);
    let two = it.steady_node("two");
    it.share(&["one", "two"]);
    let summaries = [Summary::of(&one.ended()), Summary::of(&two.ended())];
    let traffic = it.is_whole();
    assert_eq!(traffic.repeats_count(), 0, "{:?}", traffic.repeats());
    let added: u64 = summaries.iter().map(|summary| summary.count("/did/added")).sum();
    assert_eq!(added, HOSTS as u64 * 40);
    assert!(summaries.iter().all(|summary| summary.count("/did/added") > 0), "{summaries:?}");
}

/// What was claimed at the moment of a kill is what may be repeated.
fn the_other_takes_over(killed: usize) {
    let Some(it) = Shared::new(HOSTS * 60) else { return };
    let mut nodes = vec![it.node("one")];
    until(&it.site, "the first begins", || it.site.web().visits_count() > 20);
    nodes.push(it.node("two"));
    it.share(&["one", "two"]);
    let mut victim = nodes.remove(killed);
    victim.kill();
    let claimed = it.home.active().len();
    let summary = Summary::of(&nodes.remove(0).ended());
    let traffic = it.is_whole();
    assert!(traffic.repeats_count() <= claimed, "{claimed}, {:?}", traffic.repeats());
    assert_eq!(summary.count("/documents/done"), HOSTS as u64 * 60);
}

#[test]
fn when_the_first_process_is_killed_the_second_takes_over() {
    the_other_takes_over(0);
}

#[test]
fn when_the_last_process_is_killed_the_first_takes_over() {
    the_other_takes_over(1);
}

#[test]
fn when_one_process_is_stopped_the_other_goes_on_and_nothing_is_repeated() {
    let Some(it) = Shared::new(HOSTS * 40) else { return };
    let one = it.steady_node("one");
    until(&it.site, "the first begins", || it.site.web().visits_count() > 20);
    let two = it.steady_node("two");
    it.share(&["one", "two"]);
    two.signal("INT");
    assert_eq!(two.ended().status.code(), Some(1));
    Summary::of(&one.ended());
    assert_eq!(it.is_whole().repeats_count(), 0);
}

/// A process that was frozen for longer than its lease has lost its parts, and must know
/// it before it asks for anything.
#[test]
fn a_process_that_was_frozen_asks_for_nothing_that_others_have_taken_over() {
    let Some(it) = Shared::new(HOSTS * 60) else { return };
    let one = it.node("one");
    until(&it.site, "the first begins", || it.site.web().visits_count() > 20);
    let two = it.node("two");
    it.share(&["one", "two"]);
    one.signal("STOP");
    let held = "SELECT COUNT(*) FROM leases l JOIN nodes n ON n.id = l.node
                WHERE n.name = 'one' AND l.deadline_ms > 0";
    until(&it.site, "its parts are taken over", || it.home.number(held) == 0);
    one.signal("CONT");
    Summary::of(&one.ended());
    Summary::of(&two.ended());
    it.is_whole();
}

/// On a server whose database has no tables yet, as on the first day.
#[test]
fn processes_that_start_together_on_an_empty_database_make_one_job() {
    let Some(server) = Server::start() else { return };
    let (home, site) = (Home::at(&server.url()), Site::with_pages(HOSTS * 20).hosts(HOSTS).serve());
    let seeds = site.seeds();
    let it = Shared { home, site, seeds };
    let nodes: Vec<Running> = ["one", "two", "three"].map(|name| it.steady_node(name)).into();
    for node in nodes {
        Summary::of(&node.ended());
    }
    let traffic = it.is_whole();
    assert_eq!(traffic.repeats_count(), 0, "{:?}", traffic.repeats());
    assert_eq!(it.home.number("SELECT COUNT(*) FROM job_definitions"), 1);
}

#[test]
fn a_process_for_which_there_is_no_part_ends_with_the_run() {
    let Some(it) = Shared::new(HOSTS * 30) else { return };
    // A busy machine must not let the first lose its part.
    let flags = |name| ["--node", name, "--delay", "0.05", "--parts", "1", "--lease", "10"];
    let args = |name| words(&it.seeds, &flags(name));
    let one = Running::start(it.home.crawl(&args("one")));
    until(&it.site, "the first begins", || it.site.web().visits_count() > 20);
    let two = Running::start(it.home.crawl(&args("two")));
    Summary::of(&one.ended());
    assert_eq!(Summary::of(&two.ended()).changes(), [0; 4], "there was nothing for it to do");
    assert_eq!(it.is_whole().repeats_count(), 0);
}

/// Both hold parts with hosts that do not answer. Each sees that neither can do anything
/// about them for longer than the job's patience.
#[test]
fn hosts_that_do_not_answer_keep_no_process_from_its_end() {
    let Some(it) = Shared::new(HOSTS * 20) else { return };
    // Nobody listens at this port of these addresses.
    let dead: Vec<String> = (1..=12).map(|n| format!("http://127.0.9.{n}:1033/")).collect();
    let seeds: Vec<String> = it.seeds.iter().chain(&dead).cloned().collect();
    let flags = |name| ["--node", name, "--delay", "0.05", "--patience", "1"];
    let one = Running::start(it.home.crawl(&words(&seeds, &flags("one"))));
    until(&it.site, "the first begins", || it.site.web().visits_count() > 20);
    let two = Running::start(it.home.crawl(&words(&seeds, &flags("two"))));
    let summaries = [Summary::of(&one.ended()), Summary::of(&two.ended())];
    assert!(summaries.iter().any(|it| it.count("/documents/failed") == 12), "{summaries:?}");
    assert_eq!(it.site.unfetched(&it.site.traffic()), Vec::<String>::new());
    it.home.verify();
}

#[test]
fn a_second_process_of_the_same_name_replaces_the_first() {
    let Some(it) = Shared::new(HOSTS * 40) else { return };
    let first = it.node("one");
    until(&it.site, "the first begins", || it.site.web().visits_count() > 20);
    let second = it.node("one");
    let replaced = first.ended();
    assert_eq!(replaced.status.code(), Some(2));
    assert!(super::text(&replaced.stderr).contains("--node NAME"), "{replaced:?}");
    Summary::of(&second.ended());
    it.is_whole();
}

/// A process works on every job that somebody attends to in the parts that it holds, run
/// after run: what it knows of one run is not true of the next.
#[test]
fn a_process_of_another_job_looks_again_in_every_run() {
    let Some(it) = Shared::new(HOSTS * 5) else { return };
    // A host of its own: its long delay would be everybody's.
    let slow = Site::with_pages(50).named(&["slow.example"]).serve();
    let seed = slow.seed();
    let resolve = "slow.example=127.0.0.1";
    let args = [&seed, "--job", "slow", "--node", "slow", "--delay", "600", "--resolve", resolve];
    let _slow = Running::start(it.home.crawl(&args));
    until(&slow, "the slow one holds its parts", || slow.web().visits_count() > 0);
    let args = words(&it.seeds, &["--node", "quick"]);
    for run in 1..=3 {
        Summary::of(&Running::start(it.home.crawl(&args)).ended());
        let counts = it.site.take_traffic().counts();
        assert_eq!(counts.len(), HOSTS * 5, "run {run}: {counts:?}");
    }
    assert!(it.home.texts(COMMITTERS).contains("slow"), "it did some of the work");
}
