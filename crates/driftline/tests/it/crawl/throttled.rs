//! The three throttles, seen by those who are asked: rates, connections and bytes.

use std::time::Duration;

use serde_json::Value as Json;

use super::{Home, Running, text, until, words};
use crate::site::{Served, Site, Traffic};
use driftline::loopback_web::Answer;

/// Runs a verb that must succeed, and gives what it said.
fn told(home: &Home, args: &[&str]) -> String {
    let output = home.command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// A home whose web connection has these flags.
fn with_connection(home: Home, flags: &[&str]) -> Home {
    told(&home, &["init"]);
    told(&home, &[&["connection", "create", "web", "--connector", "web"], flags].concat());
    home
}

fn visits_of<'a>(traffic: &'a Traffic, host: &'a str) -> Vec<&'a driftline::loopback_web::Visit> {
    let mut visits: Vec<_> = traffic
        .visits()
        .iter()
        .filter(|visit| visit.host == host && visit.path != "/robots.txt")
        .collect();
    visits.sort_by_key(|visit| visit.began);
    visits
}

/// From the first visit to the last.
fn took(traffic: &Traffic, host: &str) -> (usize, Duration) {
    let visits = visits_of(traffic, host);
    let (first, last) = (visits.first().unwrap(), visits.last().unwrap());
    (visits.len(), last.began - first.began)
}

/// The most visits that were under way at once.
fn most_at_once(traffic: &Traffic, is_meant: impl Fn(&str) -> bool) -> usize {
    let meant: Vec<_> = traffic.visits().iter().filter(|visit| is_meant(&visit.host)).collect();
    let at = |time: Duration| meant.iter().filter(|it| it.began <= time && time < it.ended).count();
    meant.iter().map(|visit| at(visit.began)).max().unwrap_or(0)
}

fn a_host_is_asked_at_its_rate_and_the_others_do_not_wait(home: Home) {
    let home = with_connection(home, &["--throttle", r"^127\.0\.0\.2$=5/s"]);
    let site = Site::with_pages(36).hosts(3).serve();
    home.crawled(&words(&site.seeds(), &["--scope", "any"]));
    let traffic = site.take_traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    let (count, slow) = took(&traffic, "127.0.0.2");
    // The first may have been delayed on its way.
    let least = Duration::from_millis(200) * (count as u32 - 2);
    assert!(slow >= least, "{count} pages took {slow:?}");
    for host in ["127.0.0.1", "127.0.0.3"] {
        let (others, fast) = took(&traffic, host);
        assert!(others >= 12 && fast < slow / 2, "{host}: {others} pages in {fast:?}");
    }
}

#[test]
fn a_host_is_asked_at_its_rate_and_the_others_do_not_wait_on_sqlite() {
    a_host_is_asked_at_its_rate_and_the_others_do_not_wait(Home::directory());
}

#[test]
fn a_host_is_asked_at_its_rate_and_the_others_do_not_wait_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_host_is_asked_at_its_rate_and_the_others_do_not_wait(home);
}

fn why(home: &Home, url: &str) -> Json {
    let output = home.command(&["why", "--json", url]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// A run does not wait for what may never start; the next one looks again.
#[test]
fn a_host_that_is_stopped_is_left_out_until_the_throttle_is_taken_back() {
    let home = with_connection(Home::directory(), &["--throttle", r"^127\.0\.0\.2$=0/min"]);
    let site = Site::with_pages(20).hosts(2).serve();
    let seeds = site.seeds();
    let args = words(&seeds, &["--scope", "any"]);
    let first = Running::start(home.crawl(&args)).ended();
    assert!(first.status.code().is_some_and(|code| code < 2), "{}", text(&first.stderr));
    let traffic = site.take_traffic();
    assert_eq!(visits_of(&traffic, "127.0.0.2").len(), 0);
    assert!(visits_of(&traffic, "127.0.0.1").len() >= 10);
    let url = site.page_urls().into_iter().find(|url| url.contains("127.0.0.2")).unwrap();
    let failed = told(&home, &["job", "failed", "site"]);
    assert!(failed.contains("throttled") && failed.contains("allows no documents"), "{failed}");
    assert!(!failed.contains("blocked after errors"), "nobody was in trouble: {failed}");
    let said = why(&home, &url).to_string();
    for word in ["throttled", "connection web", "connection edit web --throttle"] {
        assert!(said.contains(word), "{word} is not in {said}");
    }
    let host = told(&home, &["hosts", "127.0.0.2"]);
    assert!(host.contains("connection web: blocked by throttle"), "{host}");

    told(&home, &["connection", "edit", "web", "--throttle", r"^127\.0\.0\.2$="]);
    home.crawled(&args);
    assert_eq!(site.unfetched(&site.take_traffic()), Vec::<String>::new());
    home.verify();
}

/// Of a rate of one in an hour only the change lets the crawl end.
fn a_throttle_that_changes_is_noticed_by_those_who_work(home: Home) {
    let home = with_connection(home, &["--throttle", "=1/h"]);
    let site = Site::with_pages(30).serve();
    let crawl = Running::start(home.crawl(&[&site.seed()]));
    let of_pages = |site: &Served| visits_of(&site.traffic(), "127.0.0.1").len();
    until(&site, "the first page has been asked for", || of_pages(&site) >= 1);
    told(&home, &["connection", "edit", "web", "--throttle", "="]);
    let ended = crawl.ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(site.unfetched(&site.take_traffic()), Vec::<String>::new());
}

#[test]
fn a_throttle_that_changes_is_noticed_by_those_who_work_on_sqlite() {
    a_throttle_that_changes_is_noticed_by_those_who_work(Home::directory());
}

#[test]
fn a_throttle_that_changes_is_noticed_by_those_who_work_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_throttle_that_changes_is_noticed_by_those_who_work(home);
}

#[test]
fn requests_to_a_host_and_of_a_connection_are_no_more_at_once_than_allowed() {
    let flags = ["--throttle", r"\.2$=conns=2", "--max-connections", "5"];
    let home = with_connection(Home::directory(), &flags);
    let site = Site::with_pages(60).hosts(4).answering_after(Duration::from_millis(40)).serve();
    home.crawled(&words(&site.seeds(), &["--scope", "any", "--concurrency", "32"]));
    let traffic = site.take_traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    let of_host = most_at_once(&traffic, |host| host == "127.0.0.2");
    let of_all = most_at_once(&traffic, |_| true);
    assert!(of_host <= 2 && of_all <= 5, "{of_host} at the host, {of_all} in all");
    assert!(of_all >= 3, "the limits are used: {of_all}");
}

#[test]
fn bytes_of_a_host_come_no_faster_than_allowed() {
    let home = with_connection(Home::directory(), &["--throttle", "=kb=100"]);
    let site = Site::with_pages(1).serve();
    site.intercept(|request| {
        let number: u32 = request.path.strip_prefix("/p/")?.parse().ok()?;
        let links: String = (1..8).map(|to| format!("<a href=\"/p/{to}\">{to}</a>")).collect();
        let filling = format!("number {number} ").repeat(3_000);
        Some(Answer::html(format!("<p>{links}{filling}")))
    });
    home.crawled(&[&site.seed()]);
    assert_eq!(visits_of(&site.take_traffic(), "127.0.0.1").len(), 8);
    // Eight pages of 27 kB; what was read last is not paid for by anybody.
    let took_ms = home.number("SELECT ended_ms - started_ms FROM runs");
    assert!(took_ms >= 1_500, "eight pages took {took_ms} ms");
}

/// Files have one bin, which lies in all parts.
#[test]
fn files_are_looked_at_no_faster_than_allowed() {
    let home = Home::directory();
    told(&home, &["init"]);
    let root = home.folder.path().join("tree");
    std::fs::create_dir_all(&root).unwrap();
    for number in 0..7 {
        std::fs::write(root.join(format!("{number}.txt")), "a file").unwrap();
    }
    let root = root.display().to_string();
    let connection = ["connection", "create", "disk", "--connector", "files"];
    let flags = ["--kind", "repository", "--throttle", "=10/s"];
    told(&home, &[&connection[..], &flags].concat());
    let roots = format!("roots={root}");
    told(&home, &["job", "create", "docs", "--connection", "disk", &roots]);
    told(&home, &["job", "start", "docs"]);
    let ended = Running::start(home.command(&["work", "--until-idle", "--lease", "1"])).ended();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert_eq!(home.number("SELECT COUNT(*) FROM queue WHERE state = 'done'"), 8);
    let took_ms = home.number("SELECT MAX(checked_ms) - MIN(checked_ms) FROM documents");
    assert!(took_ms >= 500, "seven files in {took_ms} ms");
}

#[test]
fn many_hosts_at_one_address_are_asked_no_faster_than_the_address_may_be() {
    let names: Vec<String> = (0..12).map(|number| format!("h{number}.flood.example")).collect();
    let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    let (home, site) = (Home::directory(), Site::with_pages(24).named(&hosts).serve());
    let resolved: Vec<String> = names.iter().map(|name| format!("{name}=127.0.0.1")).collect();
    let seed = site.seed();
    let mut args = vec![&*seed, "--delay", "0.06", "--address-rate", "20", "--scope", "domain"];
    args.extend(resolved.iter().flat_map(|it| ["--resolve", it.as_str()]));
    home.crawled(&args);
    let traffic = site.traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    let mut begun: Vec<Duration> = traffic.visits().iter().map(|visit| visit.began).collect();
    begun.sort();
    // Each host by itself may be asked 16 times a second.
    let least = Duration::from_millis(50) * (u32::try_from(begun.len()).unwrap() - 1);
    let took = *begun.last().unwrap() - begun[0];
    assert!(took >= least * 9 / 10, "{} requests in {took:?}", begun.len());
}

#[test]
fn a_job_that_does_what_its_connection_forbids_is_refused_and_so_is_its_run() {
    let (home, site) = (Home::directory(), Site::with_pages(2).serve());
    let seed = site.seed();
    home.crawled(&[&seed]);
    // What was allowed before is forbidden from now on.
    told(&home, &["connection", "edit", "web", "--kind", "repository", "forbid=allow_private"]);
    let visits = site.web().visits_count();
    let again = home.crawl(&[&seed]).output().unwrap();
    let said = format!("{}{}", text(&again.stdout), text(&again.stderr));
    assert!(!again.status.success(), "{said}");
    assert!(said.contains("forbids its jobs to reach private addresses"), "{said}");
    let other = ["job", "create", "b", "--connection", "web", "seeds=http://a.example/"];
    told(&home, &other);
    let edit = home.command(&["job", "edit", "b", "allow_private=yes"]).output().unwrap();
    assert_eq!(edit.status.code(), Some(2), "{}", text(&edit.stderr));
    let forbids = ["connection", "edit", "web", "--kind", "repository", "forbid=ignore_robots"];
    told(&home, &forbids);
    let edit = home.command(&["job", "edit", "b", "robots=none"]).output().unwrap();
    let said = text(&edit.stderr);
    assert_eq!(edit.status.code(), Some(2), "{said}");
    assert!(said.contains("robots"), "{said}");
    assert_eq!(site.web().visits_count(), visits, "nobody was asked");
}
