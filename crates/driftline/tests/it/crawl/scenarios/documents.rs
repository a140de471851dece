//! Documents that are neither HTML nor text: what they say reaches outputs, where they lead
//! is followed, and those that cannot be read are there and say why.

use super::super::Home;
use super::super::files::Tree;
use super::{ends_well, told, work};
use crate::extract::{docx_of, pdf_bomb, pdf_of};
use ::outputs::testing::receiver::Receiver;
use driftline::loopback_web::{Answer, Request, Web};
use serde_json::Value as Json;

const OLD: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 what Word wrote in 1999";

fn site(request: &Request) -> Answer {
    let host = request.headers.iter().find(|(name, _)| name == "host").unwrap();
    let office = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    match request.path.as_str() {
        "/" => {
            let names = ["tides.pdf", "letter.docx", "untyped", "bomb.pdf", "fake.pdf", "old.doc"];
            let links = names.map(|name| format!("<a href='/{name}'>{name}</a>"));
            Answer::html(links.concat())
        }
        "/tides.pdf" => {
            let link = format!("http://{}/behind", host.1);
            Answer::of("application/pdf", pdf_of("Hello tide", &link)).etag("1")
        }
        "/letter.docx" => Answer::of(office, docx_of("Dear sea")),
        "/untyped" => Answer::of("application/octet-stream", docx_of("Dear moon")),
        "/bomb.pdf" => Answer::of("application/pdf", pdf_bomb()).etag("1"),
        "/fake.pdf" => Answer::of("application/pdf", "<html>please log in"),
        "/old.doc" => Answer::of("application/msword", OLD),
        "/behind" => Answer::html("<title>Behind</title>only the PDF leads here"),
        _ => Answer::status(404),
    }
}

/// What an output was told of a document.
fn kept(output: &Receiver, name: &str) -> Json {
    let kept = output.shelf.kept();
    let found = kept.documents.iter().find(|it| it.0.ends_with(name));
    found.unwrap_or_else(|| panic!("{name} is not there")).1.clone()
}

fn documents_of_a_site_say_what_is_in_them(home: &Home) {
    let (web, output) = (Web::start(site).unwrap(), Receiver::start());
    told(home, &["init"]);
    told(home, &["connection", "create", "web", "--connector", "web"]);
    let url = format!("url={}", output.server.url());
    told(
        home,
        &["connection", "create", "far", "--connector", "webhook", "--kind", "output", &url],
    );
    let seed = format!("seeds={}", web.url("127.0.0.1", "/"));
    let create = ["job", "create", "site", "--connection", "web", "--pipeline", "far"];
    told(home, &[&create[..], &["allow_private=yes", "delay_ms=0", &seed]].concat());
    let run = || {
        told(home, &["job", "start", "site"]);
        ends_well(work(home, &["--node", "a"]));
        home.verify();
    };
    run();
    let pdf = kept(&output, "/tides.pdf");
    assert_eq!((&pdf["text"], &pdf["title"]), (&"Hello tide".into(), &"Tides".into()), "{pdf}");
    assert_eq!((&pdf["author"], &pdf["lang"]), (&"A. Keeper".into(), &"en".into()), "{pdf}");
    assert_eq!(pdf["created"], "2024-05-01T10:20:30Z");
    assert_eq!(kept(&output, "/letter.docx")["text"], "Dear sea");
    assert_eq!(kept(&output, "/untyped")["text"], "Dear moon", "known by its bytes");
    assert_eq!(kept(&output, "/behind")["title"], "Behind", "the link of the PDF was followed");
    for (name, words) in [
        ("/bomb.pdf", "more than 536.8 MB of memory"),
        ("/fake.pdf", "does not begin as a PDF"),
        ("/old.doc", "before 2007"),
    ] {
        let document = kept(&output, name);
        assert_eq!(document["text"], "", "{document}");
        assert!(document["unread"].as_str().unwrap().contains(words), "{document}");
    }
    let why = |name: &str| told(home, &["why", &web.url("127.0.0.1", name)]);
    assert!(
        why("/bomb.pdf").contains("text could not be extracted: reading it takes too much memory")
    );
    assert!(why("/tides.pdf").contains("Tides"));
    let history =
        home.texts("SELECT resultdesc FROM repohistory WHERE resultdesc LIKE 'its text%'");
    assert_eq!(history.len(), 3, "{history:?}");
    assert_eq!(home.number("SELECT COUNT(*) FROM queue WHERE state <> 'done'"), 0);

    run();
    assert_eq!(home.number("SELECT COUNT(*) FROM documents WHERE changes > 0"), 0);
    assert!(why("/bomb.pdf").contains("too much memory"), "nothing is better known now");
}

#[test]
fn documents_of_a_site_say_what_is_in_them_on_sqlite() {
    documents_of_a_site_say_what_is_in_them(&Home::directory());
}

#[test]
fn documents_of_a_site_say_what_is_in_them_on_postgres() {
    let Some(home) = Home::database() else { return };
    documents_of_a_site_say_what_is_in_them(&home);
}

#[test]
fn documents_of_a_directory_say_what_is_in_them() {
    let output = Receiver::start();
    let more = format!(
        "[[jobs.docs.pipeline]]\noutput = \"far\"\n\
         [connections.output.far]\nconnector = \"webhook\"\nsettings.url = {:?}\n",
        output.server.url()
    );
    let tree = Tree::with(Home::directory(), &more);
    let write = |name: &str, bytes: &[u8]| std::fs::write(tree.root.join(name), bytes).unwrap();
    write("tides.pdf", &pdf_of("Hello tide", "http://a.example/"));
    write("letter.docx", &docx_of("Dear sea"));
    write("old.doc", OLD);
    write("large.pdf", &vec![b'%'; 11 << 20]);
    tree.run(false);
    let pdf = kept(&output, "/tides.pdf");
    assert_eq!((&pdf["text"], &pdf["title"]), (&"Hello tide".into(), &"Tides".into()), "{pdf}");
    assert_eq!(kept(&output, "/letter.docx")["text"], "Dear sea");
    let old = kept(&output, "/old.doc");
    assert!(old["title"] == "old.doc" && old["unread"].is_string(), "{old}");
    let large = kept(&output, "/large.pdf");
    assert!(large["title"] == "large.pdf" && large["unread"].is_null(), "{large}");
    let before = output.shelf.kept().updates;
    tree.run(false);
    assert_eq!(output.shelf.kept().updates, before, "nothing has changed");
}
