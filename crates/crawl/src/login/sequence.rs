//! The way through a login: one page after the other, until one asks for nothing more.
//!
//! Relies on the fetcher, whose guard sees every address. Invariant: at most
//! [`STEPS_MAX`] requests are made, the job's delay apart, and no form is sent twice.

use super::session::Session;
use super::{Login, LoginStep};
use crate::fetch::{FetchRequest, Fetcher, Guard, HeaderName, HeaderValue, HopVerdict, Outcome};
use crate::robots::{RobotsCache, RobotsPermission, RobotsQuery};
use bytes::Bytes;
use page::domain::SuffixList;
use page::url::origin_of;
use std::time::Duration;

/// Requests of one login.
pub const STEPS_MAX: usize = 20;

/// What is needed on the way.
#[allow(missing_docs)]
pub struct LoginContext<'a> {
    pub fetcher: &'a Fetcher,
    /// What may be reached.
    pub guard: &'a Guard,
    pub user_agent: &'a HeaderValue,
    /// Whose domains are whose.
    pub suffixes: &'a SuffixList,
    /// From the end of one request to the start of the next.
    pub delay: Duration,
    /// The name that robots.txt is read for, if it is obeyed here.
    pub robots: Option<&'a str>,
}

/// One request of a login, as history keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LoginRequest {
    /// What was asked for, without what was sent.
    pub url: String,
    /// The status, or the code of a reason.
    pub result: String,
    /// Milliseconds since the login began.
    pub began_ms: i64,
    pub ended_ms: i64,
}

/// What came of a login.
#[derive(Debug)]
pub struct LoginOutcome {
    /// The session, or why there is none.
    pub outcome: Result<Session, String>,
    /// What was asked on the way.
    pub requests: Vec<LoginRequest>,
}

impl Login {
    /// Logs in, on the way to a document. The session gets this number.
    pub async fn walk(&self, walk: &LoginContext<'_>, document: &str, number: i64) -> LoginOutcome {
        let session = Session::new(number);
        let mut requests = Vec::new();
        let outcome = self.steps(walk, document, &session, &mut requests).await;
        LoginOutcome { outcome: outcome.map(|()| session), requests }
    }

    async fn steps(
        &self,
        walk: &LoginContext<'_>,
        document: &str,
        session: &Session,
        requests: &mut Vec<LoginRequest>,
    ) -> Result<(), String> {
        let start = tokio::time::Instant::now();
        let (mut url, mut form) = (document.to_owned(), None);
        let mut filled: Vec<usize> = Vec::new();
        let mut robots = RobotsCache::default();
        while requests.len() < STEPS_MAX {
            if !requests.is_empty() {
                tokio::time::sleep(walk.delay).await;
            }
            if let Some(product) = walk.robots {
                check_robots(walk, &mut robots, &url, product).await?;
            }
            let began_ms = since(start);
            let outcome = ask(walk, session, &url, form.as_ref()).await;
            let reason = outcome.reason();
            let result = match outcome.status() {
                Some(status) => status.to_string(),
                None => reason.map_or_else(String::new, |reason| reason.code().into_owned()),
            };
            let shown = url.split('?').next().unwrap_or_default().to_owned();
            requests.push(LoginRequest {
                url: shown.clone(),
                result,
                began_ms,
                ended_ms: since(start),
            });
            let next = match (&outcome, self.next(&url, &outcome)) {
                (_, Some(step)) => step,
                // What a page does not say is followed as a browser would.
                (Outcome::Redirect(redirect), None) => LoginStep {
                    page: usize::MAX,
                    url: redirect.to.clone(),
                    form: None,
                    is_form: false,
                },
                (Outcome::Body(_), None) => return Ok(()),
                (_, None) => {
                    let why = reason.map_or_else(|| "no answer".to_owned(), |it| it.to_string());
                    return Err(format!("at {shown}: {why}"));
                }
            };
            if next.is_form && filled.contains(&next.page) {
                return Err(format!(
                    "at {shown}: the form appears again after it was submitted; the name or the \
                     password may be wrong"
                ));
            }
            if next.is_form {
                filled.push(next.page);
            }
            (url, form) = (next.url, next.form);
        }
        Err(format!("after {STEPS_MAX} requests there was still no page of the site"))
    }
}

/// Refuses a page of the login that robots.txt forbids. That is asked for again by every login:
/// there are few.
async fn check_robots(
    walk: &LoginContext<'_>,
    robots: &mut RobotsCache,
    url: &str,
    product: &str,
) -> Result<(), String> {
    let origin = origin_of(url);
    if !robots.has(origin) {
        let its = format!("{origin}/robots.txt");
        let mut ask = FetchRequest::new(&its, walk.guard);
        ask.user_agent = Some(walk.user_agent);
        ask.body_bytes_max = Some(page::robots::BODY_BYTES_MAX + 1);
        let most = page::robots::answer::REDIRECTS_MAX;
        let followed = walk.fetcher.follow(&ask, most, |_| HopVerdict::Follow).await;
        robots.answered(origin, &followed, 0);
    }
    let shown = url.split('?').next().unwrap_or_default();
    let question = RobotsQuery { url, product, guard: walk.guard, again_before_ms: 0 };
    match robots.verdict(origin, question, 0) {
        RobotsPermission::Allowed => Ok(()),
        RobotsPermission::Forbidden { rule } => Err(format!(
            "at {shown}: robots.txt forbids it ({rule}); with robots=data it is obeyed for \
             documents only"
        )),
        RobotsPermission::Refused(reason) => Err(format!("at {shown}: {reason}")),
        RobotsPermission::Closed { why, .. } => {
            Err(format!("at {shown}: the robots.txt of its host could not be fetched: {why}"))
        }
        RobotsPermission::Unknown => {
            Err(format!("at {shown}: the robots.txt of its host could not be fetched"))
        }
    }
}

async fn ask(
    walk: &LoginContext<'_>,
    session: &Session,
    url: &str,
    form: Option<&Bytes>,
) -> Outcome {
    let cookie = session.header(url).map(|value| (HeaderName::from_static("cookie"), value));
    let headers: Vec<(HeaderName, HeaderValue)> = cookie.into_iter().collect();
    let mut ask = FetchRequest::new(url, walk.guard);
    ask.user_agent = Some(walk.user_agent);
    ask.body_bytes_max = Some(super::LOOKED_BYTES_MAX);
    ask.headers = &headers;
    ask.form = form;
    let outcome = walk.fetcher.get(&ask).await;
    match &outcome {
        Outcome::Redirect(redirect) => session.take(url, redirect.cookies.iter(), walk.suffixes),
        Outcome::Body(body) => {
            session.take(url, body.headers.get_all("set-cookie").iter(), walk.suffixes);
        }
        _ => {}
    }
    outcome
}

fn since(start: tokio::time::Instant) -> i64 {
    i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX)
}
