//! Media types from headers and first bytes, as browsers name them.

use super::*;
use proptest::prelude::*;

fn parsed(header: &str) -> Option<(String, Option<String>)> {
    ContentType::parse(header).map(|parsed| (parsed.essence, parsed.charset))
}

#[test]
fn a_header_gives_its_type_and_charset() {
    let cases = [
        ("text/html", Some(("text/html", None))),
        (" Text/HTML ;charset=UTF-8 ", Some(("text/html", Some("UTF-8")))),
        ("text/html; charset=\"utf-8\"", Some(("text/html", Some("utf-8")))),
        ("text/html; charset=\"ut\\f-8\"; x=y", Some(("text/html", Some("utf-8")))),
        ("text/html; charset=\"utf-8", Some(("text/html", Some("utf-8")))),
        ("text/html; x=\";charset=gbk\"; charset=big5", Some(("text/html", Some("big5")))),
        ("text/html;charset=;charset=gbk", Some(("text/html", Some("gbk")))),
        ("text/html;charset;CHARSET=gbk;charset=big5", Some(("text/html", Some("gbk")))),
        ("text/html;charset=gbk ; q=1", Some(("text/html", Some("gbk")))),
        ("text/html;;; ;charset=gbk", Some(("text/html", Some("gbk")))),
        ("text", None),
        ("", None),
        ("/", None),
        ("te xt/html", None),
        ("text/html, text/plain", None),
        ("text/héml", None),
    ];
    for (header, expected) in cases {
        let expected =
            expected.map(|(essence, charset)| (essence.to_owned(), charset.map(str::to_owned)));
        assert_eq!(parsed(header), expected, "{header}");
    }
}

fn named(content_type: Option<&str>, body: &[u8]) -> (String, ContentKind) {
    let media = media_of(content_type, false, body);
    (media.essence.into_owned(), media.kind)
}

#[test]
fn a_definite_header_is_believed() {
    let html = b"<!doctype html><p>hello";
    for (header, kind) in [
        ("text/html", ContentKind::Html),
        ("application/xhtml+xml", ContentKind::Html),
        ("text/css", ContentKind::Text),
        ("text/plain; charset=utf-8", ContentKind::Text),
        ("application/json", ContentKind::Json),
        ("application/ld+json", ContentKind::Json),
        ("application/atom+xml", ContentKind::Feed),
        ("application/mathml+xml", ContentKind::Xml),
        ("application/pdf", ContentKind::Pdf),
        ("application/vnd.ms-excel", ContentKind::Office),
        ("application/zip", ContentKind::Archive),
        ("image/svg+xml", ContentKind::Image),
        ("font/woff2", ContentKind::Font),
        ("application/octet-stream", ContentKind::Binary),
        ("model/gltf-binary", ContentKind::Binary),
    ] {
        assert_eq!(named(Some(header), html).1, kind, "{header}");
    }
}

#[test]
fn bytes_speak_when_the_header_does_not() {
    let docx = b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0aaaabbbbcccc\x13\0\0\0[Content_Types].xml";
    let epub = b"PK\x03\x04\x14\0\0\0\0\0\0\0!\0aaaabbbbcccc\x08\0\0\0mimetypeapplication/epub+zip";
    let cases: &[(&[u8], &str, ContentKind)] = &[
        (b"<!DOCTYPE html><title>x", "text/html", ContentKind::Html),
        (b"  \n<hTmL >", "text/html", ContentKind::Html),
        (b"<!-- x --><p>", "text/html", ContentKind::Html),
        (b"<abbr>", "text/plain", ContentKind::Text),
        (b"\xef\xbb\xbf<?xml version='1.0'?><a/>", "text/xml", ContentKind::Xml),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", "application/xhtml+xml", ContentKind::Html),
        (
            b"<?xml version='1.0'?><!-- x --><rss version='2.0'>",
            "application/rss+xml",
            ContentKind::Feed,
        ),
        (b"<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml", ContentKind::Feed),
        (b"{\"a\": 1}", "application/json", ContentKind::Json),
        (b" [ 1 ]", "application/json", ContentKind::Json),
        (b"{ not json", "text/plain", ContentKind::Text),
        (b"%PDF-1.7\n", "application/pdf", ContentKind::Pdf),
        (b"\x1f\x8b\x08\0", "application/gzip", ContentKind::Archive),
        (docx, "application/vnd.openxmlformats-officedocument", ContentKind::Office),
        (epub, "application/epub+zip", ContentKind::Office),
        (b"PK\x03\x04", "application/zip", ContentKind::Archive),
        (b"\x89PNG\r\n\x1a\n", "image/png", ContentKind::Image),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", ContentKind::Image),
        (b"ID3\x03", "audio/mpeg", ContentKind::Audio),
        (b"\0\0\0\x18ftypmp42", "video/mp4", ContentKind::Video),
        (b"wOF2", "font/woff2", ContentKind::Font),
        (b"just words", "text/plain", ContentKind::Text),
        (b"", "text/plain", ContentKind::Text),
        (b"\xff\xfeh\0i\0", "text/plain", ContentKind::Text),
        (b"\x01\x02\x03", "application/octet-stream", ContentKind::Binary),
    ];
    for (body, essence, kind) in cases {
        let expected = ((*essence).to_owned(), *kind);
        assert_eq!(named(None, body), expected, "{}", String::from_utf8_lossy(body));
        assert_eq!(named(Some("not a type"), body).1, *kind);
    }
}

#[test]
fn a_feed_served_as_html_or_xml_is_a_feed() {
    let rdf = b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>";
    for header in ["text/html", "text/xml; charset=utf-8", "application/xml"] {
        assert_eq!(named(Some(header), b"<?xml version='1.0'?>\n<rss>").1, ContentKind::Feed);
        assert_eq!(named(Some(header), rdf).1, ContentKind::Feed);
    }
    assert_eq!(named(Some("text/html"), b"<rdf:RDF>").1, ContentKind::Html);
    assert_eq!(named(Some("text/xml"), b"<urlset>").1, ContentKind::Xml);
}

#[test]
fn the_default_of_old_servers_may_be_binary_but_never_becomes_html() {
    assert_eq!(named(Some("text/plain"), b"%PDF-1.4\n\x01").1, ContentKind::Pdf);
    assert_eq!(named(Some("text/plain"), b"<html><script>").1, ContentKind::Text);
    assert_eq!(
        named(Some("text/plain;charset=utf-8"), b"\x89PNG\r\n\x1a\n\0").1,
        ContentKind::Text
    );
}

#[test]
fn a_wrong_image_type_is_corrected_within_its_class_only() {
    assert_eq!(named(Some("image/png"), b"GIF89a").0, "image/gif");
    assert_eq!(named(Some("image/png"), b"<html>").0, "image/png");
    assert_eq!(named(Some("application/octet-stream"), b"GIF89a").0, "image/gif");
}

#[test]
fn nosniff_is_honoured() {
    let media = media_of(Some("text/xml"), true, b"<rss>");
    assert_eq!((media.essence.as_ref(), media.kind), ("text/xml", ContentKind::Xml));
    assert_eq!(media_of(Some("text/plain"), true, b"\0\x01").kind, ContentKind::Text);
    assert_eq!(media_of(None, true, b"<html>").kind, ContentKind::Text);
    assert_eq!(media_of(None, true, b"GIF89a").kind, ContentKind::Image);
}

proptest! {
    #[test]
    fn any_header_and_bytes_are_safe(header in any::<String>(),
                                     body in proptest::collection::vec(any::<u8>(), 0..80),
                                     nosniff in any::<bool>()) {
        if let Some(parsed) = ContentType::parse(&header) {
            prop_assert!(parsed.essence.is_ascii());
        }
        let _ = media_of(Some(&header), nosniff, &body);
        let _ = media_of(None, nosniff, &body);
    }

    #[test]
    fn any_parameters_are_safe(parts in proptest::collection::vec(
        proptest::sample::select(vec!["charset", "=", ";", "\"", "\\", " ", "gbk", "é"]), 0..20)) {
        let _ = ContentType::parse(&format!("text/html;{}", parts.concat()));
    }
}

#[test]
fn a_huge_header_is_cut() {
    let header = format!("text/html;{}charset=gbk", "x=y;".repeat(1_000_000));
    assert_eq!(ContentType::parse(&header).map(|parsed| parsed.charset), Some(None));
}
