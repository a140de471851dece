//! Every route for every role and for nobody, from the document of the API, so that a new
//! route cannot be forgotten.

use super::*;
use crate::http::routes::{self, Gate};
use store::testing::both_databases;

/// What each route needs, written down a second time: a route that needs less than it did is
/// a decision, not an accident.
const NEEDS: &[(&str, &str, &str, &str)] = &[
    ("GET", "/api/links", "viewer", "links"),
    ("GET", "/api/page", "viewer", "links"),
    ("GET", "/api/pages", "viewer", "links"),
    ("GET", "/api/top", "viewer", "links"),
    ("POST", "/api/v1/ask", "token", "-"),
    ("GET", "/api/v1/audit", "admin", "administration"),
    ("GET", "/api/v1/connections", "admin", "administration"),
    ("DELETE", "/api/v1/connections/{kind}/{name}", "admin", "administration"),
    ("PUT", "/api/v1/connections/{kind}/{name}", "admin", "administration"),
    ("GET", "/api/v1/definitions", "admin", "administration"),
    ("POST", "/api/v1/definitions", "admin", "administration"),
    ("GET", "/api/v1/documents", "viewer", "jobs"),
    ("GET", "/api/v1/domains", "viewer", "links"),
    ("GET", "/api/v1/hosts", "viewer", "jobs"),
    ("GET", "/api/v1/jobs", "viewer", "jobs"),
    ("DELETE", "/api/v1/jobs/{name}", "operator", "jobs"),
    ("GET", "/api/v1/jobs/{name}", "viewer", "jobs"),
    ("PUT", "/api/v1/jobs/{name}", "operator", "jobs"),
    ("POST", "/api/v1/jobs/{name}/abort", "operator", "jobs"),
    ("GET", "/api/v1/jobs/{name}/failed", "viewer", "jobs"),
    ("POST", "/api/v1/jobs/{name}/pause", "operator", "jobs"),
    ("GET", "/api/v1/jobs/{name}/removals", "viewer", "jobs"),
    ("POST", "/api/v1/jobs/{name}/removals/approve", "operator", "jobs"),
    ("POST", "/api/v1/jobs/{name}/removals/reject", "operator", "jobs"),
    ("POST", "/api/v1/jobs/{name}/restart", "operator", "jobs"),
    ("POST", "/api/v1/jobs/{name}/resume", "operator", "jobs"),
    ("POST", "/api/v1/jobs/{name}/start", "operator", "jobs"),
    ("POST", "/api/v1/jobs/{name}/start-minimal", "operator", "jobs"),
    ("GET", "/api/v1/links", "viewer", "links"),
    ("GET", "/api/v1/nodes", "viewer", "jobs"),
    ("GET", "/api/v1/openapi.json", "viewer", "monitoring"),
    ("GET", "/api/v1/page", "viewer", "links"),
    ("GET", "/api/v1/reports/activity", "viewer", "jobs"),
    ("GET", "/api/v1/reports/bandwidth", "viewer", "jobs"),
    ("GET", "/api/v1/reports/documents", "viewer", "jobs"),
    ("GET", "/api/v1/reports/history", "viewer", "jobs"),
    ("GET", "/api/v1/reports/queue", "viewer", "jobs"),
    ("GET", "/api/v1/reports/results", "viewer", "jobs"),
    ("GET", "/api/v1/search", "viewer", "search"),
    ("GET", "/api/v1/status", "viewer", "jobs"),
    ("GET", "/api/v1/tokens", "admin", "administration"),
    ("POST", "/api/v1/tokens", "admin", "administration"),
    ("DELETE", "/api/v1/tokens/{name}", "admin", "administration"),
    ("GET", "/api/v1/top", "viewer", "links"),
    ("GET", "/api/v1/why", "viewer", "jobs"),
    ("GET", "/healthz", "everybody", "-"),
    ("GET", "/metrics", "viewer", "monitoring"),
    ("GET", "/readyz", "everybody", "-"),
];

#[test]
fn every_route_needs_what_was_decided() {
    let mut found: Vec<(&str, &str, &str, &str)> = routes::all()
        .map(|it| {
            let (role, area) = match it.gate {
                Gate::Open => ("everybody", "-"),
                Gate::Token => ("token", "-"),
                Gate::Needs(needs) => (needs.role.name(), needs.area.name()),
            };
            (it.method.name(), it.path, role, area)
        })
        .collect();
    found.sort_by_key(|it| (it.1, it.0));
    assert_eq!(found, NEEDS);
}

/// An operation of the document: how it is called, and what it needs.
pub(super) struct Operation {
    pub(super) method: String,
    pub(super) path: String,
    is_open: bool,
    role: Option<Role>,
    area: Option<String>,
    pub(super) body: Option<Json>,
}

/// All of them, each with the parameters that it needs.
pub(super) fn operations(document: &Json) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, it) in methods.as_object().unwrap() {
            let mut path = path.clone();
            let mut query = Vec::new();
            for param in it["parameters"].as_array().unwrap() {
                let name = param["name"].as_str().unwrap();
                let value = match param["schema"]["enum"].get(0) {
                    Some(first) => first.as_str().unwrap().to_owned(),
                    None => "x".to_owned(),
                };
                match param["in"].as_str().unwrap() {
                    "path" => path = path.replace(&format!("{{{name}}}"), &value),
                    _ if param["required"] == true => query.push(format!("{name}={value}")),
                    _ => {}
                }
            }
            if !query.is_empty() {
                path = format!("{path}?{}", query.join("&"));
            }
            found.push(Operation {
                method: method.to_uppercase(),
                path,
                is_open: it["security"] == json!([]),
                role: it["x-role"].as_str().map(|name| Role::parse(name).unwrap()),
                area: it["tags"][0].as_str().map(str::to_owned),
                body: it.get("requestBody").map(|_| json!({})),
            });
        }
    }
    found
}

fn called(api: &Api, it: &Operation, token: Option<&str>) -> u16 {
    let mut request = api.request(&it.method, &it.path, token);
    if let Some(body) = &it.body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    request.send().unwrap().status().as_u16()
}

#[test]
fn every_route_is_for_those_it_is_for_and_nobody_else() {
    both_databases(|db| {
        let api = Api::of(db);
        let (status, document) = api.get("/api/v1/openapi.json");
        assert_eq!(status, 200);
        let operations = operations(&document);
        assert_eq!(operations.len(), routes::all().count(), "every route is described");
        assert!(operations.len() > 40, "{}", operations.len());
        for it in &operations {
            let what = format!("{} {}", it.method, it.path);
            let nobody = called(&api, it, None);
            assert_eq!(nobody == 401, !it.is_open, "{what} for nobody: {nobody}");
            if !it.is_open {
                assert_eq!(called(&api, it, Some("dl_wrong")), 401, "{what} with a wrong token");
            }
            for (role, token) in &api.tokens {
                let status = called(&api, it, Some(token));
                let may = it.role.is_none_or(|needed| role.includes(needed));
                assert_eq!(status == 403, !may, "{what} for {role:?}: {status}");
                assert!(status < 500 && status != 401, "{what} for {role:?}: {status}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_token_is_good_for_its_areas_until_it_expires_or_is_revoked() {
    both_databases(|db| {
        let api = Api::of(db);
        let (_, document) = api.get("/api/v1/openapi.json");
        let limited = given_token(db, 100, Role::Admin, &["links", "monitoring"], None);
        let expired = given_token(db, 101, Role::Admin, &[], Some(1_000));
        let revoked = given_token(db, 102, Role::Admin, &[], None);
        let path = "/api/v1/status";
        let called_with =
            |token: &str| api.request("GET", path, Some(token)).send().unwrap().status().as_u16();
        assert_eq!((called_with(&expired), called_with(&revoked)), (401, 200));
        assert_eq!(api.send("DELETE", "/api/v1/tokens/t102", Role::Admin).status(), 200);
        assert_eq!(called_with(&revoked), 401, "at once");
        for it in operations(&document).iter().filter(|it| it.area.is_some()) {
            let may = ["links", "monitoring"].contains(&it.area.as_deref().unwrap());
            let status = called(&api, it, Some(&limited));
            assert_eq!(status == 403, !may, "{} {}: {status}", it.method, it.path);
        }
        Ok(())
    });
}

#[test]
fn the_door_of_the_command_line_asks_for_what_each_verb_needs() {
    both_databases(|db| {
        let api = Api::of(db);
        let asked = |verb: &str, args: Json, role: Role| {
            let request = api.request("POST", "/api/v1/ask", Some(api.token(role)));
            let body = json!({"verb": verb, "args": args}).to_string();
            let request = request.header("content-type", "application/json").body(body);
            request.send().unwrap().status().as_u16()
        };
        let verbs = [
            ("status", Json::Null, Role::Viewer),
            ("jobs", json!({"name": null}), Role::Viewer),
            ("why", json!({"url": "http://a.example/", "job": null}), Role::Viewer),
            ("tokens", Json::Null, Role::Admin),
            ("audit", json!({"limit": 5, "cursor": null}), Role::Admin),
            ("connectors", Json::Null, Role::Admin),
            ("authorities", json!("authgroup"), Role::Admin),
            ("export", json!({"secrets": false}), Role::Admin),
        ];
        for (verb, args, needed) in &verbs {
            for role in Role::ALL {
                let expected = if role.includes(*needed) { 200 } else { 403 };
                assert_eq!(asked(verb, args.clone(), role), expected, "{verb} for {role:?}");
            }
        }
        let act = json!({"name": "x", "action": "start"});
        let acted = Role::ALL.map(|role| asked("job-act", act.clone(), role));
        assert_eq!(acted, [403, 403, 400, 400], "there is no such job");
        assert_eq!(asked("export", json!({"secrets": true}), Role::Admin), 403);
        for verb in ["backup", "links-export", "doctor", "crawl", "dance", "gc", ""] {
            assert_eq!(asked(verb, Json::Null, Role::Admin), 404, "{verb}");
        }
        let limited = given_token(db, 100, Role::Viewer, &["jobs"], None);
        let request = api.request("POST", "/api/v1/ask", Some(&limited));
        let body = json!({"verb": "top", "args": null}).to_string();
        let request = request.header("content-type", "application/json").body(body);
        assert_eq!(request.send().unwrap().status(), 403, "links are another area");
        Ok(())
    });
}

#[test]
fn a_limited_token_makes_no_token_that_may_more() {
    both_databases(|db| {
        let api = Api::of(db);
        let now_ms = store::clock::now_ms();
        let narrow = given_token(db, 100, Role::Admin, &["administration"], None);
        let short = given_token(db, 101, Role::Admin, &[], Some(now_ms + 3_600_000));
        let made = |token: &str, name: &str, areas: Json, expires_in_ms: Json| {
            let body = json!({
                "name": name, "role": "admin", "areas": areas, "expires_in_ms": expires_in_ms,
            });
            let request = api.request("POST", "/api/v1/tokens", Some(token));
            let request = request.header("content-type", "application/json");
            request.body(body.to_string()).send().unwrap().status().as_u16()
        };
        assert_eq!(made(&narrow, "a", json!([]), Json::Null), 403);
        assert_eq!(made(&narrow, "a", json!(["administration", "jobs"]), Json::Null), 403);
        assert_eq!(made(&narrow, "a", json!(["administration"]), Json::Null), 200);
        assert_eq!(made(&short, "b", json!([]), Json::Null), 403);
        assert_eq!(made(&short, "b", json!([]), json!(7_200_000)), 403);
        assert_eq!(made(&short, "b", json!([]), json!(60_000)), 200);
        let jobs = json!({"jobs": {"x": {"connection": "web"}}}).to_string();
        let request = api.request("POST", "/api/v1/definitions", Some(&narrow));
        let request = request.header("content-type", "application/json").body(jobs);
        assert_eq!(request.send().unwrap().status(), 403, "jobs are another area");
        let refused = api.log.text();
        let line = refused.lines().find(|it| it.contains("\"status\":403")).unwrap();
        assert!(line.contains("\"caller\":\"t100\""), "who was refused is known: {line}");
        Ok(())
    });
}
