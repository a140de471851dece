//! What each rule closes, for which links, and what survives a restart.

use super::*;
use proptest::prelude::*;
use std::time::Instant;

pub(super) const SMALL: BudgetLimits = BudgetLimits {
    tallies_max: 10_000,
    stale_documents: 10,
    deep_documents: 300,
    alike_documents: 400,
    deep_hops: 20,
    combined_documents: 10,
    suspects_max: 10,
    stale_hosts: 20,
    hosts_max: 100,
    lists_max: 10,
    list_bytes_max: 1_000,
    saved_documents: 5,
};

pub(super) fn budgets(limits: BudgetLimits) -> Budgets {
    Budgets::new(limits, Arc::new(SuffixList::bundled().clone()))
}

/// A text by a number: each is like none other.
pub(super) fn news(number: u64) -> ContentDigest<'static> {
    let simhash = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    ContentDigest::Words { text: "", hash: page::ids::hash128(&number.to_le_bytes()), simhash }
}

/// A text by a number: the same words, and far from those before it.
fn alike(number: u64) -> ContentDigest<'static> {
    let ContentDigest::Words { hash, simhash, .. } = news(number) else {
        unreachable!("news are words")
    };
    ContentDigest::Words {
        text: "nothing is planned for today, come back another day",
        hash,
        simhash,
    }
}

fn see(budgets: &mut Budgets, url: &str, hops: i64, content: ContentDigest<'_>) -> Novelty {
    let seen = FetchedDocument {
        job: JOB,
        part: PART,
        bin: bin(url),
        url,
        dochash: DocHash::of(url),
        hops,
        content,
        look: LookKind::First,
        host_pages: NO_LIMIT,
        is_named_elsewhere: false,
    };
    budgets.fetched(&seen)
}

fn judge(budgets: &mut Budgets, url: &str, from: Option<Novelty>) -> Option<BudgetRule> {
    judge_at(budgets, url, 3, from)
}

fn judge_at(
    budgets: &mut Budgets,
    url: &str,
    hops: i64,
    from: Option<Novelty>,
) -> Option<BudgetRule> {
    budgets.judge(&link(url, hops, from)).map(|closed| closed.rule)
}

fn link(url: &str, hops: i64, from: Option<Novelty>) -> CandidateLink<'_> {
    let (bin, dochash, host_pages) = (bin(url), DocHash::of(url), NO_LIMIT);
    CandidateLink { job: JOB, bin, url, dochash, hops, from, host_pages, list_depth: 0 }
}

const FRESH: Option<Novelty> = Some(Novelty::Fresh);
const ALIKE: Option<Novelty> = Some(Novelty::Alike);
const STALE: Option<Novelty> = Some(Novelty::Stale);

#[test]
fn a_stale_pattern_is_closed_for_everybody_but_seeds() {
    let mut it = budgets(SMALL);
    see(&mut it, "http://a.example/", 0, ContentDigest::Nothing);
    for number in 0..10 {
        assert_eq!(judge(&mut it, "http://a.example/x/99", FRESH), None);
        see(&mut it, &format!("http://a.example/x/{number}"), 1, ContentDigest::Nothing);
    }
    for from in [None, FRESH, ALIKE, STALE] {
        assert_eq!(
            judge(&mut it, "http://a.example/x/99", from),
            Some(BudgetRule::Stale),
            "{from:?}"
        );
    }
    assert_eq!(judge_at(&mut it, "http://a.example/x/99", 0, None), None, "a seed");
    assert_eq!(judge(&mut it, "http://a.example/y/99", FRESH), None, "another pattern");
    assert_eq!(judge(&mut it, "http://b.example/x/99", FRESH), None, "another host");
    let url = "http://a.example/x/99";
    let link = CandidateLink { job: JobId(9), ..link(url, 3, FRESH) };
    assert_eq!(it.judge(&link), None, "another job");
}

#[test]
fn pages_that_are_alike_may_not_name_more_and_others_may() {
    let mut it = budgets(SMALL);
    for number in 0..399 {
        see(&mut it, &format!("http://a.example/x/{number}"), 1, alike(number));
        assert_eq!(judge(&mut it, "http://a.example/x/99", ALIKE), None);
    }
    assert_eq!(see(&mut it, "http://a.example/x/399", 1, alike(399)), Novelty::Alike);
    assert_eq!(judge(&mut it, "http://a.example/x/99", ALIKE), Some(BudgetRule::Alike));
    assert_eq!(judge(&mut it, "http://a.example/x/99", FRESH), None);
    assert_eq!(judge(&mut it, "http://a.example/x/99", None), None, "who named it is not known");
    let text = "a page with something to say about green lamps made of glass and brass";
    let content = ContentDigest::Words { text, hash: [1; 16], simhash: 1 };
    assert_eq!(see(&mut it, "http://a.example/x/400", 1, content), Novelty::Alike, "one of many");
    assert_eq!(see(&mut it, "http://a.example/other", 1, content), Novelty::Stale, "its double");
}

#[test]
fn far_from_every_seed_they_may_not_sooner() {
    let mut it = budgets(SMALL);
    for number in 0..300 {
        see(&mut it, &format!("http://a.example/x/{number}"), 21, alike(number));
    }
    assert_eq!(judge_at(&mut it, "http://a.example/x/99", 21, ALIKE), Some(BudgetRule::Deep));
    assert_eq!(judge_at(&mut it, "http://a.example/x/99", 20, ALIKE), None, "a near one");
    assert_eq!(judge_at(&mut it, "http://a.example/x/99", 21, FRESH), None);
}

#[test]
fn combined_parameters_are_closed_and_few_are_not() {
    let mut it = budgets(SMALL);
    for number in 0..10 {
        let url = format!("http://a.example/list?a={}&b=1&c={}", number % 2, number / 2 % 2);
        see(&mut it, &url, 1, news(number));
    }
    assert_eq!(judge(&mut it, "http://a.example/list?a=1&b=1&d=1", FRESH), None, "explained");
    for number in 10..20 {
        see(&mut it, "http://a.example/list?a=1&b=1&c=1", 1, news(number));
    }
    assert_eq!(
        judge(&mut it, "http://a.example/list?a=1&b=1&d=1", FRESH),
        Some(BudgetRule::Combinations)
    );
    assert_eq!(judge(&mut it, "http://a.example/list?a=1&d=1", FRESH), None);
    assert_eq!(judge(&mut it, "http://a.example/list", FRESH), None);
}

#[test]
fn a_good_pattern_is_spared_when_its_family_closes() {
    let mut it = budgets(SMALL);
    for number in 0..25 {
        see(&mut it, &format!("http://a.example/index.php?id={number}"), 1, news(number));
    }
    for number in 0..2_000 {
        let url = format!("http://a.example/index.php?id=7&{}=1", ["ab", "cd", "ef"][number % 3]);
        see(&mut it, &url, 1, ContentDigest::Nothing);
    }
    assert_eq!(judge(&mut it, "http://a.example/index.php?new=1", FRESH), Some(BudgetRule::Stale));
    assert_eq!(judge(&mut it, "http://a.example/index.php?id=99", FRESH), None);
}

#[test]
fn pages_without_news_lose_the_right_to_name_others_and_good_ones_do_not() {
    let mut it = budgets(SMALL);
    see(&mut it, "http://a.example/", 0, ContentDigest::Nothing);
    let name = |n: usize| {
        format!(
            "http://a.example/{}",
            ["w", "x", "y", "z"].map(|c| c.repeat(n % 7 + 1)).concat() + &"q".repeat(n)
        )
    };
    for number in 0..10 {
        assert_eq!(judge(&mut it, &name(number), STALE), None, "{number}");
        assert_eq!(see(&mut it, &name(number), 1, ContentDigest::Nothing), Novelty::Stale);
        assert_eq!(judge(&mut it, &name(100 + number), STALE).is_none(), number < 9, "queued");
    }
    assert_eq!(judge(&mut it, &name(50), STALE), Some(BudgetRule::Suspects));
    assert_eq!(judge(&mut it, &name(50), FRESH), None, "a page with news names it");
    assert_eq!(
        judge(&mut it, &name(101), None),
        Some(BudgetRule::Suspects),
        "in the queue since before"
    );
    assert_eq!(judge(&mut it, &name(51), None), None, "in the queue by somebody else");
    for number in 0..20 {
        see(&mut it, &format!("http://a.example/good/{number}"), 1, news(number));
    }
    assert_eq!(judge(&mut it, "http://a.example/good/99", STALE), None, "a proven pattern");
}

#[test]
fn hosts_of_a_domain_are_limited_by_what_they_say_and_by_number() {
    let host = |n: usize| format!("http://h{n}.site.org/");
    let mut it = budgets(SMALL);
    for number in 0..40 {
        see(&mut it, &host(number), 1, ContentDigest::Nothing);
    }
    assert_eq!(judge(&mut it, &host(99), FRESH), Some(BudgetRule::StaleHosts));
    assert_eq!(judge(&mut it, "http://h3.site.org/new", FRESH), None, "a host that is known");
    assert_eq!(judge(&mut it, "http://h3.site.net/", FRESH), None, "another domain");
    let mut it = budgets(SMALL);
    for number in 0..110 {
        see(&mut it, &host(number), 1, news(number as u64));
    }
    assert_eq!(judge(&mut it, &host(999), FRESH), Some(BudgetRule::Hosts));
    assert_eq!(judge(&mut it, "http://h3.site.org/new", FRESH), None);
}

#[test]
fn what_was_fetched_before_is_no_evidence() {
    let mut it = budgets(SMALL);
    let text = "the same as ever";
    let content = ContentDigest::Words { text: "", hash: text_hash(text), simhash: simhash(text) };
    let looks = [(LookKind::Changed, Novelty::Fresh), (LookKind::Same, Novelty::Stale)];
    for (look, novelty) in looks.into_iter().cycle().take(100) {
        let url = "http://a.example/news/1";
        let seen = FetchedDocument {
            job: JOB,
            part: PART,
            bin: bin(url),
            url,
            dochash: DocHash::of(url),
            hops: 1,
            content,
            look,
            host_pages: NO_LIMIT,
            is_named_elsewhere: false,
        };
        assert_eq!(it.fetched(&seen), novelty);
    }
    assert_eq!(judge(&mut it, "http://a.example/news/2", FRESH), None);
    assert_eq!(it.take_changed(PART), []);
    assert_eq!(
        see(&mut it, "http://a.example/news/1/print", 1, content),
        Novelty::Stale,
        "a double"
    );
}

#[test]
fn what_facts_say_is_told_apart() {
    let facts = |media_type: &str, text: &str| page::facts::Facts {
        media_type: media_type.into(),
        text: text.into(),
        content_hash: [3; 16],
        text_hash: [4; 16],
        simhash: 5,
        ..page::facts::Facts::default()
    };
    let words = ContentDigest::Words { text: "words", hash: [4; 16], simhash: 5 };
    assert_eq!(ContentDigest::of(&facts("text/html", "words")), words);
    assert_eq!(ContentDigest::of(&facts("text/html", "")), ContentDigest::Nothing);
    assert_eq!(ContentDigest::of(&facts("application/xhtml+xml", "")), ContentDigest::Nothing);
    assert_eq!(ContentDigest::of(&facts("text/plain", "words")), words);
    for file in ["application/pdf", "image/png", "application/xml", "application/rss+xml", ""] {
        assert_eq!(ContentDigest::of(&facts(file, "")), ContentDigest::Bytes([3; 16]), "{file}");
    }
}

#[test]
fn files_that_are_not_read_are_stale_only_as_doubles() {
    let mut it = budgets(SMALL);
    for number in 0..1_000u32 {
        let content = ContentDigest::Bytes(page::ids::hash128(&number.to_le_bytes()));
        let novelty = see(&mut it, &format!("http://a.example/file/{number}.pdf"), 1, content);
        assert_eq!(novelty, Novelty::Fresh);
    }
    assert_eq!(judge(&mut it, "http://a.example/file/5000.pdf", FRESH), None);
}

#[test]
fn only_what_changed_is_taken_and_only_of_the_part() {
    let mut it = budgets(SMALL);
    for number in 0..4 {
        see(&mut it, &format!("http://a.example/x/{number}"), 1, news(number));
    }
    assert_eq!(it.take_changed(PART), [], "too few to be saved");
    see(&mut it, "http://a.example/x/4", 1, news(4));
    assert_eq!(it.take_changed(Part(8)), []);
    let mut names: Vec<String> = it.take_changed(PART).into_iter().map(|row| row.pattern).collect();
    names.sort();
    assert_eq!(names, ["*.a.example", "a.example/*", "a.example/x/#"]);
    assert_eq!(it.take_changed(PART), [], "nothing has changed since");
    it.forget(PART);
    assert_eq!(it.tallies(), 0);
}

#[test]
fn ever_new_patterns_do_not_push_out_a_large_one() {
    let mut it = budgets(BudgetLimits { tallies_max: 100, ..SMALL });
    see(&mut it, "http://a.example/", 0, ContentDigest::Nothing);
    for number in 0..20 {
        see(&mut it, &format!("http://a.example/x/{number}"), 1, ContentDigest::Nothing);
    }
    let letters = |mut n: u64| {
        let mut name = String::new();
        while n > 0 {
            name.push(char::from(b'a' + (n % 26) as u8));
            n /= 26;
        }
        name
    };
    for number in 0..10_000 {
        see(&mut it, &format!("http://a.example/wiki/{}", letters(number)), 1, news(number));
        assert!(it.tallies() <= 100);
    }
    assert_eq!(judge(&mut it, "http://a.example/x/99", FRESH), Some(BudgetRule::Stale));
}

/// URLs of a few patterns, hosts and families.
fn url(number: u32) -> String {
    let (host, rest) = (number % 2, number / 2);
    match rest % 5 {
        0 => format!("http://h{host}.site.org/x/{rest}"),
        1 => format!("http://h{host}.site.org/y/{rest}/z"),
        2 => format!("http://h{host}.site.org/list?a={}&b=1&c={}", rest % 3, rest % 2),
        3 => format!("http://h{host}.site.org/list?id={rest}"),
        _ => format!("http://h{host}.site.org/cal/{rest}/{}", rest % 9),
    }
}

proptest! {
    #[test]
    fn what_is_saved_and_restored_gives_the_same_verdicts(
        pages in proptest::collection::vec((0..2_000u32, 0..40i64, 0..4u64), 100..600),
        links in proptest::collection::vec((0..2_000u32, 1..40i64, 0..4usize), 100),
    ) {
        let mut it = budgets(SMALL);
        let mut saved: std::collections::BTreeMap<(BinId, String), TrapRow> = Default::default();
        for (index, (number, hops, content)) in pages.iter().enumerate() {
            let content = match content {
                0 => ContentDigest::Nothing,
                1 => ContentDigest::Words { text: "", hash: [7; 16], simhash: 7 },
                2 => ContentDigest::Words { text: "", hash: page::ids::hash128(&number.to_le_bytes()), simhash: 0x1f },
                _ => news(u64::from(*number)),
            };
            let from = see(&mut it, &url(*number), *hops, content);
            judge_at(&mut it, &url(number + 1), hops + 1, Some(from));
            if index % 97 == 0 || index + 1 == pages.len() {
                let rows = it.take_changed(PART).into_iter();
                saved.extend(rows.map(|row| ((row.bin, row.pattern.clone()), row)));
            }
        }
        let rows: Vec<TrapRow> = saved.into_values().collect();
        let mut restored = budgets(SMALL);
        restored.restore(PART, &rows);
        prop_assert_eq!(restored.take_changed(PART), vec![], "what is restored is saved already");
        for (number, hops, from) in links {
            let (url, from) = (url(number), [None, FRESH, ALIKE, STALE][from]);
            if rows.iter().any(|row| row.pattern == pattern(&url)) && from.is_some() {
                let before = judge_at(&mut it, &url, hops, from);
                prop_assert_eq!(before, judge_at(&mut restored, &url, hops, from), "{}", url);
            }
        }
    }
}

#[test]
fn what_it_costs() {
    let mut it = budgets(BudgetLimits::default());
    let urls: Vec<String> = (0..20_000).map(url).collect();
    let bins: Vec<BinId> = urls.iter().map(|url| bin(url)).collect();
    let count = urls.len() as u128;
    let start = Instant::now();
    for (number, (url, bin)) in (0..).zip(urls.iter().zip(&bins)) {
        let content = news(number);
        it.fetched(&FetchedDocument {
            job: JOB,
            part: PART,
            bin: *bin,
            url,
            dochash: DocHash::of(url),
            hops: 1,
            content,
            look: LookKind::First,
            host_pages: NO_LIMIT,
            is_named_elsewhere: false,
        });
    }
    println!("fetched: {} ns", start.elapsed().as_nanos() / count);
    for from in [FRESH, STALE, None] {
        let start = Instant::now();
        for (url, bin) in urls.iter().zip(&bins) {
            it.judge(&CandidateLink { bin: *bin, ..link(url, 2, from) });
        }
        println!("judge from {from:?}: {} ns", start.elapsed().as_nanos() / count);
    }
}
