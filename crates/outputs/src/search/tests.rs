//! The index against what it should have: after any sequence of changes, crashes and
//! merges, every document is found by the words of its newest version, and by no others.

mod asking;
mod keeping;
mod paging;
mod serving;
mod world;

use page::facts::{Link, LinkKind, Rel};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use store::ids::{CommitNumber, Part};
use store::testing::both_databases;
use store::{Db, Result};
use world::{Doc, World};

/// What happens to documents and to whoever indexes them.
#[derive(Debug, Clone)]
enum Step {
    /// Documents are written: each its number, and whether it is there.
    Commit(Vec<(u8, bool)>),
    /// The index follows.
    Follow,
    /// The process dies, and what it had beside the objects may be lost.
    Crash { loses_files: bool },
    /// The process dies behind a commit of its own that nobody was told of.
    CrashUnpublished,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let commit = prop::collection::vec((0u8..12, prop::bool::weighted(0.8)), 1..6);
    let step = prop_oneof![
        4 => commit.prop_map(Step::Commit),
        3 => Just(Step::Follow),
        1 => any::<bool>().prop_map(|loses_files| Step::Crash { loses_files }),
        1 => Just(Step::CrashUnpublished),
    ];
    prop::collection::vec(step, 1..14)
}

fn holds(db: &Db, steps: &[Step], spans_parts: bool) -> Result<()> {
    let mut world = World::new(db, spans_parts)?;
    let mut version = 0;
    for step in steps {
        match step {
            Step::Commit(documents) => {
                version += 1;
                let documents: Vec<Doc> = documents
                    .iter()
                    .map(|(number, is_there)| Doc::numbered(*number, version, *is_there))
                    .collect();
                world.commit(&documents)?;
            }
            Step::Follow => world.follow()?,
            Step::Crash { loses_files } => world.crash(*loses_files)?,
            Step::CrashUnpublished => world.crash_unpublished()?,
        }
    }
    world.follow()?;
    world.check()?;
    let (verified, told) = world.verified()?;
    assert_eq!(told, [""; 0], "{verified:?}");
    assert_eq!(verified.documents, verified.indexed);
    Ok(())
}

#[test]
fn every_document_is_found_by_its_newest_version_whatever_happens() {
    for spans_parts in [true, false] {
        both_databases(|db| {
            let mut runner = TestRunner::new(Config { cases: 12, ..Config::default() });
            let outcome = runner.run(&steps(), |steps| {
                world::emptied(db).map_err(|error| TestCaseError::fail(error.to_string()))?;
                holds(db, &steps, spans_parts)
                    .map_err(|error| TestCaseError::fail(error.to_string()))
            });
            outcome.unwrap_or_else(|failure| panic!("{failure}"));
            Ok(())
        });
    }
}

#[test]
fn documents_of_a_job_that_wants_no_search_are_not_found_from_then_on() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        let numbered = |at, version| Doc::numbered(at, version, true);
        world.commit(&[numbered(1, 1), numbered(2, 1)])?;
        world.follow()?;
        assert_eq!(world.found("common").len(), 2);
        world.says(false)?;
        world.commit(&[numbered(2, 2), numbered(3, 2)])?;
        world.follow()?;
        assert_eq!(world.found("common"), ["https://example.com/1"], "as it was indexed");
        let (_, told) = world.verified()?;
        assert_eq!(told, ["https://example.com/1 is in the index, and its job wants none"]);
        assert_eq!(world.rebuild()?, 0);
        assert_eq!(world.verified()?.1, [""; 0]);
        world.says(true)?;
        assert_eq!(world.verified()?.0.differences, 3, "it wants them again");
        assert_eq!(world.rebuild()?, 3);
        world.check()
    });
}

#[test]
fn a_job_without_search_costs_the_search_index_nothing() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        world.says(false)?;
        for _ in 0..50 {
            world.commit_unreadable(Part(0))?;
        }
        world.follow()?;
        assert_eq!(
            world.progress(Part(0))?,
            (CommitNumber(50), CommitNumber(50)),
            "it is up to date"
        );
        assert_eq!(world.published()?, Some(1), "there is one, which is empty");
        // Another process begins where that one ended.
        world.crash(true)?;
        world.commit_unreadable(Part(0))?;
        world.follow()?;
        assert_eq!(world.progress(Part(0))?, (CommitNumber(51), CommitNumber(51)));
        world.end()?;
        assert_eq!(world.published()?, Some(1), "no version is made for it");
        // What is wanted is found, and then what is not is still not read.
        world.says(true)?;
        world.commit(&[Doc::numbered(0, 1, true)])?;
        world.follow()?;
        assert_eq!(world.published()?, Some(2));
        world.says(false)?;
        for _ in 0..50 {
            world.commit_unreadable(Part(0))?;
        }
        world.follow()?;
        world.end()?;
        assert_eq!(world.progress(Part(0))?, (CommitNumber(102), CommitNumber(102)));
        assert_eq!(world.published()?, Some(2), "no version is made for it");
        assert_eq!(world.found("common"), ["https://example.com/0"]);
        // What it removes goes.
        world.commit(&[Doc::numbered(0, 2, false)])?;
        world.follow()?;
        assert_eq!(world.found("common"), [""; 0]);
        Ok(())
    });
}

#[test]
fn a_sitemap_is_no_hit() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        let mut sitemap = Doc::new("https://example.com/sitemap.xml", "", "");
        sitemap.facts.media_type = "application/xml".into();
        sitemap.facts.links = vec![Link {
            url: "https://example.com/1".into(),
            anchor: String::new(),
            kind: LinkKind::Sitemap,
            rel: Rel::default(),
        }];
        world.commit(&[Doc::numbered(1, 1, true), sitemap])?;
        world.follow()?;
        assert_eq!(world.found("site:example.com"), ["https://example.com/1"]);
        assert_eq!(world.verified()?.1, [""; 0], "it is not missing");
        Ok(())
    });
}

#[test]
fn a_store_that_refuses_files_loses_nothing() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        world.commit(&[Doc::numbered(1, 1, true)])?;
        world.follow()?;
        let refused = world.while_refused(|world| {
            world.commit(&[Doc::numbered(2, 2, true), Doc::numbered(1, 2, false)])?;
            let refused = world.follow().expect_err("the store takes nothing").to_string();
            assert_eq!(world.found("unique1v1"), ["https://example.com/1"], "it answers still");
            Ok(refused)
        })?;
        assert!(refused.contains("shards"), "it says where: {refused}");
        world.follow()?;
        world.check()
    });
}

#[test]
fn merges_lose_nothing_and_what_nobody_needs_is_collected() {
    both_databases(|db| {
        let mut world = World::new(db, true)?;
        for version in 1..=30 {
            let documents: Vec<Doc> = (0..6u8)
                .map(|at| Doc::numbered(at + (version % 7) * 6, i64::from(version), true))
                .collect();
            world.commit(&documents)?;
            world.follow()?;
        }
        world.check()?;
        assert!(world.segments() < 20, "{} segments: none were merged", world.segments());
        Ok(())
    });
}
