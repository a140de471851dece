//! What places decide, without tables: what is active, what is committed, what is swept.

use super::*;
use crate::batch::fixture::entry;
use crate::job::JobMode;
use crate::job::fixture::{JOB, work};
use std::cell::Cell;
use store::ids::{BinId, ObjectId};
use store::tables::queue::Settlement;
use store::tables::queue::sweep::Sweep;

const PLACE: Place = Place { part: Part(1), job: JOB };
const TERMS: CommitTerms = CommitTerms {
    documents_max: 4,
    chunk_ms: 500,
    is_hungry: false,
    is_starving: false,
    now_ms: 0,
};

/// Makes chunks with numbers from one on.
fn chunks() -> impl Fn() -> OpenChunk {
    let number = Cell::new(0);
    move || {
        number.set(number.get() + 1);
        let id = ChunkId(number.get());
        OpenChunk { id, claim: id, facts: ObjectId(1), bodies: None, announces: true }
    }
}

fn claim(places: &mut Places, ids: &[i64]) {
    places.on_claimed(PLACE, ids.iter().copied().map(QueueId));
}

fn settle(places: &mut Places, id: i64, now_ms: i64, fresh: &impl Fn() -> OpenChunk) -> ChunkId {
    let entry = entry(id);
    places.settle(PLACE, entry.id, fresh, |chunk, batch| {
        batch.settle(&entry, Settlement::Done, now_ms);
        chunk
    })
}

fn active(turn: &TurnWork) -> Vec<i64> {
    let mut active: Vec<i64> = turn.active.iter().map(|it| it.0).collect();
    active.sort_unstable();
    active
}

#[test]
fn a_document_is_active_until_it_is_settled_and_again_for_the_tables_until_that_is_committed() {
    let (mut places, fresh) = (Places::default(), chunks());
    claim(&mut places, &[1, 2, 3]);
    assert_eq!(settle(&mut places, 1, 0, &fresh), ChunkId(1));
    places.put_back(PLACE, &entry(2), 0);
    assert!(!places.is_quiet(JOB) && !places.is_idle(Part(1)));
    let without_commit = places.begin_turn(PLACE, false, &fresh);
    assert_eq!(active(&without_commit), [1, 2, 3], "nothing of it is committed");
    places.end_turn(Part(1));
    let turn = places.begin_turn(PLACE, true, &fresh);
    let Some(Commit { chunk, batch }) = &turn.commit else { panic!("there is something") };
    assert_eq!((chunk.id, batch.len(), active(&turn)), (ChunkId(1), 2, vec![3]));
    assert_eq!((turn.open.id, turn.open.claim), (ChunkId(2), ChunkId(1)), "3 stays where it is");
    assert!(!turn.open.announces, "the batch before had no facts");
    assert!(!places.is_idle(Part(1)), "the turn is under way");
    places.end_turn(Part(1));
    assert_eq!(settle(&mut places, 3, 0, &fresh), ChunkId(2));
    let turn = places.begin_turn(PLACE, true, &fresh);
    assert_eq!((turn.open.id, turn.open.claim), (ChunkId(3), ChunkId(3)), "nothing stays");
    places.end_turn(Part(1));
    assert!(places.is_quiet(JOB) && places.is_idle(Part(1)) && places.is_all_committed());
}

#[test]
fn a_batch_is_committed_when_it_is_full_old_wanted_or_all_there_is() {
    let (mut places, fresh) = (Places::default(), chunks());
    assert!(!places.is_to_commit(PLACE, CommitTerms { is_starving: true, ..TERMS }), "no batch");
    settle(&mut places, 1, 1_000, &fresh);
    let young = CommitTerms { now_ms: 1_499, ..TERMS };
    assert!(!places.is_to_commit(PLACE, young));
    assert!(places.is_to_commit(PLACE, CommitTerms { now_ms: 1_500, ..TERMS }), "it is old");
    assert_eq!(places.next_commit_ms(500), Some(1_500));
    assert!(places.is_to_commit(PLACE, CommitTerms { is_starving: true, ..young }));
    let hungry = CommitTerms { is_hungry: true, ..young };
    assert!(!places.is_to_commit(PLACE, hungry), "it is less than half full");
    settle(&mut places, 2, 1_400, &fresh);
    assert!(places.is_to_commit(PLACE, hungry));
    assert!(!places.is_to_commit(PLACE, young));
    assert!(places.is_to_commit(PLACE, CommitTerms { documents_max: 2, ..young }), "it is full");
    places.shift(3_600_000);
    assert_eq!(places.next_commit_ms(500), Some(3_601_500), "the clock was set");
}

#[test]
fn a_turn_from_before_the_job_changed_does_not_say_that_nothing_is_to_be_swept() {
    let (mut places, fresh) = (Places::default(), chunks());
    let mut deleted = work(1);
    deleted.mode = JobMode::Sweep(Sweep::Delete);
    places.add(PLACE);
    assert_eq!(places.sweep(PLACE, &deleted), Some(Sweep::Delete));
    let before = places.begin_turn(PLACE, false, &fresh).question;
    places.on_released(JOB);
    places.on_swept(PLACE, before, &[]);
    assert_eq!(places.sweep(PLACE, &deleted), Some(Sweep::Delete), "it has not seen all");
    let since = places.begin_turn(PLACE, false, &fresh).question;
    places.on_swept(PLACE, since, &[]);
    assert_eq!(places.sweep(PLACE, &deleted), None);
    places.on_job_changed(JOB);
    assert_eq!(places.sweep(PLACE, &deleted), None, "what was swept stays so");
    places.on_run(JOB);
    assert_eq!(places.sweep(PLACE, &deleted), Some(Sweep::Delete), "another run has its own");
    let after = places.begin_turn(PLACE, false, &fresh).question;
    places.on_job_changed(JOB);
    places.on_swept(PLACE, after, &[]);
    assert_eq!(places.sweep(PLACE, &deleted), Some(Sweep::Delete), "it was asked of another");
}

#[test]
fn what_a_sweep_finds_is_active_and_there_may_be_more() {
    let (mut places, fresh) = (Places::default(), chunks());
    let crawl = work(1);
    places.add(PLACE);
    assert_eq!(places.sweep(PLACE, &crawl), None, "a crawl that goes well sweeps nothing");
    places.give_up(PLACE, 9_000);
    let left = Some(Sweep::Left { horizon_ms: 9_000 });
    assert_eq!(places.sweep(PLACE, &crawl), left);
    let question = places.begin_turn(PLACE, false, &fresh).question;
    places.end_turn(Part(1));
    places.on_swept(PLACE, question, &[QueueId(1)]);
    assert!(!places.is_quiet(JOB) && places.sweep(PLACE, &crawl) == left);
    settle(&mut places, 1, 0, &fresh);
    let question = places.begin_turn(PLACE, true, &fresh).question;
    places.on_swept(PLACE, question, &[]);
    assert_eq!(places.sweep(PLACE, &crawl), None);
    places.on_run(JOB);
    assert_eq!(places.sweep(PLACE, &crawl), None, "what was given up is a run's affair");
}

#[test]
fn what_waits_for_a_time_is_woken_settled_or_brought_nearer() {
    let mut places = Places::default();
    let look = |due_ms, scans_once| {
        let due_ms = Some(due_ms);
        DueLook { due_ms, scans_once, latest_ms: 50_000, now_ms: 1_000 }
    };
    assert_eq!(places.on_due_look(PLACE, look(2_000, false)), DueAction::Nothing);
    assert_eq!(places.due_ms(JOB), Some(2_000));
    assert_eq!(places.on_due_look(PLACE, look(90_000, false)), DueAction::Nothing);
    assert_eq!(places.on_due_look(PLACE, look(1_000, false)), DueAction::Wake);
    assert_eq!(places.on_due_look(PLACE, look(90_000, true)), DueAction::Unschedule);
    places.on_unscheduled(PLACE, true);
    assert_eq!(places.on_due_look(PLACE, look(90_000, true)), DueAction::PullIn);
    assert_eq!(places.on_due_look(PLACE, look(1_000, true)), DueAction::Wake);
    let end = TurnEnd { is_open: false, spread: Spread::Done, due_ms: Some(800) };
    places.on_turn_done(PLACE, end);
    assert_eq!(places.due_ms(JOB), Some(800), "a commit has found something earlier");
    places.on_turn_done(PLACE, TurnEnd { due_ms: None, ..end });
    assert_eq!(places.due_ms(JOB), Some(800));
}

#[test]
fn requests_of_a_job_that_is_over_are_written_before_its_place_is_forgotten() {
    let (mut places, fresh) = (Places::default(), chunks());
    let bin = BinId(3);
    let visit = Visit {
        bin,
        next_ms: 0,
        delay_ms: None,
        failures: 0,
        blocked_ms: None,
        blocked_by: None,
        fetches: 1,
        errors: 0,
        bytes: 0,
        busy_ms: 0,
    };
    places.book_visit(PLACE, visit);
    assert!(places.has_visits(Part(1)) && places.is_unsaved(HostKey { part: Part(1), bin }));
    assert!(!places.is_unsaved(HostKey { part: Part(2), bin }));
    claim(&mut places, &[1]);
    assert_eq!(places.with_leftovers(|_| true), [], "its commit will write them");
    settle(&mut places, 1, 0, &fresh);
    assert_eq!(places.with_leftovers(|_| true), []);
    places.begin_turn(PLACE, true, &fresh);
    places.end_turn(Part(1));
    places.forget_idle(|_| false);
    assert!(!places.has_job(JOB), "they went with the commit");
}

#[test]
fn a_part_that_is_lost_leaves_nothing_behind() {
    let (mut places, fresh) = (Places::default(), chunks());
    claim(&mut places, &[1, 2]);
    settle(&mut places, 1, 0, &fresh);
    let other = Place { part: Part(2), job: JOB };
    places.add(other);
    assert_eq!(places.forget_part(Part(1)), 1, "the other one is still asked for");
    assert_eq!(places.all(), [other]);
    assert!(places.is_quiet(JOB));
}
