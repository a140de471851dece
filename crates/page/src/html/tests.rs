//! Every fact of a page, hostile pages, and the same facts however the bytes arrive.

use super::*;
use crate::facts::{HEADINGS_MAX, LINKS_MAX, LinkKind, Rel, SHORT_TEXT_BYTES_MAX, TEXT_BYTES_MAX};

mod differential;
mod hostile;

const URL: &str = "http://example.com/dir/page.html";

fn facts(html: &str) -> Facts {
    extract(&Input::new(html.as_bytes(), URL, &Policy::default()))
}

/// The links as (URL, words, kind, rel bits).
fn links(html: &str) -> Vec<(String, String, LinkKind, u8)> {
    let all = facts(html).links;
    all.into_iter().map(|link| (link.url, link.anchor, link.kind, link.rel.0)).collect()
}

fn urls(html: &str) -> Vec<String> {
    facts(html).links.into_iter().map(|link| link.url).collect()
}

const PAGE: &str = r##"<!DOCTYPE html>
<html lang="en-GB">
<head>
  <meta charset="utf-8">
  <title> Tide tables &amp;
     harbours </title>
  <meta name="description" content="When the water &quot;comes&quot;.">
  <meta name="robots" content="noarchive">
  <link rel="canonical" href="/tides">
  <link rel="alternate" type="application/rss+xml" title="News" href="/feed.xml">
  <link rel="alternate" hreflang="de" href="/de/tides">
  <link rel="stylesheet" href="/style.css">
  <link rel="next" href="tides2.html"><link rel="prev" href="tides0.html">
  <link rel="sitemap" href="/sitemap.xml">
  <style>p { color: red } /* </p> */</style>
  <script>if (a < b) document.write("<a href='/no'>no</a>");</script>
</head>
<body>
  <nav><a href="/">Home</a> <a href="/map" rel="nofollow">Map</a></nav>
  <h1>Tides<br>of the <em>week</em></h1>
  <p>High water at <b>6</b>:30, low at&nbsp;12:45.<!-- not <b>this</b> -->
  <p>See <a href="port.html?a=1&amp;b=2#quay">the port</a>, <a href="#top">top</a>,
     <a href="mailto:a@b.example">mail</a>.</p>
  <svg><title>Waves</title><text>~~~</text></svg>
  <h2>Photo<a class="headerlink" href="#photo">¶</a></h2>
  <a href="/photo"><img src="p.jpg" alt="Boats at low tide"></a>
  <table><tr><td>Mon</td><td>6:30</td></tr></table>
  <noscript><p>Enable it</p></noscript>
  <template><a href="/template">hidden</a></template>
  <iframe src="/map-frame" title="Map">old</iframe>
</body></html>"##;

#[test]
fn a_whole_page_gives_its_facts() {
    let facts = extract(&Input {
        content_type: Some("text/html; charset=utf-8"),
        ..Input::new(PAGE.as_bytes(), URL, &Policy::default())
    });
    assert_eq!(facts.media_type, "text/html");
    assert_eq!(facts.charset, "UTF-8");
    assert_eq!(facts.language.as_deref(), Some("en-GB"));
    assert_eq!(facts.title, "Tide tables & harbours");
    assert_eq!(facts.description, "When the water \"comes\".");
    assert_eq!(facts.canonical.as_deref(), Some("http://example.com/tides"));
    assert_eq!(facts.directives, Directives { noarchive: true, ..Directives::default() });
    let headings: Vec<_> = facts.headings.iter().map(|h| (h.level, h.text.as_str())).collect();
    assert_eq!(headings, [(1, "Tides of the week"), (2, "Photo¶")]);
    assert_eq!(
        facts.text,
        "Home Map\nTides\nof the week\nHigh water at 6:30, low at 12:45.\n\
         See the port, top, mail.\n¶Photo"
            .replace("¶Photo", "Photo¶")
            + "\nMon\n6:30"
    );
    assert_eq!(facts.content_hash, crate::ids::hash128(PAGE.as_bytes()));
    assert_eq!(facts.text_hash, crate::ids::hash128(facts.text.as_bytes()));
    assert_eq!(facts.simhash, crate::fingerprint::simhash(&facts.text));
    assert_eq!(facts.truncated, crate::facts::Truncated::default());
}

#[test]
fn a_whole_page_gives_its_links_in_order() {
    use LinkKind::*;
    let expected = [
        ("http://example.com/tides", "", Canonical, 0),
        ("http://example.com/feed.xml", "News", Feed, 0),
        ("http://example.com/de/tides", "de", Alternate, 0),
        ("http://example.com/dir/tides2.html", "", Next, 0),
        ("http://example.com/dir/tides0.html", "", Prev, 0),
        ("http://example.com/sitemap.xml", "", Sitemap, 0),
        ("http://example.com/", "Home", A, 0),
        ("http://example.com/map", "Map", A, Rel::NOFOLLOW.0),
        ("http://example.com/dir/port.html?a=1&b=2", "the port", A, 0),
        ("http://example.com/photo", "Boats at low tide", A, 0),
        ("http://example.com/map-frame", "Map", Frame, 0),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|&(url, words, kind, rel)| (url.to_owned(), words.to_owned(), kind, rel))
        .collect();
    assert_eq!(links(PAGE), expected);
}

#[test]
fn links_only_finds_the_same_links() {
    let policy = Policy::default();
    let input = Input::new(PAGE.as_bytes(), URL, &policy);
    let without_words = |links: Vec<Link>| {
        links.into_iter().map(|link| (link.url, link.kind, link.rel.0)).collect::<Vec<_>>()
    };
    assert_eq!(without_words(links_only(&input)), without_words(extract(&input).links));
}

#[test]
fn a_link_is_known_by_text_then_title_then_picture() {
    let words = |html: &str| facts(html).links[0].anchor.clone();
    assert_eq!(words("<a href=x title=T><img alt=I>text</a>"), "text");
    assert_eq!(words("<a href=x title=' T &lt;3 '><img alt=I> </a>"), "T <3");
    assert_eq!(words("<a href=x><img alt=''><img alt='I'><img alt=J></a>"), "I");
    assert_eq!(words("<a href=x><div>one</div><div>two</div></a>"), "one two");
    assert_eq!(words("<a href=x>un<b>brok</b>en"), "unbroken");
    assert_eq!(words("<a href=x>first<a href=y>second</a>"), "first");
    assert_eq!(words("<a href=x><script>no</script>yes<style>no</style></a>"), "yes");
    assert_eq!(words("<area href=x alt=A title=T>"), "A");
    assert_eq!(words("<area href=x title=T>"), "T");
}

#[test]
fn a_target_is_given_once_with_its_first_words() {
    let html = "<a href=x><img></a><a href='./x#1' rel=ugc>words</a><a href=x>more</a>\
                <link rel=next href=x>";
    let expected = "http://example.com/dir/x".to_owned();
    assert_eq!(
        links(html),
        [
            (expected.clone(), "more".to_owned(), LinkKind::A, 0),
            (expected, String::new(), LinkKind::Next, 0),
        ]
    );
}

#[test]
fn rel_promises_are_read_and_hold_only_if_every_link_makes_them() {
    let all = Rel::NOFOLLOW.with(Rel::UGC).with(Rel::SPONSORED).0;
    assert_eq!(links("<a href=x rel='NoFollow ugc\nsponsored noopener'>")[0].3, all);
    assert_eq!(links("<a href=x rel='nofollow ugc'>a</a><a href=x rel=ugc>")[0].3, Rel::UGC.0);
    assert_eq!(links("<a href=x rel=nofollow>a</a><a href=x>")[0].3, 0);
}

#[test]
fn a_page_wide_nofollow_reaches_every_link_wherever_it_stands() {
    let html = "<a href=x>x</a><meta name=Robots content='none'>";
    let facts = facts(html);
    assert!(facts.directives.noindex && facts.directives.nofollow);
    assert!(facts.links[0].rel.has(Rel::NOFOLLOW));
    let asked = header_directives("nofollow", "driftline");
    let policy = Policy::default();
    let input = Input { directives: asked, ..Input::new(b"<a href=x>", URL, &policy) };
    assert!(extract(&input).links[0].rel.has(Rel::NOFOLLOW));
    assert!(links_only(&input)[0].rel.has(Rel::NOFOLLOW));
}

#[test]
fn the_first_base_counts_for_all_links() {
    let html = "<a href=x>x</a><base href='/b/'><base href='/c/'><a href=y>y</a>";
    assert_eq!(urls(html), ["http://example.com/b/x", "http://example.com/b/y"]);
    assert_eq!(
        urls("<base target=_top><base href='//h.example/'><a href=y>"),
        ["http://h.example/y"]
    );
}

#[test]
fn only_links_that_lead_to_another_document_count() {
    for href in ["#x", "", " ", "javascript:void(0)", "mailto:a@b", "tel:1", "data:text/html,x"] {
        assert_eq!(urls(&format!("<a href='{href}'>x</a>")), [""; 0], "{href}");
    }
    assert_eq!(urls("<a name=x>x</a><a>y</a>"), [""; 0]);
}

#[test]
fn fragments_tell_documents_apart_where_the_policy_says_so() {
    let policy = Policy { keep_fragment: true, ..Policy::default() };
    let links =
        extract(&Input::new(b"<a href=x#1>a</a><a href=x#2>b</a><a href=#3>", URL, &policy));
    let urls: Vec<_> = links.links.iter().map(|link| link.url.as_str()).collect();
    let page = "http://example.com/dir/page.html#3";
    assert_eq!(urls, ["http://example.com/dir/x#1", "http://example.com/dir/x#2", page]);
}

#[test]
fn hrefs_are_decoded_as_attributes_are() {
    assert_eq!(
        urls("<a href='?a=1&copy=2&amp;b=3&lt;'>"),
        ["http://example.com/dir/page.html?a=1&copy=2&b=3%3C"]
    );
    assert_eq!(urls("<A HREF=&#x2f;a&#47;b>"), ["http://example.com/a/b"]);
    assert_eq!(urls("<a href=x href=y>"), ["http://example.com/dir/x"]);
}

#[test]
fn refreshes_name_their_target() {
    let target = |content: &str| {
        urls(&format!("<meta http-equiv=Refresh content=\"{content}\">")).first().cloned()
    };
    let next = Some("http://example.com/dir/next".to_owned());
    for content in [
        "0;url=next",
        "5; URL = 'next' x",
        " 0,next",
        "1.5 ;url=next",
        "0 next",
        "0; next",
        "3;url=&quot;next&quot;",
    ] {
        assert_eq!(target(content), next, "{content}");
    }
    for content in ["5", "", "url=next", "0;", "0;url="] {
        assert_eq!(target(content), None, "{content}");
    }
}

#[test]
fn pictures_are_links_only_on_request() {
    let policy = Policy::default();
    let input = Input::new(b"<img src=a.png alt=Boat>", URL, &policy);
    assert_eq!(extract(&input).links, []);
    let wanted = Input { images: true, ..input };
    let links = extract(&wanted).links;
    assert_eq!((links[0].kind, links[0].anchor.as_str()), (LinkKind::Image, "Boat"));
    assert_eq!(links_only(&wanted)[0].url, links[0].url);
}

#[test]
fn link_elements_are_told_apart_by_rel_and_type() {
    let kind = |html: &str| facts(html).links.first().map(|link| link.kind);
    assert_eq!(
        kind("<link rel='ALTERNATE' type='Application/Atom+XML; x' href=f>"),
        Some(LinkKind::Feed)
    );
    assert_eq!(kind("<link rel='feed' href=f>"), Some(LinkKind::Feed));
    assert_eq!(kind("<link rel='alternate' media=print href=f>"), Some(LinkKind::Alternate));
    assert_eq!(kind("<link rel='alternate stylesheet' href=f>"), None);
    assert_eq!(kind("<link rel='preload' href=f>"), None);
    assert_eq!(kind("<link rel='previous' href=f>"), Some(LinkKind::Prev));
    assert_eq!(kind("<link href=f>"), None);
}

#[test]
fn a_canonical_link_counts_in_the_head_and_the_first_one() {
    let canonical = |html: &str| facts(html).canonical;
    let is = |path: &str| Some(format!("http://example.com{path}"));
    assert_eq!(canonical("<link rel=canonical href=/a><link rel=canonical href=/b>"), is("/a"));
    assert_eq!(canonical("<body><link rel=canonical href=/a>"), None);
    assert_eq!(canonical("<link rel=canonical href=''>"), None);
    assert_eq!(canonical("<link rel=canonical href=javascript:x>"), None);
}

#[test]
fn titles_are_decoded_and_the_first_outside_drawings_counts() {
    let title = |html: &str| facts(html).title;
    assert_eq!(title("<title>a<b>&eacute;&#233; \n &copy</title><title>c</title>"), "a<b>éé ©");
    assert_eq!(title("<svg><title>no</title></svg><title>yes</title>"), "yes");
    assert_eq!(title("<TITLE>x</TiTlE >rest"), "x");
    assert_eq!(title("<title>a</titles>b</title>"), "a</titles>b");
    assert_eq!(title("<title>unfinished"), "unfinished");
    assert_eq!(title("<p>none"), "");
}

#[test]
fn languages_come_from_the_root_or_a_meta() {
    let language = |html: &str| facts(html).language;
    assert_eq!(language("<html lang=pt_BR>").as_deref(), Some("pt-BR"));
    assert_eq!(language("<html lang='' xml:lang=fr>").as_deref(), Some("fr"));
    assert_eq!(
        language("<meta http-equiv=Content-Language content='de, en'>").as_deref(),
        Some("de")
    );
    assert_eq!(
        language("<html lang=en><meta http-equiv=content-language content=de>").as_deref(),
        Some("en")
    );
    assert_eq!(language("<html lang='{{ lang }}'>"), None);
    assert_eq!(language("<html>"), None);
}

#[test]
fn running_text_is_what_a_reader_sees() {
    let cases = [
        ("a<b>b</b>c", "abc"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<div>a</div>b", "a\nb"),
        ("<ul><li>a<li>b</ul>c", "a\nb\nc"),
        ("a < b &amp;&amp; c > d", "a < b && c > d"),
        ("1 &lt;2&gt; &notit; &ampx &#x41;&#0;&#128;", "1 <2> ¬it; &x A\u{fffd}€"),
        ("a<!-- b --><!x><?y?></3>c", "ac"),
        ("a</>b</p x='>'>c", "ab\nc"),
        ("a<script>b</script><style>c</style>d", "ad"),
        ("a<script><!--<script>b</script>--></script>c", "ac"),
        ("a<textarea>b</textarea>c<xmp><b>d</b></xmp>", "a\nc\n<b>d</b>"),
        ("a<iframe>b</iframe><noscript>c</noscript><noframes>d</noframes>e", "a\ne"),
        ("a<svg><text>b</text><style>c</style></svg>d", "ad"),
        ("a<svg>b<p>c", "a\nc"),
        ("a<svg/>b<math><mi>x</mi><![CDATA[y<]]></math>", "abxy<"),
        ("a<template>b<template>c</template>d</template>e", "ae"),
        ("<x-y><template shadowrootmode=open>a</template></x-y>b", "ab"),
        ("<head><title>a</title></head><body>b", "b"),
        ("a <span> b </span> c\n\n\td", "a b c d"),
        ("a<plaintext>b</plaintext>", "a\nb</plaintext>"),
        ("a<b", "a"),
        ("a</b", "a"),
        ("a<", "a<"),
        ("a</", "a</"),
        ("a<!--", "a"),
        ("<select><option>a<option>b</select>", "a\nb"),
        ("a\0b", "ab"),
        ("<p title='<b>x</b>'>a</p>", "a"),
    ];
    for (html, expected) in cases {
        assert_eq!(facts(html).text, expected, "{html}");
    }
}

#[test]
fn headings_have_level_and_text_in_order() {
    let headings = |html: &str| {
        facts(html).headings.into_iter().map(|h| (h.level, h.text)).collect::<Vec<_>>()
    };
    assert_eq!(
        headings("<h1>a<a href=x>b</a></h1><h6> </h6><H3>c<h2>d</h4>e"),
        [(1, "ab".to_owned()), (3, "c".to_owned()), (2, "d".to_owned())]
    );
}

#[test]
fn robots_metas_for_everybody_and_for_us_add_up() {
    let asked = |html: &str| facts(html).directives;
    assert!(asked("<meta name=ROBOTS content='NOINDEX'>").noindex);
    assert!(asked("<meta name=DriftLine content=noindex>").noindex);
    assert!(!asked("<meta name=otherbot content=noindex>").noindex);
    let both = asked(
        "<meta name=robots content='noindex;nosnippet'>\
                      <meta name=driftline content='index, follow, nocache'>",
    );
    assert_eq!(
        both,
        Directives { noindex: true, nosnippet: true, noarchive: true, nofollow: false }
    );
    assert_eq!(asked("<meta name=robots>"), Directives::default());
}

#[test]
fn robots_headers_name_whom_they_mean() {
    let asked = |value: &str| header_directives(value, "driftline");
    let all = Directives { noindex: true, nofollow: true, noarchive: false, nosnippet: false };
    assert_eq!(asked("noindex, nofollow"), all);
    assert_eq!(asked(" NONE "), all);
    assert_eq!(asked("all"), Directives::default());
    assert_eq!(asked("otherbot: noindex, nofollow"), Directives::default());
    assert_eq!(asked("otherbot: noarchive, Driftline: noindex, nofollow"), all);
    assert_eq!(asked("noindex, otherbot: noarchive, *: nofollow"), all);
    assert_eq!(asked("unavailable_after: 25 Jun 2010 15:00:00 PST, none"), all);
    assert_eq!(asked("unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, none"), all);
    assert!(asked("max-snippet: 0, max-image-preview:large").nosnippet);
    assert!(!asked("max-snippet: 20").nosnippet);
    assert!(!asked("otherbot: max-snippet: 0").nosnippet);
    for odd in ["", ":", ",,,", ": noindex", "é: noindex", "\0"] {
        let _ = asked(odd);
    }
}

#[test]
fn other_encodings_are_read_too() {
    let html = "<title>Привет</title><a href='/я'>ссылка</a>";
    let policy = Policy::default();
    let russian = encoding_rs::WINDOWS_1251.encode(html).0.into_owned();
    let header = Some("text/html; charset=windows-1251");
    let read = extract(&Input { content_type: header, ..Input::new(&russian, URL, &policy) });
    let plain = extract(&Input {
        content_type: Some("text/html; charset=utf-8"),
        ..Input::new(html.as_bytes(), URL, &policy)
    });
    assert_eq!((&read.title, &read.links), (&plain.title, &plain.links));
    assert_eq!(read.charset, "windows-1251");

    let wide: Vec<u8> =
        [0xfeff].into_iter().chain(html.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let read = extract(&Input::new(&wide, URL, &policy));
    assert_eq!((&read.title, &read.links), (&plain.title, &plain.links));
    assert_eq!(read.charset, "UTF-16LE");
}

#[test]
fn a_document_without_a_usable_url_gives_text_but_no_links() {
    let facts =
        extract(&Input::new(b"<a href=http://a.example/>x</a>", "not a url", &Policy::default()));
    assert_eq!((facts.text.as_str(), facts.links.len()), ("x", 0));
}
