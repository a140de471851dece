//! The fetcher: asks for one URL and says what came of it.
//!
//! Relies on `guard` before anything else, on `pool` and `connect` for a connection,
//! on `watch` for every wait, on `decode` for the body. It follows no redirect;
//! `redirects` does. Invariant: a connection goes back to the pool only after an
//! answer whose end is beyond doubt was read to that end.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderValue, LOCATION, RETRY_AFTER, SET_COOKIE,
};
use hyper::http::response::Parts;
use hyper::{HeaderMap, Response};
use rustls::pki_types::CertificateDer;
use tokio::time::{sleep, timeout};

use super::addresses::{AddressPace, AddressRequest, Addresses};
use super::backoff::retry_after_ms;
use super::bandwidth::Bandwidth;
use super::connect::Connector;
use super::decode::{Decoder, Flow};
use super::framing;
use super::guard::RequestTarget;
use super::limits::Limits;
use super::memory::{BodyMemory, MemoryReservation};
use super::outcome::{Fetched, NotModified, Outcome, Reason, Redirect, on_status};
use super::pool::{Lease, Pool, PooledConnection};
use super::request::{FetchRequest, build};
use super::resolve::{Lookup, Resolver};
use super::tls;
use super::watch::Watch;
use super::wire::{Payload, Wire};

/// The rest of an answer that nobody wants is read up to here, if that saves the
/// connection.
const DRAIN_BYTES_MAX: u64 = 64 * 1024;
/// And for no longer than this.
const DRAIN_FOR: Duration = Duration::from_secs(1);

/// What a fetcher is made from.
#[derive(Clone, Default)]
#[allow(missing_docs)]
pub struct FetcherSettings {
    /// Name and version, such as `driftline/0.1`.
    pub agent: String,
    /// Where a site's owner finds out who we are: a URL or a mail address.
    pub contact: String,
    pub limits: Limits,
    pub lookup: Lookup,
    /// Certificate authorities that are trusted beside Mozilla's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// How much each address is asked for, shared by all fetchers made from this.
    pub addresses: Addresses,
    /// The memory that bodies share, of all fetchers made from this.
    pub memory: BodyMemory,
}

/// A fetcher cannot be made from these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nobody may crawl without a name and a contact.
    #[error("agent name and contact must be set, in printable ASCII characters")]
    Agent,
    /// A certificate authority cannot be read.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// The header that says who crawls and where to complain.
pub fn user_agent(agent: &str, contact: &str) -> Result<HeaderValue, Unusable> {
    let text = format!("{} (+{})", agent.trim(), contact.trim());
    HeaderValue::from_str(&text).map_err(|_| Unusable::Agent)
}

/// Asks the web. One for a process; many requests at a time.
pub struct Fetcher {
    user_agent: HeaderValue,
    limits: Limits,
    connector: Connector,
    addresses: Addresses,
    memory: BodyMemory,
    pub(super) pool: Pool,
}

/// How an attempt on one connection ended without an answer.
enum FailedAttempt {
    /// The other side had closed a connection that we had kept. Nothing was lost.
    Stale,
    For(Reason),
}

impl Fetcher {
    /// Makes a fetcher. It opens nothing yet.
    pub fn new(settings: FetcherSettings) -> Result<Fetcher, Unusable> {
        let FetcherSettings { agent, contact, limits, lookup, extra_roots, addresses, memory } =
            settings;
        if agent.trim().is_empty() || contact.trim().is_empty() {
            return Err(Unusable::Agent);
        }
        let user_agent = user_agent(&agent, &contact)?;
        let tls = tls::client_config(&extra_roots).map_err(|e| Unusable::Tls(e.to_string()))?;
        let tls = std::sync::Arc::new(tls).into();
        let connector = Connector { resolver: Resolver::new(lookup, &limits), tls };
        let pool = Pool::new(&limits);
        Ok(Fetcher { user_agent, limits, connector, addresses, memory, pool })
    }

    /// Begins a request at the address that a URL leads to, within the address's pace; the error
    /// is when its host may try again. `None` if nobody knows the address, which asking for the
    /// URL will tell.
    pub async fn begin_at_address(
        &self,
        ask: &FetchRequest<'_>,
        pace: AddressPace,
        now_ms: i64,
    ) -> Result<Option<AddressRequest>, i64> {
        let Ok(target) = ask.guard.url(ask.url) else { return Ok(None) };
        let address = match target.address {
            Some(address) => Some(address),
            // Of several the lowest, in whichever order they were told: hosts that share them
            // share it.
            None => {
                match timeout(self.limits.connect, self.connector.resolver.addresses(target.host))
                    .await
                {
                    Ok(Ok(addresses)) => addresses.iter().min().copied(),
                    _ => None,
                }
            }
        };
        let Some(address) = address else { return Ok(None) };
        self.addresses.begin(address, target.host, pace, now_ms).map(Some)
    }

    /// Asks once. A redirect is reported, not followed.
    pub async fn get(&self, ask: &FetchRequest<'_>) -> Outcome {
        let timer = pin!(sleep(self.limits.total));
        let mut watch = Watch::new(timer, &self.limits);
        match self.exchange(ask, &mut watch).await {
            Ok(outcome) => outcome,
            Err(reason) => reason.outcome(),
        }
    }

    async fn exchange(
        &self,
        ask: &FetchRequest<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Reason> {
        let target = ask.guard.url(ask.url)?;
        let origin = page::url::origin_of(ask.url);
        let waiting = self.pool.lease(origin);
        let lease = watch.within(self.limits.total, Reason::TotalTimeout, waiting).await?;
        loop {
            // What is posted must not be posted twice, so it never goes where the other side
            // may have left.
            let kept = lease.take(ask.guard).filter(|_| ask.form.is_none());
            let was_kept = kept.is_some();
            let mut held = match kept {
                Some(held) => held,
                None => self.open(ask, &target, &lease, watch).await?,
            };
            if was_kept && !held.wire.is_alive().await {
                continue;
            }
            let answer = match self.ask_on(&mut held.wire, ask, was_kept, watch).await {
                Ok(answer) => answer,
                Err(FailedAttempt::Stale) => continue,
                Err(FailedAttempt::For(reason)) => return Err(reason),
            };
            return self.judge(ask, answer, held, &lease, watch).await;
        }
    }

    async fn open(
        &self,
        ask: &FetchRequest<'_>,
        target: &RequestTarget<'_>,
        lease: &Lease<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<PooledConnection, Reason> {
        let slot = watch.within(self.limits.total, Reason::TotalTimeout, lease.slot()).await?;
        let opening = self.connector.open(target, ask.guard, &self.limits);
        let wire = watch.within(self.limits.connect, Reason::ConnectTimeout, opening).await??;
        Ok(slot.hold(wire))
    }

    async fn ask_on(
        &self,
        wire: &mut Wire,
        ask: &FetchRequest<'_>,
        was_kept: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Response<Payload>, FailedAttempt> {
        let request = build(ask, &self.user_agent, wire.is_h2()).map_err(FailedAttempt::For)?;
        let asking = wire.ask(request);
        match watch.within(self.limits.first_byte, Reason::FirstByteTimeout, asking).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Reason::ConnectionLost)) if was_kept => Err(FailedAttempt::Stale),
            Ok(Err(reason)) | Err(reason) => Err(FailedAttempt::For(reason)),
        }
    }

    async fn judge(
        &self,
        ask: &FetchRequest<'_>,
        answer: Response<Payload>,
        mut held: PooledConnection,
        lease: &Lease<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Reason> {
        let (head, mut payload) = answer.into_parts();
        let is_clear = framing::check(&head, held.wire.is_h2(), &self.limits)?;
        let outcome = match head.status.as_u16() {
            206 => on_status(206, None),
            200..=299 if !ask.wants(head.headers.get(CONTENT_TYPE)) => Reason::MediaType.outcome(),
            status @ 200..=299 => {
                let body = self.read_body(ask, &head, &mut held.wire, &mut payload, watch).await?;
                let (body, wire_bytes, truncated) = body;
                let peer = held.wire.peer;
                if is_clear && !truncated {
                    keep(held, payload, lease).await;
                }
                let headers = head.headers;
                let fetched = Fetched { status, headers, body, truncated, peer, wire_bytes };
                return Ok(Outcome::Body(Box::new(fetched)));
            }
            304 if ask.is_conditional() => {
                Outcome::NotModified(Box::new(NotModified { headers: head.headers.clone() }))
            }
            status @ (301 | 302 | 303 | 307 | 308) => {
                redirect(ask.url, status, &head.headers).unwrap_or_else(Reason::outcome)
            }
            status => on_status(status, asked_wait_ms(&head.headers)),
        };
        if is_clear && drain(&mut held.wire, &head, &mut payload, watch).await {
            keep(held, payload, lease).await;
        }
        Ok(outcome)
    }

    /// The decoded body, its length on the wire, and whether it is only the beginning.
    async fn read_body(
        &self,
        ask: &FetchRequest<'_>,
        head: &Parts,
        wire: &mut Wire,
        payload: &mut Payload,
        watch: &mut Watch<'_>,
    ) -> Result<(Bytes, u64, bool), Reason> {
        let general = framing::body_bytes_max(head.headers.get(CONTENT_TYPE), &self.limits);
        let bytes_max = ask.body_bytes_max.unwrap_or(general);
        let mut decoder = Decoder::new(&head.headers, bytes_max, announced(&head.headers))?;
        let mut room = MemoryReservation::default();
        watch.begin_body();
        loop {
            while decoder.kept_bytes() > room.bytes {
                watch.rest_while(self.memory.grow(&mut room)).await?;
            }
            while let Some(wait) = ask.bandwidth.and_then(Bandwidth::wait) {
                watch.rest(wait).await?;
            }
            let piece = poll_fn(|cx| match wire.poll_piece(payload, cx) {
                Poll::Ready(piece) => Poll::Ready(piece.transpose()),
                Poll::Pending => watch.poll_over(cx).map(Err),
            });
            let Some(piece) = piece.await? else { break };
            watch.count(piece.len());
            if let Some(bandwidth) = ask.bandwidth {
                bandwidth.count(piece.len());
            }
            if decoder.push(&piece)? == Flow::Full {
                let wire_bytes = decoder.wire_bytes();
                return Ok((room.keep(decoder.into_beginning()), wire_bytes, true));
            }
        }
        let wire_bytes = decoder.wire_bytes();
        Ok((room.keep(decoder.finish()?), wire_bytes, false))
    }
}

/// Puts the connection back if it can serve another request.
async fn keep(mut held: PooledConnection, payload: Payload, lease: &Lease<'_>) {
    drop(payload);
    if held.wire.is_alive().await {
        lease.put(held);
    }
}

/// Reads what is left of an answer that nobody wants; false if it is too much.
async fn drain(
    wire: &mut Wire,
    head: &Parts,
    payload: &mut Payload,
    watch: &mut Watch<'_>,
) -> bool {
    if announced(&head.headers).is_some_and(|bytes| bytes > DRAIN_BYTES_MAX) {
        return false;
    }
    let reading = async {
        let mut bytes = 0;
        while let Some(piece) = poll_fn(|cx| wire.poll_piece(payload, cx)).await {
            let Ok(piece) = piece else { return false };
            bytes += piece.len() as u64;
            if bytes > DRAIN_BYTES_MAX {
                return false;
            }
        }
        true
    };
    watch.within(DRAIN_FOR, Reason::TotalTimeout, reading).await.unwrap_or(false)
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn asked_wait_ms(headers: &HeaderMap) -> Option<u64> {
    let date = headers.get(DATE).and_then(|value| value.to_str().ok());
    retry_after_ms(headers.get(RETRY_AFTER)?.to_str().ok()?, date)
}

/// Where a redirect leads. The target is asked for as the server wrote it, so
/// nothing of its query is dropped.
fn redirect(url: &str, status: u16, headers: &HeaderMap) -> Result<Outcome, Reason> {
    let location = headers.get(LOCATION).ok_or(Reason::RedirectTarget)?;
    let text = text_of(location.as_bytes());
    let policy = page::url::Policy::NOTHING;
    let mut base = page::url::Resolver::new(url, &policy).map_err(|_| Reason::Url)?;
    let to = base.resolve(&text).map_err(|_| Reason::RedirectTarget)?.to_owned();
    let cookies = headers.get_all(SET_COOKIE).iter().cloned().collect();
    Ok(Outcome::Redirect(Redirect { status, to, cookies }))
}

/// Headers are bytes: UTF-8 where they can be, Latin-1 as they once were otherwise.
fn text_of(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}
