//! Which links count, by policy, and the order they come out in.

use proptest::prelude::*;

use super::*;

const PAGE: &str = "https://www.a.com/dir/page";

fn list() -> &'static SuffixList {
    SuffixList::bundled()
}

fn link(url: &str, anchor: &str) -> Link {
    Link { url: url.into(), anchor: anchor.into(), kind: LinkKind::A, rel: Rel::default() }
}

fn of_page(links: &[Link], policy: LinkPolicy) -> Vec<OutLink> {
    of(PAGE, links, policy, list()).unwrap().links
}

fn rows(links: &[OutLink]) -> Vec<&str> {
    links.iter().map(|link| &*link.uri).collect()
}

/// Rows of links to these URLs.
fn rows_of(urls: &[&str], policy: LinkPolicy) -> Vec<String> {
    let links: Vec<Link> = urls.iter().map(|url| link(url, "")).collect();
    of_page(&links, policy).into_iter().map(|link| link.uri).collect()
}

#[test]
fn a_policy_is_known_by_its_name() {
    for policy in LinkPolicy::EVERY {
        assert_eq!(LinkPolicy::parse(policy.name()), Some(policy));
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(json, format!("\"{}\"", policy.name()));
        assert_eq!(serde_json::from_str::<LinkPolicy>(&json).unwrap(), policy);
    }
    assert_eq!(LinkPolicy::parse("All"), None);
    assert_eq!(LinkPolicy::default(), LinkPolicy::All);
}

#[test]
fn the_domain_of_a_row_is_what_stands_before_the_first_separator() {
    assert_eq!(domain_of("com.a>.www>s>/x"), "com.a");
    assert_eq!(domain_of("1.2.3.4>>o8080>/"), "1.2.3.4");
    assert_eq!(domain_of("com.a>"), "com.a");
}

#[test]
fn all_links_count_sorted_by_row_and_the_page_may_link_to_itself() {
    let urls = [
        "http://z.org/",
        PAGE,
        "https://www.a.com:8443/",
        "https://www.a.com/?q",
        "https://b.a.com/x",
        "http://localhost/y",
        "https://www.a.com.evil.net/",
    ];
    let expected = [
        "com.a>.b>s>/x",
        "com.a>.www>s8443>/",
        "com.a>.www>s>/?q",
        "com.a>.www>s>/dir/page",
        "localhost>>o>/y",
        "net.evil>.com.a.www>s>/",
        "org.z>>o>/",
    ];
    assert_eq!(rows_of(&urls, LinkPolicy::All), expected);
}

#[test]
fn a_link_within_the_domain_is_not_external() {
    let urls = [
        PAGE,
        "http://www.a.com/",
        "https://a.com/",
        "https://b.a.com:81/",
        "https://aa.com/",
        "https://a.com.au/",
        "https://me.github.io/",
    ];
    let expected = ["au.com.a>>s>/", "com.aa>>s>/", "io.github.me>>s>/"];
    assert_eq!(rows_of(&urls, LinkPolicy::External), expected);
    assert_eq!(rows_of(&urls, LinkPolicy::Webindex), expected);
}

#[test]
fn hosts_under_a_private_suffix_are_domains_of_their_own() {
    let links = [link("https://me.blogspot.com/", ""), link("https://you.blogspot.com/", "")];
    for policy in [LinkPolicy::External, LinkPolicy::Webindex] {
        let page = of("https://me.blogspot.com/x", &links, policy, list()).unwrap();
        assert_eq!(rows(&page.links), ["com.blogspot.you>>s>/"]);
    }
}

#[test]
fn images_and_sitemaps_lead_to_no_page() {
    use LinkKind::*;
    let kinds =
        [A, Area, Frame, Canonical, Redirect, Refresh, Alternate, Next, Prev, Feed, Sitemap, Image];
    let links: Vec<Link> = kinds
        .iter()
        .enumerate()
        .map(|(number, kind)| Link {
            kind: *kind,
            ..link(&format!("http://b.com/{number:02}"), "")
        })
        .collect();
    let kept: Vec<LinkKind> =
        of_page(&links, LinkPolicy::All).iter().map(|link| link.kind).collect();
    assert_eq!(kept, kinds[..10]);
    assert_eq!(rows(&of_page(&links, LinkPolicy::Webindex)), ["com.b>>o>/00"]);
}

#[test]
fn several_links_to_one_row_become_one_that_promises_what_all_do() {
    let nofollow_ugc = Rel::NOFOLLOW.with(Rel::UGC);
    let links = [
        Link { kind: LinkKind::Area, rel: nofollow_ugc, ..link("http://b.com/", "") },
        Link { rel: nofollow_ugc.with(Rel::SPONSORED), ..link("http://b.com/", "second") },
        Link { kind: LinkKind::Frame, rel: Rel::UGC, ..link("http://b.com/", "third") },
        Link { rel: Rel::NOFOLLOW, ..link("http://c.com/", "c") },
        Link { kind: LinkKind::Next, ..link("http://c.com/", "d") },
    ];
    let kept = of_page(&links, LinkPolicy::All);
    let told = |kept: &OutLink| (kept.uri.clone(), kept.anchor.clone(), kept.kind, kept.rel);
    assert_eq!(
        kept.iter().map(told).collect::<Vec<_>>(),
        [
            ("com.b>>o>/".into(), "second".into(), LinkKind::Area, Rel::UGC),
            ("com.c>>o>/".into(), "c".into(), LinkKind::A, Rel::default()),
        ]
    );
}

#[test]
fn for_the_original_the_first_of_several_counts_even_without_words() {
    let links = [
        Link { kind: LinkKind::Area, ..link("http://b.com/", "no anchor") },
        Link { rel: Rel::UGC, ..link("http://b.com/", "") },
        link("http://b.com/", "second"),
    ];
    let kept = of_page(&links, LinkPolicy::Webindex);
    assert_eq!(rows(&kept), ["com.b>>o>/"]);
    assert_eq!((&*kept[0].anchor, kept[0].kind, kept[0].rel), ("", LinkKind::A, Rel::UGC));
}

#[test]
fn a_page_or_a_link_without_a_row_is_none() {
    for (url, all, webindex) in [
        ("https://a.com/", true, true),
        ("http://localhost/", true, false),
        ("http://[::1]/", true, false),
        ("http://co.uk/", true, false),
        ("ftp://a.com/", false, false),
        ("https://a..com/", false, false),
        ("", false, false),
    ] {
        assert_eq!(of(url, &[], LinkPolicy::All, list()).is_some(), all, "{url}");
        assert_eq!(of(url, &[], LinkPolicy::External, list()).is_some(), all, "{url}");
        assert_eq!(of(url, &[], LinkPolicy::Webindex, list()).is_some(), webindex, "{url}");
        let links = [link(url, "")];
        let kept = |policy| !of("http://b.com/", &links, policy, list()).unwrap().links.is_empty();
        assert_eq!(kept(LinkPolicy::All), all, "{url}");
        assert_eq!(kept(LinkPolicy::Webindex), webindex, "{url}");
    }
}

#[test]
fn a_separator_in_a_path_is_escaped_on_every_origin() {
    let urls = ["https://www.a.com/x>y", "http://b.com/x>y"];
    assert_eq!(rows_of(&urls, LinkPolicy::All), ["com.a>.www>s>/x%3Ey", "com.b>>o>/x%3Ey"]);
}

#[test]
fn a_row_of_the_original_may_be_so_long_and_no_longer() {
    let kept = |row_bytes: usize| {
        let path = "x".repeat(row_bytes - "com.b>>o>/".len());
        rows_of(&[&format!("http://b.com/{path}")], LinkPolicy::Webindex)
    };
    assert_eq!(kept(URL_BYTES_MAX)[0].len(), URL_BYTES_MAX);
    assert!(kept(URL_BYTES_MAX + 1).is_empty());
    assert!(rows_of(&["http://b.com/\0x"], LinkPolicy::Webindex).is_empty());
}

fn any_link() -> impl Strategy<Value = Link> {
    let host = "(www\\.|b\\.)?(a|c|d)\\.(com|co\\.uk|github\\.io)|localhost|10\\.0\\.0\\.[1-3]";
    let kind = prop::sample::select(vec![LinkKind::A, LinkKind::Next, LinkKind::Image]);
    (host, "(:81)?(/|\\?q|/[a-c]{1,2})", kind, "[xy]?", 0..8_u8).prop_map(
        |(host, rest, kind, anchor, rel)| {
            let url = crate::url::canonical(&format!("https://{host}{rest}"), &Default::default());
            Link { url: url.unwrap(), anchor, kind, rel: Rel(rel) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn links_are_sorted_and_unique_and_external_ones_are_among_all(
        links in prop::collection::vec(any_link(), 0..30),
        page in any_link(),
    ) {
        let kept = |policy| of(&page.url, &links, policy, list()).map_or(vec![], |it| it.links);
        let [all, external, webindex] = LinkPolicy::EVERY.map(kept);
        for links in [&all, &external, &webindex] {
            prop_assert!(links.is_sorted_by(|one, next| one.uri < next.uri));
        }
        let own = Uri::canonical(&page.url, list()).unwrap().to_uri();
        let leaving: Vec<_> =
            all.iter().filter(|link| domain_of(&link.uri) != domain_of(&own)).cloned().collect();
        prop_assert_eq!(&external, &leaving);
        prop_assert!(rows(&webindex).iter().all(|row| rows(&external).contains(row)));
    }

    #[test]
    fn a_row_is_the_one_that_uri_makes_of_the_url(links in prop::collection::vec(any_link(), 0..30)) {
        let mut expected: Vec<String> = links
            .iter()
            .filter(|link| leads_to_a_page(link.kind))
            .map(|link| Uri::canonical(&link.url, list()).unwrap().to_uri())
            .collect();
        expected.sort();
        expected.dedup();
        let kept = of_page(&links, LinkPolicy::All);
        prop_assert_eq!(rows(&kept), expected);
    }
}
