//! `driftline serve` as its users run it: the real process, called over HTTP and by the
//! other verbs, through kills and in good order; and a tool that nobody here wrote calls
//! every route with whatever it can think of.

use super::{GLANCE, Home, PATIENCE, Running, assert_trouble, text};
use crate::site::{Served, Site};
use reqwest::blocking::Client;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use store::testing::{environment, skipped};

const PAGES: usize = 40;

/// A server at work.
pub(super) struct Server {
    running: Running,
    url: String,
}

impl Server {
    pub(super) fn start(home: &Home, more: &[&str]) -> Server {
        let mut command = home.command(&["serve", "--json", "--lease", "1"]);
        command.args(["--log", "json", "--listen", "127.0.0.1:0"]).args(more);
        let running = Running::start(command);
        running.prints("}\n");
        let said = running.said.texts.lock().unwrap()[0].clone();
        let said: Value = serde_json::from_str(text(&said).lines().next().unwrap()).unwrap();
        Server { running, url: said["url"].as_str().unwrap().to_owned() }
    }

    /// Asks it to end, and looks at what it has logged.
    pub(super) fn ended(self) -> Vec<Value> {
        self.running.signal("TERM");
        let ended = self.running.ended();
        assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
        let log = text(&ended.stderr);
        assert!(!log.contains("dl_"), "no token is in the log: {log}");
        let parsed =
            log.lines().map(|it| serde_json::from_str(it).unwrap_or_else(|_| panic!("{it}")));
        let lines: Vec<Value> = parsed.collect();
        let stopping = |it: &Value| it["message"].to_string().contains("stopping after");
        assert!(lines.iter().any(stopping), "the signal is told in the form of the log: {log}");
        lines
    }
}

/// Makes a token for it, by whoever has the rows.
pub(super) fn token(home: &Home, name: &str, role: &str) -> String {
    let command = ["token", "create", name, "--role", role, "--json"];
    let output = home.command(&command).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    answer["token"].as_str().unwrap().to_owned()
}

/// Who calls.
pub(super) struct Caller {
    client: Client,
    url: String,
    token: String,
}

impl Caller {
    pub(super) fn new(server: &Server, token: &str) -> Caller {
        Caller { client: Client::new(), url: server.url.clone(), token: token.to_owned() }
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.bearer_auth(&self.token).send().unwrap();
        let (status, said) = (response.status(), response.text().unwrap());
        assert!(status.is_success(), "{path}: {status} {said}");
        serde_json::from_str(&said).unwrap_or(Value::String(said))
    }

    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Value {
        self.call("GET", path, None)
    }

    /// Defines a job over a site, and starts it.
    #[track_caller]
    fn crawls(&self, site: &Served) {
        let connection = json!({"connector": "web"});
        self.call("PUT", "/api/v1/connections/repository/sites", Some(&connection));
        let job = json!({"connection": "sites", "spec": {
            "seeds": [site.seed()], "delay_ms": 0, "allow_private": true,
        }});
        let made = self.call("PUT", "/api/v1/jobs/site", Some(&job));
        assert_eq!(made["applied"], true, "{made}");
        let acted = self.call("POST", "/api/v1/jobs/site/start", None);
        assert_eq!(acted["before"], "INACTIVE", "{acted}");
    }

    /// Waits until an answer is as it should be.
    #[track_caller]
    pub(super) fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let answer = self.get(path);
            if holds(&answer) {
                return answer;
            }
            assert!(began.elapsed() < PATIENCE, "{path} is still {answer}");
            std::thread::park_timeout(GLANCE);
        }
    }
}

fn is_over(job: &Value) -> bool {
    job["state"] == "INACTIVE" && job["counters"]["done"] == PAGES
}

fn a_job_is_defined_started_followed_and_searched(home: &Home) {
    let site = Site::with_pages(PAGES).serve();
    let server = Server::start(home, &[]);
    let ready = Client::new().get(format!("{}/readyz", server.url)).send().unwrap();
    assert_eq!(ready.text().unwrap(), "ready\n");
    let secret = token(home, "me", "admin");
    let me = Caller::new(&server, &secret);
    me.crawls(&site);
    me.until("/api/v1/jobs/site", is_over);
    let found = me.until("/api/v1/search?q=page&limit=100", |it| it["total"] == PAGES);
    assert!(found["hits"][0]["snippet"].is_array(), "{found}");
    let top = me.until("/api/v1/top", |it| !it["items"].as_array().unwrap().is_empty());
    assert!(top["items"][0]["incount"].as_u64() > Some(0), "{top}");
    let history = me.get("/api/v1/reports/history?connection=sites&activity=fetch");
    assert!(!history["rows"].as_array().unwrap().is_empty(), "{history}");
    let nodes = me.get("/api/v1/nodes");
    let works = |it: &Value| it["roles"] == "crawl work" && it["state"] == "ready";
    assert!(nodes.as_array().unwrap().iter().any(works), "{nodes}");
    assert!(me.get("/metrics").as_str().unwrap().contains("driftline_documents{job=\"site\""));
    let audit = me.get("/api/v1/audit");
    assert_eq!(
        audit["entries"][0]["changes"].as_str().unwrap().split(':').next(),
        Some("job site")
    );
    says_the_same_from_afar(home, &me);
    does_not_crawl_itself(&me);

    // A second start goes on with the same tokens and the same data.
    let log = server.ended();
    assert!(log.iter().any(|it| it["path"] == "/api/v1/search" && it["caller"] == "me"));
    let is_own = |it: &Value| it["path"] == "/healthz" || it["path"] == "/robots.txt";
    assert!(!log.iter().any(is_own), "it has asked itself: {log:?}");
    let mut server = Server::start(home, &[]);
    let me = Caller::new(&server, &secret);
    assert_eq!(me.get("/api/v1/search?q=page")["total"], PAGES);
    server.running.kill();
    let server = Server::start(home, &["--no-work"]);
    let me = Caller::new(&server, &secret);
    assert_eq!(me.get("/api/v1/search?q=page")["total"], PAGES);
    server.ended();
    home.verify();
}

/// What a server says is nothing that it crawls, whatever a job allows.
fn does_not_crawl_itself(me: &Caller) {
    let seed = format!("{}/healthz", me.url);
    let spec = json!({"seeds": [seed], "delay_ms": 0, "allow_private": true});
    let job = json!({"connection": "sites", "spec": spec});
    me.call("PUT", "/api/v1/jobs/own", Some(&job));
    me.call("POST", "/api/v1/jobs/own/start", None);
    let is_over = |it: &Value| it["state"] == "INACTIVE" && it["counters"]["failed"] == 1;
    me.until("/api/v1/jobs/own", is_over);
}

/// Every verb that asks says the same through the server as beside the data.
fn says_the_same_from_afar(home: &Home, me: &Caller) {
    let url = &me.get("/api/v1/top")["items"][0]["url"];
    let url = url.as_str().unwrap();
    for verb in [
        &["job", "list"][..],
        &["job", "show", "site"],
        &["job", "failed", "site"],
        &["documents", "--limit", "5"],
        &["why", url],
        &["hosts"],
        &["links", url],
        &["page", url],
        &["top"],
        &["domains"],
        &["report", "queue", "--connection", "sites"],
        &["connection", "list"],
        &["connector", "list"],
        &["export"],
        &["token", "list"],
        &["audit"],
    ] {
        let here = home.command(verb).arg("--json").output().unwrap();
        let mut command = Command::new(super::PROGRAM);
        command.args(verb).args(["--json", "--server", &me.url]).env("DRIFTLINE_TOKEN", &me.token);
        let afar = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(afar.status.code(), here.status.code(), "{verb:?} {}", text(&afar.stderr));
        let read = |bytes: &[u8]| -> Value {
            let mut answer: Value = serde_json::from_slice(bytes).unwrap();
            // It tells how long ago things were.
            if let Some(why) = answer.pointer_mut("/answers/0") {
                (why["details"], why["sentence"]) = (Value::Null, Value::Null);
            }
            answer
        };
        assert_eq!(read(&here.stdout), read(&afar.stdout), "{verb:?}");
    }
    let asked = |verb: &[&str], token: &str| {
        let mut command = Command::new(super::PROGRAM);
        command.args(verb).args(["--server", &me.url, "--token", token]);
        command.stdin(Stdio::null()).output().unwrap()
    };
    assert_trouble(&asked(&["status"], "dl_wrong"), &["token"]);
    assert_trouble(&asked(&["gc"], &me.token), &["where the data is"]);
    assert_trouble(&asked(&["export", "--secrets"], &me.token), &["secrets"]);
    let paused = asked(&["job", "pause", "site"], &me.token);
    assert_trouble(&paused, &["cannot be paused"]);
}

#[test]
fn a_job_is_defined_started_followed_and_searched_on_sqlite() {
    a_job_is_defined_started_followed_and_searched(&Home::directory());
}

#[test]
fn a_job_is_defined_started_followed_and_searched_on_postgres() {
    if let Some(home) = Home::database() {
        a_job_is_defined_started_followed_and_searched(&home);
    }
}

#[test]
fn nobody_but_this_machine_reaches_a_server_that_is_not_encrypted() {
    let home = Home::directory();
    for (flags, words) in [
        (&["--listen", "0.0.0.0:0"][..], &["--tls-cert", "--behind-proxy"][..]),
        (&["--listen", "[::]:0"], &["--tls-cert"]),
        (&["--listen", "192.0.2.1:0", "--host", "x.example"], &["--tls-cert"]),
        (&["--tls-cert", "/nowhere"], &["--tls-key"]),
        (&["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], &["/nowhere"]),
        (&["--tls-cert", "a", "--tls-key", "b", "--behind-proxy"], &["--behind-proxy"]),
        (&["--listen", "here"], &["--listen"]),
        (&["--server", "http://localhost:1", "--token", "x"], &["where the data is"]),
    ] {
        let output = home.command(&["serve"]).args(flags).output();
        let output = match flags.contains(&"--server") {
            true => Command::new(super::PROGRAM).arg("serve").args(flags).output(),
            false => output,
        };
        assert_trouble(&output.unwrap(), words);
        assert!(!home.data().exists(), "nothing was made: {flags:?}");
    }
    let server = Server::start(&home, &["--behind-proxy", "--host", "search.example"]);
    let port = server.url.rsplit(':').next().unwrap();
    let taken = format!("127.0.0.1:{port}");
    let again = Home::directory();
    assert_trouble(
        &again.command(&["serve", "--listen", &taken]).output().unwrap(),
        &["cannot listen", "--listen"],
    );
    let called = |host: &str| {
        let request = Client::new().get(format!("{}/healthz", server.url)).header("host", host);
        request.send().unwrap().status().as_u16()
    };
    assert_eq!((called("search.example"), called("evil.example")), (200, 421));
    assert_trouble(
        &home.command(&["serve"]).args(["--listen", "127.0.0.1:0"]).output().unwrap(),
        &["in use"],
    );
    server.ended();
}

/// What counts as a refusal of what the document does not allow.
const CONFIGURATION: &str = "[checks]\nnegative_data_rejection.expected-statuses = \
    [400, 401, 403, 404, 405, 409, 413, 414, 415, 421, 429, 431]\n";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_schema_conformance,response_headers_conformance,negative_data_rejection,\
    unsupported_method,ignored_auth";

fn nothing_breaks_it(home: &Home, phase: &str) {
    let tool = environment("DRIFTLINE_TEST_PYTHON")
        .map(|it| Path::new(&it).with_file_name("schemathesis"));
    let Some(tool) = tool.filter(|it| it.exists()) else {
        return skipped("schemathesis: it is not beside the Python of DRIFTLINE_TEST_PYTHON");
    };
    let site = Site::with_pages(PAGES).serve();
    home.crawled(&[&site.seed()]);
    let server = Server::start(home, &[]);
    let me = Caller::new(&server, &token(home, "me", "admin"));
    let folder = home.folder.path();
    let (document, configuration) = (folder.join("api.json"), folder.join("schemathesis.toml"));
    std::fs::write(&document, me.get("/api/v1/openapi.json").to_string()).unwrap();
    std::fs::write(&configuration, CONFIGURATION).unwrap();
    let mut command = Command::new(tool);
    command.arg("--config-file").arg(&configuration).arg("run").arg(&document);
    command.args(["--url", &me.url, "--workers", "1", "--checks", CHECKS]);
    // How long it takes to think of something is its own affair.
    command.args(["--suppress-health-check", "all"]);
    // It must not take its own token back.
    command.args(["--exclude-path", "/api/v1/tokens/{name}"]);
    command.args(["--phases", phase, "--max-examples", "10", "--no-color"]);
    command.args(["--header", &format!("Authorization: Bearer {}", me.token)]);
    let ended = Running::start({
        command.current_dir(folder);
        command
    })
    .ended();
    let said: String = text(&ended.stdout)
        .lines()
        .map(|it| it.chars().take(300).collect::<String>() + "\n")
        .collect();
    assert!(ended.status.success(), "{said}{}", text(&ended.stderr));
    assert!(me.get("/api/v1/search?q=page&limit=1")["total"].is_u64(), "it still answers");
    let log = server.ended();
    let broken = log.iter().find(|it| it["status"].as_u64() >= Some(500) || it["level"] == "error");
    assert!(broken.is_none(), "{broken:?}");
    assert!(log.len() > 300, "{}", log.len());
}

#[test]
fn schemathesis_finds_nothing_by_what_the_document_says_on_sqlite() {
    nothing_breaks_it(&Home::directory(), "coverage");
}

#[test]
fn schemathesis_finds_nothing_by_chance_on_postgres() {
    if let Some(home) = Home::database() {
        nothing_breaks_it(&home, "fuzzing");
    }
}

/// A server that writes its log to a pipe, once it listens; and the pipe's other end.
fn logging_to_a_pipe(
    home: &Home,
) -> (std::process::Child, std::io::PipeReader, std::io::PipeWriter) {
    let (log, writer) = std::io::pipe().unwrap();
    let mut command = home.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.stdout(Stdio::piped()).stderr(writer.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("url"), "{line}");
    (child, log, writer)
}

#[track_caller]
fn ends_by_sigterm(mut child: std::process::Child) {
    let script = format!("kill -TERM {}", child.id());
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it is still there");
        }
        std::thread::park_timeout(GLANCE);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn sigterm_ends_a_server_whose_log_nobody_reads_any_more() {
    let home = Home::directory();
    let (child, log, writer) = logging_to_a_pipe(&home);
    drop((log, writer));
    ends_by_sigterm(child);
}

#[test]
fn sigterm_ends_a_server_whose_log_is_not_read_while_its_pipe_is_full() {
    let home = Home::directory();
    let (child, log, mut writer) = logging_to_a_pipe(&home);
    let (full, is_full) = std::sync::mpsc::channel();
    let filling = std::thread::spawn(move || {
        // A pipe takes 64 KB; what comes after waits.
        for _ in 0..16 {
            if writer.write_all(&[b'x'; 4_096]).is_err() {
                break;
            }
        }
        let _ = full.send(());
    });
    // What the server has logged is in it, too: the last write may wait.
    let _ = is_full.recv_timeout(Duration::from_secs(1));
    ends_by_sigterm(child);
    drop(log);
    filling.join().unwrap();
}
