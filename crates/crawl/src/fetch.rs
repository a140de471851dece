//! Fetching: one URL asked for, within bounds, and what came of it as a value.
//!
//! `client` asks once, `redirects` goes on where an answer points. On the way:
//! `guard` (may it be asked), `resolve`, `tls`, `connect`, `pool` and `wire` (the
//! connection), `request`, `framing` and `decode` (the message), `watch`, `limits` and `memory`
//! (how long, how much), `outcome` and `sentences` (what came of it), `backoff` (when to ask again).
//!
//! This is the only asynchronous part of the crate. Nothing runs in the background:
//! whoever awaits an answer drives its connection, and dropping the fetcher closes
//! everything. Invariant: no byte is sent to an address that the guard has not seen.

mod addresses;
pub mod backoff;
mod bandwidth;
mod client;
mod connect;
pub mod decode;
mod framing;
pub mod guard;
mod limits;
mod memory;
pub mod outcome;
mod pool;
mod redirects;
mod request;
mod resolve;
pub mod sentences;
mod tls;
mod watch;
mod wire;

pub use addresses::{AddressPace, AddressRequest, Addresses};
pub use bandwidth::Bandwidth;
pub use client::{Fetcher, FetcherSettings, Unusable, user_agent};
pub use guard::{Cidr, Guard};
pub use limits::Limits;
pub use memory::BodyMemory;
pub use outcome::{Fetched, NotModified, Outcome, Reason, Redirect};
pub use redirects::{FollowedChain, Hop, HopVerdict, PAGE_HOPS_MAX};
pub use request::FetchRequest;
pub use resolve::{GivenLookup, Lookup};

pub use hyper::header::{HeaderMap, HeaderName, HeaderValue};
pub use rustls::pki_types::CertificateDer;

#[cfg(test)]
mod tests;
