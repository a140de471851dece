//! One connection: request after request until somebody has had enough.
//!
//! Relies on `gate` for the end and on `log` for what is remembered. Invariant: every
//! read and write has a deadline, and whatever happens, also a panic of the answering
//! function, the connection leaves the gate.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::answer::{Answer, Fault};
use super::log::OpenVisit;
use super::request::{BadRequest, HEAD_BYTES_MAX, Request};
use super::{WebState, gate::Gate};

/// How long a connection may wait for its next request, or for more of one.
const READ_WAIT: Duration = Duration::from_secs(60);
/// How long a request's head may take from its first byte.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// How long the client may leave an answer lying.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// Most requests come in one piece of less than this.
const PIECE_BYTES: usize = 4 * 1024;

/// Serves the connection of this number until it ends.
pub fn serve(shared: &WebState, number: u64) {
    let Some(stream) = shared.gate.stream(number) else { return };
    let _inside = Inside { gate: &shared.gate, number };
    // How a conversation broke off is the client's concern; the log has the visits.
    let _ = converse(shared, &stream, number);
    let _ = stream.shutdown(Shutdown::Both);
}

/// Leaves the gate, come what may.
struct Inside<'a> {
    gate: &'a Gate,
    number: u64,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.gate.leave(self.number);
    }
}

fn converse(shared: &WebState, mut stream: &TcpStream, number: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_WAIT))?;
    stream.set_write_timeout(Some(WRITE_WAIT))?;
    let mut buffer = Vec::with_capacity(PIECE_BYTES);
    loop {
        shared.gate.set_idle(number, true);
        let head = read_head(stream, &mut buffer);
        shared.gate.set_idle(number, false);
        let parsed = match head? {
            RequestHead::End => return Ok(()),
            RequestHead::TooLong => Err(BadRequest(431)),
            RequestHead::Whole(length) => {
                let parsed = Request::parse(&buffer[..length]);
                buffer.drain(..length);
                parsed
            }
        };
        let mut request = match parsed {
            Ok(request) => request,
            Err(BadRequest(status)) => return refuse(stream, status),
        };
        request.body = read_body(stream, &mut buffer, request.body_bytes().unwrap_or(0))?;
        let visit = shared.log.begin(&request)?;
        let answer = (shared.handler)(&request);
        if !shared.gate.pause(answer.delay) {
            return Ok(());
        }
        let closes = request.is_last;
        let sending = ResponseWriter { gate: &shared.gate, visit };
        if !sending.send(&mut stream, answer, &request)? || closes {
            return Ok(());
        }
    }
}

/// What was read of a request's head.
enum RequestHead {
    /// It is whole and has this length.
    Whole(usize),
    /// The client has nothing more to ask.
    End,
    /// It is longer than is read.
    TooLong,
}

fn read_head(mut stream: &TcpStream, buffer: &mut Vec<u8>) -> io::Result<RequestHead> {
    let mut piece = [0; PIECE_BYTES];
    let mut first_byte = None;
    let mut searched = 0;
    loop {
        let end = buffer[searched..].windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            return Ok(RequestHead::Whole(searched + end + 4));
        }
        if buffer.len() >= HEAD_BYTES_MAX {
            return Ok(RequestHead::TooLong);
        }
        searched = buffer.len().saturating_sub(3);
        if !buffer.is_empty() && first_byte.get_or_insert_with(Instant::now).elapsed() > HEAD_WAIT {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.read(&mut piece)? {
            0 => return Ok(RequestHead::End),
            read => buffer.extend_from_slice(&piece[..read]),
        }
    }
}

/// The body of a request, as long as its head says.
fn read_body(mut stream: &TcpStream, buffer: &mut Vec<u8>, bytes: usize) -> io::Result<Vec<u8>> {
    let mut piece = [0; PIECE_BYTES];
    while buffer.len() < bytes {
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => buffer.extend_from_slice(&piece[..read]),
        }
    }
    Ok(buffer.drain(..bytes).collect())
}

/// Says why nobody was asked, and hangs up.
fn refuse(mut stream: &TcpStream, status: u16) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 {status} Refused\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())
}

/// An answer on its way.
struct ResponseWriter<'a> {
    gate: &'a Gate,
    visit: OpenVisit<'a>,
}

impl ResponseWriter<'_> {
    /// Sends it, with its fault; false if the connection cannot go on.
    fn send(self, stream: &mut &TcpStream, answer: Answer, request: &Request) -> io::Result<bool> {
        let answer = answer.with_conditions(request);
        let (status, fault) = (answer.status, answer.fault);
        let message = answer.encode(request, request.is_last);
        match fault {
            Fault::None => {
                self.visit.end(status)?;
                stream.write_all(&message)?;
                Ok(true)
            }
            Fault::Drop => Ok(false),
            Fault::Cut(bytes) => {
                stream.write_all(&message[..bytes.min(message.len())])?;
                Ok(false)
            }
            Fault::Drip { bytes, every } => self.drip(stream, &message, status, bytes, every),
        }
    }

    fn drip(
        self,
        stream: &mut &TcpStream,
        message: &[u8],
        status: u16,
        bytes: usize,
        every: Duration,
    ) -> io::Result<bool> {
        let drops = message.chunks(bytes.max(1));
        let last = drops.len().saturating_sub(1);
        let mut visit = Some(self.visit);
        for (number, drop) in drops.enumerate() {
            if !self.gate.pause(every) {
                return Ok(false);
            }
            if number == last
                && let Some(visit) = visit.take()
            {
                visit.end(status)?;
            }
            stream.write_all(drop)?;
        }
        Ok(true)
    }
}
