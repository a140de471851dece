//! The tables of the guard: special-purpose addresses and ports.
//!
//! Taken from the IANA special-purpose registries for IPv4 and IPv6, plus multicast
//! and site-local, and from the list of bad ports in the Fetch standard.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses, written `10.0.0.0/8` or `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Cidr {
        Cidr { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    const fn v6(head: [u16; 4], prefix: u8) -> Cidr {
        let [a, b, c, d] = head;
        Cidr { address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)), prefix }
    }

    /// Whether the address is in the range. The families do not mix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let different = ours.to_bits() ^ theirs.to_bits();
                different.checked_shr(32 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let different = ours.to_bits() ^ theirs.to_bits();
                different.checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// The text is no range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a range of addresses such as 10.0.0.0/8 or fd00::/8")]
pub struct NotACidr;

impl FromStr for Cidr {
    type Err = NotACidr;

    /// Reads `address/prefix`, or one address alone.
    fn from_str(text: &str) -> Result<Cidr, NotACidr> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().map_err(|_| NotACidr)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotACidr)?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(longest);
        if prefix > longest { Err(NotACidr) } else { Ok(Cidr { address, prefix }) }
    }
}

/// What is not the public internet, with the name that reports give it.
pub(super) const SPECIAL: [(Cidr, &str); 29] = [
    (Cidr::v4(0, 0, 0, 0, 8), "this network"),
    (Cidr::v4(10, 0, 0, 0, 8), "private network"),
    (Cidr::v4(100, 64, 0, 0, 10), "shared address space"),
    (Cidr::v4(127, 0, 0, 0, 8), "loopback"),
    (Cidr::v4(169, 254, 0, 0, 16), "link-local"),
    (Cidr::v4(172, 16, 0, 0, 12), "private network"),
    (Cidr::v4(192, 0, 0, 0, 24), "protocol assignments"),
    (Cidr::v4(192, 0, 2, 0, 24), "documentation"),
    (Cidr::v4(192, 88, 99, 0, 24), "6to4 relays"),
    (Cidr::v4(192, 168, 0, 0, 16), "private network"),
    (Cidr::v4(198, 18, 0, 0, 15), "benchmarking"),
    (Cidr::v4(198, 51, 100, 0, 24), "documentation"),
    (Cidr::v4(203, 0, 113, 0, 24), "documentation"),
    (Cidr::v4(224, 0, 0, 0, 4), "multicast"),
    (Cidr::v4(240, 0, 0, 0, 4), "reserved"),
    (Cidr::v6([0, 0, 0, 0], 127), "unspecified or loopback"),
    (Cidr::v6([0x64, 0xff9b, 1, 0], 48), "local translation"),
    (Cidr::v6([0x100, 0, 0, 0], 64), "discard only"),
    (Cidr::v6([0x100, 0, 0, 1], 64), "dummy prefix"),
    (Cidr::v6([0x2001, 0, 0, 0], 23), "protocol assignments"),
    (Cidr::v6([0x2001, 0xdb8, 0, 0], 32), "documentation"),
    (Cidr::v6([0x3fff, 0, 0, 0], 20), "documentation"),
    (Cidr::v6([0x5f00, 0, 0, 0], 16), "segment routing"),
    (Cidr::v6([0xfc00, 0, 0, 0], 7), "private network"),
    (Cidr::v6([0xfe80, 0, 0, 0], 10), "link-local"),
    (Cidr::v6([0xfec0, 0, 0, 0], 10), "site-local"),
    (Cidr::v6([0xff00, 0, 0, 0], 8), "multicast"),
    // Never reached through `unwrap`, kept so that the table is whole by itself.
    (Cidr::v6([0x2002, 0, 0, 0], 16), "6to4"),
    (Cidr::v6([0x64, 0xff9b, 0, 0], 96), "translation"),
];

/// The bad ports of the Fetch standard from 1024 up. Below, only 80 and 443 are open.
pub(super) const BAD_PORTS: [u16; 19] = [
    1_719, 1_720, 1_723, 2_049, 3_659, 4_045, 4_190, 5_060, 5_061, 6_000, 6_566, 6_665, 6_666,
    6_667, 6_668, 6_669, 6_679, 6_697, 10_080,
];

/// All of IPv6 that is given out for the public internet, with special ranges in it.
const GLOBAL_UNICAST: Cidr = Cidr::v6([0x2000, 0, 0, 0], 3);

/// The name of the special range an address is in, if it is in one.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    let named = SPECIAL.iter().find(|(range, _)| range.contains(address)).map(|(_, name)| *name);
    let is_global = address.is_ipv4() || GLOBAL_UNICAST.contains(address);
    named.or((!is_global).then_some("not allocated for the public internet"))
}
