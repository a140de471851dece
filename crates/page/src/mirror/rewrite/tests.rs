//! Every reference of a page leads where it should, and nothing else changes.

use encoding_rs::GBK;

use super::*;

const URL: &str = "http://a.example/dir/page.html";

/// Members are below `/dir/`, other sites are those of other hosts.
fn target(url: &Url, _: ReferenceKind) -> Target {
    if url.host_str() != Some("a.example") {
        return Target::Outside;
    }
    match url.path().strip_prefix("/dir/") {
        Some(name) if url.fragment().is_none() => Target::Member(format!("../m/{name}")),
        Some("twin") if url.fragment() == Some("") => Target::Member("../m/other".to_owned()),
        _ => Target::Missing,
    }
}

fn rewritten_from(html: &[u8], url: &str) -> String {
    let document = Document { body: html, url, content_type: None };
    String::from_utf8(page(&document, Some("leaves \"A\""), &mut target)).unwrap()
}

fn rewritten(html: &str) -> String {
    rewritten_from(html.as_bytes(), URL)
}

#[test]
fn every_construct_that_refers_to_something_is_rewritten() {
    for (before, after) in [
        ("<a href=\"b.html#c\">", "<a href=\"../m/b.html#c\">"),
        ("<a href='b.html?x=1&amp;y'>", "<a href='../m/b.html'>"),
        ("<A HREF=b.html CLASS=x>", "<A HREF=\"../m/b.html\" CLASS=x>"),
        ("<area href=/c>", "<area href=\"http://a.example/c\">"),
        (
            "<img src=a.png srcset='a.png 1x, b.png 2x'>",
            "<img src=\"../m/a.png\" srcset='../m/a.png 1x, ../m/b.png 2x'>",
        ),
        ("<img longdesc=a lowsrc=b>", "<img longdesc=\"../m/a\" lowsrc=\"../m/b\">"),
        ("<source src=a><track src=b>", "<source src=\"../m/a\"><track src=\"../m/b\">"),
        ("<video src=a poster=b>", "<video src=\"../m/a\" poster=\"../m/b\">"),
        ("<link rel=stylesheet href=a>", "<link rel=stylesheet href=\"../m/a\">"),
        ("<link rel=next href=a>", "<link rel=next href=\"../m/a\">"),
        ("<link rel=canonical href=a>", "<link rel=canonical href=\"http://a.example/dir/a\">"),
        ("<script src=a></script>", "<script src=\"../m/a\"></script>"),
        (
            "<iframe src=a longdesc=b></iframe>",
            "<iframe src=\"../m/a\" longdesc=\"../m/b\"></iframe>",
        ),
        ("<frame src=a>", "<frame src=\"../m/a\">"),
        (
            "<object data=a></object><embed src=b>",
            "<object data=\"../m/a\"></object><embed src=\"../m/b\">",
        ),
        (
            "<form action=/find><input src=a>",
            "<form action=\"http://a.example/find\"><input src=\"../m/a\">",
        ),
        ("<body background=a>", "<body background=\"../m/a\">"),
        (
            "<meta http-equiv=Refresh content=' 5 ; URL=a'>",
            "<meta http-equiv=Refresh content='5;url=../m/a'>",
        ),
        ("<p style='a:url(b)'>", "<p style='a:url(&quot;../m/b&quot;)'>"),
        ("<style>@import 'a';</style>", "<style>@import \"../m/a\";</style>"),
        (
            "<svg><style>a{b:url('c')}</style></svg>",
            "<svg><style>a{b:url(\"../m/c\")}</style></svg>",
        ),
        (
            "<svg><style>a{b:url(&quot;c&quot;)}</style></svg>",
            "<svg><style>a{b:url(&quot;../m/c&quot;)}</style></svg>",
        ),
        (
            "<svg><image xlink:href=a /><use href='b#c'/></svg>",
            "<svg><image xlink:href=\"../m/a\" /><use href='../m/b#c'/></svg>",
        ),
        ("<noscript><img src=a></noscript>", "<noscript><img src=\"../m/a\"></noscript>"),
        (
            "<iframe srcdoc='<img src=a>'></iframe>",
            "<iframe srcdoc='&lt;img src=&quot;../m/a&quot;&gt;'></iframe>",
        ),
    ] {
        assert_eq!(rewritten(before), after, "{before}");
    }
}

#[test]
fn what_leads_nowhere_or_is_absolute_already_stays() {
    for html in [
        "<!DOCTYPE html><HTML ><p  class = 'x' ID=y>text &amp; &lt;</P\n><!-- <a href=b> -->",
        "<a href='#top'><a href=''><a href><a href=mailto:x@y><a href='javascript:void(0)'>",
        "<a href='tel:1'><img src='data:image/png;base64,AA=='><img src='blob:x'>",
        "<a href='HTTP://A.example:80/x y'>",
        "<svg><use href='#a'/><circle style='fill:url(#b)'/></svg>",
        "<script>location = '<a href=b>'</script><textarea><a href=b></textarea>",
        "<title><a href=b></title><p style='color: red' onclick=\"go('b')\">",
        "<style>a{b:c}</style><meta http-equiv=refresh content=5><img srcset=' , '>",
        "<a href='http://[broken'><p",
    ] {
        assert_eq!(rewritten(html), html);
    }
}

#[test]
fn links_to_other_sites_are_marked_once() {
    let notice = "title=\"leaves &quot;A&quot;\"";
    assert_eq!(
        rewritten("<a href='//b.example/?x&y'>"),
        format!("<a rel=\"external\" {notice} href='http://b.example/?x&amp;y'>")
    );
    assert_eq!(
        rewritten("<a href=http://b.example/ rel=nofollow title=T>"),
        "<a href=http://b.example/ rel=\"nofollow external\" title=T>"
    );
    let once = rewritten("<a href=http://b.example/>");
    assert_eq!(rewritten(&once), once);
    // What a page shows of others is no way out of it.
    let image = "<img src=http://b.example/a.png><a href=http://a.example/x>";
    assert_eq!(rewritten(image), image);
}

#[test]
fn the_base_is_followed_and_goes() {
    let html = "<a href=x><base href=sub/ target=_top><a href='#y'><base href=no/>";
    let expected = "<a href=\"../m/sub/x\"><base  target=_top><a href='../m/sub/#y'><!---->";
    assert_eq!(rewritten(html), expected);
    assert_eq!(rewritten("<<base href='data:,x'>a href=y>"), "<<!---->a href=y>");
    assert_eq!(rewritten("<base href='data:,x'><a href=y>"), "<!----><a href=\"../m/y\">");
}

#[test]
fn a_fragment_that_is_part_of_a_members_name_counts() {
    assert_eq!(rewritten("<a href='twin#'>"), "<a href='../m/other'>");
    assert_eq!(rewritten("<a href='twin#x'>"), "<a href='../m/twin#x'>");
}

#[test]
fn what_would_keep_a_browser_from_the_copy_goes() {
    assert_eq!(rewritten("<meta http-equiv='Content-Security-Policy' content='x'>a"), "<!---->a");
    assert_eq!(
        rewritten("<script src=a integrity='sha256-x' crossorigin></script>"),
        "<script src=\"../m/a\"  ></script>"
    );
    assert_eq!(
        rewritten("<link rel=icon href=a integrity=\"\">"),
        "<link rel=icon href=\"../m/a\" >"
    );
    let outside = "<script src=http://b.example/a integrity='sha256-x' crossorigin></script>";
    assert_eq!(rewritten(outside), outside);
    assert_eq!(rewritten("<a href=b ping='/p /q'>"), "<a href=\"../m/b\" >");
}

#[test]
fn pages_in_other_encodings_become_utf_8_and_say_so() {
    let chinese = |html: &str| GBK.encode(html).0.into_owned();
    let declared = chinese("<meta charset=gb2312><a href=\"哈.html\">哈尔滨</a>");
    let expected = "<meta charset=\"utf-8\"><a href=\"../m/%E5%93%88.html\">哈尔滨</a>";
    assert_eq!(rewritten_from(&declared, URL), expected);
    let equivalent =
        chinese("<meta http-equiv=\"Content-Type\" content=\"text/html; charset=gb2312\">哈");
    let expected = "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\">哈";
    assert_eq!(rewritten_from(&equivalent, URL), expected);
    let header = Document {
        body: &chinese("哈尔滨"),
        url: URL,
        content_type: Some("text/html; charset=gb2312"),
    };
    assert_eq!(page(&header, None, &mut target), "\u{feff}哈尔滨".as_bytes(), "a mark says so");
    let misleading = "<title><meta charset=gbk></title><meta charset=utf-8>哈";
    let bytes = page(
        &Document {
            content_type: Some("text/html; charset=utf-8"),
            body: misleading.as_bytes(),
            url: URL,
        },
        None,
        &mut target,
    );
    assert!(bytes.starts_with("\u{feff}".as_bytes()), "a browser would believe the title");
    let utf8 = "<meta charset=UTF-8>哈";
    assert_eq!(rewritten(utf8), utf8);
}

#[test]
fn style_sheets_are_rewritten_in_place_and_encoding() {
    let body = GBK.encode("@import 'a.css';b{c:url(哈.png)}").0.into_owned();
    let document = Document { body: &body, url: "http://a.example/dir/s.css", content_type: None };
    let css = style_sheet(&document, Some(GBK), &mut target);
    let expected = "@import \"../m/a.css\";b{c:url(\"../m/%E5%93%88.png\")}";
    assert_eq!(css, expected.as_bytes());
}

#[test]
fn a_long_base_cannot_make_a_page_grow_without_limit() {
    let base = format!("http://b.example/{}/", "x".repeat(4_000));
    let html = format!("<base href='{base}'>{}", "<p cite=a><q cite=a>".repeat(40_000));
    let bytes = rewritten(&html).len();
    assert!(bytes > ADDED_BYTES_MAX && bytes < ADDED_BYTES_MAX + (2 << 20), "{bytes}");
}
