//! Jobs at the command line: defined, started and stopped, waited for; with and without a
//! process that holds the directory, and on PostgreSQL.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::testing::{FreshDatabase, skipped};

use super::definitions::{crawling, made, parsed};
use super::{PROGRAM, Place, assert_trouble, bare, said, text};
use crate::site::Site;

/// How long a crawl may take to go on, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on a data directory and on PostgreSQL.
fn on_both(test: impl Fn(&dyn Fn(&[&str]) -> Output)) {
    let place = made();
    test(&|args| place.run(args));
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let objects = format!("file://{}", text(&place.path("objects")));
    let on = |args: &[&str]| bare(&[args, &["--database", &database.url]].concat());
    said(&on(&["init", "--objects", &objects]));
    test(&on);
}

/// The keys of an object, in order.
pub fn keys(value: &Value) -> Vec<&str> {
    let mut found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    found.sort_unstable();
    found
}

/// Asserts that a text has these words.
#[track_caller]
pub fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// What a user does first: a connection, a job, a look, an edit.
fn define(run: &dyn Fn(&[&str]) -> Output) {
    let says = |args: &[&str]| said(&run(args));
    assert_says(&says(&["job", "list"]), &["no job defined", "driftline job create"]);
    let create = ["job", "create", "docs", "--connection", "disk"];
    assert_trouble(&run(&create), &["no repository connection named disk", "connection create"]);
    says(&["connection", "create", "disk", "--connector", "files", "--kind", "repository"]);
    says(&[
        "connection",
        "create",
        "copy",
        "--connector",
        "files",
        "--kind",
        "output",
        "directory=/o",
    ]);
    assert_trouble(&run(&create), &["job docs: spec: roots"]);
    for (args, words) in [
        (["--type", "often"].as_slice(), ["often", "scan-once, continuous"]),
        (&["--priority", "11", "roots=/d"], ["priority is 11", "1 to 10"]),
        (&["--interval", "1d", "roots=/d"], ["--interval", "--type continuous"]),
        (&["--hops", "link=3", "roots=/d"], ["no links of type", "child"]),
        (&["--pipeline", "nowhere", "roots=/d"], ["stage 0", "nowhere"]),
        (&["--schedule", "hours=25", "roots=/d"], ["hours has 25", "0 to 23"]),
        (&["--notify", "mail", "roots=/d"], ["no notification connection", "mail"]),
        (&["rots=/d"], ["rots", "roots"]),
        (&["roots=docs"], ["roots", "docs"]),
    ] {
        assert_trouble(&run(&[&create[..], args].concat()), &words);
    }
    assert_says(&says(&["job", "list"]), &["no job defined"]);

    let rest = ["--priority", "3", "--hops", "child=5", "--pipeline", "copy", "roots=/srv/docs"];
    let schedule = ["--schedule", "hours=3 zone=Europe/Berlin window=2h"];
    assert_eq!(says(&[&create[..], &rest, &schedule].concat()), "job docs: new\n");
    assert_trouble(
        &run(&[&create[..], &rest].concat()),
        &["already a job named docs", "driftline job edit"],
    );
    let shown = says(&["job", "show", "docs"]);
    assert_says(
        &shown,
        &[
            "job docs: not yet run (INACTIVE)\n",
            "connection disk, version",
            "scan once, priority 3",
            "start method: window begin",
            "schedule hours=3 zone=Europe/Berlin window=2h",
            "at most 5 hops of type child",
            "roots = [\"/srv/docs\"]",
            "stage 0: output copy",
        ],
    );
    let next: Vec<&str> = shown.lines().filter(|line| line.contains("next run")).collect();
    assert_eq!(next.len(), 5, "{shown}");
    let is_at_three = |line: &&str| line.contains(" 03:00 CE") && line.ends_with("T");
    assert!(next.iter().all(is_at_three), "{shown}");

    let edited = says(&["job", "edit", "docs", "--rename", "handbook", "--priority", "5"]);
    assert_eq!(edited, "job docs: name -> handbook\njob handbook: priority 3 -> 5\n");
    let same = says(&["job", "edit", "handbook", "--priority", "5"]);
    assert_says(&same, &["already as requested"]);
    assert_trouble(&run(&["job", "edit", "docs"]), &["no job named docs", "driftline job list"]);
    assert_trouble(&run(&["job", "edit", "handbook", "--rename", ""]), &["a name has 1 to"]);
    let spans = ["--type", "continuous", "--interval", "1h30min", "--reseed", "1 day"];
    let told = says(&[&["job", "edit", "handbook"], &spans[..]].concat());
    assert_says(&told, &["recrawl_ms (none) -> 5400000", "type scan once -> continuous"]);
    assert_says(
        &says(&["job", "show", "handbook"]),
        &["revisit interval: 1 h 30 min", "reseed interval: 1 day", "expire after: never"],
    );
}

#[test]
fn a_user_defines_a_job_and_is_told_what_changed() {
    on_both(define);
}

/// A connection and a job of it.
pub fn with_job(run: &dyn Fn(&[&str]) -> Output) {
    said(&run(&["connection", "create", "disk", "--connector", "files", "--kind", "repository"]));
    said(&run(&["job", "create", "docs", "--connection", "disk", "roots=/srv/docs"]));
}

/// Every action on a job that nobody works on.
fn act(run: &dyn Fn(&[&str]) -> Output) {
    with_job(run);
    let job = |verb: &str| run(&["job", verb, "docs"]);
    for (verb, words) in [
        ("pause", ["cannot be paused: the job is INACTIVE", "driftline job start docs"]),
        ("resume", ["cannot be resumed: the job is INACTIVE", "driftline job start docs"]),
        ("abort", ["cannot be aborted: the job is INACTIVE", "nothing to abort"]),
        ("restart", ["cannot be restarted: the job is INACTIVE", "start it"]),
        ("restart-minimal", ["cannot be restarted: the job is INACTIVE", "start it"]),
        ("retry", ["cannot retry", "its next run retries failed documents anyway"]),
    ] {
        assert_trouble(&job(verb), &words);
    }
    for verb in ["start", "start-minimal", "pause", "abort", "show", "failed", "retry", "wait"] {
        assert_trouble(&run(&["job", verb, "dogs"]), &["no job named dogs", "driftline job list"]);
    }
    let started = said(&job("start-minimal"));
    assert_says(&started, &["INACTIVE -> READYFORSTARTUPMINIMAL (starting up)\n"]);
    assert_says(&started, &["no process is working on this job", "driftline work"]);
    assert_trouble(
        &job("start"),
        &["READYFORSTARTUPMINIMAL; only one that is INACTIVE", "restart docs"],
    );
    let listed = said(&run(&["job", "list"]));
    assert_says(&listed, &["name", "docs", "disk", "READYFORSTARTUPMINIMAL  starting up"]);
    assert_says(&listed, &["no process is working on job docs"]);
    assert_trouble(&run(&["job", "delete", "docs", "--yes"]), &["abort it first", "job wait docs"]);
    let restarted = said(&job("restart"));
    assert_says(&restarted, &["READYFORSTARTUPMINIMAL -> ABORTINGFORRESTART (restarting)"]);
    let aborted = parsed(&said(&run(&["job", "abort", "docs", "--json"])));
    assert_eq!(keys(&aborted), ["attended", "before", "job", "next", "state", "word"]);
    assert_eq!((&aborted["state"], &aborted["attended"]), (&json!("ABORTING"), &json!(false)));
    assert_says(aborted["next"].as_str().unwrap(), &["driftline work"]);
    let reset = said(&job("reset-seeding"));
    assert_says(&reset, &["job docs: its seeding is reset"]);
    let refused = run(&["job", "start", "docs", "--json"]);
    assert_trouble(&refused, &["{\"error\":\"job docs cannot be started: the job is ABORTING"]);
}

#[test]
fn every_action_is_done_or_refused_with_its_reason() {
    on_both(act);
}

#[test]
fn a_job_is_deleted_only_when_somebody_says_so() {
    on_both(|run| {
        with_job(run);
        let nobody = run(&["job", "delete", "docs"]);
        assert_trouble(&nobody, &["delete job docs and its 0 documents", "add --yes"]);
        assert_trouble(&run(&["job", "delete", "dogs", "--yes"]), &["no job named dogs"]);
        assert_says(&said(&run(&["job", "show", "docs"])), &["INACTIVE"]);
        let deleted = said(&run(&["job", "delete", "docs", "--yes"]));
        assert_says(&deleted, &["INACTIVE -> READYFORDELETE (terminating)", "driftline work"]);
        let waited = run(&["job", "wait", "docs", "--timeout", "200ms", "--for", "gone"]);
        assert_eq!(waited.status.code(), Some(1));
        let told = String::from_utf8(waited.stdout).unwrap();
        assert_says(&told, &["READYFORDELETE", "timed out", "driftline job show docs"]);
        let never = run(&["job", "wait", "docs"]);
        assert_eq!(never.status.code(), Some(1));
        let told = String::from_utf8(never.stdout).unwrap();
        assert_says(&told, &["it will not become inactive"]);
        assert_trouble(&run(&["job", "start", "docs"]), &["READYFORDELETE", "--for gone"]);
    });
}

#[test]
fn a_wait_ends_when_it_is_so_and_says_how_it_stands() {
    let place = made();
    with_job(&|args| place.run(args));
    assert_eq!(place.succeeds(&["job", "wait", "docs"]), "job docs: INACTIVE (not yet run)\n");
    assert_says(&place.succeeds(&["job", "wait", "dogs", "--for", "gone"]), &["GONE (gone)"]);
    place.execute("UPDATE job_states SET phase = 'active', run = 1");
    let wait = |args: &[&str]| place.run(&[&["job", "wait", "docs", "--json"], args].concat());
    let late = wait(&["--timeout", "0"]);
    assert_eq!(late.status.code(), Some(1));
    let late = parsed(&String::from_utf8(late.stdout).unwrap());
    assert_eq!(keys(&late), ["error", "job", "reached", "state", "time_up", "waited_ms", "word"]);
    assert_eq!((&late["state"], &late["time_up"]), (&json!("ACTIVE"), &json!(true)));
    // What happens meanwhile is noticed.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&["--for", "paused", "--timeout", "60"]));
        place.execute("UPDATE job_states SET paused = 1");
        let waited = waiting.join().unwrap();
        assert_eq!(parsed(&said(&waited))["state"], "PAUSED");
    });
    place.execute("UPDATE job_states SET paused = 0, phase = 'inactive', errortext = 'no disk'");
    let failed = place.run(&["job", "wait", "docs"]);
    assert_eq!(failed.status.code(), Some(1));
    let told = String::from_utf8(failed.stdout).unwrap();
    assert_eq!(told, "job docs: INACTIVE (error)\n    error: no disk\n");
    let listed = place.succeeds(&["job", "list"]);
    assert_says(&listed, &["INACTIVE  error", "\n    error: no disk"]);
    assert_trouble(&wait(&["--timeout", "soon"]), &["soon", "10min"]);
    assert_trouble(&wait(&["--for", "tea"]), &["inactive", "paused", "gone"]);
}

#[test]
fn a_crawl_is_paused_resumed_and_aborted_from_beside() {
    let site = Site::with_pages(400).serve();
    let place = made();
    let mut crawl = crawling(&place, &site);
    let listed = parsed(&place.succeeds(&["job", "list", "--json"]));
    assert_eq!((&listed[0]["state"], &listed[0]["attended"]), (&json!("ACTIVE"), &json!(true)));
    assert_says(&place.succeeds(&["job", "pause", "site"]), &["ACTIVE -> PAUSING (stopping)\n"]);
    let paused = place.succeeds(&["job", "wait", "site", "--for", "paused"]);
    assert_eq!(paused, "job site: PAUSED (paused)\n");
    assert_trouble(&place.run(&["job", "pause", "site"]), &["PAUSED", "job resume site"]);
    assert_says(&place.succeeds(&["job", "resume", "site"]), &["PAUSED -> RESUMING (resuming)\n"]);
    let started = Instant::now();
    while parsed(&place.succeeds(&["job", "list", "--json"]))[0]["state"] != "ACTIVE" {
        assert!(started.elapsed() < PATIENCE, "the crawl does not go on");
    }
    place.succeeds(&["job", "create", "other", "--connection", "web", "seeds=http://a.example/"]);
    let started = place.succeeds(&["job", "start", "other"]);
    assert_says(&started, &["no process is working on this job", "driftline work"]);
    let shown = place.succeeds(&["job", "show", "site"]);
    assert_says(&shown, &["run 1, started", "run 1 (full), started"]);
    let aborted = place.succeeds(&["job", "abort", "site"]);
    assert_says(&aborted, &["-> ABORTING (aborting)\n"]);
    assert_eq!(place.succeeds(&["job", "wait", "site"]), "job site: INACTIVE (aborted)\n");
    assert_eq!(crawl.0.wait().unwrap().code(), Some(1), "it was aborted");
}

/// A guide's indented lines, run by a shell in a new directory. Returns what they say.
fn run_guide(name: &str, commands_min: usize) -> String {
    let guide = format!("{}/../../docs/guide/{name}", env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(guide).unwrap();
    let commands: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let verbs = commands.iter().filter(|line| line.starts_with("driftline ")).count();
    assert!(verbs >= commands_min, "{verbs} commands in {name}");
    let place = Place::new();
    std::os::unix::fs::symlink(PROGRAM, place.path("driftline")).unwrap();
    let script = format!("set -e\nPATH=\"$PWD:$PATH\"\n{}\n", commands.join("\n"));
    let ran = Command::new("sh").arg("-c").arg(script).current_dir(place.folder.path()).output();
    said(&ran.unwrap())
}

#[test]
fn every_command_of_the_guide_runs() {
    let told = run_guide("jobs.md", 16);
    assert_says(&told, &["job docs: new", "priority 5 -> 3", "(starting up)", "(aborting)"]);
}

/// Every interval, policy and bound of a continuous job can be given, changed and shown.
#[test]
fn every_command_of_the_guide_to_looking_again_runs() {
    let told = run_guide("refetch.md", 6);
    assert_says(
        &told,
        &[
            "revisit interval: 15 min, at most 30 days",
            "reseed interval: 6 h",
            "documents expire after: 90 days",
            "refetch policy: formula",
            "at most 20000 fetches per day",
        ],
    );
}

#[test]
fn every_command_of_the_guide_to_hops_and_feeds_runs() {
    let told = run_guide("graph.md", 6);
    assert_says(&told, &["job site: new", "hops.link 3 -> 4", "job headlines: new"]);
}

#[test]
fn every_command_of_the_guide_to_the_web_runs() {
    let told = run_guide("web.md", 9);
    assert_says(&told, &["job docs: new", "robots data -> all", "job wiki: new", "***"]);
    assert!(!told.contains("password=secret") && !told.contains("\"secret\""), "{told}");
}

#[test]
fn every_command_of_the_guide_to_documents_runs() {
    let told = run_guide("documents.md", 6);
    assert_says(&told, &["its text could not be extracted: it is damaged"]);
}

#[test]
fn every_command_of_the_guide_to_rows_and_archives_runs() {
    let told = run_guide("sources.md", 8);
    assert_says(&told, &["job products: new", "https://shop.example/item/{id}", "job pages: new"]);
}
