//! Documents that stand wherever a document can stand, with what made them stand there.

use super::world::*;
use crawl::budget;
use page::ids::{DocHash, bin_of};
use page::url::host_of;
use store::Result;
use store::ids::{BinId, ChunkId, Part, Run};
use store::tables::connections::{self, Connection, ConnectionKind};
use store::tables::queue::{Action, ReasonCode, Settlement};
use store::tables::throttles::{self, Throttle};

/// What there is of a job's own: scope, limits, robots.
pub(super) fn seed_cut(world: &World<'_>) -> Result<()> {
    world.add(SITE, &url("hops"), Some(ReasonCode::Hops), 4)?;
    world.add(SITE, &url("limit"), Some(ReasonCode::Limit), 1)?;
    world.add(SITE, &url("lifted"), Some(ReasonCode::Scope), 1)?;
    world.add(SITE, &url("private/known"), Some(ReasonCode::Scope), 1)?;
    world.settle(&url("trap"), RUN, cut("trap", Some("more than 500 pages of /trap/*")))?;
    world.settle(
        &url("cal/2031"),
        RUN,
        cut("budget", Some("it looks like a crawler trap: 500 pages like it")),
    )?;
    world.add(SITE, &url("cal/2032"), Some(ReasonCode::Budget), 1)?;
    world.add(SITE, &url("maze/x1"), Some(ReasonCode::Budget), 1)?;
    world.closed(&url("cal/1"))?;
    seed_budgets(world)?;
    world.settle(&url("forbidden"), RUN, cut("robots", None))?;
    world.robots("http://site.example", Some(b"User-agent: *\nDisallow: /forbidden\n"))?;
    let closed = "http://closed.site.example";
    world.settle(&format!("{closed}/"), RUN, cut("robots", None))?;
    world.robots(closed, None)?;
    world.settle(&url("redirects"), RUN, cut("redirects", None))?;
    world.settle(&url("noindex"), RUN, cut("noindex", None))?;
    world.settle(&url("nofollow"), RUN, cut("nofollow", None))?;
    world.settle(&url("cut"), RUN, cut("whim", Some("it is Tuesday")))
}

/// Sitemaps and hosts that are closed.
fn seed_budgets(world: &World<'_>) -> Result<()> {
    let cut = (Some(ReasonCode::Budget), 1);
    for (path, depth) in [("index/2", 2.0), ("index/5", 5.0)] {
        world.add_list(SITE, &url(path), cut, depth)?;
    }
    let index = url("stored");
    for (depth, rule) in [(2, "list-bytes"), (5, "list-depth")] {
        let name = budget::counted_lists(&index, depth).swap_remove(0);
        world.closed_by(&index, name, rule)?;
    }
    world.add(SITE, MANY, Some(ReasonCode::Budget), 1)?;
    let host = host_of(MANY);
    world.closed_by(MANY, (BinId(bin_of(host)), format!("{host}/*")), "unlinked")
}

/// A page of a host that has more pages than links to it allow.
pub(super) const MANY: &str = "http://many.site.example/page";

/// Documents on their way.
pub(super) fn seed_under_way(world: &World<'_>) -> Result<()> {
    let later = world.now_ms + HOUR_MS;
    world.settle(&url("retry"), RUN, retry("http-503", later))?;
    world.settle(&url("confirming"), RUN, retry("gone", later))?;
    world.settle(&url("robots-wait"), RUN, retry("robots-unreachable", later))?;
    world.settle(
        &url("scheduled"),
        RUN,
        Settlement::Again { check_ms: later, action: Action::Fetch },
    )?;
    world.add(SITE, &url("ready"), None, 1)?;
    world.add(IDLE, "http://idle.example/x", None, 1)?;
    for (host, next_ms, blocked_ms) in
        [("slow", later, None), ("blocked", world.now_ms, Some(later))]
    {
        let url = format!("http://{host}.site.example/");
        world.add(SITE, &url, None, 1)?;
        world.visit(&url, next_ms, blocked_ms)?;
    }
    world.add(SITE, "http://stopped.site.example/", None, 1)?;
    world.settle("http://stopped.site.example/left", RUN, failed("host-left-alone"))?;
    world.db.write(|tx| {
        let web = Connection::new(CONNECTION, "web", "web");
        connections::save(tx, ConnectionKind::Repository, &web, 1)?;
        let stops = Throttle {
            matches: "^stopped".into(),
            description: None,
            per_ms: Some(0.0),
            connections_max: None,
            bytes_per_s_max: None,
        };
        throttles::replace(tx, CONNECTION, &[stops])
    })?;
    let (owner, part) = (world.add(SITE, &url("event"), None, 1)?, part(&url("event")));
    world.db.write(move |tx| {
        tx.execute("INSERT INTO events (name, node, begun_ms) VALUES ('login', 1, 0)", &[])?;
        tx.execute(
            "INSERT INTO prereqevents (part, owner, eventname) VALUES ($1, $2, 'login')",
            &[part.into(), owner.into()],
        )
    })?;
    world.claim(&url("active"), false)?;
    world.claim(&url("stale"), true)?;
    Ok(())
}

/// Documents that were looked at.
pub(super) fn seed_settled(world: &World<'_>) -> Result<()> {
    let here = part(&url(""));
    let key = |path: &str| Some((here, DocHash::of(&url(path))));
    for (path, code) in [
        ("failed", "http-500"),
        ("refused", "address"),
        ("insecure", "tls-expired"),
        ("gone", "gone"),
    ] {
        world.settle(&url(path), RUN, failed(code))?;
    }
    world.done(&url("stored"), |it| it.chunk = Some(ChunkId(1)))?;
    world.done(&url("unread"), |it| {
        it.chunk = Some(ChunkId(1));
        it.outcome = "unread-locked".into();
    })?;
    world.done(&url("unchanged"), |it| {
        it.chunk = Some(ChunkId(1));
        it.outcome = "not modified".into();
    })?;
    world.document(&url("recheck"), |_| {})?;
    world.settle(&url("recheck"), Run(1), Settlement::Done)?;
    world.done(&url("copy"), |it| it.duplicate_of = key("stored"))?;
    for (path, to) in [("moved", "moved-again"), ("moved-again", "stored")] {
        world.done(&url(path), |it| {
            it.outcome = "redirect".into();
            it.redirect = key(to);
        })?;
    }
    world.done(&url("led-away"), |it| {
        it.outcome = "redirect".into();
        it.redirect = Some((Part(0), DocHash::of("http://elsewhere.example/")));
    })?;
    for (path, to) in [("circle", "circle"), ("a-to-b", "b-to-a"), ("b-to-a", "a-to-b")] {
        world.done(&url(path), |it| {
            it.outcome = "redirect".into();
            it.redirect = key(to);
        })?;
    }
    world.done(&url("removed"), |it| {
        it.removed_ms = Some(5);
        it.reason = Some("gone".into());
    })?;
    world.document(&url("forgotten"), |it| {
        it.removed_ms = Some(5);
        it.reason = Some("unreachable".into());
    })?;
    world.settle(&url("given-up"), Run(1), failed("dns"))?;
    world.settle(&url("done"), RUN, Settlement::Done)
}
