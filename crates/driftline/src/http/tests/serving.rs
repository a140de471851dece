//! Connections: TLS, silent callers, what is no request, and an end in good order.

use super::*;
use crate::http::server::tls;
use std::io::Read;
use std::net::TcpStream;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use store::testing::on_sqlite;

#[test]
fn with_tls_callers_are_answered_encrypted_and_others_not_at_all() {
    on_sqlite(|db| {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        assert!(tls(&key, &key).is_err() && tls(&cert, &cert).is_err(), "not what they should be");
        let log = Arc::new(Log::to(Box::new(Lines::default()), true));
        let (context, access) = (VerbContext::of_rows(db.clone()), ApiAccess::default());
        let served = ApiState::new(context, access, true, log, Box::new(|| ()));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let acceptor = tls(&cert, &key).unwrap();
        let serving = ApiServer::start(listener, Some(acceptor), Arc::new(served)).unwrap();
        let port = serving.address.port();
        let root = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
        let client = Client::builder().tls_certs_only([root]).build().unwrap();
        let answer = client.get(format!("https://localhost:{port}/healthz")).send().unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["strict-transport-security"], "max-age=31536000");
        let plain = Client::new().get(format!("http://localhost:{port}/healthz")).send();
        assert!(plain.is_err(), "{plain:?}");
        serving.stop();
        Ok(())
    });
}

#[test]
fn what_is_under_way_is_answered_when_the_server_ends() {
    on_sqlite(|db| {
        let mut api = Api::of(db);
        let (url, token) = (api.url.clone(), api.token(Role::Viewer).to_owned());
        // The request waits for the database, which somebody else writes to.
        let (locked, is_locked) = sync_channel(0);
        let (release, released) = sync_channel::<()>(0);
        let other = db.clone();
        let writer = std::thread::spawn(move || {
            let released = Mutex::new(released);
            other.write(move |tx| {
                tx.execute("UPDATE api_tokens SET used_ms = NULL", &[])?;
                let _ = locked.send(());
                let _ = released.lock().unwrap().recv();
                Ok(())
            })
        });
        is_locked.recv().unwrap();
        let caller = std::thread::spawn(move || {
            let request = Client::new().get(format!("{url}/api/v1/status")).bearer_auth(token);
            request.send().unwrap().status().as_u16()
        });
        let asked = || api.client.get(format!("{}/healthz", api.url)).send().is_ok();
        assert!(asked(), "others are answered meanwhile");
        let began = Instant::now();
        while api.served.under_way() == 0 {
            assert!(began.elapsed() < Duration::from_secs(30), "nobody called");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let serving = api.serving.take().unwrap();
        let stopper = std::thread::spawn(move || serving.stop());
        drop(release);
        writer.join().unwrap()?;
        assert_eq!(caller.join().unwrap(), 200);
        stopper.join().unwrap();
        assert!(!asked(), "nobody listens any more");
        Ok(())
    });
}

#[test]
fn what_is_no_request_is_refused_and_hurts_nobody() {
    on_sqlite(|db| {
        let api = Api::of(db);
        let address = api.url.trim_start_matches("http://");
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(TcpStream::connect(address).unwrap());
        }
        for hostile in [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            b"GET / HTTP/9.9\r\n\r\n".to_vec(),
            format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(500))
                .into_bytes(),
            format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(1 << 20))
                .into_bytes(),
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            // It may be closed before all of it is sent.
            let _ = stream.write_all(&hostile);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let text = String::from_utf8_lossy(&answer);
            assert!(answer.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
        }
        assert_eq!(api.get("/api/v1/status").0, 200);
        Ok(())
    });
}
