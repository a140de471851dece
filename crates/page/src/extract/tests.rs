//! Documents as programs write them.

use super::samples::{archive, page_of, pdf, shows, word};
use super::*;
use crate::feed::datetime;

fn read(bytes: &[u8]) -> Extract {
    extract(ContentKind::Office, bytes).unwrap()
}

#[test]
fn a_pdf_says_its_text_what_it_is_and_where_it_leads() {
    let read = extract(ContentKind::Pdf, &pdf(&page_of(&shows("Hello tide")))).unwrap();
    let expected = Extract {
        title: "Tides".into(),
        description: "The sea".into(),
        text: "Hello tide".into(),
        language: Some("en-GB".into()),
        authors: vec!["A. Keeper".into()],
        created_ms: datetime::parse("2024-05-01T10:20:30+02:00"),
        links: vec!["https://a.example/tides".into()],
        ..Extract::default()
    };
    assert_eq!(read, expected);
}

#[test]
fn lines_of_a_pdf_that_are_shown_by_the_short_operators_are_read() {
    let content = "BT /F1 10 Tf 72 720 Td 12 TL (It's one) Tj (two)' 1 0 (three)\" ET";
    let read = extract(ContentKind::Pdf, &pdf(&page_of(content))).unwrap();
    assert_eq!(read.text, "It's one\ntwo\nthree");
}

#[test]
fn a_text_document_has_a_line_for_each_paragraph_and_nothing_that_nobody_reads() {
    let read = read(&archive(&[
        (
            "docProps/core.xml",
            "<cp:coreProperties><dc:title>Tides &amp; moons</dc:title><dc:creator>Me</dc:creator>\
             <dc:language>de-AT</dc:language><dcterms:created>2024-05-01T10:00:00Z</dcterms:created>\
             <dcterms:modified>2024-05-02T10:00:00Z</dcterms:modified></cp:coreProperties>",
        ),
        (
            "word/footnotes.xml",
            "<w:footnotes><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnotes>",
        ),
        (
            "word/document.xml",
            "<w:document><w:body><w:p><w:r><w:t>One</w:t></w:r><w:r><w:t xml:space='preserve'> line.\
             </w:t></w:r></w:p><w:p><w:r><wp:posOffset>12345</wp:posOffset><w:t>Fish &lt;&#233;&gt;</w:t>\
             <w:tab/><w:t>end</w:t><w:delText>gone</w:delText><w:instrText>PAGE</w:instrText></w:r></w:p>\
             <mc:AlternateContent><mc:Choice><w:t>once</w:t></mc:Choice>\
             <mc:Fallback><w:t>twice</w:t></mc:Fallback></mc:AlternateContent></w:body></w:document>",
        ),
        (
            "word/_rels/document.xml.rels",
            "<Relationships><Relationship Type='http://x/relationships/hyperlink' \
             Target='https://a.example/?a=1&amp;b=2' TargetMode='External'/><Relationship \
             Type='http://x/relationships/image' Target='http://a.example/i.png' \
             TargetMode='External'/></Relationships>",
        ),
        ("word/media/image1.png", "not text"),
    ]));
    assert_eq!(read.text, "One line.\nFish <é> end\nonce\nA note");
    assert_eq!((&*read.title, &*read.authors[0]), ("Tides & moons", "Me"));
    assert_eq!(read.language.as_deref(), Some("de-AT"));
    assert_eq!(read.created_ms, datetime::parse("2024-05-01T10:00:00Z"));
    assert_eq!(read.modified_ms, datetime::parse("2024-05-02T10:00:00Z"));
    assert_eq!(read.links, ["https://a.example/?a=1&b=2"]);
    assert!(!read.truncated);
}

#[test]
fn slides_come_in_the_order_of_their_numbers() {
    let slides: Vec<(String, String)> = (1..12)
        .map(|it| {
            let slide = format!("<p:sld><a:p><a:r><a:t>{it}</a:t></a:r></a:p></p:sld>");
            (format!("ppt/slides/slide{it}.xml"), slide)
        })
        .collect();
    let slides: Vec<(&str, &str)> =
        slides.iter().rev().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let numbers: Vec<String> = (1..12).map(|it| it.to_string()).collect();
    assert_eq!(read(&archive(&slides)).text, numbers.join("\n"));
}

#[test]
fn a_row_of_a_worksheet_is_a_line_with_the_texts_that_its_cells_refer_to() {
    let read = read(&archive(&[
        (
            "xl/sharedStrings.xml",
            "<sst><si><t>name</t></si><si><r><t>Mill</t></r><r><t>pond</t></r>\
             <rPh><t>phonetic</t></rPh></si></sst>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData><row><c t='s'><v>0</v></c><c t='inlineStr'><is><t>depth</t></is></c>\
             </row><row><c t='s'><v>1</v></c><c><f>1+1.5</f><v>2.5</v></c><c t='s'><v>99</v></c></row>\
             </sheetData></worksheet>",
        ),
    ]));
    assert_eq!(read.text, "name depth\nMillpond 2.5");
}

#[test]
fn open_documents_are_read_without_what_was_deleted() {
    let read = read(&archive(&[
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        (
            "meta.xml",
            "<office:meta><dc:title>T</dc:title><meta:initial-creator>First</meta:initial-creator>\
             <dc:creator>Last</dc:creator><dc:date>2024-05-02T10:00:00</dc:date>\
             <meta:creation-date>2024-05-01T10:00:00.5</meta:creation-date></office:meta>",
        ),
        (
            "content.xml",
            "<office:document-content><number:text>format</number:text><text:tracked-changes>\
             <text:p>old</text:p></text:tracked-changes><text:h>Head</text:h><text:p>Bo<text:span>dy\
             </text:span><text:s/>of <text:a xlink:href='http://a.example/x'>it</text:a></text:p>\
             </office:document-content>",
        ),
    ]));
    assert_eq!((read.title.as_str(), read.text.as_str()), ("T", "Head\nBody of it"));
    assert_eq!(read.authors, ["First"]);
    assert_eq!(read.created_ms, datetime::parse("2024-05-01T10:00:00.5Z"));
    assert_eq!(read.modified_ms, datetime::parse("2024-05-02T10:00:00Z"));
    assert_eq!(read.links, ["http://a.example/x"]);
}

#[test]
fn a_book_is_read_in_its_own_order() {
    let page = |text: &str| {
        format!(
            "<html><head><title>head</title><style>p {{}}</style></head><body><h1>{text}</h1>\
             <p>Words of {text} <a href='b.xhtml'>next</a> <a href='https://a.example/'>web</a></p>\
             </body></html>"
        )
    };
    let (one, two) = (page("one"), page("two"));
    let read = read(&archive(&[
        ("mimetype", "application/epub+zip"),
        (
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path='OEBPS/book.opf'/></rootfiles></container>",
        ),
        (
            "OEBPS/book.opf",
            "<package><metadata><dc:title>A book</dc:title><dc:creator>One</dc:creator>\
             <dc:creator>Two</dc:creator><dc:language>fr</dc:language><dc:date>2020</dc:date>\
             <meta property='dcterms:modified'>2021-02-03T04:05:06Z</meta></metadata><manifest>\
             <item id='a' href='a.xhtml'/><item id='b' href='t/b%201.xhtml'/></manifest><spine>\
             <itemref idref='b'/><itemref idref='a'/><itemref idref='b'/></spine></package>",
        ),
        ("OEBPS/a.xhtml", &one),
        ("OEBPS/t/b 1.xhtml", &two),
    ]));
    assert_eq!(read.text, "two\nWords of two next web\none\nWords of one next web");
    assert_eq!((&*read.title, read.authors.len()), ("A book", 2));
    assert_eq!(read.created_ms, datetime::parse("2020"));
    assert_eq!(read.modified_ms, datetime::parse("2021-02-03T04:05:06Z"));
    assert_eq!(
        (read.language.as_deref(), &*read.links),
        (Some("fr"), &["https://a.example/".into()][..])
    );
}

#[test]
fn an_answer_comes_back_as_it_went_and_within_the_limits() {
    let went: Reply = extract(ContentKind::Office, &word("<w:p><w:t>One</w:t></w:p>"));
    assert_eq!(reply(&serde_json::to_vec(&went).unwrap()), Some(went));
    let refused: Reply = Err(Unreadable::Locked);
    assert_eq!(reply(&serde_json::to_vec(&refused).unwrap()), Some(refused));
    assert_eq!(reply(b"{}"), None);
    let long = Extract {
        title: "t".repeat(2 * SHORT_TEXT_BYTES_MAX),
        text: format!("a\u{0}  b\n\n{}", "x".repeat(TEXT_BYTES_MAX)),
        language: Some("<script>".into()),
        authors: vec![" a \n b ".into(); 2 * AUTHORS_MAX],
        links: vec!["http://a/".into(), "javascript:x".into(), "http://a/".into()],
        ..Extract::default()
    };
    let long = reply(&serde_json::to_vec(&Reply::Ok(long)).unwrap()).unwrap().unwrap();
    assert_eq!((long.title.len(), long.text.len()), (SHORT_TEXT_BYTES_MAX, TEXT_BYTES_MAX));
    assert!(long.text.starts_with("a b\nx") && long.truncated);
    assert_eq!((long.language, &*long.links), (None, &["http://a/".to_owned()][..]));
    assert_eq!((long.authors.len(), &*long.authors[0]), (AUTHORS_MAX, "a b"));
}

#[test]
fn the_longest_answer_has_room() {
    let links = |it: usize| format!("http://a/{it}/{}", "\\".repeat(URL_BYTES_MAX - 20));
    let longest = Extract {
        title: "\"".repeat(SHORT_TEXT_BYTES_MAX),
        text: "\"".repeat(TEXT_BYTES_MAX),
        authors: vec!["\\".repeat(SHORT_TEXT_BYTES_MAX); AUTHORS_MAX],
        links: (0..LINKS_MAX).map(links).collect(),
        ..Extract::default()
    };
    let longest = longest.bounded();
    assert!(longest.more_links);
    assert!(serde_json::to_vec(&Reply::Ok(longest)).unwrap().len() < REPLY_BYTES_MAX);
}
