//! Servers that do not mean well.

use super::secure::{Authority, trusting_within};
use super::server::{Server, Then, answer, reply};
use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// Serves fixed bytes, then closes, and gives the code of the outcome.
async fn outcome_of(bytes: impl Into<Vec<u8>>, then: Then, limits: Limits) -> (Outcome, usize) {
    let bytes = bytes.into();
    let server = Server::start(move |_| reply(bytes.clone(), then)).await;
    let (fetcher, guard, url) = (fetcher(limits), intranet(), server.url("/"));
    let outcome = fetcher.get(&FetchRequest::new(&url, &guard)).await;
    (outcome, fetcher.pool.idle())
}

#[tokio::test]
async fn heads_that_are_too_large_or_broken_are_refused_and_their_connection_closed() {
    let many = "a: b\r\n".repeat(129);
    let large = format!("a: {}\r\n", "x".repeat(1024 * 1024));
    let cases: Vec<(&str, String, &str)> = vec![
        ("too many headers", format!("{OK}content-length: 0\r\n{many}\r\n"), "headers-too-large"),
        ("a header of 1 MB", format!("{OK}content-length: 0\r\n{large}\r\n"), "headers-too-large"),
        ("a status line of 1 MB", format!("HTTP/1.1 200 {large}\r\n"), "headers-too-large"),
        ("obs-fold", format!("{OK}content-length: 0\r\na: b\r\n c\r\n\r\n"), "protocol"),
        ("first line folded", format!("{OK} a: b\r\ncontent-length: 0\r\n\r\n"), "protocol"),
        ("NUL in a value", format!("{OK}content-length: 0\r\na: b\0c\r\n\r\n"), "protocol"),
        ("NUL in a name", format!("{OK}content-length: 0\r\na\0: b\r\n\r\n"), "protocol"),
        ("blank before the colon", format!("{OK}content-length : 0\r\n\r\n"), "protocol"),
        ("no colon", format!("{OK}content-length\r\n\r\n"), "protocol"),
        ("CR in a value", format!("{OK}content-length: 0\r\na: b\rc\r\n\r\n"), "protocol"),
        ("no HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(), "protocol"),
        ("HTTP/0.9", "<html>hello</html>\r\n\r\n".to_owned(), "protocol"),
        ("HTTP/3.0", "HTTP/3.0 200 OK\r\n\r\n".to_owned(), "protocol"),
        ("no status", "HTTP/1.1 OK\r\n\r\n".to_owned(), "protocol"),
        ("status of two digits", "HTTP/1.1 20 OK\r\n\r\n".to_owned(), "protocol"),
        ("switching protocols", "HTTP/1.1 101 X\r\nupgrade: x\r\n\r\n".to_owned(), "protocol"),
        ("nothing", String::new(), "connection-lost"),
        ("half a head", "HTTP/1.1 200 OK\r\ncontent-le".to_owned(), "connection-lost"),
    ];
    for (name, bytes, expected) in cases {
        let (outcome, idle) = outcome_of(bytes, Then::Close, limits()).await;
        assert_eq!((code(&outcome).as_str(), idle), (expected, 0), "{name}");
    }
}

#[tokio::test]
async fn an_answer_whose_end_is_in_doubt_is_refused_and_its_connection_closed() {
    let chunked = "transfer-encoding: chunked\r\n";
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    let cases: Vec<(&str, String, &str)> = vec![
        (
            "two lengths",
            format!("{OK}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!"),
            "ambiguous-length",
        ),
        ("a list of two", format!("{OK}content-length: 5, 6\r\n\r\nhello!"), "ambiguous-length"),
        ("a signed length", format!("{OK}content-length: +5\r\n\r\nhello"), "ambiguous-length"),
        ("a negative length", format!("{OK}content-length: -5\r\n\r\nhello"), "ambiguous-length"),
        (
            "a hexadecimal length",
            format!("{OK}content-length: 0x5\r\n\r\nhello"),
            "ambiguous-length",
        ),
        (
            "a length beyond 64 bits",
            format!("{OK}content-length: 99999999999999999999\r\n\r\nhello"),
            "ambiguous-length",
        ),
        (
            "length and chunks",
            format!("{OK}content-length: 5\r\n{chunked}\r\n{chunks}"),
            "ambiguous-length",
        ),
        (
            "chunks and length",
            format!("{OK}{chunked}content-length: 5\r\n\r\n{chunks}"),
            "ambiguous-length",
        ),
        ("chunked twice", format!("{OK}{chunked}{chunked}\r\n{chunks}"), "ambiguous-length"),
        (
            "chunked, then gzip",
            format!("{OK}transfer-encoding: chunked, gzip\r\n\r\n{chunks}"),
            "ambiguous-length",
        ),
        (
            "gzip, then chunked",
            format!("{OK}transfer-encoding: gzip, chunked\r\n\r\n{chunks}"),
            "ambiguous-length",
        ),
        (
            "unknown coding",
            format!("{OK}transfer-encoding: xchunked\r\n\r\n{chunks}"),
            "ambiguous-length",
        ),
        (
            "chunks in HTTP/1.0",
            format!("HTTP/1.0 200 OK\r\n{chunked}\r\n{chunks}"),
            "ambiguous-length",
        ),
    ];
    for (name, bytes, expected) in cases {
        let (outcome, idle) = outcome_of(bytes, Then::Close, limits()).await;
        assert_eq!((code(&outcome).as_str(), idle), (expected, 0), "{name}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_its_own_rules_is_no_body() {
    let chunked = "transfer-encoding: chunked\r\n";
    let cases: Vec<(&str, String, &str)> = vec![
        ("no chunk size", format!("{OK}{chunked}\r\nx\r\nhello\r\n0\r\n\r\n"), "protocol"),
        (
            "a chunk size beyond 64 bits",
            format!("{OK}{chunked}\r\nfffffffffffffffff\r\nhello"),
            "protocol",
        ),
        (
            "a chunk longer than it says",
            format!("{OK}{chunked}\r\n3\r\nhello\r\n0\r\n\r\n"),
            "protocol",
        ),
        ("an end within a chunk", format!("{OK}{chunked}\r\n5\r\nhel"), "connection-lost"),
        ("an end between chunks", format!("{OK}{chunked}\r\n5\r\nhello\r\n"), "connection-lost"),
        (
            "an end before the length",
            format!("{OK}content-length: 9\r\n\r\nhello"),
            "connection-lost",
        ),
    ];
    for (name, bytes, expected) in cases {
        let (outcome, idle) = outcome_of(bytes, Then::Close, limits()).await;
        assert_eq!((code(&outcome).as_str(), idle), (expected, 0), "{name}");
    }
}

#[tokio::test]
async fn odd_but_clear_answers_are_read_and_their_connection_is_not_used_again() {
    let cases: Vec<(&str, String)> = vec![
        (
            "the same length twice",
            format!("{OK}content-length: 5\r\ncontent-length: 5\r\n\r\nhello"),
        ),
        ("a list of the same", format!("{OK}content-length: 5, 5\r\n\r\nhello")),
        ("more than the length", format!("{OK}content-length: 5\r\n\r\nhello and more")),
        ("to be closed", format!("{OK}content-length: 5\r\nconnection: close\r\n\r\nhello")),
        ("HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_owned()),
        (
            "early hints",
            format!(
                "HTTP/1.1 103 X\r\nlink: x\r\n\r\n{OK}content-length: 5\r\nconnection: close\r\n\r\nhello"
            ),
        ),
    ];
    for (name, bytes) in cases {
        let (outcome, idle) = outcome_of(bytes, Then::Hang, limits()).await;
        assert_eq!((&body(outcome).body[..], idle), (&b"hello"[..], 0), "{name}");
    }
    let (outcome, idle) = outcome_of(format!("{OK}\r\nhello"), Then::Close, limits()).await;
    assert_eq!((&body(outcome).body[..], idle), (&b"hello"[..], 0), "until it closes");
}

#[tokio::test]
async fn bytes_without_end_come_to_an_end() {
    let chunked = format!("{OK}transfer-encoding: chunked\r\n\r\n");
    let cases: [(String, &[u8], &str); 6] = [
        (OK.to_owned(), b"a: b\r\n", "headers-too-large"),
        (format!("{OK}a: "), b"xxxxxxxxxxxxxxxx", "headers-too-large"),
        (String::new(), b"HTTP/1.1 103 X\r\n\r\n", "first-byte-timeout"),
        (format!("{chunked}5;"), b"x=y;", "protocol"),
        (format!("{chunked}0\r\n"), b"a: b\r\n", "protocol"),
        // No body comes of it, so the limits of time end it.
        (chunked, b"000000000000000000000", "total-timeout"),
    ];
    let quick = Limits { first_byte: SHORT * 5, total: SHORT * 10, ..limits() };
    for (head, more, expected) in cases {
        // Only a case that is about time may run out of it.
        let limits = if expected.ends_with("timeout") { quick.clone() } else { limits() };
        let (outcome, idle) = outcome_of(head, Then::Repeat(more), limits).await;
        let more = String::from_utf8_lossy(more);
        assert_eq!((code(&outcome).as_str(), idle), (expected, 0), "{more}");
    }
    let small = Limits { page_bytes_max: 10_000, ..limits() };
    let (outcome, idle) = outcome_of(format!("{OK}\r\n"), Then::Repeat(b"hello"), small).await;
    let fetched = body(outcome);
    assert_eq!((fetched.body.len(), fetched.truncated, idle), (10_000, true, 0));
}

#[tokio::test]
async fn a_server_that_stops_is_given_up_by_the_limit_it_stopped_at() {
    let part = format!("{OK}content-length: 9\r\n\r\nhello");
    let silent = Limits { first_byte: SHORT, ..limits() };
    assert_eq!(code(&outcome_of("", Then::Hang, silent.clone()).await.0), "first-byte-timeout");
    let half_head = outcome_of("HTTP/1.1 200 OK\r\na:", Then::Hang, silent).await.0;
    assert_eq!(code(&half_head), "first-byte-timeout");
    let idle = Limits { idle: SHORT, ..limits() };
    assert_eq!(code(&outcome_of(part.clone(), Then::Hang, idle).await.0), "idle-timeout");
    let slow = Limits { rate_window: SHORT, ..limits() };
    assert_eq!(code(&outcome_of(part.clone(), Then::Hang, slow).await.0), "too-slow");
    let total = Limits { total: SHORT, ..limits() };
    assert_eq!(code(&outcome_of(part, Then::Hang, total).await.0), "total-timeout");
}

#[tokio::test]
async fn trouble_on_the_way_is_told_apart() {
    let (fetcher, guard) = (fetcher(limits()), intranet());
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("http://127.0.0.1:{closed}/");
    assert_eq!(code(&fetcher.get(&FetchRequest::new(&url, &guard)).await), "connect-refused");
    let nobody = Lookup::Given(Arc::new(|_: &str| Vec::new()));
    let lost = Fetcher::new(FetcherSettings { lookup: nobody, ..settings(limits()) }).unwrap();
    assert_eq!(code(&lost.get(&FetchRequest::new("http://nobody.example/", &guard)).await), "dns");
    let public = Guard::default();
    assert_eq!(code(&fetcher.get(&FetchRequest::new(&url, &public)).await), "address");
}

#[tokio::test]
async fn encoded_bodies_are_decoded_and_bombs_are_not() {
    let encoded = |encoding: &str, body: &[u8]| {
        let head =
            format!("{OK}content-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let good = encoded("zstd", &zstd::encode_all(&b"hello"[..], 1).unwrap());
    let fetched = body(outcome_of(good, Then::Listen, limits()).await.0);
    assert_eq!(fetched.body, "hello");
    assert_ne!(fetched.wire_bytes, 5);
    let bomb = encoded("zstd", &zstd::encode_all(&vec![0; 8 << 20][..], 1).unwrap());
    let cases = [
        (bomb, "too-large"),
        (encoded("gzip", b"hello"), "corrupt-encoding"),
        (encoded("lzma", b"hello"), "unknown-encoding"),
        (encoded("gzip, gzip, gzip", b"hello"), "too-many-encodings"),
    ];
    for (bytes, expected) in cases {
        let (outcome, idle) = outcome_of(bytes, Then::Listen, limits()).await;
        assert_eq!((code(&outcome).as_str(), idle), (expected, 0));
        assert!(matches!(outcome, Outcome::Failed { .. }));
    }
}

#[tokio::test]
async fn floods_of_http2_frames_come_to_an_end() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // The head of an answer that is not said to be over.
    const HEADERS: [u8; 10] = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88];
    const WHOLE_HEADERS: [u8; 10] = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
    let floods: [(&str, &[u8], &'static [u8], &str); 6] = [
        ("continuations", &HEADERS, b"\0\0\x05\x09\0\0\0\0\x01\0\x01a\x01b", "protocol"),
        ("empty continuations", &HEADERS, b"\0\0\0\x09\0\0\0\0\x01", "protocol"),
        ("settings", &[], b"\0\0\0\x04\0\0\0\0\0", "first-byte-timeout"),
        ("pings", &[], b"\0\0\x08\x06\0\0\0\0\x0012345678", "first-byte-timeout"),
        ("empty data", &WHOLE_HEADERS, b"\0\0\0\0\0\0\0\0\x01", "protocol"),
        ("resets", &[], b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08", "connection-lost"),
    ];
    let authority = Authority::new("trusted");
    for (name, first, more, expected) in floods {
        let begin = [&SETTINGS[..], first].concat();
        let config = authority.server_config(&["good.example"], &[b"h2"]);
        // The client's preface looks like a request, which starts the flood.
        let server = Server::start_tls(config, move |_| reply(begin.clone(), Then::Repeat(more)));
        let server = server.await;
        let is_slow = expected.ends_with("timeout");
        let first_byte = if is_slow { SHORT * 5 } else { LONG };
        let fetcher = trusting_within(&authority, Limits { first_byte, ..limits() });
        let (guard, url) = (intranet(), format!("https://good.example:{}/", server.port));
        let outcome = fetcher.get(&FetchRequest::new(&url, &guard)).await;
        assert_eq!((code(&outcome).as_str(), fetcher.pool.idle()), (expected, 0), "{name}");
    }
}

#[tokio::test]
async fn a_flood_of_http2_frames_keeps_no_other_request_waiting() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let authority = Authority::new("trusted");
    for flood in [SETTINGS, b"\0\0\x08\x06\0\0\0\0\x0012345678"] {
        let config = authority.server_config(&["good.example"], &[b"h2"]);
        let flooding = Server::start_tls(config, |_| reply(SETTINGS, Then::Repeat(flood))).await;
        let other = Server::start(|_| answer(200, "", b"hello")).await;
        let (fetcher, guard) = (trusting_within(&authority, limits()), intranet());
        let (flooded, others) =
            (format!("https://good.example:{}/", flooding.port), other.url("/"));
        let (flooded, others) =
            (FetchRequest::new(&flooded, &guard), FetchRequest::new(&others, &guard));
        let answered = async {
            while flooding.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            for _ in 0..50 {
                assert_eq!(body(fetcher.get(&others).await).body, "hello");
            }
        };
        tokio::select! {
            biased;
            outcome = fetcher.get(&flooded) => panic!("the flood was over first: {outcome:?}"),
            () = answered => {}
        }
    }
}
