//! References by the grammar of CSS Syntax level 3, and what only looks like one.

use encoding_rs::GBK;

use super::*;

fn found(css: &str) -> Vec<(String, Kind)> {
    references(css).map(|it| (it.url.into_owned(), it.kind)).collect()
}

fn urls(css: &str) -> Vec<String> {
    references(css).map(|it| it.url.into_owned()).collect()
}

#[test]
fn imports_fonts_and_images_are_told_apart() {
    let css = "@charset \"utf-8\"; @import 'a.css'; @IMPORT url(b.css) screen;\
        @import url(\"c.css\") layer(x) supports(not (display: grid));\
        @font-face { font-family: \"x.ttf\"; src: local('F'), url(f.woff2) format(\"woff2\") }\
        a { background: url( d.png ) , url('e.png'); content: \"url(no)\" }";
    let expected = [
        ("a.css", Kind::Import),
        ("b.css", Kind::Import),
        ("c.css", Kind::Import),
        ("f.woff2", Kind::Font),
        ("d.png", Kind::Image),
        ("e.png", Kind::Image),
    ];
    assert_eq!(found(css), expected.map(|(url, kind)| (url.to_owned(), kind)));
}

#[test]
fn image_sets_name_images_by_strings_and_types_are_no_images() {
    let css = "a { background: image-set(\"1x.avif\" type(\"image/avif\"), url(2x.png) 2x) }\
        b { background: -webkit-image-set('c.png' 1x); content: 'd' } e { mask: src(\"f.svg#g\") }";
    assert_eq!(urls(css), ["1x.avif", "2x.png", "c.png", "f.svg#g"]);
}

#[test]
fn escapes_are_resolved_in_names_and_urls() {
    for (css, url) in [
        (r"a{b:\75\72\6c (c.png)}", "c.png"),
        (r"a{b:u\rl(c.png)}", "c.png"),
        (r"a{b:url(c\ d\)\28.png)}", "c d)(.png"),
        (
            r#"a{b:url("c\"d\
e.png")}"#,
            "c\"de.png",
        ),
        ("a{b:url('\\0c\\00e9 \\110000')}", "\u{c}é\u{fffd}"),
        (r"@\69mport 'x.css'", "x.css"),
        ("a{b:url(\t\r\n c.png\x0c )}", "c.png"),
        (r"a{b:url(c\é)}", "cé"),
    ] {
        assert_eq!(urls(css), [url], "{css}");
    }
}

#[test]
fn what_only_looks_like_a_reference_is_left_alone() {
    for css in [
        "/* url(a) @import 'b' */",
        "/* never closed url(a)",
        "a{content:'url(a)'}",
        "@namespace url(http://www.w3.org/1999/xhtml); ",
        "@namespace svg \"http://www.w3.org/2000/svg\";",
        "@charset \"utf-8\";",
        "a{b:url()} c{d:url('')} e{f:url(  )}",
        "a{b:my-url(c)} d{e:urls(f)} g{h:1url(i)} j{k:#url(l)} m{n:-url(o)}",
        "a{b:url(c d)} e{f:url(g'h)} i{j:url(k(l)}",
        "a{b:url('broken\n)}",
        "a[href=\"b.css\"]{} @media print {} @supports (c:'d') {}",
    ] {
        assert_eq!(urls(css), [""; 0], "{css}");
    }
}

#[test]
fn broken_style_sheets_are_read_as_browsers_do() {
    assert_eq!(urls("a{b:url(c.png"), ["c.png"]);
    assert_eq!(urls("a{b:url('c.png"), ["c.png"]);
    assert_eq!(urls("a{b:'broken\n;c:url(d.png)}"), ["d.png"]);
    assert_eq!(urls("a{b:url(x y z\\) q) c:url(d.png)}"), ["d.png"]);
    assert_eq!(urls("}}}])@import 'a.css'"), ["a.css"]);
    let kinds = found("@font-face; @font-face {} a{b:url(c)}");
    assert_eq!(kinds, [("c".to_owned(), Kind::Image)]);
    let kinds = found("@font-face url(a) url('b') { c: url(d) } e { f: url(g) }");
    assert_eq!(
        kinds.iter().map(|it| it.1).collect::<Vec<_>>(),
        [Kind::Image, Kind::Image, Kind::Font, Kind::Image]
    );
    assert_eq!(urls("<!-- a{b:url(c)} -->"), ["c"]);
    assert_eq!(urls("\\"), [""; 0]);
}

#[test]
fn rewriting_changes_references_and_nothing_else() {
    let css = "@import 'a.css';/* url(a) */ b{c:URL( d.png )}e{f:url(data:,x)} g{h:url(\"#i\")}";
    let rewritten = rewrite(css, |reference| match &*reference.url {
        "a.css" => Some("../00/a.css".to_owned()),
        "d.png" => Some("\"</style>\\".to_owned()),
        _ => None,
    });
    let expected = "@import \"../00/a.css\";/* url(a) */ b{c:URL(\"\\\"\\3c /style>\\\\\")}\
        e{f:url(data:,x)} g{h:url(\"#i\")}";
    assert_eq!(rewritten, expected);
    assert!(matches!(rewrite(css, |_| None), Cow::Borrowed(_)));
}

#[test]
fn style_sheets_in_other_encodings_become_utf_8() {
    let (chinese, _, _) = GBK.encode("@charset \"gb2312\";a{b:url(图.png)}");
    let text = decode(&chinese, None, None);
    assert_eq!(urls(&text), ["图.png"]);
    assert_eq!(encode(&text), "@charset \"utf-8\";a{b:url(图.png)}".as_bytes());
    let (undeclared, _, _) = GBK.encode("a{b:url(图.png)}");
    assert_eq!(urls(&decode(&undeclared, None, Some(GBK))), ["图.png"]);
    let header = Some("text/css; charset=gbk");
    assert_eq!(urls(&decode(&undeclared, header, None)), ["图.png"]);
    assert_eq!(encode("a{b:url(图)}"), "\u{feff}a{b:url(图)}".as_bytes());
    assert_eq!(encode("a{}"), b"a{}");
    assert_eq!(decode("\u{feff}é".as_bytes(), header, Some(GBK)), "é", "a mark decides");
}

#[test]
fn hostile_style_sheets_take_linear_time() {
    // Each would take hours if it were read in the square of its length.
    for piece in ["url(", "url('", "/*", "\\", "@import ", "(", "image-set(", "\"\\\n", "a\\"] {
        let css = piece.repeat(500_000 / piece.len());
        assert!(references(&css).count() <= css.len());
    }
}
