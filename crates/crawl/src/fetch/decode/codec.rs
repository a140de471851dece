//! One compression, a step at a time.
//!
//! Wraps flate2, brotli-decompressor and zstd behind one function: some bytes in,
//! some bytes out. Invariant: memory is bounded by the windows (32 KiB for gzip and
//! deflate, 16 MiB for brotli, [`ZSTD_WINDOW_LOG_MAX`] for zstd) and never by the input.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::super::outcome::Reason;

/// 8 MiB, which RFC 8878 asks for and RFC 9659 makes the limit on the web.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Each member of a gzip file costs memory to set up; files made of blocks have hundreds.
const GZIP_MEMBERS_MAX: u32 = 4_096;
const GZIP_WINDOW_BITS: u8 = 15;
const GZIP_MAGIC: u8 = 0x1f;

/// A compression and where it is in its stream.
pub(super) enum Codec {
    Gzip {
        inner: Decompress,
        members: u32,
        between: bool,
    },
    /// What servers call deflate is zlib or bare deflate; the first byte tells.
    DeflateOfSomeKind,
    Deflate(Decompress),
    Brotli(Box<Brotli>),
    Zstd {
        inner: Decoder<'static>,
        between: bool,
    },
    /// The stream has ended. What follows is no part of it and is ignored.
    Ended,
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// How far a step came.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DecodeProgress {
    pub used: usize,
    pub made: usize,
}

impl Codec {
    /// The codec of a content coding's name.
    pub fn named(name: &str) -> Option<Codec> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("gzip") || is("x-gzip") {
            let inner = Decompress::new_gzip(GZIP_WINDOW_BITS);
            Some(Codec::Gzip { inner, members: 1, between: false })
        } else if is("deflate") {
            Some(Codec::DeflateOfSomeKind)
        } else if is("br") {
            let alloc = StandardAlloc::default;
            // Strict: without windows beyond 16 MiB, which the web does not have.
            Some(Codec::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc()))))
        } else if is("zstd") {
            let mut inner = Decoder::new().ok()?;
            inner.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)).ok()?;
            Some(Codec::Zstd { inner, between: false })
        } else {
            None
        }
    }

    /// Whether the stream may end here.
    pub fn is_at_end(&self) -> bool {
        match self {
            Codec::Ended => true,
            Codec::Gzip { between, .. } | Codec::Zstd { between, .. } => *between,
            Codec::DeflateOfSomeKind | Codec::Deflate(_) | Codec::Brotli(_) => false,
        }
    }

    /// Uses some of the input and makes some output.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Reason> {
        if let Codec::DeflateOfSomeKind = self {
            let Some(first) = input.first() else { return Ok(DecodeProgress::default()) };
            let is_zlib = first & 0x0f == 8 && first >> 4 <= 7;
            *self = Codec::Deflate(Decompress::new(is_zlib));
        }
        match self {
            Codec::Gzip { inner, members, between } => {
                if *between {
                    let Some(first) = input.first() else { return Ok(DecodeProgress::default()) };
                    if *first != GZIP_MAGIC {
                        *self = Codec::Ended;
                        return Ok(DecodeProgress { used: input.len(), made: 0 });
                    }
                    if *members == GZIP_MEMBERS_MAX {
                        return Err(Reason::TooLarge);
                    }
                    *members += 1;
                    *between = false;
                    *inner = Decompress::new_gzip(GZIP_WINDOW_BITS);
                }
                let (step, ended) = inflate(inner, input, output)?;
                *between = ended;
                Ok(step)
            }
            Codec::Deflate(inner) => {
                let (step, ended) = inflate(inner, input, output)?;
                if ended {
                    *self = Codec::Ended;
                }
                Ok(step)
            }
            Codec::Brotli(inner) => {
                let (step, ended) = unbrotli(inner, input, output)?;
                if ended {
                    *self = Codec::Ended;
                }
                Ok(step)
            }
            Codec::Zstd { inner, between } => {
                if input.is_empty() && *between {
                    return Ok(DecodeProgress::default());
                }
                let (step, ended) = unzstd(inner, input, output)?;
                *between = ended;
                Ok(step)
            }
            Codec::DeflateOfSomeKind | Codec::Ended => {
                Ok(DecodeProgress { used: input.len(), made: 0 })
            }
        }
    }
}

fn inflate(
    inner: &mut Decompress,
    input: &[u8],
    output: &mut [u8],
) -> Result<(DecodeProgress, bool), Reason> {
    let (used, made) = (inner.total_in(), inner.total_out());
    let status = inner
        .decompress(input, output, FlushDecompress::None)
        .map_err(|_| Reason::CorruptEncoding)?;
    // Both differences are at most the length of a slice.
    let used = usize::try_from(inner.total_in() - used).unwrap_or(input.len());
    let made = usize::try_from(inner.total_out() - made).unwrap_or(output.len());
    Ok((DecodeProgress { used, made }, status == Status::StreamEnd))
}

fn unbrotli(
    inner: &mut Brotli,
    input: &[u8],
    output: &mut [u8],
) -> Result<(DecodeProgress, bool), Reason> {
    let (mut left, mut used) = (input.len(), 0);
    let (mut room, mut made) = (output.len(), 0);
    let mut total = 0;
    let result = BrotliDecompressStream(
        &mut left, &mut used, input, &mut room, &mut made, output, &mut total, inner,
    );
    match result {
        BrotliResult::ResultFailure => Err(Reason::CorruptEncoding),
        BrotliResult::ResultSuccess => Ok((DecodeProgress { used, made }, true)),
        _ => Ok((DecodeProgress { used, made }, false)),
    }
}

fn unzstd(
    inner: &mut Decoder<'static>,
    input: &[u8],
    output: &mut [u8],
) -> Result<(DecodeProgress, bool), Reason> {
    let mut source = InBuffer::around(input);
    let mut target = OutBuffer::around(output);
    let hint = inner.run(&mut source, &mut target).map_err(|error| {
        // The library has one message for a window beyond the limit.
        let is_window = error.to_string().contains("memory");
        if is_window { Reason::TooLarge } else { Reason::CorruptEncoding }
    })?;
    Ok((DecodeProgress { used: source.pos(), made: target.pos() }, hint == 0))
}
