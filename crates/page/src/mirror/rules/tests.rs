//! Rules: what is read, what is refused and where, what they match.

use super::*;

const URL: &str = "https://a.example/news/";

/// Rules with everything that can be in some.
const WHOLE: &str = include_str!("fixtures/whole.toml");

fn refused(text: &str) -> String {
    Rules::parse(text).unwrap_err().to_string()
}

#[test]
fn a_whole_rules_file_is_read() {
    let rules = Rules::parse(WHOLE).unwrap();
    assert_eq!((&*rules.editor, rules.codec.as_deref()), ("editor", Some("gb2312")));
    assert_eq!(rules.list[0].get_ref().order, Order::NewestFirst);
    assert_eq!(rules.reactor.rule[0].get_ref().leads, Some(Leads::Inside));
    assert!(Rules::parse("").unwrap().seeds.is_empty(), "no rule is needed");
}

#[test]
fn mistakes_are_told_with_their_line() {
    for (text, line, what) in [
        ("editor = 'x'\ncolour = 'red'", "line 2", "unknown field `colour`"),
        ("\n\nseeds = ['a.html']", "line 3", "not a whole URL"),
        ("[scope]\ninclude = [\n'(',\n]", "line 2", "not a pattern"),
        ("[[article]]\npattern = 'x'\ntitle = 'a:visited('", "line 3", "not a selector"),
        ("[[column]]\npattern = '('", "line 2", "not a pattern"),
        ("\n[[column]]\nname = 'x'", "line 2", "without url or pattern"),
        ("[[list]]\nitems = 'a'", "line 1", "without url or pattern"),
        (
            "[[article]]\npattern = 'x'\n[[article]]\ntitle = 'h1'",
            "line 3",
            "without pattern or selector",
        ),
        ("[[reactor.rule]]\ndrop = true", "line 1", "without on"),
        ("[[reactor.rule]]\non = 'a'", "line 1", "one of drop"),
        ("[[reactor.rule]]\non = 'a'\ndrop = true\nunwrap = true", "line 1", "one of drop"),
        ("[[reactor.rule]]\non = 'a'\nreplace = 'b onload=x'", "line 1", "no name"),
        ("[[list]]\npattern = 'x'\norder = 'best-first'", "line 3", "unknown variant"),
        ("seeds = [", "line 1", "array"),
    ] {
        let error = refused(text);
        assert!(error.contains(line) && error.contains(what), "{text:?}: {error}");
    }
}

#[test]
fn numbers_of_everything_are_bounded() {
    let seeds = |count: usize| format!("seeds = [{}]", "'https://a.example/',".repeat(count));
    Rules::parse(&seeds(PATTERNS_MAX)).unwrap();
    assert!(refused(&seeds(PATTERNS_MAX + 1)).contains("seeds"));
    let columns = |count: usize| "[[column]]\nurl = 'https://a.example/'\n".repeat(count);
    Rules::parse(&columns(SECTIONS_MAX)).unwrap();
    assert!(refused(&columns(SECTIONS_MAX + 1)).contains("columns"));
    assert!(refused(&"#".repeat(RULES_BYTES_MAX + 1)).contains("bytes of rules"));
    assert!(refused("[scope]\ninclude = ['(a{1000}){1000}']").contains("not a pattern"));
    let long = format!("[[article]]\nselector = '{}'", "a ".repeat(3_000));
    assert!(refused(&long).contains("selector of more than"));
    refused(&format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000)));
}

#[test]
fn the_digest_is_that_of_what_rules_say() {
    let rules = Rules::parse(WHOLE).unwrap().digest();
    let spaced = WHOLE.replace(" = ", "  =  ").replace("[scope]", "# what belongs to it\n[scope]");
    assert_eq!(Rules::parse(&spaced).unwrap().digest(), rules);
    let changed = WHOLE.replace("ul.news a", "ol.news a");
    assert_ne!(Rules::parse(&changed).unwrap().digest(), rules);
}

#[test]
fn scope_and_roles_follow_from_urls() {
    let rules = Rules::parse(WHOLE).unwrap();
    for (url, in_scope, role) in [
        ("https://a.example/", true, Some(Role::Column)),
        ("https://a.example/news/", true, Some(Role::List)),
        ("https://a.example/news/?page=2", true, Some(Role::List)),
        ("https://a.example/news/12.htm", true, Some(Role::Article)),
        ("https://a.example/news/12.htm?print=1", false, None),
        ("https://a.example/private/", false, None),
        ("https://b.example/", false, None),
    ] {
        assert_eq!((rules.scope_of(url).0, rules.role_of_url(url)), (in_scope, role), "{url}");
    }
    let open = Rules::parse("[[article]]\nselector = 'h1'").unwrap();
    assert_eq!(open.scope_of("https://b.example/"), (true, None));
}

#[test]
fn what_rules_match_on_a_list_is_shown() {
    let rules = Rules::parse(WHOLE).unwrap();
    let html = "<ul class=news><li><a href=1.htm>One</a><li><a href='/x?print=1'>Two</a></ul>\
        <a class=next href='?page=2'>more</a><a href=3.htm>not in the list</a>";
    let matches = rules.matches(URL, html);
    assert_eq!((matches.role, matches.name.as_deref()), (Some(Role::List), Some("News")));
    let link = |url: &str, text: &str, role, is_in_scope| MatchedLink {
        url: url.to_owned(),
        text: text.to_owned(),
        role,
        is_in_scope,
    };
    let one = link("https://a.example/news/1.htm", "One", Some(Role::Article), true);
    assert_eq!(matches.items, [one, link("https://a.example/x?print=1", "Two", None, false)]);
    assert_eq!(matches.next.as_deref(), Some("https://a.example/news/?page=2"));
    assert_eq!(matches.unmatched, [""; 0]);
    assert_eq!(rules.matches(URL, "").unmatched, ["ul.news a", "a.next"]);
}

#[test]
fn what_rules_match_on_an_article_is_shown() {
    let rules = Rules::parse(WHOLE).unwrap();
    let html = "<h1>Title &amp; more</h1><p class=by>Author</p><p class=date>Date: 2012-07-20 10:30</p>\
        <div id=text>Text</div>";
    let matches = rules.matches("https://a.example/news/1.htm", html);
    assert_eq!(matches.role, Some(Role::Article));
    assert_eq!(matches.title.as_deref(), Some("Title & more"));
    assert_eq!(
        (matches.author.as_deref(), matches.body.as_deref()),
        (Some("Author"), Some("Text"))
    );
    assert_eq!(matches.date_ms, Some(1_342_780_200_000));
    assert_eq!(matches.unmatched, ["a.more"]);
    let by_element = rules.matches("https://a.example/other", "<div id=article>x</div>");
    assert_eq!(by_element.role, Some(Role::Article));
    assert_eq!(rules.matches("https://a.example/other", "<p>x").role, None);
}
