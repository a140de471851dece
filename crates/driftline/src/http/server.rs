//! The server: listens, shakes hands, and serves connections until it is told to end.
//!
//! A runtime of its own; who calls is looked up by a blocking thread, of which there are at
//! most [`THREADS_MAX`], and answers are computed by the threads of the
//! [pool](super::answer_pool). Invariants: at most [`CONNECTIONS_MAX`] connections are open, and
//! one that sends no head within [`HEAD_MAX`] is closed; whoever is being answered when the
//! server ends has [`END_MAX`] to get it.

use super::dispatch::{ApiState, router};
use anyhow::{Context, bail};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Threads that look up who calls, and whether the data can be reached.
const THREADS_MAX: usize = 4;
/// Connections that are open at a time; others wait to be accepted.
const CONNECTIONS_MAX: usize = 512;
/// The longest a caller may take for a handshake, and for the head of a request; also for
/// what of the last answer is still on its way when the server waits for the next request.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Lines of a request's head.
pub(super) const HEADERS_MAX: usize = 100;
/// How long requests that are under way have when the server ends.
const END_MAX: Duration = Duration::from_secs(5);
/// The wait after a connection could not be accepted, for want of descriptors perhaps.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// A server at work.
pub struct ApiServer {
    pub address: SocketAddr,
    served: Arc<ApiState>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl ApiServer {
    /// Begins to serve, with TLS or without.
    pub fn start(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        served: Arc<ApiState>,
    ) -> anyhow::Result<ApiServer> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("http")
            .max_blocking_threads(THREADS_MAX)
            .enable_all()
            .build()?;
        let (stop, stopped) = watch::channel(false);
        let (routes, ending) = (router(served.clone()), served.clone());
        served.pool.start()?;
        let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
            runtime.block_on(async move {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => accept(listener, tls, routes, stopped).await,
                    Err(_) => std::future::ready(()).await,
                }
            });
            ending.pool.end(END_MAX);
            runtime.shutdown_timeout(END_MAX);
        })?;
        Ok(ApiServer { address, served, stop, thread })
    }

    /// Ends, when what is under way is answered.
    pub fn stop(self) {
        self.served.end();
        let _ = self.stop.send(true);
        let _ = self.thread.join();
    }
}

/// What a server shows and signs with.
pub fn tls(certificates: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let named = |path: &Path| crate::text::shown(&path.display().to_string());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .with_context(|| format!("cannot read certificates from {}", named(certificates)))?;
    if chain.is_empty() {
        bail!("there is no certificate in {}", named(certificates));
    }
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot read a private key from {}", named(key)))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate and the key do not belong together")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn accept(
    listener: tokio::net::TcpListener,
    tls: Option<TlsAcceptor>,
    routes: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        // Those that have ended make room; so the set is no longer than what is open.
        while connections.try_join_next().is_some() {}
        let accepted = async {
            let place = room.clone().acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        let (place, stream) = tokio::select! {
            _ = stopped.changed() => break,
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => (place, stream),
                Err(_) => {
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
        };
        let (tls, routes, stopped) = (tls.clone(), routes.clone(), stopped.clone());
        connections.spawn(async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            match tls {
                None => serve(stream, routes, stopped).await,
                Some(tls) => {
                    // Whoever does not come to an end with it has gone.
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_MAX, tls.accept(stream)).await
                    {
                        serve(stream, routes, stopped).await;
                    }
                }
            }
        });
    }
    drop(listener);
    let _ =
        tokio::time::timeout(END_MAX, async { while connections.join_next().await.is_some() {} })
            .await;
}

/// Serves a connection until its caller ends it; when the server ends, until what is under
/// way is answered.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    routes: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    tokio::pin!(served);
    tokio::select! {
        _ = &mut served => {}
        _ = stopped.changed() => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}
