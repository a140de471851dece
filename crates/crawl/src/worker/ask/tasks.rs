//! What is to be fetched or looked at, and what came of it: the words between the worker and
//! its threads.
//!
//! Invariant: a task carries the lease that allows it, so that nothing is asked for under
//! a lease that is over.

use crate::carrydown::opened;
use crate::extract::ExtractNotes;
use crate::fetch::{Bandwidth, FollowedChain, Outcome};
use crate::frontier::HostKey;
use crate::job::JobWork;
use crate::login::sequence::LoginOutcome;
use crate::login::session::Session;
use crate::repository::LookResult;
use crate::worker::leases::check::LeaseKey;
use crate::worker::read::ParsedDocument;
use std::sync::Arc;
use store::ids::Part;
use store::tables::carrydown::Data;
use store::tables::documents::Document;
use store::tables::queue::Entry;

/// A document that was claimed, and what is known of it.
pub struct ClaimedDocument {
    pub entry: Entry,
    pub known: Option<Box<Document>>,
    /// The lease it was claimed under.
    pub token: i64,
    /// Why it is too far from every seed, if it is.
    pub too_far: Option<String>,
    /// What it was handed by those that lead to it.
    pub data: Data,
}

impl ClaimedDocument {
    /// The lease it was claimed under, of a part.
    pub fn lease(&self, part: Part) -> LeaseKey {
        LeaseKey { part, token: self.token }
    }
}

pub enum Task {
    Robots(RobotsTask),
    Document(Box<DocumentTask>),
    /// A session with a site.
    Login(Box<LoginTask>),
}

impl Task {
    /// The lease that allows it.
    pub fn lease(&self) -> LeaseKey {
        let (host, token) = match self {
            Task::Robots(task) => (task.host, task.token),
            Task::Document(task) => (task.host, task.claimed.token),
            Task::Login(task) => (task.host, task.token),
        };
        LeaseKey { part: host.part, token }
    }
}

/// robots.txt of an origin.
pub struct RobotsTask {
    /// Whose turn it takes.
    pub host: HostKey,
    /// Scheme, host and port.
    pub origin: String,
    pub job: Arc<JobWork>,
    /// The lease of the part.
    pub token: i64,
    /// How fast it may be read.
    pub bandwidth: Option<Arc<Bandwidth>>,
}

/// A login, on the way to a document.
pub struct LoginTask {
    /// Whose turn it takes.
    pub host: HostKey,
    pub job: Arc<JobWork>,
    /// The lease of the part.
    pub token: i64,
    /// The document that asked for it.
    pub document: String,
    /// The number of the session.
    pub number: i64,
}

/// What came of a login.
pub struct LoginDone {
    pub task: Box<LoginTask>,
    /// What came of it.
    pub walked: LoginOutcome,
    pub began_ms: i64,
    pub ended_ms: i64,
}

/// A document to fetch.
pub struct DocumentTask {
    /// Whose turn it takes.
    pub host: HostKey,
    pub claimed: ClaimedDocument,
    pub job: Arc<JobWork>,
    /// How fast it may be read.
    pub bandwidth: Option<Arc<Bandwidth>>,
    /// The session that it needs, as far as there is one.
    pub session: Option<Arc<Session>>,
}

/// What came of a document.
pub struct DocumentDone {
    pub task: Box<DocumentTask>,
    pub outcome: Outcome,
    /// What it says, if there was a body.
    pub reading: Option<ParsedDocument>,
    /// It is not the document, but asks for a login.
    pub asks_login: bool,
    /// What a bug of this program said, if one ended it.
    pub internal: Option<String>,
    pub began_ms: i64,
    pub ended_ms: i64,
}

/// What came of robots.txt.
pub struct RobotsDone {
    pub task: RobotsTask,
    pub followed: FollowedChain,
    pub began_ms: i64,
    pub ended_ms: i64,
}

/// What a connector found.
pub struct LookedDone {
    pub task: Box<DocumentTask>,
    pub looked: LookResult,
    /// What is known of it beside its facts.
    pub notes: ExtractNotes,
    pub began_ms: i64,
    pub ended_ms: i64,
}

/// What fetching threads report.
pub enum FetchReport {
    /// Of a document that is not on the web.
    Looked(Box<LookedDone>),
    Robots(Box<RobotsDone>),
    Document(Box<DocumentDone>),
    Login(Box<LoginDone>),
    /// Of something that was not asked for, because others may be asking for it.
    NotAsked(Task),
    /// Of something that was not asked for, because its address is asked enough: it may be after
    /// this time.
    NotYet(Task, i64),
}

impl DocumentTask {
    /// Whether the job has read it before, in an earlier run or at an earlier look of a
    /// continuous one, and does not want to read it again.
    fn is_recheck(&self) -> bool {
        let (run, continuous) = (self.job.run, self.job.definition.continuous);
        self.claimed.entry.done_run.is_some_and(|done_run| done_run < run || continuous)
    }

    /// Whether it is enough to hear that a document is as it was: outputs have it, its bytes
    /// are there if they are wanted, it is what it was to them, and it was read by the rules that
    /// hold now.
    pub(crate) fn may_be_same(&self, known: &Document) -> bool {
        let lacks_body = self.job.settings.bodies && known.body_chunk.is_none();
        let web = self.job.web();
        let same = opened(known.version.as_deref(), &self.claimed.data)
            .map(|version| version.filter(|it| !it.is_empty()))
            .is_some_and(|version| web.is_none_or(|web| web.was_read_alike(version)));
        let same = same && known.role == self.job.role_after(&self.claimed.entry, known);
        self.is_recheck() && crate::compare::is_live(known) && !lacks_body && same
    }
}
