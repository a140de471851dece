//! Why a document stands where it stands: a short code for tables, and words for people.
//!
//! Invariant: what the program itself compares is a [`ReasonCode`]; the codes of fetches, of
//! connectors and of newer programs are text, and are only passed on.

use crate::names::names;

/// Bytes of a reason's code: it is part of an index.
pub const REASON_BYTES_MAX: usize = 64;
/// Bytes of a reason's words.
const DETAIL_BYTES_MAX: usize = 2_048;

/// The reasons that the program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReasonCode {
    /// It does not belong to the job.
    Scope,
    /// It is too far from every seed.
    Hops,
    /// There was no room for it in the job.
    Limit,
    /// Pages like it said nothing new for too long.
    Budget,
    /// It looks like a page that makes more of its kind for ever.
    Trap,
    /// robots.txt forbids it.
    Robots,
    /// Its robots.txt cannot be had.
    RobotsUnreachable,
    /// More redirects in a row led to it than are followed.
    Redirects,
    /// The page asks not to be indexed.
    Noindex,
    /// Whoever links to it asks not to follow.
    Nofollow,
    /// What it says is not wanted.
    ExcludedContent,
    /// It is of a type that the job does not take.
    MediaType,
    /// It is missing.
    Gone,
    /// There is no session for it.
    Login,
    /// The run could not wait until its host may be asked.
    HostLeftAlone,
    /// A throttle lets nothing of its host start.
    Throttled,
    /// This program itself fails on it.
    InternalError,
}

names!(ReasonCode of "a reason of a row of the queue" {
    Scope = "scope",
    Hops = "hops",
    Limit = "limit",
    Budget = "budget",
    Trap = "trap",
    Robots = "robots",
    RobotsUnreachable = "robots-unreachable",
    Redirects = "redirects",
    Noindex = "noindex",
    Nofollow = "nofollow",
    ExcludedContent = "excluded-content",
    MediaType = "media-type",
    Gone = "gone",
    Login = "login",
    HostLeftAlone = "host-left-alone",
    Throttled = "throttled",
    InternalError = "internal-error",
});

impl ReasonCode {
    /// Those for which a document is cut that is let in again when it is named without one.
    pub(super) const REVIVABLE: [ReasonCode; 4] =
        [ReasonCode::Scope, ReasonCode::Hops, ReasonCode::Limit, ReasonCode::Budget];

    /// Whether a document that was cut for it is let in again when it is named without one.
    pub fn is_revivable(self) -> bool {
        ReasonCode::REVIVABLE.contains(&self)
    }
}

/// Why a document went where it went: a short code for tables, and words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    code: String,
    detail: Option<String>,
}

impl Reason {
    /// The code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The words for people, if there are any.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// One of the program's own reasons.
    pub fn known(code: ReasonCode, detail: Option<&str>) -> Reason {
        Reason::new(code.name(), detail)
    }

    /// A reason with a code of somebody else's; what is too long is cut.
    pub fn new(code: &str, detail: Option<&str>) -> Reason {
        let cut = |text: &str, bytes| text[..text.floor_char_boundary(bytes)].to_owned();
        Reason {
            code: cut(code, REASON_BYTES_MAX),
            detail: detail.map(|text| cut(text, DETAIL_BYTES_MAX)),
        }
    }

    /// Its code and its words, as the columns of a row have them.
    pub(super) fn columns(&self) -> (&str, Option<&str>) {
        (&self.code, self.detail())
    }
}
