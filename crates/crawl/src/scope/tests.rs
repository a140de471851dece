//! Every reach, every reason, and seeds.

use super::*;

const SEED: &str = "https://docs.example.co.uk/guide/start.html";

fn scope(rules: ScopeRules) -> Scope {
    let suffixes = Arc::new(SuffixList::parse(page::domain::BUNDLED_TEXT.as_bytes()).unwrap());
    Scope::new(&rules, [SEED], suffixes).unwrap()
}

fn reach(reach: Reach) -> Scope {
    scope(ScopeRules { reach, ..ScopeRules::default() })
}

#[test]
fn each_reach_draws_its_own_line() {
    let cases = [
        // (URL, within host, domain, prefix)
        ("https://docs.example.co.uk/guide/more.html", true, true, true),
        ("https://docs.example.co.uk/other.html", true, true, false),
        ("https://docs.example.co.uk:8443/guide/", false, true, false),
        ("http://docs.example.co.uk/guide/", false, true, false),
        ("https://www.example.co.uk/guide/", false, true, false),
        ("https://example.co.uk/", false, true, false),
        ("https://other.co.uk/", false, false, false),
        ("https://docs.example.co.uk.evil.com/guide/", false, false, false),
    ];
    for (url, host, domain, prefix) in cases {
        assert_eq!(reach(Reach::Host).judge(url, 1).is_ok(), host, "host: {url}");
        assert_eq!(reach(Reach::Domain).judge(url, 1).is_ok(), domain, "domain: {url}");
        assert_eq!(reach(Reach::Prefix).judge(url, 1).is_ok(), prefix, "prefix: {url}");
        assert_eq!(reach(Reach::Any).judge(url, 1), Ok(()), "any: {url}");
    }
}

#[test]
fn every_cut_has_a_code_and_a_sentence() {
    let rules = ScopeRules {
        include: vec!["/guide/".into()],
        exclude: vec!["\\.pdf$".into(), "private".into()],
        ..ScopeRules::default()
    };
    let scope = scope(rules);
    let url = |path: &str| format!("https://docs.example.co.uk{path}");
    let cases = [
        (url("/guide/a.html"), 2, None, ""),
        (url("/guide/private/x"), 1, Some(ReasonCode::Scope), "--exclude \"private\""),
        (url("/guide/a.pdf"), 1, Some(ReasonCode::Scope), "--exclude \"\\\\.pdf$\""),
        (url("/blog/"), 1, Some(ReasonCode::Scope), "no --include"),
        ("https://elsewhere.org/guide/".into(), 1, Some(ReasonCode::Scope), "stays within"),
        (url("/guide/a/a/a/a/"), 1, Some(ReasonCode::Trap), "repeats"),
    ];
    for (url, hops, code, words) in cases {
        let verdict = scope.judge(&url, hops);
        assert_eq!(verdict.err().map(Cut::code), code, "{url}");
        if let Err(cut) = verdict {
            let sentence = scope.explain(cut);
            assert!(sentence.contains(words), "{url}: {sentence}");
        }
    }
}

#[test]
fn a_seed_needs_no_include_and_springs_no_trap() {
    let rules = ScopeRules { include: vec!["nothing".into()], ..ScopeRules::default() };
    assert_eq!(scope(rules).judge("https://docs.example.co.uk/a/a/a/a/a/", 0), Ok(()));
}

#[test]
fn a_rule_that_cannot_be_used_is_named() {
    let suffixes = Arc::new(SuffixList::parse(page::domain::BUNDLED_TEXT.as_bytes()).unwrap());
    for bad in ["(", "a{1000}{1000}{1000}"] {
        let rules = ScopeRules { exclude: vec![bad.into()], ..ScopeRules::default() };
        let refused = Scope::new(&rules, [SEED], suffixes.clone()).unwrap_err();
        assert_eq!(refused.what, "--exclude");
    }
}

#[test]
fn an_expression_that_takes_others_for_ever_is_matched() {
    // An engine that goes back on its steps has two to the power of 3,000 of them to take.
    let nested = scope(ScopeRules { exclude: vec!["/(a+)+$".into()], ..ScopeRules::default() });
    let url = |end: &str| format!("https://docs.example.co.uk/{}{end}", "a".repeat(3_000));
    assert_eq!(nested.judge(&url("b"), 1), Ok(()));
    assert_eq!(nested.judge(&url(""), 1).map_err(Cut::code), Err(ReasonCode::Scope));
}
