//! Where the next page of an answer begins, as a text that belongs to its question.
//!
//! Invariant: a cursor is taken only with the words, the order and the folding it was given
//! for.

use super::DEPTH_MAX;
use super::answer::Question;
use super::parse::QuestionRefusal;
use data_encoding::BASE64URL_NOPAD;

/// What a cursor is for: the same words in the same order.
fn mark(question: &Question) -> u32 {
    let text = format!("{:?} {:?} {}", question.order, question.duplicates, question.text);
    let hash = blake3::hash(text.as_bytes());
    u32::from_be_bytes([0, 1, 2, 3].map(|at| hash.as_bytes()[at]))
}

/// The cursor of a page of this question.
pub fn to_cursor(question: &Question, from: usize) -> String {
    let from = u32::try_from(from).unwrap_or(u32::MAX);
    let bytes = [mark(question).to_be_bytes(), from.to_be_bytes()].concat();
    BASE64URL_NOPAD.encode(&bytes)
}

/// Where the page begins that a question asks for.
pub fn from_cursor(question: &Question) -> Result<usize, QuestionRefusal> {
    let Some(cursor) = &question.cursor else { return Ok(0) };
    let bytes =
        BASE64URL_NOPAD.decode(cursor.as_bytes()).map_err(|_| QuestionRefusal::BadCursor)?;
    let bytes: [u8; 8] = bytes.try_into().map_err(|_| QuestionRefusal::BadCursor)?;
    let [a, b, c, d, from @ ..] = bytes;
    if u32::from_be_bytes([a, b, c, d]) != mark(question) {
        return Err(QuestionRefusal::BadCursor);
    }
    let from = usize::try_from(u32::from_be_bytes(from)).unwrap_or(usize::MAX);
    if from >= DEPTH_MAX { Err(QuestionRefusal::TooFar(DEPTH_MAX)) } else { Ok(from) }
}
