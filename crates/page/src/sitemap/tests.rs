//! What real sitemaps hold: the test files of crawler-commons, and small ones.

use std::path::Path;

use super::*;

fn locs(sitemap: &Sitemap) -> Vec<&str> {
    sitemap.entries.iter().map(|entry| entry.loc.as_str()).collect()
}

/// File, kind, number of entries, and one entry by its place.
const FILES: &[(&str, SitemapKind, usize, (usize, &str))] = &[
    ("atom.xml", SitemapKind::Atom, 1, (0, "http://example.org/2003/12/13/atom03")),
    ("do-not-visit.txt", SitemapKind::Text, 1, (0, "http://www.example.com/do-not-visit-here")),
    ("sitemap-with-bom.txt", SitemapKind::Text, 2, (0, "http://www.domain.com/page1.html")),
    ("sitemap.badns.xml", SitemapKind::UrlSet, 2, (1, "http://www.example.com/2")),
    (
        "sitemap.index.xml",
        SitemapKind::Index,
        15,
        (0, "https://example.com/sitemap.jss?portalCode=10260&lang=en"),
    ),
    ("sitemap.ns.xml", SitemapKind::UrlSet, 2, (1, "http://www.example.com/2")),
    ("sitemap.txt", SitemapKind::Text, 2, (1, "http://www.domain.com/page2.html")),
    (
        "sitemap.txt.gz",
        SitemapKind::Text,
        5,
        (4, "http://www.example.com/catalog?item=83&desc=vacation_usa"),
    ),
    (
        "xmlSitemap.gz",
        SitemapKind::UrlSet,
        5,
        (3, "http://www.example.com/catalog?item=74&desc=vacation_newfoundland"),
    ),
    (
        "extension/hebdenbridgetimes-articles-sitemap.xml",
        SitemapKind::UrlSet,
        74,
        (
            1,
            "http://www.hebdenbridgetimes.co.uk/news/local/concern-for-missing-todmorden-man-1-7242564",
        ),
    ),
    ("extension/pagemaps-sitemap.xml", SitemapKind::UrlSet, 2, (1, "http://www.example.com/bar")),
    (
        "extension/shinpaideshou-news-sitemap.xml",
        SitemapKind::UrlSet,
        3,
        (
            2,
            "https://shinpaideshou.wordpress.com/2017/04/24/job-opening-lecturer-in-japanese-studies-university-of-leeds/",
        ),
    ),
    (
        "extension/sitemap-images.xml",
        SitemapKind::UrlSet,
        1,
        (0, "http://www.example.com/images/some_image_landing_page.html"),
    ),
    ("extension/sitemap-links.xml", SitemapKind::UrlSet, 3, (1, "http://www.example.com/deutsch/")),
    (
        "extension/sitemap-mobile.xml",
        SitemapKind::UrlSet,
        3,
        (2, "http://www.example.com/no-mobile/"),
    ),
    (
        "extension/sitemap-news.xml",
        SitemapKind::UrlSet,
        2,
        (1, "http://www.example.org/empty_news_name.html"),
    ),
    (
        "extension/sitemap-videos-tvshow.xml",
        SitemapKind::UrlSet,
        1,
        (0, "https://example.org/my-tv-show/23/13/"),
    ),
    (
        "extension/sitemap-videos.xml",
        SitemapKind::UrlSet,
        3,
        (0, "http://www.example.com/videos/some_video_landing_page.html"),
    ),
];

fn oracle(name: &str) -> Option<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracles/sitemaps");
    std::fs::read(Path::new(folder).join(name)).ok()
}

#[test]
fn the_files_of_crawler_commons_are_read_whole() {
    for (name, kind, count, (place, loc)) in FILES {
        let Some(bytes) = oracle(name) else {
            println!("SKIPPED: oracles/sitemaps/{name} is missing");
            continue;
        };
        let sitemap = read(&bytes);
        assert_eq!(sitemap.kind, *kind, "{name}");
        assert_eq!(sitemap.entries.len(), *count, "{name}");
        assert_eq!(sitemap.entries[*place].loc, *loc, "{name}");
        assert_eq!(sitemap.skipped, 0, "{name}");
        assert_eq!((sitemap.cut, sitemap.malformed), (None, false), "{name}");
    }
}

#[test]
fn dates_and_hints_of_crawler_commons_files_are_read() {
    let (Some(packed), Some(atom)) = (oracle("xmlSitemap.gz"), oracle("atom.xml")) else {
        println!("SKIPPED: oracles/sitemaps/xmlSitemap.gz or atom.xml is missing");
        return;
    };
    let first = &read(&packed).entries[0];
    assert_eq!(first.lastmod_ms, Some(1_104_537_600_000));
    assert_eq!(first.changefreq, Some(ChangeFreq::Monthly));
    assert_eq!(first.priority, Some(0.8));
    assert_eq!(read(&packed).entries[3].lastmod_ms, Some(1_103_824_815_000));
    assert_eq!(read(&atom).entries[0].lastmod_ms, Some(1_071_340_202_000));
}

#[test]
fn hints_that_make_no_sense_are_none() {
    let sitemap = read(
        b"<urlset><url><loc>/a</loc><lastmod>soon</lastmod><changefreq>often</changefreq>\
          <priority>7</priority></url><url><loc>/b</loc><priority>NaN</priority></url></urlset>",
    );
    let entry = |loc: &str| SitemapEntry {
        loc: loc.into(),
        lastmod_ms: None,
        changefreq: None,
        priority: None,
    };
    assert_eq!(sitemap.entries, [entry("/a"), entry("/b")]);
}

#[test]
fn addresses_are_decoded_once_and_bare_ampersands_survive() {
    let sitemap = read(
        b"<urlset><url><loc>\n https://a.example/?a=1&amp;b=&#50;&c=3 &x;</loc></url>\
          <url><loc><![CDATA[ https://a.example/?a=1&b=2 ]]></loc></url></urlset>",
    );
    assert_eq!(
        locs(&sitemap),
        ["https://a.example/?a=1&b=2&c=3 &x;", "https://a.example/?a=1&b=2"]
    );
}

#[test]
fn elements_of_extensions_never_replace_our_own() {
    let sitemap = read(
        b"<urlset xmlns:image='i'><url><image:loc>https://a.example/1.png</image:loc>\
          <loc>https://a.example/1</loc><image:image><image:loc>https://a.example/2.png</image:loc>\
          <loc>https://a.example/3.png</loc></image:image><image:priority>1</image:priority></url></urlset>",
    );
    assert_eq!(locs(&sitemap), ["https://a.example/1"]);
    assert_eq!(sitemap.entries[0].priority, None);
}

#[test]
fn other_encodings_are_decoded() {
    let utf16: Vec<u8> = "\u{feff}<urlset><url><loc>https://a.example/é</loc></url></urlset>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(locs(&read(&utf16)), ["https://a.example/é"]);
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>https://a.example/\xE9</loc></url></urlset>";
    assert_eq!(locs(&read(latin)), ["https://a.example/é"]);
    let broken = b"<urlset><url><loc>https://a.example/\xFF</loc></url></urlset>";
    assert_eq!(locs(&read(broken)), ["https://a.example/\u{fffd}"]);
}

#[test]
fn entries_before_a_mistake_stand() {
    let sitemap = read(b"<urlset><url><loc>/a</loc></url><url><loc>/b</lok></url></urlset>");
    assert_eq!((locs(&sitemap), sitemap.malformed), (vec!["/a"], true));
    let sitemap = read(b"<urlset><url><loc>/a</loc></url><url><loc>/b");
    assert_eq!((locs(&sitemap), sitemap.malformed), (vec!["/a"], true));
}

#[test]
fn an_entry_without_an_address_is_counted() {
    let sitemap = read(b"<urlset><url><loc> </loc></url><url/><url><loc>/a</loc></url></urlset>");
    assert_eq!((locs(&sitemap), sitemap.skipped), (vec!["/a"], 2));
}

#[test]
fn a_text_sitemap_skips_what_is_no_address() {
    let sitemap = read(b"# mine\r\nHTTPS://a.example/1\r\n\r\n  http://a.example/2  \nnonsense");
    assert_eq!(sitemap.kind, SitemapKind::Text);
    assert_eq!(locs(&sitemap), ["HTTPS://a.example/1", "http://a.example/2"]);
    assert_eq!(sitemap.skipped, 2);
}

#[test]
fn what_is_no_sitemap_is_unknown_and_empty() {
    for bytes in [
        &b""[..],
        b"   ",
        b"<!doctype html><html><body><a href='/a'>a</a></body></html>",
        b"\x89PNG\r\n\x1a\n",
        b"{\"a\": 1}",
        b"\x1f\x8b",
        b"<",
        b"no such page",
    ] {
        let sitemap = read(bytes);
        assert_eq!((sitemap.kind, sitemap.entries.len()), (SitemapKind::Unknown, 0), "{bytes:?}");
    }
}

#[test]
fn an_rss_feed_serves_as_a_sitemap() {
    let sitemap = read(
        b"<rss version='2.0'><channel><link>https://a.example/</link><item><link>https://a.example/1</link>\
          <pubDate>Sat, 01 Jan 2005 00:00:00 GMT</pubDate></item></channel></rss>",
    );
    assert_eq!((sitemap.kind, locs(&sitemap)), (SitemapKind::Rss, vec!["https://a.example/1"]));
    assert_eq!(sitemap.entries[0].lastmod_ms, Some(1_104_537_600_000));
}

proptest::proptest! {
    #[test]
    fn any_bytes_have_an_answer(bytes: Vec<u8>) {
        read(&bytes);
    }

    #[test]
    fn any_markup_has_an_answer(text in "(<urlset>|<url>|<loc>|</loc>|</url>|<a b='c'>|&amp;|&|<!\\[CDATA\\[|\\]\\]>|<!DOCTYPE|>|x){0,40}") {
        read(text.as_bytes());
    }
}
