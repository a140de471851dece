//! Sessions of the connections that are worked on: which there are, who logs in for them, and
//! what waits meanwhile.
//!
//! Relies on `login` for the way through a site's pages and on the tables of sessions and
//! events, so that of all processes one logs in and all use what comes of it. Invariants:
//! while somebody logs in, what needs the session waits; a login that brings nothing is
//! not repeated for the sake of the same document.

use super::Item;
use super::Worker;
use super::finish;
use super::job::JobWork;
use super::tasks::{DocumentDone, LoginDone, LoginTask, Task};
use crate::fetch::Outcome;
use crate::frontier::HostKey;
use crate::login::sequence::Asked;
use crate::login::session::Session;
use std::collections::HashMap;
use std::sync::Arc;
use store::ids::{ConnectionId, QueueId};
use store::tables::history::Activity;
use store::tables::queue::Reason;
use store::tables::sessions::{self, Stored};
use store::{Result, tables::events};

/// Logins under way at once.
pub(super) const LOGINS_MAX: usize = 16;
/// Documents that are remembered for having asked for a login, for each connection.
const ASKERS_MAX: usize = 10_000;
/// The code of what cannot be had because there is no session.
const CODE: &str = "login";

/// The sessions of this process.
#[derive(Default)]
pub(super) struct Sessions {
    by: HashMap<ConnectionId, Known>,
    /// What the tables have not taken yet.
    unsaved: Vec<Unsaved>,
}

/// What is known of a connection's session.
struct Known {
    /// How it was begun.
    login: String,
    session: Arc<Session>,
    /// Until when no login is tried again, and why the last one failed.
    failed: Option<(i64, String)>,
    /// Somebody here logs in.
    is_busy: bool,
    /// Documents that have asked for a login, and in which session.
    askers: HashMap<QueueId, i64>,
}

/// A session that has begun, or not; and the event that ends with it.
struct Unsaved {
    connection: ConnectionId,
    event: String,
    stored: Option<Stored>,
}

/// How a document may be asked for.
pub(super) enum Access {
    /// As it is.
    Open,
    /// In a session.
    In(Arc<Session>),
    /// When somebody has logged in.
    Waits(String),
    /// Not before a time: a login has failed.
    Failed(i64, String),
}

impl Worker {
    /// How a document may be asked for now.
    pub(super) fn access(&mut self, job: &JobWork, docid: &str) -> Result<Access> {
        let Some(event) = job.login_event(docid) else { return Ok(Access::Open) };
        self.know(job, docid, None)?;
        let now_ms = self.now.ms();
        Ok(match self.sessions.by.get(&job.connection) {
            None => Access::Open,
            Some(known) if known.is_busy => Access::Waits(event),
            Some(Known { failed: Some((until_ms, why)), .. }) if now_ms < *until_ms => {
                Access::Failed(*until_ms, why.clone())
            }
            Some(known) => Access::In(known.session.clone()),
        })
    }

    /// Learns of a connection's session from the tables: once, and again when the one that
    /// was used does not do.
    fn know(&mut self, job: &JobWork, docid: &str, used: Option<i64>) -> Result<()> {
        let Some(login) = job.web().and_then(|web| web.login_for(docid)) else { return Ok(()) };
        let known = self.sessions.by.get(&job.connection);
        let is_known = known.is_some_and(|it| it.login == login.hash);
        let is_enough = used.is_none_or(|used| known.is_some_and(|it| it.session.number > used));
        if is_known && is_enough {
            return Ok(());
        }
        let connection = job.connection;
        let stored = self.db.read(move |tx| sessions::find(tx, connection))?;
        let stored = stored.unwrap_or_default();
        let number = stored.number;
        if is_known && known.is_some_and(|it| it.session.number >= number) {
            return Ok(());
        }
        let is_same = stored.login == login.hash;
        let cookies = if is_same { stored.cookies.as_str() } else { "" };
        let failed = stored.failed.filter(|_| is_same);
        let retry_ms = job.manners.patience.retry_ms;
        let known = Known {
            login: login.hash.clone(),
            session: Arc::new(Session::restore(number, cookies)),
            failed: failed.map(|(at_ms, why)| (at_ms + retry_ms, why)),
            is_busy: known.is_some_and(|it| it.is_busy),
            askers: HashMap::new(),
        };
        self.sessions.by.insert(connection, known);
        Ok(())
    }

    /// A document was had, or something else came instead.
    pub(super) fn proves(&mut self, done: &DocumentDone) {
        if let (Some(session), Outcome::Body(_) | Outcome::NotModified(_)) =
            (&done.task.session, &done.outcome)
        {
            session.proves_good();
            if let Some(known) = self.sessions.by.get_mut(&done.task.job.connection) {
                known.askers.remove(&done.task.claimed.entry.id);
            }
        }
    }

    /// A document asks for a login: it waits for one, which somebody begins.
    pub(super) fn asks_login(&mut self, done: DocumentDone) -> Result<()> {
        let (host, job) = (done.task.host, done.task.job.clone());
        self.finish((host.part, &job), 0, |at, batch| finish::asks_login(at, batch, &done));
        let claimed = done.task.claimed;
        let docid = claimed.entry.docid.clone();
        let used = done.task.session.as_ref().map_or(0, |session| session.number);
        let known = match self.know(&job, &docid, Some(used)) {
            Err(error) if !error.passes() => return Err(error),
            known => known.is_ok(),
        };
        let Some(event) = job.login_event(&docid).filter(|_| known) else {
            self.give_back(host.part, Item::new(job.id, claimed));
            return Ok(());
        };
        let why = self.in_vain(&job, (claimed.entry.id, used));
        if let Some(why) = why {
            let reason = Reason::new(CODE, Some(why));
            let class = self.finish((host.part, &job), 0, |at, batch| {
                finish::later(at, batch, (&job, claimed), (reason, 0))
            });
            self.finished(&job, &class, &docid);
            return Ok(());
        }
        let token = claimed.token;
        let begins = self.begins(&job, (&event, claimed.entry.id, used))?;
        self.waits(host, (&job, claimed), event);
        if begins {
            self.frontier.close(host, true);
            let number = used + 1;
            let task = LoginTask { host, job, token, document: docid, number };
            self.fetching.send(Task::Login(Box::new(task)));
        }
        Ok(())
    }

    /// Why another login would bring nothing to a document, if so.
    fn in_vain(&mut self, job: &JobWork, (id, used): (QueueId, i64)) -> Option<&'static str> {
        let until_ms = self.now.ms() + job.manners.patience.retry_ms;
        let known = self.sessions.by.get_mut(&job.connection)?;
        if used == 0 || known.session.number != used || known.is_busy {
            return None;
        }
        if known.session.is_unproven() {
            let why = "the site asks for a login right after one";
            // The next try is a login again, but not at once.
            known.session.proves_good();
            known.failed = Some((until_ms, why.to_owned()));
            return Some(why);
        }
        let asked = known.askers.get(&id).copied();
        asked
            .filter(|asked| *asked < used)
            .map(|_| "it asks for a login again, which other documents do not")
    }

    /// Whether this process is the one that logs in.
    fn begins(&mut self, job: &JobWork, (event, id, used): (&str, QueueId, i64)) -> Result<bool> {
        let under_way = self.sessions.by.values().filter(|known| known.is_busy).count();
        let Some(known) = self.sessions.by.get_mut(&job.connection) else { return Ok(false) };
        if known.is_busy || known.session.number > used || under_way >= LOGINS_MAX {
            return Ok(false);
        }
        let (node, now_ms, event) = (self.ids.node(), self.now.ms(), event.to_owned());
        match self.db.write(move |tx| events::begin(tx, &event, node, now_ms)) {
            Ok(begun) => {
                known.is_busy = begun;
                if known.askers.len() >= ASKERS_MAX {
                    known.askers.clear();
                }
                known.askers.insert(id, used);
                Ok(begun)
            }
            Err(error) if error.passes() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A document goes back, to wait for an event.
    pub(super) fn waits(
        &mut self,
        host: HostKey,
        (job, claimed): (&JobWork, super::tasks::Claimed),
        event: String,
    ) {
        let id = claimed.entry.id;
        if self.holds(host.part, claimed.token) {
            let place = self.places.entry((host.part, job.id)).or_default();
            place.batch.waits.push((id, event));
        }
        self.give_back(host.part, Item::new(job.id, claimed));
    }

    /// A login has ended, one way or the other.
    pub(super) fn logged_in(&mut self, done: LoginDone) {
        let LoginDone { task, walked, began_ms, ended_ms } = done;
        let (host, job) = (task.host, &task.job);
        if self.parts.contains_key(&host.part) {
            let failure = walked.outcome.as_ref().err().cloned();
            let rows: Vec<Activity> = walked
                .asked
                .iter()
                .enumerate()
                .map(|(n, asked)| {
                    let is_last = n + 1 == walked.asked.len();
                    self.activity(job, (asked, began_ms), failure.clone().filter(|_| is_last))
                })
                .collect();
            let place = self.places.entry((host.part, job.id)).or_default();
            place.batch.history.extend(rows);
        }
        let login = job.web().and_then(|web| web.login_for(&task.document));
        let Some(login) = login.map(|login| login.hash.clone()) else { return };
        let retry_ms = job.manners.patience.retry_ms;
        let known = self.sessions.by.get(&job.connection);
        let before = known.map(|known| known.session.clone());
        let (session, failed) = match walked.outcome {
            Ok(session) => (Arc::new(session), None),
            Err(why) => {
                let why = format!("logging in has failed {why}");
                self.progress.troubled(job.run_key(), CODE, &task.document);
                (before.unwrap_or_else(|| Arc::new(Session::new(0))), Some((ended_ms, why)))
            }
        };
        let stored = Stored {
            login,
            number: session.number,
            cookies: session.cookies().unwrap_or_default(),
            since_ms: ended_ms,
            failed: failed.clone(),
        };
        if let Some(known) = self.sessions.by.get_mut(&job.connection) {
            known.session = session;
            known.failed = failed.map(|(at_ms, why)| (at_ms + retry_ms, why));
        }
        self.login_is_over(&task, Some(stored));
    }

    /// A login is over: whoever waits for it may go on.
    fn login_is_over(&mut self, task: &LoginTask, stored: Option<Stored>) {
        if let Some(known) = self.sessions.by.get_mut(&task.job.connection) {
            known.is_busy = false;
        }
        self.frontier.close(task.host, false);
        if let Some(event) = task.job.login_event(&task.document) {
            let connection = task.job.connection;
            self.sessions.unsaved.push(Unsaved { connection, event, stored });
        }
        self.save_sessions();
        self.schedule.want();
    }

    /// A login was not begun after all.
    pub(super) fn not_logged_in(&mut self, task: &LoginTask) {
        self.login_is_over(task, None);
    }

    /// Tells the tables what has come of logins; what they do not take now they take later.
    pub(super) fn save_sessions(&mut self) {
        let node = self.ids.node();
        let unsaved = std::mem::take(&mut self.sessions.unsaved);
        for it in unsaved {
            let (connection, stored, event) = (it.connection, it.stored.clone(), it.event.clone());
            let saved = self.db.write(move |tx| {
                if let Some(stored) = &stored {
                    sessions::save(tx, connection, stored)?;
                }
                events::complete(tx, &event, node)
            });
            if saved.is_err() {
                self.sessions.unsaved.push(it);
            }
        }
    }

    fn activity(
        &self,
        job: &JobWork,
        (asked, began_ms): (&Asked, i64),
        failure: Option<String>,
    ) -> Activity {
        Activity {
            id: self.ids.next(),
            connection: job.connection,
            job: Some(job.id),
            kind: CODE.to_owned(),
            entity: asked.url.clone(),
            bytes: None,
            result: Some(asked.result.clone()),
            description: failure,
            start_ms: began_ms + asked.began_ms,
            end_ms: began_ms + asked.ended_ms,
        }
    }
}
