//! Bytes from outside as bounded UTF-8 text: unpacked if gzipped, decoded, cut.
//!
//! Feeds and sitemaps read through this one door. Relies on `flate2` and
//! `encoding_rs`, both streaming. Invariant: never hands on more than
//! `bytes_max` unpacked bytes (decoded: at most three times that), never holds
//! more than a chunk of them, lets no XML reader collect a piece of more than
//! `PIECE_BYTES_MAX`, and never fails: what is broken ends early, and
//! `cut` says why.

use std::io::{self, BufRead, Read};

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::bufread::MultiGzDecoder;

const CHUNK_BYTES: usize = 16 << 10;
/// A declaration of the encoding stands within this many bytes.
const DECLARATION_BYTES_MAX: usize = 256;
/// Unpacked bytes for each packed one, once there are `RATIO_FREE_BYTES`.
const RATIO_MAX: usize = 200;
const RATIO_FREE_BYTES: usize = 1 << 20;
/// One tag, text, comment or declaration: an XML reader holds it whole.
const PIECE_BYTES_MAX: usize = 4 << 20;
const GZIP_MAGIC: &[u8] = &[0x1F, 0x8B];

/// Why the text ends before the bytes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// There is more than the limit allows.
    TooLarge,
    /// It unpacks to far more than a real file would.
    Bomb,
    /// The packed data is damaged or ends in the middle.
    Damaged,
    /// One tag or text is longer than any real one.
    LongPiece,
}

/// A reader of decoded text.
pub(crate) struct DecodedText<'a> {
    packed: CompressedText<'a>,
    packed_bytes: usize,
    bytes_max: usize,
    taken: usize,
    decoder: Option<Decoder>,
    out: Vec<u8>,
    out_at: usize,
    /// Bytes consumed since the reader began its present piece.
    piece: usize,
    ended: bool,
    /// Set once the text was cut.
    pub(crate) cut: Option<Cut>,
}

enum CompressedText<'a> {
    Plain(&'a [u8]),
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
}

impl<'a> DecodedText<'a> {
    pub(crate) fn new(bytes: &'a [u8], bytes_max: usize) -> DecodedText<'a> {
        let packed = if bytes.starts_with(GZIP_MAGIC) {
            CompressedText::Gzip(Box::new(MultiGzDecoder::new(bytes)))
        } else {
            CompressedText::Plain(bytes)
        };
        DecodedText {
            packed,
            packed_bytes: bytes.len(),
            bytes_max,
            taken: 0,
            decoder: None,
            out: Vec::new(),
            out_at: 0,
            piece: 0,
            ended: false,
            cut: None,
        }
    }

    /// Unpacked bytes that were taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// The first character that is no white space, within the first chunk.
    pub(crate) fn first_byte(&mut self) -> Option<u8> {
        let chunk = self.chunk();
        chunk.iter().copied().find(|byte| !byte.is_ascii_whitespace())
    }

    /// Decoded text that was not consumed yet; empty at the end.
    pub(crate) fn chunk(&mut self) -> &[u8] {
        while self.out_at == self.out.len() && !self.ended {
            self.pump();
        }
        &self.out[self.out_at..]
    }

    /// Tells that an XML reader begins with its next piece of the document.
    pub(crate) fn next_piece(&mut self) {
        self.piece = 0;
    }

    fn pump(&mut self) {
        let raw = self.take();
        let decoder =
            self.decoder.get_or_insert_with(|| encoding_of(&raw).new_decoder_with_bom_removal());
        let room = decoder.max_utf8_buffer_length(raw.len()).unwrap_or(raw.len() * 4);
        self.out.clear();
        self.out.resize(room, 0);
        self.out_at = 0;
        let (_, _, written, _) = decoder.decode_to_utf8(&raw, &mut self.out, self.ended);
        self.out.truncate(written);
    }

    /// The next unpacked bytes, a full chunk unless the end is reached.
    fn take(&mut self) -> Vec<u8> {
        let left = self.bytes_max - self.taken;
        let wanted = CHUNK_BYTES.min(left + 1);
        let mut raw = Vec::with_capacity(wanted);
        let limit = wanted as u64;
        let result = match &mut self.packed {
            CompressedText::Plain(bytes) => bytes.take(limit).read_to_end(&mut raw),
            CompressedText::Gzip(decoder) => decoder.take(limit).read_to_end(&mut raw),
        };
        self.ended = raw.len() < wanted;
        if result.is_err() {
            self.end(Cut::Damaged);
        }
        if raw.len() > left {
            raw.truncate(left);
            self.end(Cut::TooLarge);
        }
        self.taken += raw.len();
        let ratio_bytes_max = RATIO_FREE_BYTES.max(self.packed_bytes.saturating_mul(RATIO_MAX));
        if matches!(self.packed, CompressedText::Gzip(_)) && self.taken > ratio_bytes_max {
            self.end(Cut::Bomb);
        }
        raw
    }

    fn end(&mut self, cut: Cut) {
        self.ended = true;
        self.cut = Some(cut);
    }
}

impl Read for DecodedText<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let chunk = self.chunk();
        let count = chunk.len().min(buffer.len());
        buffer[..count].copy_from_slice(&chunk[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for DecodedText<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece > PIECE_BYTES_MAX {
            self.end(Cut::LongPiece);
            self.out.clear();
            self.out_at = 0;
        }
        Ok(self.chunk())
    }

    fn consume(&mut self, count: usize) {
        self.piece += count;
        self.out_at = (self.out_at + count).min(self.out.len());
    }
}

/// Byte order mark, else the shape of UTF-16, else the XML declaration, else UTF-8.
fn encoding_of(start: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return encoding;
    }
    if start.starts_with(b"<\0") {
        return UTF_16LE;
    }
    if start.starts_with(b"\0<") {
        return UTF_16BE;
    }
    // A declaration that can be read byte by byte is not in UTF-16, whatever it says.
    declared(start).filter(|encoding| encoding.is_ascii_compatible()).unwrap_or(UTF_8)
}

fn declared(start: &[u8]) -> Option<&'static Encoding> {
    let start = &start[..start.len().min(DECLARATION_BYTES_MAX)];
    let declaration = start.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = memchr::memchr(b'>', declaration)?;
    let declaration = &declaration[..end];
    let at = memchr::memmem::find(declaration, b"encoding")?;
    let mut quoted = declaration[at..].split(|byte| matches!(byte, b'"' | b'\''));
    Encoding::for_label(quoted.nth(1)?)
}
