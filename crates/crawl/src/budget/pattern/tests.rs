//! Patterns by example: what shares one and what does not.

use super::*;
use proptest::prelude::*;

/// The pattern of a path on a host, without the host.
fn of(path: &str) -> String {
    let pattern = pattern(&format!("https://a.example{path}"));
    pattern.strip_prefix("a.example").expect("a pattern begins with its host").to_owned()
}

#[test]
fn numbers_dates_and_ids_are_taken_out() {
    for (path, expected) in [
        ("/", "/"),
        ("/about", "/about"),
        ("/a/b/c.html", "/a/b/c.html"),
        ("/product/300000", "/product/#"),
        ("/product-17-red.html", "/product-#-red.html"),
        ("/page2/item3a", "/page#/item#a"),
        ("/2024/11/05/some-title/", "/#/#/#/some-title/"),
        ("/2024-11-05/x", "/#/x"),
        ("/log/2024.11.05_17:30", "/log/#"),
        ("/v1.2.3/docs", "/v#/docs"),
        ("/post-2024-11-05-title", "/post-#-title"),
        ("/calendar/2031/may", "/calendar/#/may"),
        ("/commit/9fceb02d0ae598e95dc970b74767f19372d61af8", "/commit/#"),
        ("/u/550e8400-e29b-41d4-a716-446655440000/edit", "/u/#/edit"),
        ("/u/FBB5E6AA-E29B-41D4-A716-ABCDEFABCDEF", "/u/#"),
        ("/watch/dQw4w9WgXcQ", "/watch/#"),
        ("/s/k3j9x0q2mz8/cart", "/s/#/cart"),
        ("/t/eyJhbGciOiJIUzI1NiJ9", "/t/#"),
        ("/t/aGVsbG8-d29ybGQ_Zm9vYmFyMTIz", "/t/#"),
        ("/sid-a1b2c3d4/x", "/sid-#/x"),
        ("/wiki/%D0%9C%D0%BE%D0%B2%D0%B0", "/wiki/%D0%9C%D0%BE%D0%B2%D0%B0"),
        ("/100%25-off", "/#%25-off"),
        ("/a/*/b", "/a/#/b"),
        ("/x;v=2", "/x;v=#"),
        ("//a", "//a"),
    ] {
        assert_eq!(of(path), expected, "{path}");
    }
}

#[test]
fn words_and_titles_stay_as_they_are() {
    for path in [
        "/deadbeef",
        "/facade",
        "/How-to-Make-Bread-at-Home",
        "/wiki/Main_Page",
        "/JavaScript",
        "/supercalifragilisticexpialidocious",
        "/news/the-quick-brown-fox-jumps-over-the-lazy-dog",
    ] {
        assert_eq!(of(path), path);
    }
    assert_eq!(of("/Windows2000"), "/Windows#");
    assert_eq!(of("/iphone12promax256gb"), "/iphone#promax#gb");
    assert_eq!(of("/Ten-Things-In-2024-And-More"), "/Ten-Things-In-#-And-More");
}

#[test]
fn parameters_count_by_their_names_in_order_and_once() {
    for (path, expected) in [
        ("/list?b=2&a=1", "/list?a&b"),
        ("/list?a=9&b=7", "/list?a&b"),
        ("/list?f[]=1&f[]=2&f[]=3", "/list?f[]"),
        ("/list?f[0]=red&f[1]=blue", "/list?f[#]"),
        ("/list?page=2", "/list?page"),
        ("/list?page", "/list?page"),
        ("/list?17", "/list?#"),
        ("/list?&&a=1&", "/list?a"),
        ("/list?=x", "/list?"),
        ("/list?", "/list"),
        ("/5?a=1", "/#?a"),
        ("/x?*=1", "/x?#"),
    ] {
        assert_eq!(of(path), expected, "{path}");
    }
}

#[test]
fn hosts_and_ports_are_apart_and_schemes_are_not() {
    assert_eq!(pattern("https://a.example/1"), pattern("http://a.example/2"));
    assert_eq!(pattern("http://a.example:81/1"), "a.example:81/#");
    assert_eq!(pattern("http://www2.a.example/"), "www2.a.example/");
    assert_eq!(pattern("http://[::1]:8/x"), "[::1]:8/x");
    assert_eq!(pattern("no url"), "");
}

#[test]
fn a_pattern_is_short_whatever_the_url_is() {
    let long = |piece: &str| format!("http://a.example/{}", piece.repeat(2_000));
    let many: String = (0..500).map(|_| "b=1&ccc=2&").collect();
    let names: String =
        ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}=1&"))).collect();
    let most = "a.example?".len() + PATH_BYTES_MAX + 2 * NAMES_BYTES_MAX + 2 * CUT.len_utf8();
    for url in [
        long("ab/"),
        long("x-"),
        long("1a"),
        long("q"),
        format!("{}?{many}", long("q")),
        format!("http://a.example/?{}", "n".repeat(3_000)),
        format!("http://a.example/?{names}"),
    ] {
        let pattern = pattern(&url);
        assert!(pattern.len() <= most, "{} bytes", pattern.len());
    }
    let first = pattern(&format!("http://a.example/{}first", "dir/".repeat(60)));
    let second = pattern(&format!("http://a.example/{}second", "dir/".repeat(60)));
    assert_eq!(first, second, "what is cut is shared");
    assert!(first.ends_with(CUT));
}

#[test]
fn queries_of_a_path_and_what_is_under_an_id_are_families() {
    let mut shape = Shape::default();
    for (url, family, parameters) in [
        ("http://a.example/list/5?b=1&a=2&b=3", "a.example/list/#?*", 3),
        ("http://a.example/s/0123abcd/cart", "a.example/s/#/*", 0),
        ("http://a.example/2024/05/title", "a.example/#/*", 0),
        ("http://a.example/user/17", "", 0),
        ("http://a.example/user/17/", "", 0),
        ("http://a.example/list", "", 0),
    ] {
        shape.read(url);
        assert_eq!((shape.family.as_str(), shape.parameters), (family, parameters), "{url}");
    }
}

proptest! {
    #[test]
    fn any_text_has_a_short_pattern_that_is_always_the_same(text in "\\PC{0,300}") {
        for url in [text.clone(), format!("http://a.example/{text}")] {
            let first = pattern(&url);
            prop_assert!(first.len() <= url.len() + 2 * CUT.len_utf8());
            prop_assert_eq!(&first, &pattern(&url));
        }
    }

    #[test]
    fn numbers_do_not_tell_pages_apart(first in 0u64.., second in 0u64.., ) {
        let url = |number: u64| format!("http://a.example/p/{number}/x-{number}?id={number}");
        prop_assert_eq!(pattern(&url(first)), pattern(&url(second)));
    }
}
