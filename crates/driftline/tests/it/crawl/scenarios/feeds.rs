//! Feeds and the articles they announce: ManifoldCF's numbers, and what a feed hands its
//! articles when that is added, changed or taken away.

use super::super::Home;
use super::{ends_well, listed, told, work};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const FEEDS: usize = 10;
const ITEMS: usize = 10;

/// The titles that a feed gives its articles; without one it does not announce it.
pub(super) type Titles = Arc<Mutex<BTreeMap<(usize, usize), String>>>;

fn feeds() -> (Served, Titles) {
    feeds_after(|| ())
}

/// The same, with something that happens before every answer.
pub(super) fn feeds_after(first: impl Fn() + Send + Sync + 'static) -> (Served, Titles) {
    let site = Site::with_pages(1).serve();
    let all = (0..FEEDS).flat_map(|feed| (0..ITEMS).map(move |item| (feed, item)));
    let titles: BTreeMap<(usize, usize), String> =
        all.map(|(feed, item)| ((feed, item), format!("Title {feed} {item}"))).collect();
    let titles = Arc::new(Mutex::new(titles));
    let told = titles.clone();
    site.intercept(move |request| {
        first();
        let numbers: Vec<usize> =
            request.path.split(['/', '.']).filter_map(|it| it.parse().ok()).collect();
        match numbers[..] {
            [feed] => {
                let titles = told.lock().unwrap();
                let items: String = titles
                    .range((feed, 0)..(feed + 1, 0))
                    .map(|((feed, item), title)| {
                        format!(
                            "<item><title>{title}</title><link>/article/{feed}/{item}</link>\
                             <pubDate>Mon, 06 Sep 2021 16:45:00 GMT</pubDate></item>"
                        )
                    })
                    .collect();
                let rss = format!("<rss version=\"2.0\"><channel>{items}</channel></rss>");
                Some(Answer::of("application/rss+xml", rss))
            }
            [feed, item] => {
                let links = "<a href=\"/elsewhere\">not followed</a>";
                let page = format!("<p>Article {item} of feed {feed}.</p>{links}");
                Some(Answer::html(page).etag(&format!("{feed}-{item}")))
            }
            _ => None,
        }
    });
    (site, titles)
}

fn origin(site: &Served) -> String {
    site.seed().rsplit_once("/p").map_or_else(|| site.seed(), |it| it.0.to_owned())
}

pub(super) fn make(home: &Home, site: &Served) {
    told(home, &["init"]);
    told(home, &["connection", "create", "news", "--connector", "feed"]);
    told(home, &["connection", "create", "sink", "--connector", "null"]);
    let seeds: Vec<String> =
        (0..FEEDS).map(|feed| format!("seeds={}/feed/{feed}.xml", origin(site))).collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let create = ["job", "create", "news", "--connection", "news", "--pipeline", "sink"];
    let settings = ["allow_private=yes", "delay_ms=0", "robots=none"];
    told(home, &[&create[..], &settings, &seeds].concat());
}

#[track_caller]
fn run(home: &Home) -> i64 {
    told(home, &["job", "start", "news"]);
    ends_well(work(home, &["--node", "a"]));
    let line = listed(home).unwrap();
    assert_eq!((&line["word"], &line["failed"]), (&"done".into(), &0.into()), "{line}");
    home.verify();
    line["processed"].as_i64().unwrap()
}

const HANDED: &str = "SELECT COUNT(*) FROM carrydown";
const UPDATED: &str = "SELECT COUNT(*) FROM documents WHERE changes > 0";

fn ten_feeds_have_a_hundred_articles_and_hand_them_what_they_say_of_them(home: Home) {
    let (site, titles) = feeds();
    make(&home, &site);
    assert_eq!(run(&home), 110);
    let articles = "SELECT COUNT(*) FROM ingeststatus WHERE docuri LIKE '%/article/%'";
    assert_eq!(home.number(articles), 100, "feeds are no documents themselves");
    assert_eq!(home.number("SELECT COUNT(*) FROM ingeststatus"), 100);
    assert_eq!(home.number(HANDED), 300, "title, date and source");
    site.take_traffic();
    assert_eq!(run(&home), 110);
    assert_eq!(home.number(UPDATED), 0, "nothing has changed");
    let asked = site.take_traffic();
    assert_eq!(asked.with_status(304), 100, "articles are asked for conditionally");

    titles.lock().unwrap().insert((3, 4), "Another title".to_owned());
    assert_eq!(run(&home), 110);
    // The feed has changed, and the article that it tells something else of.
    assert_eq!(home.number(UPDATED), 2);
    assert_eq!(home.number(HANDED), 300);
    let changed = "SELECT COUNT(*) FROM ingeststatus WHERE changecount = 2";
    assert_eq!(home.number(changed), 1);

    // Two feeds announce one article; when one of them stops, it has fewer values.
    let moved = titles.lock().unwrap().remove(&(7, 7)).unwrap();
    assert!(!moved.is_empty());
    assert_eq!(run(&home), 109, "nothing announces it any more");
    assert_eq!(home.number(HANDED), 297);
}

#[test]
fn ten_feeds_have_a_hundred_articles_and_hand_them_what_they_say_of_them_on_sqlite() {
    ten_feeds_have_a_hundred_articles_and_hand_them_what_they_say_of_them(Home::directory());
}

#[test]
fn ten_feeds_have_a_hundred_articles_and_hand_them_what_they_say_of_them_on_postgres() {
    let Some(home) = Home::database() else { return };
    ten_feeds_have_a_hundred_articles_and_hand_them_what_they_say_of_them(home);
}
