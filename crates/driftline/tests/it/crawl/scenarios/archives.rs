//! Web archives as a repository: what one installation has crawled and exported, another
//! reads; archives come, change and go, and some are damaged.

use std::io::Write as _;
use std::path::Path;

use super::super::Home;
use super::{ends_well, listed, output, told, work};
use crate::site::Site;

const PAGES: u64 = 20;

fn make(home: &Home, shelf: &Path) {
    told(home, &["init"]);
    told(home, &["connection", "create", "shelf", "--connector", "warc"]);
    output(home, &home.folder.path().join("out"));
    let paths = format!("paths={}", shelf.display());
    let create = ["job", "create", "pages", "--connection", "shelf", "--pipeline", "copy"];
    told(home, &[&create[..], &[&paths]].concat());
}

/// Runs the job, and gives how many documents it has processed and how many have failed.
#[track_caller]
fn run(home: &Home) -> (i64, i64) {
    told(home, &["job", "start", "pages"]);
    ends_well(work(home, &["--node", "a"]));
    let line = listed(home).unwrap();
    assert_eq!(line["word"], "done", "{line}");
    home.verify();
    (line["processed"].as_i64().unwrap(), line["failed"].as_i64().unwrap())
}

const LIVE: &str = "SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL";
const UPDATED: &str = "SELECT COUNT(*) FROM documents WHERE changes > 0";
const KEPT: &str = "SELECT COUNT(*) FROM ingeststatus WHERE docuri LIKE 'http%'";

/// A record of a page, as others write it.
fn record(url: &str, date: &str, title: &str) -> String {
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>{title}</title>");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n\
         WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n\
         Content-Length: {}\r\n\r\n{answer}\r\n\r\n",
        answer.len()
    )
}

fn what_one_has_crawled_another_reads(home: &Home) {
    let shelf = home.folder.path().join("shelf");
    std::fs::create_dir(&shelf).unwrap();
    let site = Site::with_pages(PAGES as usize).serve();
    let crawler = Home::directory();
    crawler.crawled(&[&site.seed()]);
    let crawled = shelf.join("crawled.warc.gz");
    told(&crawler, &["export", "warc", crawled.to_str().unwrap()]);
    make(home, &shelf);
    let pages = i64::try_from(PAGES).unwrap();
    // The directory and the archive lead to the pages, and are none.
    assert_eq!(run(home), (pages + 2, 0));
    assert_eq!((home.number(LIVE), home.number(KEPT)), (pages, pages));
    assert_eq!(
        home.texts("SELECT docid FROM documents"),
        crawler.texts("SELECT docid FROM documents WHERE removed_ms IS NULL"),
    );
    assert_eq!(run(home), (pages + 2, 0));
    assert_eq!(home.number(UPDATED), 0, "nothing has changed");

    // A newer capture of a page counts, an older one does not.
    let plain = shelf.join("by-hand.warc");
    let records = [
        record(&site.seed(), "2099-01-01T00:00:00Z", "Newer"),
        record(&site.seed(), "1999-01-01T00:00:00Z", "Older"),
    ];
    std::fs::write(&plain, records.concat()).unwrap();
    assert_eq!(run(home), (pages + 3, 0));
    let titled = |title: &str| home.texts("SELECT title FROM documents").contains(title);
    assert!(titled("Newer") && !titled("Older"));
    assert_eq!(home.number(UPDATED), 1);
    // When its archive goes, the page is what it was before.
    std::fs::remove_file(&plain).unwrap();
    assert_eq!(run(home), (pages + 2, 0));
    assert!(!titled("Newer"));
    // The shelf is there, and has no archives any more; an empty one would be trouble.
    std::fs::write(shelf.join("notes.txt"), "all were given away").unwrap();
    std::fs::remove_file(&crawled).unwrap();
    assert_eq!(run(home), (1, 0));
    assert_eq!((home.number(LIVE), home.number(KEPT)), (0, 0));
}

#[test]
fn what_one_has_crawled_another_reads_on_sqlite() {
    what_one_has_crawled_another_reads(&Home::directory());
}

#[test]
fn what_one_has_crawled_another_reads_on_postgres() {
    let Some(home) = Home::database() else { return };
    what_one_has_crawled_another_reads(&home);
}

#[test]
fn damaged_archives_are_told_and_the_rest_is_read() {
    let home = Home::directory();
    let shelf = home.folder.path().join("shelf");
    std::fs::create_dir(&shelf).unwrap();
    let date = "2020-01-01T00:00:00Z";
    let (one, two) =
        (record("http://a.example/1", date, "One"), record("http://a.example/2", date, "Two"));
    std::fs::write(shelf.join("good.warc"), &one).unwrap();
    // The second record of this one is cut off.
    let mut cut = std::fs::File::create(shelf.join("cut.warc")).unwrap();
    cut.write_all(record("http://a.example/3", date, "Three").as_bytes()).unwrap();
    cut.write_all(&two.as_bytes()[..two.len() - 20]).unwrap();
    std::fs::write(shelf.join("noise.warc.gz"), "this is no archive at all").unwrap();
    make(&home, &shelf);
    let (_, failed) = run(&home);
    assert_eq!(failed, 2, "the cut record and the noise");
    let titles = || {
        let live = "SELECT title FROM documents WHERE removed_ms IS NULL AND title IS NOT NULL";
        home.texts(live).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(titles(), ["One", "Three"]);
    let said = told(&home, &["job", "failed", "pages"]);
    assert!(said.contains("noise.warc.gz") && said.contains("cut.warc#"), "{said}");
    // It is whole now, and the part that failed is gone.
    cut.write_all(&two.as_bytes()[two.len() - 20..]).unwrap();
    std::fs::remove_file(shelf.join("noise.warc.gz")).unwrap();
    let (_, failed) = run(&home);
    assert_eq!((failed, titles()), (0, ["One", "Three", "Two"].map(str::to_owned).into()));
}
