//! Each flavour, each mistake, and feeds made to hurt.

use super::*;

const RSS: &str = r#"<?xml version="1.0"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/">
<channel><title>News &amp; more</title><link>https://a.example/</link>
<atom:link rel="self" href="https://a.example/feed"/><atom:link rel="hub" href="https://hub.example/"/>
<image><title>no</title><link>https://a.example/no</link></image>
<item><title><![CDATA[<b>One</b> &amp; only]]></title><link>https://a.example/1</link><guid isPermaLink="false">g1</guid>
<pubDate>Sat, 01 Jan 2005 00:00:00 GMT</pubDate><media:title>no</media:title></item>
<item><title>Two</title><guid>https://a.example/2</guid></item>
<item><title>No address</title></item>
</channel></rss>"#;

fn urls(feed: &Feed) -> Vec<&str> {
    feed.entries.iter().map(|entry| entry.url.as_str()).collect()
}

#[test]
fn rss_is_read() {
    let feed = read(RSS.as_bytes()).unwrap();
    assert_eq!((feed.kind, feed.title.as_str()), (FeedKind::Rss, "News & more"));
    assert_eq!(feed.site.as_deref(), Some("https://a.example/"));
    assert_eq!(feed.hub.as_deref(), Some("https://hub.example/"));
    assert_eq!((feed.truncated, feed.malformed), (false, false));
    let first = FeedEntry {
        url: "https://a.example/1".into(),
        title: "One & only".into(),
        updated_ms: Some(1_104_537_600_000),
        id: "g1".into(),
    };
    assert_eq!(feed.entries[0], first);
    assert_eq!(urls(&feed), ["https://a.example/1", "https://a.example/2"]);
}

#[test]
fn old_and_sloppy_versions_of_rss_are_read() {
    for version in [
        "",
        " version='2'",
        " version='0.91'",
        " version='2.0' xmlns='http://backend.userland.com/rss2'",
    ] {
        let xml = RSS.replace(" version=\"2.0\"", version);
        assert_eq!(read(xml.as_bytes()).unwrap().entries.len(), 2, "{version}");
    }
    let rdf = br#"<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Old</title><link>https://a.example/</link></channel>
        <item><title>One</title><link>https://a.example/1</link><dc:date>2005-01-01</dc:date></item></rdf:RDF>"#;
    let feed = read(rdf).unwrap();
    assert_eq!((feed.title.as_str(), urls(&feed)), ("Old", vec!["https://a.example/1"]));
    assert_eq!(feed.entries[0].updated_ms, Some(1_104_537_600_000));
}

#[test]
fn atom_is_read() {
    let feed = read(
        r#"<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://a.example/b/"><title type="html">A &lt;i&gt;feed&lt;/i&gt;</title>
        <link rel="self" href="https://a.example/feed"/><link href="https://a.example/"/>
        <entry><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">An <b>entry</b></div></title>
        <link rel="edit" href="/edit"/><link rel="alternate" href="c?x=1&amp;y=2"/><id>urn:1</id>
        <published>2004-01-01T00:00:00Z</published><updated>2005-01-01T00:00:00Z</updated>
        <content type="x y z">text</content></entry></feed>"#
            .as_bytes(),
    )
    .unwrap();
    assert_eq!((feed.kind, feed.title.as_str()), (FeedKind::Atom, "A feed"));
    assert_eq!(feed.site.as_deref(), Some("https://a.example/"));
    let entry = FeedEntry {
        url: "https://a.example/b/c?x=1&y=2".into(),
        title: "An entry".into(),
        updated_ms: Some(1_104_537_600_000),
        id: "urn:1".into(),
    };
    assert_eq!(feed.entries, [entry]);
}

#[test]
fn a_json_feed_is_read() {
    let feed = read(
        br#"{"version": "https://jsonfeed.org/version/1.1", "title": "J", "home_page_url": "https://a.example/",
        "hubs": [{"type": "WebSub", "url": "https://hub.example/"}], "authors": [{"name": "x"}], "items": [
        {"id": 1, "url": "https://a.example/1", "title": "One", "date_published": "2005-01-01T00:00:00Z"},
        {"id": "https://a.example/2", "title": null, "content_text": {"odd": [1]}}, {"id": true}]}"#,
    )
    .unwrap();
    assert_eq!((feed.kind, feed.title.as_str()), (FeedKind::Json, "J"));
    assert_eq!(feed.hub.as_deref(), Some("https://hub.example/"));
    assert_eq!(urls(&feed), ["https://a.example/1", "https://a.example/2"]);
    assert_eq!(feed.entries[0].id, "1");
    assert_eq!(feed.entries[0].updated_ms, Some(1_104_537_600_000));
}

#[test]
fn what_is_no_feed_is_none() {
    for bytes in [
        &b""[..],
        b"text",
        b"<html><body>hello</body></html>",
        b"<urlset><url><loc>/a</loc></url></urlset>",
        b"{}",
        b"{\"version\": 1}",
        b"{\"version\": \"https://jsonfeed.org/version/1\", \"items\": [",
        b"<?xml version='1.0'?>",
    ] {
        assert_eq!(read(bytes), None, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_feed_that_breaks_off_keeps_its_whole_entries() {
    let cut = &RSS[..RSS.find("<title>Two").unwrap() + 8];
    let feed = read(cut.as_bytes()).unwrap();
    assert_eq!((urls(&feed), feed.malformed), (vec!["https://a.example/1"], true));
    let wrong = RSS.replace("<title>Two</title>", "<title>Two</tile>");
    let feed = read(wrong.as_bytes()).unwrap();
    assert_eq!((urls(&feed), feed.malformed), (vec!["https://a.example/1"], true));
}

#[test]
fn entities_of_a_doctype_stay_what_was_written() {
    let mut doctype = String::from(
        "<!DOCTYPE rss [<!ENTITY x SYSTEM \"file:///etc/hostname\"><!ENTITY l0 \"lol\">",
    );
    for level in 1..30 {
        let below = format!("&l{};", level - 1).repeat(10);
        doctype.push_str(&format!("<!ENTITY l{level} \"{below}\">"));
    }
    let xml = RSS.replace("<?xml version=\"1.0\"?>", &(doctype + "]>")).replace("Two", "&x;&l29;");
    assert_eq!(read(xml.as_bytes()).unwrap().entries[1].title, "&x;&l29;");
}

#[test]
fn deep_nesting_does_not_grow_the_stack() {
    let deep = 70_000;
    for name in ["media:group", "x", "item", "title", "div"] {
        let open = format!("<{name}>").repeat(deep);
        let xml = RSS.replace("<media:title>", &format!("{open}<media:title>"));
        assert!(read(xml.as_bytes()).is_some(), "{name}");
        let close = format!("</{name}>").repeat(deep);
        let xml = RSS.replace("<title>Two", &format!("{open}{close}<title>Two"));
        assert!(read(xml.as_bytes()).is_some(), "{name}");
    }
    let json = "{\"version\": \"https://jsonfeed.org/version/1\", \"items\": ".to_owned()
        + &"[".repeat(deep);
    assert_eq!(read(json.as_bytes()), None);
    let json = "{\"x\":".repeat(deep);
    assert_eq!(read(json.as_bytes()), None);
}

#[test]
fn text_that_feed_rs_would_multiply_is_cut_away() {
    // Ten thousand contents, each of which would inherit the description.
    let media = format!(
        "<media:group><media:description>{}</media:description>{}</media:group>",
        "x".repeat(2 << 20),
        "<media:content url='https://a.example/v'/>".repeat(10_000)
    );
    let feed = read(RSS.replace("<media:title>no</media:title>", &media).as_bytes()).unwrap();
    assert_eq!(feed.entries.len(), 2);
    // The same with authors of a JSON feed.
    let json = format!(
        "{{\"version\": \"https://jsonfeed.org/version/1\", \"authors\": [{{\"name\": \"{}\"}}], \"items\": [{}{{}}]}}",
        "x".repeat(2 << 20),
        "{\"url\":\"/\"},".repeat(5_000)
    );
    assert_eq!(read(json.as_bytes()).unwrap().entries.len(), 5_000);
    // And with a base address.
    let base = format!("xml:base='https://a.example/{}'", "x".repeat(2 << 20));
    let atom = format!("<feed {base}>{}</feed>", "<entry><link href='b'/></entry>".repeat(5_000));
    assert_eq!(read(atom.as_bytes()).unwrap().entries[0].url, "b");
}

#[test]
fn a_base_address_that_is_none_does_not_cost_the_feed() {
    let atom = "<feed><entry xml:base='http://[bad'><link href='b' xml:base='https://:::'/></entry></feed>";
    assert_eq!(urls(&read(atom.as_bytes()).unwrap()), ["b"]);
}

#[test]
fn many_attributes_and_namespaces_are_bounded() {
    let many: String = (0..100_000).map(|n| format!(" a{n}='x'")).collect();
    let xml = RSS.replace("<item>", &format!("<item{many}>"));
    assert_eq!(read(xml.as_bytes()).unwrap().entries.len(), 2);
    let spaces: String = (0..1_000).map(|n| format!(" xmlns:a{n}='x'")).collect();
    let xml = RSS.replace("<guid>", &format!("<guid{spaces}>"));
    assert_eq!(read(xml.as_bytes()).unwrap().entries.len(), 1);
}

#[test]
fn entries_and_texts_are_bounded() {
    let item = "<item><link>https://a.example/</link></item>";
    let xml = format!("<rss><channel>{}</channel></rss>", item.repeat(ENTRIES_MAX + 1));
    let feed = read(xml.as_bytes()).unwrap();
    assert_eq!((feed.entries.len(), feed.truncated), (ENTRIES_MAX, true));
    let json = format!(
        "{{\"version\": \"https://jsonfeed.org/version/1\", \"items\": [{}{{}}]}}",
        "{\"url\":\"/\"},".repeat(ENTRIES_MAX)
    );
    let feed = read(json.as_bytes()).unwrap();
    assert_eq!((feed.entries.len(), feed.truncated), (ENTRIES_MAX, true));
    let long = "é".repeat(1 << 20);
    let feed = read(RSS.replace("Two", &long).replace("a.example/1", &long).as_bytes()).unwrap();
    assert_eq!(urls(&feed), ["https://a.example/2"]);
    assert_eq!(feed.entries[0].title.len(), SHORT_TEXT_BYTES_MAX);
    let links =
        format!("<rss><channel><item>{}</item></channel></rss>", "<link>/</link>".repeat(100_001));
    assert!(read(links.as_bytes()).unwrap().truncated);
}

#[test]
fn a_feed_beyond_the_limit_of_bytes_keeps_what_came_first() {
    let mut xml = RSS.replace("</channel></rss>", "").into_bytes();
    xml.resize(BYTES_MAX, b' ');
    xml.extend(b"</channel></rss>");
    let feed = read(&xml).unwrap();
    assert_eq!((feed.entries.len(), feed.truncated), (2, true));
}

#[test]
fn bytes_that_are_no_utf_8_are_replaced_and_cost_nothing_else() {
    let mut xml = RSS.as_bytes().to_vec();
    let at = RSS.find("Two").unwrap();
    xml.splice(at..at + 3, *b"T\xff\xc0\x80\xed\xa0\x80o");
    let feed = read(&xml).unwrap();
    assert_eq!((feed.entries.len(), feed.malformed), (2, false));
    assert!(feed.entries[1].title.starts_with("T\u{fffd}") && feed.entries[1].title.ends_with('o'));
}

#[test]
fn a_feed_that_unpacks_to_far_more_than_it_is_keeps_what_came_first() {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(RSS.replace("</channel></rss>", "").as_bytes()).unwrap();
    packed.write_all(&vec![b' '; 64 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 1 << 17, "{} bytes", packed.len());
    let feed = read(&packed).unwrap();
    assert_eq!((feed.entries.len(), feed.truncated), (2, true));
}

#[test]
fn titles_become_plain_text() {
    for (markup, plain) in [
        ("  a \n b\u{0}c ", "a b c"),
        ("a < b && c > d", "a < b && c > d"),
        ("<b class=\"x\">bold</b>move", "bold move"),
        (
            "Tom &amp; Jerry &#39;&#x41;&#39; &unknown; &#xFFFFFFFF; &",
            "Tom & Jerry 'A' &unknown; &#xFFFFFFFF; &",
        ),
        ("<script>alert(1)</script>", "alert(1)"),
        ("&lt;b&gt;", "<b>"),
        ("an open <tag", "an open <tag"),
        ("&é;&", "&é;&"),
        ("", ""),
    ] {
        assert_eq!(plain_text(markup), plain, "{markup}");
    }
    assert!(plain_text(&"<a".repeat(8 << 20)).len() <= SHORT_TEXT_BYTES_MAX);
}

#[test]
fn a_title_that_is_cut_behind_a_blank_ends_without_it() {
    let word = "x".repeat(SHORT_TEXT_BYTES_MAX - 1);
    assert_eq!(plain_text(&format!("{word} y")), word);
}

proptest::proptest! {
    #[test]
    fn any_bytes_have_an_answer(bytes: Vec<u8>) {
        read(&bytes);
    }

    #[test]
    fn any_markup_has_an_answer(
        text in "(<rss>|<feed>|<entry>|<channel>|<item>|<title>|</title>|<link>|</link>|</item>|<link href='é'/>|&amp;|&#1;|&|<!\\[CDATA\\[|\\]\\]>|<!DOCTYPE|>|x){0,40}",
    ) {
        read(text.as_bytes());
    }
}
