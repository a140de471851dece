//! Jobs that go a number of hops from their seeds: ManifoldCF's two scenarios with its
//! numbers, and links that come and go.

use super::super::Home;
use super::{ends_well, files_job, listed, told, web_job, work};
use crate::site::{Served, Site};
use driftline::loopback_web::Answer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the only job, and gives how many documents it has processed.
#[track_caller]
fn run(home: &Home, job: &str) -> i64 {
    told(home, &["job", "start", job]);
    ends_well(work(home, &["--node", "a"]));
    let line = listed(home).unwrap();
    assert_eq!((&line["word"], &line["failed"]), (&"done".into(), &0.into()), "{line}");
    home.verify();
    line["processed"].as_i64().unwrap()
}

fn write(root: &Path, name: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, name).unwrap();
}

/// Six of seven: the last file is three hops away.
fn files_are_taken_two_hops_from_the_root(home: Home) {
    let (root, out) = (home.folder.path().join("tree"), home.folder.path().join("out"));
    for name in ["test1.txt", "test2.txt", "testdir/test3.txt", "testdir/seconddir/test4.txt"] {
        write(&root, name);
    }
    files_job(&home, (&root, &out), &[]);
    told(&home, &["job", "edit", "docs", "--hops", "child=2"]);
    assert_eq!(run(&home, "docs"), 6);
    let distances = "SELECT COUNT(*) FROM hopcount WHERE distance = 3 AND linktype = 'child'";
    assert_eq!(home.number(distances), 1);
    assert_eq!(home.number("SELECT COUNT(*) FROM jobqueue WHERE status = 'HOPCOUNTREMOVED'"), 1);
    assert_eq!(run(&home, "docs"), 6, "and again");
    told(&home, &["job", "edit", "docs", "--hops", "child=3"]);
    assert_eq!(run(&home, "docs"), 7, "it comes back");
    told(&home, &["job", "edit", "docs", "--hops", "child=1"]);
    assert_eq!(run(&home, "docs"), 4);
    told(&home, &["job", "edit", "docs", "--hops", "child="]);
    assert_eq!(run(&home, "docs"), 7, "without a filter all come back");
    assert!(out.join(format!("file/%nil{}/testdir/test3.txt", root.display())).exists());
}

#[test]
fn files_are_taken_two_hops_from_the_root_on_sqlite() {
    files_are_taken_two_hops_from_the_root(Home::directory());
}

#[test]
fn files_are_taken_two_hops_from_the_root_on_postgres() {
    let Some(home) = Home::database() else { return };
    files_are_taken_two_hops_from_the_root(home);
}

const HOSTS: usize = 10;

/// Ten hosts whose pages lead to all their ancestors, to ten children and to those of
/// their siblings that come after them, ten levels deep.
fn deep() -> Served {
    let site = Site::with_pages(HOSTS).hosts(HOSTS).serve();
    site.intercept(|request| {
        if request.path == "/robots.txt" {
            return None;
        }
        let path = request.path.trim_end_matches('/').to_owned();
        let steps: Vec<&str> = path.split('/').filter(|it| it.parse::<u8>().is_ok()).collect();
        let at = |steps: &[&str]| format!("/{}", steps.join("/"));
        let mut links: Vec<String> = (0..=steps.len()).map(|it| at(&steps[..it])).collect();
        if steps.len() < 10 {
            links.extend((0..10).map(|child| format!("{}/{child}", at(&steps)).replace("//", "/")));
        }
        if let Some((last, above)) = steps.split_last() {
            let last: u8 = last.parse().unwrap();
            links.extend((last + 1..10).map(|it| at(&[above, &[&it.to_string()]].concat())));
        }
        let links: Vec<String> =
            links.into_iter().map(|it| format!("<a href=\"{it}\">to {it}</a>")).collect();
        let body = format!("<title>{path}</title><p>Page {path}.</p>{}", links.join(" "));
        Some(Answer::html(body).etag(&path))
    });
    site
}

fn pages_are_taken_one_hop_from_the_seeds_then_two(home: Home) {
    let site = deep();
    let seeds: Vec<String> = site
        .seeds()
        .iter()
        .map(|seed| format!("{}/", seed.rsplit_once("/p").map_or(&**seed, |it| it.0)))
        .collect();
    web_job(&home, &seeds, &["--hops", "link=1", "delay_ms=0", "robots=none"]);
    assert_eq!(run(&home, "site"), 110);
    told(&home, &["job", "edit", "site", "--hops", "link=2"]);
    assert_eq!(run(&home, "site"), 1_110);
}

#[test]
fn pages_are_taken_one_hop_from_the_seeds_then_two_on_sqlite() {
    pages_are_taken_one_hop_from_the_seeds_then_two(Home::directory());
}

#[test]
fn pages_are_taken_one_hop_from_the_seeds_then_two_on_postgres() {
    let Some(home) = Home::database() else { return };
    pages_are_taken_one_hop_from_the_seeds_then_two(home);
}

/// What robots.txt does not list any more is as far as links say.
fn a_sitemap_that_robots_txt_does_not_name_any_more_is_near_no_longer(home: Home) {
    let site = Site::with_pages(1).serve();
    let (is_named, is_away) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    let (named, away) = (is_named.clone(), is_away.clone());
    let seed = format!("{}/", site.seed().rsplit_once("/p").map_or(site.seed(), |it| it.0.into()));
    let origin = seed.trim_end_matches('/').to_owned();
    site.intercept(move |request| {
        let page = |link: &str| {
            Some(Answer::html(format!("<p>{}</p><a href=\"{link}\">on</a>", request.path)))
        };
        match request.path.as_str() {
            "/robots.txt" if away.load(Ordering::SeqCst) => Some(Answer::status(500)),
            "/robots.txt" => Some(Answer::text(match named.load(Ordering::SeqCst) {
                true => format!("Sitemap: {origin}/map.xml"),
                false => "User-agent: *".to_owned(),
            })),
            "/map.xml" => {
                let text = format!("<urlset><url><loc>{origin}/far</loc></url></urlset>");
                Some(Answer::of("application/xml", text))
            }
            "/" => page("/a"),
            "/a" => page("/b"),
            "/b" => page("/map.xml"),
            "/far" => page("/"),
            _ => None,
        }
    });
    web_job(&home, &[seed], &["--hops", "link=2", "delay_ms=0"]);
    let asked_again = || {
        home.rows().write(|tx| tx.execute("UPDATE robots SET expires_ms = 0", &[])).unwrap();
    };
    assert_eq!(run(&home, "site"), 5, "the sitemap is a link away, what it lists two");
    assert_eq!(run(&home, "site"), 5, "and again");
    is_named.store(false, Ordering::SeqCst);
    asked_again();
    assert_eq!(run(&home, "site"), 3, "the sitemap is three links away");
    let far = "SELECT COUNT(*) FROM hopcount h JOIN queue q ON q.id = h.id
               WHERE q.docid LIKE '%/map.xml' AND h.linktype = 'link' AND h.distance = 3";
    assert_eq!(home.number(far), 1);
    is_named.store(true, Ordering::SeqCst);
    asked_again();
    assert_eq!(run(&home, "site"), 5, "and back");
    // One that cannot be had has taken nothing back.
    is_away.store(true, Ordering::SeqCst);
    asked_again();
    run(&home, "site");
    let near = "SELECT COUNT(*) FROM hopcount h JOIN queue q ON q.id = h.id
                WHERE q.docid LIKE '%/map.xml' AND h.linktype = 'link' AND h.distance = 1";
    assert_eq!(home.number(near), 1);
}

#[test]
fn a_sitemap_that_robots_txt_does_not_name_any_more_is_near_no_longer_on_sqlite() {
    a_sitemap_that_robots_txt_does_not_name_any_more_is_near_no_longer(Home::directory());
}

#[test]
fn a_sitemap_that_robots_txt_does_not_name_any_more_is_near_no_longer_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_sitemap_that_robots_txt_does_not_name_any_more_is_near_no_longer(home);
}

/// A short cut is taken away: what was near is far, in the same run, and goes; a ring that
/// nothing leads to any more does not hold itself.
fn what_a_vanished_link_made_near_goes(home: Home) {
    let site = Site::with_pages(1).serve();
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = is_cut.clone();
    site.intercept(move |request| {
        let links: &[&str] = match (request.path.as_str(), cut.load(Ordering::SeqCst)) {
            ("/", false) => &["/long/1", "/ring/1"],
            ("/", true) => &["/long/1"],
            ("/long/1", _) => &["/long/2"],
            ("/long/2", _) => &["/ring/2"],
            ("/ring/1", _) => &["/ring/2"],
            ("/ring/2", _) => &["/ring/3"],
            ("/ring/3", _) => &["/ring/1", "/end"],
            ("/end", _) => &[],
            _ => return None,
        };
        let links: Vec<String> =
            links.iter().map(|it| format!("<a href=\"{it}\">{it}</a>")).collect();
        Some(Answer::html(format!("<p>{}</p>{}", request.path, links.join(" "))))
    });
    let seed = format!("{}/", site.seed().rsplit_once("/p").map_or(site.seed(), |it| it.0.into()));
    let flags = ["--hops", "link=4", "delay_ms=0", "robots=none"];
    web_job(&home, &[seed], &flags);
    assert_eq!(run(&home, "site"), 7, "all of it: /end is four links away");
    is_cut.store(true, Ordering::SeqCst);
    assert_eq!(run(&home, "site"), 5, "/ring/1 and /end are five links away now");
    let far = "SELECT COUNT(*) FROM hopcount h JOIN queue q ON q.id = h.id
               WHERE (q.docid LIKE '%/ring/2' AND h.distance = 3)
                  OR (q.docid LIKE '%/ring/3' AND h.distance = 4)
                  OR (q.docid LIKE '%/ring/1' AND h.distance = 5)
                  OR (q.docid LIKE '%/end' AND h.distance = 5)";
    assert_eq!(home.number(far), 4);
    let removed = "SELECT COUNT(*) FROM documents WHERE reason = 'hop limit'";
    assert_eq!(home.number(removed), 2);
    is_cut.store(false, Ordering::SeqCst);
    assert_eq!(run(&home, "site"), 7, "and back");
}

#[test]
fn what_a_vanished_link_made_near_goes_on_sqlite() {
    what_a_vanished_link_made_near_goes(Home::directory());
}

#[test]
fn what_a_vanished_link_made_near_goes_on_postgres() {
    let Some(home) = Home::database() else { return };
    what_a_vanished_link_made_near_goes(home);
}
