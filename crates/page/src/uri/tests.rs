//! The row form against Webindex's own cases and both ways.

use proptest::prelude::*;

use super::*;
use crate::url::Policy;

fn list() -> &'static SuffixList {
    SuffixList::bundled()
}

#[test]
fn rows_of_the_original_are_written_as_it_wrote_them() {
    let cases = [
        ("http://d.com/a/b/c", "com.d>>o>/a/b/c", "http://d.com/a/b/c"),
        ("https://a.b.C.com:8329", "com.c>.b.a>s8329>/", "https://a.b.c.com:8329/"),
        ("https://a.b.com:80", "com.b>.a>s80>/", "https://a.b.com:80/"),
        (
            "https://www.d.com.au:9443/a/bc",
            "au.com.d>.www>s9443>/a/bc",
            "https://www.d.com.au:9443/a/bc",
        ),
        ("http://1.2.3.4/a/b/c", "1.2.3.4>>o>/a/b/c", "http://1.2.3.4/a/b/c"),
        ("Http://example.com  ", "com.example>>o>/", "http://example.com/"),
        (" \thttp://example.com/ \t\n\r\n", "com.example>>o>/", "http://example.com/"),
        ("http://A.B.Com:281/A/b", "com.b>.a>o281>/A/b", "http://a.b.com:281/A/b"),
        ("http://a.B.Com?A/b/C", "com.b>.a>o>?A/b/C", "http://a.b.com?A/b/C"),
        (
            "http://1.2.3.4:80/test?a=b&c=d",
            "1.2.3.4>>o>/test?a=b&c=d",
            "http://1.2.3.4/test?a=b&c=d",
        ),
        ("http://ab.com#1/2/3", "com.ab>>o>#1/2/3", "http://ab.com#1/2/3"),
        ("https://ab.com:8080?1/2/3", "com.ab>>s8080>?1/2/3", "https://ab.com:8080?1/2/3"),
        ("http://ab.com:80/", "com.ab>>o>/", "http://ab.com/"),
        ("https://ab.com:443/", "com.ab>>s>/", "https://ab.com/"),
        ("http://me.blogspot.com/", "com.blogspot.me>>o>/", "http://me.blogspot.com/"),
        (
            "http://a.com/x%3e/../?b&amp;c",
            "com.a>>o>/x%3e/../?b&amp;c",
            "http://a.com/x%3e/../?b&amp;c",
        ),
    ];
    for (input, row, url) in cases {
        let uri = Uri::webindex(input, list()).unwrap_or_else(|e| panic!("{input}: {e}"));
        assert_eq!((uri.to_uri().as_str(), uri.to_url().as_str()), (row, url));
        assert_eq!(Uri::from_uri(row).as_ref(), Ok(&uri), "{row}");
    }
}

#[test]
fn what_the_original_called_invalid_is() {
    let cases = [
        ("ab.com", Invalid::Scheme),
        ("htttp://ab.com/", Invalid::Scheme),
        ("httpss://ab.com/", Invalid::Scheme),
        ("hhttp://ab.com/", Invalid::Scheme),
        ("http:/ab.com/", Invalid::Scheme),
        ("http::/ab.com/", Invalid::Scheme),
        ("http:://ab.com/", Invalid::Scheme),
        ("http:///ab.com/", Invalid::Host),
        ("http://", Invalid::Scheme),
        ("http://a.com:/test/", Invalid::Port),
        ("http://a.com:", Invalid::Port),
        ("http://a.com:80:90/", Invalid::Port),
        ("http://a.com:x/", Invalid::Port),
        ("http://1.2.3/", Invalid::Host),
        ("http://1.2.3:80/test", Invalid::Host),
        ("http://com/", Invalid::Suffix),
        ("http://co.uk", Invalid::Suffix),
        ("http://blogspot.com", Invalid::Suffix),
        ("http://test", Invalid::Suffix),
        ("http://a.b.c.com/bad>et", Invalid::Separator),
        ("http://ab@example.com", Invalid::Host),
        ("http://[::1]/", Invalid::Port),
        ("http://a.com./", Invalid::Host),
        ("http://-a.com/", Invalid::Host),
        ("http://a..com/", Invalid::Host),
        ("ftp://ab.com/", Invalid::Scheme),
        ("127.0.0.1", Invalid::Scheme),
        ("example.com", Invalid::Scheme),
        ("//ab.com/x", Invalid::Scheme),
        ("/relative", Invalid::Scheme),
        ("", Invalid::Scheme),
    ];
    for (input, why) in cases {
        assert_eq!(Uri::webindex(input, list()), Err(why), "{input}");
    }
}

#[test]
fn every_pair_of_the_originals_pages_agrees() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracles/linkindex/5-pages.txt");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("SKIPPED: 5-pages.txt is missing");
        return;
    };
    let mut checked = 0;
    for line in text.lines() {
        let page: serde_json::Value = serde_json::from_str(line).unwrap();
        let links = page["outboundLinks"].as_array().unwrap();
        for pair in std::iter::once(&page).chain(links) {
            let (url, row) = (pair["url"].as_str().unwrap(), pair["uri"].as_str().unwrap());
            let uri = Uri::webindex(url, list()).unwrap();
            assert_eq!((uri.to_uri().as_str(), uri.to_url().as_str()), (row, url));
            assert_eq!(Uri::from_uri(row), Ok(uri));
            checked += 1;
        }
    }
    assert!(checked >= 30, "only {checked} pairs");
}

#[test]
fn any_canonical_url_has_a_row() {
    let cases = [
        ("http://localhost:8080/x", "localhost>>o8080>/x"),
        ("https://[2001:db8::7]:8443/x", "[2001:db8::7]>>s8443>/x"),
        ("http://10.0.0.1/", "10.0.0.1>>o>/"),
        ("https://a.b.internal-name/", "internal-name.b>.a>s>/"),
        ("https://github.io/", "io.github>>s>/"),
        ("http://co.uk/", "uk.co>>o>/"),
        ("http://www.xn--bcher-kva.example/?q=%3E", "example.xn--bcher-kva>.www>o>/?q=%3E"),
    ];
    for (url, row) in cases {
        let uri = Uri::canonical(url, list()).unwrap();
        assert_eq!(uri.to_uri(), row);
        assert_eq!(uri.to_url(), url);
        assert_eq!(Uri::from_uri(row), Ok(uri));
    }
    let odd = Uri::canonical("http://a.com/x>y", list()).unwrap();
    assert_eq!(odd.to_uri(), "com.a>>o>/x%3Ey");
    for bad in
        ["", "a.com", "ftp://a.com/", "http:///", "http://a..b/", "http://a>b/", "http://[>]/"]
    {
        assert!(Uri::canonical(bad, list()).is_err(), "{bad}");
    }
}

#[test]
fn rows_that_this_module_would_not_write_are_refused() {
    for row in [
        "",
        "com.d",
        "com.d>>o",
        "com.d>>o>/>",
        "com.d>>x>/",
        "com.d>>>/",
        "com.d>>o80>/",
        "com.d>>s443>/",
        "com.d>>o+81>/",
        "com.d>>o081>/",
        "com.d>www>o>/",
        "com.d>.>o>/",
        "com.d>.a..b>o>/",
        ">>o>/",
        "com..d>>o>/",
        "com.d>>o>",
        "com.d>>o>x",
        "1.2.3.4>.a>o>/",
        "com.d>é>o>/",
        "3.[>>o>/",
    ] {
        assert_eq!(Uri::from_uri(row), Err(Invalid::Row), "{row}");
    }
}

#[test]
fn rows_of_a_domain_sort_together() {
    let rows: Vec<String> =
        ["http://b.com/", "http://a.b.com/", "https://c.b.com/", "http://ba.com/"]
            .iter()
            .map(|url| Uri::canonical(url, list()).unwrap().to_uri())
            .collect();
    assert!(rows[..3].iter().all(|row| row.starts_with("com.b>")));
    assert!(!rows[3].starts_with("com.b>"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn canonical_urls_survive_the_row(
        host in "([a-z0-9-]{1,4}\\.){0,4}(com|co\\.uk|github\\.io|internal|xn--fiqs8s|kobe\\.jp)|[0-9]{1,9}|\\[::[0-9a-f]{1,4}\\]",
        port in prop::option::of(any::<u16>()),
        rest in "[/?#]?[ -~é]{0,12}",
    ) {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let policy = Policy { keep_fragment: true, ..Policy::NOTHING };
        let Ok(url) = url::canonical(&format!("https://{host}{port}{rest}"), &policy) else {
            return Ok(());
        };
        let uri = Uri::canonical(&url, list()).unwrap();
        prop_assert_eq!(uri.to_url(), url.clone());
        let row = uri.to_uri();
        prop_assert_eq!(Uri::from_uri(&row), Ok(uri));
    }

    #[test]
    fn links_of_the_original_survive_the_row(
        host in "([a-zA-Zé0-9_-]{1,4}\\.){1,4}(com|co\\.uk|公司\\.cn|blogspot\\.com)|[0-9]{1,3}(\\.[0-9]{1,3}){3}",
        port in "(:-?[0-9]{1,6})?",
        rest in "[/?#]?[ -~é]{0,12}",
    ) {
        if let Ok(uri) = Uri::webindex(&format!("http://{host}{port}{rest}"), list()) {
            let (row, url) = (uri.to_uri(), uri.to_url());
            prop_assert_eq!(Uri::from_uri(&row), Ok(uri.clone()));
            prop_assert_eq!(Uri::webindex(&url, list()), Ok(uri));
        }
    }

    #[test]
    fn no_text_makes_reading_a_row_panic(text in "[a.é1]{0,4}>[.aé]{0,4}>[oséx]?[0-9+-]{0,3}>[/?aé]{0,3}|[a-c.>os0-9é/\\[\\]:-]{0,20}") {
        if let Ok(uri) = Uri::from_uri(&text) {
            prop_assert_eq!(uri.to_uri(), text.clone());
        }
        let _ = Uri::canonical(&text, list());
        let _ = Uri::webindex(&text, list());
    }
}
