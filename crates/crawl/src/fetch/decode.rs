//! Taking the encodings off a body as it streams in, within bounds.
//!
//! Relies on `codec` for each compression. Invariant: at most [`ENCODINGS_MAX`]
//! encodings are taken off, no stage makes more than [`RATIO_MAX`] bytes of each
//! byte from the wire once it has made [`RATIO_FREE_BYTES`], and never more than the
//! given number of bytes is kept.

mod codec;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::CONTENT_ENCODING;

use super::outcome::Reason;
use codec::Codec;

/// Nobody compresses twice on purpose, but some do by mistake.
pub const ENCODINGS_MAX: usize = 2;
/// What is still believed of honest compression, and nearly reached by tables of zeros.
pub const RATIO_MAX: u64 = 200;
/// Up to here the ratio is not looked at.
pub const RATIO_FREE_BYTES: u64 = 1024 * 1024;
/// A length that a server announces reserves no more than this.
const RESERVED_BYTES_MAX: u64 = 1024 * 1024;
/// What a stage makes at a time.
const STEP_BYTES: usize = 32 * 1024;

/// Whether more of the body is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// More of the body is wanted.
    More,
    /// All is kept that may be, and there was more.
    Full,
}

/// A body on its way from the wire to memory.
pub struct Decoder {
    stages: Vec<DecodeStage>,
    sink: BodySink,
}

struct DecodeStage {
    codec: Codec,
    scratch: Box<[u8]>,
    made_bytes: u64,
}

struct BodySink {
    /// A body that came in one piece, as most do; it need not be copied.
    whole: Option<Bytes>,
    kept: Vec<u8>,
    announced_bytes: Option<u64>,
    kept_bytes_expected: usize,
    kept_bytes_max: usize,
    wire_bytes: u64,
}

impl Decoder {
    /// Prepares for the encodings that the headers name. `announced_bytes` is the
    /// length on the wire, where it is known.
    pub fn new(
        headers: &HeaderMap,
        kept_bytes_max: usize,
        announced_bytes: Option<u64>,
    ) -> Result<Decoder, Reason> {
        let mut stages = Vec::new();
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = value.to_str().map_err(|_| Reason::UnknownEncoding)?;
            for name in value.split(',').map(str::trim) {
                if name.is_empty() || name.eq_ignore_ascii_case("identity") {
                    continue;
                }
                if stages.len() == ENCODINGS_MAX {
                    return Err(Reason::TooManyEncodings);
                }
                let codec = Codec::named(name).ok_or(Reason::UnknownEncoding)?;
                let scratch = vec![0; STEP_BYTES].into_boxed_slice();
                stages.push(DecodeStage { codec, scratch, made_bytes: 0 });
            }
        }
        // The header names them in the order they were put on.
        stages.reverse();
        let growth = if stages.is_empty() { 1 } else { 4 };
        let expected = announced_bytes.unwrap_or(0).saturating_mul(growth).min(RESERVED_BYTES_MAX);
        let expected = usize::try_from(expected).unwrap_or(0).min(kept_bytes_max);
        let sink = BodySink {
            whole: None,
            kept: Vec::new(),
            announced_bytes,
            kept_bytes_expected: expected,
            kept_bytes_max,
            wire_bytes: 0,
        };
        Ok(Decoder { stages, sink })
    }

    /// Takes the next bytes from the wire.
    pub fn push(&mut self, input: &Bytes) -> Result<Flow, Reason> {
        if self.stages.is_empty() {
            return Ok(self.sink.keep_piece(input));
        }
        // What comes over the wire is bounded as what is kept is: a stream of empty
        // blocks makes no bytes, however long it is.
        if self.sink.wire_bytes > self.sink.kept_bytes_max as u64 {
            return Ok(Flow::Full);
        }
        run(&mut self.stages, &mut self.sink, input, true)
    }

    /// Body bytes taken so far, before decoding.
    pub fn wire_bytes(&self) -> u64 {
        self.sink.wire_bytes
    }

    /// Bytes that are kept so far.
    pub fn kept_bytes(&self) -> usize {
        self.sink.whole.as_ref().map_or(self.sink.kept.len(), Bytes::len)
    }

    /// The body, when the message has ended. An encoding that has not ended with it
    /// is broken.
    pub fn finish(self) -> Result<Bytes, Reason> {
        let is_empty = self.sink.wire_bytes == 0;
        if is_empty || self.stages.iter().all(|stage| stage.codec.is_at_end()) {
            Ok(self.sink.into_bytes())
        } else {
            Err(Reason::CorruptEncoding)
        }
    }

    /// What there is of a body whose end was not waited for.
    pub fn into_beginning(self) -> Bytes {
        self.sink.into_bytes()
    }
}

/// Sends bytes through the stages that are left. It calls itself once for each, so
/// at most [`ENCODINGS_MAX`] deep.
fn run(
    stages: &mut [DecodeStage],
    sink: &mut BodySink,
    mut input: &[u8],
    from_wire: bool,
) -> Result<Flow, Reason> {
    let Some((stage, later)) = stages.split_first_mut() else { return Ok(sink.keep(input)) };
    loop {
        let step = stage.codec.step(input, &mut stage.scratch)?;
        input = &input[step.used..];
        if from_wire {
            sink.wire_bytes += step.used as u64;
        }
        stage.made_bytes += step.made as u64;
        let believed = RATIO_FREE_BYTES.max(sink.wire_bytes.saturating_mul(RATIO_MAX));
        if stage.made_bytes > believed {
            return Err(Reason::TooLarge);
        }
        if step.made > 0 && run(later, sink, &stage.scratch[..step.made], false)? == Flow::Full {
            return Ok(Flow::Full);
        }
        let may_have_more = step.made == stage.scratch.len();
        if input.is_empty() && !may_have_more {
            return Ok(Flow::More);
        }
        if step.used == 0 && step.made == 0 {
            return Err(Reason::CorruptEncoding);
        }
    }
}

impl BodySink {
    /// Takes a piece that needs no decoding.
    fn keep_piece(&mut self, piece: &Bytes) -> Flow {
        let is_whole = self.wire_bytes == 0 && self.announced_bytes == Some(piece.len() as u64);
        self.wire_bytes += piece.len() as u64;
        if is_whole && piece.len() <= self.kept_bytes_max {
            self.whole = Some(piece.clone());
            return Flow::More;
        }
        self.keep(piece)
    }

    fn into_bytes(self) -> Bytes {
        self.whole.unwrap_or(Bytes::from(self.kept))
    }

    fn keep(&mut self, bytes: &[u8]) -> Flow {
        if self.kept.capacity() == 0 {
            self.kept
                .reserve_exact(self.kept_bytes_expected.max(bytes.len()).min(self.kept_bytes_max));
        }
        let room = self.kept_bytes_max - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Flow::Full } else { Flow::More }
    }
}

#[cfg(test)]
mod tests;
