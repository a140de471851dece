//! What the worker does about logins: a document that needs a session waits for it, and of all
//! processes one logs in.
//!
//! Relies on `login` for the way through a site's pages and on the tables of sessions and
//! events, so that of all processes one logs in and all use what comes of it.

use crate::fetch::Outcome;
use crate::frontier::HostKey;
use crate::job::JobWork;
use crate::login::sequence::LoginRequest;
use crate::login::session::Session;
use crate::worker::ask::sessions::{LoginFailure, SessionAccess, UnsavedSession};
use crate::worker::ask::tasks::{ClaimedDocument, DocumentDone, LoginDone, LoginTask, Task};
use crate::worker::finish::{self, LeftForLater};
use crate::worker::{FrontierItem, Worker};
use std::sync::Arc;
use store::ids::QueueId;
use store::tables::history::Activity;
use store::tables::queue::{Reason, ReasonCode};
use store::tables::sessions::{self, StoredSession};
use store::{Result, clock, tables::events};

impl Worker {
    /// How a document may be asked for now.
    pub(crate) fn access(&mut self, job: &JobWork, docid: &str) -> Result<SessionAccess> {
        if job.login_event(docid).is_none() {
            return Ok(SessionAccess::Open);
        }
        self.look_for_session(job, docid, None)?;
        Ok(self.hosts.sessions().access(job.connection, clock::now_ms()))
    }

    /// Learns of a connection's session from the tables, if it must; `used` is one that does not
    /// do.
    fn look_for_session(&mut self, job: &JobWork, docid: &str, used: Option<i64>) -> Result<()> {
        let Some(login) = job.web().and_then(|web| web.login_for(docid)) else { return Ok(()) };
        let connection = job.connection;
        if !self.hosts.sessions().is_unknown(connection, &login.hash, used) {
            return Ok(());
        }
        let stored = self.deps.db.read(move |tx| sessions::find(tx, connection))?;
        let (stored, retry_ms) = (stored.unwrap_or_default(), job.settings.patience.retry_ms);
        self.hosts.sessions_mut().on_stored(connection, &login.hash, stored, retry_ms);
        Ok(())
    }

    /// A document was had, or something else came instead.
    pub(crate) fn prove_session(&mut self, done: &DocumentDone) {
        if let (Some(session), Outcome::Body(_) | Outcome::NotModified(_)) =
            (&done.task.session, &done.outcome)
        {
            session.proves_good();
            let (connection, id) = (done.task.job.connection, done.task.claimed.entry.id);
            self.hosts.sessions_mut().on_had(connection, id);
        }
    }

    /// A document asks for a login: it waits for one, which somebody begins.
    pub(crate) fn on_login_asked(&mut self, done: DocumentDone) -> Result<()> {
        let (host, job) = (done.task.host, done.task.job.clone());
        let row = finish::login_activity(&self.deps.ids, &done);
        self.places.note_history(job.place(host.part), [row]);
        let claimed = done.task.claimed;
        let docid = claimed.entry.docid.clone();
        let used = done.task.session.as_ref().map_or(0, |session| session.number);
        let known = match self.look_for_session(&job, &docid, Some(used)) {
            Err(error) if !error.passes() => return Err(error),
            known => known.is_ok(),
        };
        let Some(event) = job.login_event(&docid).filter(|_| known) else {
            self.give_back(host.part, FrontierItem::new(job.id, claimed));
            return Ok(());
        };
        let until_ms = clock::now_ms() + job.settings.patience.retry_ms;
        let (connection, id) = (job.connection, claimed.entry.id);
        let why = self.hosts.sessions_mut().refuse_login(connection, id, used, until_ms);
        if let Some(why) = why {
            let why =
                LeftForLater { reason: Reason::known(ReasonCode::Login, Some(why)), until_ms: 0 };
            let class = self.settle(host.part, &job, id, 0, |at, batch| {
                finish::later(at, batch, &job, claimed, why)
            });
            self.on_finished(&job, &class, &docid);
            return Ok(());
        }
        let token = claimed.token;
        let begins = self.try_to_begin_login(&job, &event, id, used)?;
        self.wait_for(host, &job, claimed, event);
        if begins {
            self.frontier.close(host, true);
            let number = used + 1;
            let task = LoginTask { host, job, token, document: docid, number };
            self.threads.fetch(Task::Login(Box::new(task)));
        }
        Ok(())
    }

    /// Tries to be the one of all processes that logs in.
    fn try_to_begin_login(
        &mut self,
        job: &JobWork,
        event: &str,
        document: QueueId,
        used: i64,
    ) -> Result<bool> {
        if !self.hosts.sessions().may_begin(job.connection, used) {
            return Ok(false);
        }
        let (node, now_ms, event) = (self.deps.ids.node(), clock::now_ms(), event.to_owned());
        match self.deps.db.write(move |tx| events::begin(tx, &event, node, now_ms)) {
            Ok(begun) => {
                self.hosts.sessions_mut().on_begun(job.connection, document, used, begun);
                Ok(begun)
            }
            Err(error) if error.passes() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A document goes back, to wait for an event.
    pub(crate) fn wait_for(
        &mut self,
        host: HostKey,
        job: &JobWork,
        claimed: ClaimedDocument,
        event: String,
    ) {
        if self.parts.holds(claimed.lease(host.part)) {
            self.places.wait_for(job.place(host.part), claimed.entry.id, event);
        }
        self.give_back(host.part, FrontierItem::new(job.id, claimed));
    }

    /// A login has ended, one way or the other.
    pub(crate) fn on_login(&mut self, done: LoginDone) {
        let LoginDone { task, walked, began_ms, ended_ms } = done;
        let (host, job) = (task.host, &task.job);
        if self.parts.has(host.part) {
            let failure = walked.outcome.as_ref().err();
            let count = walked.requests.len();
            let rows = walked.requests.iter().enumerate().map(|(n, request)| {
                let failure = failure.filter(|_| n + 1 == count).cloned();
                Activity {
                    description: failure,
                    ..activity(self.deps.ids.next(), job, request, began_ms)
                }
            });
            let rows: Vec<Activity> = rows.collect();
            self.places.note_history(job.place(host.part), rows);
        }
        let login = job.web().and_then(|web| web.login_for(&task.document));
        let Some(login) = login.map(|login| login.hash.clone()) else { return };
        let before = self.hosts.sessions().session(job.connection);
        let (session, failed) = match walked.outcome {
            Ok(session) => (Arc::new(session), None),
            Err(why) => {
                let why = format!("the login failed {why}");
                self.deps.progress.troubled(
                    job.run_key(),
                    ReasonCode::Login.name(),
                    &task.document,
                );
                (before.unwrap_or_else(|| Arc::new(Session::new(0))), Some((ended_ms, why)))
            }
        };
        let stored = StoredSession {
            login,
            number: session.number,
            cookies: session.cookies().unwrap_or_default(),
            since_ms: ended_ms,
            failed: failed.clone(),
        };
        let retry_ms = job.settings.patience.retry_ms;
        let failure = failed.map(|(at_ms, why)| LoginFailure { until_ms: at_ms + retry_ms, why });
        self.hosts.sessions_mut().on_logged_in(job.connection, session, failure);
        self.end_login(&task, Some(stored));
    }

    /// A login is over, or was not begun after all: whoever waits for it may go on.
    pub(crate) fn end_login(&mut self, task: &LoginTask, stored: Option<StoredSession>) {
        let connection = task.job.connection;
        self.hosts.sessions_mut().on_over(connection);
        self.frontier.close(task.host, false);
        if let Some(event) = task.job.login_event(&task.document) {
            self.hosts.sessions_mut().push_unsaved(UnsavedSession { connection, event, stored });
        }
        self.save_sessions();
        self.schedule.want();
    }

    /// Writes what has come of logins; what the tables do not take now they take later.
    pub(crate) fn save_sessions(&mut self) {
        let node = self.deps.ids.node();
        for unsaved in self.hosts.sessions_mut().take_unsaved() {
            let UnsavedSession { connection, event, stored } = unsaved.clone();
            let saved = self.deps.db.write(move |tx| {
                if let Some(stored) = &stored {
                    sessions::save(tx, connection, stored)?;
                }
                events::complete(tx, &event, node)
            });
            if saved.is_err() {
                self.hosts.sessions_mut().push_unsaved(unsaved);
            }
        }
    }
}

/// One request of a login, for the history.
fn activity(id: i64, job: &JobWork, request: &LoginRequest, began_ms: i64) -> Activity {
    Activity {
        id,
        connection: job.connection,
        job: Some(job.id),
        kind: ReasonCode::Login.name().to_owned(),
        entity: request.url.clone(),
        bytes: None,
        result: Some(request.result.clone()),
        description: None,
        start_ms: began_ms + request.began_ms,
        end_ms: began_ms + request.ended_ms,
    }
}
