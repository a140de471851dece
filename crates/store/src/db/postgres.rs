//! PostgreSQL connections, each on a thread of its own: the driver blocks, and it
//! panics when called inside an async task.
//!
//! Invariants: a transaction that lost against another (40001, 40P01) runs again;
//! one whose connection broke before its commit runs again once on a fresh
//! connection; one whose connection broke during its commit is reported as
//! unknown, never as failed.

use super::{ATTEMPTS_MAX, RequestQueues, Threads, Work, committable, next};
use crate::tx::{Own, Statements};
use crate::{Error, Result, Tx};
use postgres::config::Host;
use postgres::{Client, Config, IsolationLevel, NoTls};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Where PostgreSQL listens unless it is told otherwise.
const PORT_DEFAULT: u16 = 5432;
const WRITERS: usize = 4;
const READERS: usize = 2;
/// How long a connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// What every session asks of the server. A process that is frozen or cut off must
/// not keep its row locks, or nobody could take over its parts. Its connections may wait
/// for each other, so that their times add up: the limit is short. A commit is durable
/// whatever the server's default. Options of the database URL come after these and win.
const SESSION: &str = "-c idle_in_transaction_session_timeout=5s -c lock_timeout=20s \
                       -c statement_timeout=120s -c synchronous_commit=on";
/// A silent connection is probed after this long.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// A connection whose bytes nobody acknowledges is given up after this long.
const UNANSWERED_MAX: Duration = Duration::from_secs(20);
/// First wait after a conflict; it doubles with every further one.
const BACKOFF: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Read,
    Write,
}

/// A connection with its prepared statements; they die together.
struct PreparedClient {
    client: Client,
    statements: Statements,
}

/// Reads a connection string or URL.
pub(super) fn config(url: &str) -> Result<Config> {
    url.parse().map_err(|error: postgres::Error| {
        Error::Refused(format!(
            "the database URL cannot be read: {error}; it looks like postgres://user@host/name"
        ))
    })
}

/// The network addresses of the servers; one whose name has none is left out.
pub(super) fn addresses(config: &Config) -> Vec<SocketAddr> {
    let ports = config.get_ports();
    let mut found = Vec::new();
    for (index, host) in config.get_hosts().iter().enumerate() {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(PORT_DEFAULT);
        if let Host::Tcp(name) = host {
            found.extend((name.as_str(), port).to_socket_addrs().into_iter().flatten());
        }
    }
    found
}

pub(super) fn start(
    mut config: Config,
    writes: RequestQueues,
    reads: RequestQueues,
) -> Result<Threads> {
    let options = format!("{SESSION} {}", config.get_options().unwrap_or_default());
    config
        .connect_timeout(CONNECT_TIMEOUT)
        .application_name("driftline")
        .options(&options)
        .keepalives_idle(KEEPALIVE_IDLE)
        .tcp_user_timeout(UNANSWERED_MAX);
    // The first connection tells the caller at once if there is nothing to reach.
    let first = connect(&config)?;
    let mut first = Some(first);
    let mut threads = Threads::default();
    for (mode, count, incoming) in [(Mode::Write, WRITERS, writes), (Mode::Read, READERS, reads)] {
        for _ in 0..count {
            let (config, incoming, open) = (config.clone(), incoming.clone(), first.take());
            let thread = std::thread::Builder::new()
                .name("postgres".into())
                .spawn(move || serve(&config, mode, open, &incoming))
                .map_err(|error| Error::io("postgres", error))?;
            match mode {
                Mode::Write => threads.writers.push(thread),
                Mode::Read => threads.readers.push(thread),
            }
        }
    }
    Ok(threads)
}

fn connect(config: &Config) -> Result<PreparedClient> {
    let client = config.connect(NoTls).map_err(|error| match Error::from(error) {
        Error::Statement { reason } => Error::Unavailable { what: "PostgreSQL".into(), reason },
        other => other,
    })?;
    Ok(PreparedClient { client, statements: Statements::new() })
}

fn serve(config: &Config, mode: Mode, mut open: Option<PreparedClient>, incoming: &RequestQueues) {
    while let Some(mut work) = next(incoming) {
        let outcome = run_until_settled(config, mode, &mut open, work.as_mut());
        work.finish(outcome);
    }
}

fn run_until_settled(
    config: &Config,
    mode: Mode,
    slot: &mut Option<PreparedClient>,
    work: &mut dyn Work,
) -> Result<()> {
    let mut backoff = BACKOFF;
    let mut attempt = 1;
    loop {
        // A connection from an earlier request may have died since, unnoticed.
        let reused = slot.is_some();
        let mut open = match slot.take() {
            Some(open) => open,
            None => connect(config)?,
        };
        let outcome = run_once(&mut open, mode, work);
        if !open.client.is_closed() {
            *slot = Some(open);
        }
        match outcome {
            Err(Error::Conflict { .. }) if attempt < ATTEMPTS_MAX => {
                std::thread::park_timeout(backoff);
                backoff *= 2;
            }
            Err(Error::Unavailable { .. }) if reused && attempt < ATTEMPTS_MAX => {}
            settled => return settled,
        }
        attempt += 1;
    }
}

fn run_once(open: &mut PreparedClient, mode: Mode, work: &mut dyn Work) -> Result<()> {
    let level = match mode {
        // Writers take row locks first (the lease row, the counter row), so each
        // statement should see what was committed while it waited for them.
        Mode::Write => IsolationLevel::ReadCommitted,
        Mode::Read => IsolationLevel::RepeatableRead,
    };
    let transaction = open
        .client
        .build_transaction()
        .isolation_level(level)
        .read_only(mode == Mode::Read)
        .start()?;
    let mut tx = Tx::Postgres {
        transaction,
        statements: &mut open.statements,
        failed: None,
        own: Own::default(),
    };
    let outcome = work.run(&mut tx);
    match mode {
        Mode::Read => outcome?,
        Mode::Write => committable(&tx, outcome)?,
    }
    let Tx::Postgres { transaction, .. } = tx else {
        unreachable!("this function made a PostgreSQL transaction");
    };
    transaction.commit().map_err(|error| match Error::from(error) {
        Error::Unavailable { reason, .. } if mode == Mode::Write => Error::CommitUnknown { reason },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_tells_where_the_server_listens() {
        let of = |url: &str| addresses(&config(url).unwrap());
        assert_eq!(of("postgres://u@127.0.0.1:6000/d"), ["127.0.0.1:6000".parse().unwrap()]);
        assert_eq!(of("postgres://u@127.0.0.1/d"), ["127.0.0.1:5432".parse().unwrap()]);
        assert_eq!(of("host=/run/postgresql user=u"), []);
        assert!(config("postgres://u@h:port/").is_err());
    }
}
