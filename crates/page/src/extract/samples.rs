//! Documents for the tests: archives and PDFs as programs write them.

use std::io::{Cursor, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// An archive of files.
pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A text document with one part.
pub fn word(document: &str) -> Vec<u8> {
    archive(&[("[Content_Types].xml", "<Types/>"), ("word/document.xml", document)])
}

/// A PDF of objects, the first of which is its catalog and the last what it says of itself.
pub fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(out.len());
        out.extend(format!("{number} 0 obj\n").bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    let (table, size) = (out.len(), objects.len() + 1);
    out.extend(format!("xref\n0 {size}\n0000000000 65535 f \n").bytes());
    for place in places {
        out.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let info = objects.len();
    let trailer = format!("<< /Size {size} /Root 1 0 R /Info {info} 0 R >>");
    out.extend(format!("trailer\n{trailer}\nstartxref\n{table}\n%%EOF\n").bytes());
    out
}

/// The objects of a PDF with a page whose content is this.
pub fn page_of(content: &str) -> Vec<Vec<u8>> {
    let stream = format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len());
    [
        "<< /Type /Catalog /Pages 2 0 R /Lang (en-GB) >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
         /Annots [6 0 R 7 0 R] /Resources << /Font << /F1 5 0 R >> >> >>",
        &stream,
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Annot /Subtype /Link /A << /S /URI /URI (https://a.example/tides) >> >>",
        "<< /Type /Annot /Subtype /Link /A << /S /GoTo /D [3 0 R /Fit] >> >>",
        "<< /Title (Tides) /Author (A. Keeper) /Subject (The sea) \
         /CreationDate (D:20240501102030+02'00') >>",
    ]
    .map(|it| it.as_bytes().to_vec())
    .into()
}

/// A page that shows a text.
pub fn shows(text: &str) -> String {
    format!("BT /F1 24 Tf 72 720 Td ({text}) Tj ET")
}
