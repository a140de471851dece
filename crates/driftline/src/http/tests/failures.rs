//! What went wrong, and on whose side: errors of ours are a number for the caller and a cause
//! in the log, on every route; refusals keep their text.

use super::roles::{Operation, operations};
use super::*;
use anyhow::{Context, anyhow};
use store::testing::{both_databases, on_sqlite};

/// What nobody outside is told.
const CAUSE: &str = "row 7 of /srv/secret/place is torn";

/// Routes that ask no verb, so that none can fail.
const WITHOUT_VERB: [&str; 3] = ["/healthz", "/readyz", "/api/v1/openapi.json"];

/// A web connection and a job, both named x.
fn define_x(api: &Api) {
    let definitions = json!({
        "connections": {"repository": {"x": {"connector": "web"}}},
        "jobs": {"x": {"connection": "x", "spec": {"seeds": ["http://a.example/"]}}},
    });
    let (status, answer) = api.send_json("POST", "/api/v1/definitions", &definitions);
    assert_eq!(status, 200, "{answer}");
}

/// A body that the route takes.
fn body_of(it: &Operation) -> Option<Json> {
    let body = match it.path.as_str() {
        path if path.starts_with("/api/v1/jobs/") => json!({"connection": "x"}),
        path if path.starts_with("/api/v1/connections/") => json!({"connector": "web"}),
        "/api/v1/tokens" => json!({"name": "new", "role": "viewer"}),
        "/api/v1/ask" => json!({"verb": "status"}),
        _ => json!({}),
    };
    it.body.as_ref().map(|_| body)
}

fn called(api: &Api, it: &Operation) -> (u16, Json) {
    match body_of(it) {
        Some(body) => api.send_json(&it.method, &it.path, &body),
        None => status_and_json(api.send(&it.method, &it.path, Role::Admin)),
    }
}

/// Checks that a problem tells nothing but a number, and that the log has the cause there.
#[track_caller]
fn check_hidden(api: &Api, what: &str, (status, problem): &(u16, Json), cause: &str) {
    assert_eq!(*status, 500, "{what}: {problem}");
    assert!(!problem.to_string().contains("secret"), "{what}: {problem}");
    let number = problem["instance"].as_str().unwrap().rsplit(':').next().unwrap();
    assert!(problem["detail"].as_str().unwrap().contains(number), "{what}: {problem}");
    let log = api.log.text();
    let lines = log.lines().map(|it| serde_json::from_str::<Json>(it).unwrap());
    let line = lines.into_iter().find(|it| it["problem"] == number).unwrap();
    assert_eq!((&line["level"], &line["status"]), (&json!("error"), &json!(500)), "{what}");
    assert_eq!(line["cause"], cause, "{what}");
}

#[test]
fn an_error_of_ours_is_a_number_for_the_caller_and_a_cause_in_the_log_on_every_route() {
    both_databases(|db| {
        let api = Api::of(db);
        define_x(&api);
        let (_, document) = api.get("/api/v1/openapi.json");
        let torn = || Err(anyhow!(CAUSE)).context("reading the shelf");
        *api.served.before_verbs.write().unwrap() = Some(Arc::new(torn));
        let mut failed = 0;
        for it in operations(&document) {
            let (what, answer) = (format!("{} {}", it.method, it.path), called(&api, &it));
            if WITHOUT_VERB.contains(&it.path.as_str()) {
                assert_eq!(answer.0, 200, "{what}");
                continue;
            }
            check_hidden(&api, &what, &answer, &format!("reading the shelf: {CAUSE}"));
            failed += 1;
        }
        assert!(failed > 40, "{failed}");
        Ok(())
    });
}

#[test]
fn a_panic_of_ours_is_a_number_too_and_the_next_caller_is_answered() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let panics: fn() -> anyhow::Result<()> = || panic!("{CAUSE}");
        *api.served.before_verbs.write().unwrap() = Some(Arc::new(panics));
        let answer = api.get("/api/v1/status");
        check_hidden(&api, "a panic", &answer, &format!("internal error: {CAUSE}"));
        *api.served.before_verbs.write().unwrap() = None;
        assert_eq!(api.get("/api/v1/status").0, 200);
        Ok(())
    });
}

#[test]
fn what_nobody_knows_the_end_of_stays_begun_in_the_list_of_changes() {
    on_sqlite(|db| {
        let api = Api::of(db);
        db.write(|tx| tx.execute("ALTER TABLE authgroups RENAME TO gone", &[]))?;
        let args = json!({"kind": "authgroup", "name": "g", "description": null});
        let change = json!({"verb": "authority-change", "args": args});
        let (status, problem) = api.send_json("POST", "/api/v1/ask", &change);
        assert_eq!(status, 500, "{problem}");
        let (_, audit) = api.get("/api/v1/audit");
        assert_eq!(audit["entries"][0]["outcome"], "begun", "{audit}");
        assert!(!audit.to_string().contains("no such table"), "{audit}");
        Ok(())
    });
}

/// What is told of links where rows are all there is: in a test on SQLite.
const NO_LINKS: &str = "the link index can only be read by the process that holds";

/// Requests that cannot be met: the body, if there is one, the status, and what is told.
const REFUSED: &[(&str, &str, &str, u16, &str)] = &[
    ("GET", "/api/v1/documents?job=none", "", 400, "no job named none"),
    ("GET", "/api/v1/documents?cursor=x", "", 400, "cursor cannot be read"),
    ("GET", "/api/v1/hosts?cursor=x", "", 400, "cursor cannot be read"),
    ("GET", "/api/v1/audit?cursor=x", "", 400, "the cursor does not belong to this list"),
    ("GET", "/api/v1/top?cursor=x", "", 400, "cursor"),
    ("GET", "/api/v1/why?url=a.example&job=none", "", 400, "no job named"),
    ("GET", "/api/v1/links?url=http://", "", 400, "not the URL of a page"),
    ("GET", "/api/v1/search?q=title:", "", 400, "word"),
    (
        "GET",
        "/api/v1/reports/history?connection=none",
        "",
        400,
        "no repository connection named none",
    ),
    ("GET", "/api/v1/reports/history?sort=luck", "", 400, "no column \"luck\""),
    ("GET", "/api/v1/reports/history?cursor=x", "", 400, "cursor cannot be read"),
    ("GET", "/api/v1/reports/history?match=(", "", 400, "not a valid regular expression"),
    ("GET", "/api/v1/reports/results?class=(", "", 400, "not a valid regular expression"),
    ("GET", "/api/v1/reports/queue?job=none", "", 400, "no job named none"),
    ("GET", "/api/v1/jobs/none", "", 404, "no job"),
    ("POST", "/api/v1/jobs/x/resume", "", 409, "cannot be resumed"),
    ("POST", "/api/v1/jobs/x/removals/approve", "", 409, "x"),
    ("PUT", "/api/v1/jobs/y", r#"{"connection": "none"}"#, 400, "connection named \"none\""),
    ("PUT", "/api/v1/jobs/y", r#"{"connection": "x", "priority": 11}"#, 400, "priority is 11"),
    ("PUT", "/api/v1/jobs/y", r#"{"connection": "x", "schedules": ["?"]}"#, 400, "schedule"),
    ("PUT", "/api/v1/jobs/y", r#"{"connection": "x", "spec": {"a": 1}}"#, 400, "spec"),
    (
        "PUT",
        "/api/v1/jobs/y",
        r#"{"connection": "x", "spec": {"seeds": ["http://a.example/"]}, "hops": {"a": 1}}"#,
        400,
        "no links of type",
    ),
    ("PUT", "/api/v1/connections/output/y", r#"{"connector": "no"}"#, 400, "no output connector"),
    ("DELETE", "/api/v1/connections/repository/x", "", 400, "x"),
    ("DELETE", "/api/v1/connections/output/none", "", 400, "no output connection named none"),
    ("POST", "/api/v1/tokens", r#"{"name": "t0", "role": "viewer"}"#, 400, "token named t0"),
    ("POST", "/api/v1/tokens", r#"{"name": "", "role": "viewer"}"#, 400, "a token's name"),
    ("DELETE", "/api/v1/tokens/none", "", 400, "no valid token named none"),
    ("POST", "/api/v1/ask", r#"{"verb": "jobs", "args": 7}"#, 400, "of another version"),
    (
        "POST",
        "/api/v1/ask",
        r#"{"verb": "job-act", "args": {"name": "none", "action": "start"}}"#,
        400,
        "no job named none",
    ),
    (
        "POST",
        "/api/v1/ask",
        r#"{"verb": "authority-change", "args": {"kind": "authgroup", "name": "g"}}"#,
        400,
        "named g",
    ),
    (
        "POST",
        "/api/v1/ask",
        r#"{"verb": "connector-register", "args": {"kind": "output", "name": "no", "register": true}}"#,
        400,
        "no output connector",
    ),
];

#[test]
fn what_a_caller_did_wrong_is_told_in_words() {
    both_databases(|db| {
        let api = Api::of(db);
        define_x(&api);
        let mut wrong = Vec::new();
        for (method, path, body, status, text) in REFUSED {
            let answer = match *body {
                "" => status_and_json(api.send(method, path, Role::Admin)),
                body => api.send_json(method, path, &serde_json::from_str(body).unwrap()),
            };
            let detail = answer.1["detail"].as_str().unwrap_or_default();
            let is_told = detail.contains(text) || detail.contains(NO_LINKS);
            if answer.0 != *status || !is_told {
                wrong.push(format!("{method} {path} {body}: {} {detail}", answer.0));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        let log = api.log.text();
        assert!(!log.contains("\"level\":\"error\""), "none of it is an error of ours: {log}");
        Ok(())
    });
}
