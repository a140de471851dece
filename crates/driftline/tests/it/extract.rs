//! `driftline extract` alone: what it answers, and what it cannot do.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod walls;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use flate2::{Compress, Compression, FlushCompress};
use serde_json::Value as Json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_driftline");
const PATIENCE: Duration = Duration::from_secs(40);
const GLANCE: Duration = Duration::from_millis(5);

/// A PDF with a page of this content, which is packed by these filters, and a link.
fn pdf(content: &[u8], filter: &str, link: &str) -> Vec<u8> {
    let mut stream = format!("<< /Length {} {filter} >>\nstream\n", content.len()).into_bytes();
    stream.extend(content);
    stream.extend(b"\nendstream");
    let link = format!("<< /Type /Annot /Subtype /Link /A << /S /URI /URI ({link}) >> >>");
    let objects: [&[u8]; 7] = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en) >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
          /Annots [6 0 R] /Resources << /Font << /F1 5 0 R >> >> >>",
        &stream,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        link.as_bytes(),
        b"<< /Title (Tides) /Author (A. Keeper) /CreationDate (D:20240501102030Z) >>",
    ];
    let (mut out, mut places) = (b"%PDF-1.4\n".to_vec(), Vec::new());
    for (number, object) in (1..).zip(objects) {
        places.push(out.len());
        out.extend(format!("{number} 0 obj\n").bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    let table = out.len();
    out.extend(b"xref\n0 8\n0000000000 65535 f \n");
    for place in places {
        out.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let trailer = "<< /Size 8 /Root 1 0 R /Info 7 0 R >>";
    out.extend(format!("trailer\n{trailer}\nstartxref\n{table}\n%%EOF\n").bytes());
    out
}

/// A PDF that shows a text and leads somewhere.
pub fn pdf_of(text: &str, link: &str) -> Vec<u8> {
    pdf(format!("BT /F1 24 Tf 72 720 Td ({text}) Tj ET").as_bytes(), "", link)
}

/// A PDF of a megabyte whose page has a gigabyte when it is unpacked.
pub fn pdf_bomb() -> Vec<u8> {
    let spaces = vec![b' '; 1 << 20];
    let mut packed = vec![0; 1 << 16];
    let mut compress = Compress::new(Compression::default(), false);
    compress.compress(&spaces, &mut packed, FlushCompress::Full).unwrap();
    packed.truncate(usize::try_from(compress.total_out()).unwrap());
    // After a full flush the same may follow again.
    let content = [b"\x78\x9c", packed.repeat(1 << 10).as_slice(), b"\x03\x00\0\0\0\0"].concat();
    pdf(&content, "/Filter /FlateDecode", "http://a.example/")
}

/// A text document.
pub fn docx_of(text: &str) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let core = "<cp:coreProperties><dc:title>A letter</dc:title></cp:coreProperties>";
    let document = format!("<w:document><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:document>");
    for (name, text) in [
        ("[Content_Types].xml", "<Types/>"),
        ("docProps/core.xml", core),
        ("word/document.xml", &document),
    ] {
        writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn start(media_type: &str) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["extract", "--", media_type]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn read(media_type: &str, document: &[u8]) -> Output {
    let mut child = start(media_type);
    child.stdin.take().unwrap().write_all(document).unwrap();
    child.wait_with_output().unwrap()
}

fn answer(media_type: &str, document: &[u8]) -> Json {
    let output = read(media_type, document);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_a_document_says_is_answered_in_json() {
    let pdf = answer("application/pdf", &pdf_of("Hello tide", "http://a.example/x"));
    assert_eq!((&pdf["Ok"]["text"], &pdf["Ok"]["title"]), (&"Hello tide".into(), &"Tides".into()));
    assert_eq!(pdf["Ok"]["links"][0], "http://a.example/x");
    let docx = answer("application/vnd.openxmlformats-officedocument", &docx_of("Dear sea"));
    assert_eq!(
        (&docx["Ok"]["text"], &docx["Ok"]["title"]),
        (&"Dear sea".into(), &"A letter".into())
    );
    assert_eq!(answer("image/png", b"...")["Err"], "Kind");
    assert!(answer("application/pdf", b"%PDF-1.7 and no more")["Err"]["Broken"].is_string());
    assert_eq!(answer("--help", b"")["Err"], "Kind", "a media type is no flag");
}

#[test]
fn a_bomb_ends_at_the_limit_of_memory() {
    let bomb = pdf_bomb();
    assert!(bomb.len() < 2 << 20, "{}", bomb.len());
    let output = read("application/pdf", &bomb);
    assert!(output.status.signal().is_some(), "{:?}", output.status);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("memory allocation of"), "{said}");
}

/// Looks again and again until something holds.
fn comes<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::park_timeout(GLANCE);
    }
}

fn of_process(id: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{id}/{file}"))
}

#[test]
fn it_takes_its_rights_away_before_it_reads() {
    let mut child = start("application/pdf");
    let limits = of_process(child.id(), "limits");
    let wanted = [
        ("Max address space", "536870912"),
        ("Max cpu time", "30"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max processes", "0"),
        ("Max open files", "3"),
    ];
    comes("its limits", || {
        let text = std::fs::read_to_string(&limits).ok()?;
        let has = |(name, limit): (&str, &str)| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.is_some_and(|it| it.split_whitespace().next() == Some(limit))
        };
        wanted.into_iter().all(has).then_some(())
    });
    drop(child.stdin.take());
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn it_ends_with_whoever_started_it() {
    // Its input stays open, so that it would wait for ever.
    let script = format!("exec 3<&0; {PROGRAM} extract application/pdf <&3 & echo $!; wait");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut parent = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let id: u32 = line.trim().parse().unwrap();
    comes("it has limited itself", || {
        let limits = std::fs::read_to_string(of_process(id, "limits")).ok()?;
        limits.contains("536870912").then_some(())
    });
    // The last right that it takes comes a moment later; a sleeping process has done it.
    let is = |state: &str| {
        let stat = std::fs::read_to_string(of_process(id, "stat")).unwrap_or_default();
        stat.contains(state)
    };
    comes("it waits for its input", || is(") S ").then_some(()));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let is_gone = || !of_process(id, "stat").exists() || is(") Z ");
    comes("it is gone", || is_gone().then_some(()));
}
