//! Hosts that no seed names: they may have so many pages, and more with every link to them.

use super::verdicts::{SMALL, budgets, news};
use super::*;

const HOST_PAGES: i64 = 20;

fn url(number: i64) -> String {
    format!("http://random.example/{number}")
}

/// Fetches pages of a host, each of which says something new.
fn see(it: &mut Budgets, numbers: std::ops::Range<i64>, change: impl Fn(&mut FetchedDocument<'_>)) {
    for number in numbers {
        let url = url(number);
        let mut seen = FetchedDocument {
            job: JOB,
            part: PART,
            bin: bin(&url),
            url: &url,
            dochash: DocHash::of(&url),
            hops: 1,
            content: news(number.cast_unsigned()),
            look: LookKind::First,
            host_pages: HOST_PAGES,
            is_named_elsewhere: false,
        };
        change(&mut seen);
        it.fetched(&seen);
    }
}

fn judge(it: &mut Budgets, host_pages: i64) -> Option<ClosedPattern> {
    let url = url(-1);
    it.judge(&CandidateLink {
        job: JOB,
        bin: bin(&url),
        url: &url,
        dochash: DocHash::of(&url),
        hops: 2,
        from: Some(Novelty::Fresh),
        host_pages,
        list_depth: 0,
    })
}

fn is_closed(it: &mut Budgets) -> bool {
    judge(it, HOST_PAGES).is_some_and(|closed| closed.rule == BudgetRule::Unlinked)
}

#[test]
fn random_text_ends_at_a_host_that_nobody_links_to_and_people_are_told_what_raises_it() {
    let mut it = budgets(SMALL);
    see(&mut it, 0..HOST_PAGES - 1, |_| ());
    assert!(!is_closed(&mut it));
    see(&mut it, HOST_PAGES..HOST_PAGES + 1, |_| ());
    let closed = judge(&mut it, HOST_PAGES).expect("it has as many as it may have");
    assert_eq!(
        (closed.rule, closed.documents, closed.outside),
        (BudgetRule::Unlinked, HOST_PAGES, 0)
    );
    let words = closed.explain();
    assert!(words.contains("20 pages like random.example/*"), "{words}");
    assert!(words.contains("--host-pages"), "{words}");
    assert_eq!(judge(&mut it, HOST_PAGES + 1), None, "a job may allow more");
    assert_eq!(judge(&mut it, NO_LIMIT), None, "a seed's host has no limit");

    let rows = it.take_changed(PART);
    let host = rows.iter().find(|row| row.pattern == "random.example/*").unwrap();
    assert_eq!(ClosedPattern::of(host), Some(closed), "hosts and status tell of it");
    see(&mut it, 100..101, |seen| seen.host_pages = 50);
    let rows = it.take_changed(PART);
    let host = rows.iter().find(|row| row.pattern == "random.example/*").unwrap();
    assert_eq!(ClosedPattern::of(host), None, "it is open again");
}

#[test]
fn each_link_from_another_host_allows_a_hundred_pages_more_and_a_restart_remembers() {
    let mut it = budgets(SMALL);
    it.link_outside(JOB, bin(&url(0)));
    it.link_outside(JobId(9), bin(&url(0)));
    see(&mut it, 0..1, |_| ());
    it.link_outside(JOB, bin(&url(0)));
    let allowed = HOST_PAGES + 2 * PAGES_PER_LINK;
    see(&mut it, 1..allowed - 1, |_| ());
    let rows = it.take_changed(PART);
    let mut again = budgets(SMALL);
    again.restore(PART, &rows);
    for it in [&mut it, &mut again] {
        assert!(!is_closed(it));
        see(it, 1_000..1_001, |_| ());
        assert!(is_closed(it));
        it.link_outside(JOB, bin(&url(0)));
        assert!(!is_closed(it), "one more link");
    }
}

#[test]
fn links_are_kept_over_a_restart_before_there_are_many_pages() {
    let mut it = budgets(BudgetLimits { saved_documents: 100, ..SMALL });
    for _ in 0..10 {
        it.link_outside(JOB, bin(&url(0)));
    }
    see(&mut it, 0..1, |_| ());
    let rows = it.take_changed(PART);
    assert_eq!(rows.iter().map(|row| row.outside).collect::<Vec<_>>(), [10]);
}

#[test]
fn pages_that_others_have_named_count_as_linked_and_those_of_a_redirected_seed_have_no_limit() {
    let mut it = budgets(SMALL);
    see(&mut it, 0..1, |seen| seen.is_named_elsewhere = true);
    see(&mut it, 1..HOST_PAGES + PAGES_PER_LINK - 1, |_| ());
    assert!(!is_closed(&mut it));
    see(&mut it, 1_000..1_001, |_| ());
    assert!(is_closed(&mut it));

    let mut it = budgets(SMALL);
    see(&mut it, 0..1, |seen| seen.hops = 0);
    see(&mut it, 1..100 * HOST_PAGES, |_| ());
    assert!(!is_closed(&mut it));
}
