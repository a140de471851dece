//! Definitions at the command line: connectors, authorities, connections, export and
//! import; with and without a process that holds the directory, and on PostgreSQL.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use store::testing::{FreshDatabase, skipped};

use super::in_use::Killed;
use super::{PROGRAM, Place, assert_trouble, bare, said, text};
use crate::site::{Served, Site};

/// How long a crawl may take to get going on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A directory as `init` makes it.
pub fn made() -> Place {
    let place = Place::new();
    place.succeeds(&["init"]);
    place
}

/// What a user does first: look, define, look again, undo.
fn define(run: &dyn Fn(&[&str]) -> Output) {
    let says = |args: &[&str]| said(&run(args));
    let listed = says(&["connector", "list"]);
    assert!(!listed.contains("not registered"), "{listed}");
    assert!(listed.contains("  web  "), "{listed}");
    let web = says(&["connector", "show", "web"]);
    assert!(web.contains("scope.reach") && web.contains("link, redirect"), "{web}");
    assert_trouble(&run(&["connector", "show", "files"]), &["--kind repository", "--kind output"]);

    assert_eq!(says(&["authgroup", "create", "staff"]), "authority group staff: new\n");
    assert_trouble(&run(&["authgroup", "create", "staff"]), &["already"]);
    assert_eq!(says(&["authdomain", "create", "corp"]), "authorization domain corp: new\n");
    let domains = parsed(&says(&["authdomain", "list", "--json"]));
    assert_eq!(domains, serde_json::json!([{"name": "corp", "description": ""}]));

    let create = ["connection", "create", "copy", "--connector", "files", "--kind", "output"];
    assert_trouble(&run(&create), &["output connection copy", "directory"]);
    let created = says(&[&create[..], &["directory=/srv/out"]].concat());
    assert_eq!(created, "output connection copy: new\n");
    assert_trouble(&run(&[&create[..], &["directory=/x"]].concat()), &["already", "edit"]);
    let throttle = r"^www\.=12/min,conns=2,kb=100";
    let args = ["connection", "create", "intranet", "--connector", "web", "--group", "staff"];
    says(&[&args[..], &["--throttle", throttle, "--max-connections", "4"]].concat());
    let shown = says(&["connection", "show", "intranet"]);
    for words in
        ["at most 4", "authority group staff", "12 documents/min, 2 connections, 100.0 kB/s"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let edited = says(&["connection", "edit", "copy", "--rename", "disk", "directory=/srv/b"]);
    assert!(edited.contains("name -> disk"), "{edited}");
    assert!(edited.contains("output connection disk: settings.directory /srv/out -> /srv/b"));
    assert_trouble(&run(&["connection", "edit", "disk", "dir=/x"]), &["dir", "directory"]);
    let both = ["connection", "edit", "disk", "--rename", "other", "directory=x"];
    assert_trouble(&run(&both), &["directory"]);
    says(&["connection", "show", "disk"]); // Neither half of the edit was done.
    assert_trouble(&run(&["authgroup", "delete", "staff"]), &["repository connection intranet"]);

    assert_eq!(says(&["connector", "deregister", "null"]), "output connector null: deregistered\n");
    assert!(says(&["connector", "deregister", "null"]).contains("already as requested"));
    assert_trouble(
        &run(&["connection", "create", "void", "--connector", "null"]),
        &["driftline connector register null --kind output"],
    );
    says(&["connector", "register", "null"]);
    says(&["connection", "create", "void", "--connector", "null"]);
    let checked = parsed(&says(&["connection", "check", "void", "--json"]));
    assert_eq!(checked["usable"], true);
    assert_eq!(says(&["connection", "delete", "void"]), "output connection void: deleted\n");
    assert_trouble(&run(&["connection", "show", "void"]), &["void", "connection list"]);
    let list = parsed(&says(&["connection", "list", "--json"]));
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"intranet") && names.ends_with(&["disk"]), "{names:?}");
}

#[test]
fn a_user_defines_connections_and_is_told_what_changed() {
    let place = made();
    define(&|args| place.run(args));
}

#[test]
fn the_same_on_postgresql() {
    let Some(database) = FreshDatabase::from_environment() else {
        return skipped("PostgreSQL: DRIFTLINE_TEST_POSTGRES is not set");
    };
    let place = Place::new();
    let objects = format!("file://{}", text(&place.path("objects")));
    let on = |args: &[&str]| bare(&[args, &["--database", &database.url]].concat());
    said(&on(&["init", "--objects", &objects]));
    define(&on);
}

/// A crawl that takes some seconds, and holds its directory meanwhile.
pub fn crawling(place: &Place, site: &Served) -> Killed {
    let mut crawl = Command::new(PROGRAM);
    crawl.args(["crawl", &site.seed(), "--job", "site", "--allow-private", "--delay", "0.05"]);
    crawl.args(["--scope", "any", "--retries", "0"]);
    crawl.arg("--data").arg(&place.data).stdout(Stdio::null()).stderr(Stdio::null());
    let mut crawl = Killed(crawl.spawn().unwrap());
    let started = Instant::now();
    loop {
        let status = parsed(&place.succeeds(&["status", "--json"]));
        let done = status["overview"]["jobs"][0]["counters"]["done"].as_i64();
        if !status["holder"].is_null() && done > Some(0) {
            return crawl;
        }
        assert!(started.elapsed() < PATIENCE, "the crawl does not get going: {status}");
        assert_eq!(crawl.0.try_wait().unwrap(), None, "the crawl has ended");
        std::thread::yield_now();
    }
}

#[test]
fn the_same_through_the_socket_of_a_crawl_which_survives_the_loss_of_its_connector() {
    let site = Site::with_pages(400).hosts(4).serve();
    let place = made();
    let mut crawl = crawling(&place, &site);
    let gone = place.succeeds(&["connector", "deregister", "web"]);
    assert_eq!(gone, "repository connector web: deregistered\n");
    let state = place.texts("SELECT status FROM jobs");
    assert_eq!(state, ["ACTIVE_UNINSTALLED"]);
    assert_eq!(place.texts("SELECT name FROM sqlite_master WHERE name = 'robots'").len(), 0);
    assert_eq!(crawl.0.try_wait().unwrap(), None, "the crawl does not fall over");
    place.succeeds(&["connector", "register", "web"]);
    assert_eq!(place.texts("SELECT status FROM jobs"), ["ACTIVE"]);
    define(&|args| place.run(args));
    assert!(
        place.succeeds(&["status"]).contains("held by process"),
        "it was the crawl that did it"
    );
    assert!(crawl.0.wait().unwrap().success());
    assert_eq!(site.unfetched(&site.traffic()), Vec::<String>::new());
}

const DOCUMENT: &str = r#"
[connections.repository.disk]
connector = "files"

[connections.output.copy]
connector = "files"
settings.directory = "/srv/out"

[jobs.docs]
connection = "disk"
priority = 3
spec.roots = ["/srv/docs"]
hops.child = 2

[[jobs.docs.pipeline]]
output = "copy"
"#;

#[test]
fn definitions_go_out_and_come_in_and_a_dry_run_only_tells() {
    let place = made();
    let file = place.path("definitions.toml");
    std::fs::write(&file, DOCUMENT).unwrap();
    let dry = place.succeeds(&["import", text(&file), "--dry-run"]);
    assert!(dry.contains("job docs: new\n") && dry.contains("nothing was changed"), "{dry}");
    assert_eq!(place.succeeds(&["connection", "list"]).lines().count(), 1, "none defined");
    let done = parsed(&place.succeeds(&["import", text(&file), "--json"]));
    assert_eq!((&done["applied"], done["changes"].as_array().unwrap().len()), (&true.into(), 3));
    assert!(place.succeeds(&["import", text(&file)]).contains("nothing changes"));

    let exported = place.path("out.toml");
    let told = place.succeeds(&["export", "-o", text(&exported)]);
    assert!(told.contains("2 connections and 1 jobs"), "{told}");
    assert_trouble(
        &place.run(&["export", "-o", text(&exported)]),
        &["out.toml", "does not exist yet"],
    );
    let other = made();
    other.succeeds(&["import", text(&exported)]);
    for format in ["toml", "json"] {
        let args = ["export", "--format", format];
        assert_eq!(other.succeeds(&args), place.succeeds(&args));
    }
    let json = parsed(&place.succeeds(&["export", "--json"]));
    assert_eq!(json["jobs"]["docs"]["hops"]["child"], 2);
    assert_eq!(json["connections"]["output"]["copy"]["settings"]["directory"], "/srv/out");

    std::fs::write(&file, DOCUMENT.replace("priority = 3", "priority = 5")).unwrap();
    assert_eq!(place.succeeds(&["import", text(&file)]), "job docs: priority 3 -> 5\n");
    std::fs::write(&file, DOCUMENT.replace("priority", "urgency")).unwrap();
    assert_trouble(&place.run(&["import", text(&file)]), &["urgency", "line", "driftline export"]);
    std::fs::write(&file, DOCUMENT.replace("\"/srv/docs\"", "\"docs\"")).unwrap();
    assert_trouble(&place.run(&["import", text(&file)]), &["job docs: spec: roots"]);
    assert_trouble(&place.run(&["import", "no/such.toml"]), &["no/such.toml"]);
    assert_trouble(&place.run(&["connection", "delete", "copy"]), &["in use by job docs"]);
}

#[test]
fn a_crawls_job_is_exported_and_comes_in_again_unchanged_while_it_runs() {
    let site = Site::with_pages(400).serve();
    let place = made();
    let mut crawl = crawling(&place, &site);
    let file = place.path("definitions.toml");
    place.succeeds(&["export", "-o", text(&file)]);
    assert!(std::fs::read_to_string(&file).unwrap().contains("[jobs.site"));
    assert!(place.succeeds(&["import", text(&file)]).contains("nothing changes"));
    let job = "[jobs.site]\n";
    let changed =
        std::fs::read_to_string(&file).unwrap().replace(job, &format!("{job}priority = 2\n"));
    std::fs::write(&file, changed).unwrap();
    assert_eq!(place.succeeds(&["import", text(&file)]), "job site: priority 5 -> 2\n");
    assert_eq!(place.texts("SELECT CAST(version AS TEXT) FROM job_definitions"), ["2"]);
    crawl.0.kill().unwrap();
    crawl.0.wait().unwrap();
}

#[test]
fn verbs_that_change_something_at_the_same_moment_all_do() {
    let place = made();
    let names = ["a", "b", "c", "d"];
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(|| place.succeeds(&["authgroup", "create", name]));
        }
    });
    let listed = parsed(&place.succeeds(&["authgroup", "list", "--json"]));
    assert_eq!(listed.as_array().unwrap().len(), names.len());
}

#[test]
fn a_holder_that_does_not_listen_is_named() {
    let place = made();
    let _held = place.hold();
    let holder = format!("in use by process {}", std::process::id());
    assert_trouble(&place.run(&["authgroup", "create", "staff"]), &[&holder]);
    place.succeeds(&["connector", "list"]);
    place.succeeds(&["export"]);
}

/// The guide's indented lines, run by a shell in a new directory.
#[test]
fn every_command_of_the_guide_runs() {
    let told = said(&follow(&Place::new(), "definitions.md", 15));
    for words in ["authority group staff: new", "job docs: new", "name -> disk"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn every_command_of_the_guide_to_outputs_runs() {
    let place = Place::new();
    let told = said(&follow(&place, "outputs.md", 10));
    assert!(told.contains("1 document forgotten"), "{told}");
    let copied = format!("out/file/%nil{}/site", place.folder.path().display());
    let copied = place.path(&copied);
    assert_eq!(std::fs::read_to_string(copied.join("one.txt")).unwrap(), "new\n");
    assert!(!copied.join("two.txt").exists());
}

#[test]
fn every_command_of_the_guide_to_transformations_runs() {
    let place = Place::new();
    let told = said(&follow(&place, "transformations.md", 11));
    let at = |name: &str| format!("out/file/%nil{}/site/{name}", place.folder.path().display());
    assert_eq!(told.matches(&at("one.html")).count(), 2, "{told}");
    assert_eq!(told.matches(&at("two.txt")).count(), 1, "only after the change: {told}");
    for name in ["allowed", "metadata", "limiter", "html", "language"] {
        assert!(told.contains(&format!("transformation  {name} ")), "{name}: {told}");
    }
}

#[test]
fn every_command_of_the_guide_to_notifications_runs() {
    let told = said(&follow(&Place::new(), "notifications.md", 7));
    assert!(told.contains("job docs: new") && told.contains("INACTIVE"), "{told}");
}

/// Runs the indented lines of a guide in a directory.
pub(super) fn follow(place: &Place, guide: &str, commands_min: usize) -> std::process::Output {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
    let guide = std::fs::read_to_string(format!("{path}/{guide}")).unwrap();
    let commands: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert!(commands.iter().filter(|line| line.starts_with("driftline ")).count() >= commands_min);
    std::os::unix::fs::symlink(PROGRAM, place.path("driftline")).unwrap();
    let script = format!("set -e\nPATH=\"$PWD:$PATH\"\n{}\n", commands.join("\n"));
    let ran = Command::new("sh").arg("-c").arg(script).current_dir(place.folder.path()).output();
    ran.unwrap()
}

#[test]
fn every_command_of_the_guide_to_throttles_runs() {
    let told = said(&follow(&Place::new(), "throttles.md", 8));
    for words in ["12 documents/min", "2 connections, 100.0 kB/s", "priority 3 -> 8"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}
