//! Ten bins on two processes, one of which is killed: a tenth of ManifoldCF's test of
//! its scheduler, whose real size is `bench/nodes`.

use super::super::{Home, until};
use super::{ends_well, listed, told, web_job, work};
use crate::site::Site;

const BINS: usize = 10;
/// Of each bin, beside its front page.
const PAGES: usize = 20;
/// All of them: 10 × 20 pages and 10 front pages.
const DOCUMENTS: i64 = 210;
/// Processed when a process is killed: about as much of the whole as in ManifoldCF.
const BEFORE_KILL: i64 = 20;

const COMMITTERS: &str = "SELECT COUNT(DISTINCT n.name) FROM chunks c JOIN nodes n ON n.id = c.node
                          WHERE c.state = 'crawled' AND c.documents > 0";
const DONE: &str = "SELECT COUNT(*) FROM queue WHERE state = 'done'";

#[test]
fn ten_bins_are_done_by_two_processes_although_one_is_killed() {
    let Some(home) = Home::database() else { return };
    let site = Site::with_pages(BINS * (PAGES + 1)).hosts(BINS).serve();
    web_job(&home, &site.seeds(), &["delay_ms=50ms"]);
    told(&home, &["job", "start", "site"]);
    let mut first = work(&home, &["--node", "first"]);
    until(&site, "the first begins", || home.number(COMMITTERS) == 1);
    let second = work(&home, &["--node", "second"]);
    until(&site, "both are at it", || {
        home.number(COMMITTERS) == 2 && home.number(DONE) >= BEFORE_KILL
    });
    first.kill();
    let done = home.number(DONE);
    assert!(done < DOCUMENTS, "it was killed in the middle");
    ends_well(second);
    let line = listed(&home).unwrap();
    assert_eq!(line["state"], "INACTIVE", "{line}");
    assert_eq!((&line["processed"], &line["failed"]), (&DOCUMENTS.into(), &0.into()), "{line}");
    assert_eq!(site.unfetched(&site.traffic()), Vec::<String>::new());
    assert_eq!(home.number("SELECT COUNT(*) FROM documents WHERE removed_ms IS NULL"), DOCUMENTS);
    home.verify();
}
