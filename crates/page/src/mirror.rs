//! The pure half of a mirror: names of files, references rewritten, x-files and what is made of them.
//!
//! A mirror is a browsable copy of a site that is brought up to date by numbered x-files
//! (`docs/decisions/mirror.md`). Here is what can be computed from bytes alone. [`names`] says
//! what files are called. [`rules`] say what a page of a site is, or [`derive`] finds it out;
//! [`article`] takes its text out, [`requisites`] names what it needs to be shown. [`react`]
//! cleans a page, [`rewrite`] makes its references and those of style sheets ([`css`]) lead
//! into the mirror. [`xfile`] is what a run changed, [`dir_index`] the structure of a site
//! that x-files bring up to date. Every reader is bounded by limits that are named where they hold.

pub mod article;
pub mod css;
pub mod derive;
mod digest;
pub mod dir_index;
mod error;
pub mod names;
pub mod react;
pub mod references;
pub mod requisites;
pub mod rewrite;
pub mod rules;
mod select;
mod tree;
mod values;
mod words;
pub mod xfile;
mod xml;

pub use self::digest::ContentDigest;
pub use self::error::Error;
pub use self::tree::{DEPTH_MAX, NODES_MAX, VALUE_BYTES_MAX};
