//! The small web as a client on a plain socket sees it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::gate::CONNECTIONS_MAX;
use super::request::{HEAD_BYTES_MAX, HEADERS_MAX};
use super::{Answer, Fault, Request, Settings, Visit, Web};

const DEADLINE: Duration = Duration::from_secs(20);

/// A client that reads one answer at a time.
struct Client {
    stream: BufReader<TcpStream>,
}

/// An answer as it was read.
struct Received {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Received {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    fn at(address: Ipv4Addr, port: u16) -> Client {
        let stream = TcpStream::connect((address, port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    fn of(web: &Web) -> Client {
        Client::at(Ipv4Addr::LOCALHOST, web.port())
    }

    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn ask(&mut self, host: &str, path: &str, headers: &str) -> Option<Received> {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n"));
        self.read(true)
    }

    /// `None` if the connection ended before the answer did.
    fn read(&mut self, has_body: bool) -> Option<Received> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut read = Received { status, headers, body: Vec::new() };
        let length = read.header("content-length").map_or(0, |length| length.parse().unwrap());
        read.body = vec![0; if has_body { length } else { 0 }];
        self.stream.read_exact(&mut read.body).ok()?;
        Some(read)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        line.strip_suffix("\r\n").map(str::to_owned)
    }

    /// Whether the server hung up.
    fn is_over(&mut self) -> bool {
        !matches!(self.stream.read(&mut [0]), Ok(1))
    }
}

fn echo(request: &Request) -> Answer {
    Answer::text(format!("{} {} {}", request.method, request.host, request.path))
}

#[test]
fn one_port_serves_many_hosts_on_one_kept_connection() {
    let web = Web::start(echo).unwrap();
    let mut client = Client::of(&web);
    for (host, path) in [("a.example", "/"), ("B.Example:8080", "/x?y=1"), ("127.0.0.1", "/z")] {
        let read = client.ask(host, path, "").unwrap();
        assert_eq!(read.status, 200);
        let name = host.to_lowercase().replace(":8080", "");
        assert_eq!(String::from_utf8(read.body).unwrap(), format!("GET {name} {path}"));
    }
    let hosts: Vec<String> = web.visits().into_iter().map(|visit| visit.host).collect();
    assert_eq!(hosts, ["a.example", "b.example", "127.0.0.1"]);
    assert_eq!(web.url("a.example", "/p"), format!("http://a.example:{}/p", web.port()));
}

#[test]
fn a_document_that_is_known_is_not_sent_again() {
    let web = Web::start(|request| {
        let answer = Answer::html("<p>x").gzipped();
        match request.path_alone() {
            "/tag" => answer.etag("v1").last_modified("Mon, 01 Jun 2026 10:00:00 GMT"),
            "/date" => answer.last_modified("Mon, 01 Jun 2026 10:00:00 GMT"),
            "/lost" => Answer::status(404).etag("v1"),
            _ => answer,
        }
    })
    .unwrap();
    let mut client = Client::of(&web);
    let same_date = "If-Modified-Since: Mon, 01 Jun 2026 10:00:00 GMT\r\n";
    let mut status = |path: &str, headers: &str| {
        let read = client.ask("a.example", path, headers).unwrap();
        assert_eq!(read.body.is_empty(), read.status == 304);
        read.status
    };
    assert_eq!(status("/tag", "If-None-Match: \"v1\"\r\n"), 304);
    assert_eq!(status("/tag", "If-None-Match: \"v0\", W/\"v1\"\r\n"), 304);
    assert_eq!(status("/tag", "If-None-Match: \"v2\"\r\n"), 200);
    let tag_first = format!("If-None-Match: \"v2\"\r\n{same_date}");
    assert_eq!(status("/tag", &tag_first), 200, "a tag counts before a date");
    assert_eq!(status("/date", same_date), 304);
    assert_eq!(status("/date", "If-Modified-Since: Mon, 01 Jun 2026 09:00:00 GMT\r\n"), 200);
    assert_eq!(status("/none", same_date), 200);
    assert_eq!(status("/lost", "If-None-Match: \"v1\"\r\n"), 404);
    assert_eq!(status("/tag", ""), 200);
    let visits = web.visits();
    assert_eq!(visits.iter().filter(|visit| !visit.is_conditional).count(), 1);
    assert_eq!(visits.iter().filter(|visit| visit.status == 304).count(), 3);
}

#[test]
fn a_body_is_compressed_for_whoever_accepts_it() {
    let text = "tide ".repeat(400);
    let page = text.clone();
    let web = Web::start(move |_| Answer::html(page.clone()).gzipped()).unwrap();
    let mut client = Client::of(&web);
    let plain = client.ask("a.example", "/", "Accept-Encoding: br\r\n").unwrap();
    assert_eq!(plain.body, text.as_bytes());
    let packed = client.ask("a.example", "/", "Accept-Encoding: br, gzip\r\n").unwrap();
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < text.len() / 10);
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(packed.body.as_slice()).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, text);
}

#[test]
fn a_head_request_gets_the_length_and_no_body() {
    let web = Web::start(|_| Answer::html("12345")).unwrap();
    let mut client = Client::of(&web);
    for _ in 0..2 {
        client.send("HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let read = client.read(false).unwrap();
        assert_eq!((read.status, read.header("content-length")), (200, Some("5")));
    }
}

#[test]
fn the_connection_ends_when_the_client_wants_it_to() {
    let web = Web::start(echo).unwrap();
    let mut client = Client::of(&web);
    let read = client.ask("a.example", "/", "Connection: close\r\n").unwrap();
    assert_eq!(read.header("connection"), Some("close"));
    assert!(client.is_over());
    let mut old = Client::of(&web);
    old.send("GET / HTTP/1.0\r\nHost: a.example\r\n\r\n");
    assert_eq!(old.read(true).unwrap().status, 200);
    assert!(old.is_over());
}

#[test]
fn what_is_no_request_is_refused_and_the_connection_closed() {
    let web = Web::start(echo).unwrap();
    let many = "X: y\r\n".repeat(HEADERS_MAX);
    let long = "x".repeat(HEAD_BYTES_MAX);
    for (text, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost a\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(), 505),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n".to_owned(), 413),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n".to_owned(), 413),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431),
        (format!("GET /{long}"), 431),
    ] {
        let mut client = Client::of(&web);
        client.send(&text);
        assert_eq!(client.read(true).unwrap().status, status, "{text:.40}");
        assert!(client.is_over());
    }
    assert_eq!(web.visits_count(), 0, "the answering function was never asked");
}

#[test]
fn faults_break_an_answer_as_they_say() {
    let web = Web::start(|request| {
        let page = Answer::html("x".repeat(1_000));
        match request.path.as_str() {
            "/drop" => page.with_fault(Fault::Drop),
            "/cut" => page.with_fault(Fault::Cut(500)),
            "/drip" => page.with_fault(Fault::Drip { bytes: 300, every: Duration::from_millis(2) }),
            _ => page.after(Duration::from_millis(30)),
        }
    })
    .unwrap();
    for path in ["/drop", "/cut"] {
        let mut client = Client::of(&web);
        assert!(client.ask("a.example", path, "").is_none(), "{path}");
    }
    let mut client = Client::of(&web);
    for path in ["/drip", "/late"] {
        assert_eq!(client.ask("a.example", path, "").unwrap().body.len(), 1_000, "{path}");
    }
    let visits = web.visits();
    let statuses: Vec<u16> = visits.iter().map(|visit| visit.status).collect();
    assert_eq!(statuses, [0, 0, 200, 200]);
    let took = |visit: &Visit| visit.ended - visit.began;
    assert!(took(&visits[2]) >= Duration::from_millis(8));
    assert!(took(&visits[3]) >= Duration::from_millis(30));
}

#[test]
fn several_addresses_share_a_port() {
    let addresses = vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)];
    let settings = Settings { addresses: addresses.clone(), ..Settings::default() };
    let web = Web::start_with(&settings, echo).unwrap();
    for address in addresses {
        let read = Client::at(address, web.port()).ask(&address.to_string(), "/", "").unwrap();
        assert_eq!(String::from_utf8(read.body).unwrap(), format!("GET {address} /"));
    }
    let outside = Settings { addresses: vec![Ipv4Addr::UNSPECIFIED], ..Settings::default() };
    assert!(Web::start_with(&outside, echo).is_err(), "nothing but loopback");
}

#[test]
fn the_log_file_tells_of_a_request_before_it_is_answered() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("log");
    let (asked, answering) = std::sync::mpsc::sync_channel::<String>(1);
    let shown = path.clone();
    let settings = Settings { log_file: Some(path.clone()), ..Settings::default() };
    let web = Web::start_with(&settings, move |_| {
        asked.send(std::fs::read_to_string(&shown).unwrap()).unwrap();
        Answer::status(404)
    })
    .unwrap();
    let mut client = Client::of(&web);
    client.ask("a.example", "/x", "If-None-Match: \"1\"\r\n").unwrap();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let before = words(&answering.recv().unwrap());
    assert_eq!([&before[..2], &before[3..]].concat(), ["begin", "1", "a.example", "/x", "c"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let end = words(text.lines().nth(1).unwrap());
    assert_eq!([&end[..2], &end[3..]].concat(), ["end", "1", "404"]);
    assert!(end[2].parse::<u64>().unwrap() >= before[2].parse::<u64>().unwrap());
}

#[test]
fn visits_can_be_waited_for_and_forgotten() {
    let web = Web::start(echo).unwrap();
    assert!(!web.wait_for_visits(1, Duration::ZERO));
    let port = web.port();
    let asking = std::thread::spawn(move || {
        let mut client = Client::at(Ipv4Addr::LOCALHOST, port);
        (0..5).for_each(|n| drop(client.ask("a.example", &format!("/{n}"), "")));
    });
    assert!(web.wait_for_visits(5, DEADLINE));
    asking.join().unwrap();
    assert_eq!(web.take_visits().len(), 5);
    assert_eq!((web.visits().len(), web.visits_count()), (0, 5));
}

#[test]
fn a_newcomer_takes_the_place_of_an_idle_connection() {
    let web = Web::start(echo).unwrap();
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS_MAX + 5 {
        let mut client = Client::of(&web);
        assert!(client.ask("a.example", "/", "").is_some(), "client {number} waits in vain");
        clients.push(client);
    }
    assert!(clients[0].is_over());
}

#[test]
fn a_panic_in_the_answer_ends_one_connection_only() {
    let web = Web::start(|request| {
        assert!(request.path != "/panic", "on purpose");
        echo(request)
    })
    .unwrap();
    assert!(Client::of(&web).ask("a.example", "/panic", "").is_none());
    assert_eq!(Client::of(&web).ask("a.example", "/", "").unwrap().status, 200);
}

#[test]
fn a_dropped_web_is_gone_whoever_waits() {
    let web = Web::start(|_| Answer::status(200).after(Duration::from_secs(3_600))).unwrap();
    let port = web.port();
    let mut idle = Client::of(&web);
    let mut waiting = Client::of(&web);
    waiting.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    drop(web);
    assert!(idle.is_over());
    assert!(waiting.is_over());
    let again = Settings { port, ..Settings::default() };
    let web = Web::start_with(&again, echo).unwrap();
    assert_eq!(web.port(), port, "the port is free again");
}
