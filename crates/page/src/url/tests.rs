//! Policies, odd spellings, and the two properties: idempotent, and one answer on both paths.

use proptest::prelude::*;

use super::*;

fn clean(input: &str) -> Result<String, UrlRefusal> {
    canonical(input, &Policy::default())
}

fn resolve(base: &str, href: &str, policy: &Policy) -> Result<String, UrlRefusal> {
    Resolver::new(base, policy)?.resolve(href).map(str::to_owned)
}

#[test]
fn what_is_always_done_to_a_url() {
    let cases = [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com./a", "http://example.com/a"),
        ("http://localhost.:8080/", "http://localhost:8080/"),
        ("http://user:secret@example.com/", "http://example.com/"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/%7euser/%2fx%c3%a9", "http://example.com/~user/%2Fx%C3%A9"),
        ("http://example.com/é?é", "http://example.com/%C3%A9?%C3%A9"),
        ("http://example.com/a%2e%2E/%2e%2e/b", "http://example.com/b"),
        ("http://example.com/?", "http://example.com/"),
        ("http://example.com?a", "http://example.com/?a"),
        ("http://example.com/#f", "http://example.com/"),
        ("http://example.com/?a=%3d%3D", "http://example.com/?a=%3D%3D"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[0:0::1]:80/", "http://[::1]/"),
        ("  http://example.com/a\tb\r\n ", "http://example.com/ab"),
        ("http:\\\\example.com\\a", "http://example.com/a"),
        ("http:example.com", "http://example.com/"),
        ("http://example.com/a b>c\"", "http://example.com/a%20b%3Ec%22"),
        ("http://example.com/\0x\0", "http://example.com/%00x"),
        ("http://example.com//a//", "http://example.com//a//"),
    ];
    for (input, expected) in cases {
        assert_eq!(clean(input).as_deref(), Ok(expected), "{input:?}");
    }
}

#[test]
fn what_is_no_crawlable_url_is_refused_with_its_reason() {
    let long_label = format!("http://{}.com/", "a".repeat(64));
    let long_host = format!("http://{}com/", "a.".repeat(130));
    let cases = [
        ("", UrlRefusal::Syntax),
        ("/relative", UrlRefusal::Syntax),
        ("example.com", UrlRefusal::Syntax),
        ("ftp://example.com/", UrlRefusal::Scheme),
        ("javascript:alert(1)", UrlRefusal::Scheme),
        ("data:text/html,x", UrlRefusal::Scheme),
        ("mailto:a@b.c", UrlRefusal::Scheme),
        ("java\nscript:alert(1)", UrlRefusal::Scheme),
        ("http://", UrlRefusal::Host),
        ("http://./", UrlRefusal::Host),
        ("http://a..b/", UrlRefusal::Host),
        ("http://a../", UrlRefusal::Host),
        ("http://256.256.256.256/", UrlRefusal::Host),
        ("http://[::g]/", UrlRefusal::Host),
        ("http://a b/", UrlRefusal::Host),
        ("http://a\0b/", UrlRefusal::Host),
        ("http://example.com:99999/", UrlRefusal::Syntax),
        (&long_label, UrlRefusal::Host),
        (&long_host, UrlRefusal::Host),
    ];
    for (input, expected) in cases {
        assert_eq!(clean(input), Err(expected), "{input:?}");
    }
}

#[test]
fn the_limit_is_on_what_is_kept() {
    let prefix = "http://a.com/";
    let fits = format!("{prefix}{}", "x".repeat(URL_BYTES_MAX - prefix.len()));
    assert_eq!(clean(&fits).as_deref(), Ok(fits.as_str()));
    assert_eq!(clean(&format!("{fits}x")), Err(UrlRefusal::TooLong));
    assert_eq!(clean(&format!("{fits}?gclid=1#frag")).as_deref(), Ok(fits.as_str()));
    // Escaping makes it longer.
    assert_eq!(clean(&format!("{prefix}{}", "é".repeat(1_000))), Err(UrlRefusal::TooLong));
    assert_eq!(clean(&format!("{prefix}{}", " x".repeat(1 << 20))), Err(UrlRefusal::TooLong));
    assert_eq!(clean(&format!("data:{}", "x".repeat(1 << 20))), Err(UrlRefusal::Scheme));
    let mut resolver = Resolver::new(prefix, &Policy::default()).unwrap();
    assert_eq!(resolver.resolve(&"x".repeat(1 << 20)), Err(UrlRefusal::TooLong));
    assert_eq!(resolver.resolve(&"x".repeat(URL_BYTES_MAX)), Err(UrlRefusal::TooLong));
    assert_eq!(resolver.resolve(&format!("data:{}", "x".repeat(1 << 20))), Err(UrlRefusal::Scheme));
    assert_eq!(resolver.resolve("y"), Ok("http://a.com/y"));
}

#[test]
fn policies_take_away_what_they_say() {
    let nothing = Policy::NOTHING;
    let sessions = Policy { drop_session_ids: true, ..nothing };
    let broadvision = Policy { drop_broadvision: true, ..nothing };
    let tracking = Policy { drop_tracking: true, ..nothing };
    let sort = Policy { sort_query: true, ..nothing };
    let lower = Policy { lower_case_path: true, ..nothing };
    let fragment = Policy { keep_fragment: true, ..nothing };
    let random = "0123456789abcdef0123456789abcdef";
    let with_sid = format!("/?sid={random}");
    let cases = [
        (
            nothing,
            "/a;jsessionid=1?PHPSESSID=2&utm_source=3",
            "/a;jsessionid=1?PHPSESSID=2&utm_source=3",
        ),
        (sessions, "/a?PHPSESSID=1&b=2", "/a?b=2"),
        (sessions, "/a?b=2&phpsessid=1", "/a?b=2"),
        (sessions, "/a?%50HPSESSID=1", "/a"),
        (sessions, "/a?PHPSESSIDX=1", "/a?PHPSESSIDX=1"),
        (sessions, "/a;jsessionid=AB.c1?x=1", "/a?x=1"),
        (sessions, "/a;JSESSIONID=AB/b;v=1;jsessionid=2;w=3", "/a/b;v=1;w=3"),
        (sessions, "/a/..;jsessionid=1/b", "/b"),
        (sessions, "/a/b/..;jsessionid=1", "/a/"),
        (sessions, "/;jsessionid=1", "/"),
        (sessions, "/?jsessionid=1", "/"),
        (sessions, "/x?ASPSESSIONIDQQABCD=AB&y", "/x?y"),
        (sessions, "/x?CFID=1&CFTOKEN=2&z=3", "/x?z=3"),
        (sessions, &with_sid, "/"),
        (sessions, "/article.pl?sid=05/03/22/1234", "/article.pl?sid=05/03/22/1234"),
        (sessions, "/?sid=17", "/?sid=17"),
        (sessions, "/(S(abc123))/page.aspx", "/page.aspx"),
        (sessions, "/app/(S(abc123))/page.aspx", "/app/page.aspx"),
        (sessions, "/(X(1)S(abc))/", "/"),
        (sessions, "/(S(abc))", "/"),
        (sessions, "/(S(abc));jsessionid=1/x", "/x"),
        (sessions, "/wiki/Rust_(disambiguation)", "/wiki/Rust_(disambiguation)"),
        (sessions, "/(small)/S(x)", "/(small)/S(x)"),
        (sessions, "/?BV_SessionID=1", "/?BV_SessionID=1"),
        (broadvision, "/?BV_SessionID=1&bv_engineid=2&BVX=3", "/?BVX=3"),
        (tracking, "/?utm_source=a&b=1&UTM_medium=c&gclid=d&fbclid=e&msclkid=f", "/?b=1"),
        (tracking, "/?utm=a&gclids=b&ref=c", "/?utm=a&gclids=b&ref=c"),
        (tracking, "/?&utm_x=1", "/"),
        (tracking, "/?utm_x=1&&b", "/?&b"),
        (sort, "/?b=2&a=9&b=1&a=3&aa=0", "/?a=9&a=3&aa=0&b=2&b=1"),
        (sort, "/?b&&a", "/?&a&b"),
        (lower, "/Path/%C3%A9/%41?Query=Q", "/path/%C3%A9/a?Query=Q"),
        (fragment, "/a#X y", "/a#X%20y"),
        (fragment, "/a#", "/a#"),
        (nothing, "/a#", "/a"),
    ];
    for (policy, input, expected) in cases {
        let [input, expected] = [input, expected].map(|path| format!("http://h.com{path}"));
        assert_eq!(canonical(&input, &policy).as_deref(), Ok(expected.as_str()), "{input}");
        assert_eq!(canonical(&expected, &policy).as_deref(), Ok(expected.as_str()));
        assert_eq!(resolve("http://h.com/", &input, &policy).as_deref(), Ok(expected.as_str()));
    }
}

#[test]
fn stray_percent_signs_never_become_escapes() {
    for path in ["/%%34%31", "/%2%35", "/%%2e", "/%", "/%4", "/%%%41", "/%zz%7e", "/%%3%36%31"] {
        let once = clean(&format!("http://h.com{path}")).unwrap();
        assert_eq!(clean(&once).as_deref(), Ok(once.as_str()), "{path}");
    }
    assert_eq!(clean("http://h.com/%%34%31").as_deref(), Ok("http://h.com/%%341"));
    assert_eq!(clean("http://h.com/;jsessionid=%/%41").as_deref(), Ok("http://h.com//A"));
}

#[test]
fn links_resolve_as_the_web_connector_of_the_specification_did() {
    let cases = [
        ("http://foo.com", "hello.pdf", "http://foo.com/hello.pdf"),
        ("http://foo.com/", "hello.pdf", "http://foo.com/hello.pdf"),
        ("http://foo.com/d/ghi.asmx?q=foo", "?q=bar", "http://foo.com/d/ghi.asmx?q=bar"),
        (
            "http://foo.com/d/ghi.asmx?q=foo",
            "ghi.asmx?q=a%3Db",
            "http://foo.com/d/ghi.asmx?q=a%3Db",
        ),
        ("http://foo.com/d/e", "/abs/path", "http://foo.com/abs/path"),
        ("http://foo.com/d/e", "https://bar.com/x", "https://bar.com/x"),
        ("http://foo.com/d/e", "../../../x/./y", "http://foo.com/x/y"),
        ("http://foo.com/d/e?q#f", "", "http://foo.com/d/e?q"),
        ("http://foo.com/d/e?q#f", "#top", "http://foo.com/d/e?q"),
        ("http://foo.com/d/e", "//bar.com/x", "http://bar.com/x"),
        ("https://foo.com/d/e", "///bar.com/x", "https://bar.com/x"),
        ("https://foo.com/d/e", "/\\\t/bar.com/x", "https://bar.com/x"),
        ("http://foo.com/d/e", "http:x", "http://foo.com/d/x"),
        ("http://foo.com/d/e", "http://foo.com", "http://foo.com/"),
        ("http://foo.com/d/e", "http://foo.com//x", "http://foo.com//x"),
        ("http://foo.com/d;jsessionid=1/e", "f", "http://foo.com/d/f"),
        ("http://foo.com/a/(S(1))/e", "../f", "http://foo.com/a/f"),
        ("http://foo.com/d/e", ".", "http://foo.com/d/"),
        ("http://foo.com/d/e", "..", "http://foo.com/"),
    ];
    for (base, href, expected) in cases {
        let policy = Policy::default();
        assert_eq!(resolve(base, href, &policy).as_deref(), Ok(expected), "{base} {href}");
        assert_eq!(long_way(base, href, &policy).as_deref(), Ok(expected), "{base} {href}");
    }
}

#[test]
fn drive_letters_in_a_path_lead_to_the_same_place_on_both_ways() {
    let policy = Policy::NOTHING;
    for (base, href) in [
        ("http://h.com/", "b/c:/../x"),
        ("http://h.com/b/c:/d/", "../../x"),
        ("http://h.com/", "/C:/.."),
        ("http://h.com/", "http://h.com/b/c:/../../x"),
    ] {
        let answer = resolve(base, href, &policy);
        assert_eq!(answer, long_way(base, href, &policy), "{base} {href}");
        let answer = answer.unwrap();
        assert_eq!(canonical(&answer, &policy).as_deref(), Ok(answer.as_str()));
    }
}

#[test]
fn the_first_base_counts_and_forgets_earlier_answers() {
    let mut resolver = Resolver::new("http://a.com/d/e", &Policy::default()).unwrap();
    assert_eq!(resolver.resolve("x"), Ok("http://a.com/d/x"));
    resolver.set_base("../other/");
    assert_eq!(resolver.resolve("x"), Ok("http://a.com/other/x"));
    resolver.set_base("http://b.com/");
    assert_eq!(resolver.resolve("x"), Ok("http://a.com/other/x"));
}

#[test]
fn a_useless_base_leaves_the_documents_own() {
    let long = format!("/{}", "x".repeat(HREF_BYTES_MAX));
    for base in ["data:text/html,x", "javascript:x", "http://[", &long] {
        let mut resolver = Resolver::new("http://a.com/d/e", &Policy::default()).unwrap();
        resolver.set_base(base);
        resolver.set_base("http://b.com/");
        assert_eq!(resolver.resolve("x"), Ok("http://a.com/d/x"), "{base:.20}");
    }
}

#[test]
fn a_base_elsewhere_takes_relative_links_along() {
    let mut resolver = Resolver::new("http://a.com/d/e", &Policy::default()).unwrap();
    resolver.set_base("ftp://b.com/");
    assert_eq!(resolver.resolve("x"), Err(UrlRefusal::Scheme));
    assert_eq!(resolver.resolve("http://c.com"), Ok("http://c.com/"));
    let mut resolver = Resolver::new("http://a.com/d/e", &Policy::default()).unwrap();
    resolver.set_base("about:blank");
    assert!(resolver.resolve("x").is_err());
}

#[test]
fn a_page_with_endless_links_is_resolved_in_bounded_memory() {
    let mut resolver = Resolver::new("http://a.com/", &Policy::default()).unwrap();
    for number in 0..20_000 {
        let href = format!("/page/{number}/{}", "x".repeat(number % 97));
        let expected = format!("http://a.com{href}");
        assert_eq!(resolver.resolve(&href), Ok(expected.as_str()));
        assert_eq!(resolver.resolve(&href), Ok(expected.as_str()));
        assert_eq!(resolver.resolve("same"), Ok("http://a.com/same"));
        assert_eq!(resolver.resolve("mailto:x"), Err(UrlRefusal::Scheme));
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    any::<[bool; 6]>().prop_map(|[a, b, c, d, e, f]| Policy {
        drop_session_ids: a,
        drop_broadvision: b,
        drop_tracking: c,
        sort_query: d,
        lower_case_path: e,
        keep_fragment: f,
    })
}

/// Pieces that mean something to a URL parser or to a policy, glued at random.
fn nasty(pieces: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "/", "/", "/", ".", "..", "a", "b", "Path", "index.html", "~", "-", "_", "?", "&", "=",
            "#", ":", ";", "@", "%", "%2", "%2e", "%2E", "%41", "%34", "%31", "%2f", "%c3%a9", "%zz",
            "(", ")", "(S(", "))", "(S(ab12))", ";jsessionid=", ";jsessionid=x", "PHPSESSID=1",
            "utm_source=x", "sid=0123456789abcdef01", "BV_x=1", "\\", "//", "///", "http:", "https:",
            "http://", "https://h.com", "h.com", "H.com", "xn--", "xn--bcher-kva", "1.2", "0x7f",
            "[::1]", ":80", ":443", ":8080", "\t", "\n", " ", ">", "<", "\"", "'", "`", "{", "}", "|",
            "^", "+", ",", "!", "$", "*", "é", "ß", "\u{200d}", "。", "\0", "[", "]",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, pieces).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn canonical_urls_are_canonical(text in nasty(0..14), policy in any_policy()) {
        for prefix in ["", "http://", "http://h.com", "https://h.com/"] {
            let Ok(once) = canonical(&format!("{prefix}{text}"), &policy) else { continue };
            prop_assert_eq!(canonical(&once, &policy), Ok(once.clone()));
            prop_assert!(once.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'>'));
            let pieces = format!("{}{}", origin_of(&once), path_of(&once));
            prop_assert_eq!(pieces, once);
        }
    }

    #[test]
    fn the_short_way_agrees_with_the_long_way(
        path in nasty(0..8),
        href in nasty(0..10),
        policy in any_policy(),
    ) {
        for origin in ["http://h.com/", "https://h.com:8080/d/e/", "http://1.2.3.4/d;x/(y)/"] {
            let base = format!("{origin}{path}");
            let Ok(mut resolver) = Resolver::new(&base, &policy) else { continue };
            for href in [&href, &format!("{origin}{href}"), &format!("https://h.com/{href}")] {
                let expected = long_way(&base, href, &policy);
                let answer = resolver.resolve(href).map(str::to_owned);
                prop_assert_eq!(answer.as_ref().ok(), expected.as_ref().ok());
                let again = resolver.resolve(href).map(str::to_owned);
                prop_assert_eq!(again, answer.clone());
                let Ok(answer) = answer else { continue };
                prop_assert_eq!(canonical(&answer, &policy), Ok(answer.clone()));
            }
        }
    }

    #[test]
    fn ordinary_links_agree_too(
        base in "(/[a-z.]{0,4}){0,4}(\\?[a-z=&]{0,5})?",
        href in "(\\.\\./|\\./|/){0,3}([A-Za-z0-9._~%-]{0,5}/){0,3}[a-z.]{0,6}(\\?[a-z0-9=&%:/;]{0,9})?(#[a-z]*)?",
        policy in any_policy(),
    ) {
        let base = format!("https://www.example.com{base}");
        let answer = resolve(&base, &href, &policy);
        prop_assert_eq!(answer.ok(), long_way(&base, &href, &policy).ok());
    }
}
