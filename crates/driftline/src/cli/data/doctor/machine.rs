//! What the machine must offer: memory, open files, a clock, names, and a way out.
//!
//! Reads what the system says of itself; the network is asked only when that is wished.
//! Every wait has a deadline.

use crate::text::{date, shown, size};
use crate::verbs::doctor::check::{Advice, Check, Measure};
use crawl::definitions::WebSpec;
use crawl::fetch::{Fetcher, FetcherSettings, Limits, Lookup};
use rustix::process::{Resource, getrlimit};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Memory that a crawl likes to have, and that it cannot do without.
const MEMORY_BYTES: (u64, u64) = (512 << 20, 128 << 20);
/// Open files that a crawl likes to have, and that it cannot do without.
const FILES: (u64, u64) = (1_024, 256);
/// No clock is right that says it is earlier: 2025.
const EARLIEST_MS: i64 = 1_735_689_600_000;
/// How long the network may take to answer.
const NETWORK_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a system's file that are read.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Looks at the machine. `online` is a host and port to reach.
pub fn checks(now_ms: i64, online: Option<&str>) -> Vec<Check> {
    let mut out = vec![
        memory(read("/proc/meminfo").as_deref(), read("/sys/fs/cgroup/memory.max").as_deref()),
        open_files(getrlimit(Resource::Nofile).current),
        clock(now_ms),
        time_zone(),
        resolver(read("/etc/resolv.conf").as_deref()),
        tls(),
    ];
    out.extend(network(online));
    out
}

/// The beginning of a small text file of the system.
fn read(path: &str) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn memory(meminfo: Option<&str>, limit: Option<&str>) -> Check {
    const NAME: &str = "memory";
    let available = meminfo.and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
    });
    let Some(available) = available else {
        return Check::skip(NAME, "the system does not report its memory");
    };
    // A container may be allowed less than the machine has.
    let allowed = limit.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(u64::MAX);
    let bytes = available.min(allowed);
    let (well, least) = MEMORY_BYTES;
    let what = format!("{} available", size(i64::try_from(bytes).unwrap_or(i64::MAX)));
    let why = "a crawl takes up to 300 MB; with less, the system may kill it";
    let help = Advice { why, next: "stop other programs, or add memory" };
    Check::at_least(NAME, Measure { found: bytes, well, least }, what, help)
}

fn open_files(limit: Option<u64>) -> Check {
    const NAME: &str = "open files";
    let Some(limit) = limit else { return Check::ok(NAME, "no limit") };
    let (well, least) = FILES;
    let help = Advice {
        why: "every connection is an open file, and the database needs some too",
        next: "raise the limit before you start: ulimit -n 4096",
    };
    Check::at_least(NAME, Measure { found: limit, well, least }, format!("at most {limit}"), help)
}

fn clock(now_ms: i64) -> Check {
    const NAME: &str = "clock";
    if now_ms < EARLIEST_MS {
        let help = Advice {
            why: "leases, certificates and revisits depend on the clock",
            next: "set it, or synchronise it: timedatectl set-ntp true",
        };
        return Check::fail(NAME, format!("it says {}", date(now_ms)), help);
    }
    Check::ok(NAME, format!("it says {}", date(now_ms)))
}

fn time_zone() -> Check {
    let link = std::fs::read_link("/etc/localtime").ok();
    let name = link.and_then(|path| {
        let text = path.to_string_lossy().into_owned();
        text.split_once("zoneinfo/").map(|(_, name)| name.to_owned())
    });
    let what = match name {
        Some(name) => format!("{}; times are shown in UTC", shown(&name)),
        None => "none is set, so UTC is used".to_owned(),
    };
    Check::ok("time zone", what)
}

fn resolver(settings: Option<&str>) -> Check {
    const NAME: &str = "name servers";
    let count = settings.map_or(0, |text| {
        text.lines().filter(|line| line.trim_start().starts_with("nameserver")).count()
    });
    if count == 0 {
        let help = Advice {
            why: "without one, only hosts in /etc/hosts can be resolved",
            next: "add one to /etc/resolv.conf, or give addresses with: driftline crawl --resolve",
        };
        return Check::warn(NAME, "/etc/resolv.conf names none", help);
    }
    Check::ok(NAME, format!("{count} in /etc/resolv.conf"))
}

fn tls() -> Check {
    const NAME: &str = "TLS";
    let spec = WebSpec::default();
    let settings = FetcherSettings {
        agent: spec.agent,
        contact: spec.contact,
        limits: Limits::default(),
        lookup: Lookup::System,
        ..FetcherSettings::default()
    };
    match Fetcher::new(settings) {
        Ok(_) => Check::ok(NAME, "Mozilla's certificate authorities, built in"),
        Err(error) => {
            let help =
                Advice { why: "no HTTPS page can be fetched", next: "this is a bug: report it" };
            Check::fail(NAME, error.to_string(), help)
        }
    }
}

/// Names and connections, for real.
fn network(online: Option<&str>) -> Vec<Check> {
    let Some(target) = online else {
        let hint = "not checked; check with: driftline doctor --online";
        return vec![Check::skip("DNS", hint), Check::skip("outbound", hint)];
    };
    let name = shown(target);
    let addresses = match resolve(target) {
        Ok(addresses) => addresses,
        Err(reason) => {
            let help = Advice {
                why: "host names must be resolved before pages can be fetched",
                next: "check the network and /etc/resolv.conf; crawling through a proxy is not supported",
            };
            let dns = Check::fail("DNS", format!("{name} cannot be resolved: {reason}"), help);
            return vec![dns, Check::skip("outbound", "there is no address to connect to")];
        }
    };
    let found = Check::ok("DNS", format!("{name} has {} addresses", addresses.len()));
    let connected = addresses.iter().find_map(|address| {
        TcpStream::connect_timeout(address, NETWORK_PATIENCE / 4).ok().map(|_| address)
    });
    let outbound = match connected {
        Some(address) => Check::ok("outbound", format!("{name} answers at {address}")),
        None => Check::fail(
            "outbound",
            format!("{name} does not answer at any of its addresses"),
            Advice {
                why: "pages are fetched over such connections",
                next: "check the network and its firewall",
            },
        ),
    };
    vec![found, outbound]
}

/// Asks the system for addresses, which may take as long as it likes; we do not wait.
fn resolve(target: &str) -> Result<Vec<SocketAddr>, String> {
    const ADDRESSES_MAX: usize = 4;
    let (sender, answer) = sync_channel(1);
    let asked = target.to_owned();
    let spawned = std::thread::Builder::new().name("resolve".into()).spawn(move || {
        let _ = sender.send(asked.to_socket_addrs().map_err(|error| error.to_string()));
    });
    spawned.map_err(|error| error.to_string())?;
    let found =
        answer.recv_timeout(NETWORK_PATIENCE).map_err(|_| "no answer in time".to_owned())??;
    let found: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
    if found.is_empty() { Err("it has no address".to_owned()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::check::CheckStatus;

    #[test]
    fn memory_is_what_the_machine_has_and_the_container_allows() {
        let of = |kib: u64, limit: Option<&str>| {
            memory(Some(&format!("MemTotal: 9 kB\nMemAvailable: {kib} kB\n")), limit).verdict
        };
        assert_eq!(of(1 << 20, None), CheckStatus::Ok);
        assert_eq!(of(1 << 20, Some("max\n")), CheckStatus::Ok);
        assert_eq!(of(1 << 20, Some("300000000\n")), CheckStatus::Warn);
        assert_eq!(of(100 << 10, None), CheckStatus::Fail);
        assert_eq!(memory(Some("nonsense"), None).verdict, CheckStatus::Skip);
    }

    #[test]
    fn few_open_files_a_wrong_clock_and_no_name_server_are_told() {
        let verdicts = [None, Some(4_096), Some(512), Some(64)].map(|it| open_files(it).verdict);
        assert_eq!(
            verdicts,
            [CheckStatus::Ok, CheckStatus::Ok, CheckStatus::Warn, CheckStatus::Fail]
        );
        assert_eq!(clock(0).verdict, CheckStatus::Fail);
        assert_eq!(clock(EARLIEST_MS).verdict, CheckStatus::Ok);
        assert_eq!(resolver(Some("# x\nnameserver 192.0.2.1\n")).verdict, CheckStatus::Ok);
        assert_eq!(resolver(None).verdict, CheckStatus::Warn);
        assert_eq!(tls().verdict, CheckStatus::Ok);
    }

    #[test]
    fn the_network_is_asked_only_when_that_is_wished() {
        let verdicts = |online: Option<&str>| -> Vec<CheckStatus> {
            network(online).iter().map(|check| check.verdict).collect()
        };
        assert_eq!(verdicts(None), [CheckStatus::Skip; 2]);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        assert_eq!(verdicts(Some(&address)), [CheckStatus::Ok; 2]);
        drop(listener);
        assert_eq!(verdicts(Some(&address)), [CheckStatus::Ok, CheckStatus::Fail]);
        assert_eq!(verdicts(Some("no port")), [CheckStatus::Fail, CheckStatus::Skip]);
    }
}
