//! The XML of a mirror's files: read piece by piece within limits, written the same each time.
//!
//! Relies on quick-xml for the grammar. Entities that a document defines are refused with the
//! document type that would define them. Characters that XML 1.0 cannot hold are written as
//! `_xHHHH_` (ECMA-376, as spreadsheets do), and a text that looks so as `_x005F_xHHHH_`.
//! Invariant: nothing is held but one piece, and no piece is longer than the caller allows.

mod escape;
mod read;
mod write;

pub(super) use self::escape::{decoded, encoded};
pub(super) use self::read::{Attributes, Piece, Pieces};
pub(super) use self::write::{Attribute, Writer};
