//! Runs that are aborted or whose process dies while they are cleaned up: ManifoldCF
//! could stay in such a state for ever.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::Home;
use super::super::outputs::collect;
use super::{comes, ends_well, files_job, listed, state, told, work};

/// A files job that is being cleaned up: its output does not take what has changed.
struct Scene {
    home: Home,
    root: PathBuf,
    out: PathBuf,
}

const FILES: usize = 5;

impl Scene {
    /// After a first run a file is added, one changed and one removed, and something is in
    /// the way of the output.
    fn new(home: Home) -> Scene {
        let (root, out) = (home.folder.path().join("tree"), home.folder.path().join("out"));
        let scene = Scene { home, root, out };
        let home = &scene.home;
        std::fs::create_dir_all(&scene.root).unwrap();
        (0..FILES).for_each(|number| scene.write(number, "first"));
        files_job(home, (&scene.root, &scene.out), &[]);
        scene.runs_to_its_end();
        scene.write(0, "second");
        scene.write(FILES, "first");
        std::fs::remove_file(scene.path(1)).unwrap();
        std::fs::rename(&scene.out, scene.aside()).unwrap();
        std::fs::write(&scene.out, "in the way").unwrap();
        told(home, &["job", "start", "docs"]);
        scene
    }

    fn path(&self, number: usize) -> PathBuf {
        self.root.join(format!("{number}.txt"))
    }

    fn aside(&self) -> PathBuf {
        self.home.folder.path().join("aside")
    }

    fn write(&self, number: usize, edition: &str) {
        std::fs::write(self.path(number), format!("{edition} edition of {number}")).unwrap();
    }

    /// Gives the output its directory back.
    fn clear_the_way(&self) {
        std::fs::remove_file(&self.out).unwrap();
        std::fs::rename(self.aside(), &self.out).unwrap();
    }

    /// Starts the job if it rests, and sees that everything is right at its end.
    #[track_caller]
    fn runs_to_its_end(&self) {
        if state(&self.home) == "INACTIVE" {
            told(&self.home, &["job", "start", "docs"]);
        }
        ends_well(work(&self.home, &["--node", "a"]));
        let line = listed(&self.home).unwrap();
        assert_eq!((&line["word"], &line["undelivered"]), (&"done".into(), &0.into()), "{line}");
        let mut found = [BTreeMap::new(), BTreeMap::new()];
        let copy = self.out.join(format!("file/%nil{}", self.root.display()));
        collect(&self.root, "", &mut found[0]);
        collect(&copy, "", &mut found[1]);
        assert_eq!(found[0], found[1]);
        self.home.verify();
    }
}

fn a_run_that_is_aborted_while_it_is_cleaned_up_ends(home: Home) {
    let scene = Scene::new(home);
    let home = &scene.home;
    let work = work(home, &["--node", "a"]);
    comes("it is cleaned up", || state(home) == "SHUTTINGDOWN");
    let said = told(home, &["job", "abort", "docs"]);
    assert!(said.contains("SHUTTINGDOWN -> ABORTINGSHUTTINGDOWN"), "{said}");
    comes("it is aborted", || state(home) == "INACTIVE");
    let line = listed(home).unwrap();
    assert_eq!((&line["word"], &line["error"]), (&"aborted".into(), &().into()), "{line}");
    work.signal("INT");
    ends_well(work);
    home.verify();
    scene.clear_the_way();
    scene.runs_to_its_end();
}

#[test]
fn a_run_that_is_aborted_while_it_is_cleaned_up_ends_on_sqlite() {
    a_run_that_is_aborted_while_it_is_cleaned_up_ends(Home::directory());
}

#[test]
fn a_run_that_is_aborted_while_it_is_cleaned_up_ends_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_run_that_is_aborted_while_it_is_cleaned_up_ends(home);
}

fn a_run_whose_process_is_killed_while_it_is_cleaned_up_is_ended_by_the_next(home: Home) {
    let scene = Scene::new(home);
    let mut first = work(&scene.home, &["--node", "a"]);
    comes("it is cleaned up", || state(&scene.home) == "SHUTTINGDOWN");
    first.kill();
    assert_eq!(state(&scene.home), "SHUTTINGDOWN");
    scene.clear_the_way();
    scene.runs_to_its_end();
    assert_eq!(listed(&scene.home).unwrap()["run"], 2, "it is the same run");
}

#[test]
fn a_run_whose_process_is_killed_while_it_is_cleaned_up_is_ended_by_the_next_on_sqlite() {
    a_run_whose_process_is_killed_while_it_is_cleaned_up_is_ended_by_the_next(Home::directory());
}

#[test]
fn a_run_whose_process_is_killed_while_it_is_cleaned_up_is_ended_by_the_next_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_run_whose_process_is_killed_while_it_is_cleaned_up_is_ended_by_the_next(home);
}
