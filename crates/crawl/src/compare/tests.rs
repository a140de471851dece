//! The comparison against what outputs would hold: whatever comes back in whatever
//! order, they are told exactly what they need.

use super::*;
use proptest::prelude::*;

fn facts(content: u8) -> Facts {
    Facts {
        media_type: "text/html".into(),
        title: format!("version {content}"),
        content_hash: [content; 16],
        text_hash: [content; 16],
        simhash: u64::MAX,
        ..Facts::default()
    }
}

fn looked(run: i64, now_ms: i64) -> LookPosition {
    LookPosition { run: Run(run), now_ms, chunk: ChunkId(now_ms), ordinal: 0 }
}

fn content<'a>(facts: &'a Facts, etag: Option<&str>) -> SeenDocument<'a> {
    let validators = Validators { etag: etag.map(str::to_owned), last_modified: None };
    SeenDocument::Content(ComparedContent {
        status: 200,
        facts,
        fields: &[],
        length: 10,
        unread: None,
        validators,
    })
}

fn new() -> Document {
    unknown(DocumentId(1), "https://example.com/", 0)
}

fn live() -> Document {
    compare(&new(), &content(&facts(1), Some("\"1\"")), looked(1, 100)).document
}

#[test]
fn new_same_and_other_content_are_added_kept_and_updated() {
    let first = compare(&new(), &content(&facts(1), None), looked(1, 100));
    assert_eq!(first.change, Some(Change::Add));
    let same = compare(&first.document, &content(&facts(1), None), looked(2, 200));
    assert_eq!(same.change, Some(Change::Keep));
    assert_eq!(same.document.chunk, Some(ChunkId(100)), "its facts are where they were");
    let other = compare(&same.document, &content(&facts(2), None), looked(3, 300));
    assert_eq!(other.change, Some(Change::Update));
    assert_eq!((other.document.changes, other.document.checks), (1, 3));
    assert_eq!((other.document.changed_ms, other.document.first_ms), (Some(300), 0));
}

#[test]
fn a_document_whose_text_could_not_be_read_is_there_and_says_so() {
    let facts = facts(1);
    let seen = |unread| match content(&facts, None) {
        SeenDocument::Content(content) => {
            SeenDocument::Content(ComparedContent { unread, ..content })
        }
        other => other,
    };
    let unread = compare(&new(), &seen(Some("unread-time")), looked(1, 100));
    assert_eq!(unread.change, Some(Change::Add));
    assert_eq!(unread.document.outcome, "unread-time");
    let same = SeenDocument::NotModified(Validators::default());
    let kept = compare(&unread.document, &same, looked(2, 200));
    assert_eq!(kept.document.outcome, "unread-time", "it was not read this time either");
    let read = compare(&kept.document, &seen(None), looked(3, 300));
    assert_eq!(read.document.outcome, "ok");
}

#[test]
fn time_is_counted_by_whether_the_look_at_its_end_found_a_change() {
    let times = |it: &Comparison| (it.document.quiet_ms, it.document.restless_ms);
    let first = compare(&new(), &content(&facts(1), None), looked(1, 100));
    assert_eq!(times(&first), (0, 0), "what is new has not been watched");
    let same = compare(&first.document, &content(&facts(1), None), looked(1, 160));
    assert_eq!(times(&same), (60, 0));
    let other = compare(&same.document, &content(&facts(2), None), looked(1, 200));
    assert_eq!(times(&other), (60, 40));
    let not_modified = SeenDocument::NotModified(Validators::default());
    let kept = compare(&other.document, &not_modified, looked(1, 300));
    assert_eq!(times(&kept), (160, 40));
    let trouble = SeenDocument::Trouble { status: Some(503), code: "http-503".into() };
    let troubled = compare(&kept.document, &trouble, looked(1, 400));
    assert_eq!(times(&troubled), (160, 40), "trouble tells nothing");
    let moved = SeenDocument::Moved { status: 301, to: (Part(1), DocHash::of("x")) };
    let removed = compare(&troubled.document, &moved, looked(1, 500));
    let back = compare(&removed.document, &content(&facts(3), None), looked(1, 600));
    assert_eq!(times(&back), (160, 40), "what comes back is added, not changed");
}

#[test]
fn a_304_keeps_and_keeps_the_validators_it_does_not_repeat() {
    let kept = compare(&live(), &SeenDocument::NotModified(Validators::default()), looked(2, 200));
    assert_eq!(kept.change, Some(Change::Keep));
    assert_eq!(kept.document.etag.as_deref(), Some("\"1\""));
}

#[test]
fn a_304_that_repeats_one_validator_keeps_the_other() {
    let date = Some("Tue, 20 Jan 2026 10:00:00 GMT".to_owned());
    let dated = Validators { etag: None, last_modified: date.clone() };
    let kept = compare(&live(), &SeenDocument::NotModified(dated), looked(2, 200));
    assert_eq!((kept.document.etag.as_deref(), kept.document.last_modified), (Some("\"1\""), date));
}

#[test]
fn other_content_without_validators_is_asked_for_unconditionally_the_next_time() {
    let other = compare(&live(), &content(&facts(2), None), looked(2, 200));
    assert_eq!((other.document.etag, other.document.last_modified), (None, None));
    let same = compare(&live(), &content(&facts(1), None), looked(2, 200));
    assert_eq!(same.document.etag.as_deref(), Some("\"1\""), "it is of this content");
}

#[test]
fn a_missing_document_is_removed_only_when_that_is_confirmed() {
    let gone = SeenDocument::Missing { status: 404 };
    let once = compare(&live(), &gone, looked(2, 1_000));
    assert_eq!((once.change, once.confirm_ms), (None, Some(2_000)));
    let too_soon = compare(&once.document, &gone, looked(2, 1_500));
    assert_eq!((too_soon.change, too_soon.confirm_ms), (None, Some(2_000)));
    let later = compare(&once.document, &gone, looked(2, 2_000));
    assert_eq!(later.change, Some(Change::Remove(RemoveReason::Gone)));
    let next_run = compare(&once.document, &gone, looked(3, 1_001));
    assert_eq!(next_run.change, Some(Change::Remove(RemoveReason::Gone)));
    assert_eq!(next_run.document.reason.as_deref(), Some("gone"));
    let back = compare(&once.document, &content(&facts(1), None), looked(2, 2_000));
    assert_eq!((back.change, back.document.missing), (Some(Change::Keep), 0));
}

#[test]
fn what_was_never_there_is_told_with_its_answer_and_is_no_removal() {
    let missing = compare(&new(), &SeenDocument::Missing { status: 404 }, looked(1, 100));
    assert_eq!((missing.change, missing.confirm_ms), (Some(Change::NoContent), None));
    let moved = SeenDocument::Moved { status: 301, to: (Part(1), DocHash::of("x")) };
    let moved = compare(&new(), &moved, looked(1, 100));
    assert_eq!(moved.change, Some(Change::NoContent));
    // Trouble in between does not hide that it once led somewhere.
    let trouble = SeenDocument::Trouble { status: None, code: "timeout".into() };
    let trouble = compare(&moved.document, &trouble, looked(2, 200));
    assert_eq!(trouble.change, None);
    let swept = SeenDocument::Swept { reason: RemoveReason::Unreachable };
    let gone = compare(&trouble.document, &swept, looked(3, 300));
    assert_eq!(gone.change, Some(Change::NoContent), "where it led counts no more");
    assert_eq!(compare(&new(), &swept, looked(3, 300)).change, None, "it never led anywhere");
}

#[test]
fn an_answer_without_content_is_told_once_and_again_when_it_is_another_one() {
    let missing = |status| SeenDocument::Missing { status };
    let to = |url: &str| SeenDocument::Moved { status: 301, to: (Part(1), DocHash::of(url)) };
    let trouble = SeenDocument::Trouble { status: None, code: "timeout".into() };
    let told = Some(Change::NoContent);
    let (mut document, mut now_ms) = (new(), 0);
    for (seen, change) in [
        (missing(404), told),
        (missing(404), None),
        (missing(410), told),
        (to("x"), told),
        (to("x"), None),
        (to("y"), told),
        (trouble, None),
        (to("y"), told),
        (missing(410), told),
        (missing(410), None),
    ] {
        now_ms += 1_000;
        let compared = compare(&document, &seen, looked(1, now_ms));
        assert_eq!(compared.change, change, "{seen:?} at {now_ms}");
        document = compared.document;
    }
}

#[test]
fn a_removed_document_that_comes_back_is_added_again() {
    let moved = SeenDocument::Moved { status: 301, to: (Part(1), DocHash::of("x")) };
    let removed = compare(&live(), &moved, looked(2, 200));
    assert_eq!(removed.change, Some(Change::Remove(RemoveReason::Redirected)));
    assert_eq!(removed.document.etag, None, "the next request must not be conditional");
    let again = compare(&removed.document, &moved, looked(3, 300));
    assert_eq!(again.change, Some(Change::NoContent), "it is removed once");
    let again = compare(&again.document, &moved, looked(3, 310));
    assert_eq!(again.change, None, "its answer is told once");
    let back = compare(&again.document, &content(&facts(1), None), looked(4, 400));
    assert_eq!(back.change, Some(Change::Add));
    assert_eq!((back.document.removed_ms, back.document.reason), (None, None));
}

#[derive(Debug, Clone)]
enum Answer {
    Content(u8),
    NotModified,
    Missing,
    Moved,
    Forbidden,
    Trouble,
}

fn answers() -> impl Strategy<Value = Vec<(Answer, i64, bool)>> {
    let answer = prop_oneof![
        4 => (0..3u8).prop_map(Answer::Content),
        1 => Just(Answer::NotModified),
        3 => Just(Answer::Missing),
        1 => Just(Answer::Moved),
        1 => Just(Answer::Forbidden),
        3 => Just(Answer::Trouble),
    ];
    proptest::collection::vec((answer, 1..2_000i64, any::<bool>()), 1..40)
}

proptest! {
    #[test]
    fn an_output_that_does_what_it_is_told_has_what_was_last_seen(answers in answers()) {
        // What an output holds, by doing only what changes say.
        let mut held: Option<u8> = None;
        let (mut document, mut run, mut now_ms) = (new(), 1, 0);
        for (answer, ms, new_run) in answers {
            now_ms += ms;
            run += i64::from(new_run);
            let content_facts = if let Answer::Content(content) = answer { facts(content) } else { Facts::default() };
            let seen = match &answer {
                Answer::Content(_) => content(&content_facts, None),
                Answer::NotModified => SeenDocument::NotModified(Validators::default()),
                Answer::Missing => SeenDocument::Missing { status: 410 },
                Answer::Moved => SeenDocument::Moved { status: 302, to: (Part(1), DocHash::of("x")) },
                Answer::Forbidden => {
                    SeenDocument::Forbidden { code: ReasonCode::Noindex, reason: RemoveReason::Robots }
                },
                Answer::Trouble => SeenDocument::Trouble { status: None, code: "timeout".into() },
            };
            let before = held;
            let compared = compare(&document, &seen, looked(run, now_ms));
            match compared.change {
                Some(Change::Add) => {
                    prop_assert_eq!(held, None);
                    held = Some(content_facts.content_hash[0]);
                }
                Some(Change::Update) => {
                    prop_assert!(held.is_some_and(|it| it != content_facts.content_hash[0]));
                    held = Some(content_facts.content_hash[0]);
                }
                Some(Change::Remove(_)) => {
                    prop_assert!(held.is_some());
                    held = None;
                }
                Some(Change::Keep) => prop_assert!(held.is_some()),
                Some(Change::NoContent) => prop_assert!(held.is_none()),
                None => {}
            }
            match answer {
                Answer::Content(content) => prop_assert_eq!(held, Some(content)),
                Answer::Trouble | Answer::NotModified => prop_assert_eq!(held, before),
                Answer::Missing => {}
                Answer::Moved | Answer::Forbidden => prop_assert_eq!(held, None),
            }
            prop_assert_eq!(is_live(&compared.document), held.is_some());
            prop_assert_eq!(compared.document.removed_ms.is_some(), compared.document.reason.is_some());
            document = compared.document;
        }
    }
}

#[test]
fn what_was_damaged_is_believed_again_when_an_answer_has_replaced_it() {
    let damaged = Document { trust: Trust::Damaged, ..live() };
    let doubtful = damaged.if_damaged_anew("https://example.com/", 150);
    assert_eq!((doubtful.content_hash.as_ref(), doubtful.etag.as_ref()), (None, None));
    let trouble = SeenDocument::Trouble { status: Some(500), code: "server".into() };
    let failed = compare(&doubtful, &trouble, looked(2, 200)).document;
    assert_eq!(failed.trust, Trust::Doubtful, "nothing is known that was not before");
    let read = compare(&failed, &content(&facts(1), None), looked(2, 300));
    assert_eq!((read.change, read.document.trust), (Some(Change::Update), Trust::Whole));
    assert_eq!(read.document.chunk, Some(ChunkId(300)), "where its facts were is not believed");
    let missing = SeenDocument::Missing { status: 404 };
    let once = compare(&doubtful, &missing, looked(2, 200));
    assert_eq!((once.change, once.document.trust), (None, Trust::Doubtful));
    let twice = compare(&once.document, &missing, looked(3, 300));
    assert_eq!(twice.change, Some(Change::Remove(RemoveReason::Gone)), "outputs may have it");
    assert_eq!((twice.document.trust, twice.document.chunk), (Trust::Whole, None));
}
