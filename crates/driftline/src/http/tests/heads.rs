//! Heads of requests as no client library sends them, byte by byte.

use super::*;
use crate::http::server::{HEAD_BYTES_MAX, HEADERS_MAX};
use std::io::Read;
use std::net::TcpStream;
use store::testing::on_sqlite;

/// All that comes back for some bytes, until the server closes the connection.
fn answer_to(api: &Api, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(api.url.trim_start_matches("http://")).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // What it has not read may make the end a broken one.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// The status of the answer to a request without a body, whose head has these lines.
fn asked(api: &Api, lines: &[&str]) -> String {
    let close = "connection: close";
    let head = [lines, &[close, "", ""]].concat().join("\r\n");
    let answer = answer_to(api, head.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().to_owned();
    if status != "200" {
        let kind = head.to_ascii_lowercase().contains("content-type: application/problem+json");
        let problem: Json = serde_json::from_str(body).unwrap();
        assert!(
            kind && problem["status"].as_u64().map(|it| it.to_string()).as_deref()
                == Some(&*status),
            "{answer}"
        );
    }
    status
}

#[test]
fn a_request_that_does_not_say_clearly_which_host_it_is_for_is_refused() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let get = "GET /healthz HTTP/1.1";
        for (expected, lines) in [
            ("200", &[get, "host: localhost"][..]),
            ("400", &[get, "host: localhost", "host: localhost"]),
            ("400", &[get, "host: localhost", "Host: evil.example"]),
            ("400", &[get, "host: evil.example", "x: y", "HOST: localhost"]),
            ("400", &[get]),
            ("400", &[get, "host: \u{e9}.example"]),
            ("421", &[get, "host:"]),
            ("421", &[get, "host: localhost, localhost"]),
            ("421", &[get, "host: me@localhost"]),
            ("421", &["GET /healthz HTTP/1.0"]),
            ("200", &["GET /healthz HTTP/1.0", "host: localhost"]),
            ("400", &["GET /healthz HTTP/1.0", "host: localhost", "host: localhost"]),
            ("200", &["GET http://localhost/healthz HTTP/1.1", "host: LOCALHOST"]),
            ("400", &["GET http://localhost/healthz HTTP/1.1", "host: evil.example"]),
            ("400", &["GET http://evil.example/healthz HTTP/1.1", "host: localhost"]),
            ("400", &["GET http://localhost/healthz HTTP/1.1"]),
            ("421", &["GET http://evil.example/healthz HTTP/1.1", "host: evil.example"]),
        ] {
            assert_eq!(asked(&api, lines), expected, "{lines:?}");
        }
        Ok(())
    });
}

#[test]
fn a_head_beyond_its_limits_is_refused_and_one_within_them_is_not() {
    on_sqlite(|db| {
        let api = Api::of(db);
        // Three lines are there already.
        let lines = |count: usize| {
            let more = vec!["x: y"; count - 3];
            [&["GET /healthz HTTP/1.1", "host: localhost", "x: y"], &more[..]].concat()
        };
        assert_eq!(asked(&api, &lines(HEADERS_MAX)), "200");
        let head = |bytes: usize| {
            let begin = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: ";
            let end = "\r\n\r\n";
            format!("{begin}{}{end}", "y".repeat(bytes - begin.len() - end.len()))
        };
        let within = answer_to(&api, head(HEAD_BYTES_MAX).as_bytes());
        assert!(within.starts_with("HTTP/1.1 200 "), "{within}");
        let many = [lines(HEADERS_MAX + 2), vec!["", ""]].concat().join("\r\n");
        // As many bytes as may be, and no end: the server has read all of it when it answers.
        let long = &head(HEAD_BYTES_MAX + 1)[..HEAD_BYTES_MAX];
        for (beyond, what) in [(many.as_str(), "lines"), (long, "bytes")] {
            let answer = answer_to(&api, beyond.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 431 "), "{what}: {answer}");
        }
        Ok(())
    });
}

#[test]
fn a_request_whose_end_can_be_read_in_two_ways_is_the_last_of_its_connection() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let token = format!("authorization: Bearer {}", api.token(Role::Admin));
        let second = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let first = |lines: &[&str], body: &str| {
            let begin = ["POST /api/v1/definitions HTTP/1.1", "host: localhost", token.as_str()];
            let kind = ["content-type: application/json"];
            let head = [&begin, &kind[..], lines, &["", ""]].concat().join("\r\n");
            format!("{head}{body}")
        };
        let (chunked, length) = ("transfer-encoding: chunked", "content-length: 2");
        for lines in [[chunked, length], [length, chunked]] {
            // By its length it would end after two bytes, and what follows would be a request.
            let sent = first(&lines, &format!("2\r\n{{}}\r\n0\r\n\r\n{second}"));
            let answer = answer_to(&api, sent.as_bytes());
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{lines:?}: {answer}");
        }
        for lines in [
            &["content-length: 2", "content-length: 3"][..],
            &["content-length: +2"],
            &["content-length: 2, 2"],
            &["transfer-encoding: chunked, gzip"],
            &["transfer-encoding: gzip"],
        ] {
            let answer = answer_to(&api, first(lines, &format!("{{}}{second}")).as_bytes());
            assert!(answer.starts_with("HTTP/1.1 400 "), "{lines:?}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{lines:?}: {answer}");
        }
        Ok(())
    });
}
