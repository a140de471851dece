//! Sites that would keep a crawl from its end, or from other sites.

use crate::lifecycle::JobEvent;
use crate::worker::CrawlEnd;
use crate::worker::tests::world::{Site, World, pages, until};
use std::net::TcpListener;
use store::testing::both_databases;

#[test]
fn a_host_is_crawled_to_its_end_while_many_others_never_answer() {
    both_databases(|db| {
        // Nobody accepts there: connections are made, and nothing ever comes back.
        let silent: Vec<TcpListener> = (2..8)
            .map(|number| TcpListener::bind((format!("127.0.0.{number}"), 0)).unwrap())
            .collect();
        let site = Site::start(pages(20));
        let world = World::web(db, "", |spec| {
            let silent = silent.iter().map(|it| format!("http://{}/", it.local_addr().unwrap()));
            spec.seeds = silent.chain([site.url("/")]).collect();
        })?;
        world.tell(JobEvent::Start { minimal: false })?;
        let working = world.work_until(false)?;
        until("the other host is done", || world.titles().is_ok_and(|it| it.len() == 21));
        let given_up = world.texts("SELECT name FROM bins WHERE failures > 0")?;
        assert_eq!(given_up, [""; 0], "the silent ones are still waited for");
        drop(silent);
        working.stopper.stop();
        assert_eq!(working.join()?, CrawlEnd::Stopped);
        Ok(())
    });
}

#[test]
fn a_chain_of_redirects_is_followed_ten_times_and_then_cut() {
    both_databases(|db| {
        let site = Site::start(|path| match path.strip_prefix("/r") {
            Some(number) if number != "obots.txt" => {
                let number: usize = number.parse().unwrap();
                (302, format!("/r{}", number + 1))
            }
            _ => (404, String::new()),
        });
        let world = World::web(db, &site.url("/r0"), |_| {})?;
        world.run()?;
        let asked: Vec<usize> = (0..=12).map(|number| site.count(&format!("/r{number}"))).collect();
        assert_eq!(asked, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
        let cut = world.texts("SELECT docid || ' ' || reason FROM queue WHERE state = 'cut'")?;
        assert_eq!(cut, [format!("{} redirects", site.url("/r11"))]);
        Ok(())
    });
}

#[test]
fn redirects_in_a_circle_are_asked_for_once() {
    both_databases(|db| {
        let site = Site::start(|path| match path {
            "/a" => (301, "/b".to_owned()),
            "/b" => (302, "/c".to_owned()),
            "/c" => (308, "/a".to_owned()),
            _ => (404, String::new()),
        });
        let world = World::web(db, &site.url("/a"), |_| {})?;
        world.run()?;
        assert_eq!(["/a", "/b", "/c"].map(|path| site.count(path)), [1, 1, 1]);
        Ok(())
    });
}
