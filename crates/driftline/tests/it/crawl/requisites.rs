//! What pages need to be shown: fetched beyond the scope, found by nobody, and of the same role
//! after any number of runs as after the first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::{Home, Summary, text};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;

/// Where most of what pages need is; they are at 127.0.0.1.
const CDN: &str = "127.0.0.2";

/// A small web of two hosts: what is at `host/path`, with its media type.
struct Web {
    site: Served,
    files: Arc<Mutex<BTreeMap<String, (&'static str, String)>>>,
}

impl Web {
    fn new(files: &[(&str, &'static str, &str)]) -> Web {
        let site = Site::with_pages(1).hosts(2).serve();
        let held: Arc<Mutex<BTreeMap<String, (&'static str, String)>>> = Arc::default();
        let served = held.clone();
        site.intercept(move |request| {
            if request.path == "/robots.txt" {
                return Some(Answer::text("User-agent: *\nDisallow: /private/\n"));
            }
            let files = served.lock().unwrap();
            let found = files.get(&format!("{}{}", request.host, request.path));
            let Some((media_type, body)) = found else { return Some(Answer::status(404)) };
            let body = body.replace("CDN", &format!("http://{CDN}:{}", request.port()));
            Some(
                Answer::of(media_type, body.clone())
                    .etag(&format!("{}", blake3::hash(body.as_bytes()))),
            )
        });
        let web = Web { site, files: held };
        files.iter().for_each(|(place, media_type, body)| web.set(place, media_type, body));
        web
    }

    fn set(&self, place: &str, media_type: &'static str, body: &str) {
        self.files.lock().unwrap().insert(place.to_owned(), (media_type, body.to_owned()));
    }

    fn remove(&self, place: &str) {
        self.files.lock().unwrap().remove(place);
    }

    fn crawl(&self, home: &Home) -> Summary {
        let start = self.site.seed().replace("/p/0", "/start");
        let summary = home.crawled(&[&start, "--requisites", "--retries", "0", "--max-hops", "3"]);
        home.verify();
        home.verify_links();
        home.verify_search();
        summary
    }

    /// What is there, by its role.
    fn roles(&self, home: &Home) -> BTreeMap<String, &'static str> {
        let port = format!(":{}", self.site.web().port());
        let sql = "SELECT docid, requisite FROM documents
                   WHERE removed_ms IS NULL AND chunk IS NOT NULL ORDER BY docid";
        let rows: Vec<(String, bool)> = home
            .rows()
            .read(move |tx| tx.query(sql, &[], |row| Ok((row.get(0)?, row.get(1)?))))
            .unwrap();
        let role = |is_requisite| if is_requisite { "requisite" } else { "page" };
        rows.into_iter()
            .map(|(docid, it)| (docid.replace("http://", "").replace(&port, ""), role(it)))
            .collect()
    }
}

const START: &str = "<title>start</title><link rel=stylesheet href=CDN/style.css>
    <img src=/logo.png srcset='/logo2.png 2x'><img src=CDN/fleeting.png>
    <img src=CDN/private/secret.png><a href=/pic.png><img src=/pic.png></a> <a href=/two>two</a>";
const TWO: &str = "<title>two</title><link rel=stylesheet href=CDN/style.css>
    <object data=/both></object> words";
const BOTH: &str = "<title>both</title><a href=/leaf>leaf</a><img src=CDN/inner.png>";

fn web() -> Web {
    let image = |place| (place, "image/png", place);
    Web::new(&[
        ("127.0.0.1/start", "text/html", START),
        ("127.0.0.1/two", "text/html", TWO),
        ("127.0.0.1/both", "text/html", BOTH),
        ("127.0.0.1/leaf", "text/html", "<title>leaf</title>words of a leaf"),
        ("127.0.0.2/style.css", "text/css", "@import 'more.css'; body { background: url(bg.png) }"),
        ("127.0.0.2/more.css", "text/css", "@font-face { src: url(font.woff2) }"),
        ("127.0.0.2/font.woff2", "font/woff2", "a font"),
        image("127.0.0.1/logo.png"),
        image("127.0.0.1/logo2.png"),
        image("127.0.0.1/pic.png"),
        image("127.0.0.2/bg.png"),
        image("127.0.0.2/fleeting.png"),
        image("127.0.0.2/inner.png"),
        image("127.0.0.2/private/secret.png"),
    ])
}

fn map(all: &[(&str, &'static str)]) -> BTreeMap<String, &'static str> {
    all.iter().map(|(place, role)| ((*place).to_owned(), *role)).collect()
}

fn first() -> BTreeMap<String, &'static str> {
    map(&[
        ("127.0.0.1/both", "requisite"),
        ("127.0.0.1/logo.png", "requisite"),
        ("127.0.0.1/logo2.png", "requisite"),
        ("127.0.0.1/pic.png", "page"),
        ("127.0.0.1/start", "page"),
        ("127.0.0.1/two", "page"),
        ("127.0.0.2/bg.png", "requisite"),
        ("127.0.0.2/fleeting.png", "requisite"),
        ("127.0.0.2/font.woff2", "requisite"),
        ("127.0.0.2/inner.png", "requisite"),
        ("127.0.0.2/more.css", "requisite"),
        ("127.0.0.2/style.css", "requisite"),
    ])
}

/// The same roles after another run as after a first one, whatever has changed meanwhile.
fn runs_come_to_what_a_first_one_comes_to(home: Home, fresh: impl Fn() -> Home) {
    let web = web();
    web.crawl(&home);
    assert_eq!(web.roles(&home), first());
    let asked = web.site.take_traffic().counts();
    assert!(!asked.keys().any(|it| it.contains("secret")), "robots.txt holds: {asked:?}");
    assert!(!asked.keys().any(|it| it.contains("leaf")), "a requisite leads nowhere: {asked:?}");

    let again = web.crawl(&home);
    assert_eq!((again.changes()[0], again.changes()[1], again.changes()[3]), (0, 0, 0));
    assert_eq!(web.roles(&home), first(), "nothing has changed");

    // A link goes and one comes; a file is gone, and an import.
    web.set("127.0.0.1/start", "text/html", &START.replace("<a href=/pic.png>", "<a>"));
    web.set("127.0.0.1/two", "text/html", &format!("{TWO}<a href=/both>both</a>"));
    web.set("127.0.0.2/style.css", "text/css", "body { background: url(bg.png) }");
    web.remove("127.0.0.2/fleeting.png");
    web.crawl(&home);
    let mut changed = first();
    for place in ["127.0.0.2/fleeting.png", "127.0.0.2/font.woff2", "127.0.0.2/more.css"] {
        changed.remove(place);
    }
    changed.insert("127.0.0.1/pic.png".to_owned(), "requisite");
    changed.insert("127.0.0.1/both".to_owned(), "page");
    changed.insert("127.0.0.1/leaf".to_owned(), "page");
    assert_eq!(web.roles(&home), changed);
    let anew = fresh();
    web.crawl(&anew);
    assert_eq!(web.roles(&anew), changed, "as from scratch");

    // And back again.
    web.set("127.0.0.1/start", "text/html", START);
    web.set("127.0.0.1/two", "text/html", TWO);
    web.crawl(&home);
    changed.insert("127.0.0.1/pic.png".to_owned(), "page");
    changed.insert("127.0.0.1/both".to_owned(), "requisite");
    changed.remove("127.0.0.1/leaf");
    assert_eq!(web.roles(&home), changed);
    let anew = fresh();
    web.crawl(&anew);
    assert_eq!(web.roles(&anew), changed, "as from scratch");
}

#[test]
fn runs_come_to_what_a_first_one_comes_to_on_sqlite() {
    runs_come_to_what_a_first_one_comes_to(Home::directory(), Home::directory);
}

#[test]
fn runs_come_to_what_a_first_one_comes_to_on_postgres() {
    let Some(home) = Home::database() else { return };
    runs_come_to_what_a_first_one_comes_to(home, || Home::database().expect("there was one"));
}

#[test]
fn a_requisite_is_found_by_nobody_and_shown_as_what_it_is() {
    let (web, home) = (web(), Home::directory());
    let start = web.site.seed().replace("/p/0", "/start");
    let summary = home.crawled(&[&start, "--requisites", "--retries", "0", "--max-pages", "3"]);
    assert_eq!(summary.changes()[0], 12, "the limit of pages counts pages: {summary:?}");
    let says = |args: &[&str]| {
        let done = home.command(args).output().unwrap();
        format!("{}{}", text(&done.stdout), text(&done.stderr))
    };
    assert!(says(&["documents"]).contains("/style.css (requisite)"));
    let style = format!("http://{CDN}:{}/style.css", web.site.web().port());
    let why = says(&["why", &style]);
    assert!(why.contains("requisite") && why.contains("needed by"), "{why}");
    assert!(says(&["status"]).contains("9 requisites of pages"), "{}", says(&["status"]));
    assert!(says(&["search", "two"]).contains("/two"));
    let search = says(&["search", "both"]);
    assert!(!search.contains("/both"), "its title is not found: {search}");
    let told = "SELECT COUNT(*) FROM history WHERE activitytype = 'fetch'
                AND resultdesc = 'needed by pages'";
    assert_eq!(home.number(told), 9);

    let summary = home.crawled(&["--requisites=no"]);
    let removes = summary.count("/whole_run/totals/removes");
    assert_eq!(removes, 9, "a job that wants none any more loses them: {summary:?}");
    assert!(web.roles(&home).values().all(|role| *role == "page"), "{:?}", web.roles(&home));
    home.verify();
    let summary = home.crawled(&["--requisites", "--max-requisites", "2"]);
    assert_eq!(summary.changes()[0], 2, "{summary:?}");
    let cut = "SELECT COUNT(*) FROM queue WHERE requisite = 1 AND reason = 'budget'";
    assert!(home.number(cut) > 0);
    home.verify();
    let why = home.texts("SELECT docid FROM queue WHERE requisite = 1 AND reason = 'budget'");
    let why = says(&["why", why.first().unwrap()]);
    assert!(why.contains("--max-requisites 4"), "{why}");
}
