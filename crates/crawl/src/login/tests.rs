//! Pages on the way to a session, and what a connection may say of them.

use super::*;
use crate::fetch::{HeaderMap, Redirect};

fn config(pages: &[&str]) -> LoginConfig {
    LoginConfig {
        urls: "^http://site\\.example/docs/".into(),
        pages: pages.iter().map(|page| (*page).to_owned()).collect(),
        fields: vec!["user=crawler".into()],
        password_field: "pass".into(),
        password: Some("s&cret".into()),
    }
}

fn login(pages: &[&str]) -> Login {
    Login::new(&config(pages)).unwrap().unwrap()
}

fn body(html: &str) -> Outcome {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("text/html"));
    Outcome::Body(Box::new(Fetched {
        status: 200,
        headers,
        body: Bytes::copy_from_slice(html.as_bytes()),
        truncated: false,
        peer: ([127, 0, 0, 1], 80).into(),
        wire_bytes: 0,
    }))
}

fn redirect(to: &str) -> Outcome {
    Outcome::Redirect(Redirect { status: 302, to: to.into(), cookies: Vec::new() })
}

const URL: &str = "http://site.example/login?back=1";

#[test]
fn a_form_is_filled_in_and_sent_where_it_says() {
    let login = login(&["form ^http://site.example/login ^signin$"]);
    let page = |action: &str, method: &str| {
        body(&format!(
            "<form name=other><input name=q></form><form name=signin action='{action}' \
             method={method}><input type=hidden name=t value=1><input name=user value=x>\
             <input type=password name=pass></form>"
        ))
    };
    let step = login.next(URL, &page("/in", "post")).unwrap();
    assert_eq!(step.url, "http://site.example/in");
    assert_eq!(step.form.as_deref(), Some(&b"t=1&user=crawler&pass=s%26cret"[..]));
    let step = login.next(URL, &page("", "post")).unwrap();
    assert_eq!(step.url, URL, "to itself");
    let step = login.next(URL, &page("/in?old=1", "get")).unwrap();
    assert_eq!(step.url, "http://site.example/in?t=1&user=crawler&pass=s%26cret");
    let asks = |html: &Outcome| login.asks(URL, html);
    assert!(!asks(&page("http://thief.example/", "post")), "a password stays with its site");
    assert!(!asks(&body("<form name=search></form>")) && !asks(&redirect("http://site.example/")));
    let elsewhere = login.next("http://site.example/docs/1", &page("/in", "post"));
    assert!(elsewhere.is_none(), "only at its address");
}

#[test]
fn links_redirects_and_content_lead_on() {
    let login = login(&[
        "redirect . /login$",
        r"link /welcome /continue\?",
        r"content /docs/ session\shas\sexpired http://site.example/login",
    ]);
    let step = |url: &str, answer: &Outcome| login.next(url, answer).map(|step| step.url);
    let document = "http://site.example/docs/1";
    let to = "http://site.example/login";
    assert_eq!(step(document, &redirect(to)).as_deref(), Some(to));
    assert_eq!(step(document, &redirect("http://site.example/docs/2")), None);
    assert_eq!(step(document, &body("Your session has expired.")).as_deref(), Some(to));
    assert_eq!(step(document, &body("A page like others")), None);
    let welcome = body("<a href='/about'>x</a><a href='continue?n=1'>on</a>");
    let on = step("http://site.example/welcome", &welcome);
    assert_eq!(on.as_deref(), Some("http://site.example/continue?n=1"));
    assert!(login.guards(document) && !login.guards(to));
}

#[test]
fn what_cannot_be_used_is_refused_with_a_sentence_that_names_it() {
    let refused = |config: LoginConfig| Login::new(&config).err().unwrap();
    for (page, why) in [
        ("dance . .", "does not begin with form"),
        ("form ^http://a/", "KIND URLS MATCH"),
        ("form login .", "must begin with ^http"),
        ("redirect ( .", "not a valid regular expression"),
        ("content . x", "needs a target"),
        ("link . a not-a-url", "target"),
        ("link . a http://a/ b", "more than four"),
    ] {
        let said = refused(config(&[page]));
        assert!(said.contains(why) && said.starts_with("login.pages"), "{page}: {said}");
    }
    let one = || config(&["redirect . /login"]);
    assert!(refused(config(&[])).contains("login.pages"));
    let nowhere = LoginConfig { password_field: String::new(), ..one() };
    assert!(refused(nowhere).contains("login.password_field"));
    assert!(refused(LoginConfig { password: None, ..one() }).contains("login.password"));
    let field = LoginConfig { fields: vec!["=x".into()], ..one() };
    assert!(refused(field).contains("login.fields"));
    assert!(Login::new(&LoginConfig::default()).unwrap().is_none(), "nothing is said");
    let other = LoginConfig { password: Some("other".into()), ..one() };
    let (a, b) = (Login::new(&one()).unwrap(), Login::new(&other).unwrap());
    assert_ne!(a.unwrap().hash, b.unwrap().hash, "a session of another password is not used");
}

#[test]
fn credentials_go_to_their_site_alone() {
    let config = BasicConfig {
        urls: r"^https://docs\.example/".into(),
        user: "u".into(),
        password: Some("p".into()),
    };
    let basic = Basic::new(&config).unwrap().unwrap();
    assert_eq!(basic.header("https://docs.example/a").unwrap(), "Basic dTpw");
    assert!(basic.header("https://other.example/?https://docs.example/").is_none());
    let loose = BasicConfig { urls: "docs.example".into(), ..config.clone() };
    assert!(Basic::new(&loose).err().unwrap().contains("^http"));
    assert!(Basic::new(&BasicConfig { user: String::new(), ..config }).is_err());
    assert!(Basic::new(&BasicConfig::default()).unwrap().is_none());
}
