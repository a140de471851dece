//! The link index: who links to what, exact at every moment, at the cost of the change.
//!
//! A page's links are compared with those it had; what differs travels to the targets.
//! Every target has its in-links, their number, and a place in two rankings; every domain
//! the number of its pages. [`keys`] says which rows there are, [`node`], [`pages`] and
//! [`inlinks`] what they hold; [`plan`] compares, [`fold`] brings the differences to the
//! targets of a part, [`index`] makes both one change.
//!
//! Invariants: the number of a page's in-links is the length of their list, whoever looks
//! and whenever; applying a batch again changes nothing; what is there equals what a
//! computation from all pages gives, and [`verify`] compares.

pub mod bulk;
pub mod changes;
mod codec;
pub mod counts;
pub mod dump;
pub mod fold;
pub mod follow;
pub mod index;
pub mod inlinks;
pub mod keys;
pub mod node;
pub mod pages;
pub mod paging;
mod parts;
pub mod plan;
pub mod prune;
pub mod queries;
pub mod rankings;
pub mod rebuild;
mod state;
pub mod verify;

#[cfg(test)]
mod tests;

pub use changes::{ChangeBatch, Mark, PageChange, PageContent, What};
pub use index::LinkIndex;
pub use parts::Parts;
