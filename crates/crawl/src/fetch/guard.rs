//! Which URLs, ports and addresses may be asked at all.
//!
//! Pure decisions, taken three times for every request: on the URL, on what its
//! name resolves to, and on the address that the socket is really connected to.
//! Relies on `ranges` for the tables. Invariant: without permission nothing but the
//! public internet is reached, and our own addresses are never reached at all.

mod ranges;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::outcome::Reason;
pub use ranges::Cidr;
use store::targets::{self, unwrap};

/// What one job may reach. The default is the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// Every private range may be reached: a crawl of an intranet.
    pub allow_private: bool,
    /// Ranges that may be reached although they are not public.
    pub allow: Vec<Cidr>,
    /// Ports that may be reached beside the usual ones.
    pub allow_ports: Vec<u16>,
    /// Where this program and its stores listen. No permission opens them.
    pub own: Vec<SocketAddr>,
}

/// The parts of a URL that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RequestTarget<'a> {
    pub tls: bool,
    /// The host as written: a name, an IPv4 address or one in brackets.
    pub host: &'a str,
    /// The port to connect to.
    pub port: u16,
    /// The host, if it is an address.
    pub address: Option<IpAddr>,
}

impl Guard {
    /// Looks at a canonical URL before anything is resolved.
    pub fn url<'a>(&self, url: &'a str) -> Result<RequestTarget<'a>, Reason> {
        let tls = match page::url::scheme_of(url) {
            "https" => true,
            "http" => false,
            _ => return Err(Reason::Url),
        };
        let host = page::url::host_of(url);
        let is_odd = host.is_empty() || host.contains('@') || !has_clear_end(url, host);
        if is_odd || url.len() > page::url::URL_BYTES_MAX {
            return Err(Reason::Url);
        }
        let port = page::url::port_of(url);
        if !self.is_port_allowed(port) {
            return Err(Reason::Port(port));
        }
        let address = literal(host);
        match address {
            Some(address) => self.address(SocketAddr::new(address, port))?,
            None => self.name(host)?,
        }
        Ok(RequestTarget { tls, host, port, address })
    }

    /// Looks at an address: one that a name resolved to, or a connected peer.
    pub fn address(&self, at: SocketAddr) -> Result<(), Reason> {
        let (first, second) = unwrap(at.ip());
        self.plain_address(first, at.port())?;
        second.map_or(Ok(()), |second| self.plain_address(second, at.port()))
    }

    fn plain_address(&self, address: IpAddr, port: u16) -> Result<(), Reason> {
        let is_local = |it| ranges::special(it).is_some();
        if self.own.iter().any(|own| targets::is_listener(*own, address, port, is_local)) {
            return Err(Reason::OwnAddress);
        }
        if self.allow.iter().any(|range| range.contains(address)) {
            return Ok(());
        }
        if targets::METADATA.contains(&address) {
            return Err(Reason::Metadata);
        }
        match ranges::special(address) {
            Some(name) if !self.allow_private => Err(Reason::Address(name)),
            _ => Ok(()),
        }
    }

    /// Names that mean something bad wherever they resolve to.
    fn name(&self, host: &str) -> Result<(), Reason> {
        if targets::is_metadata_name(host) {
            return Err(Reason::Metadata);
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let last = name.rsplit('.').next().unwrap_or(name);
        if last.eq_ignore_ascii_case("localhost") && !self.allow_private {
            return Err(Reason::Localhost);
        }
        Ok(())
    }

    fn is_port_allowed(&self, port: u16) -> bool {
        let usual = matches!(port, 80 | 443) || port >= 1_024;
        (usual && !ranges::BAD_PORTS.contains(&port)) || self.allow_ports.contains(&port)
    }
}

/// Whether nothing but a port follows the host. In a canonical URL nothing else can;
/// this is for a caller's mistake, so that we never connect to a part of a user name.
fn has_clear_end(url: &str, host: &str) -> bool {
    let origin = page::url::origin_of(url);
    let after = origin.split_once("://").and_then(|(_, authority)| authority.strip_prefix(host));
    match after.and_then(|after| after.strip_prefix(':')) {
        Some(port) => port.parse::<u16>().is_ok(),
        None => after == Some(""),
    }
}

/// The address that a host is, if it is one. Other spellings of addresses do not
/// exist in canonical URLs; as names they would still meet [`Guard::address`].
fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests;
