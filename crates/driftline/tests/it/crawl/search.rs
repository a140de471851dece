//! The search index beside a crawl: what was just committed is found, what changed is found
//! by its new words, what is gone is not, and the index is what is committed.

use super::{GLANCE, Home, PATIENCE, Running, text, words};
use crate::site::Site;
use serde_json::Value;
use store::datadir::Layout;

const PAGES: usize = 60;

/// The answer to a question. Nothing found is a "no", and an answer too.
#[track_caller]
fn found(home: &Home, question: &str) -> Value {
    let output = home.command(&["search", "--json", "--limit", "100", question]).output().unwrap();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(errors.is_empty() && output.status.code() < Some(2), "{errors}");
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn search_follows_what_a_crawl_finds(home: &Home) {
    let site = Site::with_pages(PAGES).hosts(3).serve();
    let seeds = site.seeds();
    // On a busy machine a lease of a second is lost, and what is left to do is done by the next crawl.
    let args = words(&seeds, &["--lease", "30"]);
    home.crawled(&args);
    assert_eq!(home.verify_search(), PAGES as u64);
    let all = found(home, "page");
    assert_eq!(all["total"], PAGES, "{all}");
    assert_eq!((&all["behind_chunks"], &all["has_more"]), (&0.into(), &false.into()), "{all}");
    let one = found(home, "\"page 7\"");
    let hit = &one["hits"][0];
    assert_eq!(hit["url"], site.page_url(7), "{one}");
    assert!(hit["links"].as_u64() > Some(0), "in-links are looked up: {hit}");
    let title = hit["title"].as_str().unwrap().to_owned();
    let links: Vec<u64> =
        all["hits"].as_array().unwrap().iter().map(|it| it["links"].as_u64().unwrap()).collect();
    for least in [1, 2, 3, 5, 8] {
        let many = links.iter().filter(|links| **links >= least).count();
        let found = found(home, &format!("page links:>={least}"));
        assert_eq!(found["total"], many, "links:>={least} goes by what is so now: {found}");
    }

    // What changes is found by what it says now.
    site.edit([7]);
    site.remove([8]);
    for _ in 0..3 {
        home.crawled(&args);
    }
    assert_eq!(home.verify_search(), PAGES as u64 - 1);
    let gone = found(home, "\"page 8\" inurl:8");
    let urls = gone["hits"].as_array().unwrap().iter().map(|it| &it["url"]);
    assert!(!urls.into_iter().any(|it| *it == site.page_url(8)), "{gone}");
    let again = found(home, "\"page 7\"");
    assert_eq!(again["hits"][0]["url"], site.page_url(7));
    assert!(again["hits"][0]["title"].as_str().unwrap().starts_with("Page 7"), "{title}");

    let output = home.command(&["search", "rebuild", "--json"]).output().unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["documents"], PAGES - 1, "{}", text(&output.stderr));
    assert_eq!(home.verify_search(), PAGES as u64 - 1);
    let states = home.texts("SELECT task FROM chunk_tasks WHERE role = 'search'");
    assert_eq!(states.into_iter().collect::<Vec<_>>(), ["propagated"]);
}

#[test]
fn search_follows_what_a_crawl_finds_on_sqlite() {
    search_follows_what_a_crawl_finds(&Home::directory());
}

#[test]
fn search_follows_what_a_crawl_finds_on_postgres() {
    let Some(home) = Home::database() else { return };
    search_follows_what_a_crawl_finds(&home);
}

#[test]
fn searches_are_answered_while_a_crawl_runs() {
    let home = Home::directory();
    let site = Site::with_pages(400).answering_after(GLANCE).serve();
    let seeds = site.seeds();
    let mut running = Running::start(home.crawl(&words(&seeds, &["--concurrency", "2"])));
    let began = std::time::Instant::now();
    loop {
        assert!(began.elapsed() < PATIENCE, "no document is found");
        assert!(!running.has_ended(), "the crawl was over before anything was found");
        let output = home.command(&["search", "--json", "page"]).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if answer["total"].as_u64() > Some(0) {
            break;
        }
        std::thread::park_timeout(GLANCE);
    }
    running.kill();
    // What the index had no time to follow is lag, and no damage.
    let output = home.command(&["search", "verify", "--json"]).output().unwrap();
    let verified: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(output.status.success(), "{verified}{}", text(&output.stderr));
    assert_eq!(verified["differences"], 0, "{verified}");
    // What was committed before the kill is in the index when somebody goes on.
    home.crawled(&words(&seeds, &["--concurrency", "16"]));
    assert_eq!(home.verify_search(), 400);
}

#[test]
fn what_cannot_be_asked_is_refused_and_says_what_to_write() {
    let home = Home::directory();
    let site = Site::with_pages(3).serve();
    home.crawled(&words(&site.seeds(), &[]));
    for (question, said) in
        [("before:tomorrow", "2024-05-31"), ("...", "no words"), ("page --cursor x", "cursor")]
    {
        let args: Vec<&str> = question.split(' ').collect();
        let output = home.command(&[&["search"], args.as_slice()].concat()).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{question}");
        assert!(errors.contains(said), "{question}: {errors}");
    }
    let nothing = home.command(&["search", "xylophone"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(1), "nothing found is a no");
    assert!(text(&nothing.stdout).contains("nothing was found"));
}

#[test]
fn a_crawl_that_finds_nothing_new_makes_no_new_version_of_the_search_index() {
    let home = Home::directory();
    let site = Site::with_pages(PAGES).serve();
    let seeds = site.seeds();
    let args = words(&seeds, &[]);
    home.crawled(&args);
    let published = || {
        let versions = home.number("SELECT SUM(version) FROM shards");
        (versions, home.texts("SELECT path FROM shard_files WHERE dropped_ms IS NULL"))
    };
    let before = published();
    assert_eq!(home.crawled(&args).changes(), [0, 0, PAGES as u64, 0]);
    assert_eq!(published(), before);
    assert_eq!(home.verify_search(), PAGES as u64, "and it is up to date");
}

#[test]
fn a_damaged_search_index_names_the_file_and_is_made_anew_by_the_command_it_names() {
    let home = Home::directory();
    let site = Site::with_pages(PAGES).serve();
    home.crawled(&words(&site.seeds(), &[]));
    let path = home.texts("SELECT path FROM shard_files WHERE dropped_ms IS NULL");
    let path = path.into_iter().find(|it| it.ends_with(".term")).unwrap();
    let file = Layout::new(home.data()).objects().join(&path);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    for (verb, code) in [(&["search", "page"][..], 2), (&["search", "verify"], 1)] {
        let output = home.command(verb).output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{verb:?}: {said}");
        for word in [&*path, "checksum", "driftline search rebuild"] {
            assert!(said.contains(word), "{verb:?} says {word}: {said}");
        }
    }
    let output = home.command(&["search", "rebuild"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(found(&home, "page")["total"], PAGES);
    assert_eq!(home.verify_search(), PAGES as u64);
}
