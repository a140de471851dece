//! The walls of the process that reads a document: what it takes away from itself.
//!
//! Limits bound what reading may cost. Walls bound what code can do that takes the reader over.
//! They are raised one after the other, the filter of system calls last, because raising the
//! others needs calls that it refuses. A wall that the system does not offer is left out, and
//! says why: a document is still read. Invariants: limits are never left out; no wall that
//! stands can be taken down again; each wall refuses by itself what it is there to refuse.

use super::system_calls;
use crawl::extract::{CPU_S_MAX, MEMORY_BYTES_MAX};
use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr, RulesetError,
    RulesetStatus, Scope,
};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpStream};

/// Its pipes are open, and nothing else can be opened: neither a file nor a connection.
const FILES_MAX: u64 = 3;
/// What is asked of landlock: files, TCP, and signals and sockets of others (Linux 6.12). Older
/// systems have less of it; newer versions add nothing that the filter of system calls lets by.
const LANDLOCK: ABI = ABI::V6;
/// What every system has and anybody may open.
const ROOT: &str = "/";
/// A port at which hardly anybody listens; what matters is that there is a way to it.
const DISCARD_PORT: u16 = 9;

/// Whether a wall stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "stands", content = "why")]
pub enum Wall {
    Full,
    /// The system has only a part of it.
    Partial(String),
    /// It does not, for this reason.
    No(String),
}

/// The walls of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    /// No program that it could start would have more rights.
    pub no_new_privileges: Wall,
    /// Its network has no interface that is up.
    pub network_namespace: Wall,
    /// It may open no file, whoever runs it.
    pub landlock: Wall,
    /// It may only make the system calls that reading needs.
    pub seccomp: Wall,
}

impl Walls {
    /// Each wall, in words.
    pub fn named(&self) -> [(&'static str, &Wall); 4] {
        [
            ("seccomp", &self.seccomp),
            ("landlock", &self.landlock),
            ("an empty network namespace", &self.network_namespace),
            ("no_new_privs", &self.no_new_privileges),
        ]
    }
}

/// What the walls are raised for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read a document.
    Reading,
    /// To look whether they stand: what each is there to refuse is tried before the next is
    /// raised.
    Looking,
}

/// Takes rights away from this process; none of them comes back. It must have one thread.
pub fn raise(purpose: Purpose) -> io::Result<Walls> {
    let looked_at = |wall: Wall, is_refused: fn() -> bool| match (&wall, purpose) {
        (Wall::No(_), _) | (_, Purpose::Reading) => wall,
        _ if is_refused() => wall,
        _ => Wall::No("the system has it, but it blocks nothing".to_owned()),
    };
    let set = Wall::of(prctl::set_no_new_privs());
    let no_new_privileges = looked_at(set, || prctl::get_no_new_privs() == Ok(true));
    // The user namespace is what lets somebody have a network of their own who is not root.
    let left = Wall::of(unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET));
    let network_namespace = looked_at(left, has_no_network);
    // A ruleset is an open file, for which the limits have no room.
    let landlock = looked_at(close_files(), has_no_files);
    limit()?;
    // That it refuses what it should is looked at by whoever started this process: it may end it.
    let seccomp = Wall::of(system_calls::restrict());
    Ok(Walls { no_new_privileges, network_namespace, landlock, seccomp })
}

impl Wall {
    fn of(raised: Result<(), impl std::fmt::Display>) -> Wall {
        match raised {
            Ok(()) => Wall::Full,
            Err(error) => Wall::No(error.to_string()),
        }
    }
}

/// Loopback of a new network namespace is down: there is no way even to this machine. Elsewhere
/// it answers, if only that nobody listens.
fn has_no_network() -> bool {
    let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, DISCARD_PORT));
    connected.is_err_and(|error| error.kind() != ErrorKind::ConnectionRefused)
}

fn has_no_files() -> bool {
    File::open(ROOT).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// A landlock ruleset without a rule: nothing of what it handles is allowed.
fn close_files() -> Wall {
    let restricted = || -> Result<_, RulesetError> {
        Ruleset::default()
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?
            .restrict_self()
    };
    let status = match restricted() {
        Ok(status) => status,
        Err(error) => return Wall::No(error.to_string()),
    };
    match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced, _) => Wall::Full,
        (RulesetStatus::PartiallyEnforced, LandlockStatus::Available { effective_abi, .. }) => {
            Wall::Partial(format!("this kernel has version {effective_abi} of it"))
        }
        (_, LandlockStatus::NotEnabled) => Wall::No("it is disabled in this kernel".into()),
        _ => Wall::No("this kernel does not have it".into()),
    }
}

fn limit() -> rustix::io::Result<()> {
    let most = |resource, limit: u64| {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
    };
    most(Resource::As, MEMORY_BYTES_MAX)?;
    most(Resource::Fsize, 0)?;
    most(Resource::Core, 0)?;
    most(Resource::Nproc, 0)?;
    most(Resource::Nofile, FILES_MAX)?;
    // The first signal says why; one second later comes the one that cannot be handled.
    let cpu = Rlimit { current: Some(CPU_S_MAX), maximum: Some(CPU_S_MAX + 1) };
    setrlimit(Resource::Cpu, cpu)?;
    set_parent_process_death_signal(Some(Signal::KILL))
}
