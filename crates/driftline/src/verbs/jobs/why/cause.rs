//! Every reason there is for where a URL stands: a code that never changes, for
//! scripts; the sentence and the next step are made where the cause is found.
//!
//! Invariant: the list that tests go through is made from the same text as the enum,
//! so that a cause without a test fails the build.

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// Why a URL stands where it stands.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause {
            $($(#[$doc])* $name,)*
        }

        impl Cause {
            /// All of them, in the order of a document's life.
            #[cfg(test)]
            pub const ALL: &[Cause] = &[$(Cause::$name,)*];

            /// A word for scripts that never changes.
            pub fn code(self) -> &'static str {
                match self {
                    $(Cause::$name => $code,)*
                }
            }
        }
    };
}

causes! {
    /// The text is not a web address.
    NotWeb = "not-web",
    /// There is no job that could know it.
    NoJobs = "no-jobs",
    /// The job has not been run.
    NotStarted = "not-started",
    /// It is beyond the reach of the seeds.
    OutOfScope = "out-of-scope",
    /// No include expression matches it.
    NotIncluded = "not-included",
    /// An exclude expression matches it.
    Excluded = "excluded",
    /// It is too many links from the seeds.
    Hops = "hops",
    /// It looks like one of endlessly many pages.
    Trap = "trap",
    /// It belongs to the job, but no page has named it.
    Unseen = "unseen",
    /// The job has as many documents as it may have.
    Limit = "limit",
    /// It was left out by settings that have changed since.
    Lifted = "lifted",
    /// A line of robots.txt forbids it.
    Robots = "robots",
    /// The robots.txt could not be had, so nothing is allowed.
    RobotsUnreachable = "robots-unreachable",
    /// Too many redirects in a row led to it.
    Redirects = "redirects",
    /// The page asks not to be kept.
    Noindex = "noindex",
    /// The page that links to it asks not to follow.
    Nofollow = "nofollow",
    /// It is left out for another reason.
    Cut = "cut",
    /// It failed and will be tried again.
    Retry = "retry",
    /// It is missing, and a second look will tell whether it is gone.
    Confirming = "confirming",
    /// It will be looked at again at a time.
    Scheduled = "scheduled",
    Ready = "ready",
    /// Its host may not be asked again yet.
    HostDelay = "host-delay",
    /// Its host was in trouble and is left alone for a while.
    HostBlocked = "host-blocked",
    /// A throttle of its connection allows its host nothing.
    Throttled = "throttled",
    /// It is ready, but nobody crawls.
    NoCrawl = "no-crawl",
    /// It waits for an event.
    Event = "event",
    /// It is being fetched.
    Active = "active",
    /// A process that has ended was fetching it.
    Stale = "active-stale",
    /// It was given up after trouble.
    Failed = "failed",
    /// Its address may not be asked.
    Refused = "refused",
    /// Its server's certificate is not good.
    Insecure = "insecure",
    /// The server says that there is no such page.
    Gone = "gone",
    Stored = "stored",
    /// It is stored without its text, which could not be read.
    Unread = "unread",
    /// It is stored, and the last look found nothing new.
    Unchanged = "unchanged",
    /// It is known from an older run, and this run will look again.
    Recheck = "recheck",
    /// It is a copy of another page.
    Duplicate = "duplicate",
    /// It leads to another page.
    Redirect = "redirect",
    /// It leads back to itself, or to redirects that do.
    RedirectLoop = "redirect-loop",
    /// It was stored once and has been removed.
    Removed = "removed",
    /// It was processed and nothing of it is stored.
    Done = "done",
}

/// A cause with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Because {
    pub cause: Cause,
    /// What is the case, in one sentence.
    pub sentence: String,
    /// What to do, if anything is to be done.
    pub next: Option<String>,
    /// The command that does it.
    pub command: Option<String>,
}

impl Because {
    /// A cause that nothing needs to be done about.
    pub fn new(cause: Cause, sentence: impl Into<String>) -> Because {
        Because { cause, sentence: sentence.into(), next: None, command: None }
    }

    /// The same, with what to do next.
    pub fn next(self, next: impl Into<String>) -> Because {
        Because { next: Some(next.into()), command: None, ..self }
    }

    /// The same, with a command that helps.
    pub fn run(self, next: &str, command: String) -> Because {
        Because { next: Some(next.to_owned()), command: Some(command), ..self }
    }
}
