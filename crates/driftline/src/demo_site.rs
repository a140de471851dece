//! The sample web of the demo: five invented hosts, some fifty pages, in two states.
//!
//! Between them pages are added, edited, restyled, removed and moved, a link changes the
//! page it stands on, and one host fails. It has what a crawler meets outside as well: a
//! robots.txt that forbids, sitemaps, redirects, a link to nothing, `nofollow`,
//! `noindex`, a page with two addresses, a calendar without end, and servers that help
//! with an ETag, with a date, or not at all.
//!
//! Invariant: an answer is a pure function of the state, the port and the request, so
//! [`expectations`] can foretell a crawl.

mod expectations;
mod fate;
mod ferries;
mod gazette;
mod lighthouse;
mod shop;
#[cfg(test)]
mod tests;
mod tides;
mod written;

pub use self::expectations::{ExpectedSite, Manners, expected};
pub use self::fate::Fate;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::written::{DemoHost, DemoPage, Life, There, Validator};
use crate::loopback_web::{Answer, Request, Settings, Web};

/// The hosts. A crawl begins at the first page of each.
const HOSTS: [&DemoHost; 5] =
    [&tides::HOST, &gazette::HOST, &lighthouse::HOST, &shop::HOST, &ferries::HOST];
/// The host that fails in the second state.
pub const FAILING: &str = ferries::HOST.name;
/// The host that compresses what it sends.
const COMPRESSING: &str = gazette::HOST.name;
/// The page of the calendar, and the step that each of its links adds.
const CALENDAR: &str = "/calendar/";
const CALENDAR_STEP: &str = "next/";

/// Where a host with a sitemap has it.
const SITEMAP: &str = "/sitemap.xml";
/// The link that moves in the second state: from a page, to a page, and where it leads.
pub const MOVED_LINK: [(&str, &str); 3] = [
    (gazette::HOST.name, "/2026/wall"),
    (gazette::HOST.name, "/letters"),
    (lighthouse::HOST.name, "/history/great-storm"),
];

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteState {
    /// As it is first.
    Before,
    /// As it is after the changes.
    After,
}

/// One thing that is different in the second state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteChange {
    pub host: &'static str,
    /// The path; of a host that fails, `/`.
    pub path: &'static str,
    /// What happened, in a word or a few.
    pub what: String,
}

/// The sample web, being served.
pub struct DemoSite {
    web: Web,
    has_changed: Arc<AtomicBool>,
}

impl DemoSite {
    /// Serves the first state on loopback, at a free port.
    pub fn start() -> io::Result<DemoSite> {
        DemoSite::start_with(&Settings::default())
    }

    /// Serves the first state as told.
    pub fn start_with(settings: &Settings) -> io::Result<DemoSite> {
        let has_changed = Arc::new(AtomicBool::new(false));
        let asked = has_changed.clone();
        let web = Web::start_with(settings, move |request| {
            let is_after = asked.load(Ordering::SeqCst);
            answer(if is_after { SiteState::After } else { SiteState::Before }, request)
        })?;
        Ok(DemoSite { web, has_changed })
    }

    /// The server beneath, with its log.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// The first page of every host.
    pub fn seeds(&self) -> Vec<String> {
        HOSTS.iter().map(|host| format!("{}/", written::origin(host, self.web.port()))).collect()
    }

    /// From now on the second state is served.
    pub fn change(&self) {
        self.has_changed.store(true, Ordering::SeqCst);
    }
}

/// The names that must be looked up as 127.0.0.1.
pub fn names() -> [&'static str; 5] {
    HOSTS.map(|host| host.name)
}

/// What each host is called, and how many pages of it are there in the first state.
pub fn hosts() -> Vec<(&'static str, &'static str, usize)> {
    let is_there = |page: &&DemoPage| !matches!(page.life, Life::Added | Life::Redirects(..));
    let pages = |host: &DemoHost| host.pages.iter().filter(is_there).count();
    HOSTS.iter().map(|host| (host.name, host.title, pages(host))).collect()
}

/// What the second state does differently, host by host.
pub fn changes() -> Vec<SiteChange> {
    let mut changes = Vec::new();
    for host in HOSTS {
        if host.name == FAILING {
            changes.push(SiteChange { host: host.name, path: "/", what: "host fails".to_owned() });
        }
        for page in host.pages {
            let what = match page.life {
                Life::Stays | Life::Redirects(..) => continue,
                Life::Added => "added".to_owned(),
                Life::Edited(_) => "edited".to_owned(),
                Life::Restyled => "markup changed, text did not".to_owned(),
                Life::Removed(status) => format!("removed ({status})"),
                Life::Moved(to) => format!("moved to {to}"),
            };
            changes.push(SiteChange { host: host.name, path: page.path, what });
        }
    }
    changes
}

/// What a state answers.
fn answer(state: SiteState, request: &Request) -> Answer {
    let Some(host) = HOSTS.into_iter().find(|host| host.name == request.host) else {
        return Answer::status(404);
    };
    if host.name == FAILING && state == SiteState::After {
        return Answer::status(503);
    }
    let answer = match request.path.as_str() {
        "/robots.txt" => Answer::text(written::linked(host.robots, request.port())),
        SITEMAP if !host.sitemap.is_empty() => sitemap(host, state, request.port()),
        _ => document(host, state, request),
    };
    if host.name == COMPRESSING { answer.gzipped() } else { answer }
}

fn document(host: &DemoHost, state: SiteState, request: &Request) -> Answer {
    let Some(page) = host.pages.iter().find(|page| page.path == request.path) else {
        return calendar(host, request).unwrap_or_else(|| Answer::status(404));
    };
    match page.in_state(host, state, request.port()) {
        There::Status(status) => Answer::status(status),
        There::Redirect(status, to) => Answer::redirect(status, &to),
        There::Html(html, validator) => {
            let tag = checksum(html.as_bytes());
            let answer = Answer::html(html);
            match validator {
                Validator::None => answer,
                Validator::Tag => answer.etag(&format!("{tag:016x}")),
                Validator::Date => answer.last_modified(page.modified(state)),
            }
        }
    }
}

/// The months after the first: each leads to the next, one step further down.
fn calendar(host: &DemoHost, request: &Request) -> Option<Answer> {
    let page = host.pages.iter().find(|page| page.path == CALENDAR)?;
    let steps = request.path.strip_prefix(CALENDAR)?;
    let months = steps.matches(CALENDAR_STEP).count();
    if months == 0 || steps.len() != months * CALENDAR_STEP.len() {
        return None;
    }
    let later = DemoPage { title: "Calendar, later", ..*page };
    match later.in_state(host, SiteState::Before, request.port()) {
        There::Html(html, _) => {
            let ahead = format!("in {months} months");
            Some(Answer::html(html.replace("this month", &ahead)))
        }
        _ => None,
    }
}

fn sitemap(host: &DemoHost, state: SiteState, port: u16) -> Answer {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for page in host.pages.iter().filter(|page| host.sitemap.contains(&page.path)) {
        if let There::Html(..) = page.in_state(host, state, port) {
            let origin = written::origin(host, port);
            xml.push_str(&format!("<url><loc>{origin}{}</loc></url>\n", page.path));
        }
    }
    xml.push_str("</urlset>\n");
    Answer::of("application/xml", xml)
}

/// FNV-1a: enough to tell two versions of a page apart.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
