//! Runs that could not end: answers that come after an abort, clocks that were wrong.

use crate::lifecycle::JobEvent;
use crate::worker::tests::world::{Site, World, pages, until};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use store::clock;
use store::testing::both_databases;

#[test]
fn a_robots_txt_that_is_answered_after_an_abort_is_booked_and_keeps_nobody_from_the_end() {
    both_databases(|db| {
        let (release, released) = channel::<()>();
        let (released, answers) = (Arc::new(Mutex::new(released)), pages(3));
        let site = Site::start(move |path| {
            if path == "/robots.txt" {
                // Answered when the test says so, or is over.
                let _ = released.lock().unwrap().recv();
            }
            answers(path)
        });
        let world = World::web(db, &site.url("/"), |_| {})?;
        world.tell(JobEvent::Start { minimal: false })?;
        let working = world.work_until(false)?;
        until("robots.txt is asked for", || site.count("/robots.txt") == 1);
        world.tell(JobEvent::Abort)?;
        working.stopper.nudge();
        until("the job is at rest", || world.state().is_ok_and(|it| it.name() == "INACTIVE"));
        drop(release);
        let asked = "SELECT name FROM bins WHERE fetches = 1";
        until("the request is booked", || world.texts(asked).is_ok_and(|it| it.len() == 1));
        working.stopper.stop();
        working.join()?;
        // And a worker that ends when all is done ends.
        world.work()?.join()?;
        Ok(())
    });
}

#[test]
fn a_host_whose_next_time_was_written_by_a_clock_two_hours_ahead_is_asked_after_its_delay() {
    both_databases(|db| {
        let site = Site::start(pages(5));
        let world = World::web(db, &site.url("/"), |spec| spec.delay_ms = 5)?;
        world.run()?;
        let ahead_ms = clock::now_ms() + 7_200_000;
        db.write(move |tx| tx.execute("UPDATE bins SET next_ms = $1", &[ahead_ms.into()]))?;
        let counted = world.run()?;
        assert_eq!((counted.failed(), counted.unchanged), (0, 6));
        Ok(())
    });
}
