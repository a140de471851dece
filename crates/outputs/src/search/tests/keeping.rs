//! The index kept: damaged files, comparisons with what is committed, and making it anew.

use super::world::{Doc, World};
use crate::search::schema::DocumentKey;
use page::ids::DocHash;
use std::sync::{Arc, Mutex};
use store::ids::ConnectionId;
use store::panics::Faults;
use store::testing::both_databases;

fn numbered(numbers: std::ops::Range<u8>, version: i64) -> Vec<Doc> {
    numbers.map(|at| Doc::numbered(at, version, true)).collect()
}

fn key_of(number: u8) -> DocumentKey {
    let hash = DocHash::of(&format!("https://example.com/{number}"));
    DocumentKey { connection: ConnectionId(1), hash }
}

/// Turns one bit of a file over, in the middle of it.
fn damage(path: &std::path::Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let other = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(9);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(other).unwrap();
}

#[test]
fn a_search_index_with_a_flipped_bit_says_which_file_it_is_and_what_to_do() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            world.commit(&numbered(0..8, 1))?;
            world.follow()?;
            assert_eq!(world.damaged()?, [""; 0]);
            for file in world.published_files() {
                let whole = std::fs::read(&file).unwrap();
                damage(&file);
                let name = file.file_name().unwrap().to_str().unwrap().to_owned();
                world.serve_anew();
                let told = world.refreshed().expect_err("it is damaged").to_string();
                let said = [name.as_str(), "shard of part", "checksum", "driftline search rebuild"];
                for said in said {
                    assert!(told.contains(said), "{said}: {told}");
                }
                assert_eq!(world.damaged()?.len(), 1, "verify reads all of them");
                std::fs::write(&file, whole).unwrap();
            }
            world.serve_anew();
            world.check()
        });
    }
}

#[test]
fn a_question_over_which_the_search_library_panics_is_an_error_that_names_the_damage() {
    both_databases(|db| {
        let mut world = World::new(db, false)?;
        world.commit(&numbered(0..8, 1))?;
        world.follow()?;
        world.check()?;
        let told = world.panics();
        assert!(told.contains("over this question") && told.contains("out of range"), "{told}");
        let told = world.finds_damage();
        assert!(told.contains("odd bytes"), "no file is damaged: {told}");
        world.commit(&numbered(0..1, 2))?;
        world.follow()?;
        world.check()?;
        // Damage behind the back of a process that has opened the file.
        let file = world.published_files().remove(0);
        damage(&file);
        let told = world.panics();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(told.contains(name) && told.contains("driftline search rebuild"), "{told}");
        Ok(())
    });
}

#[test]
fn whoever_writes_the_index_does_not_go_on_from_a_damaged_file() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&numbered(0..8, 1))?;
        world.follow()?;
        damage(&world.published_files()[0]);
        world.forget_checks();
        world.crash(false)?;
        world.commit(&numbered(0..2, 2))?;
        let told = world.follow().expect_err("it is damaged").to_string();
        assert!(told.contains("checksum") && told.contains("driftline search rebuild"), "{told}");
        assert_eq!(world.rebuild()?, 8);
        world.serve_anew();
        world.check()
    });
}

#[test]
fn an_index_that_is_wrong_is_told_so_and_made_anew() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            world.commit(&numbered(0..8, 1))?;
            world.commit(&numbered(1..2, 2))?;
            world.follow()?;
            let (verified, told) = world.verified()?;
            assert_eq!((verified.documents, told), (8, vec![]));
            world.publish_with(0, |writer| writer.delete(key_of(0)))?;
            world.tamper("UPDATE documents SET chunk = chunk - 1 WHERE docid LIKE '%/1'")?;
            world.tamper("DELETE FROM documents WHERE docid LIKE '%/2'")?;
            world.tamper("UPDATE documents SET removed_ms = 7 WHERE docid LIKE '%/3'")?;
            let (verified, told) = world.verified()?;
            let said = [
                "https://example.com/0 is not in the index",
                "https://example.com/1 is in the index in an older version",
                "https://example.com/2 is in the index, and is not there any more",
                "https://example.com/3 is in the index, and is not there any more",
            ];
            assert_eq!(told, said);
            assert_eq!((verified.differences, verified.waiting), (4, 0));
            world.tamper("UPDATE documents SET chunk = chunk + 1 WHERE docid LIKE '%/1'")?;
            assert_eq!(world.rebuild()?, 6);
            assert_eq!(world.verified()?.1, [""; 0]);
            Ok(())
        });
    }
}

#[test]
fn what_the_index_has_still_to_follow_is_lag_and_no_damage() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            world.commit(&numbered(0..8, 1))?;
            let (verified, told) = world.verified()?;
            assert_eq!((verified.waiting, verified.behind_chunks), (8, 6), "it has nothing yet");
            assert_eq!(told, [""; 0]);
            world.follow()?;
            // The process is killed before the index has followed these.
            let gone = Doc::numbered(0, 2, false);
            world.commit(&[Doc::numbered(20, 2, true), Doc::numbered(2, 2, true), gone])?;
            world.crash(false)?;
            let (verified, told) = world.fully_verified()?;
            assert_eq!((verified.differences, told), (0, vec![]));
            assert_eq!((verified.waiting, verified.behind_chunks), (3, 2), "{verified:?}");
            assert_eq!((verified.documents, verified.compared), (6, 6));
            world.follow()?;
            let (verified, told) = world.fully_verified()?;
            assert_eq!((verified.waiting, verified.behind_chunks, told), (0, 0, vec![]));
            assert_eq!((verified.documents, verified.compared), (8, 8));
            world.check()
        });
    }
}

#[test]
fn a_full_comparison_finds_another_title_than_the_facts_have() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&numbered(0..8, 1))?;
        world.follow()?;
        assert_eq!(world.fully_verified()?.1, [""; 0]);
        world.retitle(3, "Another title")?;
        let (verified, told) = world.verified()?;
        assert_eq!((verified.differences, told), (0, vec![]), "keys and chunks are right");
        let (verified, told) = world.fully_verified()?;
        let said = "https://example.com/3: the index has another title than its facts";
        assert_eq!((verified.differences, told), (1, vec![said.to_owned()]));
        Ok(())
    });
}

#[test]
fn searches_find_everything_while_the_index_is_made_anew() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            world.commit(&numbered(0..12, 1))?;
            world.follow()?;
            let asks = world.asker();
            let found: Arc<Mutex<Vec<usize>>> = Arc::default();
            let told = found.clone();
            let faults = Faults::new(move |_, _| {
                told.lock().unwrap().push(asks("common").len());
            });
            assert_eq!(world.rebuild_with(faults)?, 12);
            assert_eq!(*found.lock().unwrap(), [12; 12], "at every document on the way");
            world.check()?;
            assert_eq!(world.left_overs()?, (0, 0));
            // Whoever follows goes on from there.
            world.commit(&numbered(10..14, 2))?;
            world.follow()?;
            world.check()
        });
    }
}

#[test]
fn a_rebuild_that_is_killed_leaves_the_old_index_and_no_files() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            world.commit(&numbered(0..12, 1))?;
            world.follow()?;
            let before = world.versions()?;
            let killed = world.while_refused(|world| Ok(world.rebuild().is_err()))?;
            assert!(killed, "the store takes nothing");
            let (beside, staged) = world.left_overs()?;
            assert!(beside > 0 && staged > 0, "{beside} directories, {staged} objects");
            assert_eq!(world.versions()?, before);
            world.check()?;
            // What was committed meanwhile is followed from where the old index was.
            world.commit(&numbered(8..14, 2))?;
            world.crash(false)?;
            world.follow()?;
            assert_eq!(world.left_overs()?, (0, 0));
            world.check()?;
            assert_eq!(world.verified()?.1, [""; 0]);
            assert_eq!(world.rebuild()?, 14);
            world.check()
        });
    }
}

#[test]
fn an_index_of_an_older_program_answers_until_the_new_one_has_everything() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            world.commit(&numbered(0..12, 1))?;
            world.follow()?;
            world.tamper(
                "UPDATE shards SET files = REPLACE(files, '\"make\":\"', '\"make\":\"0')",
            )?;
            world.commit(&numbered(12..13, 1))?;
            let asks = world.asker();
            let least = Arc::new(Mutex::new(usize::MAX));
            let told = least.clone();
            let faults = Faults::new(move |_, _| {
                let mut least = told.lock().unwrap();
                *least = asks("common").len().min(*least);
            });
            world.follow_with(faults)?;
            assert_eq!(*least.lock().unwrap(), 12, "nothing is missing on the way");
            world.check()
        });
    }
}

#[test]
fn a_run_in_which_nothing_changed_indexes_nothing_and_publishes_nothing() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut world = World::new(db, spans_parts)?;
            let documents = numbered(0..12, 1);
            world.commit(&documents)?;
            world.follow()?;
            let (versions, files) = (world.versions()?, world.published_files());
            for _ in 0..3 {
                world.look_again(&documents)?;
                world.follow()?;
            }
            assert_eq!(world.versions()?, versions, "no version is another one");
            assert_eq!(world.published_files(), files, "no file was written");
            let (verified, told) = world.verified()?;
            assert_eq!((verified.behind_chunks, told), (0, vec![]), "and it is up to date");
            // Neither does whoever takes over read them again.
            world.crash(true)?;
            assert!(world.is_idle()?, "the place where it was is known");
            world.check()
        });
    }
}

#[test]
fn a_run_that_has_ended_leaves_one_version_of_the_index() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&numbered(0..40, 1))?;
        world.follow()?;
        // A third of a segment is deleted each time, so each commit begins a merge.
        for version in 2..=12 {
            world.commit(&numbered(0..14, version))?;
            world.follow()?;
            world.end()?;
            let published = world.published_files().len();
            let (objects, written) = world.segment_files();
            assert_eq!(objects.len(), published, "objects: {objects:?}");
            assert_eq!(written.len(), published, "where it is written: {written:?}");
        }
        world.check()
    });
}

#[test]
fn documents_whose_bytes_are_stored_later_are_not_lost_when_the_index_is_made_anew() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        let documents = numbered(0..4, 1);
        world.commit(&documents)?;
        world.follow()?;
        world.store_again(&documents)?;
        world.follow()?;
        assert_eq!(world.verified()?.1, [""; 0]);
        assert_eq!(world.rebuild()?, 4);
        world.check()
    });
}

#[test]
fn a_document_that_changes_while_words_of_links_are_taken_is_found_by_its_new_words() {
    both_databases(|db| {
        let mut world = World::with_links(db)?;
        // More than a step of a sweep writes.
        let doc = |number: usize, words: &str| {
            let text = format!("common text and {words}{number}");
            Doc::new(&format!("https://example.com/{number:04}"), "A title", &text)
        };
        let documents: Vec<Doc> = (0..1_050).map(|number| doc(number, "old")).collect();
        world.commit(&documents)?;
        world.follow()?;
        world.link_to(&documents)?;
        assert!(world.tend()?, "their words are taken in more than one step");
        let changed: Vec<Doc> = (1_040..1_050).map(|number| doc(number, "new")).collect();
        world.commit(&changed)?;
        world.follow()?;
        while world.tend()? {}
        assert_eq!(world.found("new1045"), ["https://example.com/1045"]);
        assert_eq!(world.found("inurl:1045 here"), ["https://example.com/1045"]);
        assert_eq!(world.fully_verified()?.1, [""; 0]);
        Ok(())
    });
}
