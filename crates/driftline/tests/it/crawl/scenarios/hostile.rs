//! Feeds that are made to hurt, in one crawl with a good one: none of them stops it, and
//! none makes more work than its bytes.

use super::super::Home;
use super::{ends_well, listed, told, work};
use crate::site::Site;
use driftline::loopback_web::Answer;

/// Announcements of one and the same article.
const REPEATS: usize = 30_000;
const DEPTH: usize = 70_000;
const LONG_BYTES: usize = 4 << 20;

fn rss(inside: &str) -> Vec<u8> {
    format!("<rss version=\"2.0\"><channel>{inside}</channel></rss>").into_bytes()
}

fn item(title: &str, link: &str) -> String {
    format!("<item><title>{title}</title><link>{link}</link></item>")
}

/// Feeds by name, each announcing at most one article of its own.
fn feeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut bomb = "<!DOCTYPE rss [<!ENTITY l0 \"lol\">".to_owned();
    for level in 1..30 {
        let below = format!("&l{};", level - 1).repeat(10);
        bomb.push_str(&format!("<!ENTITY l{level} \"{below}\">"));
    }
    let bomb = bomb + "]>" + &String::from_utf8(rss(&item("&l29;", "/article/bomb"))).unwrap();
    let mut broken = rss(&item("TITLE", "/article/broken"));
    let at = broken.windows(5).position(|it| it == b"TITLE").unwrap();
    broken.splice(at..at + 5, [0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]);
    let deep = item(&format!("{}deep", "<b>".repeat(DEPTH)), "/article/deep");
    let json = "{\"version\": \"https://jsonfeed.org/version/1\", \"items\": ".to_owned();
    let file = "<!DOCTYPE rss [<!ENTITY x SYSTEM \"file:///etc/hostname\">]>".as_bytes();
    vec![
        ("good", rss(&item("Good", "/article/good"))),
        ("repeated", rss(&item("Again", "/article/repeated").repeat(REPEATS))),
        ("long", rss(&item(&"x".repeat(LONG_BYTES), "/article/long"))),
        ("deep", rss(&deep)),
        ("bomb", bomb.into_bytes()),
        ("file", [file, &rss(&item("&x;", "/article/file"))].concat()),
        ("broken", broken),
        ("cut", rss(&item("Cut", "/article/cut"))[..60].to_vec()),
        ("nul", rss(&item("a\0b", "/article/nul\0"))),
        ("json", (json + &"[".repeat(DEPTH)).into_bytes()),
        ("itself", rss(&item("Itself", "/feed/itself"))),
    ]
}

#[test]
fn feeds_that_are_made_to_hurt_stop_nothing_and_make_no_more_work_than_they_are() {
    let (home, site) = (Home::directory(), Site::with_pages(1).serve());
    site.intercept(|request| {
        if let Some(name) = request.path.strip_prefix("/feed/") {
            let found = feeds().into_iter().find(|it| it.0 == name);
            return found.map(|it| Answer::of("application/rss+xml", it.1));
        }
        request.path.starts_with("/article/").then(|| Answer::html("<p>An article.</p>"))
    });
    told(&home, &["init"]);
    told(&home, &["connection", "create", "news", "--connector", "feed"]);
    let origin = site.seed().rsplit_once("/p").map(|it| it.0.to_owned()).unwrap();
    let seeds: Vec<String> =
        feeds().iter().map(|(name, _)| format!("seeds={origin}/feed/{name}")).collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let create = ["job", "create", "news", "--connection", "news"];
    let settings = ["allow_private=yes", "delay_ms=0", "robots=none"];
    told(&home, &[&create[..], &settings, &seeds].concat());
    told(&home, &["job", "start", "news"]);
    ends_well(work(&home, &["--node", "a"]));
    let line = listed(&home).unwrap();
    assert_eq!((&line["word"], &line["failed"]), (&"done".into(), &0.into()), "{line}");
    home.verify();
    let articles = home.texts("SELECT docid FROM queue WHERE docid LIKE '%/article/%'");
    let has = |name: &str| articles.contains(&format!("{origin}/article/{name}"));
    let read = ["good", "repeated", "long", "bomb", "file", "broken"];
    assert!(read.iter().all(|name| has(name)), "{articles:?}");
    let asked = site.traffic().counts().values().sum::<usize>();
    assert!(asked <= 2 * feeds().len(), "{asked} requests");
    let titles = home.texts("SELECT datavalue FROM carrydowns WHERE dataname = 'title'");
    assert!(titles.contains("&x;") && titles.contains("&l29;"), "nothing is put in for entities");
}
