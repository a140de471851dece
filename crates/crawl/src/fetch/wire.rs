//! One connection that speaks HTTP/1.1 or HTTP/2, one request at a time.
//!
//! hyper and h2 split a connection into a driver, which moves bytes, and a handle,
//! which asks. Usually the driver is a task of its own; here whoever asks drives, in
//! the same task: no task outlives the fetcher, none has to be woken for another,
//! and an idle connection costs nothing. So HTTP/2 is not multiplexed: a crawler
//! asks a host for one thing after the other anyway.
//!
//! Invariant: a connection is clean only while no answer is half read on it.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::limits::Limits;
use super::outcome::Reason;

/// What HTTP/2 servers may send before we say that we have read.
const H2_WINDOW_BYTES: u32 = 1024 * 1024;
/// hyper's own minimum.
const H1_BUFFER_BYTES_MIN: usize = 8 * 1024;

/// A TCP or TLS stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection to one address.
pub(super) struct Wire {
    /// Where the socket really ends.
    pub peer: SocketAddr,
    speaks: Speaks,
    /// The driver has ended; nothing can be asked any more.
    is_over: bool,
}

type Io = Box<dyn Stream>;

enum Speaks {
    H1 {
        sender: http1::SendRequest<RequestBody>,
        driver: Box<http1::Connection<TokioIo<Io>, RequestBody>>,
    },
    H2 {
        sender: h2::client::SendRequest<Bytes>,
        driver: Box<h2::client::Connection<Io, Bytes>>,
    },
}

/// The body of an answer while it comes in.
pub(super) enum Payload {
    H1(Incoming),
    H2(h2::RecvStream),
}

/// What is sent with a request: a form, or nothing.
#[derive(Default)]
pub(super) struct RequestBody(pub Option<Bytes>);

impl Body for RequestBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl Wire {
    pub async fn h1(stream: Io, peer: SocketAddr, limits: &Limits) -> Result<Wire, Reason> {
        let header_bytes_max = limits.header_bytes_max.max(H1_BUFFER_BYTES_MIN);
        let (sender, driver) = http1::Builder::new()
            .max_headers(limits.headers_max)
            .max_header_size(header_bytes_max)
            .max_buf_size(header_bytes_max)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| h1_reason(&error))?;
        let speaks = Speaks::H1 { sender, driver: Box::new(driver) };
        Ok(Wire { peer, speaks, is_over: false })
    }

    pub async fn h2(stream: Io, peer: SocketAddr, limits: &Limits) -> Result<Wire, Reason> {
        let header_bytes_max = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
        let (sender, driver) = h2::client::Builder::new()
            .enable_push(false)
            .initial_window_size(H2_WINDOW_BYTES)
            .initial_connection_window_size(H2_WINDOW_BYTES)
            .max_header_list_size(header_bytes_max)
            .handshake(stream)
            .await
            .map_err(|error| h2_reason(&error))?;
        let speaks = Speaks::H2 { sender, driver: Box::new(driver) };
        Ok(Wire { peer, speaks, is_over: false })
    }

    /// Whether requests carry the whole URL instead of a Host header.
    pub fn is_h2(&self) -> bool {
        matches!(self.speaks, Speaks::H2 { .. })
    }

    /// Looks whether the other side is still there, without waiting.
    pub async fn is_alive(&mut self) -> bool {
        poll_fn(|cx| {
            self.drive(cx);
            let is_open = !self.is_over
                && match &mut self.speaks {
                    Speaks::H1 { sender, .. } => sender.is_ready(),
                    Speaks::H2 { sender, .. } => {
                        matches!(sender.poll_ready(cx), Poll::Ready(Ok(())))
                    }
                };
            Poll::Ready(is_open)
        })
        .await
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn ask(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Payload>, Reason> {
        match &mut self.speaks {
            Speaks::H1 { sender, .. } => {
                let answer = sender.send_request(request);
                let answer = self.driven(answer).await.map_err(|error| h1_reason(&error))?;
                Ok(answer.map(Payload::H1))
            }
            Speaks::H2 { sender, .. } => {
                let mut sender = sender.clone();
                self.driven(poll_fn(|cx| sender.poll_ready(cx)))
                    .await
                    .map_err(|error| h2_reason(&error))?;
                let (head, RequestBody(form)) = request.into_parts();
                let request = Request::from_parts(head, ());
                let (answer, mut sending) = sender
                    .send_request(request, form.is_none())
                    .map_err(|error| h2_reason(&error))?;
                if let Some(form) = form {
                    // h2 keeps what the other side has no window for yet.
                    sending.send_data(form, true).map_err(|error| h2_reason(&error))?;
                }
                let answer = self.driven(answer).await.map_err(|error| h2_reason(&error))?;
                Ok(answer.map(Payload::H2))
            }
        }
    }

    /// The next piece of a body; none at its end.
    pub fn poll_piece(
        &mut self,
        payload: &mut Payload,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Reason>>> {
        // Asking first tells the driver that a piece is wanted.
        if let Poll::Ready(piece) = payload.poll_piece(cx) {
            return Poll::Ready(piece);
        }
        self.drive(cx);
        payload.poll_piece(cx)
    }

    /// Waits for something while driving the connection.
    async fn driven<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = pin!(wanted);
        poll_fn(|cx| {
            self.drive(cx);
            wanted.as_mut().poll(cx)
        })
        .await
    }

    /// Moves bytes. What goes wrong is told to whoever waits on the handle.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if self.is_over {
            return;
        }
        self.is_over = match &mut self.speaks {
            Speaks::H1 { driver, .. } => Pin::new(driver).poll(cx).is_ready(),
            Speaks::H2 { driver, .. } => Pin::new(driver).poll(cx).is_ready(),
        };
    }
}

impl Payload {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Reason>>> {
        match self {
            Payload::H1(incoming) => loop {
                let frame = match Pin::new(&mut *incoming).poll_frame(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Ready(Some(frame)) => frame,
                };
                match frame.map(Frame::into_data) {
                    Ok(Ok(piece)) => return Poll::Ready(Some(Ok(piece))),
                    // Trailers; nobody needs them.
                    Ok(Err(_)) => {}
                    Err(error) => return Poll::Ready(Some(Err(h1_reason(&error)))),
                }
            },
            Payload::H2(stream) => match stream.poll_data(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Ready(Some(Ok(piece))) => {
                    // It can fail only for more than was received.
                    let _ = stream.flow_control().release_capacity(piece.len());
                    Poll::Ready(Some(Ok(piece)))
                }
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(h2_reason(&error)))),
            },
        }
    }
}

fn h1_reason(error: &hyper::Error) -> Reason {
    if error.is_parse() {
        // hyper tells these faults apart only in words.
        let words = error.to_string();
        let is_length = words.contains("content-length") || words.contains("transfer-encoding");
        return match words.contains("too large") {
            true => Reason::HeadersTooLarge,
            false if is_length => Reason::AmbiguousLength,
            false => Reason::Protocol,
        };
    }
    let source = std::error::Error::source(error);
    match source.and_then(|source| source.downcast_ref::<std::io::Error>()) {
        Some(io) if is_nonsense(io) => Reason::Protocol,
        _ => Reason::ConnectionLost,
    }
}

/// What hyper makes of chunks that are none.
fn is_nonsense(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput};
    matches!(error.kind(), InvalidData | InvalidInput)
}

fn h2_reason(error: &h2::Error) -> Reason {
    // Found by our side: the other one does not speak HTTP/2 as it should.
    let is_fault = error.is_library() && error.reason() != Some(h2::Reason::NO_ERROR);
    if is_fault { Reason::Protocol } else { Reason::ConnectionLost }
}
