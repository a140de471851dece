//! Every cause is made in a database, as a crawl makes it, and asked about.
//!
//! A cause that no case here leads to fails the test: there is an answer for every
//! reason, and each was seen.

mod documents;
mod spelling;
mod world;

use self::documents::{MANY, seed_cut, seed_settled, seed_under_way};
use self::world::{IDLE, PARTS, SITE, World, spec, url};
use super::cause::Cause;
use super::{Why, WhyRequest};
use crate::verbs::Verb;
use crate::verbs::context::VerbContext;
use crawl::definitions::WebSpec;
use serde_json::Value as Json;
use std::cell::Cell;
use std::collections::BTreeSet;
use store::clock;
use store::ids::NodeId;
use store::tables::settings;
use store::testing::both_databases;

/// A URL (a path is of the site), the job it is asked in, the cause, and words of the answer.
type Case = (&'static str, Option<&'static str>, Cause, &'static str);

const CASES: &[Case] = &[
    ("ftp://site.example/", None, Cause::NotWeb, "scheme is neither"),
    ("http://new.example/", Some("new"), Cause::NotStarted, "has not been run"),
    ("http://elsewhere.example/", Some("site"), Cause::OutOfScope, "stays within site.example"),
    ("http://picky.example/x", Some("picky"), Cause::NotIncluded, "no --include"),
    ("private/unseen", Some("site"), Cause::Excluded, "--exclude \"/private/\""),
    ("private/known", None, Cause::Excluded, "--exclude \"/private/\""),
    ("hops", None, Cause::Hops, "more than 3 links"),
    ("a/a/a/a", Some("site"), Cause::Trap, "repeats itself"),
    ("trap", None, Cause::Trap, "500 pages of /trap/*"),
    ("cal/2031", None, Cause::Trap, "because it looks like a crawler trap: 500 pages like it."),
    ("cal/2032", None, Cause::Trap, "640 pages like site.example/cal/# were fetched"),
    ("maze/x1", None, Cause::Trap, "too many pages like it"),
    ("index/2", None, Cause::Trap, "<sitemaps read> were fetched, and with 2.0 GB"),
    ("index/5", None, Cause::Trap, "more than 3 deep: 640 lists"),
    (MANY, None, Cause::Trap, "link to it 3 times: it may have host_pages"),
    ("unseen", Some("site"), Cause::Unseen, "no page, sitemap or seed"),
    ("limit", None, Cause::Limit, "limited to 5 documents"),
    ("lifted", None, Cause::Lifted, "the current settings allow it"),
    (
        "forbidden",
        None,
        Cause::Robots,
        "Line 2 of its robots.txt forbids it: \"Disallow: /forbidden\"",
    ),
    ("http://closed.site.example/", None, Cause::RobotsUnreachable, "status 503"),
    ("robots-wait", None, Cause::RobotsUnreachable, "nothing on the host"),
    ("redirects", None, Cause::Redirects, "too many redirects"),
    ("noindex", None, Cause::Noindex, "noindex"),
    ("nofollow", None, Cause::Nofollow, "nofollow"),
    ("cut", None, Cause::Cut, "it is Tuesday"),
    ("retry", None, Cause::Retry, "status 503. It is retried in 59 min (2 tries left)"),
    ("confirming", None, Cause::Confirming, "Until then it is kept"),
    ("scheduled", None, Cause::Scheduled, "checked again in 59 min"),
    ("ready", None, Cause::Ready, "is queued"),
    ("http://slow.site.example/", None, Cause::HostDelay, "slow.site.example is in 59 min"),
    ("http://blocked.site.example/", None, Cause::HostBlocked, "could not be resolved"),
    ("http://stopped.site.example/", None, Cause::Throttled, "\"^stopped\" of connection web"),
    ("http://stopped.site.example/left", None, Cause::Throttled, "allows no documents"),
    ("http://idle.example/x", None, Cause::NoCrawl, "no process is crawling"),
    ("event", None, Cause::Event, "\"login\""),
    ("active", None, Cause::Active, "fetched by crawler-1"),
    ("stale", None, Cause::Stale, "lost its lease"),
    ("failed", None, Cause::Failed, "status 500"),
    ("refused", None, Cause::Refused, "not on the public internet"),
    ("insecure", None, Cause::Insecure, "has expired"),
    ("gone", None, Cause::Gone, "does not exist"),
    ("stored", None, Cause::Stored, "last fetched 1 h ago, in run 2"),
    (
        "unread",
        None,
        Cause::Unread,
        "its text could not be extracted: it is protected by a password",
    ),
    ("unchanged", None, Cause::Unchanged, "found it unchanged"),
    ("recheck", None, Cause::Recheck, "in run 1; run 2 is in progress"),
    ("copy", None, Cause::Duplicate, "copy of http://site.example/stored"),
    ("moved", None, Cause::Redirect, "through 2 redirects to http://site.example/stored"),
    ("led-away", None, Cause::Redirect, "outside the job's scope"),
    ("circle", None, Cause::RedirectLoop, "loop: http://site.example/circle -> http"),
    ("a-to-b", None, Cause::RedirectLoop, "/a-to-b -> http://site.example/b-to-a -> http"),
    ("removed", None, Cause::Removed, "no longer exists"),
    ("forgotten", Some("site"), Cause::Removed, "no page links to it"),
    ("done", None, Cause::Done, "nothing is stored for it"),
];

#[test]
fn every_cause_is_answered_by_its_code_and_its_words() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let mut seen = BTreeSet::new();
        let empty = World { db, node: NodeId(1), ids: Cell::new(0), now_ms: clock::now_ms() };
        assert_eq!(empty.ask("http://a.example/", None)["code"], Cause::NoJobs.code());
        seen.insert(Cause::NoJobs);
        let world = World::make(db)?;
        seed_cut(&world)?;
        seed_under_way(&world)?;
        seed_settled(&world)?;
        for (path, job, cause, words) in CASES {
            let url = if path.contains("://") { (*path).to_owned() } else { url(path) };
            let found = world.ask(&url, *job);
            assert_eq!(found["code"], cause.code(), "{url}: {found}");
            let sentence = found["sentence"].as_str().unwrap();
            assert!(sentence.contains(words), "{url}: {words:?} is not in {sentence:?}");
            seen.insert(*cause);
        }
        assert_eq!(world.ask(&url("a-to-b"), None)["command"], Json::Null, "nothing to ask next");
        let raised = "driftline crawl --job site --host-pages 1280";
        assert_eq!(world.ask(MANY, None)["command"], raised);
        let more = WebSpec { host_pages: 400, ..spec("http://site.example/") };
        world.job(SITE, "site", &more, 0)?;
        assert_eq!(
            world.ask(MANY, None)["code"],
            Cause::Lifted.code(),
            "400, and 100 for each link"
        );
        let next = world.ask(&url("given-up"), None)["next"].clone();
        assert_eq!(next, "Run 2 is in progress and will check it again.");
        let untold: Vec<_> = Cause::ALL.iter().filter(|cause| !seen.contains(cause)).collect();
        assert!(untold.is_empty(), "no case leads to {untold:?}");
        Ok(())
    });
}

#[test]
fn what_is_out_of_reach_is_offered_only_what_lets_it_in() {
    both_databases(|db| {
        db.write(|tx| settings::freeze(tx, PARTS))?;
        let world = World::make(db)?;
        for (asked, command) in [
            ("http://other.idle.example/", "driftline crawl --job idle --scope domain"),
            (
                "http://elsewhere.example/x",
                "driftline crawl --job idle http://idle.example/ http://elsewhere.example/x",
            ),
        ] {
            assert_eq!(world.ask(asked, Some("idle"))["command"], command, "{asked}");
        }
        Ok(())
    });
}
