//! A bug that one page meets is that page's failure: the run goes on to its end.

use crate::worker::tests::world::{Site, World, pages};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::panics::{FaultPoint, Faults};
use store::testing::both_databases;

const FAILED: &str = "SELECT docid || ' ' || reason || ' ' || detail FROM queue WHERE state = 'failed' ORDER BY docid";

/// Panics at a point for every subject that ends like this.
fn panics_at(point: FaultPoint, end: &'static str) -> Faults {
    Faults::new(move |at, subject| {
        if at == point && subject.ends_with(end) {
            panic!("a bug at {subject}");
        }
    })
}

#[test]
fn a_page_that_panics_while_it_is_read_fails_and_the_run_goes_on() {
    both_databases(|db| {
        let site = Site::start(pages(20));
        let mut world = World::web(db, &site.url("/"), |_| {})?;
        world.faults = panics_at(FaultPoint::ReadPage, "/p7");
        let counted = world.run()?;
        let failed = world.texts(FAILED)?;
        let (url, bug) = (site.url("/p7"), "internal error: a bug at");
        assert_eq!(failed, [format!("{url} internal-error {bug} {url}")]);
        assert_eq!(counted.errors["internal-error"].example, url);
        assert_eq!(world.titles()?.len(), 20, "the home page and all others");
        // The next run has another look, and the program may have been mended meanwhile.
        world.faults = Faults::default();
        world.run()?;
        assert_eq!(world.texts(FAILED)?, [""; 0]);
        assert_eq!(world.titles()?.len(), 21);
        Ok(())
    });
}

#[test]
fn a_robots_txt_that_panics_closes_its_origin_and_the_run_ends() {
    both_databases(|db| {
        let site = Site::start(pages(3));
        let mut world =
            World::web(db, &site.url("/"), |spec| (spec.retries, spec.retry_ms) = (1, 1))?;
        world.faults = panics_at(FaultPoint::AskRobots, "");
        world.run()?;
        assert_eq!(world.titles()?, [""; 0]);
        assert_eq!(world.texts("SELECT docid FROM queue WHERE state = 'failed'")?, [site.url("/")]);
        Ok(())
    });
}

#[test]
fn a_document_on_which_its_connector_panics_fails_and_the_run_goes_on() {
    both_databases(|db| {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.txt", "b.txt", "c.txt"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let mut world = World::files(db, folder.path())?;
        world.faults = panics_at(FaultPoint::LookAtDocument, "b.txt");
        world.run()?;
        let failed = world.texts(FAILED)?;
        assert!(failed.len() == 1 && failed[0].contains("b.txt internal-error"), "{failed:?}");
        assert_eq!(world.titles()?.len(), 2);
        Ok(())
    });
}

#[test]
fn a_page_that_panics_when_it_is_committed_fails_alone() {
    both_databases(|db| {
        let site = Site::start(pages(40));
        let mut world = World::web(db, &site.url("/"), |_| {})?;
        world.faults = panics_at(FaultPoint::CommitDocument, "/p7");
        world.run()?;
        let failed = world.texts(FAILED)?;
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(
            failed[0].starts_with(&format!("{} internal-error", site.url("/p7"))),
            "{failed:?}"
        );
        assert_eq!(world.titles()?.len(), 40);
        Ok(())
    });
}

#[test]
fn a_commit_that_panics_once_is_repeated_and_loses_nothing() {
    both_databases(|db| {
        let site = Site::start(pages(20));
        let mut world = World::web(db, &site.url("/"), |_| {})?;
        let times = Arc::new(AtomicUsize::new(0));
        let counted = times.clone();
        world.faults = Faults::new(move |at, _| {
            let is_here = at == FaultPoint::CommitDocument || at == FaultPoint::Claim;
            if is_here && counted.fetch_add(1, Ordering::SeqCst).is_multiple_of(23) {
                panic!("now and then");
            }
        });
        world.run()?;
        assert!(times.load(Ordering::SeqCst) > 23);
        assert_eq!(world.texts(FAILED)?, [""; 0]);
        assert_eq!(world.titles()?.len(), 21);
        Ok(())
    });
}

#[test]
fn a_job_whose_start_panics_is_tried_again_and_then_says_why_it_ended() {
    both_databases(|db| {
        let site = Site::start(pages(1));
        let mut world =
            World::web(db, &site.url("/"), |spec| (spec.retries, spec.retry_ms) = (2, 1))?;
        world.faults = panics_at(FaultPoint::StartJob, "");
        world.tell(crate::lifecycle::JobEvent::Start { minimal: false })?;
        world.work()?.join()?;
        let state = world.state()?;
        assert_eq!(state.name(), "INACTIVE");
        assert!(state.error.is_some_and(|it| it.contains("internal error: a bug")));
        Ok(())
    });
}
