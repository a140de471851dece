//! What the reactor does to pages, and that without rules it does nothing.

use proptest::prelude::*;

use super::*;
use crate::mirror::rules::Rules;

fn reacted(html: &str, rules: &str) -> String {
    let rules = Rules::parse(rules).unwrap();
    let base = Url::parse("https://a.example/dir/").unwrap();
    let context = Context {
        base: &base,
        is_inside: &|url| url.host_str() == Some("a.example"),
        image_digest: &|url| url.path().ends_with("known.png").then(|| "00ff".to_owned()),
    };
    react(html, &rules.reactor, &context).into_owned()
}

#[test]
fn without_rules_a_page_stays_as_it_is() {
    let html = "<!-- c --><font>x</font><script>y</script><img src=a><i>z. z</i><center";
    assert_eq!(reacted(html, ""), html);
    assert_eq!(reacted(html, "[reactor]\nnotice = 'x'"), html);
}

#[test]
fn what_readers_of_screens_cannot_use_is_dropped_if_that_is_asked_for() {
    let html = "a<!-- c --><script>x</script><style>y</style><iframe src=b></iframe><applet>z</applet>\
        <map><area href=c></map><object data=d></object><form action=e><input></form><form>f</form>\
        <img src=g><img src=h alt=H><img src=i alt=''><canvas></canvas><video src=j></video><video src=l><track src=m></video><audio></audio><p>k";
    let expected =
        "a<form>f</form><img src=h alt=H><img src=i alt=''><video src=l><track src=m></video><p>k";
    assert_eq!(reacted(html, "[reactor]\naccessible = true"), expected);
}

#[test]
fn markup_that_is_no_more_becomes_standard_and_says_what_is_meant() {
    let html =
        "<center><font size=7>a</font></center><tt>b</tt><menu><li>c</menu><marquee>d</marquee>";
    let expected = "<div>a</div><code>b</code><ul><li>c</ul><div>d</div>";
    assert_eq!(reacted(html, "[reactor]\nstandard_markup = true"), expected);
    let html = "<b class=x>a</b> <i>b</i> <strong>c</strong>";
    let expected = "<strong class=x>a</strong> <em>b</em> <strong>c</strong>";
    assert_eq!(reacted(html, "[reactor]\nsemantic_tags = true"), expected);
}

#[test]
fn images_get_their_texts_by_url_or_bytes_and_then_stay() {
    let rules = "[reactor]\naccessible = true\n\
        alt = { 'https://a.example/dir/a.png' = 'A & \"B\"', 00ff = 'known' }";
    let html = "<img src=a.png><img src='known.png' alt=' '><img src=a.png alt=own><img src=b.png>";
    let expected = "<img src=a.png alt=\"A &amp; &quot;B&quot;\"><img src='known.png' alt=\"known\">\
        <img src=a.png alt=own>";
    assert_eq!(reacted(html, rules), expected);
}

#[test]
fn rules_of_a_site_run_in_their_order_and_know_inside_from_outside() {
    let rule = |rest: &str| format!("[[reactor.rule]]\n{rest}\n");
    let html = "<a href=b class=x>in</a><a href='//b.example/'>out</a><a name=c>none</a><a href='mailto:x'>m</a>";
    let dropped = reacted(html, &rule("on = 'a'\nleads = 'outside'\ndrop = true"));
    assert_eq!(dropped, "<a href=b class=x>in</a><a name=c>none</a><a href='mailto:x'>m</a>");
    let unwrapped = reacted(html, &rule("on = 'a'\nleads = 'inside'\nunwrap = true"));
    assert!(unwrapped.starts_with("in<a href='//b"), "{unwrapped}");
    let set = reacted(html, &rule("on = 'a.x'\nset = { class = '', title = 'A & \"B\"' }"));
    assert!(set.starts_with("<a href=b title=\"A &amp; &quot;B&quot;\">in</a>"), "{set}");
    let appended = reacted("<p>a</p>", &rule("on = 'p'\nappend = '<b>!</b>'"));
    assert_eq!(appended, "<p>a<b>!</b></p>");
    let both = rule("on = 'p'\nreplace = 'div'") + &rule("on = 'p'\nset = { id = 'x' }");
    assert_eq!(reacted("<p>a</p>", &both), "<div id=\"x\">a</div>");
}

fn split(text: &str) -> Vec<&str> {
    sentences(text).map(|it| it.text).collect()
}

#[test]
fn sentences_end_at_the_punctuation_of_their_script() {
    for (text, expected) in [
        ("One. Two! Three?", vec!["One. ", "Two! ", "Three?"]),
        ("Pi is 3.14, a.b too. \"Yes.\" No", vec!["Pi is 3.14, a.b too. ", "\"Yes.\" ", "No"]),
        ("第一句。第二句！“第三句？”第四", vec!["第一句。", "第二句！", "“第三句？”", "第四"]),
        ("Wait... what?! Yes", vec!["Wait... ", "what?! ", "Yes"]),
        ("पहला। दूसरा", vec!["पहला। ", "दूसरा"]),
        ("مرحبا؟ نعم", vec!["مرحبا؟ ", "نعم"]),
        ("", vec![]),
    ] {
        assert_eq!(split(text), expected, "{text}");
    }
}

#[test]
fn long_sentences_end_at_a_comma_or_are_cut() {
    let words = "word ".repeat(15) + "comma, " + &"word ".repeat(20);
    assert!(split(&words)[0].ends_with("comma,"));
    let endless = "字".repeat(250);
    let lengths: Vec<usize> = split(&endless).iter().map(|it| it.chars().count()).collect();
    assert_eq!(lengths, [100, 100, 50]);
}

#[test]
fn each_sentence_of_a_page_has_a_span_named_by_its_text() {
    let id = |text: &str| format!("s{}", super::super::names::HashName::of(text));
    let html =
        "<title>A. B.</title><p>A &amp; b. <b>B.</b></p>\n<pre>A. B.</pre><script>'A. B.'</script>";
    let expected = format!(
        "<title>A. B.</title><p><span id=\"{}\">A &amp; b. </span><b><span id=\"{}\">B.</span></b></p>\n\
         <pre>A. B.</pre><script>'A. B.'</script>",
        id("A & b."),
        id("B."),
    );
    assert_eq!(reacted(html, "[reactor]\nsplit_sentences = true"), expected);
}

proptest! {
    #[test]
    fn sentences_put_together_are_the_text(text in any::<String>(), dots in "([a-z]{0,60}[.。!, \"]){0,9}") {
        for text in [text, dots] {
            let pieces = split(&text);
            prop_assert_eq!(&pieces.concat(), &text);
            prop_assert!(pieces.iter().all(|it| (1..=SENTENCE_CHARS_MAX).contains(&it.chars().count())));
        }
    }
}
