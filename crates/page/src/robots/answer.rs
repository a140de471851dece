//! What the answer to a request for robots.txt means (RFC 9309, section 2.3).
//!
//! A pure decision: the fetcher brings the status and its own memory of the
//! host, and does what it is told. Invariant: trouble on the other side never
//! opens a host, except after 30 days of nothing but trouble.

/// Redirects that are followed, to other hosts too.
pub const REDIRECTS_MAX: u8 = 5;
/// A copy is good for a day at most.
pub const CACHE_MS_MAX: i64 = 24 * HOUR_MS;
/// After this long without an answer, a host counts as one without robots.txt.
pub const UNREACHABLE_MS_MAX: i64 = 30 * 24 * HOUR_MS;
/// The first retry after trouble; later ones wait as long as the trouble lasts.
const RETRY_MS_MIN: i64 = 10 * 60 * 1_000;
const HOUR_MS: i64 = 60 * 60 * 1_000;

/// What came back, and what is remembered of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RobotsFetch {
    /// The HTTP status; none when there was no answer at all.
    pub status: Option<u16>,
    /// Redirects followed so far for this request.
    pub redirects: u8,
    /// How old the last copy is that was read from a good answer.
    pub last_good_age_ms: Option<i64>,
    /// How long requests have failed in a row; 0 for the first failure.
    pub unreachable_for_ms: i64,
}

/// What to do with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotsDecision {
    /// Read the body with [`super::Robots::parse`].
    Parse,
    /// Ask again where the redirect points.
    Follow,
    /// Go on with the last good copy.
    KeepLast,
    /// There is no robots.txt: [`super::Robots::allow_all`].
    AllowAll,
    /// It cannot be known: [`super::Robots::disallow_all`].
    DisallowAll,
}

/// Decides what an answer means.
///
/// 2xx is read; 3xx is followed; 4xx means that there is no file. 429 is not
/// about the file but about us, so it counts as trouble, as 5xx and network
/// errors do: the last copy stays in force, and without one nothing is allowed.
pub fn on_status(fetch: RobotsFetch) -> RobotsDecision {
    match fetch.status {
        Some(200..=299) => RobotsDecision::Parse,
        Some(304) => trouble(RobotsFetch { unreachable_for_ms: 0, ..fetch }),
        Some(300..=399) if fetch.redirects < REDIRECTS_MAX => RobotsDecision::Follow,
        // The RFC lets a longer chain count as "no file".
        Some(300..=399) => RobotsDecision::AllowAll,
        Some(429) => trouble(fetch),
        Some(400..=499) => RobotsDecision::AllowAll,
        _ => trouble(fetch),
    }
}

fn trouble(fetch: RobotsFetch) -> RobotsDecision {
    if fetch.unreachable_for_ms >= UNREACHABLE_MS_MAX {
        RobotsDecision::AllowAll
    } else if fetch.last_good_age_ms.is_some() {
        RobotsDecision::KeepLast
    } else {
        RobotsDecision::DisallowAll
    }
}

/// How long the outcome of [`on_status`] holds before robots.txt is asked for
/// again. `max_age_ms` is what the answer's own caching headers say, if they do;
/// it can shorten a day, not lengthen it.
pub fn good_for_ms(fetch: RobotsFetch, max_age_ms: Option<i64>) -> i64 {
    let unanswered = !matches!(fetch.status, Some(200..=428 | 430..=499));
    if unanswered {
        return fetch.unreachable_for_ms.clamp(RETRY_MS_MIN, CACHE_MS_MAX);
    }
    max_age_ms.unwrap_or(CACHE_MS_MAX).clamp(RETRY_MS_MIN, CACHE_MS_MAX)
}
