//! Connectors that are deregistered while jobs run: the jobs say what they lack, do
//! nothing, and go on when it is back, with nothing lost.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{Home, Running, until};
use super::{comes, ends_well, listed, output, state, told, web_job, work};
use crate::site::{Served, Site};

const PAGES: usize = 80;
/// How long a job is watched that must do nothing: many times its delay.
const WATCHED: Duration = Duration::from_millis(400);

/// A web job whose pages go into a directory, under way.
struct Scene {
    home: Home,
    site: Served,
    out: PathBuf,
    work: Option<Running>,
}

impl Scene {
    fn new(home: Home) -> Scene {
        let site = Site::with_pages(PAGES).serve();
        let out = home.folder.path().join("out");
        web_job(&home, &[site.seed()], &["delay_ms=20ms"]);
        output(&home, &out);
        told(&home, &["job", "edit", "site", "--pipeline", "copy"]);
        told(&home, &["job", "start", "site"]);
        let work = Some(work(&home, &[]));
        until(&site, "it runs", || site.web().visits_count() > 5);
        Scene { home, site, out, work }
    }

    /// Does something to a connector, and waits for what the job is then.
    #[track_caller]
    fn after(&self, verb: &str, connector: &[&str], name: &str) {
        told(&self.home, &[&["connector", verb], connector].concat());
        assert_eq!(state(&self.home), name);
    }

    /// Asserts that the job comes to rest as it is.
    #[track_caller]
    fn rests(&self, name: &str) {
        comes("nothing is under way", || self.home.active().is_empty());
        let seen = self.site.web().visits_count();
        let line = listed(&self.home).unwrap();
        self.site.web().wait_for_visits(seen + 1, WATCHED);
        assert_eq!(self.site.web().visits_count(), seen, "nothing is asked for while {name}");
        let after = listed(&self.home).unwrap();
        assert_eq!((&after["state"], &after["processed"]), (&name.into(), &line["processed"]));
    }

    /// Pages that the directory has.
    fn copied(&self) -> usize {
        files_under(&self.out)
    }
}

fn files_under(at: &Path) -> usize {
    let entries = std::fs::read_dir(at).into_iter().flatten().flatten();
    entries.map(|it| if it.path().is_dir() { files_under(&it.path()) } else { 1 }).sum()
}

const WEB: &[&str] = &["web"];
const FILES: &[&str] = &["files", "--kind", "output"];

fn a_job_without_its_connectors_rests_and_goes_on_when_they_are_back(home: Home) {
    let mut scene = Scene::new(home);
    assert_eq!(state(&scene.home), "ACTIVE");
    scene.after("deregister", WEB, "ACTIVE_UNINSTALLED");
    let words = told(&scene.home, &["job", "list"]);
    assert!(words.contains("ACTIVE_UNINSTALLED"), "{words}");
    scene.rests("ACTIVE_UNINSTALLED");
    scene.after("deregister", FILES, "ACTIVE_NEITHER");
    scene.rests("ACTIVE_NEITHER");
    scene.after("register", WEB, "ACTIVE_NOOUTPUT");
    scene.rests("ACTIVE_NOOUTPUT");
    assert!(scene.site.web().visits_count() < PAGES as u64, "it was held in the middle");
    scene.after("register", FILES, "ACTIVE");
    ends_well(scene.work.take().unwrap());
    let line = listed(&scene.home).unwrap();
    assert_eq!((&line["state"], &line["word"]), (&"INACTIVE".into(), &"done".into()), "{line}");
    assert_eq!((&line["processed"], &line["run"]), (&PAGES.into(), &1.into()), "{line}");
    assert_eq!(scene.site.unfetched(&scene.site.traffic()), Vec::<String>::new());
    assert_eq!(scene.copied(), PAGES);
    scene.home.verify();
    a_deletion_waits_for_its_output(&scene);
}

/// What was delivered must be removed, so nothing is deleted before that can be.
fn a_deletion_waits_for_its_output(scene: &Scene) {
    let home = &scene.home;
    let work = Running::start(home.command(&["work", "--lease", "1"]));
    work.prints("working on all jobs");
    scene.after("deregister", FILES, "INACTIVE");
    told(home, &["job", "delete", "site", "--yes"]);
    assert_eq!(state(home), "READYFORDELETE_NOOUTPUT");
    work.prints("READYFORDELETE_NOOUTPUT");
    scene.rests("READYFORDELETE_NOOUTPUT");
    assert_eq!(scene.copied(), PAGES);
    told(home, &["connector", "register", "files", "--kind", "output"]);
    comes("the job is gone", || state(home) == "GONE");
    assert_eq!(scene.copied(), 0, "and what it delivered");
    work.signal("INT");
    ends_well(work);
    home.verify();
}

/// A job that is started without its connector has seeds to wait with.
fn a_job_that_is_started_without_its_connector_waits_for_it(home: &Home) {
    let site = Site::with_pages(10).serve();
    web_job(home, &[site.seed()], &["delay_ms=0s"]);
    told(home, &["connector", "deregister", "web"]);
    told(home, &["job", "start", "site"]);
    let work = work(home, &[]);
    comes("it waits", || state(home) == "ACTIVE_UNINSTALLED");
    assert_eq!(site.web().visits_count(), 0);
    told(home, &["connector", "register", "web"]);
    ends_well(work);
    let line = listed(home).unwrap();
    assert_eq!((&line["word"], &line["processed"]), (&"done".into(), &10.into()), "{line}");
    home.verify();
}

#[test]
fn a_job_that_is_started_without_its_connector_waits_for_it_on_sqlite() {
    a_job_that_is_started_without_its_connector_waits_for_it(&Home::directory());
}

#[test]
fn a_job_that_is_started_without_its_connector_waits_for_it_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_job_that_is_started_without_its_connector_waits_for_it(&home);
}

/// A run that is over but for its output, which cannot be used and is then deregistered.
#[test]
fn a_run_that_waits_for_its_output_ends_when_the_connector_is_back() {
    let (home, site) = (Home::directory(), Site::with_pages(10).serve());
    let out = home.folder.path().join("out");
    std::fs::write(&out, "in the way").unwrap();
    web_job(&home, &[site.seed()], &["delay_ms=0s"]);
    output(&home, &out);
    told(&home, &["job", "edit", "site", "--pipeline", "copy"]);
    told(&home, &["job", "start", "site"]);
    let work = work(&home, &[]);
    comes("all is crawled", || state(&home) == "SHUTTINGDOWN");
    told(&home, &["connector", "deregister", "files", "--kind", "output"]);
    std::fs::remove_file(&out).unwrap();
    comes("nothing is under way", || home.active().is_empty());
    assert_eq!((state(&home).as_str(), files_under(&out)), ("SHUTTINGDOWN", 0));
    told(&home, &["connector", "register", "files", "--kind", "output"]);
    ends_well(work);
    let line = listed(&home).unwrap();
    assert_eq!((&line["word"], files_under(&out)), (&"done".into(), 10), "{line}");
    home.verify();
}

#[test]
fn a_job_without_its_connectors_rests_and_goes_on_when_they_are_back_on_sqlite() {
    a_job_without_its_connectors_rests_and_goes_on_when_they_are_back(Home::directory());
}

#[test]
fn a_job_without_its_connectors_rests_and_goes_on_when_they_are_back_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_job_without_its_connectors_rests_and_goes_on_when_they_are_back(home);
}
