//! What a page needs, by every construct that can name it.

use super::*;
use crate::html;

const URL: &str = "https://a.example/dir/page.html";

fn of(html: &str) -> Vec<(String, ReferenceKind)> {
    let policy = Policy::default();
    let input = Input::new(html.as_bytes(), URL, &policy);
    let alone = of_page(&input);
    let mut facts = html::extract(&Input { requisites: true, ..input });
    let with_facts = std::mem::take(&mut facts.requisites);
    assert_eq!(alone.list, with_facts, "in the pass that reads the facts");
    assert_eq!(alone.is_cut, std::mem::take(&mut facts.truncated.requisites));
    assert_eq!(facts, html::extract(&input), "the facts stay what they are");
    alone.list.into_iter().map(|it| (it.url, it.kind)).collect()
}

fn urls(html: &str) -> Vec<String> {
    of(html).into_iter().map(|(url, _)| url.replace("https://a.example/dir/", "")).collect()
}

#[test]
fn every_construct_that_names_a_requisite_is_known() {
    use ReferenceKind as Kind;
    for (html, url, kind) in [
        ("<link rel='alternate StyleSheet' href=a.css>", "a.css", Kind::Stylesheet),
        ("<LINK REL='shortcut icon' HREF=a.ico>", "a.ico", Kind::Icon),
        ("<link rel=preload as=font href=a.woff2>", "a.woff2", Kind::Font),
        ("<link rel=modulepreload href=a.js>", "a.js", Kind::Script),
        ("<link rel=manifest href=a.json>", "a.json", Kind::Manifest),
        ("<script src=a.js></script>", "a.js", Kind::Script),
        ("<img src='a.png#x'>", "a.png", Kind::Image),
        ("<img data-src=a.png>", "a.png", Kind::Image),
        ("<picture><source srcset='a.avif 2x'></picture>", "a.avif", Kind::Image),
        ("<video src=a.mp4></video>", "a.mp4", Kind::Media),
        ("<video poster=a.png></video>", "a.png", Kind::Image),
        ("<audio><source src=a.ogg></audio>", "a.ogg", Kind::Media),
        ("<track src=a.vtt>", "a.vtt", Kind::Track),
        ("<iframe src=a.html></iframe>", "a.html", Kind::Frame),
        ("<frameset><frame src=a.html>", "a.html", Kind::Frame),
        ("<object data=a.svg></object>", "a.svg", Kind::Object),
        ("<embed src=a.swf>", "a.swf", Kind::Object),
        ("<input type=image src=a.png>", "a.png", Kind::Image),
        ("<body background=a.png>", "a.png", Kind::Image),
        ("<p style='background: url(&quot;a.png&quot;)'>", "a.png", Kind::Image),
        ("<style>@import 'a.css';</style>", "a.css", Kind::Stylesheet),
        ("<style>@font-face{src:url(a.ttf)}</style>", "a.ttf", Kind::Font),
        ("<svg><image xlink:href=a.png /></svg>", "a.png", Kind::Image),
        ("<svg><use href='a.svg#b' /></svg>", "a.svg", Kind::Image),
        ("<svg><style>a{b:url(a.png)}</style></svg>", "a.png", Kind::Image),
        ("<svg><style><![CDATA[a{b:url(a.png)}]]></style></svg>", "a.png", Kind::Image),
        ("<noscript><img src=a.png></noscript>", "a.png", Kind::Image),
        ("<iframe srcdoc='<img src=a.png>'></iframe>", "a.png", Kind::Image),
        ("<template><img src=a.png></template>", "a.png", Kind::Image),
    ] {
        assert_eq!(of(html), [(format!("https://a.example/dir/{url}"), kind)], "{html}");
    }
}

#[test]
fn links_and_what_leads_nowhere_are_no_requisites() {
    for html in [
        "<a href=a.html><area href=b.html><form action=c></form><blockquote cite=d>",
        "<link rel=canonical href=a><link rel=next href=b><link rel=preconnect href=//c>",
        "<meta http-equiv=refresh content='0; url=a'>",
        "<img src='data:image/png;base64,AA=='><img src=''><img src='#a'><img src='about:blank'>",
        "<svg><use href='#a' /><a href=b></a></svg>",
        "<script>'<img src=a>'</script><!-- <img src=b> --><title><img src=c></title>",
        "<textarea><img src=a></textarea><noscript><noscript><img src=b></noscript></noscript>",
        "<p class=url(a)>url(b)</p><img alt=c>",
        "<img src=\x10><img srcset='\x17 ,'><svg><style>a<p>{b:url(c)}</p></style></svg>",
    ] {
        assert_eq!(of(html), [], "{html}");
    }
}

#[test]
fn each_is_named_once_in_order_and_from_the_base() {
    let html = "<img src=b.png><img src=a.png srcset='b.png 2x, c.png 3x'><img src='./a.png'>";
    assert_eq!(urls(html), ["b.png", "a.png", "c.png"]);
    let html = "<img src=a.png><base href=sub/><img src=/b.png><base href=no/>";
    assert_eq!(urls(html), ["sub/a.png", "https://a.example/b.png"]);
}

#[test]
fn a_style_sheet_names_its_own() {
    let css = "@import 'b.css'; a{b:url(../c.png)} d{e:url(data:,f)} g{h:url(#i)}";
    let policy = Policy::default();
    let found = of_style_sheet(css, "https://a.example/css/a.css", &policy);
    let urls: Vec<&str> = found.list.iter().map(|it| it.url.as_str()).collect();
    assert_eq!(urls, ["https://a.example/css/b.css", "https://a.example/c.png"]);
}

#[test]
fn nothing_grows_without_limit() {
    let many =
        |count: usize| -> String { (0..count).map(|at| format!("<img src={at}>")).collect() };
    assert_eq!(urls(&many(REQUISITES_MAX)).len(), REQUISITES_MAX);
    assert_eq!(urls(&many(REQUISITES_MAX + 1)).len(), REQUISITES_MAX);
    let policy = Policy::default();
    let is_cut = |html: &str| of_page(&Input::new(html.as_bytes(), URL, &policy)).is_cut;
    assert!(!is_cut(&many(REQUISITES_MAX)) && is_cut(&many(REQUISITES_MAX + 1)));
    assert!(!is_cut(&many(REQUISITES_MAX).repeat(2)), "those that are there twice count once");
    let list = |bytes: usize| {
        format!("<img srcset='{}, a.png 2x'>", "x".repeat(bytes - ", a.png 2x".len()))
    };
    assert_eq!(urls(&list(VALUE_BYTES_MAX)).last().map(String::as_str), Some("a.png"));
    assert_eq!(urls(&list(VALUE_BYTES_MAX + 1)), [""; 0]);
    let long = format!("<img src='{}'>", "x".repeat(FOUND_BYTES_MAX));
    assert_eq!(urls(&(long.clone() + &long + "<img src=a>")), [""; 0]);
}
