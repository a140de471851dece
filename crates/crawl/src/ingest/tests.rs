//! The decision table of the original, row by row, and what it does not say: what is
//! pending, given up, moved or taken over.

use super::*;
use proptest::prelude::*;

const JOB: JobId = JobId(3);

fn outlet() -> Outlet {
    Outlet {
        connection: ConnectionId(9),
        name: "out".into(),
        version: "o1".into(),
        transformations: "t1".into(),
        bodies: false,
        shared: false,
    }
}

fn there<'a>(version: &'a str) -> Offer<'a> {
    Offer::There { uri: "http://a.example/", version, authority: Some("staff") }
}

/// What the output has after the first delivery of version `v1`.
fn taken() -> Ingest {
    let row = decide(None, there("v1"), &outlet(), (1, JOB, 10)).flatten().expect("it is new");
    acknowledged(row, 1)
}

fn acknowledged(mut row: Ingest, seq: i64) -> Ingest {
    row.pending = None;
    row.delivered_seq = Some(seq);
    row
}

fn pending(decided: Option<Option<Ingest>>) -> Option<Decision> {
    decided.flatten().and_then(|row| row.pending).map(|it| it.decision)
}

#[test]
fn an_output_hears_of_what_differs_and_of_nothing_else() {
    let known = taken();
    assert_eq!((known.changes, known.version.as_deref()), (1, Some("v1")));
    let at = (2, JOB, 20);
    let other = |change: fn(&mut Outlet)| {
        let mut outlet = outlet();
        change(&mut outlet);
        pending(decide(Some(&known), there("v1"), &outlet, at))
    };
    let update = Some(Decision::Update);
    assert_eq!(decide(Some(&known), there("v1"), &outlet(), at), None, "nothing has changed");
    assert_eq!(pending(decide(Some(&known), there("v2"), &outlet(), at)), update);
    assert_eq!(other(|it| it.version = "o2".into()), update);
    assert_eq!(other(|it| it.transformations = String::new()), update);
    assert_eq!(other(|it| it.name = "renamed".into()), None);
    let open = Offer::There { uri: "http://a.example/", version: "v1", authority: None };
    assert_eq!(pending(decide(Some(&known), open, &outlet(), at)), update);
    // A document without a version is sent each time.
    let unversioned = acknowledged(
        decide(None, there(""), &outlet(), (1, JOB, 10)).flatten().expect("it is new"),
        1,
    );
    assert_eq!(pending(decide(Some(&unversioned), there(""), &outlet(), at)), update);
    // "Re-index all" of a row: its version is not known any more.
    let cleared = Ingest { version: None, ..known.clone() };
    assert_eq!(pending(decide(Some(&cleared), there("v1"), &outlet(), at)), update);
    let changed = decide(Some(&known), there("v2"), &outlet(), at).flatten().expect("it differs");
    assert_eq!((changed.changes, changed.last_change_ms), (2, Some(20)));
    assert_eq!(changed.first_ingest_ms, known.first_ingest_ms);
}

#[test]
fn what_is_pending_is_replaced_by_what_is_newer() {
    let fresh = decide(None, there("v1"), &outlet(), (1, JOB, 10)).flatten().expect("it is new");
    assert_eq!(
        decide(Some(&fresh), there("v1"), &outlet(), (2, JOB, 20)),
        None,
        "it is on its way"
    );
    let newer = decide(Some(&fresh), there("v2"), &outlet(), (3, JOB, 30)).flatten();
    let newer = newer.expect("it is different");
    let expected = Some(Pending::new(Decision::Add, 3, JOB));
    assert_eq!(newer.pending, expected, "the output may not have it yet");
    // It may have it all the same: the acknowledgement may be lost.
    let removed = decide(Some(&newer), Offer::Gone, &outlet(), (4, JOB, 40)).flatten();
    let removed = removed.expect("the output is told");
    assert_eq!(removed.pending, Some(Pending::new(Decision::Remove, 4, JOB)));
    assert_eq!(decide(Some(&removed), Offer::Gone, &outlet(), (5, JOB, 50)), None);
    let back = decide(Some(&removed), there("v2"), &outlet(), (6, JOB, 60));
    assert_eq!(pending(back), Some(Decision::Add), "though its version is the same");
    assert_eq!(decide(None, Offer::Gone, &outlet(), (1, JOB, 10)), None);
}

#[test]
fn what_was_given_up_is_tried_anew_by_the_next_look() {
    let mut known = taken();
    let mut given_up = Pending::new(Decision::Update, 2, JobId(8));
    given_up.check_ms = Some(ingests::NEVER_MS);
    given_up.error = Some("full".into());
    known.pending = Some(given_up);
    let again = decide(Some(&known), there("v1"), &outlet(), (7, JOB, 70)).flatten();
    let again = again.expect("it is tried again");
    assert_eq!(again.pending, Some(Pending::new(Decision::Update, 7, JOB)));
    assert_eq!(again.changes, known.changes, "the document has not changed");
}

#[test]
fn what_an_output_rejected_leaves_without_a_word() {
    let known = Ingest { uri: None, uri_hash: None, ..taken() };
    assert_eq!(decide(Some(&known), there("v1"), &outlet(), (2, JOB, 20)), None);
    assert_eq!(
        pending(decide(Some(&known), there("v2"), &outlet(), (2, JOB, 20))),
        Some(Decision::Update)
    );
    assert_eq!(decide(Some(&known), Offer::Gone, &outlet(), (2, JOB, 20)), Some(None));
}

#[test]
fn a_document_that_moves_leaves_no_uri_behind() {
    let at = |uri| Offer::There { uri, version: "v1", authority: Some("staff") };
    let mut row = taken();
    for (seq, uri) in [(2, "http://b.example/"), (3, "http://c.example/"), (4, "http://b.example/")]
    {
        row = decide(Some(&row), at(uri), &outlet(), (seq, JOB, 20)).flatten().expect("it moved");
    }
    assert_eq!(row.uri.as_deref(), Some("http://b.example/"));
    let stale = "http://a.example/\nhttp://b.example/\nhttp://c.example/";
    assert_eq!(row.stale_uris.as_deref(), Some(stale), "any of them may have been delivered");
}

/// What can happen between an output and a document.
#[derive(Debug, Clone)]
enum Happens {
    There(u8),
    Gone,
    OutputChanges(u8),
    /// The output does what is pending; whether we hear of it.
    Delivery(bool),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (0..3_u8).prop_map(Happens::There),
        Just(Happens::Gone),
        (0..2_u8).prop_map(Happens::OutputChanges),
        any::<bool>().prop_map(Happens::Delivery),
    ]
}

proptest! {
    /// Whatever happens, and whichever acknowledgement is lost: once everything pending
    /// is delivered, the output has what there is, made with its newest settings.
    #[test]
    fn outputs_end_up_with_what_there_is(story in proptest::collection::vec(happens(), 1..40)) {
        let mut outlet = outlet();
        let mut row: Option<Ingest> = None;
        let mut now: Option<String> = None;
        let mut made = outlet.version.clone();
        let mut output: Option<(String, String)> = None;
        let deliver = |row: &mut Option<Ingest>, output: &mut Option<(String, String)>, heard: bool| {
            let Some(it) = row.clone() else { return };
            let Some(pending) = it.pending.clone() else { return };
            let removes = pending.decision == Decision::Remove;
            *output = (!removes).then(|| {
                (it.version.clone().unwrap_or_default(), it.output_version.clone().unwrap_or_default())
            });
            if heard {
                *row = (!removes).then(|| acknowledged(it, pending.seq));
            }
        };
        for (seq, it) in (1..).zip(story) {
            match it {
                Happens::There(version) => {
                    let version = format!("v{version}");
                    if let Some(after) = decide(row.as_ref(), there(&version), &outlet, (seq, JOB, seq)) {
                        row = after;
                    }
                    (now, made) = (Some(version), outlet.version.clone());
                }
                Happens::Gone => {
                    if let Some(after) = decide(row.as_ref(), Offer::Gone, &outlet, (seq, JOB, seq)) {
                        row = after;
                    }
                    now = None;
                }
                Happens::OutputChanges(version) => outlet.version = format!("o{version}"),
                Happens::Delivery(heard) => deliver(&mut row, &mut output, heard),
            }
        }
        deliver(&mut row, &mut output, true);
        prop_assert_eq!(output, now.map(|version| (version, made)));
        prop_assert!(row.is_none_or(|row| row.pending.is_none()));
    }
}
