//! Documents as nobody should write them: bombs, damage, lies.

use super::archive::{BYTES_MAX, FILES_MAX};
use super::samples::{archive, page_of, pdf, shows, word};
use super::*;

fn is_broken(read: &Reply) -> bool {
    matches!(read, Err(Unreadable::Broken(_)))
}

#[test]
fn what_is_not_what_it_says_is_told_before_it_is_read() {
    let told = |kind, bytes: &[u8]| format_of(kind, bytes).unwrap_err();
    assert_eq!(told(ContentKind::Image, b"%PDF-"), Unreadable::Kind);
    assert_eq!(told(ContentKind::Office, b"{\\rtf1 text}"), Unreadable::Kind);
    assert_eq!(told(ContentKind::Office, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1..."), Unreadable::Old);
    assert_eq!(told(ContentKind::Pdf, b"<html>404").code(), "unread-broken");
    let long = [b"PK\x03\x04".to_vec(), vec![0; DOCUMENT_BYTES_MAX]].concat();
    assert_eq!(told(ContentKind::Office, &long), Unreadable::Long);
    assert_eq!(format_of(ContentKind::Office, &long[..DOCUMENT_BYTES_MAX]), Ok(Format::Archive));
    assert_eq!(format_of(ContentKind::Pdf, b"\n\n%PDF-1.7"), Ok(Format::Pdf));
}

#[test]
fn a_document_that_is_cut_off_anywhere_is_an_answer() {
    let whole = pdf(&page_of(&shows("Hello tide")));
    for cut in 0..whole.len() {
        if let Ok(read) = extract(ContentKind::Pdf, &whole[..cut]) {
            assert!(read.text.is_empty() || read.text == "Hello tide", "{cut}: {}", read.text);
        }
    }
    let whole = word("<w:p><w:t>Hello tide</w:t></w:p>");
    for cut in 0..whole.len() {
        assert!(extract(ContentKind::Office, &whole[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn a_damaged_byte_anywhere_is_an_answer() {
    let samples = [
        (ContentKind::Pdf, pdf(&page_of(&shows("Hello tide")))),
        (ContentKind::Office, word("<w:p><w:t>Hello tide</w:t></w:p>")),
    ];
    for (kind, whole) in samples {
        for at in 0..whole.len() {
            for byte in [0, b'9', b'<', 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = extract(kind, &damaged);
            }
        }
    }
}

#[test]
fn a_panic_of_a_library_is_an_answer() {
    let panicked: Result<(), _> = caught(|| panic!("index 7 out of {}", "bounds"));
    let reason = panicked.unwrap_err();
    assert!(reason.to_string().contains("index 7 out of bounds"), "{reason}");
    // This one panics in pdf-extract: a page must have a size.
    let mut objects = page_of(&shows("Hello tide"));
    objects[2] = b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>".to_vec();
    let read = extract(ContentKind::Pdf, &pdf(&objects));
    assert!(read.as_ref().is_err_and(|it| it.to_string().contains("MediaBox")), "{read:?}");
}

#[test]
fn what_was_read_before_a_page_that_cannot_be_is_kept() {
    let mut objects = page_of(&shows("Hello tide"));
    objects[1] = b"<< /Type /Pages /Kids [3 0 R 6 0 R] /Count 2 >>".to_vec();
    objects[5] = b"<< /Type /Page /Parent 2 0 R >>".to_vec();
    let read = extract(ContentKind::Pdf, &pdf(&objects)).unwrap();
    assert_eq!((read.text.as_str(), read.truncated), ("Hello tide", true));
}

#[test]
fn circles_in_a_pdf_end() {
    let mut objects = page_of(&shows("Hello tide"));
    objects[1] = b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 9 >>".to_vec();
    objects[5] = b"6 0 R".to_vec();
    let _ = extract(ContentKind::Pdf, &pdf(&objects));
}

#[test]
fn text_ends_at_its_limit() {
    let line = format!("({}) Tj ", "x".repeat(99));
    let content = format!("BT /F1 24 Tf 72 720 Td {} ET", line.repeat(TEXT_BYTES_MAX / 99 + 9));
    let read = extract(ContentKind::Pdf, &pdf(&page_of(&content))).unwrap();
    assert!(read.truncated && read.text.len() == TEXT_BYTES_MAX);
    let long = |bytes: usize| {
        let read =
            extract(ContentKind::Office, &word(&format!("<w:t>{}</w:t>", "x".repeat(bytes))));
        read.map(|it| (it.text.len(), it.truncated))
    };
    assert_eq!(long(TEXT_BYTES_MAX), Ok((TEXT_BYTES_MAX, false)));
    assert_eq!(long(TEXT_BYTES_MAX + 1), Ok((TEXT_BYTES_MAX, true)));
}

#[test]
fn a_bomb_is_unpacked_to_its_limit() {
    let spaces = " ".repeat(usize::try_from(BYTES_MAX).unwrap());
    let bomb = format!("<w:p><w:t>before</w:t>{spaces}<w:t>behind</w:t></w:p>");
    let bytes = word(&bomb);
    assert!(bytes.len() < 1 << 20, "it is small");
    let read = extract(ContentKind::Office, &bytes).unwrap();
    assert_eq!((read.text.as_str(), read.truncated), ("before", true));
    // The limit is for all parts together.
    let slide = format!("<a:p>{}<a:t>x</a:t></a:p>", &spaces[..spaces.len() / 3]);
    let names: Vec<String> = (0..9).map(|it| format!("ppt/slides/slide{it}.xml")).collect();
    let slides: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), slide.as_str())).collect();
    let read = extract(ContentKind::Office, &archive(&slides)).unwrap();
    assert_eq!((read.text.as_str(), read.truncated), ("x\nx", true));
}

#[test]
fn an_archive_with_too_many_files_is_refused() {
    let files = |count: usize| {
        let names: Vec<String> = (1..count).map(|it| it.to_string()).collect();
        let mut files: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "")).collect();
        files.push(("word/document.xml", "<w:t>x</w:t>"));
        extract(ContentKind::Office, &archive(&files))
    };
    assert!(files(FILES_MAX).is_ok());
    assert!(files(FILES_MAX + 1).unwrap_err().to_string().contains("files"));
}

#[test]
fn archives_in_archives_stay_closed() {
    let inner = word("<w:t>inner</w:t>");
    let mut text = String::from_utf8_lossy(&inner).into_owned();
    for _ in 0..9 {
        text = String::from_utf8_lossy(&archive(&[("word/document.xml", &text)])).into_owned();
    }
    let read = extract(ContentKind::Office, &archive(&[("word/document.xml", &text)]));
    assert!(is_broken(&read), "{read:?}");
    assert_eq!(extract(ContentKind::Office, &archive(&[("a.zip", &text)])), Err(Unreadable::Kind));
}

#[test]
fn entities_are_not_expanded() {
    let mut bomb = String::from("<!DOCTYPE d [<!ENTITY a0 'ha'>");
    for it in 1..40 {
        bomb.push_str(&format!("<!ENTITY a{it} '&a{};&a{0};'>", it - 1));
    }
    bomb.push_str("<!ENTITY x SYSTEM 'file:///etc/passwd'>]><w:p><w:t>1&a39;2&x;3</w:t></w:p>");
    assert_eq!(extract(ContentKind::Office, &word(&bomb)).unwrap().text, "1 2 3");
}

#[test]
fn deep_elements_and_many_attributes_take_no_time() {
    let deep = format!("{}<w:t>x</w:t>{}", "<a>".repeat(400_000), "</a>".repeat(400_000));
    assert_eq!(extract(ContentKind::Office, &word(&deep)).unwrap().text, "x");
    let attributes: String = (0..200_000).map(|it| format!(" a{it}=''")).collect();
    let wide = format!("<w:p><w:t>x</w:t><a{attributes}/></w:p>");
    assert_eq!(extract(ContentKind::Office, &word(&wide)).unwrap().text, "x");
}

#[test]
fn a_text_that_many_cells_refer_to_is_said_within_the_limit() {
    let strings = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(100_000));
    let cells = "<c t='s'><v>0</v></c>".repeat(100_000);
    let sheet = format!("<worksheet><row>{cells}</row></worksheet>");
    let files = [("xl/sharedStrings.xml", &*strings), ("xl/worksheets/sheet1.xml", &*sheet)];
    let read = extract(ContentKind::Office, &archive(&files)).unwrap();
    assert!(read.truncated && read.text.len() <= TEXT_BYTES_MAX);
}

#[test]
fn what_is_locked_says_so() {
    let noise = "\u{1}\u{2}<\u{3}";
    let manifest = "<m:manifest><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>";
    let locked = archive(&[("content.xml", noise), ("META-INF/manifest.xml", manifest)]);
    assert_eq!(extract(ContentKind::Office, &locked), Err(Unreadable::Locked));
    let mut locked = word("<w:t>x</w:t>");
    // The flag of each entry that says so, in both places where it stands.
    for (mark, flags) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let places: Vec<usize> = memchr::memmem::find_iter(&locked, mark).collect();
        places.iter().for_each(|at| locked[at + flags] |= 1);
    }
    assert_eq!(extract(ContentKind::Office, &locked), Err(Unreadable::Locked));
}
