//! Jobs that are told this and that while their processes die: whatever the life cycle
//! was at, the job comes to rest, and its output has what there is.
//!
//! Which verbs are given, and when a process is killed, follows from a seed, as far as
//! the machine keeps time. Invariant: no verb fails but for a reason that it tells.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use store::testing::environment;

use super::super::killed::drawn;
use super::super::outputs::collect;
use super::super::{Home, Running, text};
use super::{comes, ends_well, files_job, listed, state, told};

const DIRECTORIES: usize = 6;
const FILES: usize = 12;
/// Files, directories and the root.
const DOCUMENTS: usize = DIRECTORIES * FILES + DIRECTORIES + 1;
/// Processes that are killed while verbs are given, and while the job is deleted.
const KILLS: u64 = 14;
const KILLS_OF_DELETION: u64 = 3;
/// Of these rounds a second process lives through all but one or two.
const ROUNDS_OF_ANOTHER: u64 = 5;
/// A process lives at most so long after the last verb, in milliseconds.
const LIFE_MS_MAX: u64 = 350;
/// Verbs follow each other within so many milliseconds.
const PAUSE_MS_MAX: u64 = 120;
/// Those that may be given at any time, after a start.
const VERBS: [&str; 8] =
    ["start", "start-minimal", "pause", "pause", "resume", "abort", "restart", "restart-minimal"];
/// Of so many things that are said, one is about a connector instead.
const CONNECTORS_ONE_IN: u64 = 6;
const KINDS: [&str; 2] = ["repository", "output"];
/// Of so many processes, one is stopped in good order instead.
const STOPPED_ONE_IN: u64 = 6;
/// Names another seed than the usual one, to look for what that one does not meet.
const SEED: &str = "DRIFTLINE_TEST_SEED";

/// A files job whose documents go into a directory.
struct Scene {
    home: Home,
    root: PathBuf,
    out: PathBuf,
    /// Where the numbers that look random have got to.
    drawn: Cell<u64>,
}

impl Scene {
    fn new(home: Home, seed: u64) -> Scene {
        let (root, out) = (home.folder.path().join("tree"), home.folder.path().join("out"));
        let scene = Scene { home, root, out, drawn: Cell::new(seed * 10_000) };
        for directory in 0..DIRECTORIES {
            std::fs::create_dir_all(scene.root.join(format!("{directory}"))).unwrap();
            (0..FILES).for_each(|file| scene.write(directory, file, 0));
        }
        let home = &scene.home;
        // Slow enough to be met at work.
        files_job(home, (&scene.root, &scene.out), &["--throttle", "=200/s"]);
        scene
    }

    fn draw(&self, below: u64) -> u64 {
        self.drawn.set(self.drawn.get() + 1);
        drawn(self.drawn.get(), below)
    }

    fn write(&self, directory: usize, file: usize, edition: u64) {
        let path = self.root.join(format!("{directory}/{file}.txt"));
        std::fs::write(path, format!("{edition}. edition of {directory}/{file}")).unwrap();
    }

    /// Changes a file, or takes one away.
    fn edit(&self, edition: u64) {
        let (directory, file) = (self.draw(DIRECTORIES as u64), self.draw(FILES as u64));
        match self.draw(3) {
            0 => {
                let path = self.root.join(format!("{directory}/{file}.txt"));
                let _ = std::fs::remove_file(path);
            }
            _ => self.write(directory as usize, file as usize, edition),
        }
    }

    fn start(&self, more: &[&str]) -> Running {
        self.start_as("a", more)
    }

    fn start_as(&self, node: &str, more: &[&str]) -> Running {
        let args = [&["work", "--lease", "1", "--node", node], more].concat();
        Running::start(self.home.command(&args))
    }

    /// A second process, where there may be one.
    fn start_another(&self) -> Option<Running> {
        self.home.url.as_ref().map(|_| self.start_as("b", &[]))
    }

    /// Gives a verb; it may be refused, but then it says why and what can be done.
    fn tell(&self, verb: &str) {
        let args = ["job", verb, "docs"];
        let output = self.home.command(&args).output().unwrap();
        let errors = text(&output.stderr);
        let is_refused = errors.contains("cannot be") && errors.contains("(next: ");
        assert!(output.status.success() || is_refused, "{verb}: {errors}");
    }

    /// Says something to the job, or takes away or gives back one of its connectors.
    fn tell_something(&self) {
        match self.draw(CONNECTORS_ONE_IN) {
            0 => {
                let verb = ["deregister", "register"][self.draw(2) as usize];
                let kind = KINDS[self.draw(2) as usize];
                told(&self.home, &["connector", verb, "files", "--kind", kind]);
            }
            _ => self.tell(VERBS[self.draw(VERBS.len() as u64) as usize]),
        }
    }

    /// Lets a process live for a while.
    fn lives(&self, running: &mut Running, ms_max: u64) {
        let deadline = Instant::now() + Duration::from_millis(self.draw(ms_max));
        while Instant::now() < deadline {
            assert!(!running.has_ended(), "it ended by itself");
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Gives verbs to a process and kills it, now and then while a verb is under way.
    fn round(&self) -> String {
        let mut running = self.start(&[]);
        self.tell("start");
        for _ in 0..self.draw(3) {
            self.lives(&mut running, PAUSE_MS_MAX);
            self.tell_something();
        }
        self.lives(&mut running, LIFE_MS_MAX);
        let is_killed = self.draw(STOPPED_ONE_IN) > 0;
        if !is_killed {
            // Only now it listens to signals.
            running.prints("working on all jobs");
            running.signal("INT");
            ends_well(running);
        } else if self.draw(3) == 0 {
            let verb = VERBS[self.draw(VERBS.len() as u64) as usize];
            let verb = Running::start(self.home.command(&["job", verb, "docs"]));
            running.kill();
            // Whoever answered it is dead, so there may have been no answer.
            let _ = verb.ended();
        } else {
            running.kill();
        }
        self.home.texts("SELECT status FROM jobs").into_iter().next().unwrap()
    }

    /// Waits until the job is inactive; one that is paused is told to go on.
    #[track_caller]
    fn comes_to_rest(&self) {
        comes("the job rests", || {
            let state = state(&self.home);
            if state == "PAUSED" {
                told(&self.home, &["job", "resume", "docs"]);
            }
            state == "INACTIVE"
        });
    }

    fn there(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(&self.root, "", &mut found);
        found
    }

    fn copied(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(&self.out.join(format!("file/%nil{}", self.root.display())), "", &mut found);
        found
    }

    /// Asserts that a whole run leaves everything as it should be.
    #[track_caller]
    fn is_whole(&self) {
        let there = self.there();
        let documents = DOCUMENTS - (DIRECTORIES * FILES - there.len());
        let line = listed(&self.home).unwrap();
        assert_eq!((&line["state"], &line["word"]), (&"INACTIVE".into(), &"done".into()), "{line}");
        for (name, expected) in
            [("processed", documents), ("documents", documents), ("failed", 0), ("undelivered", 0)]
        {
            assert_eq!(line[name], expected, "{name}: {line}");
        }
        assert_eq!(self.copied(), there);
        self.home.verify();
    }
}

fn whatever_a_job_is_told_and_whoever_dies_it_comes_to_rest(home: Home, seed: u64) {
    let seed = environment(SEED).map_or(seed, |text| text.parse().unwrap());
    let scene = Scene::new(home, seed);
    let mut met = BTreeSet::new();
    let mut another = None;
    for kill in 0..KILLS {
        if kill % ROUNDS_OF_ANOTHER == 1 {
            // The one before is killed as it is dropped, and is missed by those that follow.
            drop(another.take());
        } else if kill % ROUNDS_OF_ANOTHER == 2 {
            another = scene.start_another();
        }
        met.insert(scene.round());
        scene.edit(kill + 1);
    }
    assert!(met.len() > 2, "they were killed in many states: {met:?}");
    drop(another);
    for kind in KINDS {
        told(&scene.home, &["connector", "register", "files", "--kind", kind]);
    }
    let work = scene.start(&[]);
    scene.comes_to_rest();
    // An abort may have been the last word, so only another run promises everything.
    told(&scene.home, &["job", "start", "docs"]);
    scene.comes_to_rest();
    work.signal("INT");
    ends_well(work);
    scene.is_whole();
    a_deletion_survives_kills(&scene);
}

fn a_deletion_survives_kills(scene: &Scene) {
    told(&scene.home, &["job", "delete", "docs", "--yes"]);
    for _ in 0..KILLS_OF_DELETION {
        let mut running = scene.start(&[]);
        scene.lives(&mut running, LIFE_MS_MAX);
        running.kill();
    }
    ends_well(scene.start(&["--until-idle"]));
    assert_eq!((state(&scene.home).as_str(), scene.copied()), ("GONE", BTreeMap::new()));
    for sql in ["SELECT COUNT(*) FROM queue", "SELECT COUNT(*) FROM ingests"] {
        assert_eq!(scene.home.number(sql), 0, "{sql}");
    }
    scene.home.verify();
}

#[test]
fn whatever_a_job_is_told_and_whoever_dies_it_comes_to_rest_on_sqlite() {
    whatever_a_job_is_told_and_whoever_dies_it_comes_to_rest(Home::directory(), 1);
}

#[test]
fn whatever_a_job_is_told_and_whoever_dies_it_comes_to_rest_on_postgres() {
    let Some(home) = Home::database() else { return };
    whatever_a_job_is_told_and_whoever_dies_it_comes_to_rest(home, 2);
}
