//! A bound on bytes a second: it slows a body down and is held against nobody.

use tokio::time::Instant;

use super::server::{Server, Then, answer, reply};
use super::*;

const BODY_BYTES: usize = 32 * 1024;

/// Limits that a body which is read as slowly as [`slow`] would break, were the waits of
/// ours the server's.
fn tight() -> Limits {
    let (idle, total) = (Duration::from_millis(300), Duration::from_millis(1_200));
    Limits { idle, total, rate_window: Duration::from_millis(400), rate_bytes: 8_000, ..limits() }
}

/// A piece of 8 KiB is paid for in half a second.
fn slow() -> Bandwidth {
    Bandwidth::new(16 * 1024)
}

#[tokio::test]
async fn a_body_is_read_no_faster_than_allowed_and_the_server_is_not_blamed() {
    let server = Server::start(|_| answer(200, "", &[b'x'; BODY_BYTES])).await;
    let (fetcher, guard, url, bandwidth) = (fetcher(tight()), intranet(), server.url("/"), slow());
    let mut ask = FetchRequest::new(&url, &guard);
    ask.bandwidth = Some(&bandwidth);
    let begun = Instant::now();
    let fetched = body(fetcher.get(&ask).await);
    assert_eq!((fetched.body.len(), fetched.truncated), (BODY_BYTES, false));
    // What was read is paid for, now or by whoever reads next.
    let paid = begun.elapsed() + bandwidth.wait().unwrap_or_default();
    assert!(paid >= Duration::from_millis(2_000), "{paid:?}");
}

#[tokio::test]
async fn a_server_that_stalls_is_given_up_all_the_same() {
    let head = format!("HTTP/1.1 200 X\r\ncontent-length: {BODY_BYTES}\r\n\r\nhalf");
    let server = Server::start(move |_| reply(head.clone(), Then::Hang)).await;
    let (fetcher, guard, url, bandwidth) = (fetcher(tight()), intranet(), server.url("/"), slow());
    let mut ask = FetchRequest::new(&url, &guard);
    ask.bandwidth = Some(&bandwidth);
    assert_eq!(code(&fetcher.get(&ask).await), "idle-timeout");
}

#[tokio::test]
async fn waits_of_ours_have_an_end_too() {
    let server = Server::start(|_| answer(200, "", &[b'x'; BODY_BYTES])).await;
    let limits = Limits { paced: Duration::from_millis(1), ..tight() };
    let (fetcher, guard, url, bandwidth) = (fetcher(limits), intranet(), server.url("/"), slow());
    let mut ask = FetchRequest::new(&url, &guard);
    ask.bandwidth = Some(&bandwidth);
    assert_eq!(code(&fetcher.get(&ask).await), "total-timeout");
}
