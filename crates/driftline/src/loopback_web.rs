//! A small web on loopback, for the demo and for tests: many hosts behind one port,
//! answered by one function, with a log of every visit.
//!
//! HTTP/1.1 without TLS; whoever asks is trusted to be a crawler of ours, but not to
//! be well behaved: heads, connections and waits are bounded. One thread accepts for
//! each address, one serves each connection, and all of them sleep while nobody asks.
//! Invariant: a dropped `Web` has closed its port and ended its threads.

mod answer;
mod connection;
mod gate;
mod log;
mod request;
#[cfg(test)]
mod tests;

pub use self::answer::{Answer, Fault};
pub use self::log::Visit;
pub use self::request::Request;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use self::gate::Gate;
use self::log::Log;

/// Ports that are tried when several addresses must share a free one.
const PORT_TRIES: usize = 20;
/// How long stopping waits for the threads of connections.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How long the call that wakes a listening thread may take.
const WAKE_WAIT: Duration = Duration::from_secs(1);
/// Enough for an answer that is made of a few formatted texts.
const STACK_BYTES: usize = 512 * 1024;

/// Where a web is served and where its visits are written.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Loopback addresses to listen on, all at the same port. On Linux every address
    /// of 127.0.0.0/8 is there without being set up, so a test that runs the program
    /// itself can have many hosts without names.
    pub addresses: Vec<Ipv4Addr>,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// A file that gets a line when a request begins and another when it ends, as
    /// they happen: `begin ID MICROSECONDS HOST PATH c|u` (conditional or not) and
    /// `end ID MICROSECONDS STATUS`.
    pub log_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { addresses: vec![Ipv4Addr::LOCALHOST], port: 0, log_file: None }
    }
}

/// What answers: called on many threads at once.
type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// What the threads of a web have in common.
struct WebState {
    handler: Box<Handler>,
    log: Log,
    gate: Gate,
}

/// A web that is being served until it is dropped.
pub struct Web {
    port: u16,
    shared: Arc<WebState>,
    listening: Vec<(SocketAddr, JoinHandle<()>)>,
}

impl Web {
    /// Serves on 127.0.0.1, at a free port.
    pub fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> io::Result<Web> {
        Web::start_with(&Settings::default(), handler)
    }

    pub fn start_with(
        settings: &Settings,
        handler: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Web> {
        let listeners = listen(settings)?;
        let port = match listeners.first() {
            Some(listener) => listener.local_addr()?.port(),
            None => return Err(io::Error::other("a web needs an address to listen on")),
        };
        let log = Log::open(settings.log_file.as_deref())?;
        let shared = Arc::new(WebState { handler: Box::new(handler), log, gate: Gate::default() });
        let mut web = Web { port, shared, listening: Vec::new() };
        for listener in listeners {
            let address = listener.local_addr()?;
            let shared = web.shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("web {address}"))
                .stack_size(STACK_BYTES)
                .spawn(move || accept(&listener, &shared))?;
            web.listening.push((address, thread));
        }
        Ok(web)
    }

    /// The port of every host.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a path of a host.
    pub fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// The visits that ended, in that order; the oldest may have been forgotten.
    pub fn visits(&self) -> Vec<Visit> {
        self.shared.log.visits()
    }

    /// The visits that ended, which are then forgotten.
    pub fn take_visits(&self) -> Vec<Visit> {
        self.shared.log.take_visits()
    }

    /// How many visits ever ended, forgotten ones included.
    pub fn visits_count(&self) -> u64 {
        self.shared.log.ended()
    }

    /// Waits until so many visits have ended since the start, and says whether they
    /// have within the time.
    pub fn wait_for_visits(&self, count: u64, at_most: Duration) -> bool {
        self.shared.log.wait_for(count, at_most)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.shared.gate.stop();
        for (address, thread) in self.listening.drain(..) {
            // A thread in accept() wakes for nothing but a connection. One that cannot
            // be woken is left behind rather than waited for.
            if TcpStream::connect_timeout(&address, WAKE_WAIT).is_ok() || thread.is_finished() {
                let _ = thread.join();
            }
        }
        self.shared.gate.wait_empty(STOP_WAIT);
    }
}

/// Binds every address at one port.
fn listen(settings: &Settings) -> io::Result<Vec<TcpListener>> {
    let Some((first, others)) = settings.addresses.split_first() else {
        return Ok(Vec::new());
    };
    if let Some(outside) = settings.addresses.iter().find(|address| !address.is_loopback()) {
        return Err(io::Error::other(format!("{outside} is not a loopback address")));
    }
    let mut tries = 0;
    loop {
        let mut listeners = vec![TcpListener::bind((*first, settings.port))?];
        let port = listeners[0].local_addr()?.port();
        let rest: io::Result<Vec<TcpListener>> =
            others.iter().map(|address| TcpListener::bind((*address, port))).collect();
        tries += 1;
        match rest {
            Ok(rest) => {
                listeners.extend(rest);
                return Ok(listeners);
            }
            // Free at the first address is not yet free at the next.
            Err(error) => {
                let may_try = settings.port == 0 && error.kind() == io::ErrorKind::AddrInUse;
                if !may_try || tries >= PORT_TRIES {
                    return Err(error);
                }
            }
        }
    }
}

/// Takes connections in until the gate is closed.
fn accept(listener: &TcpListener, shared: &Arc<WebState>) {
    loop {
        let accepted = listener.accept();
        if shared.gate.is_stopping() {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Usually a lack of file descriptors, which passes.
            shared.gate.pause(Duration::from_millis(20));
            continue;
        };
        let Some(number) = shared.gate.enter(stream) else { return };
        let serving = shared.clone();
        let spawned = std::thread::Builder::new()
            .name(format!("web visitor {number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || connection::serve(&serving, number));
        if spawned.is_err() {
            shared.gate.leave(number);
        }
    }
}
