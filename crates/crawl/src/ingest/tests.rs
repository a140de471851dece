//! The decision table of ManifoldCF, row by row, and what it does not say: what is
//! pending, given up, moved or taken over.

use super::*;
use proptest::prelude::*;
use store::tables::ingests;

const JOB: JobId = JobId(3);

fn route() -> Route {
    Route { ways: vec![JOB], version: "o1".into(), transformations: "t1".into() }
}

fn sent<'a>(version: &'a str, route: &'a Route) -> SentDocument<'a> {
    SentDocument { uri: "http://a.example/", version, authority: Some("staff"), route }
}

/// The decision of a commit on a version of the document.
fn on(known: Option<&Ingest>, version: &str, seq: i64) -> RowChange {
    decide(known, Offer::There(sent(version, &route())), at(seq))
}

fn at(seq: i64) -> DecisionContext {
    DecisionContext { seq: CommitNumber(seq), job: JOB, now_ms: 10 * seq }
}

/// What the output has after the first delivery of version `v1`.
fn taken() -> Ingest {
    let row = saved(on(None, "v1", 1)).expect("it is new");
    acknowledged(row, 1)
}

fn acknowledged(mut row: Ingest, seq: i64) -> Ingest {
    row.pending = None;
    row.delivered_seq = Some(CommitNumber(seq));
    row.ownership = Some(Ownership::Owned);
    row
}

fn pending(change: RowChange) -> Option<Decision> {
    saved(change).and_then(|row| row.pending).map(|it| it.decision)
}

fn saved(change: RowChange) -> Option<Ingest> {
    match change {
        RowChange::Save(row) => Some(*row),
        RowChange::Keep | RowChange::Remove => None,
    }
}

#[test]
fn an_output_hears_of_what_differs_and_of_nothing_else() {
    let known = taken();
    assert_eq!((known.changes, known.version.as_deref()), (1, Some("v1")));
    let other = |change: fn(&mut Route)| {
        let mut route = route();
        change(&mut route);
        pending(decide(Some(&known), Offer::There(sent("v1", &route)), at(2)))
    };
    let update = Some(Decision::Update);
    assert_eq!(on(Some(&known), "v1", 2), RowChange::Keep, "nothing has changed");
    assert_eq!(pending(on(Some(&known), "v2", 2)), update);
    assert_eq!(other(|it| it.version = "o2".into()), update);
    assert_eq!(other(|it| it.transformations = String::new()), update);
    assert_eq!(other(|it| it.ways = vec![JobId(1), JOB]), None);
    let route = route();
    let open = Offer::There(SentDocument { authority: None, ..sent("v1", &route) });
    assert_eq!(pending(decide(Some(&known), open, at(2))), update);
    // A document without a version is sent each time.
    let unversioned = acknowledged(saved(on(None, "", 1)).expect("it is new"), 1);
    assert_eq!(pending(on(Some(&unversioned), "", 2)), update);
    // "Re-index all" of a row: its version is not known any more.
    let cleared = Ingest { version: None, ..known.clone() };
    assert_eq!(pending(on(Some(&cleared), "v1", 2)), update);
    let changed = saved(on(Some(&known), "v2", 2)).expect("it differs");
    assert_eq!((changed.changes, changed.last_change_ms), (2, Some(20)));
    assert_eq!(changed.first_ingest_ms, known.first_ingest_ms);
}

#[test]
fn what_is_pending_is_replaced_by_what_is_newer() {
    let fresh = saved(on(None, "v1", 1)).expect("it is new");
    assert_eq!(on(Some(&fresh), "v1", 2), RowChange::Keep, "it is on its way");
    let newer = saved(on(Some(&fresh), "v2", 3));
    let newer = newer.expect("it is different");
    let expected = Some(PendingDecision::new(Decision::Add, CommitNumber(3), JOB));
    assert_eq!(newer.pending, expected, "the output may not have it yet");
    // It may have it all the same: the acknowledgement may be lost.
    let removed = saved(decide(Some(&newer), Offer::Gone, at(4)));
    let removed = removed.expect("the output is told");
    assert_eq!(removed.pending, Some(PendingDecision::new(Decision::Remove, CommitNumber(4), JOB)));
    assert_eq!(decide(Some(&removed), Offer::Gone, at(5)), RowChange::Keep);
    let back = on(Some(&removed), "v2", 6);
    assert_eq!(pending(back), Some(Decision::Add), "though its version is the same");
    assert_eq!(decide(None, Offer::Gone, at(1)), RowChange::Keep);
}

#[test]
fn what_was_given_up_is_tried_anew_by_the_next_look() {
    let mut known = taken();
    let mut given_up = PendingDecision::new(Decision::Update, CommitNumber(2), JobId(8));
    given_up.check_ms = Some(ingests::NEVER_MS);
    given_up.error = Some("full".into());
    known.pending = Some(given_up);
    let again = saved(on(Some(&known), "v1", 7));
    let again = again.expect("it is tried again");
    assert_eq!(again.pending, Some(PendingDecision::new(Decision::Update, CommitNumber(7), JOB)));
    assert_eq!(again.changes, known.changes, "the document has not changed");
}

/// What an output has from before there were claims gets one at the next look, once.
#[test]
fn what_was_delivered_before_there_were_claims_is_claimed_by_the_next_look() {
    let old = Ingest { ownership: None, ..taken() };
    let next = saved(on(Some(&old), "v1", 2)).expect("its claim is to be written");
    assert_eq!(next.pending, Some(PendingDecision::new(Decision::Update, CommitNumber(2), JOB)));
    assert_eq!((next.ownership, next.changes), (Some(Ownership::Unclaimed), old.changes));
    assert_eq!(on(Some(&next), "v1", 3), RowChange::Keep, "that is on its way");
    let changed = saved(on(Some(&next), "v2", 4)).expect("it is different");
    assert_eq!(changed.ownership, None, "it is sent, not only claimed");
    assert_eq!(
        on(Some(&Ingest { uri: None, ..old }), "v1", 2),
        RowChange::Keep,
        "nothing of it is there"
    );
}

/// Jobs that send it alike take turns without a word to the output.
#[test]
fn which_jobs_send_a_document_is_kept_whether_or_not_the_output_hears_of_it() {
    let known = taken();
    assert_eq!(known.way_jobs(), [JOB]);
    let route = Route { ways: vec![JobId(1), JOB], ..route() };
    let both = saved(decide(Some(&known), Offer::There(sent("v1", &route)), at(2)));
    let both = both.expect("another job sends it too");
    assert_eq!((both.way_jobs(), &both.pending), (vec![JobId(1), JOB], &None));
    assert_eq!(decide(Some(&both), Offer::There(sent("v1", &route)), at(3)), RowChange::Keep);
}

#[test]
fn what_an_output_rejected_leaves_without_a_word() {
    let known = Ingest { uri: None, uri_hash: None, ..taken() };
    assert_eq!(on(Some(&known), "v1", 2), RowChange::Keep);
    assert_eq!(pending(on(Some(&known), "v2", 2)), Some(Decision::Update));
    assert_eq!(decide(Some(&known), Offer::Gone, at(2)), RowChange::Remove);
}

#[test]
fn a_document_that_moves_leaves_no_uri_behind() {
    let route = route();
    let moved = |uri| Offer::There(SentDocument { uri, ..sent("v1", &route) });
    let mut row = taken();
    for (seq, uri) in [(2, "http://b.example/"), (3, "http://c.example/"), (4, "http://b.example/")]
    {
        row = saved(decide(Some(&row), moved(uri), at(seq))).expect("it moved");
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

/// The row after a decision.
fn after(row: Option<Ingest>, offer: Offer<'_>, seq: i64) -> Option<Ingest> {
    match decide(row.as_ref(), offer, at(seq)) {
        RowChange::Keep => row,
        RowChange::Remove => None,
        RowChange::Save(next) => Some(*next),
    }
}

proptest! {
    /// Whatever happens, and whichever acknowledgement is lost: once everything pending
    /// is delivered, the output has what there is, made with its newest settings.
    #[test]
    fn outputs_end_up_with_what_there_is(story in proptest::collection::vec(happens(), 1..40)) {
        let mut route = route();
        let mut row: Option<Ingest> = None;
        let mut now: Option<String> = None;
        let mut made = route.version.clone();
        let mut output: Option<(String, String)> = None;
        let deliver = |row: &mut Option<Ingest>, output: &mut Option<(String, String)>, heard: bool| {
            let Some(it) = row.clone() else { return };
            let Some(pending) = it.pending.clone() else { return };
            let removes = pending.decision == Decision::Remove;
            *output = (!removes).then(|| {
                (it.version.clone().unwrap_or_default(), it.output_version.clone().unwrap_or_default())
            });
            if heard {
                *row = (!removes).then(|| acknowledged(it, pending.seq.0));
            }
        };
        for (seq, it) in (1..).zip(story) {
            match it {
                Happens::There(version) => {
                    let version = format!("v{version}");
                    let offer = Offer::There(sent(&version, &route));
                    row = after(row, offer, seq);
                    (now, made) = (Some(version), route.version.clone());
                }
                Happens::Gone => {
                    row = after(row, Offer::Gone, seq);
                    now = None;
                }
                Happens::OutputChanges(version) => route.version = format!("o{version}"),
                Happens::Delivery(heard) => deliver(&mut row, &mut output, heard),
            }
        }
        deliver(&mut row, &mut output, true);
        prop_assert_eq!(output, now.map(|version| (version, made)));
        prop_assert!(row.is_none_or(|row| row.pending.is_none()));
    }
}
