//! Ordinary answers, kept connections, and the bounds of both.

use super::server::{Reply, Server, Then, answer, reply};
use super::*;

#[tokio::test]
async fn a_page_comes_back_with_its_headers_and_the_server_learns_who_asks() {
    let server =
        Server::start(|_| answer(200, "content-type: text/html\r\netag: \"1\"\r\n", b"hello"))
            .await;
    let (guard, url) = (intranet(), server.url("/a?b=c"));
    let fetched = body(fetcher(limits()).get(&FetchRequest::new(&url, &guard)).await);
    assert_eq!((fetched.status, &fetched.body[..]), (200, &b"hello"[..]));
    assert_eq!((fetched.truncated, fetched.wire_bytes), (false, 5));
    assert_eq!(fetched.header("etag"), Some("\"1\""));
    let request = &server.requests()[0];
    assert!(request.starts_with("get /a?b=c http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("host: 127.0.0.1:{}\r\n", server.port)));
    assert!(request.contains("user-agent: driftline/0 (+https://owner.example/bot)\r\n"));
    assert!(request.contains("accept-encoding: gzip, br, zstd, deflate\r\n"));
    assert!(!request.contains("referer") && !request.contains("cookie"));
}

#[test]
fn nobody_may_ask_without_a_name_and_a_contact() {
    for (agent, contact) in [("", "x"), ("x", " "), ("x", "a\nb")] {
        let settings = FetcherSettings {
            agent: agent.to_owned(),
            contact: contact.to_owned(),
            ..settings(limits())
        };
        assert_eq!(Fetcher::new(settings).err(), Some(Unusable::Agent));
    }
}

#[tokio::test]
async fn one_connection_serves_many_requests_and_the_pool_forgets_dead_ones() {
    let server = Server::start(|request| match request.contains("/last") {
        true => Reply { then: Then::Close, ..answer(200, "", b"bye") },
        false => answer(200, "", b"hello"),
    })
    .await;
    let (fetcher, guard) = (fetcher(limits()), intranet());
    for path in ["/1", "/2", "/3", "/last", "/4", "/5"] {
        let url = server.url(path);
        body(fetcher.get(&FetchRequest::new(&url, &guard)).await);
    }
    assert_eq!((server.connections(), server.requests().len()), (2, 6));
    assert_eq!(fetcher.pool.idle(), 1);
}

#[tokio::test]
async fn answers_without_a_document_keep_the_connection_too() {
    let server = Server::start(|request| match request.split(' ').nth(1) {
        Some("/gone") => answer(404, "", b"no such page"),
        Some("/moved") => answer(301, "location: /there\r\n", b"over there"),
        Some("/same") => reply("HTTP/1.1 304 X\r\netag: \"2\"\r\n\r\n", Then::Listen),
        Some("/busy") => answer(503, "retry-after: 7\r\n", b""),
        Some("/secret") => answer(403, "", b"no"),
        _ => reply(
            "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nt: 1\r\n\r\n",
            Then::Listen,
        ),
    })
    .await;
    let (fetcher, guard) = (fetcher(limits()), intranet());
    let url = |path: &str| server.url(path);
    let gone = fetcher.get(&FetchRequest::new(&url("/gone"), &guard)).await;
    assert_eq!(gone, Outcome::Gone { status: 404 });
    let moved = fetcher.get(&FetchRequest::new(&url("/moved"), &guard)).await;
    assert_eq!(
        moved,
        Outcome::Redirect(Redirect { status: 301, to: url("/there"), cookies: vec![] })
    );
    let busy = fetcher.get(&FetchRequest::new(&url("/busy"), &guard)).await;
    let reason = Reason::Status(503);
    assert_eq!(busy, Outcome::Retry { after_ms: Some(7_000), reason });
    assert_eq!(code(&fetcher.get(&FetchRequest::new(&url("/secret"), &guard)).await), "http-403");
    let same = url("/same");
    let ask = FetchRequest {
        etag: Some("\"1\""),
        last_modified: Some("x"),
        ..FetchRequest::new(&same, &guard)
    };
    assert!(
        matches!(fetcher.get(&ask).await, Outcome::NotModified(n) if n.headers["etag"] == "\"2\"")
    );
    assert_eq!(code(&fetcher.get(&FetchRequest::new(&same, &guard)).await), "http-304");
    assert_eq!(body(fetcher.get(&FetchRequest::new(&url("/"), &guard)).await).body, "abcde");
    assert_eq!(server.connections(), 1);
    assert!(server.requests()[4].contains("if-none-match: \"1\"\r\nif-modified-since: x\r\n"));
}

#[tokio::test]
async fn a_body_beyond_the_limit_of_its_kind_is_cut_and_says_so() {
    let server = Server::start(|request| {
        let kind = if request.contains("/page") { "text/html" } else { "image/png" };
        answer(200, &format!("content-type: {kind}\r\n"), &[b'x'; 3_000])
    })
    .await;
    let fetcher = fetcher(Limits { page_bytes_max: 1_000, other_bytes_max: 2_000, ..limits() });
    let guard = intranet();
    for (path, limit, kept) in
        [("/page", None, 1_000), ("/image", None, 2_000), ("/page", Some(2_999), 2_999)]
    {
        let url = server.url(path);
        let ask = FetchRequest { body_bytes_max: limit, ..FetchRequest::new(&url, &guard) };
        let fetched = body(fetcher.get(&ask).await);
        assert_eq!((fetched.body.len(), fetched.truncated), (kept, true));
    }
    let url = server.url("/page");
    let ask = FetchRequest { body_bytes_max: Some(3_000), ..FetchRequest::new(&url, &guard) };
    assert!(!body(fetcher.get(&ask).await).truncated);
    // What was not read to its end is not used again.
    assert_eq!((server.connections(), fetcher.pool.idle()), (4, 1));
}

#[tokio::test]
async fn no_more_connections_are_opened_than_are_allowed() {
    let server = Server::start(|_| answer(200, "", b"x")).await;
    let other = Server::start(|_| answer(200, "", b"x")).await;
    let per_origin = Limits { connections_per_origin_max: 2, ..limits() };
    let fetcher = Arc::new(fetcher(per_origin));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (fetcher, url) = (fetcher.clone(), server.url(&format!("/{n}")));
        tasks.spawn(async move { body(fetcher.get(&FetchRequest::new(&url, &intranet())).await) });
    }
    assert_eq!(tasks.join_all().await.len(), 20);
    assert!(server.connections() <= 2, "{}", server.connections());

    let fetcher = Arc::new(super::fetcher(Limits { connections_max: 1, ..limits() }));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let from = if n % 2 == 0 { &server } else { &other };
        let (fetcher, url) = (fetcher.clone(), from.url("/"));
        tasks.spawn(async move { body(fetcher.get(&FetchRequest::new(&url, &intranet())).await) });
    }
    assert_eq!(tasks.join_all().await.len(), 20);
    assert!(fetcher.pool.idle() <= 1 && fetcher.pool.origins() <= 1);
}

#[tokio::test]
async fn a_connection_that_idled_too_long_is_not_used_again() {
    let server = Server::start(|_| answer(200, "", b"x")).await;
    let fetcher = fetcher(Limits { keep_idle: Duration::ZERO, ..limits() });
    let guard = intranet();
    for _ in 0..3 {
        body(fetcher.get(&FetchRequest::new(&server.url("/"), &guard)).await);
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_referer_stays_within_its_origin_and_framing_headers_cannot_be_set() {
    let server = Server::start(|_| answer(200, "", b"x")).await;
    let (fetcher, guard, url) = (fetcher(limits()), intranet(), server.url("/"));
    let headers = [
        (HeaderName::from_static("x-job"), HeaderValue::from_static("1")),
        (HeaderName::from_static("host"), HeaderValue::from_static("evil")),
        (HeaderName::from_static("content-length"), HeaderValue::from_static("5")),
    ];
    let from_here = server.url("/from?secret=1");
    for referer in [&from_here[..], "http://elsewhere.example/from?secret=1"] {
        let ask = FetchRequest {
            referer: Some(referer),
            headers: &headers,
            ..FetchRequest::new(&url, &guard)
        };
        body(fetcher.get(&ask).await);
    }
    let requests = server.requests();
    assert!(requests[0].contains(&format!("referer: {from_here}\r\n")));
    assert!(!requests[1].contains("referer"));
    for request in requests {
        assert!(request.contains("x-job: 1") && !request.contains("evil"));
        assert!(!request.contains("content-length"));
    }
}
