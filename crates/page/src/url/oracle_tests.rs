//! Test data that others wrote: web-platform-tests, urlcanon, naughty strings.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn oracle(name: &str) -> Option<String> {
    let path = format!("{}/../../../shared/oracles/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        println!("SKIPPED: {name} is missing");
    }
    text
}

/// Inputs where the `url` crate differs from WHATWG: it keeps labels that begin with
/// `xn--` and are no punycode, which WHATWG refuses. DNS does not know such names, so
/// they cost one failed lookup.
const EXPECTED_FAILURES: [&str; 7] = [
    "http://a.b.c.XN--pokxncvks",
    "http://a.b.c.Xn--pokxncvks",
    "http://a.b.c.xn--pokxncvks",
    "http://10.0.0.XN--pokxncvks",
    "http://10.0.0.xN--pokxncvks",
    "http://10.0.0.xn--pokxncvks",
    "https://xn--/",
];

fn http(url: &str) -> bool {
    url.starts_with("http:") || url.starts_with("https:")
}

#[test]
fn web_platform_cases_of_http_urls_pass() {
    let Some(text) = oracle("url/urltestdata.json") else { return };
    let cases: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    let mut failed = BTreeSet::new();
    for case in cases.iter().filter(|case| case.is_object()) {
        let input = case["input"].as_str().unwrap();
        let base = case["base"].as_str();
        let expected = case["href"].as_str();
        let about_http = match expected {
            Some(href) => http(href),
            None => http(input) || base.is_some_and(http),
        };
        if !about_http {
            continue;
        }
        checked += 1;
        if !agrees(input, base, expected) {
            failed.insert(input);
        }
    }
    assert_eq!(failed, BTreeSet::from(EXPECTED_FAILURES));
    println!("{checked} cases");
    assert!(checked >= 440, "only {checked} cases");
}

/// Compares the bare parse, and then the canonical form of both.
fn agrees(input: &str, base: Option<&str>, expected: Option<&str>) -> bool {
    let base_url = base.map(|base| Url::parse(base).unwrap());
    let parsed = parse(base_url.as_ref(), trim(input)).ok();
    let parse_agrees = parsed.as_ref().map(Url::as_str) == expected;
    let policy = Policy::NOTHING;
    let wanted = expected.and_then(|href| canonical(href, &policy).ok());
    let found = match base.filter(|base| http(base)) {
        Some(base) => {
            let mut resolver = Resolver::new(base, &policy).unwrap();
            resolver.resolve(input).ok().map(str::to_owned)
        }
        None => canonical(input, &policy).ok(),
    };
    let has_other_base = base.is_some_and(|base| !http(base));
    parse_agrees && (found == wanted || has_other_base)
}

#[test]
fn odd_spellings_of_addresses_are_one_address() {
    let Some(text) = oracle("url/funky_ipv4.json") else { return };
    let cases: BTreeMap<String, Option<String>> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() >= 47);
    for (spelling, address) in cases {
        let found = canonical(&format!("http://{spelling}/"), &Policy::default()).ok();
        match address {
            Some(address) => assert_eq!(found, Some(format!("http://{address}/")), "{spelling}"),
            // No address; `0000xa` is a name to WHATWG, the others are nothing.
            None => assert!(found.is_none() || spelling == "0000xa", "{spelling}: {found:?}"),
        }
    }
}

#[test]
fn naughty_strings_as_links_stay_harmless_and_stable() {
    let Some(text) = oracle("strings/blns.json") else { return };
    let strings: Vec<String> = serde_json::from_str(&text).unwrap();
    assert!(strings.len() >= 500);
    let policy = Policy::default();
    let mut resolver = Resolver::new("https://example.com/d/page?q", &policy).unwrap();
    for string in strings {
        for href in
            [string.clone(), format!("/{string}"), format!("?{string}"), format!("//{string}")]
        {
            let Ok(url) = resolver.resolve(&href) else { continue };
            assert_eq!(canonical(url, &policy).as_deref(), Ok(url), "{href:?}");
            assert!(url.bytes().all(|byte| byte.is_ascii_graphic()), "{href:?}");
        }
    }
}
