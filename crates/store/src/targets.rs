//! Addresses that no request of ours goes to, whoever asked for it: metadata services of clouds,
//! which hand credentials to whoever asks from this machine, and where this process listens.
//!
//! Private addresses are another matter: a crawl needs a permission for them, an output that an
//! administrator named does not. Invariant: an address is judged by what is really reached through
//! it, an IPv4 address inside an IPv6 address included.

use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};

/// Metadata services of clouds. Some of them are in ranges that a job for an
/// intranet may reach, one is in a public range; only a range named for it opens them.
pub const METADATA: [IpAddr; 7] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Names under which clouds offer credentials to the machines in them.
pub const METADATA_NAMES: [&str; 7] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.tencentyun.com",
];

/// What is said of a metadata service.
const IS_METADATA: &str = "it is the metadata service of a cloud, which is never asked";
/// What is said of our own address.
const IS_OWN: &str = "this program itself listens there";

static LISTENERS: Mutex<Vec<SocketAddr>> = Mutex::new(Vec::new());

/// Notes where this process listens.
pub fn claim_listener(at: SocketAddr) {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).push(at);
}

/// Whether a host is known for handing out credentials, wherever it leads.
pub fn is_metadata_name(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    METADATA_NAMES.iter().any(|it| name.eq_ignore_ascii_case(it))
}

/// What is really reached through an address: itself, or the IPv4 address that a
/// gateway reads out of it. Teredo has two.
pub fn unwrap(address: IpAddr) -> (IpAddr, Option<IpAddr>) {
    let IpAddr::V6(v6) = address else { return (address, None) };
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        // `::` and `::1` are themselves; the rest of ::/96 is IPv4 in an old dress.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => (address, None),
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => (v4(high, low), None),
        // ::ffff:0:0:0/96, IPv4-translated (RFC 2765).
        [0, 0, 0, 0, 0xffff, 0, high, low] => (v4(high, low), None),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (v4(high, low), None),
        [0x2002, high, low, ..] => (v4(high, low), None),
        // Teredo: its server in the clear, its client inverted.
        [0x2001, 0, s_high, s_low, _, _, c_high, c_low] => {
            (v4(s_high, s_low), Some(v4(!c_high, !c_low)))
        }
        _ => (address, None),
    }
}

/// Whether one of our listeners is reached by an address of this machine. One that listens on
/// every address, or on loopback, is reached by every such address.
pub fn is_listener(
    own: SocketAddr,
    address: IpAddr,
    port: u16,
    is_local: impl Fn(IpAddr) -> bool,
) -> bool {
    if own.port() != port {
        return false;
    }
    let (own_ip, _) = unwrap(own.ip());
    if own_ip.is_unspecified() {
        return is_local(address);
    }
    own_ip == address
        || (own_ip.is_loopback() && (address.is_loopback() || address.is_unspecified()))
}

/// Why nothing is sent to an address; `None` if something may be.
pub fn refused(at: SocketAddr) -> Option<&'static str> {
    let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (first, second) = unwrap(at.ip());
    let judge = |address: IpAddr| {
        // What listens everywhere is reached by all addresses of this machine, and nobody knows
        // them all: those that lead nowhere else are refused.
        let is_local = |it: IpAddr| it.is_loopback() || it.is_unspecified();
        if listeners.iter().any(|own| is_listener(*own, address, at.port(), is_local)) {
            return Some(IS_OWN);
        }
        METADATA.contains(&address).then_some(IS_METADATA)
    };
    judge(first).or_else(|| second.and_then(judge))
}

/// Where a host leads, or why nothing is sent there. All of its addresses must be harmless.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let forbidden = |why: &str| Err(Error::new(ErrorKind::PermissionDenied, why.to_owned()));
    if is_metadata_name(host) {
        return forbidden(IS_METADATA);
    }
    let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    match found.iter().find_map(|at| refused(*at)) {
        Some(why) => forbidden(why),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_services_and_our_own_listeners_are_refused_and_private_addresses_are_not() {
        let listens: SocketAddr = "127.0.0.1:50999".parse().unwrap();
        claim_listener(listens);
        claim_listener("0.0.0.0:50998".parse().unwrap());
        for (host, port) in [
            ("169.254.169.254", 80),
            ("[fd00:ec2::254]", 80),
            ("::ffff:169.254.169.254", 443),
            ("Metadata.Google.Internal.", 80),
            ("127.0.0.1", 50_999),
            ("localhost", 50_999),
            ("127.0.0.9", 50_999),
            ("::1", 50_998),
        ] {
            let refused = resolve(host, port).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{host}:{port} {refused}");
        }
        for (host, port) in [("127.0.0.1", 50_997), ("10.0.0.1", 80), ("192.168.1.1", 50_999)] {
            assert_eq!(resolve(host, port).unwrap().len(), 1, "{host}:{port}");
        }
    }
}
