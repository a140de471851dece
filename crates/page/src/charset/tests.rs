//! Encodings are decided in the order BOM, header, meta, guess, and decoded as browsers do.

use super::*;
use proptest::prelude::*;

fn chosen(body: &[u8], content_type: Option<&str>) -> (&'static str, EncodingSource) {
    let decision = decide(body, content_type);
    (decision.encoding.name(), decision.source)
}

#[test]
fn the_order_is_mark_then_header_then_declaration_then_guess() {
    let meta = b"<meta charset=koi8-r>".as_slice();
    let marked = [b"\xef\xbb\xbf".as_slice(), meta].concat();
    let header = Some("text/html; charset=iso-8859-2");
    assert_eq!(chosen(&marked, header), ("UTF-8", EncodingSource::Bom));
    assert_eq!(chosen(meta, header), ("ISO-8859-2", EncodingSource::Header));
    assert_eq!(chosen(meta, Some("text/html")), ("KOI8-R", EncodingSource::Meta));
    assert_eq!(chosen(b"<p>plain", None), ("UTF-8", EncodingSource::Guess));
    assert_eq!(chosen(b"\xff\xfe<\0p\0", header), ("UTF-16LE", EncodingSource::Bom));
    assert_eq!(chosen(b"\xfe\xff\0<\0p", None), ("UTF-16BE", EncodingSource::Bom));
}

#[test]
fn an_unknown_or_dangerous_label_is_passed_over() {
    let meta = b"<meta charset=utf-8>";
    for header in ["text/html; charset=utf-7", "text/html; charset=bogus", "text/html;charset="] {
        assert_eq!(chosen(meta, Some(header)), ("UTF-8", EncodingSource::Meta), "{header}");
    }
    let seven = b"<meta charset=utf-7>+ADw-script+AD4-";
    assert_eq!(chosen(seven, None), ("UTF-8", EncodingSource::Guess));
    assert_eq!(
        chosen(meta, Some("text/html; charset=iso-2022-kr")),
        ("UTF-8", EncodingSource::Meta)
    );
}

#[test]
fn declarations_are_read_as_the_standard_says() {
    let cases: &[(&[u8], Option<&str>)] = &[
        (b"<meta charset=\"windows-1251\">", Some("windows-1251")),
        (b"<META CharSet = 'windows-1251' >", Some("windows-1251")),
        (b"<meta/charset=windows-1251/>", None),
        (b"<meta/charset=windows-1251 />", Some("windows-1251")),
        (b"<meta charset=utf-16>", Some("UTF-8")),
        (b"<meta charset=x-user-defined>", Some("windows-1252")),
        (b"<meta content='text/html; charset=gbk'>", None),
        (b"<meta content='text/html; charset=gbk' http-equiv=Content-Type>", Some("GBK")),
        (b"<meta http-equiv=content-type content='charset charset = \"big5\"'>", Some("Big5")),
        (b"<meta http-equiv=content-type content='text/html; charset=\"big5'>", None),
        (b"<!-- <meta charset=gbk> --><meta charset=big5>", Some("Big5")),
        (b"<!--><meta charset=gbk>", Some("GBK")),
        (b"<!doctype html><a title='<meta charset=gbk>'><meta charset=big5>", Some("Big5")),
        (b"</p x='>'><meta charset=gbk>", Some("GBK")),
        (b"<? <meta charset=gbk> ?>", None),
        (b"<metal charset=gbk>", None),
        (b"<meta charset=bogus><meta charset=gbk>", Some("GBK")),
        (b"<meta charset=gbk charset=big5>", Some("GBK")),
        (b"<meta charset=gbk", None),
        (b"<meta charset='gbk", None),
        (b"<?xml version='1.0' encoding=\"iso-8859-5\"?><html>", Some("ISO-8859-5")),
        (b"<?xml version='1.0' encoding=\"utf-16\"?><html>", Some("UTF-8")),
        (b"<?xml encoding='koi8-u'?><meta charset=gbk>", Some("GBK")),
        (b"<\0?\0x\0m\0l\0", Some("UTF-16LE")),
        (b"\0<\0?\0x\0m\0l", Some("UTF-16BE")),
        (b"", None),
    ];
    for (body, expected) in cases {
        let found = prescan::declared(body).map(Encoding::name);
        assert_eq!(found, *expected, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn a_declaration_behind_the_first_kilobyte_is_not_seen() {
    let late = [vec![b' '; 1_010], b"<meta charset=gbk>".to_vec()].concat();
    assert_eq!(prescan::declared(&late), None);
    let early = [vec![b' '; 1_000], b"<meta charset=gbk>".to_vec()].concat();
    assert_eq!(prescan::declared(&early).map(Encoding::name), Some("GBK"));
}

#[test]
fn undeclared_text_is_guessed_from_its_bytes() {
    let russian = "Широкая электрификация южных губерний даст мощный толчок подъёму сельского \
                   хозяйства. Съешь же ещё этих мягких французских булок да выпей чаю.";
    let japanese = "日本語の文章です。文字コードの判定を試します。ひらがなとカタカナもあります。";
    for (encoding, text) in [
        (encoding_rs::WINDOWS_1251, russian),
        (encoding_rs::KOI8_U, russian),
        (encoding_rs::SHIFT_JIS, japanese),
        (encoding_rs::EUC_JP, japanese),
        (encoding_rs::ISO_2022_JP, japanese),
        (encoding_rs::UTF_8, japanese),
    ] {
        let (bytes, _, _) = encoding.encode(text);
        assert_eq!(chosen(&bytes, None), (encoding.name(), EncodingSource::Guess));
        assert_eq!(decode(&bytes, encoding), text);
    }
}

#[test]
fn valid_utf_8_is_borrowed_and_malformed_bytes_are_replaced() {
    assert!(matches!(decode("naïve".as_bytes(), UTF_8), Cow::Borrowed("naïve")));
    assert!(matches!(decode(b"\xef\xbb\xbfa", UTF_8), Cow::Borrowed("a")));
    assert_eq!(decode(b"a\xe4b", UTF_8), "a\u{fffd}b");
    assert_eq!(decode(b"a\xc3", UTF_8), "a\u{fffd}");
}

proptest! {
    #[test]
    fn any_bytes_decode(body in proptest::collection::vec(any::<u8>(), 0..300),
                        header in proptest::option::of(any::<String>())) {
        let decision = decide(&body, header.as_deref());
        prop_assert!(decision.encoding.name() != "replacement");
        let _ = decode(&body, decision.encoding);
    }

    #[test]
    fn any_markup_can_be_prescanned(parts in proptest::collection::vec(
        proptest::sample::select(vec!["<meta", " ", "charset", "=", "\"", "'", "gbk", ">", "/",
            "<!--", "-->", "<?xml", "encoding", "content", "http-equiv", "content-type", "<a"]),
        0..30)) {
        let _ = prescan::declared(parts.concat().as_bytes());
    }
}
