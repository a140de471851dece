//! Readers that hang, fail and lie, played by shell scripts; and what is made of an answer.

mod crawl;

use super::*;
use page::sniff::media_of;
use std::sync::Arc;

/// How long a script may take that ends by itself.
const LONG: Duration = Duration::from_secs(30);
/// For those that never end.
const SHORT: Duration = Duration::from_millis(300);

fn script(text: &str, wall: Duration) -> Extractor {
    let arguments = vec!["-c".to_owned(), text.to_owned(), "sh".to_owned()];
    let program = Program { path: "/bin/sh".into(), arguments };
    Extractor { wall, ..Extractor::new(program) }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

fn asked(extractor: &Extractor) -> ExtractResult {
    let body = b"%PDF-1.7 ...";
    run(extractor.ask(&media_of(Some("application/pdf"), false, body), body, false)).unwrap()
}

fn code_of(text: &str, wall: Duration) -> &'static str {
    let unread = asked(&script(text, wall)).unwrap_err();
    assert!(words_of(unread.code).is_some(), "{unread:?}");
    assert_eq!(unread.passes, unread.code == "unread-program", "{unread:?}");
    unread.code
}

#[test]
fn a_reader_gets_the_document_and_its_type_and_nothing_else() {
    let extractor = script(
        r#"[ "$1" = application/pdf ] || exit 7
           [ "$(cat)" = "%PDF-1.7 ..." ] || exit 8
           [ -z "$HOME$CARGO$USER" ] || exit 9
           echo '{"Ok": {"text": "words"}}'"#,
        LONG,
    );
    assert_eq!(asked(&extractor).unwrap().text, "words");
}

#[test]
fn what_becomes_of_a_reader_is_what_becomes_of_its_document() {
    let none = "exec 0<&-; ";
    for (text, code) in [
        (r#"echo '{"Err": "Locked"}'"#, "unread-locked"),
        ("echo nothing of use", "unread-crash"),
        ("yes", "unread-crash"),
        ("kill -SEGV $$", "unread-crash"),
        ("kill -SYS $$", "unread-forbidden"),
        ("kill -XCPU $$", "unread-time"),
        ("kill -KILL $$", "unread-memory"),
        ("echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$", "unread-memory"),
        ("echo 'thread main has overflowed its stack' >&2; kill -ABRT $$", "unread-memory"),
        ("echo 'no limits here' >&2; exit 2", "unread-program"),
        ("head -c 3000000 /dev/zero >&2; exit 2", "unread-program"),
    ] {
        assert_eq!(code_of(text, LONG), code, "{text}");
        assert_eq!(code_of(&format!("{none}{text}"), LONG), code, "not reading: {text}");
    }
    let missing = Program { path: "/no/such/program".into(), arguments: Vec::new() };
    assert_eq!(asked(&Extractor::new(missing)).unwrap_err().code, "unread-program");
}

#[test]
fn a_reader_that_hangs_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("pid");
    let hangs = format!("echo $$ > {}; exec sleep 1000", place.display());
    assert_eq!(code_of(&hangs, SHORT), "unread-time");
    let pid = std::fs::read_to_string(&place).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "it is gone");
    // Nor does one that ignores everything, or writes without end to where nobody reads.
    for text in ["trap '' TERM INT HUP; while :; do :; done", "yes >&2", "sleep 3 & wait"] {
        assert_eq!(code_of(text, SHORT), "unread-time", "{text}");
    }
}

#[test]
fn whoever_stops_waiting_ends_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("pid");
    let hangs = format!("echo $$ > {}; exec sleep 1000", place.display());
    let extractor = Arc::new(script(&hangs, LONG));
    run(async {
        let asked = tokio::spawn({
            let extractor = extractor.clone();
            async move {
                let media = media_of(Some("application/pdf"), false, b"");
                extractor.ask(&media, b"%PDF-1.7 ...", false).await
            }
        });
        let pid = loop {
            match std::fs::read_to_string(&place) {
                Ok(pid) if pid.ends_with('\n') => break pid,
                _ => tokio::task::yield_now().await,
            }
        };
        asked.abort();
        let _ = asked.await;
        let stat = std::path::Path::new("/proc").join(pid.trim()).join("stat");
        // Gone, or dead and not yet buried.
        let is_alive = || {
            std::fs::read_to_string(&stat)
                .is_ok_and(|it| !it.contains(") Z ") && !it.contains(") X "))
        };
        while is_alive() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn no_more_readers_run_than_there_are_turns() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("taken");
    // A directory can be made by one of them at a time.
    let alone = format!(
        "cat > /dev/null; mkdir {0} || exit 2; sleep 0.05; rmdir {0}; echo '{{\"Ok\": {{}}}}'",
        place.display()
    );
    let extractor = Extractor { turns: Semaphore::new(1), ..script(&alone, LONG) };
    run(async {
        let media = media_of(Some("application/pdf"), false, b"");
        let ask = || extractor.ask(&media, b"%PDF-1.7", false);
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        for said in [one, two, three] {
            assert_eq!(said, Some(Ok(Extract::default())));
        }
    });
}

#[test]
fn what_is_not_read_starts_no_process() {
    let extractor = script("exit 2", LONG);
    let ask = |media: &str, body: &[u8], is_cut| {
        run(extractor.ask(&media_of(Some(media), false, body), body, is_cut))
    };
    let code = |said: Option<ExtractResult>| said.unwrap().unwrap_err().code;
    assert_eq!(ask("text/html", b"<html>", false), None);
    assert_eq!(ask("application/zip", b"PK\x03\x04", false), None);
    assert_eq!(code(ask("application/pdf", b"%PDF-", true)), "unread-long");
    assert_eq!(code(ask("application/pdf", b"<html>404", false)), "unread-broken");
    assert_eq!(code(ask("application/msword", b"\xd0\xcf\x11\xe0", false)), "unread-kind");
    let media = media_of(Some("application/pdf"), false, b"");
    assert_eq!(run(Extractor::default().ask(&media, b"%PDF-", false)), None, "no program");
}

#[test]
fn what_a_document_says_becomes_its_facts_and_fields() {
    let read = Extract {
        title: "Tides".into(),
        text: "one\ntwo".into(),
        language: Some("en".into()),
        authors: vec!["Me".into()],
        created_ms: Some(86_400_000),
        links: ["http://a.example/b", "https://a.example/x#y", "https://a.example/x"]
            .map(str::to_owned)
            .into(),
        ..Extract::default()
    };
    let (url, policy) = ("https://a.example/t.pdf", Policy::default());
    let mut facts = Facts { title: "t.pdf".into(), text: "price: 5".into(), ..Facts::default() };
    let notes = take(Some(Ok(read.clone())), &mut facts, url, &policy);
    assert_eq!((&*facts.title, &*facts.text), ("Tides", "one\ntwo\nprice: 5"));
    assert_eq!(facts.text_hash, fingerprint::text_hash(&facts.text));
    let links: Vec<&str> = facts.links.iter().map(|it| it.url.as_str()).collect();
    assert_eq!(links, ["http://a.example/b", "https://a.example/x"]);
    let others = vec![field("author", vec!["Somebody".into()])];
    let fields = notes.with(others);
    let told: Vec<(&str, &str)> = fields.iter().map(|it| (&*it.name, &*it.values[0])).collect();
    assert_eq!(told, [("author", "Somebody"), ("created", "1970-01-02T00:00:00Z")]);
    // A title that somebody gave is better than the document's own.
    let mut named = Facts { title: "Given".into(), ..Facts::default() };
    take(Some(Ok(read)), &mut named, url, &policy);
    assert_eq!(named.title, "Given");
}

#[test]
fn why_a_document_has_no_text_is_told() {
    let mut facts = Facts::default();
    let (url, policy) = ("https://a.example/t.pdf", Policy::default());
    let notes = take(Some(Err(Unreadable::Locked.into())), &mut facts, url, &policy);
    assert_eq!((facts, notes.code()), (Facts::default(), Some("unread-locked")));
    assert_eq!(notes.fields, [field(UNREAD, vec!["it is protected by a password".into()])]);
    assert!(notes.sentence().unwrap().contains("password") && !notes.is_due());
    assert_eq!(take(None, &mut Facts::default(), url, &policy), ExtractNotes::default());
}

#[test]
fn every_reason_of_a_document_has_its_words() {
    let reasons = [
        Unreadable::Kind,
        Unreadable::Old,
        Unreadable::Locked,
        Unreadable::Long,
        Unreadable::Broken("x".into()),
    ];
    for reason in reasons {
        assert!(words_of(reason.code()).is_some(), "{reason}");
    }
    assert_eq!(words_of("ok"), None);
}
