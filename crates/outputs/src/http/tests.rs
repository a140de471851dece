//! Requests to servers that behave badly: each ends in time, with a sentence.

use super::*;
use crate::testing::server::{Reply, Request, Server as Fake};
use std::io::{Read, Write};
use std::net::TcpListener;

fn server(url: &str) -> ServerClient {
    ServerClient::new(ServerOptions { url, timeout_ms: 2_000, ..ServerOptions::default() }).unwrap()
}

fn asked(url: &str) -> Result<ServerResponse, Unavailable> {
    let server = server(url);
    let url = server.at(&["a b", "c"]);
    server.send(ServerRequest::new(Method::GET, url))
}

#[test]
fn an_answer_is_read_with_its_status_and_its_wish() {
    let fake = Fake::start(|request: &Request| {
        assert_eq!(request.target, "/base/a%20b/c");
        Reply::json(429, &serde_json::json!("later")).with("retry-after", "7")
    });
    let response = asked(&format!("{}/base/", fake.url())).unwrap();
    assert_eq!((response.status, response.retry_ms), (429, Some(7_000)));
    let unavailable = response.unavailable().unwrap();
    assert!(
        unavailable.why.contains("later") && unavailable.retry_ms == Some(7_000),
        "{unavailable:?}"
    );
}

#[test]
fn whoever_does_not_answer_well_is_away() {
    let refused = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = refused.local_addr().unwrap().port();
    drop(refused);
    let unavailable = asked(&format!("http://127.0.0.1:{port}")).unwrap_err();
    assert!(unavailable.why.contains("refused"), "{}", unavailable.why);

    let half = Fake::start(|_| Reply::Half);
    let unavailable = asked(&half.url()).unwrap_err();
    assert!(unavailable.why.contains("broke off"), "{}", unavailable.why);

    let closed = Fake::start(|_| Reply::Close);
    assert!(asked(&closed.url()).unwrap_err().why.contains("cannot be used"));

    let endless = Fake::serving(0, |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let piece = [&b"100000\r\n"[..], &vec![b'x'; 1 << 20], b"\r\n"].concat();
        while stream.write_all(&piece).is_ok() {}
    });
    let unavailable = asked(&endless.url()).unwrap_err();
    assert!(unavailable.why.contains("longer than"), "{}", unavailable.why);
}

#[test]
fn metadata_services_and_this_program_itself_are_not_asked() {
    for url in [
        "http://169.254.169.254/latest",
        "http://[fd00:ec2::254]/",
        "http://metadata.google.internal/",
    ] {
        let unavailable = asked(url).unwrap_err();
        assert!(unavailable.why.contains("metadata service"), "{url}: {}", unavailable.why);
    }
    let fake = Fake::start(|_| Reply::json(200, &serde_json::json!("yes")));
    assert!(asked(&fake.url()).is_ok());
    let port = server(&fake.url()).base().port().unwrap();
    targets::claim_listener(SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port));
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let unavailable = asked(&format!("http://{host}:{port}/")).unwrap_err();
        assert!(unavailable.why.contains("itself listens"), "{host}: {}", unavailable.why);
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up_in_time() {
    let silent = Fake::serving(0, |stream| {
        let _held = stream;
        std::thread::park();
    });
    let access = ServerOptions { url: &silent.url(), timeout_ms: 100, ..ServerOptions::default() };
    let server = ServerClient::new(access).unwrap();
    let unavailable = server.send(ServerRequest::new(Method::GET, server.at(&[]))).unwrap_err();
    assert!(unavailable.why.contains("in time"), "{}", unavailable.why);
}

/// Neither a document nor a login goes where nobody sent it.
#[test]
fn no_redirect_is_followed() {
    let trap = Fake::start(|_| panic!("nobody asks here"));
    for status in [301, 302, 303, 307, 308] {
        let place = trap.url();
        let fake = Fake::start(move |_| Reply::status(status).with("location", place.clone()));
        let login = Login::Basic("user".into(), "hunter2".into());
        let url = fake.url();
        let access = ServerOptions { url: &url, login, timeout_ms: 2_000, ca_file: "" };
        let server = ServerClient::new(access).unwrap();
        let request = ServerRequest::json(Method::POST, server.base().clone(), b"{}".to_vec());
        let unavailable = server.send(request).unwrap_err();
        assert!(
            unavailable.why.contains("redirects to") && !unavailable.why.contains("hunter2"),
            "{}",
            unavailable.why
        );
    }
}

#[test]
fn a_wish_is_a_number_or_a_date_and_has_a_bound() {
    assert_eq!(retry_ms(" 3 "), Some(3_000));
    assert_eq!(retry_ms("-3"), Some(0));
    assert_eq!(retry_ms("999999999"), Some(RETRY_MS_MAX));
    assert_eq!(retry_ms("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0), "it is over");
    assert_eq!(retry_ms("Sat, 06 Nov 2094 08:49:37 GMT"), Some(RETRY_MS_MAX));
    for text in ["", "soon", "99999999999999999999", "1.5"] {
        assert_eq!(retry_ms(text), None, "{text}");
    }
}

#[test]
fn an_address_is_of_the_web_and_has_no_login() {
    assert!(address("url", "https://a.example:9200/x").is_ok());
    for bad in ["", "a.example", "ftp://a.example", "http://", "http://user:hunter2@a.example"] {
        let refused = address("url", bad).unwrap_err();
        assert!(refused.starts_with("url:") && !refused.contains("hunter2"), "{bad}: {refused}");
    }
}

#[test]
fn a_file_of_authorities_must_have_some() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    assert!(authorities(path).unwrap_err().contains("no certificate"));
    assert!(authorities("/nowhere.pem").unwrap_err().contains("cannot be read"));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(path, crate::testing::pem(made.cert.der())).unwrap();
    assert_eq!(authorities(path).unwrap().len(), 1);
    let access = ServerOptions {
        url: "https://localhost",
        timeout_ms: 100,
        ca_file: path,
        login: Login::None,
    };
    assert!(ServerClient::new(access).is_ok());
}
