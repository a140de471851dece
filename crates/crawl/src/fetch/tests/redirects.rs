//! Chains of redirects.

use super::secure::Authority;
use super::server::{Reply, Server, answer};
use super::*;

const CODES: [u16; 5] = [301, 302, 303, 307, 308];

fn to(status: u16, location: &str) -> Reply {
    answer(status, &format!("location: {location}\r\n"), b"moved")
}

fn path_of(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

fn anywhere(_: &Hop) -> HopVerdict {
    HopVerdict::Follow
}

#[tokio::test]
async fn a_chain_is_followed_and_recorded() {
    let server = Server::start(|request| match path_of(request) {
        "/a" => to(301, "b?x=1#part"),
        "/b?x=1" => to(302, "//127.0.0.1:1/../c"),
        _ => answer(200, "", b"end"),
    })
    .await;
    let (fetcher, guard) = (fetcher(limits()), intranet());
    let (a, b) = (server.url("/a"), server.url("/b?x=1"));
    let ask = FetchRequest { etag: Some("\"1\""), ..FetchRequest::new(&a, &guard) };
    let only_here = |hop: &Hop| match hop.to.contains(":1/") {
        true => HopVerdict::Refuse(Reason::HopScope),
        false => HopVerdict::Follow,
    };
    let followed = fetcher.follow(&ask, 10, only_here).await;
    let elsewhere = "http://127.0.0.1:1/c".to_owned();
    let hops = vec![
        Hop { from: a.clone(), status: 301, to: b.clone() },
        Hop { from: b.clone(), status: 302, to: elsewhere.clone() },
    ];
    assert_eq!(followed.hops, hops);
    assert_eq!(followed.outcome, Outcome::Refused { reason: Reason::HopScope });
    assert!(server.requests()[0].contains("if-none-match"));
    assert!(!server.requests()[1].contains("if-none-match"));

    let followed = fetcher.follow(&ask, 0, anywhere).await;
    assert_eq!(
        followed.outcome,
        Outcome::Redirect(Redirect { status: 301, to: b.clone(), cookies: vec![] })
    );
    let followed = fetcher.follow(&ask, 10, |_| HopVerdict::Report).await;
    assert_eq!((followed.url, followed.hops.len()), (a.clone(), 1));
    assert_eq!(
        followed.outcome,
        Outcome::Redirect(Redirect { status: 301, to: b, cookies: vec![] })
    );
}

#[tokio::test]
async fn circles_and_endless_chains_end() {
    let server = Server::start(|request| match path_of(request) {
        "/self" => to(302, "/self"),
        "/empty" => to(302, ""),
        "/a" => to(302, "/b"),
        "/b" => to(302, "/a"),
        "/cookie" => answer(302, "location: /cookie\r\nset-cookie: seen=1\r\n", b""),
        "/none" => answer(302, "", b""),
        path => to(302, &format!("{path}x")),
    })
    .await;
    let (fetcher, guard) = (fetcher(limits()), intranet());
    let cases = [
        ("/self", "redirect-loop", 1),
        ("/empty", "redirect-loop", 1),
        ("/a", "redirect-loop", 2),
        ("/cookie", "redirect-loop", 1),
        ("/grows?", "redirect-limit", 11),
        ("/none", "redirect-target", 0),
    ];
    for (path, expected, hops) in cases {
        let url = server.url(path);
        let before = server.requests().len();
        let followed = fetcher.follow(&FetchRequest::new(&url, &guard), 10, anywhere).await;
        assert_eq!((code(&followed.outcome).as_str(), followed.hops.len()), (expected, hops));
        assert!(matches!(followed.outcome, Outcome::Failed { .. }));
        assert_eq!(server.requests().len() - before, hops.max(1), "{path}");
    }
}

#[tokio::test]
async fn a_robots_file_behind_five_redirects_is_read_and_behind_six_counts_as_none() {
    use page::robots::answer::{REDIRECTS_MAX, RobotsDecision, RobotsFetch, on_status};
    let server = Server::start(|request| match path_of(request) {
        "/end" => answer(200, "", b"user-agent: *"),
        path => {
            to(302, ["/end", "/1", "/2", "/3", "/4", "/5"][path[1..].parse::<usize>().unwrap() - 1])
        }
    })
    .await;
    let (fetcher, guard) = (fetcher(limits()), intranet());
    for (start, expected) in [("/5", RobotsDecision::Parse), ("/6", RobotsDecision::AllowAll)] {
        let url = server.url(start);
        let ask = FetchRequest {
            body_bytes_max: Some(page::robots::BODY_BYTES_MAX),
            ..FetchRequest::new(&url, &guard)
        };
        let followed = fetcher.follow(&ask, REDIRECTS_MAX, anywhere).await;
        let redirects = u8::try_from(followed.hops.len()).unwrap();
        let asked = RobotsFetch { status: followed.status(), redirects, ..RobotsFetch::default() };
        assert_eq!(on_status(asked), expected, "{start}: {followed:?}");
    }
}

#[tokio::test]
async fn no_code_leads_to_another_scheme_or_behind_the_guard() {
    let targets = [
        ("file:///etc/passwd", "redirect-target"),
        ("ftp://a.example/", "redirect-target"),
        ("gopher://a.example/", "redirect-target"),
        ("data:text/html,x", "redirect-target"),
        ("javascript:alert(1)", "redirect-target"),
        ("http://", "redirect-target"),
        ("http://169.254.169.254/latest/meta-data/", "metadata"),
        ("http://[fd00:ec2::254]/", "metadata"),
        ("http://metadata.google.internal/", "metadata"),
        ("http://100.100.100.200/", "metadata"),
        ("http://[::ffff:a9fe:a9fe]/", "metadata"),
        ("http://10.0.0.1/", "address"),
        ("http://0x7f.1/", "address"),
        ("http://localhost/", "localhost"),
        ("http://a.example:22/", "port"),
    ];
    for status in CODES {
        let server = Server::start(move |request| {
            let index: usize = path_of(request)[1..].parse().unwrap();
            to(status, targets[index].0)
        })
        .await;
        // Only the test's own server is open; everything else is judged as usual.
        let guard = Guard { allow: vec!["127.0.0.1".parse().unwrap()], ..Guard::default() };
        let fetcher = fetcher(limits());
        for (index, (target, expected)) in targets.iter().enumerate() {
            let url = server.url(&format!("/{index}"));
            let followed = fetcher.follow(&FetchRequest::new(&url, &guard), 10, anywhere).await;
            let is_open = *target == "http://0x7f.1/";
            let expected = if is_open { "connect-refused" } else { expected };
            assert_eq!(code(&followed.outcome), expected, "{status} {target}");
        }
    }
}

/// Where a chain goes on after the first origin, by name.
struct Elsewhere {
    name: &'static str,
    url: String,
}

#[tokio::test]
async fn nothing_that_was_given_for_an_origin_is_sent_to_another() {
    let authority = Authority::new("trusted");
    let tls = authority.server_config(&["home.example"], &[b"http/1.1"]);
    let other_port = Server::start(|_| answer(200, "", b"x")).await;
    let other_scheme = Server::start_tls(tls, |_| answer(200, "", b"x")).await;
    let home = Server::start(|request| match path_of(request).split_once('?') {
        Some((status, target)) => to(status[1..].parse().unwrap(), target),
        None => answer(200, "", b"x"),
    })
    .await;
    let fetcher =
        Fetcher::new(FetcherSettings { extra_roots: vec![authority.root()], ..settings(limits()) })
            .unwrap();
    let secrets = [
        (HeaderName::from_static("authorization"), HeaderValue::from_static("basic s3cret")),
        (HeaderName::from_static("cookie"), HeaderValue::from_static("id=s3cret")),
        (HeaderName::from_static("x-api-key"), HeaderValue::from_static("s3cret")),
    ];
    let elsewhere = [
        Elsewhere { name: "host", url: format!("http://other.example:{}/", home.port) },
        Elsewhere { name: "port", url: format!("http://home.example:{}/", other_port.port) },
        Elsewhere { name: "scheme", url: format!("https://home.example:{}/", other_scheme.port) },
    ];
    let guard = intranet();
    for status in CODES {
        for Elsewhere { name, url } in &elsewhere {
            let start = format!("http://home.example:{}/{status}?{url}", home.port);
            let ask = FetchRequest {
                headers: &secrets,
                referer: Some(&start),
                ..FetchRequest::new(&start, &guard)
            };
            let followed = fetcher.follow(&ask, 10, anywhere).await;
            assert_eq!(followed.url, *url);
            assert_eq!(body(followed.outcome).body, "x", "{status} {name}");
        }
        // And it does not come back when the chain does.
        let back = format!("http://other.example:{0}/{status}?http://home.example:{0}/", home.port);
        let start = format!("http://home.example:{}/{status}?{back}", home.port);
        let ask = FetchRequest { headers: &secrets, ..FetchRequest::new(&start, &guard) };
        assert_eq!(body(fetcher.follow(&ask, 10, anywhere).await.outcome).body, "x");
        let stay = format!("http://home.example:{}/{status}?/stay", home.port);
        let ask = FetchRequest { headers: &secrets, ..FetchRequest::new(&stay, &guard) };
        assert_eq!(body(fetcher.follow(&ask, 10, anywhere).await.outcome).body, "x");
    }
    let is_leak = |request: &String| request.contains("s3cret") || request.contains("referer");
    assert_eq!(other_port.requests().len(), CODES.len());
    assert_eq!(other_scheme.requests().len(), CODES.len());
    assert!(!other_port.requests().iter().any(is_leak));
    assert!(!other_scheme.requests().iter().any(is_leak));
    for request in home.requests() {
        let is_other = request.contains("host: other.example");
        let is_end = path_of(&request) == "/";
        let is_stay = path_of(&request) == "/stay";
        assert_eq!(request.contains("s3cret"), is_stay || !(is_other || is_end), "{request}");
    }
}
