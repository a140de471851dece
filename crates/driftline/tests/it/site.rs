//! A generated web to crawl: as many pages as wanted, always the same ones, on
//! loopback, with a log of who asked for what.
//!
//! Page `i` is `/p/i` on host `i % hosts`. The pages of one host form a tree from its
//! first page, so all of them are reached within that host; the first page of the
//! first host leads to the first pages of the others; a handful of links of every page
//! go anywhere. Every page has its own text of one to two kilobytes and an ETag.
//! Invariant: what a site answers depends on how it was described and on nothing else
//! but the calls of [`Served`] that change it.

#![allow(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod endless;
mod pages;
mod tests;
mod traffic;

pub use traffic::Traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use driftline::loopback_web::{Answer, Request, Settings, Web};
use pages::Plan;

/// Real pages of [`Site::endless`].
pub const ENDLESS_REAL: usize = 200;
/// Hosts by address: 127.0.0.1 and those after it.
const ADDRESSES_MAX: usize = 200;

/// How a site is to be.
#[derive(Debug, Clone)]
pub struct Site {
    plan: Plan,
    settings: Settings,
    delay: Duration,
    robots: Option<String>,
}

impl Site {
    /// So many pages on 127.0.0.1, with no robots.txt.
    pub fn with_pages(pages: usize) -> Site {
        Site {
            plan: Plan::new(pages),
            settings: Settings::default(),
            delay: Duration::ZERO,
            robots: None,
        }
    }

    /// [`ENDLESS_REAL`] pages among traps that never end: a calendar, facets in
    /// every order, a path that grows, pages that are lost but do not say so, visits
    /// that are numbered, and, on hosts with names, hosts without end.
    pub fn endless() -> Site {
        let mut site = Site::with_pages(ENDLESS_REAL);
        site.plan.has_traps = true;
        site
    }

    /// Spreads the pages over hosts without names: 127.0.0.1, 127.0.0.2 and so on. They
    /// need no look-up, so the program itself can crawl them.
    #[must_use]
    pub fn hosts(mut self, count: usize) -> Site {
        assert!((1..=ADDRESSES_MAX).contains(&count), "{count} hosts");
        let address = |n: usize| Ipv4Addr::new(127, 0, 0, u8::try_from(n + 1).unwrap());
        self.settings.addresses = (0..count).map(address).collect();
        self.plan.hosts = self.settings.addresses.iter().map(Ipv4Addr::to_string).collect();
        self
    }

    /// Spreads the pages over hosts with names, which must be looked up as 127.0.0.1.
    #[must_use]
    pub fn named(mut self, names: &[&str]) -> Site {
        assert!(!names.is_empty(), "a site needs a host");
        self.settings.addresses = vec![Ipv4Addr::LOCALHOST];
        self.plan.hosts = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Adds so many links to `/r/j`, which redirect to pages.
    #[must_use]
    pub fn redirects(mut self, count: usize) -> Site {
        self.plan.redirects = count;
        self
    }

    /// Adds so many links to `/gone/j`, where there is nothing.
    #[must_use]
    pub fn missing(mut self, count: usize) -> Site {
        self.plan.missing = count;
        self
    }

    /// Lets every answer take so long.
    #[must_use]
    pub fn answering_after(self, delay: Duration) -> Site {
        Site { delay, ..self }
    }

    /// Gives every host this robots.txt.
    #[must_use]
    pub fn robots(self, text: &str) -> Site {
        Site { robots: Some(text.to_owned()), ..self }
    }

    /// Writes visits into a file as well, as they happen ([`Traffic::read`]).
    #[must_use]
    pub fn log_file(mut self, path: &Path) -> Site {
        self.settings.log_file = Some(path.to_owned());
        self
    }

    /// Serves at this port, for a site that comes back.
    #[must_use]
    pub fn port(mut self, port: u16) -> Site {
        self.settings.port = port;
        self
    }

    /// Serves it until the answer is dropped.
    pub fn serve(self) -> Served {
        let Site { plan, settings, delay, robots } = self;
        let state = Arc::new(State { plan, robots, delay, changes: RwLock::default() });
        let answering = state.clone();
        let web = Web::start_with(&settings, move |request| answering.answer(request)).unwrap();
        Served { web, state }
    }
}

/// What answers instead of the site, for some requests.
type Intercept = dyn Fn(&Request) -> Option<Answer> + Send + Sync;

struct State {
    plan: Plan,
    robots: Option<String>,
    delay: Duration,
    changes: RwLock<Changes>,
}

#[derive(Default)]
struct Changes {
    editions: BTreeMap<usize, u64>,
    removed: BTreeSet<usize>,
    intercept: Option<Box<Intercept>>,
}

impl State {
    fn answer(&self, request: &Request) -> Answer {
        let changes = self.changes.read().unwrap();
        if let Some(answer) = changes.intercept.as_ref().and_then(|ask| ask(request)) {
            return answer;
        }
        let answer = match (request.path.as_str(), &self.robots) {
            ("/robots.txt", Some(text)) => Answer::text(text.as_str()),
            ("/robots.txt", None) => Answer::status(404),
            _ => self.page(request, &changes),
        };
        answer.after(self.delay)
    }

    fn page(&self, request: &Request, changes: &Changes) -> Answer {
        let plan = &self.plan;
        if plan.has_traps
            && let Some(answer) = endless::answer(plan, request)
        {
            return answer;
        }
        match plan.page_at(&request.host, request.path_alone()) {
            Some(page) if !changes.removed.contains(&page) => {
                let edition = changes.editions.get(&page).copied().unwrap_or(0);
                let port = request.port();
                Answer::html(plan.html(page, edition, port)).etag(&format!("{page}-{edition}"))
            }
            Some(_) => Answer::status(404),
            None => match plan.redirect_at(&request.host, request.path_alone()) {
                Some(page) => Answer::redirect(301, &plan.url(page, request.port())),
                None => Answer::status(404),
            },
        }
    }
}

/// A site that is being served.
pub struct Served {
    web: Web,
    state: Arc<State>,
}

impl Served {
    /// The server beneath.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// The first page of the first host, from which everything is reached.
    pub fn seed(&self) -> String {
        self.page_url(0)
    }

    /// The first page of every host, from which everything is reached within them.
    pub fn seeds(&self) -> Vec<String> {
        let plan = &self.state.plan;
        (0..plan.hosts.len().min(plan.pages)).map(|page| self.page_url(page)).collect()
    }

    /// The URL of a page.
    pub fn page_url(&self, page: usize) -> String {
        self.state.plan.url(page, self.web.port())
    }

    /// The URLs of all pages, removed ones included.
    pub fn page_urls(&self) -> Vec<String> {
        (0..self.state.plan.pages).map(|page| self.page_url(page)).collect()
    }

    /// Gives pages another text and another ETag.
    pub fn edit(&self, pages: impl IntoIterator<Item = usize>) {
        let mut changes = self.state.changes.write().unwrap();
        for page in pages {
            *changes.editions.entry(page).or_default() += 1;
        }
    }

    /// Takes pages away: they are 404 from now on. Links to them stay.
    pub fn remove(&self, pages: impl IntoIterator<Item = usize>) {
        self.state.changes.write().unwrap().removed.extend(pages);
    }

    /// Brings all removed pages back.
    pub fn restore(&self) {
        self.state.changes.write().unwrap().removed.clear();
    }

    /// Lets a function answer first, in place of the one before; `None` leaves the
    /// request to the site.
    pub fn intercept(&self, ask: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) {
        self.state.changes.write().unwrap().intercept = Some(Box::new(ask));
    }

    /// What was asked for so far.
    pub fn traffic(&self) -> Traffic {
        Traffic::new(self.web.visits())
    }

    /// What was asked for so far, which is then forgotten.
    pub fn take_traffic(&self) -> Traffic {
        Traffic::new(self.web.take_visits())
    }

    /// URLs of pages that nobody has been given whole (200 or 304).
    pub fn unfetched(&self, traffic: &Traffic) -> Vec<String> {
        let given = traffic.counts_where(|visit| matches!(visit.status, 200 | 304));
        let plan = &self.state.plan;
        let is_missing = |page: &usize| !given.contains_key(&plan.place(*page));
        (0..plan.pages).filter(is_missing).map(|page| self.page_url(page)).collect()
    }
}
