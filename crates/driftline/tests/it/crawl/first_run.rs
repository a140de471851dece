//! What somebody meets who crawls for the first time, does it wrong, and does it again.

use super::{Home, Running, Summary, text};
use crate::site::Site;

fn screen(home: &Home, args: &[&str]) -> (Option<i32>, String) {
    let output = home.command(args).output().unwrap();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[track_caller]
fn says(screen: &str, words: &[&str]) {
    for word in words {
        assert!(screen.contains(word), "{word:?} is not in: {screen}");
    }
}

fn a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it(home: &Home) {
    let site = Site::with_pages(4).serve();
    let seed = site.seed();
    let (code, first) = screen(home, &["crawl", &seed]);
    assert_eq!(code, Some(1), "{first}");
    says(&first, &["127.0.0.1 is a private address; add --allow-private (address)", &seed]);
    assert_eq!(site.web().visits_count(), 0, "nobody was asked");

    let (_, why) = screen(home, &["why", &seed]);
    says(&why, &["127.0.0.1 is a private address", "--allow-private"]);
    let (_, hosts) = screen(home, &["hosts", "127.0.0.1"]);
    says(&hosts, &["1 error", "not asked", "--allow-private"]);
    let (_, status) = screen(home, &["status"]);
    says(&status, &["1 failed", "1 error,"]);
    let history = home.texts("SELECT resultcode FROM history WHERE activitytype = 'fetch'");
    assert_eq!(history.into_iter().collect::<Vec<_>>(), ["address"]);

    let again = ["crawl", &seed, "--allow-private", "--delay", "0"];
    let (code, second) = screen(home, &again);
    assert_eq!(code, Some(0), "{second}");
    says(&second, &["4 added"]);
    let (_, hosts) = screen(home, &["hosts", "127.0.0.1"]);
    assert!(!hosts.contains("not asked"), "{hosts}");
}

#[test]
fn a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it_on_sqlite() {
    a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it(&Home::directory());
}

#[test]
fn a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_private_address_is_named_with_its_flag_and_crawled_at_once_with_it(&home);
}

/// Three times, so that its breaker is open as well.
fn a_server_that_was_down_is_asked_again_by_the_next_crawl(home: &Home) {
    let site = Site::with_pages(4).serve();
    let (port, seed) = (site.web().port(), site.seed());
    drop(site);
    for _ in 0..3 {
        let ended = Running::start(home.crawl(&[&seed, "--patience", "1"])).ended();
        assert_eq!(ended.status.code(), Some(1));
        let summary = Summary::printed(&ended);
        let group = &summary.0["did"]["errors"]["host-left-alone"];
        assert_eq!(group["example"], seed.as_str(), "{summary:?}");
        says(group["sentence"].as_str().unwrap(), &["refused the connection"]);
    }
    assert_eq!(home.number("SELECT COUNT(*) FROM bins WHERE blocked_by = 'connect-refused'"), 1);
    let (_, why) = screen(home, &["why", &seed]);
    says(&why, &["the server refused the connection", "the next run asks again"]);
    let history = home.texts("SELECT resultcode FROM history WHERE activitytype = 'robots'");
    assert_eq!(history.into_iter().collect::<Vec<_>>(), ["connect-refused"]);

    let _site = Site::with_pages(4).port(port).serve();
    assert_eq!(home.crawled(&[&seed]).changes(), [4, 0, 0, 0]);
    home.verify();
}

#[test]
fn a_server_that_was_down_is_asked_again_by_the_next_crawl_on_sqlite() {
    a_server_that_was_down_is_asked_again_by_the_next_crawl(&Home::directory());
}

#[test]
fn a_server_that_was_down_is_asked_again_by_the_next_crawl_on_postgres() {
    let Some(home) = Home::database() else { return };
    a_server_that_was_down_is_asked_again_by_the_next_crawl(&home);
}
