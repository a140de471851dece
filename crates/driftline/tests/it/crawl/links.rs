//! The link index beside a crawl: it follows, it answers meanwhile, and it is exact.

use super::{GLANCE, Home, PATIENCE, Running, text, words};
use crate::site::Site;
use driftline::loopback_web::Answer;
use serde_json::Value;

const PAGES: usize = 60;

/// The answer of a verb, as JSON.
#[track_caller]
fn asked(home: &Home, args: &[&str]) -> Value {
    let output = home.command(&[args, &["--json"]].concat()).output().unwrap();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(errors.is_empty(), "{errors}");
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn links_follow_what_a_crawl_finds(home: &Home) {
    let site = Site::with_pages(PAGES).hosts(3).serve();
    let seeds = site.seeds();
    let args = words(&seeds, &[]);
    home.crawled(&args);
    let first = home.verify_links();
    let page = site.page_url(5);
    let before = asked(home, &["links", &page]);
    assert_eq!(before["page"]["crawled"], true, "{before}");
    let incount = before["page"]["incount"].as_u64().unwrap();
    assert!(incount > 0, "{before}");
    assert_eq!(before["in"]["items"].as_array().unwrap().len() as u64, incount.min(25));
    assert!(before["out"]["items"].as_array().is_some_and(|it| !it.is_empty()), "{before}");
    let top = asked(home, &["top", "--limit", "1"]);
    assert!(top["items"][0]["incount"].as_u64().unwrap() >= incount, "{top}");
    let domains = asked(home, &["domains"]);
    let pages: u64 =
        domains["items"].as_array().unwrap().iter().map(|it| it["pages"].as_u64().unwrap()).sum();
    assert!(pages >= PAGES as u64, "{domains}");
    // A page that is gone takes its links with it, and whoever it linked to hears why.
    let source = before["in"]["items"][0]["url"].as_str().unwrap().to_owned();
    let gone: Vec<usize> = (0..PAGES).filter(|it| site.page_url(*it) == source).collect();
    site.remove(gone.clone());
    for _ in 0..3 {
        home.crawled(&args);
    }
    assert!(home.verify_links() < first);
    if gone.is_empty() {
        return;
    }
    let lost = asked(home, &["links", &page, "--lost"]);
    let reasons: Vec<&Value> =
        lost["lost"]["items"].as_array().unwrap().iter().map(|it| &it["reason"]).collect();
    assert!(reasons.contains(&&Value::from("page gone")), "{lost}");
}

#[test]
fn links_follow_what_a_crawl_finds_on_sqlite() {
    links_follow_what_a_crawl_finds(&Home::directory());
}

#[test]
fn links_follow_what_a_crawl_finds_on_postgres() {
    let Some(home) = Home::database() else { return };
    links_follow_what_a_crawl_finds(&home);
}

#[test]
fn links_are_answered_while_a_crawl_runs() {
    let home = Home::directory();
    let site = Site::with_pages(400).answering_after(GLANCE).serve();
    let seeds = site.seeds();
    let mut running = Running::start(home.crawl(&words(&seeds, &["--concurrency", "2"])));
    let began = std::time::Instant::now();
    loop {
        assert!(began.elapsed() < PATIENCE, "no link is visible");
        assert!(!running.has_ended(), "the crawl was over before a link was seen");
        let output = home.command(&["top", "--json", "--limit", "1"]).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if answer["items"][0]["incount"].as_u64() > Some(0) {
            break;
        }
        std::thread::park_timeout(GLANCE);
    }
    running.kill();
    // What was committed before the kill is in the index when somebody goes on.
    home.crawled(&words(&seeds, &["--concurrency", "16"]));
    assert!(home.verify_links() > 400);
}

/// What a page answers, as the link index tells it, and its out-links of a kind.
fn targets(home: &Home, page: &str, kind: &str) -> Vec<String> {
    let answer = asked(home, &["links", page, "--out", "--kind", kind]);
    let items = answer["out"]["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|it| it["url"].as_str().unwrap().to_owned()).collect()
}

fn redirects_and_missing_pages_are_in_the_link_index(home: &Home) {
    let site = Site::with_pages(12).redirects(4).missing(3).serve();
    let seeds = site.seeds();
    let args = words(&seeds, &[]);
    home.crawled(&args);
    home.verify_links();
    let redirects = home.texts("SELECT docid FROM documents WHERE outcome = 'redirect'");
    let missing = home.texts("SELECT docid FROM documents WHERE outcome = 'gone'");
    assert_eq!((redirects.len(), missing.len()), (4, 3));
    for page in &redirects {
        let answer = asked(home, &["links", page]);
        assert_eq!(answer["page"]["crawled"], true, "{answer}");
        let to = targets(home, page, "redirect");
        assert_eq!(to.len(), 1, "{answer}");
        let inward = asked(home, &["links", &to[0], "--in", "--kind", "redirect"]);
        let from: Vec<&Value> =
            inward["in"]["items"].as_array().unwrap().iter().map(|it| &it["url"]).collect();
        assert!(from.contains(&&Value::from(page.as_str())), "{page}: {inward}");
    }
    for page in &missing {
        let answer = asked(home, &["links", page]);
        assert_eq!(answer["page"]["gone"], "answered 404", "{answer}");
        let lines = text(&home.command(&["links", page]).output().unwrap().stdout);
        assert!(!lines.contains("1 in-link, not crawled"), "{lines}");
    }
    // Where nothing redirects any more, nothing is left of it.
    let (first, moved) =
        (redirects.first().unwrap().clone(), targets(home, redirects.first().unwrap(), "redirect"));
    site.intercept(|request| request.path_alone().starts_with("/r/").then(|| Answer::status(404)));
    home.crawled(&args);
    home.verify_links();
    home.verify();
    assert_eq!(asked(home, &["links", &first])["page"]["gone"], "answered 404");
    let lost = asked(home, &["links", &moved[0], "--lost", "--kind", "redirect"]);
    assert_eq!(lost["lost"]["items"][0]["reason"], "page gone", "{lost}");
}

#[test]
fn redirects_and_missing_pages_are_in_the_link_index_on_sqlite() {
    redirects_and_missing_pages_are_in_the_link_index(&Home::directory());
}

#[test]
fn redirects_and_missing_pages_are_in_the_link_index_on_postgres() {
    let Some(home) = Home::database() else { return };
    redirects_and_missing_pages_are_in_the_link_index(&home);
}

#[test]
fn a_deleted_job_leaves_no_redirect_behind() {
    let home = Home::directory();
    let site = Site::with_pages(6).redirects(3).serve();
    home.crawled(&words(&site.seeds(), &["--job", "site"]));
    assert!(home.verify_links() > 0);
    let deleted = home.command(&["job", "delete", "site", "--yes"]).output().unwrap();
    assert!(deleted.status.success(), "{}", text(&deleted.stderr));
    Running::start(home.command(&["work", "--until-idle", "--lease", "1"])).ended();
    let verified = asked(&home, &["links", "verify"]);
    assert_eq!((&verified["pages"], &verified["links"]), (&0.into(), &0.into()), "{verified}");
}

#[test]
fn a_full_comparison_of_the_link_index_finds_pages_that_were_not_crawled_so() {
    let home = Home::directory();
    let site = Site::with_pages(30).serve();
    home.crawled(&words(&site.seeds(), &[]));
    home.verify_links();
    // What the database says is another thing than what the index was told.
    home.rows()
        .write(|tx| {
            tx.execute("UPDATE documents SET removed_ms = 7 WHERE docid LIKE '%/7'", &[])?;
            tx.execute("UPDATE documents SET chunk = NULL WHERE docid LIKE '%/8'", &[])
        })
        .unwrap();
    let by_pages = home.command(&["links", "verify"]).output().unwrap();
    assert!(by_pages.status.success(), "the pages themselves agree");
    let output = home.command(&["links", "verify", "--full"]).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    let named = said.lines().filter(|it| it.ends_with("is a page of the index, but has no facts"));
    assert_eq!(named.count(), 2, "{said}");
}
