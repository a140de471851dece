//! TLS with good and bad certificates, and HTTP/2 over it.

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::server::{Server, answer};
use super::*;

/// An authority of a test's own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "leaf");
    params
}

fn config(chain: Vec<CertificateDer<'static>>, key: &KeyPair, alpn: &[&[u8]]) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let root = params.self_signed(&key).unwrap().der().clone();
        Authority { issuer: Issuer::new(params, key), root }
    }

    pub fn root(&self) -> CertificateDer<'static> {
        self.root.clone()
    }

    pub fn server_config(&self, names: &[&str], alpn: &[&[u8]]) -> Arc<ServerConfig> {
        self.sign(params(names), alpn)
    }

    fn sign(&self, params: CertificateParams, alpn: &[&[u8]]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        config(vec![leaf.der().clone()], &key, alpn)
    }
}

fn self_signed(mut params: CertificateParams, is_ca: bool) -> Arc<ServerConfig> {
    if is_ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    config(vec![params.self_signed(&key).unwrap().der().clone()], &key, &[])
}

fn trusting(authority: &Authority) -> Fetcher {
    trusting_within(authority, limits())
}

pub fn trusting_within(authority: &Authority, limits: Limits) -> Fetcher {
    let extra_roots = vec![authority.root()];
    Fetcher::new(FetcherSettings { extra_roots, ..settings(limits) }).unwrap()
}

#[tokio::test]
async fn each_fault_of_a_certificate_is_refused_by_its_name() {
    let (trusted, stranger) = (Authority::new("trusted"), Authority::new("stranger"));
    let names = ["good.example"];
    let mut expired = params(&names);
    expired.not_after = date_time_ymd(2001, 1, 1);
    let mut early = params(&names);
    early.not_before = date_time_ymd(4001, 1, 1);
    let mut client_only = params(&names);
    client_only.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let cases = [
        ("tls-expired", trusted.sign(expired, &[])),
        ("tls-not-yet-valid", trusted.sign(early, &[])),
        ("tls-wrong-host", trusted.server_config(&["other.example"], &[])),
        ("tls-wrong-host", trusted.server_config(&["*.good.example"], &[])),
        ("tls-unknown-issuer", stranger.server_config(&names, &[])),
        ("tls-signature", Authority::new("trusted").server_config(&names, &[])),
        ("tls-self-signed", self_signed(params(&names), false)),
        ("tls-self-signed", self_signed(params(&names), true)),
        ("tls-certificate", trusted.sign(client_only, &[])),
        ("tls-protocol", trusted.server_config(&names, &[b"spdy/3"])),
    ];
    let guard = intranet();
    for (expected, config) in cases {
        let server = Server::start_tls(config, |_| answer(200, "", b"x")).await;
        let url = format!("https://good.example:{}/", server.port);
        let outcome = trusting(&trusted).get(&FetchRequest::new(&url, &guard)).await;
        assert_eq!(code(&outcome), expected);
        let is_refused = matches!(outcome, Outcome::Refused { .. });
        assert_eq!(is_refused, expected != "tls-protocol");
        assert!(server.requests().is_empty());
    }
}

/// What a fetcher that trusts an authority says of a server for `good.example`.
async fn judged(trusted: &Authority, config: Arc<ServerConfig>) -> String {
    let server = Server::start_tls(config, |_| answer(200, "", b"x")).await;
    let (guard, url) = (intranet(), format!("https://good.example:{}/", server.port));
    let outcome = trusting(trusted).get(&FetchRequest::new(&url, &guard)).await;
    let is_answered = matches!(outcome, Outcome::Body(_));
    assert_eq!(server.requests().is_empty(), !is_answered, "nothing is sent to who is not trusted");
    if is_answered { "good".to_owned() } else { code(&outcome) }
}

#[tokio::test]
async fn of_several_faults_of_a_certificate_the_one_that_matters_is_named() {
    let (trusted, stranger) = (Authority::new("trusted"), Authority::new("stranger"));
    let (good, other) = (&["good.example"][..], &["other.example"][..]);
    let expired = |names: &[&str]| {
        let mut params = params(names);
        params.not_after = date_time_ymd(2001, 1, 1);
        params
    };
    let early = |names: &[&str]| {
        let mut params = params(names);
        params.not_before = date_time_ymd(4001, 1, 1);
        params
    };
    let cases = [
        ("tls-wrong-host", stranger.sign(params(other), &[]), "and of an unknown issuer"),
        ("tls-wrong-host", trusted.sign(expired(other), &[]), "and expired"),
        ("tls-wrong-host", stranger.sign(early(other), &[]), "and too early, and unknown"),
        ("tls-wrong-host", self_signed(params(other), false), "and self-signed"),
        ("tls-wrong-host", self_signed(expired(other), true), "and all of it"),
        ("tls-expired", stranger.sign(expired(good), &[]), "and of an unknown issuer"),
        ("tls-expired", self_signed(expired(good), true), "and self-signed"),
        ("tls-not-yet-valid", self_signed(early(good), false), "and self-signed"),
        ("tls-self-signed", self_signed(params(&[]), true), "and without any name"),
        ("tls-wrong-host", trusted.sign(params(&[]), &[]), "without any name, and nothing else"),
    ];
    for (expected, config, what) in cases {
        assert_eq!(judged(&trusted, config).await, expected, "{what}");
    }
}

#[tokio::test]
async fn a_chain_without_its_middle_is_refused_and_one_with_it_is_not() {
    let trusted = Authority::new("trusted");
    let middle_key = KeyPair::generate().unwrap();
    let mut middle = CertificateParams::new(Vec::new()).unwrap();
    middle.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    middle.distinguished_name.push(rcgen::DnType::CommonName, "middle");
    let middle_der = middle.signed_by(&middle_key, &trusted.issuer).unwrap().der().clone();
    let issuer = Issuer::new(middle, middle_key);
    let key = KeyPair::generate().unwrap();
    let leaf = params(&["good.example"]).signed_by(&key, &issuer).unwrap().der().clone();
    let whole = config(vec![leaf.clone(), middle_der], &key, &[]);
    assert_eq!(judged(&trusted, whole).await, "good");
    assert_eq!(judged(&trusted, config(vec![leaf], &key, &[])).await, "tls-unknown-issuer");
}

#[tokio::test]
async fn a_certificate_that_is_signed_with_sha_1_is_refused() {
    // sha256WithRSAEncryption and sha1WithRSAEncryption differ in one byte. The signature is
    // not looked at: what it is made with is not taken.
    const SHA_256: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b";
    const SHA_1: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05";
    let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "rsa");
    let root = authority.self_signed(&key).unwrap().der().clone();
    let trusted = Authority { issuer: Issuer::new(authority, key), root };
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = params(&["good.example"]).signed_by(&leaf_key, &trusted.issuer).unwrap();
    let good = leaf.der().clone();
    assert_eq!(judged(&trusted, config(vec![good.clone()], &leaf_key, &[])).await, "good");
    let mut old = good.to_vec();
    let places: Vec<usize> = (0..old.len()).filter(|at| old[*at..].starts_with(SHA_256)).collect();
    assert_eq!(places.len(), 2, "inside what is signed, and beside the signature");
    places.iter().for_each(|at| old[*at..*at + SHA_1.len()].copy_from_slice(SHA_1));
    let old = CertificateDer::from(old);
    assert_eq!(judged(&trusted, config(vec![old], &leaf_key, &[])).await, "tls-signature");
    let known = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
    let has = |id: &[u8]| {
        let ids = known.all.iter().map(|it| it.signature_alg_id());
        ids.into_iter().any(|known| known.as_ref().windows(id.len()).any(|part| part == id))
    };
    assert!(has(SHA_256) && !has(SHA_1));
}

#[tokio::test]
async fn a_server_that_speaks_only_tls_1_0_is_not_spoken_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 512];
        let _ = stream.read(&mut hello).await.unwrap();
        // A ServerHello that chooses TLS 1.0 and TLS_RSA_WITH_AES_128_CBC_SHA.
        let mut chosen = vec![0x16, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
        chosen.extend([7; 32]);
        chosen.extend([0, 0, 0x2f, 0]);
        stream.write_all(&chosen).await.unwrap();
        let mut after = Vec::new();
        let _ = stream.read_to_end(&mut after).await;
        // An alert is all that comes back.
        assert!(after.is_empty() || after[0] == 0x15, "{after:?}");
    });
    let url = format!("https://good.example:{port}/");
    let outcome = fetcher(limits()).get(&FetchRequest::new(&url, &intranet())).await;
    assert_eq!(code(&outcome), "tls-protocol");
    assert!(tasks.join_next().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_told_apart_from_one_with_a_bad_certificate() {
    let server = Server::start(|_| answer(200, "", b"x")).await;
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = plain.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        use tokio::io::AsyncWriteExt;
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let fetcher = fetcher(limits());
    let outcome =
        fetcher.get(&FetchRequest::new(&format!("https://a.example:{port}/"), &intranet())).await;
    assert_eq!(code(&outcome), "tls-protocol");
    drop(server);
}

#[tokio::test]
async fn a_good_certificate_lets_requests_through_on_one_connection() {
    let authority = Authority::new("trusted");
    for alpn in [&[][..], &[&b"http/1.1"[..]][..]] {
        let config = authority.server_config(&["good.example", "127.0.0.1"], alpn);
        let server = Server::start_tls(config, |_| answer(200, "", b"safe")).await;
        let (fetcher, guard) = (trusting(&authority), intranet());
        for host in ["good.example", "good.example", "127.0.0.1"] {
            let url = format!("https://{host}:{}/", server.port);
            assert_eq!(body(fetcher.get(&FetchRequest::new(&url, &guard)).await).body, "safe");
        }
        assert_eq!((server.connections(), fetcher.pool.idle()), (2, 2));
    }
}

/// What the HTTP/2 server answers, by path.
fn h2_answer(path: &str) -> (hyper::Response<()>, Vec<u8>) {
    let mut answer = hyper::Response::new(());
    let mut body = vec![b'y'; 200_000];
    match path {
        "/many" => {
            for n in 0..200 {
                let name = HeaderName::try_from(format!("x-{n}")).unwrap();
                answer.headers_mut().insert(name, HeaderValue::from_static("y"));
            }
        }
        "/large" => {
            let value = HeaderValue::try_from("y".repeat(12_000)).unwrap();
            answer.headers_mut().insert("x-large", value);
        }
        "/gone" => {
            *answer.status_mut() = hyper::StatusCode::GONE;
            body.truncate(10);
        }
        _ => {}
    }
    (answer, body)
}

/// Serves HTTP/2 and counts connections and requests.
async fn h2_server(
    authority: &Authority,
) -> (u16, JoinSet<()>, Arc<std::sync::Mutex<(usize, Vec<hyper::Request<()>>)>>) {
    let tls: TlsAcceptor = authority.server_config(&["good.example"], &[b"h2"]).into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(std::sync::Mutex::new((0, Vec::new())));
    let (mut tasks, shared) = (JoinSet::new(), seen.clone());
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, seen) = (tls.clone(), shared.clone());
            seen.lock().unwrap().0 += 1;
            connections.spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let Ok(mut h2) = h2::server::handshake(stream).await else { return };
                while let Some(Ok((request, mut respond))) = h2.accept().await {
                    let (answer, body) = h2_answer(request.uri().path());
                    seen.lock().unwrap().1.push(request.map(|_| ()));
                    if let Ok(mut stream) = respond.send_response(answer, false) {
                        let _ = stream.send_data(Bytes::from(body), true);
                    }
                }
            });
        }
    });
    (port, tasks, seen)
}

#[tokio::test]
async fn http2_is_spoken_where_it_is_offered_within_the_same_bounds() {
    let authority = Authority::new("trusted");
    let (port, _tasks, seen) = h2_server(&authority).await;
    let (fetcher, guard) = (trusting(&authority), intranet());
    let url = |path: &str| format!("https://good.example:{port}{path}");
    for path in ["/1?q", "/2", "/3"] {
        let fetched = body(fetcher.get(&FetchRequest::new(&url(path), &guard)).await);
        assert_eq!((fetched.body.len(), fetched.truncated), (200_000, false));
    }
    let gone = fetcher.get(&FetchRequest::new(&url("/gone"), &guard)).await;
    assert_eq!(gone, Outcome::Gone { status: 410 });
    assert_eq!((seen.lock().unwrap().0, fetcher.pool.idle()), (1, 1));
    {
        let seen = seen.lock().unwrap();
        let first = &seen.1[0];
        assert_eq!(first.version(), hyper::Version::HTTP_2);
        assert_eq!(first.uri().to_string(), url("/1?q"));
        assert!(!first.headers().contains_key("host"));
        assert_eq!(first.headers()["user-agent"], "driftline/0 (+https://owner.example/bot)");
    }
    let cut = url("/cut");
    let ask = FetchRequest { body_bytes_max: Some(1_000), ..FetchRequest::new(&cut, &guard) };
    let fetched = body(fetcher.get(&ask).await);
    assert_eq!((fetched.body.len(), fetched.truncated), (1_000, true));
    assert_eq!(fetcher.pool.idle(), 0);
    for path in ["/many", "/large"] {
        let outcome = fetcher.get(&FetchRequest::new(&url(path), &guard)).await;
        assert!(matches!(outcome, Outcome::Failed { .. }), "{path}: {outcome:?}");
        assert_eq!(fetcher.pool.idle(), 0);
    }
}
