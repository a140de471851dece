//! Every codec, its bombs, and the limits of what they may become.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use hyper::header::HeaderValue;

use super::*;

const MIB: usize = 1024 * 1024;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let params = brotli::enc::BrotliEncoderParams { quality: 4, ..Default::default() };
    brotli::BrotliCompress(&mut &plain[..], &mut out, &params).unwrap();
    out
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    zstd::encode_all(plain, 1).unwrap()
}

type Encode = fn(&[u8]) -> Vec<u8>;

const CODECS: [(&str, Encode); 5] =
    [("gzip", gzip), ("deflate", zlib), ("deflate", deflate), ("br", brotli), ("zstd", zstd)];

fn decoder(encoding: &str, max: usize) -> Result<Decoder, Reason> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_str(encoding).unwrap());
    Decoder::new(&headers, max, None)
}

fn decode(encoding: &str, wire: &[u8], piece: usize) -> Result<Vec<u8>, Reason> {
    let mut decoder = decoder(encoding, 16 * MIB)?;
    for bytes in wire.chunks(piece) {
        assert_eq!(push(&mut decoder, bytes)?, Flow::More);
    }
    decoder.finish().map(Vec::from)
}

fn push(decoder: &mut Decoder, bytes: &[u8]) -> Result<Flow, Reason> {
    decoder.push(&Bytes::copy_from_slice(bytes))
}

/// Text that compresses about as pages do.
fn page_text() -> Vec<u8> {
    (0..20_000_u32)
        .flat_map(|n| format!("<p>{} of {n}</p>", n * 7919 % 1000).into_bytes())
        .collect()
}

#[test]
fn every_encoding_gives_back_what_went_in_however_it_is_cut() {
    let plain = page_text();
    for (name, encode) in CODECS {
        let wire = encode(&plain);
        for piece in [1, 7, 1_000, 65_536, usize::MAX] {
            let decoded = decode(name, &wire, piece).unwrap();
            assert!(decoded == plain, "{name} in pieces of {piece}");
        }
        assert_eq!(decode(name, &encode(b""), 3), Ok(Vec::new()), "{name}");
        assert_eq!(decode(name, b"", 1), Ok(Vec::new()), "{name} without a byte");
    }
    assert_eq!(decode("identity", b"plain", 2), Ok(b"plain".to_vec()));
    assert_eq!(decode("X-GZIP", &gzip(b"plain"), 2), Ok(b"plain".to_vec()));
}

#[test]
fn two_encodings_are_taken_off_in_reverse_and_more_are_refused() {
    let plain = page_text();
    assert!(decode("gzip, br", &brotli(&gzip(&plain)), 999).unwrap() == plain);
    assert!(decode("zstd , identity, gzip", &gzip(&zstd(&plain)), 999).unwrap() == plain);
    assert!(decode("gzip, br", &gzip(&brotli(&plain)), 999).is_err());
    assert_eq!(decode("gzip, gzip, gzip", b"", 1), Err(Reason::TooManyEncodings));
    assert_eq!(decode(&["gzip"; 20].join(","), b"", 1), Err(Reason::TooManyEncodings));
    for unknown in ["compress", "x", "gzip;q=1", "aes128gcm", "dcb"] {
        assert_eq!(decode(unknown, b"", 1), Err(Reason::UnknownEncoding), "{unknown}");
    }
}

#[test]
fn a_bomb_is_recognised_soon_after_the_first_mebibyte() {
    // 24 MiB of zeros stand for any number: the decoder stops long before their end.
    let zeros = vec![0; 24 * MIB];
    for (name, encode) in CODECS {
        let wire = encode(&zeros);
        let mut decoder = decoder(name, 64 * MIB).unwrap();
        let outcome =
            wire.chunks(16_384).map(|bytes| push(&mut decoder, bytes)).find(|f| f.is_err());
        assert_eq!(outcome, Some(Err(Reason::TooLarge)), "{name} of {} bytes", wire.len());
        let believed = RATIO_FREE_BYTES.max(decoder.wire_bytes() * RATIO_MAX);
        let kept = decoder.into_beginning();
        assert!(kept.len() as u64 <= believed + STEP_BYTES as u64, "{name}: {}", kept.len());
        assert!(kept.len() < 16 * MIB, "{name}: {}", kept.len());
    }
}

#[test]
fn a_bomb_inside_another_encoding_is_recognised_in_the_inner_one() {
    let wire = gzip(&gzip(&vec![0; 24 * MIB]));
    let mut decoder = decoder("gzip, gzip", 64 * MIB).unwrap();
    let outcome = wire.chunks(1_024).map(|bytes| push(&mut decoder, bytes)).find(|f| f.is_err());
    assert_eq!(outcome, Some(Err(Reason::TooLarge)));
    assert!(decoder.into_beginning().len() as u64 <= RATIO_FREE_BYTES);
}

#[test]
fn a_gzip_stream_may_have_many_members_but_not_any_number() {
    let three = [gzip(b"a"), gzip(b""), gzip(b"b")].concat();
    for piece in [1, 5, 1_000] {
        assert_eq!(decode("gzip", &three, piece), Ok(b"ab".to_vec()));
    }
    let endless = gzip(b"").repeat(5_000);
    assert_eq!(decode("gzip", &endless, 1_000), Err(Reason::TooLarge));
    let bomb = gzip(&vec![0; 512 * 1024]).repeat(16);
    assert_eq!(decode("gzip", &bomb, 1_000), Err(Reason::TooLarge));
}

#[test]
fn what_follows_the_end_is_ignored_and_an_end_that_is_missing_is_a_fault() {
    for (name, encode) in CODECS {
        let whole = encode(b"some text that is not too short");
        let cut = &whole[..whole.len() - 1];
        assert_eq!(decode(name, cut, 4), Err(Reason::CorruptEncoding), "{name}");
        if name != "zstd" {
            let longer = [&whole[..], b"\0\0 trailing"].concat();
            assert!(decode(name, &longer, 4).is_ok(), "{name}");
        }
        let noise = [0xff; 1_000];
        assert!(decode(name, &noise, 100).is_err(), "{name}");
    }
}

#[test]
fn only_as_much_is_kept_as_is_allowed() {
    let plain = page_text();
    for (name, encode) in CODECS.into_iter().chain([("identity", (|p| p.to_vec()) as Encode)]) {
        let mut decoder = decoder(name, 10_000).unwrap();
        let wire = encode(&plain);
        assert!(
            wire.chunks(512).any(|bytes| push(&mut decoder, bytes) == Ok(Flow::Full)),
            "{name}"
        );
        assert!(decoder.into_beginning()[..] == plain[..10_000], "{name}");
        let exact = encode(&plain[..10_000]);
        let mut decoder = super::tests::decoder(name, 10_000).unwrap();
        assert_eq!(push(&mut decoder, &exact), Ok(Flow::More), "{name}");
        assert_eq!(decoder.finish().unwrap().len(), 10_000, "{name}");
    }
}

#[test]
fn a_stream_that_makes_nothing_ends_when_the_wire_has_brought_enough() {
    // Empty stored blocks of deflate, without end.
    let empty_block = [0, 0, 0, 0xff, 0xff];
    let wire = empty_block.repeat(10_000);
    let mut decoder = decoder("deflate", 4_096).unwrap();
    assert!(wire.chunks(512).any(|bytes| push(&mut decoder, bytes) == Ok(Flow::Full)));
    assert!(decoder.wire_bytes() < 8_192);
}

#[test]
fn a_zstd_window_beyond_eight_mebibytes_is_refused() {
    let encode = |window_log: u32| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(b"small").unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(decode("zstd", &encode(23), 100), Ok(b"small".to_vec()));
    assert_eq!(decode("zstd", &encode(24), 100), Err(Reason::TooLarge));
    assert_eq!(decode("zstd", &encode(27), 100), Err(Reason::TooLarge));
}

#[test]
fn a_body_in_one_piece_is_kept_as_it_came() {
    let piece = Bytes::from_static(b"hello");
    let plain = |max, announced| Decoder::new(&HeaderMap::new(), max, announced).unwrap();
    let mut whole = plain(5, Some(5));
    assert_eq!(whole.push(&piece), Ok(Flow::More));
    assert_eq!(whole.finish().unwrap().as_ptr(), piece.as_ptr());
    let mut cut = plain(4, Some(5));
    assert_eq!(cut.push(&piece), Ok(Flow::Full));
    assert_eq!(&cut.into_beginning()[..], b"hell");
    let mut two = plain(10, Some(10));
    assert_eq!(two.push(&piece), Ok(Flow::More));
    assert_eq!(two.push(&piece), Ok(Flow::More));
    assert_eq!(&two.finish().unwrap()[..], b"hellohello");
}
