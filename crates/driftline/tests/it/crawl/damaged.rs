//! Rows that were damaged on the disk: they are named, not believed, and written anew.

use super::Home;
use crate::site::Site;

/// Pages of the site.
const PAGES: u64 = 12;

fn a_page_whose_row_is_damaged_is_fetched_again_whole_and_its_row_written_anew(home: Home) {
    let site = Site::with_pages(PAGES as usize).serve();
    let seeds = site.seeds();
    let crawl = || {
        let words: Vec<&str> = seeds.iter().map(String::as_str).collect();
        home.crawled(&words)
    };
    assert_eq!(crawl().changes(), [PAGES, 0, 0, 0]);
    home.verify();
    let unconditional = {
        site.take_traffic();
        assert_eq!(crawl().changes(), [0, 0, PAGES, 0]);
        site.take_traffic().unconditional_count()
    };

    // Three documents: a title, a validator, and where the facts are.
    for damage in ["title = 'Other'", "etag = '\"other\"'", "chunk = chunk + 1"] {
        let sql = format!(
            "UPDATE documents SET {damage} WHERE dochash IN (
                 SELECT dochash FROM documents WHERE etag IS NOT NULL AND checks = 1
                 ORDER BY dochash LIMIT 1)"
        );
        let mark = "UPDATE documents SET checks = 3 WHERE checks = 1 AND dochash IN (
                 SELECT dochash FROM documents WHERE etag IS NOT NULL AND checks = 1
                 ORDER BY dochash LIMIT 1)";
        home.rows()
            .write(move |tx| {
                assert_eq!(tx.execute(&sql, &[])?, 1);
                tx.execute(mark, &[])
            })
            .unwrap();
    }
    let said = home.command(&["verify"]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.matches("the row of table documents with part").count(), 3, "{said}");
    assert!(said.contains("the next look at the document fetches all of it"), "{said}");

    let third = crawl();
    assert_eq!(third.changes(), [0, 3, PAGES - 3, 0], "{third:?}");
    assert_eq!(site.take_traffic().unconditional_count(), unconditional + 3);
    assert_eq!(home.number("SELECT COUNT(*) FROM documents WHERE title = 'Other'"), 0);
    home.verify();
    assert_eq!(crawl().changes(), [0, 0, PAGES, 0], "all is as usual");
}

#[test]
fn a_page_whose_row_is_damaged_is_fetched_again_whole_and_its_row_written_anew_on_sqlite() {
    a_page_whose_row_is_damaged_is_fetched_again_whole_and_its_row_written_anew(Home::directory());
}

#[test]
fn a_page_whose_row_is_damaged_is_fetched_again_whole_and_its_row_written_anew_on_postgresql() {
    let Some(home) = Home::database() else { return };
    a_page_whose_row_is_damaged_is_fetched_again_whole_and_its_row_written_anew(home);
}

fn a_run_with_a_damaged_definition_is_refused_with_the_name_of_the_row(home: Home) {
    let site = Site::with_pages(2).serve();
    let seed = site.seed();
    home.crawled(&[&seed]);
    let damage = "UPDATE connections SET maxcount = maxcount + 4096 WHERE kind = 'repository'";
    home.rows().write(move |tx| tx.execute(damage, &[])).unwrap();
    let ended = home.crawl(&[&seed]).output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
    assert!(!ended.status.success(), "{said}");
    assert!(said.contains("of table connections"), "{said}");
    assert!(said.contains("driftline import"), "{said}");
}

#[test]
fn a_run_with_a_damaged_definition_is_refused_with_the_name_of_the_row_on_sqlite() {
    a_run_with_a_damaged_definition_is_refused_with_the_name_of_the_row(Home::directory());
}
