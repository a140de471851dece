//! The sessions of the connections that are worked on: which there are, who logs in for them, and
//! which login would bring nothing.
//!
//! Invariants: while somebody here logs in, what needs the session waits; a login that brings
//! nothing is not repeated for the sake of the same document.

use crate::login::session::Session;
use std::collections::HashMap;
use std::sync::Arc;
use store::ids::{ConnectionId, QueueId};
use store::tables::sessions::StoredSession;

/// Logins under way at once.
pub const LOGINS_MAX: usize = 16;
/// Documents that are remembered for having asked for a login, for each connection.
const ASKERS_MAX: usize = 10_000;

/// The sessions of this process.
#[derive(Default)]
pub struct Sessions {
    connections: HashMap<ConnectionId, ConnectionSession>,
    /// What the tables have not taken yet.
    unsaved: Vec<UnsavedSession>,
}

/// What is known of a connection's session.
struct ConnectionSession {
    /// The login by which it was begun, as a hash of its definition.
    login: String,
    session: Arc<Session>,
    failure: Option<LoginFailure>,
    /// Somebody here logs in.
    is_busy: bool,
    /// Documents that have asked for a login, and in which session.
    askers: HashMap<QueueId, i64>,
}

/// Why the last login failed, and until when none is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginFailure {
    pub until_ms: i64,
    pub why: String,
}

/// A session that has begun, or not; and the event that ends with it.
#[derive(Clone)]
pub struct UnsavedSession {
    pub connection: ConnectionId,
    pub event: String,
    pub stored: Option<StoredSession>,
}

/// How a document may be asked for.
pub enum SessionAccess {
    /// The document needs no session.
    Open,
    In(Arc<Session>),
    /// When somebody has logged in.
    Waits,
    /// A login has failed.
    Failed(LoginFailure),
}

impl Sessions {
    /// How a document of a connection may be asked for that needs a session.
    pub fn access(&self, connection: ConnectionId, now_ms: i64) -> SessionAccess {
        match self.connections.get(&connection) {
            None => SessionAccess::Open,
            Some(known) if known.is_busy => SessionAccess::Waits,
            Some(ConnectionSession { failure: Some(failure), .. }) if now_ms < failure.until_ms => {
                SessionAccess::Failed(failure.clone())
            }
            Some(known) => SessionAccess::In(known.session.clone()),
        }
    }

    /// Whether the tables must be asked for a connection's session: once, and again when the one
    /// that was used does not do.
    pub fn is_unknown(&self, connection: ConnectionId, login: &str, used: Option<i64>) -> bool {
        let known = self.connections.get(&connection).filter(|it| it.login == login);
        known.is_none_or(|it| used.is_some_and(|used| it.session.number <= used))
    }

    /// Takes over what the tables know, unless more is known here. A login that has failed is
    /// tried again after `retry_ms`.
    pub fn on_stored(
        &mut self,
        connection: ConnectionId,
        login: &str,
        stored: StoredSession,
        retry_ms: i64,
    ) {
        let known = self.connections.get(&connection);
        let is_newest =
            known.is_some_and(|it| it.login == login && it.session.number >= stored.number);
        if is_newest {
            return;
        }
        let is_same = stored.login == login;
        let cookies = if is_same { stored.cookies.as_str() } else { "" };
        let failure = stored.failed.filter(|_| is_same);
        let known = ConnectionSession {
            login: login.to_owned(),
            session: Arc::new(Session::restore(stored.number, cookies)),
            failure: failure.map(|(at_ms, why)| LoginFailure { until_ms: at_ms + retry_ms, why }),
            is_busy: known.is_some_and(|it| it.is_busy),
            askers: HashMap::new(),
        };
        self.connections.insert(connection, known);
    }

    /// A document was had in a connection's session.
    pub fn on_had(&mut self, connection: ConnectionId, document: QueueId) {
        if let Some(known) = self.connections.get_mut(&connection) {
            known.askers.remove(&document);
        }
    }

    /// A document that was asked for in session number `used` asks for a login. Decides whether
    /// another one would bring nothing, and says why; then none is tried before `until_ms`, if
    /// it was the session's first document.
    pub fn refuse_login(
        &mut self,
        connection: ConnectionId,
        document: QueueId,
        used: i64,
        until_ms: i64,
    ) -> Option<&'static str> {
        let known = self.connections.get_mut(&connection)?;
        if used == 0 || known.session.number != used || known.is_busy {
            return None;
        }
        if known.session.is_unproven() {
            let why = "the site asks for a login right after one";
            // The next try is a login again, but not at once.
            known.session.proves_good();
            known.failure = Some(LoginFailure { until_ms, why: why.to_owned() });
            return Some(why);
        }
        let asked = known.askers.get(&document).copied();
        asked
            .filter(|asked| *asked < used)
            .map(|_| "it asks for a login again, which other documents do not")
    }

    /// Whether this process may log in because session number `used` does not do.
    pub fn may_begin(&self, connection: ConnectionId, used: i64) -> bool {
        let under_way = self.connections.values().filter(|known| known.is_busy).count();
        let known = self.connections.get(&connection);
        let is_wanted = known.is_some_and(|it| !it.is_busy && it.session.number <= used);
        is_wanted && under_way < LOGINS_MAX
    }

    /// This process logs in for the sake of a document, or another one does.
    pub fn on_begun(
        &mut self,
        connection: ConnectionId,
        document: QueueId,
        used: i64,
        is_here: bool,
    ) {
        let Some(known) = self.connections.get_mut(&connection) else { return };
        known.is_busy = is_here;
        if known.askers.len() >= ASKERS_MAX {
            known.askers.clear();
        }
        known.askers.insert(document, used);
    }

    pub fn session(&self, connection: ConnectionId) -> Option<Arc<Session>> {
        self.connections.get(&connection).map(|known| known.session.clone())
    }

    /// What has come of a login.
    pub fn on_logged_in(
        &mut self,
        connection: ConnectionId,
        session: Arc<Session>,
        failure: Option<LoginFailure>,
    ) {
        if let Some(known) = self.connections.get_mut(&connection) {
            (known.session, known.failure) = (session, failure);
        }
    }

    /// A login is over: whoever waits for it may go on, once the tables have it.
    pub fn on_over(&mut self, connection: ConnectionId) {
        if let Some(known) = self.connections.get_mut(&connection) {
            known.is_busy = false;
        }
    }

    /// The tables are to take this.
    pub fn push_unsaved(&mut self, unsaved: UnsavedSession) {
        self.unsaved.push(unsaved);
    }

    pub fn take_unsaved(&mut self) -> Vec<UnsavedSession> {
        std::mem::take(&mut self.unsaved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: ConnectionId = ConnectionId(1);
    const PAGE: QueueId = QueueId(5);

    fn stored(number: i64, login: &str) -> StoredSession {
        StoredSession { login: login.to_owned(), number, ..StoredSession::default() }
    }

    fn sessions(number: i64) -> Sessions {
        let mut sessions = Sessions::default();
        sessions.on_stored(SITE, "a", stored(number, "a"), 100);
        sessions
    }

    fn used(access: &SessionAccess) -> Option<i64> {
        match access {
            SessionAccess::In(session) => Some(session.number),
            _ => None,
        }
    }

    #[test]
    fn the_tables_are_asked_once_and_again_when_a_session_does_not_do() {
        let mut sessions = Sessions::default();
        assert!(matches!(sessions.access(SITE, 0), SessionAccess::Open));
        assert!(sessions.is_unknown(SITE, "a", None));
        sessions.on_stored(SITE, "a", stored(3, "a"), 100);
        assert!(!sessions.is_unknown(SITE, "a", None) && sessions.is_unknown(SITE, "b", None));
        assert!(
            sessions.is_unknown(SITE, "a", Some(3)) && !sessions.is_unknown(SITE, "a", Some(2))
        );
        sessions.on_stored(SITE, "a", stored(2, "a"), 100);
        assert_eq!(used(&sessions.access(SITE, 0)), Some(3), "more is known here");
    }

    #[test]
    fn one_logs_in_and_the_others_wait() {
        let mut sessions = sessions(3);
        assert!(!sessions.may_begin(SITE, 2), "another session has begun since");
        assert!(sessions.may_begin(SITE, 3));
        sessions.on_begun(SITE, PAGE, 3, true);
        assert!(
            !sessions.may_begin(SITE, 3)
                && matches!(sessions.access(SITE, 0), SessionAccess::Waits)
        );
        assert_eq!(sessions.refuse_login(SITE, PAGE, 3, 900), None, "it is under way");
        sessions.on_logged_in(SITE, Arc::new(Session::new(4)), None);
        sessions.on_over(SITE);
        assert_eq!(used(&sessions.access(SITE, 0)), Some(4));
    }

    #[test]
    fn a_site_that_asks_right_after_a_login_is_not_logged_in_to_at_once() {
        let mut sessions = sessions(3);
        sessions.on_logged_in(SITE, Arc::new(Session::new(4)), None);
        let refused = sessions.refuse_login(SITE, PAGE, 4, 900);
        assert_eq!(refused, Some("the site asks for a login right after one"));
        assert!(
            matches!(sessions.access(SITE, 899), SessionAccess::Failed(it) if it.until_ms == 900)
        );
        assert_eq!(used(&sessions.access(SITE, 900)), Some(4));
        assert_eq!(sessions.refuse_login(SITE, PAGE, 4, 1_800), None, "then it is tried again");
    }

    #[test]
    fn a_document_that_asks_in_session_after_session_is_no_reason_for_a_login() {
        let mut sessions = sessions(3);
        sessions.on_begun(SITE, PAGE, 3, false);
        let session = Session::new(4);
        session.proves_good();
        sessions.on_logged_in(SITE, Arc::new(session), None);
        assert!(sessions.refuse_login(SITE, PAGE, 4, 900).is_some());
        assert_eq!(sessions.refuse_login(SITE, QueueId(6), 4, 900), None, "another document");
        sessions.on_had(SITE, PAGE);
        assert_eq!(sessions.refuse_login(SITE, PAGE, 4, 900), None, "it was had since");
    }
}
