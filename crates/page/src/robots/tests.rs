//! Limits, delays, sitemaps, reported rules, the meaning of answers.

use super::answer::{
    CACHE_MS_MAX, RobotsDecision, RobotsFetch, UNREACHABLE_MS_MAX, good_for_ms, on_status,
};
use super::*;

#[test]
fn the_deciding_line_is_told() {
    let robots = Robots::parse(
        b"User-agent: *\nDisallow: /b\n\nUser-Agent: FooBot/2\n  disalow :  /a  # why\nAllow: /a/*.html$\n",
    );
    let verdict = robots.verdict("foobot", "https://a.example/a/x");
    assert!(!verdict.allowed);
    let rule = verdict.rule.unwrap();
    assert_eq!((rule.line, rule.agent, rule.kind), (5, "FooBot", RuleKind::Disallow));
    assert_eq!(rule.text, "disalow :  /a");
    let rule = robots.verdict("foobot", "https://a.example/a/x.html").rule.unwrap();
    assert_eq!((rule.line, rule.kind), (6, RuleKind::Allow));
    assert_eq!(robots.verdict("other", "/b").rule.unwrap().agent, "*");
    assert_eq!(robots.verdict("other", "/a"), Verdict { allowed: true, rule: None });
}

#[test]
fn bytes_that_are_no_utf8_are_shown_with_replacement_characters() {
    let robots = Robots::parse(b"User-agent: *\nDisallow: /\xff\xfe\n");
    assert_eq!(robots.verdict("x", "/%FF%FE").rule.unwrap().text, "Disallow: /\u{fffd}\u{fffd}");
}

#[test]
fn of_equal_rules_the_first_line_is_told() {
    let robots = Robots::parse(b"User-agent: *\nDisallow: /a\nDisallow: /*\n");
    assert_eq!(robots.verdict("x", "/a").rule.unwrap().line, 2);
}

#[test]
fn manifoldcf_agrees_on_what_matches() {
    let matches = |pattern: &str| {
        let file = format!("User-agent: *\nDisallow: {pattern}\n");
        !Robots::parse(file.as_bytes()).verdict("x", "/folder/doc1.pdf").allowed
    };
    for pattern in ["/folder/doc1.pdf", "/folder/*", "/", "/folder/"] {
        assert!(matches(pattern), "{pattern}");
    }
    assert!(!matches("folder/doc1.pdf"));
    let record = b"User-agent: *\nDisallow: /\nAllow: folder/\nAllow: folder/doc1.pdf\n";
    assert!(!Robots::parse(record).verdict("x", "/folder/doc1.pdf").allowed);
}

/// A file whose bytes before `tail` are `length` bytes of comment lines.
fn padded(length: usize, tail: &str) -> Vec<u8> {
    let mut file = b"User-agent: *\n".to_vec();
    while file.len() + 100 < length {
        file.extend([&[b'#'; 79][..], b"\n"].concat());
    }
    file.resize(length - 1, b'#');
    file.push(b'\n');
    file.extend(tail.as_bytes());
    file
}

#[test]
fn a_rule_just_before_byte_512_000_counts_and_one_just_after_does_not() {
    let rule = "Disallow: /x";
    let blocks = |file: &[u8]| !Robots::parse(file).verdict("a", "/x").allowed;
    assert!(blocks(&padded(BODY_BYTES_MAX - rule.len(), rule)));
    assert!(blocks(&padded(BODY_BYTES_MAX - rule.len(), "Disallow: /x\nAllow: /x\n")));
    assert!(!blocks(&padded(BODY_BYTES_MAX, rule)));
    // A rule that straddles the limit is no rule.
    let cut = padded(BODY_BYTES_MAX - rule.len() + 1, "Disallow: /xyz\n");
    assert!(!blocks(&cut));
    assert!(!blocks(&padded(BODY_BYTES_MAX - 11, "Disallow: /x")));
}

#[test]
fn one_endless_line_is_nothing() {
    let file = vec![b'a'; BODY_BYTES_MAX * 2];
    assert!(Robots::parse(&file).verdict("a", "/x").allowed);
}

#[test]
fn crawl_delays_are_per_group_and_may_be_fractions() {
    let robots = Robots::parse(
        b"User-agent: *\nCrawl-delay: 10\nDisallow: /a\n\nUser-agent: Foo\nUser-agent: Bar\ncrawl-delay: 0.5\n\
          User-agent: Baz\nCrawl-delay : 2.0001\nUser-agent: Qux\nDisallow: /\nUser-agent: Foo\nCrawl-Delay: 0.25\n",
    );
    for (agent, expected) in [
        ("someone", Some(10_000)),
        ("foo", Some(500)),
        ("Bar", Some(500)),
        ("Baz", Some(2_001)),
        ("Qux", None),
    ] {
        assert_eq!(robots.crawl_delay_ms(agent), expected, "{agent}");
    }
}

#[test]
fn a_crawl_delay_that_is_no_number_is_none() {
    let delay = |value: &str| {
        let file = format!("User-agent: *\nCrawl-delay: {value}\n");
        Robots::parse(file.as_bytes()).crawl_delay_ms("x")
    };
    for bad in ["", "-1", "ten", "1e9", "inf", "NaN", ".", "1.2.3", "1,5", "0x10"] {
        assert_eq!(delay(bad), None, "{bad}");
    }
    assert_eq!(delay("0"), Some(0));
    assert_eq!(delay(".5"), Some(500));
    assert_eq!(delay("3."), Some(3_000));
    assert_eq!(delay(&"9".repeat(400)), Some(CRAWL_DELAY_MS_MAX));
}

#[test]
fn sitemaps_are_listed_wherever_they_stand() {
    let robots = Robots::parse(
        b"Sitemap: https://a.example/1.xml\nUser-agent: x\nsite-map: /2.xml\nDisallow: /\nSITEMAP:https://a.example/3.xml#f\nSitemap:\n",
    );
    let found: Vec<&str> = robots.sitemaps().collect();
    assert_eq!(found, ["https://a.example/1.xml", "/2.xml", "https://a.example/3.xml"]);
}

#[test]
fn no_file_allows_everything_and_no_answer_nothing() {
    assert!(Robots::allow_all().verdict("x", "/a").allowed);
    assert_eq!(
        Robots::disallow_all().verdict("x", "/robots.txt"),
        Verdict { allowed: false, rule: None }
    );
}

#[test]
fn hostile_patterns_cost_no_more_than_their_length() {
    // Backtracking would need longer than the universe has for these.
    let stars = "/".to_owned() + &"a*".repeat(8_000) + "b";
    let path = "/".to_owned() + &"a".repeat(60_000);
    let file = format!("User-agent: *\nDisallow: {stars}\n").repeat(30);
    assert!(Robots::parse(file.as_bytes()).verdict("x", &path).allowed);
    let many = "User-agent: *\n".to_owned() + &"Disallow:/*b\n".repeat(39_000);
    assert!(Robots::parse(many.as_bytes()).verdict("x", &path).allowed);
    let long =
        "User-agent: *\n".to_owned() + &format!("Disallow:/*{}b\n", "a".repeat(4_000)).repeat(120);
    assert!(Robots::parse(long.as_bytes()).verdict("x", &path).allowed);
}

#[test]
fn an_overlong_url_is_judged_by_its_beginning() {
    let robots = Robots::parse(b"User-agent: *\nDisallow: /x\nAllow: /x*a$\n");
    let path = "/x".to_owned() + &"a".repeat(1 << 20);
    assert!(!robots.verdict("x", &path).allowed);
    assert!(robots.verdict("x", "/xa").allowed);
}

fn decide(
    status: Option<u16>,
    last_good_age_ms: Option<i64>,
    unreachable_for_ms: i64,
) -> RobotsDecision {
    on_status(RobotsFetch { status, last_good_age_ms, unreachable_for_ms, redirects: 0 })
}

#[test]
fn every_status_has_its_meaning() {
    for status in 100..=999 {
        let expected = match status {
            200..=299 => RobotsDecision::Parse,
            304 => RobotsDecision::DisallowAll,
            300..=399 => RobotsDecision::Follow,
            429 => RobotsDecision::DisallowAll,
            400..=499 => RobotsDecision::AllowAll,
            _ => RobotsDecision::DisallowAll,
        };
        assert_eq!(decide(Some(status), None, 0), expected, "{status}");
    }
    assert_eq!(decide(None, None, 0), RobotsDecision::DisallowAll);
}

#[test]
fn trouble_keeps_the_last_copy_and_opens_the_host_only_after_thirty_days() {
    for status in [Some(500), Some(503), Some(429), None] {
        assert_eq!(decide(status, Some(1), 0), RobotsDecision::KeepLast);
        assert_eq!(decide(status, Some(1), UNREACHABLE_MS_MAX - 1), RobotsDecision::KeepLast);
        assert_eq!(decide(status, None, UNREACHABLE_MS_MAX - 1), RobotsDecision::DisallowAll);
        assert_eq!(decide(status, Some(1), UNREACHABLE_MS_MAX), RobotsDecision::AllowAll);
        assert_eq!(decide(status, None, UNREACHABLE_MS_MAX), RobotsDecision::AllowAll);
    }
    // "Not modified" is an answer, however long the trouble before it was.
    assert_eq!(decide(Some(304), Some(1), UNREACHABLE_MS_MAX), RobotsDecision::KeepLast);
}

#[test]
fn the_sixth_redirect_is_not_followed() {
    let hop = |redirects| {
        on_status(RobotsFetch { status: Some(301), redirects, ..RobotsFetch::default() })
    };
    assert_eq!(hop(4), RobotsDecision::Follow);
    assert_eq!(hop(5), RobotsDecision::AllowAll);
}

#[test]
fn copies_are_good_for_a_day_at_most_and_failures_are_retried_ever_more_rarely() {
    let ok = RobotsFetch { status: Some(200), ..RobotsFetch::default() };
    assert_eq!(good_for_ms(ok, None), CACHE_MS_MAX);
    assert_eq!(good_for_ms(ok, Some(i64::MAX)), CACHE_MS_MAX);
    assert_eq!(good_for_ms(ok, Some(3_600_000)), 3_600_000);
    assert_eq!(good_for_ms(ok, Some(-5)), 600_000);
    let failed = |unreachable_for_ms| RobotsFetch { status: Some(503), unreachable_for_ms, ..ok };
    assert_eq!(good_for_ms(failed(0), Some(5)), 600_000);
    assert_eq!(good_for_ms(failed(7_200_000), None), 7_200_000);
    assert_eq!(good_for_ms(failed(UNREACHABLE_MS_MAX), None), CACHE_MS_MAX);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_robots_txt(body: Vec<u8>, agent: String, url: String) {
        let robots = Robots::parse(&body);
        robots.verdict(&agent, &url);
        robots.crawl_delay_ms(&agent);
    }

    #[test]
    fn matching_agrees_with_the_plain_definition(
        pattern in "[/ab*$]{0,12}",
        path in "/[ab$]{0,12}",
    ) {
        let found = Pattern::new(pattern.as_bytes()).matches(&Path::of(&path)).is_some();
        proptest::prop_assert_eq!(found, plainly_matches(pattern.as_bytes(), path.as_bytes()));
    }
}

/// The definition, by brute force: right, but exponential.
fn plainly_matches(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => true,
        b"$" => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|at| plainly_matches(rest, &path[at..])),
        [byte, rest @ ..] => path.first() == Some(byte) && plainly_matches(rest, &path[1..]),
    }
}

#[test]
fn a_disallow_holds_however_its_letters_are_written_and_an_allow_as_it_is_written() {
    let robots =
        Robots::parse(b"User-agent: *\nDisallow: /%73ecret\nDisallow: /a%2Fb\nDisallow: /p%7e");
    for (url, allowed) in [
        ("http://a.example/secret", false),
        ("http://a.example/%73ecret/x", false),
        ("http://a.example/se%63ret", false),
        ("http://a.example/a%2Fb", false),
        ("http://a.example/a/b", true),
        ("http://a.example/p~x", false),
        ("http://a.example/public", true),
    ] {
        assert_eq!(robots.verdict("Driftline", url).allowed, allowed, "{url}");
    }
    let robots = Robots::parse(b"User-agent: *\nDisallow: /\nAllow: /%62%61%7A");
    assert!(!robots.verdict("Driftline", "http://a.example/baz").allowed, "as Google does");
    assert!(robots.verdict("Driftline", "http://a.example/%62%61%7A").allowed);
}
