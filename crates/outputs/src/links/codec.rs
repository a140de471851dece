//! Numbers and texts in rows, as short as they are.
//!
//! Invariant: what is read back is what was written, and bytes that nobody wrote are an
//! error with a name, never a panic or a large allocation.

use store::{Error, Result};

/// Appends a number, seven bits a byte.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative; small ones are short.
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends a text and its length.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads what was put, from the front.
pub struct ByteReader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// Reads a row; `what` names it if it is broken.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { what, rest: bytes }
    }

    /// A row that is not what was written.
    pub fn broken(&self, reason: &str) -> Error {
        Error::corrupt(format!("the link index ({})", self.what), reason)
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Reads one byte; fails at the end of the row.
    pub fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| self.broken("it is cut"))?;
        self.rest = rest;
        Ok(*first)
    }

    /// Reads a number of variable length.
    pub fn number(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.broken("a number has no end"))
    }

    /// A number that may be negative.
    pub fn signed(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number of things that take at least a byte each.
    pub fn count(&mut self) -> Result<usize> {
        let number = self.number()?;
        let fits = usize::try_from(number).ok().filter(|count| *count <= self.left());
        fits.ok_or_else(|| self.broken("it names more than it holds"))
    }

    /// Reads `count` bytes, without copying them.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.rest.len() {
            return Err(self.broken("it is cut"));
        }
        let (bytes, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(bytes)
    }

    /// Bytes with their number.
    pub fn piece(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// A text with its length.
    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.piece()?;
        std::str::from_utf8(bytes).map_err(|_| self.broken("a text is no text"))
    }

    /// All that is left, as a text.
    pub fn rest(&mut self) -> Result<&'a str> {
        let bytes = self.bytes(self.rest.len())?;
        std::str::from_utf8(bytes).map_err(|_| self.broken("a text is no text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_read(number: u64, signed: i64, text: String) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            put_signed(&mut out, signed);
            put_text(&mut out, &text);
            let mut reader = ByteReader::new("test", &out);
            prop_assert_eq!(reader.number().unwrap(), number);
            prop_assert_eq!(reader.signed().unwrap(), signed);
            prop_assert_eq!(reader.text().unwrap(), text);
            prop_assert_eq!(reader.left(), 0);
        }

        #[test]
        fn foreign_bytes_are_refused_or_read(bytes: Vec<u8>) {
            let mut reader = ByteReader::new("test", &bytes);
            while reader.left() > 0 {
                if reader.text().is_err() && reader.signed().is_err() {
                    break;
                }
            }
        }
    }
}
