//! More callers than can be answered: slow ones, many of them, and many of one token.

use super::*;
use crate::http::answer_pool::{WAITING_MAX, WAITING_OF_CALLER_MAX};
use crate::http::bodies::{BODIES_MAX, BODIES_OF_CALLER_MAX};
use std::io::Read;
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use store::testing::on_sqlite;

/// Waits for something that is about to be.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Begins to send a body that does not come to its end.
fn stalled(api: &Api, token: Option<&str>) -> TcpStream {
    let mut stream = TcpStream::connect(api.url.trim_start_matches("http://")).unwrap();
    let token = token.map_or(String::new(), |it| format!("authorization: Bearer {it}\r\n"));
    let head = format!(
        "POST /api/v1/ask HTTP/1.1\r\nhost: localhost\r\n{token}\
         content-type: application/json\r\ncontent-length: 1000000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Asks for the status, and does not wait for the answer.
fn asking(api: &Api, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(api.url.trim_start_matches("http://")).unwrap();
    let head = format!(
        "GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn status_of(stream: &mut TcpStream) -> String {
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Holds up every answer until the result is dropped.
fn hold_up(api: &Api) -> Sender<()> {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let hold = move || {
        let _ = released.lock().unwrap().recv();
        Ok(())
    };
    *api.served.before_verbs.write().unwrap() = Some(Arc::new(hold));
    release
}

#[test]
fn nobody_without_a_token_keeps_others_out() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let mut all: Vec<TcpStream> = (0..2 * BODIES_MAX).map(|_| stalled(&api, None)).collect();
        for stream in &mut all {
            assert_eq!(status_of(stream), "HTTP/1.1 401");
        }
        assert_eq!((api.served.under_way(), api.served.bodies.count()), (0, 0));
        assert_eq!(api.get("/api/v1/status").0, 200);
        Ok(())
    });
}

#[test]
fn slow_bodies_keep_nobody_out_but_their_own_caller() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let slow = given_token(db, 100, Role::Operator, &[], None);
        let held: Vec<TcpStream> =
            (0..BODIES_OF_CALLER_MAX).map(|_| stalled(&api, Some(&slow))).collect();
        until("they did not come", || api.served.bodies.count() == BODIES_OF_CALLER_MAX);
        assert_eq!(status_of(&mut stalled(&api, Some(&slow))), "HTTP/1.1 503");
        assert_eq!(
            (api.served.pool.busy(), api.served.pool.waiting()),
            (0, 0),
            "no place is taken"
        );
        for (path, token) in [("/api/v1/status", slow.as_str()), ("/healthz", "")] {
            let request = api.request("GET", path, Some(token));
            assert_eq!(request.send().unwrap().status(), 200, "{path}");
        }
        let (status, answer) = api.send_json("POST", "/api/v1/definitions", &json!({}));
        assert_eq!(status, 200, "the body of another caller: {answer}");
        drop(held);
        until("they did not go", || api.served.bodies.count() == 0);
        Ok(())
    });
}

#[test]
fn answers_beyond_their_share_wait_and_neither_health_nor_the_crawl_does() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let (pool, one) = (&api.served.pool, api.token(Role::Viewer));
        let release = hold_up(&api);
        let mut asked: Vec<TcpStream> = (0..=pool.at_once()).map(|_| asking(&api, one)).collect();
        until("one waits, and the others are computed", || {
            pool.busy() == pool.at_once() && pool.waiting() == 1
        });
        // A caller has a share of the queue, and all together have the queue.
        while pool.waiting() < WAITING_OF_CALLER_MAX {
            let waiting = pool.waiting();
            asked.push(asking(&api, one));
            until("the queue grows", || pool.waiting() == waiting + 1);
        }
        assert_eq!(status_of(&mut asking(&api, one)), "HTTP/1.1 503", "its share is used up");
        let other = api.token(Role::Operator);
        while pool.waiting() < WAITING_MAX {
            let waiting = pool.waiting();
            asked.push(asking(&api, other));
            until("the queue grows", || pool.waiting() == waiting + 1);
        }
        let full = api.send("GET", "/api/v1/status", Role::Admin);
        assert_eq!(
            (full.status().as_u16(), &full.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        for path in ["/healthz", "/readyz"] {
            assert_eq!(api.request("GET", path, None).send().unwrap().status(), 200, "{path}");
        }
        // What a crawl does in the same process: its rows are read and written.
        db.write(|tx| tx.execute("UPDATE api_tokens SET used_ms = 1", &[]))?;
        assert_eq!(db.read(tokens::list)?.len(), api.tokens.len());
        drop(release);
        for stream in &mut asked {
            assert_eq!(status_of(stream), "HTTP/1.1 200");
        }
        assert_eq!(api.get("/api/v1/status").0, 200);
        Ok(())
    });
}
