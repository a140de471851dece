//! Jobs that start, wait and go on by their schedules.

use std::time::Duration;

use ::crawl::conduct;
use ::crawl::lifecycle::JobEvent;
use ::crawl::schedule;
use store::ids::JobId;
use store::tables::jobs::{self, StartMethod};
use store::tables::{job_states, schedules};

use super::{Home, Running, Summary, until};
use crate::site::Site;

const MINUTE_MS: i64 = 60_000;

/// Gives a job the one schedule, counted from an hour ago.
fn schedule(home: &Home, method: StartMethod, text: &str) -> JobId {
    let schedule = schedule::parse(text).unwrap();
    home.rows()
        .write(move |tx| {
            let mut job = jobs::find(tx, "site")?.expect("it was crawled");
            job.start = method;
            jobs::save(tx, &job, 1)?;
            schedules::replace(tx, job.id, std::slice::from_ref(&schedule), 1)?;
            let hour_ago = store::clock::now_ms() - 60 * MINUTE_MS;
            tx.execute("UPDATE job_states SET lasttime = $1", &[hour_ago.into()])?;
            Ok(job.id)
        })
        .unwrap()
}

fn name(home: &Home, job: JobId) -> String {
    home.rows().read(move |tx| job_states::state(tx, job)).unwrap().name()
}

#[test]
fn a_job_runs_when_its_window_is_open_and_once_in_it() {
    let (home, site) = (Home::directory(), Site::with_pages(20).serve());
    home.crawled(&[&site.seed()]);
    let job = schedule(&home, StartMethod::WindowBegin, "hours=* minutes=* window=10m");
    let work = Running::start(home.command(&["work", "--lease", "1"]));
    until(&site, "a run by schedule ends", || {
        let state = home.rows().read(move |tx| job_states::state(tx, job)).unwrap();
        (state.run.0, state.name().as_str()) == (2, "INACTIVE")
    });
    work.signal("INT");
    assert_eq!(work.ended().status.code(), Some(0));
}

/// The window of a slow crawl ends while it runs: it waits, can be told to pause, and goes
/// on when another window opens.
#[test]
fn a_job_waits_when_its_window_is_over_and_goes_on_in_the_next() {
    let (home, site) = (Home::directory(), Site::with_pages(60).serve());
    let crawl = Running::start(home.crawl(&[&site.seed(), "--delay", "0.1"]));
    until(&site, "it runs", || site.web().visits_count() > 5);
    crawl.signal("INT");
    assert_eq!(Summary::printed(&crawl.ended()).0["ended"], "stopped");
    // A window that ends in about two seconds.
    let now_ms = store::clock::now_ms();
    let minute = now_ms / MINUTE_MS % 60;
    let window_s = now_ms % MINUTE_MS / 1_000 + 3;
    let text = format!("hours=* minutes={minute} window={window_s}s");
    let job = schedule(&home, StartMethod::WindowInside, &text);
    let end_ms = now_ms - now_ms % MINUTE_MS + window_s * 1_000;
    home.rows()
        .write(move |tx| {
            tx.execute("UPDATE job_states SET windowend = $1", &[end_ms.into()])?;
            store::testing::sum_rows(tx)
        })
        .unwrap();
    let work = Running::start(home.command(&["work", "--lease", "1"]));
    until(&site, "it waits", || name(&home, job) == "ACTIVEWAIT");
    let seen = site.web().visits_count();
    assert!(seen < 60, "it was held back");
    site.web().wait_for_visits(seen + 1, Duration::from_millis(500));
    assert_eq!(site.web().visits_count(), seen, "nothing is asked for outside a window");
    work.signal("INT");
    assert_eq!(work.ended().status.code(), Some(0));
    home.rows()
        .write(move |tx| {
            conduct::change(tx, job, &JobEvent::WindowOpens { window_end_ms: None }, 1).map(|_| ())
        })
        .unwrap();
    let work = Running::start(home.command(&["work", "--until-idle", "--lease", "1"]));
    until(&site, "it goes on", || site.web().visits_count() > seen);
    assert_eq!(work.ended().status.code(), Some(0));
    assert_eq!(site.unfetched(&site.traffic()), Vec::<String>::new());
}
