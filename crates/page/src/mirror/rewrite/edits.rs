//! A text in which pieces are replaced, from the front to the back.
//!
//! Invariant: what no edit covers is copied byte for byte.

use std::ops::Range;

/// A text as it is written anew.
pub(super) struct Edits<'d> {
    document: &'d str,
    out: String,
    /// How far the document has been dealt with.
    done: usize,
}

impl<'d> Edits<'d> {
    pub(super) fn new(document: &'d str) -> Edits<'d> {
        Edits { document, out: String::with_capacity(document.len() + 1_024), done: 0 }
    }

    /// Replaces a piece; one that lies before the end of the last is passed over.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) {
        let Some(between) = self.document.get(self.done..range.start) else { return };
        if range.end > self.document.len() {
            return;
        }
        self.out.push_str(between);
        self.out.push_str(with);
        self.done = range.end;
    }

    /// Where a piece of the document stands that was handed out by its reader.
    pub(super) fn range_of(&self, piece: &str) -> Option<Range<usize>> {
        let start = piece.as_ptr().addr().checked_sub(self.document.as_ptr().addr())?;
        let range = start..start + piece.len();
        // Whatever lies there, it must be the same text.
        (self.document.get(range.clone()) == Some(piece)).then_some(range)
    }

    /// The byte before a place.
    pub(super) fn byte_before(&self, at: usize) -> Option<u8> {
        self.document.as_bytes().get(at.checked_sub(1)?).copied()
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str(self.document.get(self.done..).unwrap_or(""));
        self.out
    }
}
