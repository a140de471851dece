//! Recognising a document again: the same bytes, the same text, nearly the same text.
//!
//! Relies on `ids::hash128` and on the tokens of `text`. Invariant: all three
//! values are pure functions of their input and frozen, because they are stored
//! and compared across versions.

use crate::ids::hash128;
use crate::text::{for_each_token, mix};

/// Words in one shingle. Three keep word order without letting one edit reach far.
const SHINGLE_WORDS: usize = 3;

/// Two texts whose SimHashes differ in at most this many bits are near-duplicates.
///
/// The value of Manku, Jain and Das Sarma (WWW 2007) for 64-bit hashes of web pages.
pub const NEAR_BITS: u32 = 3;

/// The hash of the exact body bytes.
pub fn content_hash(body: &[u8]) -> [u8; 16] {
    hash128(body)
}

/// The hash of the running text: equal when only markup changed.
pub fn text_hash(text: &str) -> [u8; 16] {
    hash128(text.as_bytes())
}

/// In how many bits two SimHashes differ.
pub fn distance(first: u64, second: u64) -> u32 {
    (first ^ second).count_ones()
}

/// The SimHash (Charikar 2002) of a text over its three-word shingles.
///
/// Bit `i` is set when more than half of the shingles' hashes have it set. A text
/// without words has SimHash 0.
pub fn simhash(text: &str) -> u64 {
    let mut votes = Votes::new();
    let mut window = [0u64; SHINGLE_WORDS];
    let mut words = 0usize;
    for_each_token(text, |token| {
        window = [window[1], window[2], token];
        words += 1;
        if words >= SHINGLE_WORDS {
            votes.add(shingle(window));
        }
    });
    if words > 0 && words < SHINGLE_WORDS {
        // Too short for one shingle: the words there are stand for it.
        votes.add(shingle(window));
    }
    votes.result()
}

fn shingle([first, second, third]: [u64; SHINGLE_WORDS]) -> u64 {
    mix(first.rotate_left(42) ^ second.rotate_left(21) ^ third)
}

/// Counts, for each of 64 bits, how many hashes have it set.
///
/// The counts live in bytes, eight to a word, so that one table look-up adds
/// eight of them; they move to wide counters before a byte can overflow.
struct Votes {
    narrow: [u64; 8],
    narrow_count: u8,
    wide: [u64; 64],
    total: u64,
}

impl Votes {
    fn new() -> Votes {
        Votes { narrow: [0; 8], narrow_count: 0, wide: [0; 64], total: 0 }
    }

    fn add(&mut self, hash: u64) {
        for (lanes, byte) in self.narrow.iter_mut().zip(hash.to_le_bytes()) {
            *lanes += SPREAD[usize::from(byte)];
        }
        self.total += 1;
        self.narrow_count += 1;
        if self.narrow_count == u8::MAX {
            self.widen();
        }
    }

    fn widen(&mut self) {
        for (lanes, wide) in self.narrow.iter_mut().zip(self.wide.chunks_exact_mut(8)) {
            for (count, lane) in wide.iter_mut().zip(lanes.to_le_bytes()) {
                *count += u64::from(lane);
            }
            *lanes = 0;
        }
        self.narrow_count = 0;
    }

    fn result(mut self) -> u64 {
        self.widen();
        let half = self.total / 2;
        self.wide
            .iter()
            .enumerate()
            .fold(0, |hash, (bit, &count)| hash | (u64::from(count > half) << bit))
    }
}

/// For each byte: its eight bits, each as one byte lane of 0 or 1.
const SPREAD: [u64; 256] = spread();

const fn spread() -> [u64; 256] {
    let mut table = [0u64; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests;
