//! A site that wants to know who asks: by a form, with sessions that end, and by name and
//! password. ManifoldCF's number: a hundred pages behind a login, and the one that leads
//! to them.

use super::super::Home;
use super::{ends_well, listed, told, work};
use crate::site::{Served, Site};
use driftline::loopback_web::{Answer, Request};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const PAGES: usize = 100;
/// Pages that are had in the first session.
const SERVED_AT_FIRST: usize = 40;

/// What the site knows.
#[derive(Default)]
struct Door {
    /// Sessions that were begun.
    sessions: AtomicUsize,
    /// Pages that were had.
    served: AtomicUsize,
    /// Pages that may be had before the first session ends.
    ends_after: Option<usize>,
    /// Forms with wrong words in them.
    refused: AtomicUsize,
    /// Forms that were sent, as they came.
    forms: Mutex<Vec<String>>,
}

impl Door {
    fn knows(&self, request: &Request) -> bool {
        let newest = format!("sid={}", self.sessions.load(Ordering::SeqCst));
        let cookies = request.header("cookie").unwrap_or_default();
        newest != "sid=0" && cookies.split("; ").any(|cookie| cookie == newest)
    }

    fn answer(&self, request: &Request) -> Option<Answer> {
        let path = request.path_alone().to_owned();
        match (request.method.as_str(), path.as_str()) {
            ("GET", "/login") => Some(Answer::html(
                "<form name=search action=/search><input name=q></form>\
                 <form name=signin action=/session method=post>\
                 <input type=hidden name=token value=t-1><input name=user>\
                 <input type=password name=pass><input type=submit></form>",
            )),
            ("POST", "/session") => Some(self.begin(request)),
            ("GET", "/welcome") if self.knows(request) => {
                Some(Answer::html("<a href=/help>Help</a><a href=/docs/index>On to the pages</a>"))
            }
            ("GET", path) if path.starts_with("/docs/") => Some(self.page(request, path)),
            _ => None,
        }
    }

    fn begin(&self, request: &Request) -> Answer {
        let form = String::from_utf8_lossy(&request.body).into_owned();
        let is_right = form.contains("token=t-1") && form.contains("user=crawler&pass=s%26cret");
        self.forms.lock().unwrap().push(form);
        if !is_right {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Answer::redirect(302, "/login");
        }
        let number = self.sessions.fetch_add(1, Ordering::SeqCst) + 1;
        let cookie = format!("sid={number}; Path=/; HttpOnly");
        Answer::redirect(303, "/welcome").header("set-cookie", cookie)
    }

    fn page(&self, request: &Request, path: &str) -> Answer {
        if !self.knows(request) {
            // Half of the pages send whoever they do not know away, the others say so.
            return match path.ends_with(['1', '3', '5', '7', '9']) {
                true => Answer::html("<p>Your session has expired.</p>"),
                false => Answer::redirect(302, "/login?back=1"),
            };
        }
        let served = self.served.fetch_add(1, Ordering::SeqCst) + 1;
        if Some(served) == self.ends_after {
            // Whoever comes next is not known any more.
            self.sessions.fetch_add(1, Ordering::SeqCst);
        }
        if path == "/docs/index" {
            let links = (0..PAGES).map(|n| format!("<a href=/docs/{n}>page {n}</a>"));
            return Answer::html(links.collect::<String>());
        }
        Answer::html(format!("<p>The secret of {path}.</p>"))
    }
}

fn site(door: Door) -> (Served, Arc<Door>) {
    let (site, door) = (Site::with_pages(1).serve(), Arc::new(door));
    let answers = door.clone();
    site.intercept(move |request| answers.answer(request));
    (site, door)
}

fn origin(site: &Served) -> String {
    site.seed().rsplit_once("/p").map_or_else(|| site.seed(), |it| it.0.to_owned())
}

fn make(home: &Home, site: &Served, password: &str) {
    let origin = origin(site);
    told(home, &["init"]);
    let login = [
        &format!("login.urls=^{origin}/docs/"),
        "login.pages=redirect /docs/ /login",
        &format!(r"login.pages=content /docs/ session\shas\sexpired {origin}/login"),
        &format!("login.pages=form ^{origin}/login ^signin$"),
        "login.pages=link /welcome /docs/index$",
        "login.fields=user=crawler",
        "login.password_field=pass",
        &format!("login.password={password}"),
    ];
    let create = ["connection", "create", "wiki", "--connector", "web"];
    told(home, &[&create[..], &login].concat());
    let seed = format!("seeds={origin}/docs/index");
    let job = ["job", "create", "wiki", "--connection", "wiki", &seed, "allow_private=yes"];
    told(home, &[&job[..], &["delay_ms=0", "retries=1", "retry_ms=1s"]].concat());
}

#[track_caller]
fn run(home: &Home) -> serde_json::Value {
    told(home, &["job", "start", "wiki"]);
    ends_well(work(home, &["--node", "a"]));
    home.verify();
    listed(home).unwrap()
}

/// The same for a run that can have nothing, which `work` tells by its exit code.
fn run_in_vain(home: &Home) -> serde_json::Value {
    told(home, &["job", "start", "wiki"]);
    let ended = work(home, &["--node", "a"]).ended();
    assert_eq!(ended.status.code(), Some(1));
    home.verify();
    listed(home).unwrap()
}

const WAITING: &str = "SELECT COUNT(*) FROM events";
const LOGINS: &str = "SELECT COUNT(*) FROM repohistory WHERE activitytype = 'login'";

fn a_hundred_pages_behind_a_login_whose_session_ends_are_had_by_two_logins(home: Home) {
    let (site, door) = site(Door { ends_after: Some(SERVED_AT_FIRST), ..Door::default() });
    make(&home, &site, "s&cret");
    let line = run(&home);
    assert_eq!((&line["processed"], &line["failed"]), (&101.into(), &0.into()), "{line}");
    let forms = door.forms.lock().unwrap().clone();
    assert_eq!(forms.len(), 2, "once, and once again: {forms:?}");
    let secrets =
        "SELECT COUNT(*) FROM documents WHERE lastmodified IS NULL AND docid LIKE '%/docs/%'";
    assert_eq!(home.number(secrets), 101);
    assert_eq!(home.number("SELECT COUNT(*) FROM documents WHERE docid LIKE '%/login%'"), 0);
    assert_eq!(home.number(WAITING), 0, "nothing is in play any more");
    assert!(home.number(LOGINS) >= 2 * 4, "every step is in the history");

    // The next run, in another process, goes on in the same session.
    let before = forms.len();
    let line = run(&home);
    assert_eq!((&line["processed"], &line["failed"]), (&101.into(), &0.into()), "{line}");
    assert_eq!(door.forms.lock().unwrap().len(), before, "nobody has logged in again");
    let shown = told(&home, &["connection", "show", "wiki"]);
    assert!(!shown.contains("s&cret"), "{shown}");
}

#[test]
fn a_hundred_pages_behind_a_login_whose_session_ends_are_had_by_two_logins_on_sqlite() {
    a_hundred_pages_behind_a_login_whose_session_ends_are_had_by_two_logins(Home::directory());
}

#[test]
fn a_hundred_pages_behind_a_login_whose_session_ends_are_had_by_two_logins_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_hundred_pages_behind_a_login_whose_session_ends_are_had_by_two_logins(home);
}

fn a_wrong_password_is_tried_a_few_times_and_then_said(home: Home) {
    let (site, door) = site(Door::default());
    make(&home, &site, "wrong");
    let line = run_in_vain(&home);
    assert_eq!((&line["processed"], &line["failed"]), (&0.into(), &1.into()), "{line}");
    let forms = door.forms.lock().unwrap().len();
    assert!((1..=3).contains(&forms), "{forms} attempts");
    let why = told(&home, &["why", &format!("{}/docs/index", origin(&site))]);
    assert!(why.contains("the login failed"), "{why}");
    assert!(why.contains("password may be wrong"), "{why}");
    let history = told(&home, &["report", "history", "--activity", "login"]);
    assert!(history.contains("password may be wrong") && !history.contains("user="), "{history}");
}

#[test]
fn a_wrong_password_is_tried_a_few_times_and_then_said_on_sqlite() {
    a_wrong_password_is_tried_a_few_times_and_then_said(Home::directory());
}

#[test]
fn a_wrong_password_is_tried_a_few_times_and_then_said_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_wrong_password_is_tried_a_few_times_and_then_said(home);
}

/// A site's owner may forbid its login page to crawlers that ask nobody.
#[test]
fn robots_txt_is_obeyed_for_a_login_if_the_job_says_so() {
    let home = Home::directory();
    let (site, door) = site(Door::default());
    let answers = door.clone();
    site.intercept(move |request| match request.path.as_str() {
        "/robots.txt" => Some(Answer::text("User-agent: *\nDisallow: /login\n")),
        _ => answers.answer(request),
    });
    make(&home, &site, "s&cret");
    told(&home, &["job", "edit", "wiki", "robots=all"]);
    let line = run_in_vain(&home);
    assert_eq!((&line["processed"], &line["failed"]), (&0.into(), &1.into()), "{line}");
    let why = told(&home, &["why", &format!("{}/docs/index", origin(&site))]);
    assert!(why.contains("robots.txt forbids it") && why.contains("robots=data"), "{why}");
    assert_eq!(door.forms.lock().unwrap().len(), 0);
    told(&home, &["job", "edit", "wiki", "robots=data"]);
    let line = run(&home);
    assert_eq!((&line["processed"], &line["failed"]), (&101.into(), &0.into()), "{line}");
}

#[test]
fn a_name_and_a_password_go_with_every_request_to_their_site() {
    let home = Home::directory();
    let site = Site::with_pages(30).serve();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    site.intercept(move |request| {
        let given = request.header("authorization").map(str::to_owned);
        let is_known = given.as_deref() == Some("Basic Y3Jhd2xlcjpzZWNyZXQ=");
        seen.lock().unwrap().push((request.path.clone(), given));
        let is_page = request.path.starts_with("/p");
        (is_page && !is_known).then(|| Answer::status(401))
    });
    told(&home, &["init"]);
    let urls = format!("basic.urls=^{}/p", origin(&site));
    let settings = [urls.as_str(), "basic.user=crawler", "basic.password=secret"];
    told(&home, &[&["connection", "create", "wiki", "--connector", "web"][..], &settings].concat());
    let seed = format!("seeds={}", site.seed());
    let job = ["job", "create", "wiki", "--connection", "wiki", &seed, "allow_private=yes"];
    told(&home, &[&job[..], &["delay_ms=0"]].concat());
    let line = run(&home);
    assert_eq!((&line["processed"], &line["failed"]), (&30.into(), &0.into()), "{line}");
    let asked = asked.lock().unwrap();
    let robots = asked.iter().find(|(path, _)| path == "/robots.txt").unwrap();
    assert_eq!(robots.1, None, "it is not one of those URLs");
}
