//! From a checked target to an open connection.
//!
//! Relies on `resolve` for addresses and on `tls` for trust. Invariant: a socket is
//! opened only to an address that the guard has seen, and not a byte is sent before
//! the address at its other end has been seen, too.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustls::pki_types::ServerName;
use store::open_files;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::guard::{Guard, RequestTarget};
use super::limits::Limits;
use super::outcome::Reason;
use super::resolve::Resolver;
use super::tls;
use super::wire::Wire;

/// Addresses of one name that are tried.
const TRIES_MAX: usize = 4;

pub(super) struct Connector {
    pub resolver: Resolver,
    pub tls: TlsConnector,
}

impl Connector {
    /// Opens a connection to the target. The caller bounds the time of the whole.
    pub async fn open(
        &self,
        target: &RequestTarget<'_>,
        guard: &Guard,
        limits: &Limits,
    ) -> Result<Wire, Reason> {
        let addresses = self.allowed_addresses(target, guard).await?;
        let tcp = connect_to_any(&addresses, guard, limits.connect).await?;
        let peer = tcp.peer_addr().map_err(|_| Reason::ConnectionLost)?;
        // Requests are small and waited for; it is no loss if this fails.
        let _ = tcp.set_nodelay(true);
        if !target.tls {
            return Wire::h1(Box::new(tcp), peer, limits).await;
        }
        let name = server_name(target)?;
        let tls = self.tls.connect(name, tcp).await.map_err(|error| tls::reason(&error))?;
        let speaks_h2 = tls.get_ref().1.alpn_protocol() == Some(tls::ALPN_H2);
        if speaks_h2 {
            Wire::h2(Box::new(tls), peer, limits).await
        } else {
            Wire::h1(Box::new(tls), peer, limits).await
        }
    }

    /// The addresses of the target that the guard allows. When it allows none, the
    /// reason is that of the first.
    async fn allowed_addresses(
        &self,
        target: &RequestTarget<'_>,
        guard: &Guard,
    ) -> Result<Vec<SocketAddr>, Reason> {
        let with_port = |ip: IpAddr| SocketAddr::new(ip, target.port);
        if let Some(ip) = target.address {
            guard.address(with_port(ip))?;
            return Ok(vec![with_port(ip)]);
        }
        let found = self.resolver.addresses(target.host).await?;
        let is_allowed = |at: &SocketAddr| guard.address(*at).is_ok();
        let allowed: Vec<SocketAddr> =
            found.iter().copied().map(with_port).filter(is_allowed).take(TRIES_MAX).collect();
        match found.first() {
            Some(first) if allowed.is_empty() => {
                guard.address(with_port(*first)).and(Err(Reason::Dns))
            }
            _ => Ok(allowed),
        }
    }
}

/// Tries the addresses one after the other, each for its share of the time.
async fn connect_to_any(
    addresses: &[SocketAddr],
    guard: &Guard,
    limit: Duration,
) -> Result<TcpStream, Reason> {
    let share = limit / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    let mut last = Reason::Connect;
    for address in addresses {
        let stream = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                last = connect_reason(&error);
                continue;
            }
            Err(_) => {
                last = Reason::ConnectTimeout;
                continue;
            }
        };
        // A firewall or proxy may have led us elsewhere than we asked.
        let peer = stream.peer_addr().map_err(|_| Reason::ConnectionLost)?;
        guard.address(peer)?;
        if (peer.ip(), peer.port()) != (address.ip(), address.port()) {
            return Err(Reason::Connect);
        }
        return Ok(stream);
    }
    Err(last)
}

fn connect_reason(error: &io::Error) -> Reason {
    match error.kind() {
        _ if open_files::is_out_of(error) => Reason::OpenFiles,
        io::ErrorKind::ConnectionRefused => Reason::ConnectRefused,
        io::ErrorKind::TimedOut => Reason::ConnectTimeout,
        _ => Reason::Connect,
    }
}

fn server_name(target: &RequestTarget<'_>) -> Result<ServerName<'static>, Reason> {
    match target.address {
        Some(ip) => Ok(ServerName::IpAddress(ip.into())),
        None => {
            let name = target.host.strip_suffix('.').unwrap_or(target.host);
            ServerName::try_from(name.to_owned()).map_err(|_| Reason::Url)
        }
    }
}
