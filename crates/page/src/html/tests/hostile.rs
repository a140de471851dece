//! Input that wants to be expensive.

use std::fmt::Write;

use super::*;

#[test]
fn a_million_nested_tags_are_read_to_the_end() {
    let html =
        format!("<title>t</title><a href=x>x</a>{}<a href=y>y</a>", "<div>".repeat(1_000_000));
    let facts = facts(&html);
    assert!(!facts.truncated.parse);
    assert_eq!((facts.title.as_str(), facts.text.as_str(), facts.links.len()), ("t", "x\ny", 2));
    let policy = Policy::default();
    assert_eq!(links_only(&Input::new(html.as_bytes(), URL, &policy)).len(), 2);
}

#[test]
fn thousands_of_unclosed_paragraphs_are_no_trouble() {
    let facts = facts(&"<p>x<li>y".repeat(10_000));
    assert!(!facts.truncated.parse);
    assert_eq!(facts.text.len(), 40_000 - 1);
}

#[test]
fn a_flood_of_links_keeps_the_first_ten_thousand() {
    let mut html = String::new();
    for number in 0..100_000 {
        let _ = write!(html, "<a href={number}>");
    }
    let html = html.replace('>', "></a>");
    let facts = facts(&html);
    assert_eq!(facts.links.len(), LINKS_MAX);
    assert!(facts.truncated.links && !facts.truncated.parse);
    assert_eq!(facts.links[LINKS_MAX - 1].url, "http://example.com/dir/9999");
}

#[test]
fn links_that_lead_nowhere_do_not_take_the_place_of_others() {
    let nowhere: String = (0..LINKS_MAX).map(|n| format!("<a href='mailto:{n}'></a>")).collect();
    let facts = facts(&format!("{nowhere}<a href=x>x</a>"));
    assert_eq!((facts.links.len(), facts.truncated.links), (1, false));
}

#[test]
fn a_huge_attribute_is_passed_over() {
    let huge = "x&amp;".repeat(2_000_000);
    let facts = facts(&format!(
        "<a title='{huge}' href='{huge}'>big</a><a href=y title='{huge}'></a><p>after"
    ));
    assert_eq!(facts.links.len(), 1);
    assert_eq!(facts.links[0].anchor.len(), SHORT_TEXT_BYTES_MAX);
    assert_eq!(facts.text, "big\nafter");
}

#[test]
fn a_tag_that_never_ends_is_nothing() {
    let facts = facts(&format!("<p>text<a href='{}", "x".repeat(10 << 20)));
    assert_eq!((facts.text.as_str(), facts.links.len()), ("text", 0));
}

#[test]
fn what_never_ends_is_read_once() {
    let long = "x".repeat(4 << 20);
    for open in [
        "<!--",
        "<!",
        "<?",
        "</3",
        "<!doctype x '",
        "<",
        "</",
        "<a ",
        "<a x=",
        "<title></",
        "<script><!--<script></",
        "<textarea>&",
    ] {
        assert_eq!(facts(&format!("{open}{long}")).text, "", "{open}");
    }
    let brackets = "<".repeat(4 << 20);
    assert_eq!(facts(&brackets).text, brackets);
}

#[test]
fn of_a_million_attributes_the_first_ones_count() {
    let many = "a=b ".repeat(1_000_000);
    let facts = facts(&format!("<p>text<a {many}href=x>y</a><a href=z {many}>w</a>"));
    assert_eq!(facts.text, "textyw");
    let urls: Vec<_> = facts.links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(urls, ["http://example.com/dir/z"]);
}

#[test]
fn a_million_nested_drawings_stop_the_pass() {
    let facts = facts(&format!("text{}", "<svg>".repeat(1_000_000)));
    assert!(facts.truncated.parse);
    assert_eq!(facts.text, "text");
}

#[test]
fn end_tags_that_end_nothing_take_linear_time() {
    let facts = facts(&format!("{}{}x", "<p>".repeat(50_000), "</x>".repeat(500_000)));
    assert_eq!(facts.text, "x");
}

#[test]
fn long_texts_titles_and_headings_are_cut_and_marked() {
    let words = "word ".repeat(TEXT_BYTES_MAX / 5 + 10);
    let facts = facts(&format!("<title>{words}</title><h1>{words}</h1>"));
    assert!(facts.truncated.text);
    assert!(facts.text.len() <= TEXT_BYTES_MAX && facts.text.len() > TEXT_BYTES_MAX - 6);
    assert!(facts.title.len() <= SHORT_TEXT_BYTES_MAX);
    assert!(facts.headings[0].text.len() <= SHORT_TEXT_BYTES_MAX);
}

#[test]
fn too_many_headings_are_cut_and_marked() {
    let facts = facts(&"<h2>x</h2>".repeat(HEADINGS_MAX + 1));
    assert_eq!((facts.headings.len(), facts.truncated.headings), (HEADINGS_MAX, true));
}

#[test]
fn nuls_and_control_characters_do_no_harm() {
    let facts = facts("\0<\0a href=x><a\0 href=y><a href='z\0'>\0l\u{1b}[31mink</a>\0");
    assert!(!facts.text.contains('\0') && !facts.text.contains('\u{1b}'));
    assert!(facts.links.iter().all(|link| !link.url.contains('\0')));
}

#[test]
fn many_references_and_angle_brackets_take_linear_time() {
    for part in [
        "&",
        "&amp",
        "&#",
        "&#x",
        "&#1114112;",
        "&NotEqualTild",
        "<",
        "</",
        "</a",
        "<!--",
        "</a \"",
        "</a='",
        "<![CDATA[",
        "<a b='",
        "<svg>",
        "<title>",
        "</title",
        "<math><mi>",
    ] {
        let html = part.repeat(30_000);
        let _ = facts(&html);
        let _ = facts(&format!("<math>{html}"));
        let _ = facts(&format!("<title>{html}"));
    }
}
