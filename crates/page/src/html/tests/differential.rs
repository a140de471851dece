//! The pass against lol_html's own text handler, and against itself in small chunks.

use proptest::prelude::*;

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
        .append_element_content_handler((Cow::Borrowed(&*EVERY_ELEMENT), every))
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn text_between_tokens_is_the_text_lol_html_reports(html in markup()) {
        prop_assert_eq!(without_space(&facts(&html).text), text_by_chunks(&html), "{}", html);
    }

    #[test]
    fn facts_do_not_depend_on_the_size_of_chunks(html in markup(), chunk in 1usize..9) {
        let policy = Policy::default();
        let input = Input::new(html.as_bytes(), URL, &policy);
        prop_assert_eq!(extract_in_chunks(&input, chunk), extract(&input));
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

#[test]
fn the_sample_page_does_not_depend_on_the_size_of_chunks() {
    let policy = Policy::default();
    let input = Input::new(PAGE.as_bytes(), URL, &policy);
    for chunk in [1, 2, 3, 7, 64, 1_000] {
        assert_eq!(extract_in_chunks(&input, chunk), extract(&input), "{chunk}");
    }
}
