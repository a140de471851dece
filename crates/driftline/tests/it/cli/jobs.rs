//! Jobs at the command line: defined, started and stopped, waited for, their dead
//! letters; with and without a process that holds the directory, and on PostgreSQL.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::testing::{FreshDatabase, commit_sample, skipped};

use super::definitions::{crawling, made, parsed};
use super::{PROGRAM, Place, assert_trouble, bare, said, text};
use crate::site::Site;
use crate::web::Answer;

/// How long a crawl may take to go on, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

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

fn keys(value: &Value) -> Vec<&str> {
    let mut found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    found.sort_unstable();
    found
}

#[track_caller]
fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// What a user does first: a connection, a job, a look, an edit.
fn define(run: &dyn Fn(&[&str]) -> Output) {
    let says = |args: &[&str]| said(&run(args));
    assert_says(&says(&["job", "list"]), &["there is none", "driftline job create"]);
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
    assert_says(&says(&["job", "list"]), &["there is none"]);

    let rest = ["--priority", "3", "--hops", "child=5", "--pipeline", "copy", "roots=/srv/docs"];
    let schedule = ["--schedule", "hours=3 zone=Europe/Berlin window=2h"];
    assert_eq!(says(&[&create[..], &rest, &schedule].concat()), "job docs: new\n");
    assert_trouble(&run(&[&create[..], &rest].concat()), &["docs already", "driftline job edit"]);
    let shown = says(&["job", "show", "docs"]);
    assert_says(
        &shown,
        &[
            "job docs: not yet run (INACTIVE)\n",
            "connection disk, version",
            "scan once, priority 3",
            "start method window begin",
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
    assert_says(&same, &["so already"]);
    assert_trouble(&run(&["job", "edit", "docs"]), &["no job named docs", "driftline job list"]);
    assert_trouble(&run(&["job", "edit", "handbook", "--rename", ""]), &["a name has 1 to"]);
    let spans = ["--type", "continuous", "--interval", "1h30min", "--reseed", "1 day"];
    let told = says(&[&["job", "edit", "handbook"], &spans[..]].concat());
    assert_says(&told, &["recrawl_ms (none) -> 5400000", "type scan once -> continuous"]);
    assert_says(
        &says(&["job", "show", "handbook"]),
        &[
            "looked at again after: 1 h 30 min",
            "asked for again after: 1 day",
            "expire after: never",
        ],
    );
}

#[test]
fn a_user_defines_a_job_and_is_told_what_changed() {
    on_both(define);
}

/// A connection and a job of it.
fn with_job(run: &dyn Fn(&[&str]) -> Output) {
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
        ("retry", ["cannot retry", "its next run looks at what has failed anyway"]),
    ] {
        assert_trouble(&job(verb), &words);
    }
    for verb in ["start", "start-minimal", "pause", "abort", "show", "failed", "retry", "wait"] {
        assert_trouble(&run(&["job", verb, "dogs"]), &["no job named dogs", "driftline job list"]);
    }
    let started = said(&job("start-minimal"));
    assert_says(&started, &["INACTIVE -> READYFORSTARTUPMINIMAL (starting up)\n"]);
    assert_says(&started, &["nobody works on this job now", "driftline work"]);
    assert_trouble(
        &job("start"),
        &["READYFORSTARTUPMINIMAL; only one that is INACTIVE", "restart docs"],
    );
    let listed = said(&run(&["job", "list"]));
    assert_says(&listed, &["name", "docs", "disk", "READYFORSTARTUPMINIMAL  starting up"]);
    assert_says(&listed, &["nobody works on job docs now"]);
    assert_trouble(&run(&["job", "delete", "docs", "--yes"]), &["abort it first", "job wait docs"]);
    let restarted = said(&job("restart"));
    assert_says(&restarted, &["READYFORSTARTUPMINIMAL -> ABORTINGFORRESTART (restarting)"]);
    let aborted = parsed(&said(&run(&["job", "abort", "docs", "--json"])));
    assert_eq!(keys(&aborted), ["attended", "before", "job", "next", "state", "word"]);
    assert_eq!((&aborted["state"], &aborted["attended"]), (&json!("ABORTING"), &json!(false)));
    assert_says(aborted["next"].as_str().unwrap(), &["driftline work"]);
    let reset = said(&job("reset-seeding"));
    assert_says(&reset, &["job docs: its seeding begins anew"]);
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
        assert_trouble(&nobody, &["delete job docs with its 0 documents", "add --yes"]);
        assert_trouble(&run(&["job", "delete", "dogs", "--yes"]), &["no job named dogs"]);
        assert_says(&said(&run(&["job", "show", "docs"])), &["INACTIVE"]);
        let deleted = said(&run(&["job", "delete", "docs", "--yes"]));
        assert_says(&deleted, &["INACTIVE -> READYFORDELETE (terminating)", "driftline work"]);
        let waited = run(&["job", "wait", "docs", "--timeout", "200ms", "--for", "gone"]);
        assert_eq!(waited.status.code(), Some(1));
        let told = String::from_utf8(waited.stdout).unwrap();
        assert_says(&told, &["READYFORDELETE", "the time is up", "driftline job show docs"]);
        let never = run(&["job", "wait", "docs"]);
        assert_eq!(never.status.code(), Some(1));
        let told = String::from_utf8(never.stdout).unwrap();
        assert_says(&told, &["it will not be inactive"]);
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

/// A directory with a job that has six documents: two are ready, four are done, of which
/// three have failed; two of these for lack of an address.
fn with_failures() -> Place {
    let place = made();
    with_job(&|args| place.run(args));
    let held = place.hold();
    let layout = held.layout().objects();
    let objects = store::objects::Objects::open(&store::objects::Location::Directory(layout));
    let objects = objects.unwrap();
    for part in [0, 3] {
        commit_sample(held.db(), &objects, store::ids::Part(part), 0).unwrap();
    }
    drop(held);
    for sql in [
        "UPDATE queue SET jobid = (SELECT id FROM job_definitions)",
        "UPDATE counters SET jobid = (SELECT id FROM job_definitions) WHERE jobid = 1",
        "UPDATE bin_work SET jobid = (SELECT id FROM job_definitions)",
        "UPDATE chunks SET jobid = (SELECT id FROM job_definitions)",
        "UPDATE queue SET state = 'failed', reason = 'dns', detail = 'no address'
         WHERE state = 'done' AND part = 0",
        "UPDATE queue SET state = 'failed', reason = 'http-503'
         WHERE part = 3 AND id = (SELECT MAX(id) FROM queue WHERE part = 3 AND state = 'done')",
        "UPDATE counters SET name = 'failed' WHERE name = 'done' AND part = 0",
        "UPDATE counters SET value = 1 WHERE name = 'done' AND part = 3",
        "INSERT INTO counters (part, jobid, name, value)
         SELECT 3, id, 'failed', 1 FROM job_definitions",
        "UPDATE job_states SET run = 1, starttime = 0",
    ] {
        place.execute(sql);
    }
    assert_says(&place.succeeds(&["verify"]), &["all is as it was"]);
    place
}

#[test]
fn what_has_failed_is_listed_with_its_reason_and_tried_again() {
    let place = with_failures();
    let listed = place.succeeds(&["job", "failed", "docs"]);
    assert_says(&listed, &["dns", "http-503", "\n    no address\n", "http://example.com/1000000"]);
    let page = |cursor: Option<&str>| {
        let mut args = vec!["job", "failed", "docs", "--limit", "2", "--json"];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        parsed(&place.succeeds(&args))
    };
    let first = page(None);
    assert_eq!(keys(&first), ["cursor", "documents", "failed", "job"]);
    assert_eq!(
        keys(&first["documents"][0]),
        ["checked_ms", "detail", "document", "reason", "run", "status", "tries"]
    );
    let rest = page(first["cursor"].as_str());
    assert_eq!((rest["documents"].as_array().unwrap().len(), &rest["cursor"]), (1, &Value::Null));
    let shown = place.succeeds(&["job", "failed", "docs", "--limit", "1"]);
    let (_, command) = shown.split_once("go on with: driftline ").unwrap();
    let args: Vec<&str> = command.split_whitespace().collect();
    assert_says(&said(&bare(&args)), &["http://example.com/1000001"]);
    let none = place.succeeds(&["job", "failed", "docs", "--reason", "tea"]);
    assert_eq!(none, "no such document of job docs has failed\n");
    assert_says(
        &place.succeeds(&["job", "show", "docs"]),
        &["6 documents: 1 processed, 2 outstanding, 3 failed"],
    );

    let retry = |args: &[&str]| place.run(&[&["job", "retry", "docs"], args].concat());
    assert_trouble(&retry(&[]), &["cannot retry", "INACTIVE", "driftline job start docs"]);
    place.execute("UPDATE job_states SET phase = 'shutting down'");
    assert_trouble(&retry(&[]), &["SHUTTINGDOWN", "its run is ending"]);
    place.execute("UPDATE job_states SET phase = 'active'");
    assert_eq!(said(&retry(&["--reason", "tea"])), "job docs: 0 documents are ready again\n");
    assert_eq!(said(&retry(&["--reason", "http-503"])), "job docs: 1 document is ready again\n");
    let named = retry(&["HTTP://EXAMPLE.com/1000000", "http://nobody.example/", "--json"]);
    assert_eq!(named.status.code(), Some(1), "one of them has not failed");
    let named = parsed(&String::from_utf8(named.stdout).unwrap());
    let expected = json!({"job": "docs", "retried": 1, "unknown": ["http://nobody.example/"]});
    assert_eq!(named, expected);
    assert_eq!(said(&retry(&[])), "job docs: 1 document is ready again\n");
    assert_eq!(place.succeeds(&["job", "failed", "docs"]), "no document of job docs has failed\n");
    assert_trouble(
        &retry(&["--reason", "dns", "http://a.example/"]),
        &["--reason", "cannot be used"],
    );
    assert_says(&place.succeeds(&["verify"]), &["all is as it was"]);
}

#[test]
fn scripts_rely_on_these_keys() {
    let place = with_failures();
    let list = parsed(&place.succeeds(&["job", "list", "--json"]));
    let line = [
        "attended",
        "connection",
        "documents",
        "error",
        "failed",
        "name",
        "outstanding",
        "processed",
        "run",
        "state",
        "word",
    ];
    assert_eq!(keys(&list[0]), line);
    let of = |name: &str| list[0][name].as_i64();
    let counted = ["documents", "outstanding", "processed", "failed"].map(|name| of(name).unwrap());
    assert_eq!(counted, [6, 2, 1, 3]);
    let shown = parsed(&place.succeeds(&["job", "show", "docs", "--json"]));
    let more = [
        "begun_ms",
        "counters",
        "definition",
        "ended_ms",
        "next_runs_ms",
        "runs",
        "version",
        "window_end_ms",
    ];
    let mut expected = [&line[..], &more].concat();
    expected.sort_unstable();
    assert_eq!(keys(&shown), expected);
    assert_eq!(shown["definition"]["spec"]["roots"], json!(["/srv/docs"]));
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
    assert_says(&started, &["nobody works on this job now", "driftline work"]);
    let shown = place.succeeds(&["job", "show", "site"]);
    assert_says(&shown, &["run 1, begun", "run 1 (full), begun"]);
    let aborted = place.succeeds(&["job", "abort", "site"]);
    assert_says(&aborted, &["-> ABORTING (aborting)\n"]);
    assert_eq!(place.succeeds(&["job", "wait", "site"]), "job site: INACTIVE (aborted)\n");
    assert_eq!(crawl.0.wait().unwrap().code(), Some(1), "it was aborted");
}

#[test]
fn a_crawl_tries_again_what_it_has_given_up_when_somebody_says_so() {
    let site = Site::with_pages(100).serve();
    site.intercept(|request| (request.path == "/p/1").then(|| Answer::status(500)));
    let place = made();
    let mut crawl = crawling(&place, &site);
    let url = site.page_url(1);
    let failed = || parsed(&place.succeeds(&["job", "failed", "site", "--json"]));
    let started = Instant::now();
    while failed()["failed"] != 1 {
        assert!(started.elapsed() < PATIENCE, "nothing has failed");
    }
    let letter = &failed()["documents"][0];
    assert_eq!((letter["document"].as_str(), &letter["reason"]), (Some(&*url), &json!("http-500")));
    assert_eq!((&letter["tries"], &letter["run"]), (&json!(1), &json!(1)));
    site.intercept(|_| None);
    let told = place.succeeds(&["job", "retry", "site", &url]);
    assert_eq!(told, "job site: 1 document is ready again\n");
    assert!(crawl.0.wait().unwrap().success());
    assert_eq!(site.traffic().counts()["127.0.0.1/p/1"], 2);
    assert_eq!(place.succeeds(&["job", "failed", "site"]), "no document of job site has failed\n");
    let listed = parsed(&place.succeeds(&["job", "list", "--json"]));
    assert_eq!((&listed[0]["word"], &listed[0]["processed"]), (&json!("done"), &json!(100)));
    assert_says(&place.succeeds(&["verify"]), &["all is as it was"]);
}

/// The guide's indented lines, run by a shell in a new directory.
#[test]
fn every_command_of_the_guide_runs() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/jobs.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let commands: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert!(commands.iter().filter(|line| line.starts_with("driftline ")).count() > 15);
    let place = Place::new();
    std::os::unix::fs::symlink(PROGRAM, place.path("driftline")).unwrap();
    let script = format!("set -e\nPATH=\"$PWD:$PATH\"\n{}\n", commands.join("\n"));
    let ran = Command::new("sh").arg("-c").arg(script).current_dir(place.folder.path()).output();
    let told = said(&ran.unwrap());
    for words in ["job docs: new", "priority 5 -> 3", "(starting up)", "(aborting)"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}
