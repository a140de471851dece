//! Names that change their meaning, and connections kept for other jobs.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::server::{Server, answer};
use super::*;

#[tokio::test]
async fn a_name_that_turns_from_public_to_loopback_never_reaches_the_trap() {
    let trap = Server::start(|_| answer(200, "", b"caught")).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    // One loopback address stands for the public internet: it is allowed, and nobody
    // listens there. The trap is on the other. Nothing is remembered.
    let lookup = Lookup::Given(Arc::new(move |_: &str| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let public: IpAddr = [127, 0, 0, 2].into();
        let here: IpAddr = [127, 0, 0, 1].into();
        let disguised: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        [vec![public], vec![here], vec![public, here], vec![disguised]][n % 4].clone()
    }));
    let limits = Limits { names_kept: Duration::ZERO, ..limits() };
    let fetcher = Fetcher::new(FetcherSettings { lookup, ..settings(limits) }).unwrap();
    let guard = Guard { allow: vec!["127.0.0.2".parse().unwrap()], ..Guard::default() };
    let url = format!("http://rebinding.example:{}/", trap.port);
    for n in 0..2_000 {
        let outcome = fetcher.get(&FetchRequest::new(&url, &guard)).await;
        let expected = ["connect-refused", "address"][n % 2];
        assert_eq!(code(&outcome), expected, "try {n}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2_000);
    assert_eq!(trap.connections(), 0);
}

#[tokio::test]
async fn a_kept_connection_is_checked_against_the_guard_of_whoever_takes_it() {
    let server = Server::start(|_| answer(200, "", b"intranet")).await;
    let fetcher = fetcher(limits());
    let url = format!("http://host.example:{}/", server.port);
    body(fetcher.get(&FetchRequest::new(&url, &intranet())).await);
    assert_eq!(fetcher.pool.idle(), 1);
    let refused = fetcher.get(&FetchRequest::new(&url, &Guard::default())).await;
    assert_eq!(refused, Outcome::Refused { reason: Reason::Address("loopback") });
    assert_eq!(server.requests().len(), 1);
    let own = Guard { own: vec![([127, 0, 0, 1], server.port).into()], ..intranet() };
    let refused = fetcher.get(&FetchRequest::new(&url, &own)).await;
    assert_eq!(refused, Outcome::Refused { reason: Reason::OwnAddress });
    assert_eq!(server.requests().len(), 1);
}
