//! The rules of google/robotstxt, and its published cases where they are at hand.

use super::*;

fn allowed(robots: impl AsRef<[u8]>, agent: &str, url: &str) -> bool {
    Robots::parse(robots.as_ref()).verdict(agent, url).allowed
}

#[test]
fn every_published_case_of_google_is_answered_as_google_does() {
    #[derive(serde::Deserialize)]
    struct Case {
        file: String,
        robots_base64: String,
        url: String,
        agent: String,
        allow: bool,
    }
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracles/robots/google-cases.json");
    let Ok(text) = std::fs::read(path) else {
        println!("SKIPPED: oracles/robots/google-cases.json is missing");
        return;
    };
    let cases: Vec<Case> = serde_json::from_slice(&text).unwrap();
    assert!(!cases.is_empty());
    let wrong: Vec<String> = cases
        .iter()
        .filter(|c| allowed(base64(&c.robots_base64), &c.agent, &c.url) != c.allow)
        .map(|c| format!("{}: {} {} should be {}", c.file, c.agent, c.url, c.allow))
        .collect();
    assert!(wrong.is_empty(), "{} of {} wrong: {wrong:#?}", wrong.len(), cases.len());
}

/// Standard base64 with padding: all that the case file needs.
fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("no base64: {other}"),
    };
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(value).collect();
    let mut out = Vec::new();
    for four in digits.chunks(4) {
        let bits =
            four.iter().fold(0_u32, |sum, d| sum << 6 | u32::from(*d)) << (6 * (4 - four.len()));
        out.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    out
}

#[test]
fn an_agent_value_counts_up_to_its_first_foreign_character() {
    let file = "user-agent: *\ndisallow: /\nuser-agent: Foo Bar\nallow: /x/\ndisallow: /\n";
    assert!(allowed(file, "Foo", "http://foo.bar/x/y"));
    assert!(!allowed(file, "Foo Bar", "http://foo.bar/x/y"));
    for value in ["Foo/2.1", "foo", "FOO;x", "Foo 1", "Foo\u{00e9}"] {
        let file = format!("user-agent: {value}\ndisallow: /\n");
        assert!(!allowed(&file, "Foo", "/x"), "{value}");
    }
    for value in ["Foo_x", "Foo-x", "xFoo", "1Foo", ""] {
        let file = format!("user-agent: {value}\ndisallow: /\n");
        assert!(allowed(&file, "Foo", "/x"), "{value}");
    }
    assert!(allowed("user-agent: 1\ndisallow: /\n", "Foo", "/x"));
}

#[test]
fn an_agent_may_be_a_whole_user_agent_header() {
    let file = "user-agent: driftline\ndisallow: /x\n";
    assert!(!allowed(file, "Driftline/0.1 (+https://example.com/bot)", "/x"));
    assert!(allowed(file, "Mozilla/5.0 (compatible; Driftline/0.1)", "/x"));
}

#[test]
fn a_star_before_white_space_is_everybody_and_before_letters_is_not() {
    assert!(!allowed("user-agent: *\ndisallow: /x\n", "Foo", "/x"));
    assert!(!allowed("user-agent: * baz\ndisallow: /x\n", "Foo", "/x"));
    assert!(!allowed("user-agent: *\tbaz\ndisallow: /x\n", "Foo", "/x"));
    assert!(allowed("user-agent: *baz\ndisallow: /x\n", "Foo", "/x"));
    assert!(allowed("user-agent: * baz\ndisallow: /x\nuser-agent: Foo\nallow: /\n", "Foo", "/x"));
}

#[test]
fn groups_for_the_same_agent_are_one_and_rules_before_any_agent_are_nobodys() {
    let file = "allow: /foo/bar/\n\nuser-agent: FooBot\ndisallow: /\nallow: /x/\n\
                user-agent: BarBot\ndisallow: /\nallow: /y/\n\n\nallow: /w/\n\
                user-agent: BazBot\n\nuser-agent: FooBot\nallow: /z/\ndisallow: /\n";
    for (agent, path, expected) in [
        ("FooBot", "/x/b", true),
        ("FooBot", "/z/d", true),
        ("FooBot", "/y/c", false),
        ("BarBot", "/y/c", true),
        ("BarBot", "/w/a", true),
        ("BarBot", "/z/d", false),
        ("BazBot", "/z/d", true),
        // The rule in front belongs to nobody.
        ("FooBot", "/foo/bar/", false),
        ("BarBot", "/foo/bar/", false),
        ("BazBot", "/foo/bar/", false),
    ] {
        assert_eq!(allowed(file, agent, path), expected, "{agent} {path}");
    }
}

#[test]
fn other_lines_do_not_end_a_group_of_agents() {
    for other in
        ["Sitemap: https://a.example/s.xml", "Crawl-delay: 3", "Noindex: /", "Invalid line"]
    {
        let file = format!("User-agent: BarBot\n{other}\nUser-agent: *\nDisallow: /\n");
        assert!(!allowed(&file, "BarBot", "/x"), "{other}");
        assert!(!allowed(&file, "FooBot", "/x"), "{other}");
    }
}

#[test]
fn a_group_that_names_the_agent_replaces_the_one_for_everybody() {
    let global = "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n";
    assert!(!allowed(global, "FooBot", "/x/y"));
    assert!(allowed(global, "BarBot", "/x/y"));
    // Even a name without rules, and even at the end of the file.
    assert!(allowed("user-agent: *\ndisallow: /\nuser-agent: FooBot", "FooBot", "/x"));
    assert!(allowed("user-agent: FooBot\ndisallow:\nuser-agent: *\ndisallow: /\n", "FooBot", "/x"));
}

#[test]
fn keys_are_known_by_their_beginning_and_by_their_frequent_slips() {
    for key in ["user-agent", "User-Agent", "USER-AGENT", "useragent", "user agent", "User-Agents"]
    {
        assert!(!allowed(format!("{key}: FooBot\ndisallow: /\n"), "FooBot", "/x"), "{key}");
    }
    for key in [
        "disallow",
        "DISALLOW",
        "dissallow",
        "dissalow",
        "disalow",
        "diasllow",
        "disallaw",
        "disallowed",
    ] {
        assert!(!allowed(format!("user-agent: FooBot\n{key}: /\n"), "FooBot", "/x"), "{key}");
    }
    for key in ["dis allow", "dallow", "no-disallow", "foo"] {
        assert!(allowed(format!("user-agent: FooBot\n{key}: /\n"), "FooBot", "/x"), "{key}");
    }
    for key in ["user_agent", "agent", "user"] {
        assert!(allowed(format!("{key}: FooBot\ndisallow: /\n"), "FooBot", "/x"), "{key}");
    }
}

#[test]
fn a_nul_ends_a_line() {
    assert!(allowed("user-agent: FooBot\ndisallow\0: /\n", "FooBot", "/x"));
    assert!(!allowed("user-agent: FooBot\ndisallow: /x\0y\n", "FooBot", "/xz"));
}

#[test]
fn a_forgotten_colon_is_forgiven_between_two_words_only() {
    assert!(!allowed("user-agent FooBot\ndisallow /\n", "FooBot", "/x"));
    assert!(!allowed("user-agent \t FooBot\ndisallow\t/\n", "FooBot", "/x"));
    assert!(allowed("user-agent: FooBot\ndisallow / x\n", "FooBot", "/ x"));
    assert!(allowed("user-agent: FooBot\ndisallow\n", "FooBot", "/x"));
    assert!(!allowed("  user-agent  :  FooBot  \n  disallow  :  /  \n", "FooBot", "/x"));
    assert!(allowed("user-agent: FooBot\n: /\n", "FooBot", "/x"));
}

#[test]
fn values_are_case_sensitive_and_the_longest_match_wins() {
    assert!(allowed("user-agent: F\ndisallow: /X/\n", "F", "/x/y"));
    assert!(!allowed("user-agent: F\ndisallow: /x/page.html\nallow: /x/\n", "F", "/x/page.html"));
    assert!(allowed("user-agent: F\nallow: /x/page.html\ndisallow: /x/\n", "F", "/x/page.html"));
    assert!(allowed("user-agent: F\ndisallow: /x\nallow: /x\n", "F", "/x"));
    assert!(!allowed("user-agent: F\nallow: /page\ndisallow: /*.html\n", "F", "/page.html"));
    assert!(allowed("user-agent: F\nallow: /x/page.\ndisallow: /*.html\n", "F", "/x/page.html"));
    assert!(allowed("user-agent: F\ndisallow: \nallow: \n", "F", "/x"));
}

#[test]
fn star_and_dollar_are_the_only_special_characters() {
    let star = "user-agent: F\ndisallow: /foo/bar/quz\nallow: /foo/*/qux\n";
    assert!(!allowed(star, "F", "/foo/bar/quz"));
    assert!(!allowed(star, "F", "/foo/bar/quz/x"));
    assert!(allowed(star, "F", "/foo//quz"));
    assert!(allowed(star, "F", "/foo/bax/quz"));
    let dollar = "user-agent: F\ndisallow: /foo/bar$\nallow: /foo/bar/qux\n";
    assert!(!allowed(dollar, "F", "/foo/bar"));
    assert!(allowed(dollar, "F", "/foo/bar/qux"));
    assert!(allowed(dollar, "F", "/foo/bar/"));
    assert!(allowed(dollar, "F", "/foo/bar/baz"));
    let comment = "user-agent: F\n# disallow: /\ndisallow: /foo/quz#qux\nallow: /\n";
    assert!(allowed(comment, "F", "/foo/bar"));
    assert!(!allowed(comment, "F", "/foo/quz"));
    // A dollar that is not last is an ordinary character.
    assert!(!allowed("user-agent: F\ndisallow: /a$b\n", "F", "/a$b"));
    assert!(!allowed("user-agent: F\ndisallow: /*$$\n", "F", "/a$"));
    assert!(allowed("user-agent: F\ndisallow: /*$$\n", "F", "/a"));
    assert!(allowed("user-agent: F\ndisallow: $\n", "F", "/"));
    assert!(!allowed("user-agent: F\ndisallow: *$\n", "F", "/"));
}

#[test]
fn an_allowed_index_page_allows_its_directory() {
    for page in ["/allowed-slash/index.html", "/allowed-slash/index.htm"] {
        let file = format!("user-agent: F\nallow: {page}\ndisallow: /\n");
        assert!(allowed(&file, "F", "/allowed-slash/"), "{page}");
        assert!(allowed(&file, "F", page));
        assert!(!allowed(&file, "F", "/allowed-slash/index.htx"));
        assert!(!allowed(&file, "F", "/allowed-slash/x"));
        assert!(!allowed(&file, "F", "/anyother-url"));
    }
    let disallowed = "user-agent: F\ndisallow: /d/index.html\n";
    assert!(allowed(disallowed, "F", "/d/"));
}

#[test]
fn a_line_is_cut_where_google_cuts_it() {
    const CUT: usize = 2_083 * 8;
    let long = |letter: &str, key: &str| {
        let mut path = String::from("/x/");
        path.push_str(&letter.repeat(CUT - 3 - key.len() + 1 - 3));
        path
    };
    let a = long("a", "disallow: ");
    let file = format!("user-agent: F\ndisallow: {a}/qux\n");
    assert!(allowed(&file, "F", "http://foo.bar/fux"));
    assert!(!allowed(&file, "F", &format!("http://foo.bar{a}/fux")));
    let (a, b) = (long("a", "allow: "), long("b", "allow: "));
    let file = format!("user-agent: F\ndisallow: /\nallow: {a}/qux\nallow: {b}/qux\n");
    assert!(!allowed(&file, "F", "http://foo.bar/"));
    assert!(allowed(&file, "F", &format!("http://foo.bar{a}/qux")));
    assert!(allowed(&file, "F", &format!("http://foo.bar{b}/fux")));
}

#[test]
fn byte_order_marks_are_skipped_at_the_beginning_even_in_part() {
    let rules = b"User-Agent: foo\nDisallow: /AnyValue\n";
    for mark in [&b"\xEF\xBB\xBF"[..], b"\xEF\xBB", b"\xEF", b""] {
        assert!(!allowed([mark, rules].concat(), "foo", "/AnyValue"), "{mark:?}");
    }
    for mark in [&b"\xEF\x11\xBF"[..], b"\xBB\xBF", b"\xEF\xBB\xBF\xEF", b"\xFE\xFF"] {
        assert!(allowed([mark, rules].concat(), "foo", "/AnyValue"), "{mark:?}");
    }
    assert!(allowed(b"User-Agent: foo\n\xEF\xBB\xBFDisallow: /AnyValue\n", "foo", "/AnyValue"));
}

#[test]
fn lines_are_counted_whatever_ends_them() {
    let lines = ["User-Agent: foo", "Allow: /some/path", "User-Agent: bar", "", "", "Disallow: /"];
    for end in ["\n", "\r\n", "\r"] {
        for last in ["", end] {
            let file = lines.join(end) + last;
            let robots = Robots::parse(file.as_bytes());
            assert_eq!(robots.verdict("bar", "/x").rule.unwrap().line, 6, "{file:?}");
            assert_eq!(robots.verdict("foo", "/some/path").rule.unwrap().line, 2, "{file:?}");
        }
    }
    let mixed = Robots::parse(b"User-Agent: foo\n\r\n\r\r\n\nDisallow: /");
    assert_eq!(mixed.verdict("foo", "/x").rule.unwrap().line, 6);
}

#[test]
fn non_ascii_and_escapes_are_normalised_in_patterns() {
    for (written, normal) in [
        ("http://www.example.com", "http://www.example.com"),
        ("/a/b/c", "/a/b/c"),
        ("á", "%C3%A1"),
        ("%aa", "%AA"),
        ("%aá%zz%e", "%a%C3%A1%zz%e"),
        ("%%aa", "%%AA"),
    ] {
        assert_eq!(matching::normalise(written.as_bytes()), normal.as_bytes(), "{written}");
    }
    let file = "user-agent: F\ndisallow: /\nallow: /foo/bar/ツ\n";
    assert!(allowed(file, "F", "http://foo.bar/foo/bar/%E3%83%84"));
    // A URL is compared as it is written; a canonical one has upper-case digits.
    let written = "http://foo.bar/foo/bar/%e3%83%84";
    let canonical = crate::url::canonical(written, &crate::url::Policy::default()).unwrap();
    assert!(!allowed(file, "F", written));
    assert!(allowed(file, "F", &canonical));
    assert!(!allowed(file, "F", "http://foo.bar/foo/bar/ツ"));
    assert!(!allowed(b"user-agent: F\ndisallow: /\xff\n", "F", "/%FF"));
}

#[test]
fn the_path_of_a_url_is_found_as_google_finds_it() {
    for (url, path) in [
        ("", "/"),
        ("http://www.example.com", "/"),
        ("http://www.example.com/", "/"),
        ("http://www.example.com/a", "/a"),
        ("http://www.example.com/a/", "/a/"),
        ("http://www.example.com/a/b?c=http://d.e/", "/a/b?c=http://d.e/"),
        ("http://www.example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("example.com", "/"),
        ("example.com/", "/"),
        ("example.com/a", "/a"),
        ("example.com/a/", "/a/"),
        ("example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("a", "/"),
        ("a/", "/"),
        ("/a", "/a"),
        ("a/b", "/b"),
        ("example.com?a", "/?a"),
        ("example.com/a;b#c", "/a;b"),
        ("//a/b/c", "/b/c"),
        ("//", "/"),
        ("example.com#/a", "/"),
        ("http://a.example#x/y?z", "/"),
        ("http:/", "/"),
        ("/a://b/c", "/a://b/c"),
    ] {
        assert_eq!(Path::of(url).as_bytes(), path.as_bytes(), "{url}");
    }
}
