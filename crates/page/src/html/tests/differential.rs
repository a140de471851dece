//! The pass against lol_html: its text handler, and the facts when it finds the tags.

use std::borrow::Cow;
use std::cell::RefCell;

use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{DocumentContentHandlers, ElementContentHandlers};
use proptest::prelude::*;

use super::super::oracle::{run, selector, settings};
use super::*;

/// The shown text of a document by lol_html's text chunks, blind to blocks: no white space.
fn text_by_chunks(html: &str) -> String {
    let pieces: RefCell<Vec<(bool, String)>> = RefCell::new(Vec::new());
    let shown_raw = RefCell::new(false);
    let text = DocumentContentHandlers::default().text(|chunk: &mut TextChunk<'_>| {
        let shown = match chunk.text_type() {
            TextType::Data | TextType::CDataSection | TextType::PlainText => true,
            TextType::RawText => *shown_raw.borrow(),
            TextType::RCData | TextType::ScriptData => false,
        };
        let literal = chunk.text_type() != TextType::Data;
        let mut pieces = pieces.borrow_mut();
        if shown {
            match pieces.last_mut() {
                Some((last, joined)) if *last == literal => joined.push_str(chunk.as_str()),
                _ => pieces.push((literal, chunk.as_str().to_owned())),
            }
        }
        if chunk.last_in_text_node() {
            pieces.push((true, String::new()));
        }
        Ok(())
    });
    let every = ElementContentHandlers::default().element(|element: &mut Element<'_, '_>| {
        *shown_raw.borrow_mut() = element.tag_name() == "xmp";
        Ok(())
    });
    let settings = settings()
        .append_element_content_handler((Cow::Owned(selector("*")), every))
        .append_document_content_handler(text);
    assert!(run(settings, html, usize::MAX));
    let pieces = pieces.into_inner().into_iter();
    let decoded = pieces.map(
        |(literal, piece)| {
            if literal { piece } else { htmlize::unescape(piece).into_owned() }
        },
    );
    without_space(&decoded.collect::<String>())
}

fn without_space(text: &str) -> String {
    text.chars().filter(|ch| !ch.is_whitespace() && !ch.is_control()).collect()
}

/// Pieces from which the hard places of HTML can be put together.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "<", ">", "</", "/>", "<!--", "-->", "--!>", "<!", "<?", "<![CDATA[", "]]>", "=", "\"", "'",
    "&", "&amp;", "&lt", ";", " ", "\n", "\0", "é", "x", "one ", "two", "<p>", "</p>", "<div>",
    "</div>", "<a href=", "<a href='/x'>", "</a>", "<h1>", "</h1>", "<br>", "<title>", "</title>",
    "<textarea>", "</textarea>", "<style>", "</style>", "<script>", "</script>", "<xmp>",
    "</xmp>", "<iframe>", "</iframe>", "<noscript>", "</noscript>", "<math>", "</math>", "<mi>",
    "</mi>", "</p title=\">\">", "</p a'b>", "<p title='", "</", "<plaintext>", "<td>", "<li>",
    "<img alt=x>", "<base href=/b/>", "</scr", "ipt>", "<!doctype html>", "<select>", "<option>",
    "<font color=x>", "<b", "</b", "/", "<meta ",
];

fn markup() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(PIECES);
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Tags with odd attributes, raw text, drawings and formulas, most of it left open.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "a", "A", "p", "div", "svg", "SVG", "math", "mi", "mtext", "annotation-xml", "desc",
    "foreignObject", "font", "title", "script", "style", "textarea", "noscript", "template",
    "iframe", "xmp", "plaintext", "select", "option", "h1", "h2", "br", "img", "meta", "base",
    "link", "html", "body", "table", "td", "area", "frame", "x-y", "b", "span", "s3", "script1",
    "path", "g", "section", "noembed", "noframes", "a<b", "titl\u{e9}",
];
#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "", "", "", " ", "/", " /", " href=/x", " href='/y>z'", " HREF=\"a'b\"", " href =  'w' title=T",
    " a'b", " \"", " =x", " x=y=z", " x='", " x=\"", " x=a'b\"c", " encoding=text/html", " color=1",
    " shadowrootmode=open", " lang=en", " src=i.png alt='I <b>'", "\nname=robots\tcontent=none",
    " x/y/ z", " x='y'z=w", " x=/", "\u{c}x", " \0=\0", " href=&#x2f;q", " rel=canonical href=/c",
    " x=<p>", " <p", " http-equiv=refresh content='0;url=r'", " =", " = ' '", " href=/a href=/b",
    " href=\"/r\r\n/s\"", "\r\nalt=R", " href=/q?a=1&amp;b=2&copy=3", " href='&ngE;'", " title=\"&#65\"",
    " shadowrootmode", " HREF='/&lt;\0'", " href=/u&amp;>", " x", " x=&",
];
#[rustfmt::skip]
const BETWEEN: &[&str] = &[
    "", "", "one", " two ", "<", "</", "&amp;", "&lt", "<!--", "-->", "--!>", "<!-->", "<!--->",
    "<!-- x --!", "--", "-", ">", "]]>", "<![CDATA[", "<![cdata[", "<!doctype x '>'", "<!x", "<?y",
    "</3", "</>", "<!", "<!-", "\0", "\u{e9}", "\n", "<!--<script>", "</script", "</title ",
    "</textarea/", "<script", "<script>-->", "--></script>", "<svg/>", "<svg>", "</svg>", "</math>",
    "\r", "\r\n", "a\r\nb", "&ngE;", "&#x41;<", "&notit;", "&;", "&#", "&#x", "&am", "]]", "]", "</template>",
    "<math><![CDATA[a]b]]c&lt;]]>d</math>", "<svg><desc><![CDATA[", "<!--<script></script>", "<!---", "</\0",
    "<!-- a - b <! <!-- c -->", "</a\0>", "<\0>",
];

fn odd_markup() -> impl Strategy<Value = String> {
    let select = proptest::sample::select;
    let tag = (select(NAMES), select(ATTRIBUTES), 0u8..10, select(BETWEEN), select(ATTRIBUTES));
    let tags = proptest::collection::vec(tag, 0..24);
    tags.prop_map(|tags| {
        let mut html = String::new();
        for (name, attributes, kind, between, more) in tags {
            let open = if kind < 3 { "</" } else { "<" };
            let close = if kind == 9 { "" } else { ">" };
            html.extend([open, name, attributes, more, close, between]);
        }
        html
    })
}

/// The documents tried: 512, or as many as PROPTEST_CASES says where that is more.
fn cases() -> ProptestConfig {
    ProptestConfig::with_cases(ProptestConfig::default().cases.max(512))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn text_between_tokens_is_the_text_lol_html_reports(html in markup()) {
        prop_assert_eq!(without_space(&facts(&html).text), text_by_chunks(&html), "{}", html);
    }

    #[test]
    fn facts_are_those_lol_html_leads_to(html in markup(), odd in odd_markup(), chunk in 1usize..9) {
        for html in [html, odd] {
            same_as_lol_html(html.as_bytes(), chunk);
        }
    }

    #[test]
    fn a_document_cut_off_anywhere_is_read_as_lol_html_reads_it(
        odd in odd_markup(),
        at in any::<proptest::sample::Index>(),
    ) {
        let end = odd.floor_char_boundary(at.index(odd.len() + 1));
        same_as_lol_html(&odd.as_bytes()[..end], usize::MAX);
    }

    #[test]
    fn any_markup_keeps_the_limits(html in markup()) {
        check_limits(&facts(&html));
    }

    #[test]
    fn any_bytes_keep_the_limits(body in proptest::collection::vec(any::<u8>(), 0..600),
                                 header in proptest::option::of(any::<String>())) {
        let policy = Policy::default();
        let input = Input { content_type: header.as_deref(), ..Input::new(&body, URL, &policy) };
        check_limits(&extract(&input));
        let _ = links_only(&input);
    }
}

fn check_limits(facts: &Facts) {
    let short = |text: &str| {
        assert!(text.len() <= SHORT_TEXT_BYTES_MAX);
        assert!(!text.contains(char::is_control), "{text:?}");
    };
    assert!(facts.text.len() <= TEXT_BYTES_MAX);
    assert!(facts.headings.len() <= HEADINGS_MAX && facts.links.len() <= LINKS_MAX);
    short(&facts.title);
    short(&facts.description);
    facts.headings.iter().for_each(|heading| short(&heading.text));
    for link in &facts.links {
        short(&link.anchor);
        assert!(link.url.starts_with("http://") || link.url.starts_with("https://"));
    }
    for line in facts.text.split('\n') {
        assert_eq!(crate::text::collapse(line, usize::MAX), line);
        assert!(facts.text.is_empty() || !line.is_empty());
    }
}

fn same_as_lol_html(body: &[u8], chunk: usize) -> bool {
    let policy = Policy::default();
    let input = Input { images: true, ..Input::new(body, URL, &policy) };
    let facts = extract(&input);
    let (alone, among_facts) = (links_only(&input), facts.links.iter());
    let bare = |link: &Link| (link.url.clone(), link.kind, link.rel.0);
    assert!(alone.iter().map(bare).eq(among_facts.map(bare)), "{alone:?}");
    let Some(expected) = extract_by_lol_html(&input, chunk) else { return false };
    assert_eq!(facts, expected, "{}", String::from_utf8_lossy(body));
    true
}

#[test]
fn the_sample_page_is_read_as_lol_html_reads_it() {
    for chunk in [1, 2, 3, 7, 64, 1_000] {
        assert!(same_as_lol_html(PAGE.as_bytes(), chunk), "{chunk}");
    }
}

/// Set BENCH_PAGES to a directory of HTML; all of it is read.
#[test]
fn real_pages_are_read_as_lol_html_reads_them() {
    let Some(directory) = std::env::var_os("BENCH_PAGES") else {
        eprintln!("SKIPPED: real pages: set BENCH_PAGES to a directory of HTML");
        return;
    };
    let mut waiting = vec![std::path::PathBuf::from(directory)];
    let (mut same, mut unknown) = (0, 0);
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|end| end == "html") {
            let known = same_as_lol_html(&std::fs::read(&path).unwrap(), usize::MAX);
            *(if known { &mut same } else { &mut unknown }) += 1;
        }
    }
    eprintln!("{same} pages are the same, of {unknown} lol_html cannot say");
    assert!(same > 0);
}
