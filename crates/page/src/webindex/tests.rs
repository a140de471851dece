//! The rules of Webindex, row by row of its description, and its own pages.

use super::*;
use crate::outlinks::domain_of;
use crate::url::URL_BYTES_MAX;

const PAGE: &str = "http://www.a.com/page1";

fn list() -> &'static SuffixList {
    SuffixList::bundled()
}

/// A record about an answer, whose parts are given as they stand in the JSON.
fn record(headers: &str, html: &str) -> String {
    format!(
        r#"{{"Container": {{}}, "Envelope": {{"Payload-Metadata": {{"HTTP-Response-Metadata": {{
            "Response-Message": {{"Status": "404"}}, "Headers": {headers},
            "HTML-Metadata": {html}}}}}}}}}"#
    )
}

fn read(block: &str) -> WebindexPage {
    from_wat(block.as_bytes(), PAGE, None, list()).unwrap()
}

/// The row and the anchor of what is kept of these entries.
fn kept(entries: &str) -> Vec<(String, String)> {
    let page = read(&record("{}", &format!(r#"{{"Links": [{entries}]}}"#)));
    page.links.into_iter().map(|link| (link.uri, link.anchor)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(uri, anchor)| ((*uri).to_owned(), (*anchor).to_owned())).collect()
}

#[test]
fn a_record_without_json_is_no_page() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for block in ["", " ", "{", "[]", "7", "null", "delete", "{} {}", &deep] {
        assert_eq!(from_wat(block.as_bytes(), PAGE, None, list()), None, "{block:.20}");
    }
}

#[test]
fn a_record_about_a_url_without_a_row_is_no_page() {
    for url in ["", "dns:www.a.com", "http://com/", "http://a.com/x>y", "http://a.com/x\0y"] {
        assert_eq!(from_wat(b"{}", url, None, list()), None, "{url:?}");
    }
    let page = from_wat(b"{}", " HTTP://WWW.A.com:80 ", None, list()).unwrap();
    assert_eq!((&*page.url, &*page.uri), ("http://www.a.com/", "com.a>.www>o>/"));
}

#[test]
fn date_server_and_title_are_taken_as_written() {
    let headers = r#"{"server": "lower", "Server": "nginx/1.2"}"#;
    let block = record(headers, r#"{"Head": {"Title": " One \n &amp; two "}}"#);
    let page = from_wat(block.as_bytes(), PAGE, Some("2015-07-28T03:06:17Z"), list()).unwrap();
    assert_eq!(page.crawl_date.as_deref(), Some("2015-07-28T03:06:17Z"));
    assert_eq!(page.server.as_deref(), Some("nginx/1.2"));
    assert_eq!(page.title.as_deref(), Some(" One \n &amp; two "));
    let page = read(&record(r#"{"server": "lower", "SERVER": "upper"}"#, "{}"));
    assert_eq!((page.crawl_date, page.server, page.title), (None, None, None));
}

#[test]
fn only_anchors_with_an_address_count() {
    let entries = r#"
        {"path": "A@/href", "url": "http://b.com/1"},
        {"path": "IMG@/src", "url": "http://b.com/2"},
        {"path": "a@/href", "url": "http://b.com/3"},
        {"path": "A@/href ", "url": "http://b.com/4"},
        {"path": "AREA@/href", "url": "http://b.com/5"},
        {"path": "FORM@/action", "url": "http://b.com/6"},
        {"path": "A@/href"},
        {"url": "http://b.com/7"}"#;
    assert_eq!(kept(entries), pairs(&[("com.b>>o>/1", "")]));
}

#[test]
fn the_anchor_is_the_text_else_the_title_else_nothing() {
    let entries = r#"
        {"path": "A@/href", "url": "http://b.com/1", "text": " Text\n &lt; ", "title": "Title"},
        {"path": "A@/href", "url": "http://b.com/2", "text": "", "title": "Title"},
        {"path": "A@/href", "url": "http://b.com/3", "title": "Title"},
        {"path": "A@/href", "url": "http://b.com/4", "alt": "Alt"}"#;
    let expected = [
        ("com.b>>o>/1", " Text\n &lt; "),
        ("com.b>>o>/2", ""),
        ("com.b>>o>/3", "Title"),
        ("com.b>>o>/4", ""),
    ];
    assert_eq!(kept(entries), pairs(&expected));
}

#[test]
fn links_are_not_resolved_and_those_of_the_same_domain_are_dropped() {
    let urls = [
        "/relative",
        "//b.com/x",
        "../x",
        "#top",
        "mailto:me@b.com",
        "javascript:void(0)",
        "http://user@b.com/",
        "http://[::1]/",
        "http://localhost/",
        "http://b.com/x>y",
        "http://b.com/\\u0000x",
        PAGE,
        "https://a.com/",
        "http://other.a.com:81/",
        "http://b.com?a=1&amp;b=2",
        " HTTPS://B.com:443/X#y ",
    ];
    let entries: Vec<String> =
        urls.iter().map(|url| format!(r#"{{"path": "A@/href", "url": "{url}"}}"#)).collect();
    let expected = [("com.b>>o>?a=1&amp;b=2", ""), ("com.b>>s>/X#y", "")];
    assert_eq!(kept(&entries.join(",")), pairs(&expected));
}

#[test]
fn links_are_sorted_and_a_second_anchor_for_a_target_is_discarded() {
    let entries = r#"
        {"path": "A@/href", "url": "http://c.com/"},
        {"path": "A@/href", "url": "http://b.com/", "text": "first"},
        {"path": "A@/href", "url": "http://C.com", "text": "second"},
        {"path": "A@/href", "url": "http://b.com:80/", "text": "second"}"#;
    assert_eq!(kept(entries), pairs(&[("com.b>>o>/", "first"), ("com.c>>o>/", "")]));
}

#[test]
fn neither_status_nor_rel_is_looked_at() {
    let entry = r#"{"path": "A@/href", "url": "http://b.com/", "rel": "nofollow"}"#;
    let page = read(&record("{}", &format!(r#"{{"Links": [{entry}]}}"#)));
    assert_eq!((page.links[0].kind, page.links[0].rel), (LinkKind::A, Rel::default()));
}

#[test]
fn a_page_without_links_is_a_page() {
    for block in [
        "{}",
        r#"{"Envelope": {"Payload-Metadata": {"HTTP-Request-Metadata": {"Headers": {}}}}}"#,
        &record("{}", "{}"),
        &record("{}", r#"{"Links": []}"#),
    ] {
        let page = read(block);
        assert_eq!((&*page.uri, page.links.len()), ("com.a>.www>o>/page1", 0), "{block}");
    }
}

#[test]
fn what_has_another_type_is_passed_over_where_it_stands() {
    for block in [r#"{"Envelope": 7}"#, r#"{"Envelope": {"Payload-Metadata": []}}"#] {
        assert!(read(block).links.is_empty(), "{block}");
    }
    assert!(read(&record("[]", r#"{"Links": 7}"#)).links.is_empty());
    let html = r#"{"Head": {"Title": null, "Metas": 1}, "Links": [7, null, [], {"path": 1},
        {"path": "A@/href", "url": ["http://b.com/"]},
        {"path": "A@/href", "url": "http://b.com/", "text": 7, "title": "Title"}]}"#;
    let page = read(&record(r#"{"Server": ["one", "two"]}"#, html));
    assert_eq!((page.server, page.title), (None, None));
    assert_eq!((&*page.links[0].anchor, page.links.len()), ("Title", 1));
    let block = [b"{\"Envelope\": \"\xff\"}".as_slice(), b" "].concat();
    assert!(from_wat(&block, PAGE, None, list()).is_some(), "bytes that are not UTF-8");
}

#[test]
fn texts_are_cut_at_a_character_and_hold_no_nul() {
    let cut = |text: &str| short_text(Some(text)).unwrap();
    let at_limit = "x".repeat(SHORT_TEXT_BYTES_MAX);
    assert_eq!(cut(&at_limit), at_limit);
    assert_eq!(cut(&format!("{at_limit}y")), at_limit);
    assert_eq!(cut(&format!("{}é", &at_limit[1..])), at_limit[1..]);
    assert_eq!(cut("a\0b\0"), "ab");
    let long = "é ".repeat(SHORT_TEXT_BYTES_MAX);
    let block = record(
        &format!(r#"{{"Server": "{long}"}}"#),
        &format!(
            r#"{{"Head": {{"Title": "{long}"}}, "Links":
                [{{"path": "A@/href", "url": "http://b.com/", "text": "\u0000{long}"}}]}}"#
        ),
    );
    let page = from_wat(block.as_bytes(), PAGE, Some(&long), list()).unwrap();
    let anchor = Some(&page.links[0].anchor);
    for text in [page.crawl_date.as_ref(), page.server.as_ref(), page.title.as_ref(), anchor] {
        let bytes = text.unwrap().len();
        assert!((SHORT_TEXT_BYTES_MAX - 3..=SHORT_TEXT_BYTES_MAX).contains(&bytes));
    }
}

#[test]
fn links_are_kept_up_to_their_limit_and_counted_once() {
    let count = |distinct: usize| {
        let link = |number: usize| {
            format!(r#"{{"path":"A@/href","url":"http://b.com/{:05}"}}"#, number % distinct)
        };
        let links: Vec<String> = (0..2 * distinct).map(link).collect();
        let page = read(&record("{}", &format!(r#"{{"Links":[{}]}}"#, links.join(","))));
        (page.links.len(), page.links[page.links.len() - 1].uri.clone())
    };
    let last = "com.b>>o>/09999".to_owned();
    assert_eq!(count(LINKS_MAX - 1).0, LINKS_MAX - 1);
    assert_eq!(count(LINKS_MAX), (LINKS_MAX, last.clone()));
    assert_eq!(count(LINKS_MAX + 1), (LINKS_MAX, last));
}

#[test]
fn a_record_a_line_and_a_url_may_be_so_long_and_no_longer() {
    let padded = |text: &str, bytes: usize| text.to_owned() + &" ".repeat(bytes - text.len());
    let record = |bytes| from_wat(padded("{}", bytes).as_bytes(), PAGE, None, list()).is_some();
    assert!(record(wat::BYTES_MAX) && !record(wat::BYTES_MAX + 1));
    let json = to_json(&read("{}"));
    let line = |bytes| from_json(padded(&json, bytes).as_bytes(), list()).is_some();
    assert!(line(JSON_BYTES_MAX) && !line(JSON_BYTES_MAX + 1));
    let page = |row_bytes| {
        let url = format!("http://b.com/{}", "x".repeat(row_bytes - "com.b>>o>/".len()));
        from_wat(b"{}", &url, None, list()).is_some()
    };
    assert!(page(URL_BYTES_MAX) && !page(URL_BYTES_MAX + 1));
}

#[test]
fn the_json_of_a_page_has_the_keys_of_the_original_in_its_order() {
    let entries = r#"{"path": "A@/href", "url": "https://C.com/\"x", "text": "é\n"},
        {"path": "A@/href", "url": "http://b.com"}"#;
    let mut page = read(&record("{}", &format!(r#"{{"Links": [{entries}]}}"#)));
    let json = concat!(
        r#"{"url":"http://www.a.com/page1","uri":"com.a>.www>o>/page1","numOutbound":2,"#,
        r#""outboundLinks":[{"url":"http://b.com/","uri":"com.b>>o>/","anchorText":""},"#,
        r#"{"url":"https://c.com/\"x","uri":"com.c>>s>/\"x","anchorText":"é\n"}]}"#
    );
    assert_eq!(to_json(&page), json);
    assert_eq!(from_json(json.as_bytes(), list()).as_ref(), Some(&page));
    page.crawl_date = Some("2015".into());
    page.server = Some(String::new());
    page.title = Some("T".into());
    let filled = json.replace(
        r#""numOutbound":2,"#,
        r#""numOutbound":2,"crawlDate":"2015","server":"","title":"T","#,
    );
    assert_eq!(to_json(&page), filled);
    assert_eq!(from_json(filled.as_bytes(), list()), Some(page));
}

#[test]
fn rows_and_counts_of_page_json_are_made_anew() {
    let line = r#"{"url":"http://WWW.a.com","uri":7,"numOutbound":"x","numInbound":3,"title":null,
        "outboundLinks":[{"url":"http://b.com","uri":"com.wrong>>o>/"},{"url":"/x"},
        {"url":"http://c.a.com/"},{"url":"http://b.com/","anchorText":"late"}]}"#;
    let page = from_json(line.as_bytes(), list()).unwrap();
    assert_eq!((&*page.url, &*page.uri), ("http://www.a.com/", "com.a>.www>o>/"));
    assert_eq!(page.links.len(), 1);
    assert_eq!((&*page.links[0].uri, &*page.links[0].anchor), ("com.b>>o>/", ""));
    assert!(from_json(br#"{"url":"http://a.com"}"#, list()).unwrap().links.is_empty());
}

#[test]
fn what_is_no_page_json_is_none() {
    for line in [
        "",
        "delete",
        "{}",
        "[]",
        r#"{"url":"a.com"}"#,
        r#"{"url":7}"#,
        r#"{"url":"http://a.com/","outboundLinks":7}"#,
        r#"{"url":"http://a.com/","outboundLinks":[{"anchorText":"x"}]}"#,
    ] {
        assert_eq!(from_json(line.as_bytes(), list()), None, "{line}");
    }
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    for (key, is_page) in [("outboundLinks", false), ("other", true)] {
        let line = format!(r#"{{"url":"http://a.com/","{key}":{open}{close}}}"#);
        assert_eq!(from_json(line.as_bytes(), list()).is_some(), is_page, "{key}");
    }
}

#[test]
fn dates_of_archives_are_read() {
    assert_eq!(date_ms("2015-07-28T03:06:17Z"), Some(1_438_052_777_000));
    assert_eq!(date_ms("2015-07-28T03:06:17.25+01:00"), Some(1_438_049_177_250));
    assert_eq!(date_ms("yesterday"), None);
}

fn oracle(name: &str) -> Option<String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/oracles/linkindex/");
    let text = std::fs::read_to_string(format!("{dir}{name}")).ok();
    if text.is_none() {
        println!("SKIPPED: oracles/linkindex/{name} is missing");
    }
    text
}

#[test]
fn the_pages_of_the_original_are_read_and_written_as_it_wrote_them() {
    let Some(text) = oracle("5-pages.txt") else { return };
    let mut counts = Vec::new();
    for line in text.lines() {
        let page = from_json(line.as_bytes(), list()).unwrap();
        let json = to_json(&page);
        // Its writer escaped more than JSON asks for.
        let plain = [("\\u003e", ">"), ("\\u003d", "="), ("\\u0026", "&"), ("\\u0027", "'")];
        let line = plain.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
        assert_eq!(json, line);
        assert_eq!(from_json(json.as_bytes(), list()).as_ref(), Some(&page));
        assert!(page.crawl_date.as_deref().and_then(date_ms).is_some());
        counts.push(page.links.len());
    }
    assert_eq!(counts, [19, 4, 6, 8, 7]);
}

#[test]
fn the_links_and_domains_of_the_originals_pages_are_the_expected_cells() {
    let (Some(text), Some(cells)) = (oracle("5-pages.txt"), oracle("5-pages-expected.txt")) else {
        return;
    };
    let pages: Vec<WebindexPage> =
        text.lines().map(|line| from_json(line.as_bytes(), list()).unwrap()).collect();
    let mut found = Vec::new();
    for page in &pages {
        found.push(format!("p:{}|page|cur|{{json}}", page.uri));
        for link in &page.links {
            found.push(format!("p:{}|inlinks|{}|{}", link.uri, page.uri, link.anchor));
        }
    }
    found.sort();
    let mut expected: Vec<&str> = cells
        .lines()
        .filter(|cell| cell.contains("|inlinks|") || cell.contains("|page|cur|"))
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    for page in &pages {
        let cell = format!("d:{}|domain|pagecount|", domain_of(&page.uri));
        assert!(cells.lines().any(|line| line.starts_with(&cell)), "{cell}");
    }
}

#[test]
fn a_line_gives_its_links_to_whoever_judges_them_otherwise() {
    let line = r#"{"url": "HTTP://A.com", "crawlDate": "2015-07-28T03:06:17Z", "title": "T\u0000",
        "server": "s", "outboundLinks": [{"url": "http://a.com/own#part", "anchorText": "own"},
        {"url": "mailto:x"}, {"url": "//b.com/"}, {"url": "https://b.com/"}]}"#;
    let page = given(line.as_bytes()).unwrap();
    assert_eq!((&*page.url, page.title.as_deref()), ("http://a.com/", Some("T")));
    assert_eq!(page.crawl_date.as_deref().and_then(date_ms), Some(1_438_052_777_000));
    let links: Vec<(&str, &str)> = page.links.iter().map(|it| (&*it.url, &*it.anchor)).collect();
    assert_eq!(links, [("http://a.com/own", "own"), ("https://b.com/", "")]);
    let many = |count: usize| {
        let links = vec![r#"{"url": "https://b.com/"}"#; count].join(",");
        given(format!(r#"{{"url": "http://a.com/", "outboundLinks": [{links}]}}"#).as_bytes())
    };
    assert_eq!(many(LINKS_MAX + 1).unwrap().links.len(), LINKS_MAX);
    let padded =
        |bytes: usize| given([line, &" ".repeat(bytes - line.len())].concat().as_bytes()).is_some();
    assert!(padded(JSON_BYTES_MAX) && !padded(JSON_BYTES_MAX + 1));
    for line in ["", "delete", "{}", r#"{"url": "mailto:x"}"#, r#"{"url": "http://a.com/"} {}"#] {
        assert_eq!(given(line.as_bytes()), None, "{line}");
    }
}
