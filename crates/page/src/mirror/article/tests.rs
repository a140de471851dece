//! Articles: found by rules or without, written and read.

use encoding_rs::GBK;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;
use crate::mirror::Error;
use crate::mirror::rules::Rules;

const URL: &str = "https://a.example/news/1.htm";

fn extracted(html: &str, rules: &str) -> Article {
    let rules = Rules::parse(rules).unwrap();
    let page = Page {
        body: html.as_bytes(),
        url: URL,
        content_type: None,
        title: "Title - Site",
        last_modified_ms: Some(7),
    };
    extract(&page, Some(&rules))
}

fn reference(absolute_url: &str, original_url: &str) -> Reference {
    Reference { absolute_url: absolute_url.to_owned(), original_url: original_url.to_owned() }
}

#[test]
fn rules_say_where_an_article_is() {
    let rules = "[[article]]\npattern = '1.htm'\ntitle = '.t'\nauthor = '.by'\ndate = '.d'\n\
        body = '#text'\ndrop = ['.ad']";
    let html = "<h1>Site</h1><div class=t>Own &lt;title&gt;</div><i class=by>A. Uthor</i><b class=d>2012年7月20日</b>\
        <div id=text><p>One<!-- c --><script>x</script><div class=ad>buy<a href=no></a></div>\
        <a href='../b.htm'>b</a><font color=red>red</font><img src=c.png><a href='../b.htm'>again</a>\
        <a href='#x'>x</a><a href='mailto:x'>m</a></div><p>after";
    let article = extracted(html, rules);
    assert_eq!(article.page_title, "Title - Site");
    assert_eq!((&*article.title, &*article.author), ("Own <title>", "A. Uthor"));
    assert_eq!(article.last_modified_ms, Some(1_342_742_400_000));
    let body = "<p>One<a href='../b.htm'>b</a>red<img src=c.png><a href='../b.htm'>again</a>\
        <a href='#x'>x</a><a href='mailto:x'>m</a>";
    assert_eq!(article.body, body);
    let expected = [
        reference("https://a.example/b.htm", "../b.htm"),
        reference("https://a.example/news/c.png", "c.png"),
    ];
    assert_eq!(article.references, expected);
}

#[test]
fn without_rules_what_pages_commonly_have_counts() {
    let html = "<html><head><title>T</title><meta name=author content=' A '>\
        <meta property='og:title' content=''></head><body><nav>menu</nav><article><h1>Own</h1>\
        <time datetime='2024-05-01T10:00:00Z'>May</time><p>Text</article><footer>foot</footer>";
    let article = extracted(html, "");
    assert_eq!((&*article.title, &*article.author), ("Own", "A"));
    assert_eq!(article.last_modified_ms, Some(1_714_557_600_000));
    assert!(article.body.ends_with("<p>Text") && !article.body.contains("menu"));

    let bare = "<!DOCTYPE html><html><head><title>T</title><style>x</style></head><body><nav>menu</nav>\
        <p>Text</p><footer>foot</footer></body></html>";
    let article = extracted(bare, "");
    assert_eq!((&*article.body, &*article.title), ("<p>Text</p>", "Title - Site"));
    assert_eq!(article.last_modified_ms, Some(7), "what the server said");
}

#[test]
fn pages_in_other_encodings_are_read() {
    let body = GBK.encode("<meta charset=gb2312><h1>哈尔滨</h1><main>电业局</main>").0.into_owned();
    let page =
        Page { body: &body, url: URL, content_type: None, title: "", last_modified_ms: None };
    let article = extract(&page, None);
    assert_eq!((&*article.title, &*article.body), ("哈尔滨", "电业局"));
}

#[test]
fn dates_are_found_in_the_lines_of_many_sites() {
    let day = 1_342_742_400_000;
    for (text, ms) in [
        ("2012-07-20", Some(day)),
        ("发布时间：2012-07-20 10:30", Some(day + 37_800_000)),
        ("2012年7月20日 10时30分", Some(day + 37_800_000)),
        ("2012年07月20日　10：30：05", Some(day + 37_805_000)),
        ("Updated 12 times, 2012/7/20", Some(day)),
        ("2012.07.20 (99:99)", Some(day)),
        ("20120720 2012-13-45", None),
        ("", None),
        ("July 20", None),
    ] {
        assert_eq!(date_in(text), ms, "{text}");
    }
}

#[test]
fn the_file_is_that_of_the_format() {
    let article = Article {
        page_title: "T - S".to_owned(),
        title: "T".to_owned(),
        url: URL.to_owned(),
        author: String::new(),
        last_modified_ms: Some(-1),
        body: "<p>a & b\0</p>".to_owned(),
        references: vec![reference("http://www.harbin.gov.cn/", "/")],
    };
    let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<article format=\"1\">
  <ptitle>T - S</ptitle>
  <title>T</title>
  <url>https://a.example/news/1.htm</url>
  <author></author>
  <lastModified>-1</lastModified>
  <bodyData>&lt;p&gt;a &amp; b_x0000_&lt;/p&gt;</bodyData>
  <hashData>
    <hashNode>
      <hash>e31258c2c3dd45d4256a577fc7d5b55a</hash>
      <absoluteUrl>http://www.harbin.gov.cn/</absoluteUrl>
      <originalUrl>/</originalUrl>
    </hashNode>
  </hashData>
</article>
";
    assert_eq!(String::from_utf8(write(&article, Vec::new()).unwrap()).unwrap(), xml);
    assert_eq!(read(xml.as_bytes()).unwrap(), article);
    for wrong in [
        xml.replace("format=\"1\"", "format=\"2\""),
        xml.replace("-1", "soon"),
        xml.replace("</article>", ""),
        xml.replace("article", "essay"),
    ] {
        assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn bodies_and_references_are_bounded() {
    let links =
        |count: usize| -> String { (0..count).map(|at| format!("<a href={at}>")).collect() };
    let html = format!("<main>x{}</main>", links(REFERENCES_MAX + 1));
    assert_eq!(extracted(&html, "").references.len(), REFERENCES_MAX);
    let long = format!("<main>{}</main>", "é".repeat(BODY_BYTES_MAX));
    assert_eq!(extracted(&long, "").body.len(), BODY_BYTES_MAX);
    let mut article = Article { body: "x".repeat(BODY_BYTES_MAX + 1), ..Article::default() };
    assert!(matches!(write(&article, Vec::new()), Err(Error::TooLarge { .. })));
    article.body.clear();
    article.references = vec![reference("a", "a"); REFERENCES_MAX + 1];
    assert!(matches!(write(&article, Vec::new()), Err(Error::TooLarge { .. })));
    let many = "<hashNode/>".repeat(REFERENCES_MAX + 1);
    let xml = format!("<article><hashData>{many}</hashData></article>");
    assert!(matches!(read(xml.as_bytes()), Err(Error::TooLarge { .. })));
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_again(
        texts in vec(any::<String>(), 5), last_modified_ms in of(any::<i64>()),
        references in vec((any::<String>(), any::<String>()), 0..4),
    ) {
        let [page_title, title, url, author, body] = texts.try_into().expect("five of them");
        let references = references.iter().map(|(absolute, original)| reference(absolute, original));
        let article = Article {
            page_title, title, url, author, last_modified_ms, body, references: references.collect(),
        };
        let bytes = write(&article, Vec::new()).unwrap();
        prop_assert_eq!(read(&*bytes).unwrap(), article);
    }
}
