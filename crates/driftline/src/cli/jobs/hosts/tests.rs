//! Hosts come in their order, whole or in pages, and one is shown with all it has.

use super::*;
use crate::verbs::Verb;
use crate::verbs::context::VerbContext;
use crate::verbs::jobs::hosts::HostOrder;
use page::domain::SuffixList;
use page::ids::{bin_of, part_of};
use store::Db;
use store::ids::{BinId, ConnectionId, JobId, Part, Run};
use store::tables::bins::{self, Visit};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::jobs::{self, Job};
use store::tables::queue::{self, AddContext, Candidate, Place as QueuePlace};
use store::tables::robots::{self, StoredRobots};
use store::tables::settings;
use store::tables::throttles::{self, Throttle};
use store::testing::{both_databases, candidate};

const PARTS: u32 = 4;
const NOW_MS: i64 = 1_000_000;
const HOSTS: i64 = 12;

fn name(number: i64) -> String {
    format!("h{number}.example")
}

fn part(name: &str) -> Part {
    let domain = SuffixList::bundled().grouping_domain(name);
    Part(part_of(Some(domain), name, PARTS).into())
}

/// Host `n` has `n` documents, `HOSTS - n` errors, and answers in `n % 5` seconds.
/// Even ones belong to job 1, odd ones to job 2.
fn fill(db: &Db) -> store::Result<()> {
    db.write(|tx| settings::freeze(tx, PARTS))?;
    for (id, job_name) in [(1, "even"), (2, "odd")] {
        let job = Job::new(JobId(id), job_name, ConnectionId(1));
        db.write(move |tx| jobs::save(tx, &job, 1))?;
    }
    for number in 1..=HOSTS {
        db.write(move |tx| {
            let (host, part) = (name(number), part(&name(number)));
            let document = |n| candidate(number * 100 + n, format!("http://{host}/{n}"), &host);
            let documents: Vec<Candidate> =
                (0..number).map(|n| Candidate { seed: true, ..document(n) }).collect();
            let place = QueuePlace { part, job: JobId(1 + number % 2) };
            let adding = AddContext {
                place,
                run: Run(1),
                now_ms: 0,
                room: None,
                requisites: Default::default(),
            };
            queue::add(tx, adding, &documents)?;
            bins::visited(tx, part, &[visit(&host, number)])
        })?;
    }
    Ok(())
}

fn visit(host: &str, number: i64) -> Visit {
    Visit {
        bin: BinId(bin_of(host)),
        next_ms: 5,
        delay_ms: Some(2_000),
        failures: 3,
        blocked_ms: (number == 3).then_some(NOW_MS + 60_000),
        blocked_by: (number == 3).then(|| "dns".to_owned()),
        fetches: 10,
        errors: HOSTS - number,
        bytes: 1_500,
        busy_ms: number % 5 * 10_000,
    }
}

fn ask(by: HostOrder) -> HostsRequest {
    HostsRequest { host: None, job: None, by, limit: 50, cursor: None }
}

fn asked(db: &Db, request: HostsRequest) -> HostsResponse {
    Hosts::answer(&VerbContext::of_rows(db.clone()), request).unwrap()
}

#[test]
fn hosts_come_in_the_order_that_is_asked_for_in_pages_of_any_size() {
    both_databases(|db| {
        fill(db)?;
        for (by, first) in [(HostOrder::Documents, 12), (HostOrder::Errors, 1)] {
            let whole: Vec<String> =
                asked(db, ask(by)).hosts.into_iter().map(|host| host.host).collect();
            assert_eq!((whole.len(), &whole[0]), (12, &name(first)), "{by:?}");
            for limit in [1, 5] {
                let (mut paged, mut cursor) = (Vec::new(), None);
                loop {
                    let page = asked(db, HostsRequest { limit, cursor, ..ask(by) });
                    assert!(page.hosts.len() <= limit as usize);
                    paged.extend(page.hosts.into_iter().map(|host| host.host));
                    match page.cursor {
                        Some(next) => {
                            assert!(!next.starts_with('-'), "{next} looks like a flag");
                            cursor = Some(next);
                        }
                        None => break,
                    }
                }
                assert_eq!(paged, whole, "{by:?} in pages of {limit}");
            }
        }
        let slow = asked(db, HostsRequest { limit: 2, ..ask(HostOrder::Slowest) });
        assert!(slow.hosts.iter().all(|host| host.mean_ms == Some(4_000)));
        let odd = asked(db, HostsRequest { job: Some("odd".into()), ..ask(HostOrder::Documents) });
        let odd: Vec<String> = odd.hosts.into_iter().map(|host| host.host).collect();
        assert_eq!(odd, [11, 9, 7, 5, 3, 1].map(name));
        let context = VerbContext::of_rows(db.clone());
        let bad = HostsRequest { cursor: Some("1.x".into()), ..ask(HostOrder::Errors) };
        let refused = Hosts::answer(&context, bad).err().unwrap().to_string();
        assert!(refused.contains("--cursor"), "{refused}");
        Ok(())
    });
}

#[test]
fn one_host_is_shown_with_its_robots_and_its_breaker() {
    both_databases(|db| {
        fill(db)?;
        let body = b"User-agent: *\nDisallow: /\nCrawl-delay: 7\nSitemap: http://h3.example/s\n";
        let stored = StoredRobots {
            origin: "http://h3.example".into(),
            status: Some(200),
            body: Some(body.to_vec()),
            closed: false,
            asked_ms: 5,
            good_ms: Some(5),
            failing_ms: None,
            expires_ms: NOW_MS + 5_000,
        };
        let closed = StoredRobots {
            origin: "https://h3.example:8443".into(),
            status: None,
            body: None,
            closed: true,
            ..stored.clone()
        };
        db.write(move |tx| {
            robots::save(tx, part("h3.example"), &stored)?;
            robots::save(tx, part("h3.example"), &closed)
        })?;
        let one = |host: &str| {
            asked(db, HostsRequest { host: Some(host.into()), ..ask(HostOrder::Documents) })
        };
        let found = one("http://H3.example:80/x");
        let lines = detail(&found.hosts[0], NOW_MS);
        assert_eq!(
            lines,
            [
                "h3.example",
                "    3 documents, 10 fetches, 9 errors, 1.5 kB received",
                "    mean response time: 3 s",
                "    delay between requests: 2 s",
                "    blocked after 3 failures in a row (the host name could not be resolved); \
                 next request in 1 min",
                "    http://h3.example/robots.txt: 4 lines, 70 bytes, forbids the first page, asks \
                 for 7 s between requests, names 1 sitemap",
                "    https://h3.example:8443/robots.txt: unavailable (no answer), so nothing is \
                 allowed; fetched again in 5 s, or by the next run",
                "    its documents: driftline documents --host h3.example",
            ]
        );
        let row = line(&found.hosts[0], NOW_MS);
        assert!(
            row.ends_with("read         h3.example  blocked by dns, next request in 1 min"),
            "{row}"
        );
        assert!(one("nobody.example").hosts.is_empty());
        Ok(())
    });
}

#[test]
fn one_host_is_shown_with_what_connections_allow_it() {
    both_databases(|db| {
        fill(db)?;
        let throttle = |matches: &str, per_ms: f64| Throttle {
            matches: matches.into(),
            description: None,
            per_ms: Some(per_ms),
            connections_max: Some(2),
            bytes_per_s_max: Some(100_000),
        };
        db.write(move |tx| {
            let web = Connection::new(ConnectionId(1), "web", "web");
            connections::save(tx, ConnectionKind::Repository, &web, 1)?;
            let list = [throttle(r"^h1\.", 0.0), throttle("^h[12]", 12.0 / 60_000.0)];
            throttles::replace(tx, ConnectionId(1), &list)
        })?;
        let lines = |host: &str| {
            let found =
                asked(db, HostsRequest { host: Some(host.into()), ..ask(HostOrder::Documents) });
            detail(&found.hosts[0], NOW_MS)
        };
        let has = |host: &str, line: &str| lines(host).iter().any(|it| it == line);
        let slow =
            "    connection web: at most one document every 5 s, 2 requests at once, 100.0 kB/s";
        assert!(has("h2.example", slow), "{:?}", lines("h2.example"));
        let stopped = r"    connection web: blocked by throttle '^h1\.'";
        assert!(has("h1.example", stopped), "{:?}", lines("h1.example"));
        assert!(!lines("h3.example").iter().any(|it| it.contains("connection")));
        Ok(())
    });
}
