//! From host names to addresses, remembered for a while.
//!
//! Asks the system's resolver on a bounded number of blocking threads: it knows
//! hosts files, search domains and split horizons, and costs no further crates. What
//! it does not tell is how long an answer holds, so a fixed bound stands in. Its
//! answers are not trusted: whoever connects checks each address with its own guard,
//! connects to exactly that address, and checks the peer again.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::limits::Limits;
use super::outcome::Reason;
use store::open_files;

/// A name that could not be resolved is asked for again after this.
const FAILURE_KEPT: Duration = Duration::from_secs(30);
/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 16;

/// Who knows the addresses of names.
#[derive(Clone, Default)]
pub enum Lookup {
    /// By the resolver of the operating system.
    #[default]
    System,
    /// A function, for tests and for fixed tables.
    Given(Arc<GivenLookup>),
    /// A table, and the operating system for names that are not in it.
    Table(Arc<HashMap<String, IpAddr>>),
}

impl Lookup {
    /// Names with fixed addresses; the operating system knows the others.
    pub fn with(table: impl IntoIterator<Item = (String, IpAddr)>) -> Lookup {
        let table: HashMap<String, IpAddr> = table.into_iter().collect();
        if table.is_empty() { Lookup::System } else { Lookup::Table(Arc::new(table)) }
    }
}

/// From a name to its addresses; none if it has none.
pub type GivenLookup = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

/// Looks names up and remembers them.
pub(super) struct Resolver {
    lookup: Lookup,
    known: Mutex<HashMap<Box<str>, ResolvedAddresses>>,
    slots: Arc<Semaphore>,
    kept: Duration,
    known_max: usize,
}

/// No addresses: the name could not be resolved.
#[derive(Clone)]
struct ResolvedAddresses {
    addresses: Arc<[IpAddr]>,
    until: Instant,
}

impl Resolver {
    pub fn new(lookup: Lookup, limits: &Limits) -> Resolver {
        Resolver {
            lookup,
            known: Mutex::default(),
            slots: Arc::new(Semaphore::new(limits.lookups_max)),
            kept: limits.names_kept,
            known_max: limits.names_max,
        }
    }

    /// The addresses of a name, unchecked and at least one.
    pub async fn addresses(&self, host: &str) -> Result<Arc<[IpAddr]>, Reason> {
        let addresses = match self.remembered(host) {
            Some(addresses) => addresses,
            None => {
                let found = self.look_up(host).await;
                if found.is_empty() && open_files::are_used_up() {
                    // The resolver needs one, too, and does not say what it lacked.
                    return Err(Reason::OpenFiles);
                }
                self.remember(host, &found);
                found
            }
        };
        if addresses.is_empty() { Err(Reason::Dns) } else { Ok(addresses) }
    }

    fn remembered(&self, host: &str) -> Option<Arc<[IpAddr]>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = known.get(host)?;
        (Instant::now() < answer.until).then(|| answer.addresses.clone())
    }

    fn remember(&self, host: &str, addresses: &Arc<[IpAddr]>) {
        let now = Instant::now();
        let kept = if addresses.is_empty() { self.kept.min(FAILURE_KEPT) } else { self.kept };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.known_max {
            known.retain(|_, answer| now < answer.until);
        }
        // Still full of what holds: better to ask again than to grow.
        if known.len() >= self.known_max {
            known.clear();
        }
        known.insert(
            host.into(),
            ResolvedAddresses { addresses: addresses.clone(), until: now + kept },
        );
    }

    async fn look_up(&self, host: &str) -> Arc<[IpAddr]> {
        match &self.lookup {
            Lookup::Given(function) => return function(host).into(),
            Lookup::Table(table) => {
                if let Some(address) = table.get(host) {
                    return Arc::new([*address]);
                }
            }
            Lookup::System => {}
        }
        let Ok(permit) = self.slots.clone().acquire_owned().await else { return Arc::default() };
        let name = host.to_owned();
        // The thread keeps the permit: a caller that gives up does not free a thread
        // that still waits for a dead name server.
        let looking = tokio::task::spawn_blocking(move || {
            let found = system_addresses(&name);
            drop(permit);
            found
        });
        looking.await.ok().and_then(Result::ok).unwrap_or_default().into()
    }
}

fn system_addresses(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut found: Vec<IpAddr> = Vec::new();
    for address in (name, 0).to_socket_addrs()? {
        if found.len() < ADDRESSES_MAX && !found.contains(&address.ip()) {
            found.push(address.ip());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counting(limits: &Limits) -> (Resolver, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let lookup = Lookup::Given(Arc::new(move |host: &str| {
            count.fetch_add(1, Ordering::Relaxed);
            if host == "none.example" { Vec::new() } else { vec!["192.0.2.1".parse().unwrap()] }
        }));
        (Resolver::new(lookup, limits), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_asked_for_again_only_after_its_time() {
        let (resolver, asked) = counting(&Limits::default());
        for _ in 0..3 {
            assert_eq!(resolver.addresses("a.example").await.map(|found| found.len()), Ok(1));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        tokio::time::advance(Limits::default().names_kept).await;
        assert!(resolver.addresses("a.example").await.is_ok());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_remembered_for_a_shorter_time() {
        let (resolver, asked) = counting(&Limits::default());
        for _ in 0..3 {
            assert_eq!(resolver.addresses("none.example").await, Err(Reason::Dns));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        tokio::time::advance(FAILURE_KEPT).await;
        assert_eq!(resolver.addresses("none.example").await, Err(Reason::Dns));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_names_are_remembered() {
        let (resolver, _) = counting(&Limits { names_max: 3, ..Limits::default() });
        for n in 0..20 {
            assert!(resolver.addresses(&format!("{n}.example")).await.is_ok());
            assert!(resolver.known.lock().unwrap().len() <= 3);
        }
    }

    #[tokio::test]
    async fn a_table_knows_its_names_and_the_system_the_others() {
        let fixed: IpAddr = "192.0.2.7".parse().unwrap();
        let lookup = Lookup::with([("a.example".to_owned(), fixed)]);
        let resolver = Resolver::new(lookup, &Limits::default());
        assert_eq!(*resolver.addresses("a.example").await.unwrap(), [fixed]);
        assert!(resolver.addresses("localhost").await.is_ok());
    }

    #[tokio::test]
    async fn the_system_knows_this_computer() {
        let resolver = Resolver::new(Lookup::System, &Limits::default());
        let found = resolver.addresses("localhost").await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback));
    }
}
