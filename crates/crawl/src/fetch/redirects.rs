//! Following redirects, one checked hop after the other.
//!
//! Every hop passes the caller's own check (scope, robots) and then the guard, as a
//! first request does. Invariant: what was given for one origin, credentials above
//! all, is never sent to another, not even when the chain comes back.

use super::client::Fetcher;
use super::outcome::{Outcome, Reason};
use super::request::FetchRequest;

/// Redirects that are followed for a page.
pub const PAGE_HOPS_MAX: u8 = 10;

/// One redirect on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Hop {
    /// Where it was met.
    pub from: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    pub to: String,
}

/// What the caller says about a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopVerdict {
    /// The redirect is followed.
    Follow,
    /// Stop here and report the redirect: the target is a document of its own, or
    /// its host must be asked for robots.txt first.
    Report,
    /// The target is forbidden: [`Reason::HopScope`] or [`Reason::HopRobots`].
    Refuse(Reason),
}

/// The end of a chain and the way there.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowedChain {
    /// What came of the last request.
    pub outcome: Outcome,
    /// The URL that `outcome` is about.
    pub url: String,
    /// Every redirect met, the unfollowed last one included.
    pub hops: Vec<Hop>,
}

impl FollowedChain {
    /// The status that the chain ended with. One that was too long, or went in a
    /// circle, ended with a redirect, which `page::robots::answer` wants to know.
    pub fn status(&self) -> Option<u16> {
        let is_unfinished =
            matches!(self.outcome.reason(), Some(Reason::RedirectLimit | Reason::RedirectLoop));
        let last = self.hops.last().filter(|_| is_unfinished).map(|hop| hop.status);
        last.or_else(|| self.outcome.status())
    }
}

impl Fetcher {
    /// Asks, and goes on where the answer points, at most `hops_max` times; with 0 a
    /// redirect is only reported. `check` sees each hop before it is followed.
    pub async fn follow(
        &self,
        ask: &FetchRequest<'_>,
        hops_max: u8,
        mut check: impl FnMut(&Hop) -> HopVerdict,
    ) -> FollowedChain {
        let first_origin = page::url::origin_of(ask.url);
        let mut url = ask.url.to_owned();
        let mut hops: Vec<Hop> = Vec::new();
        let mut is_at_home = true;
        loop {
            let outcome = self.get(&hop_ask(ask, &url, is_at_home, hops.is_empty())).await;
            let Outcome::Redirect(redirect) = outcome else {
                return FollowedChain { outcome, url, hops };
            };
            let is_loop = redirect.to == url || hops.iter().any(|hop| hop.from == redirect.to);
            let is_last = hops.len() >= usize::from(hops_max);
            let status = redirect.status;
            hops.push(Hop { from: url.clone(), status, to: redirect.to.clone() });
            let verdict = match hops.last() {
                _ if hops_max == 0 => HopVerdict::Report,
                _ if is_loop => HopVerdict::Refuse(Reason::RedirectLoop),
                _ if is_last => HopVerdict::Refuse(Reason::RedirectLimit),
                Some(hop) => check(hop),
                None => HopVerdict::Report,
            };
            match verdict {
                HopVerdict::Follow => {
                    is_at_home &= page::url::origin_of(&redirect.to) == first_origin;
                    url = redirect.to;
                }
                HopVerdict::Report => {
                    return FollowedChain { outcome: Outcome::Redirect(redirect), url, hops };
                }
                HopVerdict::Refuse(reason) => {
                    return FollowedChain { outcome: reason.outcome(), url, hops };
                }
            }
        }
    }
}

/// The request for a hop. Validators belong to the first URL alone; headers and
/// Referer are dropped for good once the chain has left the first origin.
fn hop_ask<'a>(
    ask: &FetchRequest<'a>,
    url: &'a str,
    is_at_home: bool,
    is_first: bool,
) -> FetchRequest<'a> {
    FetchRequest {
        url,
        guard: ask.guard,
        etag: ask.etag.filter(|_| is_first),
        last_modified: ask.last_modified.filter(|_| is_first),
        referer: ask.referer.filter(|_| is_at_home),
        headers: if is_at_home { ask.headers } else { &[] },
        form: ask.form.filter(|_| is_first),
        media_types: ask.media_types,
        body_bytes_max: ask.body_bytes_max,
        bandwidth: ask.bandwidth,
        user_agent: ask.user_agent,
    }
}
