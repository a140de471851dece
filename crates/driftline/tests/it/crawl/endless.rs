//! Sites without end: a crawl comes to an end on its own, has every real page,
//! and says what it left.

use super::{Home, Running, Summary, text, until};
use crate::site::{ENDLESS_REAL, Site};
use driftline::loopback_web::Answer;

/// Pages fetched of a site that has 200 and traps without end.
const FETCHED_MAX: usize = 5_000;
/// Pages of it that a later run may try before its trust is used up again.
const LEAKED_MAX: u64 = 500;
/// When the crawl is interrupted: after some patterns have closed, before others have.
const INTERRUPTED: u64 = 600;

fn a_site_without_end_is_crawled_to_its_end(home: &Home) {
    let site = Site::endless().serve();
    let seed = site.seed();
    let running = Running::start(home.crawl(&[&seed, "--concurrency", "8"]));
    until(&site, "it is in the traps", || site.web().visits_count() > INTERRUPTED);
    running.signal("INT");
    assert_eq!(Summary::printed(&running.ended()).0["ended"], "stopped");
    let summary = home.crawled(&[&seed]);
    let traffic = site.take_traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new(), "of {ENDLESS_REAL} real pages");
    let by_step = traffic.by_first_step();
    let fetched: usize = by_step.values().sum();
    assert!(fetched <= FETCHED_MAX, "{fetched}: {by_step:?}");
    assert!(traffic.repeats().is_empty());

    let endless = summary.0["endless"].as_array().unwrap();
    let patterns: Vec<&str> = endless.iter().filter_map(|it| it["pattern"].as_str()).collect();
    let named = |step: &str| patterns.iter().any(|pattern| pattern.contains(step));
    assert!(named("/shop?f#") && named("/calendar/#/#"), "{patterns:?}");
    home.verify();
    what_was_left_is_told(home, &site.page_url(0));

    // Another process knows it too: what a good page names of the trap is left as well.
    site.intercept(|request| {
        let links = (0..8).map(|n| format!("<a href=\"/shop?f{n}=new\">more</a> "));
        (request.path == "/p/0").then(|| Answer::html(links.collect::<String>()).etag("new"))
    });
    let again = home.crawled(&[&seed]);
    assert!(again.count("/did/added") <= LEAKED_MAX, "{again:?}");
    assert_eq!(again.count("/did/updated"), 1, "{again:?}");
    let asked = site.traffic().counts();
    assert!(!asked.keys().any(|place| place.contains("=new")), "{asked:?}");
}

/// `why`, `hosts` and `status` name the trap.
fn what_was_left_is_told(home: &Home, seed: &str) {
    let left = home.texts(
        "SELECT docid FROM queue WHERE state = 'cut' AND reason = 'budget' ORDER BY id LIMIT 1",
    );
    let left = left.first().unwrap();
    let said = |args: &[&str]| text(&home.command(args).output().unwrap().stdout);
    let why = said(&["why", left]);
    assert!(why.contains("it looks like a crawler trap") && why.contains("pages like"), "{why}");
    let host = seed.trim_start_matches("http://").split('/').next().unwrap();
    for told in [said(&["hosts", host]), said(&["status"])] {
        assert!(told.contains("no longer followed: it looks like a crawler trap"), "{told}");
    }
}

#[test]
fn a_site_without_end_is_crawled_to_its_end_on_sqlite() {
    a_site_without_end_is_crawled_to_its_end(&Home::directory());
}

#[test]
fn a_site_without_end_is_crawled_to_its_end_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_site_without_end_is_crawled_to_its_end(&home);
}

/// Somebody who knows better than what was counted.
fn what_was_closed_is_followed_again_when_it_is_reopened(home: &Home) {
    let site = Site::with_pages(20).serve();
    let seed = site.seed();
    home.crawled(&[&seed, "--max-hops", "0"]);
    let close = "INSERT INTO traps (part, jobid, bin, pattern, documents, stale, deep, suspects,
                                    recent_stale, recent_alike, rule, closed_ms)
                 SELECT part, jobid, bin, $1, 600, 600, 0, 0, 1000000, 1000000, 'stale', 1
                 FROM queue WHERE state = 'done' LIMIT 1";
    let pattern = format!("127.0.0.1:{}/p/#", site.web().port());
    home.rows().write(move |tx| tx.execute(close, &[(&pattern).into()])).unwrap();
    let closed = home.crawled(&[&seed, "--max-hops", "none"]);
    assert_eq!((closed.count("/did/added"), closed.count("/documents/cut")), (0, 7), "{closed:?}");
    let open = home.crawled(&[&seed, "--reopen"]);
    assert_eq!((open.count("/did/added"), open.count("/documents/cut")), (19, 0), "{open:?}");
    assert_eq!(open.0["endless"].as_array().unwrap().len(), 0);
}

#[test]
fn what_was_closed_is_followed_again_when_it_is_reopened_on_sqlite() {
    what_was_closed_is_followed_again_when_it_is_reopened(&Home::directory());
}

#[test]
fn what_was_closed_is_followed_again_when_it_is_reopened_on_postgres() {
    let Some(home) = Home::database() else { return };
    what_was_closed_is_followed_again_when_it_is_reopened(&home);
}

/// Pages of a host that nobody links to, as far as its test allows them.
const HOST_PAGES: u64 = 20;
/// A link from another host allows so many more.
const PAGES_PER_LINK: u64 = 100;
/// Requests that are under way when the last page is counted.
const UNDER_WAY: u64 = 64;

/// A page of words that no other page has, and two links.
fn random_page(path: &str) -> Option<Answer> {
    let number: u64 = path.strip_prefix("/r/")?.parse().ok()?;
    let words: String = (0..80)
        .map(|at| format!("w{:x} ", (number * 80 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let links = [1, 2].map(|next| format!("<a href=\"/r/{}\">more</a> ", 2 * number + next));
    Some(Answer::html(format!("<p>{words}</p>{}", links.concat())))
}

#[test]
fn random_text_without_end_on_a_host_that_nobody_links_to_ends_and_why_names_the_setting() {
    let (home, site) = (Home::directory(), Site::with_pages(2).hosts(2).serve());
    let host = "127.0.0.2";
    let link = format!("<a href=\"{}\">there</a>", site.web().url(host, "/r/0"));
    site.intercept(move |request| match request.path.as_str() {
        "/p/0" => Some(Answer::html(link.clone())),
        path => random_page(path).filter(|_| request.host == host),
    });
    let most = HOST_PAGES.to_string();
    let summary = home.crawled(&[&site.seed(), "--scope", "any", "--host-pages", &most]);
    let allowed = HOST_PAGES + PAGES_PER_LINK;
    let fetched = site.web().visits_count();
    assert!((allowed..allowed + UNDER_WAY).contains(&fetched), "{fetched}: {summary:?}");
    let rules: Vec<&str> = summary.0["endless"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["rule"].as_str())
        .collect();
    assert_eq!(rules, ["unlinked"], "{summary:?}");
    let left = home.texts("SELECT docid FROM queue WHERE state = 'cut' AND reason = 'budget'");
    let said = |args: &[&str]| text(&home.command(args).output().unwrap().stdout);
    let why = said(&["why", left.first().unwrap()]);
    assert!(why.contains("no seed is at this host") && why.contains("--host-pages"), "{why}");
    let told = said(&["hosts", host]);
    assert!(told.contains("link to it 1 times"), "{told}");

    let more = (HOST_PAGES + 50).to_string();
    home.crawled(&[&site.seed(), "--host-pages", &more]);
    let done = home.number("SELECT COUNT(*) FROM queue WHERE state = 'done'");
    assert!(done.unsigned_abs() >= allowed + 50, "{done} after {fetched}");
    home.verify();
}

#[test]
fn indexes_of_sitemaps_that_name_each_other_without_end_leave_the_pages_their_turn() {
    let (home, site) = (Home::directory(), Site::with_pages(30).serve());
    let origin = site.seed().rsplit_once("/p").map(|it| it.0.to_owned()).unwrap();
    let robots = format!("Sitemap: {origin}/map/a\n");
    site.intercept(move |request| {
        if request.path == "/robots.txt" {
            return Some(Answer::text(robots.as_str()));
        }
        let name = request.path.strip_prefix("/map/")?;
        let lists =
            (0..10).map(|it| format!("<sitemap><loc>{origin}/map/{name}{it}</loc></sitemap>"));
        let index = format!("<sitemapindex>{}</sitemapindex>", lists.collect::<String>());
        Some(Answer::of("application/xml", index))
    });
    let summary = home.crawled(&[&site.seed()]);
    let traffic = site.take_traffic();
    assert_eq!(site.unfetched(&traffic), Vec::<String>::new());
    let asked = traffic.by_first_step();
    assert_eq!(asked.get("map"), Some(&1_111), "{asked:?}");
    let endless = summary.0["endless"].to_string();
    assert!(endless.contains("list-depth") && endless.contains("10000 lists"), "{endless}");
    let left = home.texts("SELECT docid FROM queue WHERE reason = 'budget' LIMIT 1");
    let why = text(&home.command(&["why", left.first().unwrap()]).output().unwrap().stdout);
    assert!(why.contains("more than 3 deep"), "{why}");
    home.verify();
}
