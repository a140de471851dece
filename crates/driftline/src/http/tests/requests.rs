//! What every request goes through: names, headers, tags, compression, bounds.

use super::*;
use crate::http::access::{CALLS_A_SECOND, CALLS_AT_ONCE};
use crate::http::bodies::BODY_BYTES_MAX;
use crate::http::dispatch::HEADERS;
use crate::http::params::takes_gzip;
use std::time::{Duration, Instant};
use store::ids::Part;
use store::testing::{both_databases, commit_sample, on_sqlite};

#[test]
fn only_names_that_are_known_are_answered() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let asked = |host: &str| {
            let request = api.request("GET", "/api/v1/status", Some(api.token(Role::Viewer)));
            request.header("host", host).send().unwrap().status().as_u16()
        };
        for good in ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8", "Search.Example:443"] {
            assert_eq!(asked(good), 200, "{good}");
        }
        for evil in ["evil.example", "localhost.evil.example", "127.0.0.1.evil", "x:y", "[::2]"] {
            assert_eq!(asked(evil), 421, "{evil}");
        }
        let open = api.request("GET", "/healthz", None).header("host", "evil.example");
        assert_eq!(open.send().unwrap().status(), 421, "nor does what everybody may call");
        Ok(())
    });
}

#[test]
fn every_answer_has_the_headers_that_keep_browsers_from_harm() {
    on_sqlite(|db| {
        let api = Api::of(db);
        for path in ["/healthz", "/api/v1/status", "/api/v1/no", "/", "/metrics", "/api/v1/why"] {
            let response = api.send("GET", path, Role::Viewer);
            for (name, value) in HEADERS {
                assert_eq!(response.headers().get(name).unwrap(), value, "{path}");
            }
        }
        let foreign = api.request("POST", "/api/v1/jobs/x/start", Some(api.token(Role::Admin)));
        let foreign = foreign.header("sec-fetch-site", "cross-site").send().unwrap();
        assert_eq!(foreign.status(), 403, "another site's page changes nothing");
        Ok(())
    });
}

#[test]
fn problems_are_told_as_the_standard_says_and_tell_no_internals() {
    on_sqlite(|db| {
        let api = Api::of(db);
        for (method, path, expected) in [
            ("GET", "/api/v1/nothing", 404),
            ("PUT", "/api/v1/status", 405),
            ("GET", "/api/v1/why", 400),
            ("GET", "/api/v1/why?url=x&url=y", 400),
            ("GET", "/api/v1/jobs/none", 404),
            ("GET", "/api/v1/jobs/%ff", 400),
            ("GET", "/api/v1/jobs/%00", 400),
            ("GET", "/api/v1/domains?limit=0", 400),
            ("GET", "/api/v1/domains?limit=1001", 400),
            ("GET", "/api/v1/domains?color=red", 400),
            ("GET", "/api/v1/hosts?by=luck", 400),
            ("GET", "/api/v1/documents?cursor=%F0%9F%92%A9", 400),
            ("GET", "/api/v1/audit?cursor=abc", 400),
            ("DELETE", "/api/v1/tokens/nobody", 400),
            ("POST", "/api/v1/jobs/none/start", 404),
        ] {
            let response = api.send(method, path, Role::Admin);
            let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
            let (status, problem) = status_and_json(response);
            assert_eq!((status, kind.as_str()), (expected, "application/problem+json"), "{path}");
            assert_eq!(problem["status"], expected, "{path}");
            assert!(problem["detail"].as_str().is_some_and(|it| it.len() > 5), "{problem}");
            assert!(problem["instance"].as_str().unwrap().starts_with("urn:driftline:problem:"));
        }
        let anonymous = api.request("GET", "/api/v1/status", None).send().unwrap();
        assert_eq!(anonymous.headers()["www-authenticate"], "Bearer");
        let basic = api.request("GET", "/api/v1/status", None).basic_auth("a", Some("b"));
        assert_eq!(basic.send().unwrap().status(), 401);
        // What breaks on our side is in the log, under the number that the caller has.
        db.write(|tx| tx.execute("ALTER TABLE nodes RENAME TO gone", &[]))?;
        let (status, problem) = api.get("/api/v1/nodes");
        assert_eq!(status, 500, "{problem}");
        let told = problem.to_string();
        assert!(!told.contains("no such table") && !told.contains("nodes"), "{told}");
        let number = problem["instance"].as_str().unwrap().rsplit(':').next().unwrap();
        let log = api.log.text();
        let line = log.lines().find(|it| it.contains("no such table")).unwrap();
        let line: Json = serde_json::from_str(line).unwrap();
        assert_eq!((&line["problem"], &line["level"]), (&json!(number), &json!("error")));
        Ok(())
    });
}

#[test]
fn bodies_are_json_and_bounded() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let sent = |kind: Option<&str>, body: String| {
            let request = api.request("POST", "/api/v1/definitions", Some(api.token(Role::Admin)));
            let request = match kind {
                Some(kind) => request.header("content-type", kind),
                None => request,
            };
            request.body(body).send().unwrap().status().as_u16()
        };
        let json_kind = Some("application/json");
        assert_eq!(sent(json_kind, "{}".into()), 200);
        assert_eq!(sent(Some("Application/JSON; charset=utf-8"), "{}".into()), 200);
        for other in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            assert_eq!(sent(other, "{}".into()), 415, "{other:?}");
        }
        assert_eq!(sent(json_kind, "{".into()), 400);
        assert_eq!(sent(json_kind, "[".repeat(10_000)), 400, "however deep");
        assert_eq!(sent(json_kind, r#"{"jobs": {"a\u0000b": {"connection": "x"}}}"#.into()), 400);
        assert_eq!(sent(json_kind, format!("\"{}\"", "x".repeat(BODY_BYTES_MAX))), 413);
        Ok(())
    });
}

#[test]
fn an_answer_that_the_caller_has_is_not_sent_again_and_a_long_one_is_compressed() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let asked = |header: (&'static str, &str)| {
            let path = "/api/v1/openapi.json";
            let request = api.request("GET", path, Some(api.token(Role::Viewer)));
            request.header(header.0, header.1).send().unwrap()
        };
        let plain = asked(("x-nothing", "x"));
        assert!(plain.headers().get("content-encoding").is_none());
        let tag = plain.headers()["etag"].to_str().unwrap().to_owned();
        let text = plain.text().unwrap();
        for known in [tag.as_str(), "*", &format!("\"other\", {tag}")] {
            let again = asked(("if-none-match", known));
            assert_eq!(again.status(), 304, "{known}");
            assert_eq!(again.headers()["etag"], tag.as_str());
            assert_eq!(again.text().unwrap(), "");
        }
        assert_eq!(asked(("if-none-match", "W/\"other\"")).status(), 200);
        let packed = asked(("accept-encoding", "br, gzip"));
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        assert_eq!(packed.headers()["etag"], tag.as_str());
        let bytes = packed.bytes().unwrap();
        assert!(bytes.len() * 3 < text.len(), "{} of {}", bytes.len(), text.len());
        let mut unpacked = String::new();
        let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
        std::io::Read::read_to_string(&mut decoder, &mut unpacked).unwrap();
        assert_eq!(unpacked, text);
        Ok(())
    });
    for (accepted, expected) in [
        ("gzip", true),
        ("br, GZIP;q=0.5", true),
        ("gzip;q=0", false),
        ("identity", false),
        ("", false),
    ] {
        assert_eq!(takes_gzip(accepted), expected, "{accepted}");
    }
}

#[test]
fn a_token_that_calls_too_often_waits_and_others_do_not() {
    let (access, now) = (ApiAccess::default(), Instant::now());
    let at_once = (0..2_000).filter(|_| access.may_call(1, now)).count();
    assert_eq!(at_once as f64, CALLS_AT_ONCE);
    assert!(access.may_call(2, now), "another token");
    let later = now + Duration::from_secs(1);
    let earned = (0..2_000).filter(|_| access.may_call(1, later)).count();
    assert_eq!(earned as f64, CALLS_A_SECOND);
}

#[test]
fn what_is_logged_are_requests_without_questions_and_tokens() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let _ = api.get("/api/v1/why?url=http://secret.example/");
        let log = api.log.text();
        let line: Json = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        assert_eq!(line["path"], "/api/v1/why");
        assert_eq!((&line["event"], &line["method"]), (&json!("request"), &json!("GET")));
        assert!(line["caller"] == "t3" && line["status"].is_number() && line["ms"].is_number());
        assert!(line["time"].as_str().unwrap().contains('T'), "{line}");
        assert!(!log.contains("secret.example") && !log.contains("dl_"), "{log}");
        Ok(())
    });
}

#[test]
fn what_is_counted_is_told_as_prometheus_reads_it() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let _ = api.get("/api/v1/status");
        let _ = api.get("/api/v1/no");
        let text = api.send("GET", "/metrics", Role::Viewer).text().unwrap();
        for line in text.lines() {
            let is_comment = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
            let is_sample = line.starts_with("driftline_")
                && line.rsplit_once(' ').is_some_and(|(_, it)| it.parse::<f64>().is_ok());
            assert!(is_comment || is_sample, "{line}");
        }
        assert!(text.contains("driftline_http_requests_total{class=\"4xx\"} 1\n"), "{text}");
        assert!(text.contains("driftline_http_request_seconds_bucket{le=\"+Inf\"} 2\n"), "{text}");
        Ok(())
    });
}

#[test]
fn a_search_over_http_says_how_far_the_index_is_behind() {
    both_databases(|db| {
        let api = Api::of(db);
        let (status, answer) = api.get("/api/v1/search?q=page");
        assert_eq!((status, &answer["behind_chunks"]), (200, &json!(0)), "{answer}");
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&Location::Directory(folder.path().to_owned())).unwrap();
        commit_sample(db, &objects, Part(1), 0)?;
        let (_, answer) = api.get("/api/v1/search?q=page");
        assert_eq!((&answer["total"], &answer["behind_chunks"]), (&json!(0), &json!(1)));
        assert!(answer["behind_ms"].as_i64() > Some(0), "{answer}");
        let (_, document) = api.get("/api/v1/openapi.json");
        let schemas = document["components"]["schemas"].as_object().unwrap().values();
        let is_described = |name: &str| {
            let mut schemas = schemas.clone().map(|it| &it["properties"]);
            schemas.any(|it| it["is_relaxed"].is_object() && it[name].is_object())
        };
        for name in ["behind_chunks", "behind_ms", "has_more"] {
            assert!(is_described(name), "{name}");
        }
        Ok(())
    });
}
