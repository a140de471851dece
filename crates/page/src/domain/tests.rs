//! Registered domains against the public list's own cases and a naive matcher.

use super::*;

fn list() -> &'static SuffixList {
    SuffixList::bundled()
}

#[test]
fn the_bundled_list_parses_and_is_whole() {
    let parsed = SuffixList::parse(BUNDLED_TEXT.as_bytes()).unwrap();
    assert!(parsed.rules.len() > 9_000, "{} names", parsed.rules.len());
    assert!(BUNDLED_TEXT.contains("===END PRIVATE DOMAINS==="));
}

#[test]
fn the_publishers_own_test_file_passes_whole() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracles/url/test_psl.txt");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("SKIPPED: test_psl.txt is missing");
        return;
    };
    let mut checked = 0;
    for line in text.lines().filter(|line| line.starts_with("checkPublicSuffix(")) {
        let inside = line.trim_start_matches("checkPublicSuffix(").trim_end_matches(");");
        let (host, domain) = inside.split_once(", ").unwrap();
        // `null` input cannot be asked in Rust; the empty name stands for it.
        let host = if host == "null" { "" } else { host.trim_matches('\'') };
        let domain = (domain != "null").then(|| domain.trim_matches('\''));
        let answer = list().registered_domain(host).map(str::to_lowercase);
        assert_eq!(answer.as_deref(), domain, "{host}");
        checked += 1;
    }
    assert!(checked >= 77, "only {checked} cases");
}

/// The published algorithm word for word, slow: match every rule, prefer an
/// exception, else the longest; compare labels.
fn naive(rules: &[Vec<String>], host: &str) -> Option<(String, bool)> {
    let labels: Vec<&str> = host.split('.').rev().collect();
    let matches = |rule: &Vec<String>| {
        rule.len() <= labels.len()
            && rule
                .iter()
                .zip(&labels)
                .all(|(want, have)| want == "*" || want.trim_start_matches('!') == *have)
    };
    let mut best: (usize, bool) = (1, false);
    for rule in rules.iter().filter(|rule| matches(rule)) {
        if rule.last().unwrap().starts_with('!') {
            best = (rule.len() - 1, true);
            break;
        }
        if rule.len() >= best.0 {
            best = (rule.len(), true);
        }
    }
    if labels.len() <= best.0 {
        return None;
    }
    let domain: Vec<&str> = labels[..=best.0].iter().rev().copied().collect();
    Some((domain.join("."), best.1))
}

/// Rules by their last two labels, so that the naive matcher sees few.
fn group(labels: &[&str]) -> String {
    match labels {
        [top] => (*top).to_owned(),
        [top, second, ..] if *second == "*" => (*top).to_owned(),
        [top, second, ..] => format!("{top} {}", second.trim_start_matches('!')),
        [] => String::new(),
    }
}

#[test]
fn every_rule_of_the_bundled_list_is_applied_as_the_algorithm_says() {
    let mut groups: HashMap<String, Vec<Vec<String>>> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    for line in BUNDLED_TEXT.lines() {
        let Some(rule) = line.split_whitespace().next() else { continue };
        if !rule.starts_with("//") {
            let labels: Vec<&str> = rule.split('.').rev().collect();
            let owned = labels.iter().map(|label| (*label).to_owned()).collect();
            groups.entry(group(&labels)).or_default().push(owned);
            names.push(rule.replace('!', "").replace('*', "wild"));
        }
    }
    for name in &names {
        let parent = name.split_once('.').map_or("test", |(_, parent)| parent);
        let [deep, deeper] = [format!("a.{name}"), format!("c.b.a.{name}")];
        let [sibling, below] = [format!("z.{parent}"), format!("y.z.{parent}")];
        for host in [name, &deep, &deeper, &sibling, &below] {
            let labels: Vec<&str> = host.split('.').rev().collect();
            let mut rules = groups.get(labels[0]).cloned().unwrap_or_default();
            rules.extend(groups.get(&group(&labels)).cloned().unwrap_or_default());
            let expected = naive(&rules, host);
            let domain = expected.as_ref().map(|(domain, _)| domain.as_str());
            assert_eq!(list().registered_domain(host), domain, "{host}");
            let listed = expected.filter(|(_, listed)| *listed).map(|(domain, _)| domain);
            assert_eq!(list().listed_domain(host), listed.as_deref(), "{host}");
        }
    }
}

#[test]
fn a_wildcard_holds_beside_a_deeper_rule() {
    let list = SuffixList::parse(b"test\n*.test\ndeep.b.test\n").unwrap();
    assert_eq!(list.registered_domain("y.x.b.test"), Some("x.b.test"));
    assert_eq!(list.registered_domain("x.b.test"), Some("x.b.test"));
    assert_eq!(list.registered_domain("b.test"), None);
    assert_eq!(list.registered_domain("x.deep.b.test"), Some("x.deep.b.test"));
}

#[test]
fn private_suffixes_count_and_are_no_domains_themselves() {
    assert_eq!(list().registered_domain("me.github.io"), Some("me.github.io"));
    assert_eq!(list().registered_domain("www.me.github.io"), Some("me.github.io"));
    assert_eq!(list().registered_domain("github.io"), None);
    assert_eq!(list().grouping_domain("github.io"), "github.io");
}

#[test]
fn only_listed_suffixes_satisfy_the_link_index() {
    assert_eq!(list().listed_domain("www.example.com"), Some("example.com"));
    assert_eq!(list().listed_domain("host.internal-name"), None);
    assert_eq!(list().registered_domain("a.host.internal-name"), Some("host.internal-name"));
    assert_eq!(list().listed_domain("co.uk"), None);
    assert_eq!(list().listed_domain("localhost"), None);
}

#[test]
fn addresses_have_no_registered_domain_and_group_alone() {
    for host in ["1.2.3.4", "[::1]", "[2001:db8::7]", "127.0.0.1"] {
        assert!(is_ip(host));
        assert_eq!(list().registered_domain(host), None);
        assert_eq!(list().grouping_domain(host), host);
    }
    assert!(!is_ip("1.2.3.com") && !is_ip("a1") && !is_ip(""));
}

#[test]
fn hosts_that_are_no_names_have_none() {
    for host in ["", ".", "..", "a..com", ".com", "example.com.", "com"] {
        assert_eq!(list().registered_domain(host), None, "{host:?}");
    }
}

#[test]
fn lists_that_are_none_are_refused_with_the_line() {
    assert_eq!(SuffixList::parse(b"// nothing\n\n").unwrap_err(), Error::Empty);
    assert_eq!(SuffixList::parse(b"\xff").unwrap_err(), Error::NotUtf8);
    for bad in ["com\na..b", "com\n!com", "com\n*.*.com", "com\n.com", "com\na.*.b", "com\n*"] {
        assert_eq!(
            SuffixList::parse(bad.as_bytes()).unwrap_err(),
            Error::Rule { line: 2 },
            "{bad}"
        );
    }
    let long = vec![b'\n'; LIST_BYTES_MAX + 1];
    assert_eq!(SuffixList::parse(&long).unwrap_err(), Error::TooLong(long.len()));
}

#[test]
fn a_frozen_list_answers_by_its_own_rules() {
    let old = SuffixList::parse(b"com\n").unwrap();
    assert_eq!(old.registered_domain("me.github.io"), Some("github.io"));
}
